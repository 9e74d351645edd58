"""Certificates: what the kernel did, and a proof for each obligation, for `psem_check` to check."""
