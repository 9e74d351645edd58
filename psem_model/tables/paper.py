"""The paper on one page: strategies, their modes, what these cost, and the claims that prove it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import sympy

from proofs.choosing.every_run import NAMED_OR_DERIVED, Steps
from psem_model.predict.closed import MICRO, PSI, K, closed_form
from psem_model.predict.states import Prediction
from psem_model.reading.placements import modes_of
from psem_model.tables.states import N, held_said, legend, policy_said, predictions, spelled
from psem_model.tables.table import NotAsExpected, Style, by_size, table
from psem_model.tables.theorems import equations, theorems
from psem_model.text.report import Column, Note, Section, note
from spec.costs.memory import MODEL_STATES
from spec.derivation.schedules import schedule_of
from spec.models.states import MIXED_ADAM, State
from spec.plans.modes import Mode
from spec.plans.strategies import STRATEGIES

RIGHT = "E9"  # the claim that the named strategies do what a single device does
COSTS = ("M1", "M2", "M3", "M4", "X1", "X4")  # claims that state what a strategy holds or sends
PROVING = 0.9  # of the time that the table takes
WITH_COPIES = "DP"
LETTERS = {state: state.value[0].upper() for state in State}
MEMORY = ("memory, bytes", f"memory, of {WITH_COPIES}")
SENT = ("communication, elements", f"communication, of {WITH_COPIES}")


def paper(style: Style) -> Section:
    """Each strategy: modes, memory and communication, both by those of dp, and what proves it."""
    rows = []
    theorems((*COSTS, RIGHT), lambda share: style.tell(PROVING * share))
    known = [*predictions(style)]
    for done, (name, found) in enumerate(known):
        style.tell(PROVING + (1 - PROVING) * done / len(known))
        placed, even = STRATEGIES[name], _even(name, style)
        modes = [modes_of(placed, state, named=False) for state in State]
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
    states = [Column(letter, key=state.value) for state, letter in LETTERS.items()]
    return table(
        "paper",
        "The strategies: what they place where, what that takes, and the claims that prove it",
        (
            Column("strategy"),
            *states,
            Column(MEMORY[0], 1),
            Column(MEMORY[1]),
            Column(SENT[0], 1.2, panel=True),
            Column(SENT[1], 1.2),
            Column("proved by", 0.6),
        ),
        tuple(rows),
        _notes(style),
        legend(),
    )


def _notes(style: Style) -> Iterator[Note]:
    """What its columns and rows are."""
    several = [name for name, placed in STRATEGIES.items() if len(placed.axes) > 1]
    for state, letter in LETTERS.items():
        yield note(f"{letter}: {state.value}.", columns=[letter])
    yield note(f"{spelled(Mode)}; +O on the host.", columns=[*LETTERS.values()])
    yield replace(held_said(), columns=(LETTERS[State.PARAMETERS],))
    for name in several:
        axes = " / ".join(STRATEGIES[name].axes)
        yield note(f"{name}: modes along {axes}.", rows=[name], columns=[*LETTERS.values()])
    yield from policy_said(style, *MEMORY)
    yield note(
        f"Of {WITH_COPIES}: as multiples of what data parallelism takes on as many devices, where they "
        "divide the parameters.",
        columns=[MEMORY[1], SENT[1]],
    )
    yield note("Memory: on a device between steps.", columns=MEMORY)
    yield note("Communication: of a device, in a step, without the host link.", columns=SENT)
    yield note("hsdp: what is sent inside a group, then across groups.", rows=["hsdp"], columns=SENT)


def _even(name: str, style: Style) -> Prediction:
    """A strategy where devices divide the parameters, with as many micro-steps as it can have."""
    micro_steps: Any = next(p.micro_steps for n, p in predictions(style) if n == name)
    return closed_form(schedule_of(STRATEGIES[name]), style.policy, False, micro_steps=micro_steps)


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
    found = [
        claim
        for claim in COSTS
        for formula in (holds, sends, sends.subs(MICRO, 1))
        if sympy.cancel(formula) in _stated(claim)
    ]
    return [*dict.fromkeys(found), _require_all_are_right()]


@cache
def _stated(claim: str) -> set[Any]:
    """The formulas in the equations of a claim's theorems, where N divides Psi; quotients reduced."""
    names = {"psi": PSI, "n": N, "k": K, "m": MICRO, "c": PSI / N}
    names |= {axis: sympy.Symbol(f"N_{axis}", positive=True) for axis in ("replica", "shard")}
    return {
        sympy.cancel(right)
        for theorem in theorems([claim])[claim]
        for _, right in equations(theorem.statement, names)
        if right.has(PSI)
    }


@cache
def _require_all_are_right() -> str:
    """The claim that all are. Raises NotAsExpected if its theorem is not of one of them."""
    (proved,), named = theorems([RIGHT])[RIGHT], Steps().named
    missing = [name for name in STRATEGIES if name not in named]
    if missing or NAMED_OR_DERIVED not in proved.hypotheses:
        raise NotAsExpected(f"claim {RIGHT} is not of {', '.join(missing) or 'the named strategies'}")
    return RIGHT
