"""Closed forms: the specification evaluated on SymPy symbols."""

from __future__ import annotations

from typing import Any

import sympy

from psem_model.predict.states import Prediction, predict_schedule
from psem_model.text.report import Formula, in_words
from spec.arithmetic import Number
from spec.memory import Sizes, transient
from spec.mesh import Axes
from spec.schedule import Schedule
from spec.states import BytePolicy

PSI, UNIT, K, MICRO = sympy.symbols("Psi U K m", positive=True)
SHARD = sympy.Function("shard", positive=True)
LEGEND = {
    "Psi": "parameters",
    "N": "devices",
    "K": "bytes of optimizer state per parameter",
    "U": "elements of a unit",
    "m": "micro-steps per step",
    "shard(a, u, n)": "per device, of a in units of u: floor(a/u) ceil(u/n) + ceil((a mod u)/n)",
}


class Closed:
    """Symbolic arithmetic: shards as quotients, or padded by ceilings."""

    def __init__(self, padded: bool) -> None:
        self.padded = padded

    def shard(self, elements: Any, unit: Any, devices: Any) -> Any:
        if not self.padded:
            return elements / devices
        if unit == elements:
            return sympy.ceiling(elements / devices)
        return SHARD(elements, unit, devices)

    def maximum(self, first: Any, *others: Any) -> Any:
        kept: list[Any] = []
        for term in dict.fromkeys((first, *others)):
            if not any((other - term).expand().is_nonnegative for other in kept):
                kept = [o for o in kept if not (term - o).expand().is_nonnegative]
                kept.append(term)
        return kept[0] if len(kept) == 1 else sympy.Max(*kept, evaluate=False)


def mesh_symbols(axes: Axes) -> dict[str, Any]:
    """N for one axis; N_axis for several."""
    if len(axes) == 1:
        return {axes[0]: sympy.Symbol("N", positive=True)}
    return {axis: sympy.Symbol(f"N_{axis}", positive=True) for axis in axes}


def closed_form(
    schedule: Schedule,
    policy: BytePolicy,
    padded: bool,
    with_unit: bool = False,
    micro_steps: Number = MICRO,
) -> Prediction:
    """A schedule's prediction in Psi, N and K: the policy gives w and g, K stays a symbol.

    `padded`: with ceilings; otherwise as if N divided Psi. `with_unit`: with a unit U of its own.
    """
    unit = UNIT if with_unit else None
    symbolic = BytePolicy(sympy.sympify(policy.w), sympy.sympify(policy.g), K)
    sizes = Sizes(PSI, mesh_symbols(schedule.axes), symbolic, unit, Closed(padded))
    return predict_schedule(schedule, sizes, micro_steps)


def peak_formula(prediction: Prediction) -> Any:
    """The peak as what rests plus the largest transient (theorem M9)."""
    return prediction.total + transient(prediction.schedule, prediction.sizes)


def text(formula: Any) -> str:
    """A formula as one line of plain text."""
    return in_words(sympy.sympify(formula))


def written(formula: Any) -> Formula:
    """A formula for a report."""
    expression = sympy.sympify(formula)
    return Formula(text(expression), expression)
