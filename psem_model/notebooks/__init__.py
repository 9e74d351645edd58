"""The commands as functions: what they report shows itself in a notebook."""

from psem_model.notebooks.reports import check, compare, explain, predict, simulate, table

__all__ = ["check", "compare", "explain", "predict", "simulate", "table"]
