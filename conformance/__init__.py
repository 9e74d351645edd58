"""What psem derives beside what PyTorch does: cases, recorded logs, rows, and the page."""
