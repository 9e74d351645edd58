"""What runs: predictions from the specification, reports of the proofs, and the command line."""
