"""Placement, step and cost of each strategy: which line of the step pays which term.

Strategies of the training states; and those that cut the model, of a layer of a GPT, in symbols.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from psem_model.predict.closed import MICRO, closed_form, passing
from psem_model.predict.gpt import plan
from psem_model.predict.parts import BACKWARD, FORWARD, PHASES, PartCosts, Traffic
from psem_model.predict.states import Prediction, in_words
from psem_model.reading.placements import modes_of
from psem_model.tables.models import lies_of
from spec.checking.verdict import check
from spec.costs.communication import Transfer
from spec.costs.memory import MODEL_STATES, Sizes, live_bytes, live_results, room
from spec.derivation.schedules import schedule_of
from spec.language.schedule import COLLECTIVE_KINDS, HOST_TRANSFERS, Op, Schedule
from spec.models.states import MIXED_ADAM, State
from spec.models.transformer import LAYER
from spec.numbers.arithmetic import EXACT
from spec.plans.compose import PIPELINE
from spec.plans.model_strategies import MODEL_AXES, MODEL_MEANING
from spec.plans.placement import Placement
from spec.plans.strategies import STRATEGIES, STRATEGY_MEANING

SAMPLE = 2**20  # parameters, by which the fullest moment is found
MOVING = COLLECTIVE_KINDS + HOST_TRANSFERS
FEW = 8  # devices along each axis, likewise


@dataclass(frozen=True)
class Line:
    """An operation of the step."""

    id: str
    words: str
    moves: bool


@dataclass(frozen=True)
class Term:
    """A term of the cost, as a formula of SymPy, and the ids of what pays it."""

    id: str
    words: str
    formula: Any
    unit: str
    payers: Sequence[str]


@dataclass(frozen=True)
class Strategy:
    """A strategy's placement, its step and what that costs; ids are unique on a page."""

    name: str
    meaning: str
    placed: Sequence[tuple[str, str, str]]  # id, state, modes
    step: Sequence[tuple[str, Sequence[Line]]]  # when, and the lines of then
    memory: Sequence[Term]
    sent: Sequence[Term]

    @property
    def lines(self) -> list[Line]:
        """All lines, in order."""
        return [line for _, lines in self.step for line in lines]

    def number(self, id: str) -> str:
        """What a payer is called: the number of a line, or a state."""
        numbers = {line.id: f"line {number}" for number, line in enumerate(self.lines, 1)}
        return numbers.get(id) or next(state for at, state, _ in self.placed if at == id)


def strategies() -> list[Strategy]:
    """All strategies of the training states, with mixed-precision Adam."""
    return [_strategy(name, placed) for name, placed in STRATEGIES.items()]


def _strategy(name: str, placed: Placement) -> Strategy:
    schedule = schedule_of(placed)
    few = dict.fromkeys(placed.axes, 2)
    several = check(schedule, few, 2, MIXED_ADAM).accepted
    found = closed_form(schedule, MIXED_ADAM, False, False, MICRO if several else 1)
    lines = [
        Line(f"{name}-{number}", " ".join(str(op).split()), op.kind in MOVING)
        for number, op in enumerate(schedule.ops, 1)
    ]
    first = len(schedule.micro_step)
    return Strategy(
        name,
        STRATEGY_MEANING[name] + ("" if several else "; one micro-step only"),
        [(f"{name}-{state.value}", state.value, modes_of(placed, state)) for state in State],
        (("in each micro-step", lines[:first]), ("once a step", lines[first:])),
        list(_memory(name, found)),
        list(_sent(name, found)),
    )


def _memory(name: str, found: Prediction) -> Iterator[Term]:
    for state in MODEL_STATES:
        payers = [f"{name}-{state.value}"]
        yield Term(
            f"{name}-rests-{state.value}",
            f"{state.value} rest",
            sympy.factor(found.resting[state]),
            "bytes",
            payers,
        )
    with_unit = closed_form(found.schedule, MIXED_ADAM, False, True, found.micro_steps)
    if passing(with_unit) != 0:
        payers = [f"{name}-{number}" for number in _fullest(found.schedule)]
        yield Term(
            f"{name}-passes", "passes, at most", sympy.factor(passing(with_unit)), "bytes", payers
        )
    if found.host != 0:
        on_host = [s for s in MODEL_STATES if found.schedule.rest(s).host]
        payers = [f"{name}-{state.value}" for state in on_host]
        yield Term(f"{name}-host", "on the host", sympy.factor(found.host), "bytes", payers)


