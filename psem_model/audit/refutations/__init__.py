"""The runs that the counterexamples of refuted claims describe, executed by the simulator.

Each takes the values that a proof found, puts them into a schedule, a model and an optimizer, and
says what it shows. The audit gives them the values of the proof that it audits.
"""

from psem_model.audit.refutations import (
    compositions,
    conditions,
    levels,
    memory,
    optimizers,
    reductions,
    rounding,
)
from psem_model.audit.refutations.registry import REGISTERED, Shown, Values, executed, name_of

__all__ = [
    "REGISTERED",
    "Shown",
    "Values",
    "compositions",
    "conditions",
    "executed",
    "levels",
    "memory",
    "name_of",
    "optimizers",
    "reductions",
    "rounding",
]
