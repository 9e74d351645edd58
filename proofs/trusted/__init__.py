"""The kernel: the only maker of theorems."""
