"""The space of placements of a batch axis: classes, frontier, reasons."""
