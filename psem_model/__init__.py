"""What runs: predictions, checks and simulations, reports of the proofs, and the command line."""
