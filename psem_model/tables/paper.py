"""The paper on one page: strategies, their modes, what these cost, and the claims that prove it."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy

from psem_model.predict.closed import MICRO, PSI, K, closed_form
from psem_model.predict.states import Prediction
from psem_model.tables.states import N, legend, policy_said, predictions
from psem_model.tables.table import NotAsExpected, Style, by_size, table
from psem_model.tables.theorems import equations, theorems
from psem_model.text.report import Column, Section
from spec.costs.memory import MODEL_STATES
from spec.derivation.derive import derive
from spec.devices.mesh import HOST
from spec.models.states import MIXED_ADAM, State
from spec.plans.modes import Mode
from spec.plans.placement import Placement
from spec.plans.strategies import STRATEGIES

RIGHT = "E9"  # the claim that the named strategies do what a single device does
LISTED = "lines_are_those_of_"  # a schedule: its hypothesis there
COSTS = ("M1", "M2", "M3", "M4", "X1", "X4")  # claims that state what a strategy holds or sends
WITH_COPIES = "DP"


def paper(style: Style) -> Section:
    """Each strategy: modes, memory and communication, both by those of dp, and what proves it."""
    rows = []
    for name, found in predictions(style):
        placed, even = STRATEGIES[name], _even(name, style)
        modes = [_modes(placed, state) for state in State]
        whole = _even("dp", style)
        devices = sympy.prod([even.sizes.mesh[axis] for axis in placed.axes])
        rows.append(
            (
                name,
                *modes,
                by_size(found.total),
                _ratio(even.total, whole.total),
                tuple(map(by_size, _sent(found))),
                tuple(_ratio(sent, whole.elements.subs(N, devices)) for sent in _sent(even)),
                tuple(_claims(even, style)),
            )
        )
    states = [Column(state.value[0].upper(), key=state.value) for state in State]
    return table(
        "paper",
        "The strategies: what they place where, what that takes, and the claims that prove it",
        (
            Column("strategy"),
            *states,
            Column("memory, bytes"),
            Column(f"memory, of {WITH_COPIES}"),
            Column("communication, elements", 1.2, panel=True),
            Column(f"communication, of {WITH_COPIES}", 1.2),
            Column("proved by", 0.6),
        ),
        tuple(rows),
        f"P, O, G, A: {', '.join(state.value for state in State)}; {_meaning()}. {policy_said(style)} "
        f"Of {WITH_COPIES}: as multiples of what data parallelism takes on as many devices, where "
        "they divide the parameters. Memory: on a device between steps. Communication: of a device, "
        "in a step, without the host link; of hsdp inside a group, then across groups.",
        legend(),
    )


def _meaning() -> str:
    """The letters of modes."""
    return f"{', '.join(f'{mode.value} {mode.name.lower()}' for mode in Mode)}, +O on the host"


def _modes(placed: Placement, state: State) -> str:
    """The modes of a state, along one axis after the other."""
    along = [placed.mode(state, axis) for axis in placed.axes]
    on_host = "+O" if placed.mode(state, HOST) is Mode.OFFLOADED else ""
    return "/".join(mode.value for mode in along if mode is not None) + on_host


def _even(name: str, style: Style) -> Prediction:
    """A strategy where devices divide the parameters, with as many micro-steps as it can have."""
    micro_steps: Any = next(p.micro_steps for n, p in predictions(style) if n == name)
    return closed_form(derive(STRATEGIES[name]), style.policy, False, micro_steps=micro_steps)


def _ratio(one: Any, other: Any) -> Any:
    return sympy.factor(sympy.cancel(one / other))


def _sent(found: Prediction) -> list[Any]:
    """Elements sent to other devices, axis by axis."""
    along: dict[tuple[str, ...], Any] = {}
    for move in found.moves:
        if move.op.state in MODEL_STATES and move.op.axes:
            along[move.op.axes] = along.get(move.op.axes, 0) + move.elements
    return [*along.values()]


# --------------------------------------------------------------------------------------- claims
def _claims(even: Prediction, style: Style) -> list[str]:
    """The claims with a theorem that states what a strategy holds or sends; and that it is right.

    Claims on memory are of weights and gradients of two bytes.
    """
    two_bytes = (style.policy.w, style.policy.g) == (MIXED_ADAM.w, MIXED_ADAM.g)
    holds, sends = even.total if two_bytes else sympy.nan, even.elements
    stated = _stated()
    found = [
        claim
        for claim, sides in stated.items()
        for formula in (holds, sends, sends.subs(MICRO, 1))
        if any(sympy.cancel(formula - side) == 0 for side in sides)
    ]
    return [*dict.fromkeys(found), _require_all_are_right()]


@cache
def _stated() -> dict[str, list[Any]]:
    """By claim, the formulas in the equations of its theorems, where N divides Psi."""
    names = {"psi": PSI, "n": N, "k": K, "m": MICRO, "c": PSI / N}
    names |= {axis: sympy.Symbol(f"N_{axis}", positive=True) for axis in ("replica", "shard")}
    return {
        claim: [
            right
            for theorem in theorems(claim)
            for _, right in equations(theorem.statement, names)
            if right.has(PSI)
        ]
        for claim in COSTS
    }


@cache
def _require_all_are_right() -> str:
    """The claim that all are. Raises NotAsExpected if its theorem is not of one of them."""
    derived, (proved,) = {derive(placed) for placed in STRATEGIES.values()}, theorems(RIGHT)
    listed = {name for name in proved.hypotheses if name.startswith(LISTED)}
    if len(listed) != len(derived):
        raise NotAsExpected(f"claim {RIGHT}: of {len(listed)} schedules, expected {len(derived)}")
    return RIGHT
