"""K7: along each of two axes a placement does what it does alone, and sums gradients when it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from proofs.derivation.phases import require_passing
from proofs.tools.encoding import placements, realisable_placements
from proofs.trusted.kernel import KernelError
from spec.checking.verdict import check
from spec.choosing.regimes import Kept, Regime
from spec.choosing.requirements import is_realisable
from spec.derivation.schedules import schedule_of
from spec.language.schedule import (
    COLLECTIVE_KINDS,
    HOST_TRANSFERS,
    REDUCTIONS,
    Buffer,
    Kind,
    Phase,
    Schedule,
)
from spec.models.states import State
from spec.plans.compose import combined, with_all_samples
from spec.plans.modes import Mode
from spec.plans.placement import BATCH, Placement, on_batch, place_states
from spec.plans.strategies import STRATEGIES

ONE, OTHER = "one", "other"
MESH = {ONE: 2, OTHER: 2}
# of the optimizer state and gradients, both on the host
UPDATED = ("S+O", "S+O"), ("S*+O", "S*+O"), ("S+O", "S*+O"), ("R+O", "S*+O")
HOSTED = [on_batch(parameters, *modes) for parameters, modes in product(("S*", "R"), UPDATED)]
HOSTED.append(on_batch("S*", "S*+O", "S+O"))
# along one axis no parameters, or gradients, rest; along the other slices would
PARTLY = (
    (on_batch("M", "S", "R"), STRATEGIES["zero3"], (ONE, OTHER)),
    (on_batch("M", "S", "M"), STRATEGIES["zero2"], (ONE, OTHER)),
    (on_batch("S", "S", "M"), on_batch("M", "R", "S"), (ONE,)),  # along the other in name only
)
# of parameters on the host in slices, and all states
SLICED = [on_batch("S*+O", *modes) for modes in (("S", "S"), ("S*", "S"), ("S+O", "S+O"))]
WRONG = (
    ("R", "R", "R", "R+O"),
    ("R", "R", "S", "S"),
    ("S", "S", "S", "S"),
    ("R", "S*", "S", "S"),
    ("R", "R", "R", "R"),
)
KEPT = STRATEGIES | {"whole": on_batch("S*", "S", "R")}  # of gradients each device keeps all it has
PAIRS = ("zero2", "zero3"), ("whole", "zero2"), ("dp", "zero1"), ("zero-offload", "dp"), ("dp", "dp")
MOVING = (*COLLECTIVE_KINDS, Kind.UPDATE)
Said = dict[str, Any]  # when gradients are summed
SAID: tuple[Said, ...] = (
    {"each": True},
    {"summed_first": (ONE,)},
    {"summed_first": (ONE, OTHER), "waits": True},
    {"sums_whole": True},
    {"sums_whole": True, "waits": True},
    {"summed_again": (ONE, OTHER), "uses": 2},
)
Moves = list[tuple[Kind, Phase]]


def require_as_along_one() -> None:
    """Raise KernelError unless placements whose states are kept alike, and alike on the host, do along
    each of two axes what they do alone; one that is wrong is so beside others; and each slice is summed
    that is applied.
    """
    for first, second in _pairs():
        both = combined((on_axis(ONE, first), on_axis(OTHER, second)))
        schedule, alone = schedule_of(both), [schedule_of(each) for each in (first, second)]
        require_passing(schedule)
        moves, hosts = ([of(each) for each in alone] for of in (_moves, _crosses))
        if [_moves(schedule, axis) for axis in MESH] != moves or _crosses(schedule) not in hosts:
            raise KernelError(f"K7: {both.modes} move otherwise than alone")
    for placed in (*HOSTED, *SLICED):
        if not check(schedule_of(placed), {BATCH: 2}, 1).accepted:
            raise KernelError(f"K7: {placed.modes} are not accepted")
    for first, second, cut in PARTLY:
        schedule = schedule_of(combined((on_axis(ONE, first), on_axis(OTHER, second))))
        if schedule.cut != cut or not _is_accepted(schedule):
            raise KernelError(f"K7: {first.modes} beside {second.modes}: cut along {schedule.cut}")
    _require_made_again()
    _require_every_mode()
    fused, zero1 = on_axis(ONE, STRATEGIES["fused-update"]), on_axis(OTHER, STRATEGIES["zero1"])
    for modes in WRONG:
        if _is_accepted(schedule_of(combined((zero1, on_axis(ONE, on_batch(*modes)))))):
            raise KernelError(f"K7: {modes} are accepted along {ONE}")
    schedule = schedule_of(with_all_samples(combined((fused, zero1)), (OTHER,)))
    within = {op.within for op in schedule.micro_step if op.kind in REDUCTIONS}
    if not _is_accepted(schedule) or within != {(OTHER,)}:
        raise KernelError(f"K7: of slices along {OTHER} those within {within} are summed")
    for name in ("dp", "zero2"):
        both = with_all_samples(combined((on_axis(ONE, STRATEGIES[name]), zero1)), (*MESH,))
        schedule = schedule_of(both)
        if _is_accepted(schedule) and not any(op.kind in REDUCTIONS for op in schedule.ops):
            continue
        raise KernelError(f"K7: where gradients are whole they are summed: {schedule.ops}")


def _require_made_again() -> None:
    """Raise KernelError if an optimizer state of which nothing rests is gathered along an axis."""
    made_again = on_axis(ONE, on_batch("R", "S*", "R")), on_axis(OTHER, on_batch("R", "M", "R"))
    schedule = schedule_of(combined(made_again))
    if any(Buffer.OPTIMIZER_VIEW in (op.source, op.target) for op in schedule.ops):
        raise KernelError(f"K7: of the optimizer no state rests, and it is gathered: {schedule.ops}")


def _require_every_mode() -> None:
    """Raise KernelError unless what has no mode of a state along some axis is no placement."""
    whole = dict.fromkeys(State, dict.fromkeys(MESH, Mode.REPLICATED))
    for state, axis in product(State, MESH):
        fewer = {other: mode for other, mode in whole[state].items() if other != axis}
        try:
            place_states((*MESH,), {**whole, state: fewer})
        except ValueError:
            continue
        raise KernelError(f"K7: without a mode of {state} along {axis} it is a placement")


def require_summed_as_said() -> None:
    """Raise KernelError unless gradients are summed when they are said to, and what is so is right."""
    for names, says in product(PAIRS, SAID):
        placed = combined(map(on_axis, MESH, map(KEPT.__getitem__, names)))
        schedule = schedule_of(replace(placed, **says))
        if not _is_accepted(schedule):
            raise KernelError(f"K7: {names}, {says}: gradients are summed otherwise")
        for axis in MESH:
            moves = _moves(schedule, axis)
            found = [[kind for kind, _ in some if kind in REDUCTIONS] for some in moves]
            if found != _sums(placed, axis, says):
                raise KernelError(f"K7: {names}, {says}: along {axis} gradients are summed by {found}")


def _pairs() -> Iterator[tuple[Placement, Placement]]:
    """Of placements whose states are kept, and on the host, alike: each and the next one."""
    alike: dict[object, list[Placement]] = {}
    stateless = Regime(Kept.NO_STATE, several=False)
    no_state = (placed for modes, placed in placements().items() if is_realisable(modes, stateless))
    of_none = (placed for placed in no_state if not placed.rest(State.OPTIMIZER).stored)
    for placed in (*realisable_placements().values(), *of_none, *SLICED):
        if placed.mode(State.ACTIVATIONS, BATCH) is Mode.SHARDED:
            rests = (placed.rest(state) for state in State)
            alike.setdefault(tuple((rest.stored, rest.host) for rest in rests), []).append(placed)
    for some in (*alike.values(), HOSTED):
        yield from zip(some, (*some[1:], some[0]), strict=True)


def on_axis(axis: str, placed: Placement) -> Placement:
    """The placement along another axis."""
    modes = {state: {axis if a == BATCH else a: m for a, m in of} for state, of in placed.modes}
    return place_states((axis,), modes, placed.hold)


def _is_accepted(schedule: Schedule) -> bool:
    """Whether it is, on two devices along each axis, in one micro-step."""
    return check(schedule, MESH, 1).accepted


def _moves(schedule: Schedule, axis: str = BATCH) -> list[Moves]:
    """What moves along an axis, or is updated in its slices, in each micro-step and after all."""
    along = (
        [op for op in ops if axis in (op.within if op.kind is Kind.UPDATE else op.axes)]
        for ops in schedule.bodies
    )
    return [[(op.kind, op.phase) for op in ops if op.kind in MOVING] for ops in along]


def _crosses(schedule: Schedule) -> Moves:
    """What crosses a host link, of whatever slices."""
    return [(op.kind, op.phase) for op in schedule.ops if op.kind in HOST_TRANSFERS]


def _sums(placed: Placement, axis: str, says: Said) -> list[list[Kind]]:
    """How gradients are summed along an axis, in each micro-step and after all, if so is said."""
    is_slice, is_updated, is_gathered = (
        axis in placed.rest(state).sharded
        for state in (State.GRADIENTS, State.OPTIMIZER, State.PARAMETERS)
    )
    first = axis in says.get("summed_first", ()) and not is_updated
    whole = says.get("sums_whole", False) and not is_gathered
    early = is_slice or says.get("each", False) or (first and not says.get("waits", False))
    stays_whole = whole or first or (early and not is_slice)
    kind = Kind.REDUCE_SCATTER if (is_slice or is_updated) and not stays_whole else Kind.ALL_REDUCE
    uses = says.get("uses", 1) if not is_updated and not placed.rest(State.GRADIENTS).host else 1
    return [[kind], []] if early else [[], [kind] * uses]