def _fullest(schedule: Schedule) -> list[int]:
    """The lines whose results are there at the fullest moment of a step, which a sample shows."""
    sizes = Sizes(SAMPLE, dict.fromkeys(schedule.axes, FEW), MIXED_ADAM, SAMPLE // FEW, EXACT)
    fullest = max(
        live_results(schedule), key=lambda moment: live_bytes(moment, lambda op: room(op, sizes))
    )
    return [
        number for number, op in enumerate(schedule.ops, 1) if any(_made_by(op, r) for r in fullest)
    ]


def _made_by(op: Op, result: Op) -> bool:
    fields = ("kind", "phase", "source", "into", "axes", "within", "by", "mean", "shift")
    return all(getattr(op, field) == getattr(result, field) for field in fields)


def _sent(name: str, found: Prediction) -> Iterator[Term]:
    """What each line that moves data sends, in elements, and all that goes to other devices."""
    numbers = [n for n, op in enumerate(found.schedule.ops, 1) if op.kind in MOVING]
    payers: list[str] = []
    paired: list[tuple[int, Transfer]] = list(zip(numbers, found.moves, strict=True))
    for (number, move), words in zip(paired, in_words(found.moves), strict=True):
        if move.elements == 0:
            continue
        yield Term(
            f"{name}-sends-{number}",
            words,
            sympy.factor(move.elements),
            "elements",
            [f"{name}-{number}"],
        )
        payers += [] if move.to_host else [f"{name}-{number}"]
    yield Term(
        f"{name}-sends", "to other devices, in all", sympy.factor(found.elements), "elements", payers
    )


WEIGHTS = "weights"
LAID = re.compile(r"\(([\w ]+)\|[^)]*\)\)?|\|.*$")  # how a value lies, beside its name


def model_strategies() -> list[Strategy]:
    """Those that cut the model, and the pipeline; data parallelism is of the training states."""
    cut = [_cutting(name) for name in MODEL_AXES if name not in STRATEGIES]
    return [*cut, _pipeline()]


def _cutting(name: str) -> Strategy:
    costs = plan(name).costs[LAYER]
    weights, kept = (", ".join(lies) for lies in lies_of(name))
    lines = [
        Line(f"{name}-{number}", _moved(traffic), True)
        for number, traffic in enumerate(costs.traffic, 1)
    ]
    placed = [
        (f"{name}-{WEIGHTS}", WEIGHTS, weights),
        (f"{name}-{State.ACTIVATIONS.value}", State.ACTIVATIONS.value, kept),
    ]
    forward = sum(traffic.phase == FORWARD for traffic in costs.traffic)
    return Strategy(
        name,
        MODEL_MEANING[name],
        placed,
        (("moved forward", lines[:forward]), ("moved backward", lines[forward:])),
        list(_memory_of_layer(name, costs)),
        list(_sent_in_layer(name, costs)),
    )


def _moved(traffic: Traffic) -> str:
    value = LAID.sub(r"\1", traffic.move.value.name).strip()
    again = ", again" if traffic.phase not in (FORWARD, BACKWARD) else ""
    return f"{traffic.collective} {value} over {' x '.join(traffic.axes)}{again}"


def _memory_of_layer(name: str, costs: PartCosts) -> Iterator[Term]:
    parameters = sympy.factor(sum(costs.parameters.values()))
    kept = sympy.factor(costs.activations)
    yield Term(f"{name}-holds", "parameters", parameters, "elements", [f"{name}-{WEIGHTS}"])
    payers = [f"{name}-{State.ACTIVATIONS.value}"]
    yield Term(f"{name}-keeps", "kept for backward", kept, "bytes", payers)


def _sent_in_layer(name: str, costs: PartCosts) -> Iterator[Term]:
    """What is sent in each phase, and in all: alike moves send alike."""
    for phase in PHASES:
        payers = [f"{name}-{n}" for n, t in enumerate(costs.traffic, 1) if t.phase == phase]
        if payers:
            sent = sympy.factor(costs.sent(phase))
            yield Term(f"{name}-sends-{phase}", f"sent {phase}", sent, "elements", payers)
    payers = [f"{name}-{n}" for n in range(1, len(costs.traffic) + 1)]
    total = sympy.factor(costs.sent(*PHASES))
    yield Term(f"{name}-sends", "sent in all", total, "elements", payers)


def _pipeline() -> Strategy:
    """Stages send what a layer gives, and its gradient back."""
    name = PIPELINE
    piped = plan(name)
    sent, axis = sympy.factor(piped.costs[LAYER].handed_on), piped.product.pipe
    lines = [
        Line(f"{name}-1", f"send the stream over {axis}", True),
        Line(f"{name}-2", f"send its gradient back over {axis}", True),
    ]
    terms = [
        Term(f"{name}-sends-{phase}", f"sent {phase}", sent, "elements", [line.id])
        for phase, line in zip((FORWARD, BACKWARD), lines, strict=True)
    ]
    total = Term(f"{name}-sends", "sent in all", 2 * sent, "elements", [line.id for line in lines])
    return Strategy(
        name,
        MODEL_MEANING[name],
        [(f"{name}-{WEIGHTS}", WEIGHTS, "whole layers on a stage")],
        (("moved forward", lines[:1]), ("moved backward", lines[1:])),
        [],
        [*terms, total],
    )
