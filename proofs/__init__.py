"""The proofs: `x.py` proves what `spec/x.py` defines. Only the kernel makes theorems."""
