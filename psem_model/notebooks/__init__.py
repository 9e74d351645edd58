"""The commands as functions: what they report shows itself in a notebook."""

from psem_model.notebooks.reports import check, compare, explain, predict, simulate, table
from psem_model.text.errors import BadInput, UserError

__all__ = ["BadInput", "UserError", "check", "compare", "explain", "predict", "simulate", "table"]
