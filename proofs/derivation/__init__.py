"""What is derived."""
