"""Tables of the training states: placements, modes, memory, communication."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import sympy

from psem_model.predict.closed import LEGEND, MICRO, PSI, Closed, closed_form, mesh_symbols
from psem_model.predict.gpt import plan
from psem_model.predict.states import Prediction, in_words
from psem_model.reading.placements import modes_of, symbols_of
from psem_model.space.verdicts import verdict_of
from psem_model.tables.models import lies_of
from psem_model.tables.table import Style, by_size, table
from psem_model.text.report import Cell, Column, Note, Section, note
from spec.checking.verdict import check
from spec.choosing.regimes import REGIMES
from spec.costs.communication import Transfer
from spec.costs.memory import MODEL_STATES, Sizes, resting, transient
from spec.derivation.schedules import schedule_of
from spec.devices.layouts import Layout, along
from spec.devices.mesh import HOST
from spec.language.schedule import RESTING, STATE_OF, Kind, Op, Rest
from spec.models import transformer
from spec.models.states import BytePolicy, State
from spec.plans import modes, strategies
from spec.plans.compose import PIPELINE
from spec.plans.model_strategies import MODEL_MEANING
from spec.plans.modes import M, Mode
from spec.plans.placement import Placement, on_batch

N = sympy.Symbol("N", positive=True)


def _steps(placed: Placement, policy: BytePolicy) -> Any:
    """With how many micro-steps a placement is realisable: any number, one, or none."""
    few = dict.fromkeys(placed.axes, 2)
    for micro_steps, any_number in ((2, MICRO), (1, 1)):
        if check(schedule_of(placed), few, micro_steps, policy).accepted:
            return any_number
    return 0


def predictions(style: Style, with_unit: bool = False) -> Iterator[tuple[str, Prediction]]:
    """Each strategy that is realisable, in symbols."""
    for name, placed in strategies.STRATEGIES.items():
        if steps := _steps(placed, style.policy):
            yield name, closed_form(schedule_of(placed), style.policy, style.padded, with_unit, steps)


def policy_said(style: Style, *columns: str) -> Iterator[Note]:
    """What the bytes of a state are, in some columns, and which strategies that leaves."""
    of, steps = style.policy, {n: _steps(p, style.policy) for n, p in strategies.STRATEGIES.items()}
    weights, gradients = State.PARAMETERS, State.GRADIENTS
    yield note(
        f"Bytes of an element: {of.of(weights)} of a weight ({of.provenance(weights)}), "
        f"{of.of(gradients)} of a gradient ({of.provenance(gradients)}).",
        columns=columns,
    )
    yield from (
        note(f"{name}: with one micro-step only.", rows=[name]) for name in steps if steps[name] == 1
    )
    if none := [name for name in steps if steps[name] == 0]:
        yield note(f"Not realisable without a copy of the weights: {', '.join(none)}.", rows=none)


def spelled(symbols: Iterable[Mode | Layout]) -> str:
    """The letter and the word of each."""
    return ", ".join(f"{symbol.value} {symbol.name.lower()}" for symbol in symbols)


def legend() -> dict[str, str]:
    """What symbols of the training states mean."""
    axes = {axis for placement in strategies.STRATEGIES.values() for axis in placement.axes}
    return {**LEGEND, **{f"N_{axis}": f"devices along {axis}" for axis in sorted(axes)}}


# ----------------------------------------------------------------------------- placements, modes
def placements(style: Style) -> Section:
    """Each strategy as the modes of the four states, or as what it cuts of the model."""
    rows: list[tuple[Cell, ...]] = []
    for name, placed in strategies.STRATEGIES.items():
        over = tuple(axis for axis in (*placed.axes, HOST) if _uses(placed, axis))
        modes_ = [modes_of(placed, state) for state in State]
        rows.append((name, strategies.STRATEGY_MEANING[name], over, *modes_))
    for name, meaning in MODEL_MEANING.items():
        if name not in strategies.STRATEGIES:
            weights, kept = lies_of(name) if name != PIPELINE else (BY_LAYERS, BY_LAYERS)
            rows.append((name, meaning, tuple(plan(name).mesh), weights, weights, weights, kept))
    states = [Column(state.value, 0.62) for state in State]
    return table(
        "placements",
        "Strategies as placements of the four training states",
        (Column("strategy"), Column("what it is", 2.3), Column("along", 0.6), *states),
        tuple(rows),
        (
            note(f"Modes: {spelled(Mode)}. +O: on the host.", rows=strategies.STRATEGIES),
            held_said(),
            note(
                "Where the model is cut: how a layer's weights lie, and what backward reads; S(i): "
                f"along index i: {_indices(rows)}.",
                rows=[name for name in MODEL_MEANING if name not in strategies.STRATEGIES],
            ),
        ),
    )


def held_said() -> Note:
    """What is said of strategies that hold what they gather."""
    holding = [name for name, placed in strategies.STRATEGIES.items() if placed.hold]
    return note("Held: what is gathered stays from forward to backward.", rows=holding)


BY_LAYERS = (str(along(transformer.LAYER)),)  # whole pieces are on a stage: see spec.pipelines.stages


def _indices(rows: Iterable[tuple[Cell, ...]]) -> str:
    """What the letters in cells mean."""
    cells = [lie for row in rows for cell in row if isinstance(cell, tuple) for lie in cell]
    used = {letter for lie in cells for letter in re.findall(r"\(([a-z])\)", str(lie))}
    return ", ".join(
        f"{letter} {words}" for letter, words in transformer.INDICES.items() if letter in used
    )


def _uses(placed: Placement, axis: str) -> bool:
    return any(placed.mode(state, axis) is not None for state in State)


STAGE_1 = strategies.STRATEGIES["zero1"]
AT_ONCE = (Kind.FORWARD, Kind.BACKWARD, Kind.RELEASE, Kind.RESET)  # in every step
ONE_BYTE = BytePolicy(1, 1, 1)  # of an element: bytes are elements


def mode_meanings(style: Style) -> Section:
    """What each mode keeps, and what the derived step does to a state that is placed so."""
    rows = []
    for mode in Mode:
        cells = [_what_happens(state, mode) for state in State]
        rows.append((spelled([mode]), _keeps(mode, style), modes.MODE_MEANING[mode], *cells))
    return table(
        "modes",
        "The five modes, and what the derived step does to each state",
        (
            Column("mode"),
            Column("keeps"),
            Column("rests as", 1.2),
            *(Column(state.value, 1) for state in State),
        ),
        tuple(rows),
        (
            "Along an axis that cuts the batch.",
            note(
                "Keeps: elements on a device, of a state with one for each parameter.",
                columns=["keeps"],
            ),
            note(
                "Of each state: operations of the derived step that make, move or update it, when the "
                "others lie as in ZeRO stage 1.",
                columns=[state.value for state in State],
            ),
        ),
        legend(),
        long=True,
    )


def _placed_so(state: State, mode: Mode) -> Placement:
    """ZeRO-1, but for the mode of one state."""
    symbols = {s: symbols_of(STAGE_1, s) for s in State} | {state: mode.value}
    parameters, optimizer, gradients, activations = (symbols[s] for s in State)
    return on_batch(parameters, optimizer, gradients, activations)


def _keeps(mode: Mode, style: Style) -> Any:
    """Elements that rest on a device, of the parameters placed so."""
    placed = _placed_so(State.PARAMETERS, mode)
    sizes = Sizes(PSI, mesh_symbols(placed.axes), ONE_BYTE, None, Closed(style.padded))
    return sympy.sympify(resting(schedule_of(placed), State.PARAMETERS, sizes))


def _what_happens(state: State, mode: Mode) -> Cell:
    """Operations on a state that is placed so."""
    placed = _placed_so(state, mode)
    if not any(verdict_of(placed, regime).accepted for regime in REGIMES):
        return "not realisable"
    schedule = schedule_of(placed)
    found = [modes.MATERIALIZED_FROM[state]] if mode is M else []
    for ops, when in ((schedule.micro_step, "each micro-step"), (schedule.finish, "once a step")):
        on_it = [op for op in ops if op.state is state and op.kind not in AT_ONCE]
        done = [_done(op, schedule.rest(state)) for op in on_it]
        counted = [f"{done.count(k)} {k}" if done.count(k) > 1 else k for k in dict.fromkeys(done)]
        found += [f"{', '.join(counted)} {when}"] if counted else []
    return tuple(found) or "used where it is"


def _done(op: Op, rest: Rest) -> str:
    """An operation, from which other state it makes this one, and whether on the host."""
    of, makes_another = STATE_OF.get(op.source), op.kind is Kind.RECOMPUTE and op.state in MODEL_STATES
    source = f" from {of.value}" if makes_another and of and of is not op.state else ""
    on_host = op.kind is Kind.UPDATE and op.target in RESTING and rest.host
    return op.kind.value + source + " on the host" * on_host


# ---------------------------------------------------------------------------------------- memory
def memory(style: Style) -> Section:
    """Bytes that rest on a device between steps."""
    rows = []
    for name, found in predictions(style):
        sizes = [found.resting[state] for state in MODEL_STATES]
        rows.append((name, *(by_size(size) for size in (*sizes, found.total, found.host))))
    states = [Column(state.value, 0.9) for state in MODEL_STATES]
    return table(
        "memory",
        "Memory of the model states, in bytes per device, between steps",
        (Column("strategy"), *states, Column("all", 1.4), Column("on the host", 1.2)),
        tuple(rows),
        policy_said(style, *(state.value for state in MODEL_STATES), "all", "on the host"),
        legend(),
    )


def peak(style: Style) -> Section:
    """Bytes that pass through a device on top of what rests."""
    rows = []
    for name, found in predictions(style, with_unit=True):
        passing = transient(found.schedule, found.sizes)
        rows.append((name, by_size(found.total), by_size(passing)))
    return table(
        "peak",
        "Memory at the fullest moment of a step, in bytes per device: what rests and what passes",
        (Column("strategy"), Column("rests"), Column("passes, at most")),
        tuple(rows),
        (
            *policy_said(style, "rests", "passes, at most"),
            note("Their sum is the peak (claim M9).", columns=["rests", "passes, at most"]),
        ),
        legend(),
    )


# --------------------------------------------------------------------------------- communication
def communication(style: Style) -> Section:
    """Each operation that moves model states, and all along an axis together."""
    rows: list[tuple[Cell, ...]] = []
    for name, found in predictions(style):
        rows += [(name, *row) for row in _moves(found)]
    return table(
        "communication",
        "Communication of the model states, per device and step",
        (
            Column("strategy"),
            Column("operation", 1.15),
            Column("along"),
            Column("elements", 1.05),
            Column("bytes", 1.15),
        ),
        tuple(rows),
        policy_said(style, "bytes"),
        legend(),
        long=True,
        headed=True,
    )


def _moves(found: Prediction) -> Iterator[tuple[Cell, ...]]:
    of_states = [move for move in found.moves if move.op.state in MODEL_STATES]
    along: dict[tuple[str, ...], list[Transfer]] = {}
    for move in of_states:
        along.setdefault(move.op.axes, []).append(move)
    for axes, moves in along.items():
        yield from map(_moved, moves, in_words(moves))
        if len(moves) > 1:
            elements, sent = sum(m.elements for m in moves), sum(m.bytes for m in moves)
            yield ALL, axes or HOST_LINK, by_size(elements), by_size(sent)


ALL, HOST_LINK = "all", "host link"


def _moved(move: Transfer, words: str) -> tuple[Cell, ...]:
    along: Cell = move.op.axes or HOST_LINK
    return words, along, by_size(move.elements), by_size(move.bytes)
