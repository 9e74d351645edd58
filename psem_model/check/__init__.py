"""Verdicts: of a schedule, of a product of strategies, and the run that shows a rejection."""
