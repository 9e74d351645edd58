"""The space of placements."""
