"""Named strategies and their products."""
