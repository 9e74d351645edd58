"""Orders of work, stages and checkpoints."""
