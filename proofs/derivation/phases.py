"""M9: of each operation of a derived schedule, the phase: that of the work that it serves, and how
much passes in it at once; of each schedule, along which axes it slices anything, and whether gradients
go to the host to be applied there.

What serves a work is told by what is done before and after: it is another definition than that of
`spec.derivation.schedules`, which says it operation by operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

from proofs.checking.matching_schedules import along
from proofs.costs.buffer_lives import watched
from proofs.tools.encoding import realisable_placements
from proofs.trusted.kernel import KernelError
from spec.checking.verdict import check
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import Axes
from spec.language.schedule import (
    GRADIENT_BUFFERS,
    REDUCTIONS,
    Buffer,
    Kind,
    Op,
    Phase,
    Rest,
    Schedule,
    Span,
)
from spec.meaning.semantics import CONTENT
from spec.models.states import State
from spec.plans.compose import factor
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES

KINDS = REDUCTIONS, (Kind.ALL_GATHER,)
AWAY = (Kind.RELEASE, Kind.OFFLOAD)  # what forward does with what it leaves
READING = (Kind.FETCH, Kind.RECOMPUTE, Kind.ALL_GATHER)


def require_phases() -> None:
    """Raise KernelError unless operations of derived schedules are of the phases that they serve, and
    schedules slice, and bring to the host, what they are said to.
    """
    require_sums_again()
    for schedule in _schedules():
        for op, phase in zip(schedule.ops, _phases(schedule), strict=True):
            if op.phase is not phase:
                raise KernelError(f"M9: {op} is of {op.phase}, and serves {phase}")
        for op, span in zip(schedule.ops, _spans(schedule), strict=True):
            if op.span is not span:
                raise KernelError(f"M9: in {op} passes {op.span}, and {span} needs to")
        require_passing(schedule)
        if schedule.rest(State.ACTIVATIONS) != Rest(schedule.axes):
            continue  # of activations nothing is asked
        found = schedule.hosts_updates, {*schedule.cut}, schedule.sliced_by_update
        if found != _as_it_runs(schedule):
            raise KernelError(f"M9: {found} of gradients to the host, and of slices: {schedule.ops}")


def require_passing(schedule: Schedule) -> None:
    """Raise KernelError unless what passes is released, views are made where none are there, and no
    more is read, or written, of what rests in slices.
    """
    there = set[Buffer]()
    for number, op in enumerate(schedule.ops):
        if number == len(schedule.micro_step) and (Buffer.VIEW in there) is not schedule.stays:
            raise KernelError(f"M9: views stay, or are released, and not as is said: {schedule.ops}")
        slices = {a for buffer in _in_slices(op) for a in schedule.slices(buffer)}
        if not slices <= {*op.within, *op.axes}:
            raise KernelError(f"M9: {op} is of more than slices, and these rest: {schedule.rests}")
        if op.kind is Kind.RELEASE:
            there -= {op.source}
        elif op.takes_room and op.source is not op.target:
            if op.target is Buffer.VIEW and Buffer.VIEW in there:
                raise KernelError(f"M9: {op} makes what is there: {schedule.ops}")
            there |= {op.target}
    if there:
        raise KernelError(f"M9: what passes is not released: {schedule.ops}")


def _in_slices(op: Op) -> Iterator[Buffer]:
    """What an operation reads or writes in slices where such rest: weights when they are published."""
    if op.phase is Phase.PUBLISH and op.kind is not Kind.RELEASE:
        yield Buffer.PARAMETERS
    if op.kind in READING:
        yield op.source
    if op.kind not in (Kind.RELEASE, Kind.RESET) and op.target is not Buffer.ACTIVATIONS:
        yield op.target


def require_sums_again() -> None:
    """Raise KernelError unless each use of a gradient sums it along the axes along which it is in terms
    to the last, not updated in slices, and not fetched; along others it is moved as if used once.

    Views stay just where gradients are kept. On the host, too, slices alone are no parameters, and
    activations come back before they are gathered.
    """
    others = (on_batch(*modes, "S") for modes in (("S*", "R", "M"), ("S*", "S*", "S"), ("R", "R", "O")))
    for placed in (*STRATEGIES.values(), *others):
        again = replace(placed, summed_again=placed.axes, uses=2, stays=True)
        once, twice = schedule_of(placed), schedule_of(again)
        rests = once.rest(State.GRADIENTS)
        if twice.stays and not rests.stored:
            raise KernelError(f"M9: views stay, and no gradients: {twice.ops}")
        for axis in placed.axes:
            (sums, gathers), found = (
                [
                    [op.kind for op in s.finish if axis in op.axes and op.kind in kinds]
                    for kinds in KINDS
                ]
                for s in (once, twice)
            )
            in_place = rests.host or axis in once.rest(State.OPTIMIZER).sharded
            if found != [sums if in_place else sums * 2, gathers]:
                raise KernelError(f"M9: of two uses along {axis} gradients are moved by {found}")
    sliced = (schedule_of(on_batch(*modes)) for modes in (("S+O", "S", "S"), ("R", "R+O", "S+O")))
    back = [
        op.kind
        for op in schedule_of(on_batch("R", "R", "R", "S*+O")).micro_step
        if op.source is op.target
    ]
    accepted = [check(schedule, {"batch": 2}, 2).accepted for schedule in sliced]
    if any(accepted) or back != [Kind.OFFLOAD, Kind.FETCH, Kind.ALL_GATHER]:
        raise KernelError(f"M9: from the host come slices for what is needed whole, or {back}")


def _as_it_runs(schedule: Schedule) -> tuple[bool, set[str], Axes]:
    """Whether gradients of the whole step are on the device, and on the host when they are applied; the
    axes along which anything is sliced; and those along which slices are applied of gradients that rest
    whole, on the device.
    """
    here, hosted = False, False
    left: Axes = ()
    for op, store in islice(watched(schedule), len(schedule.micro_step) - 1, None):
        if op.kind is Kind.UPDATE:
            hosted = here and store[op.source, CONTENT][0]
            host, _ = store.get((Buffer.GRADIENTS, CONTENT), (True, None))
            left = () if host or schedule.slices(Buffer.GRADIENTS) else op.within
        found = (store[b, CONTENT] for b in GRADIENT_BUFFERS if (b, CONTENT) in store)
        here |= any(not host for host, _ in found)
    return hosted, store.cut, left


def _spans(schedule: Schedule) -> Iterator[Span]:
    """How much of each result is on the device at once: a unit, but where all of it is needed.

    Where it is there after the phase that makes it; and of gradients that come back to be summed.
    """
    for number, (op, store) in enumerate(watched(schedule)):
        later = [(each.kind, each.target) for each in schedule.ops[number:] if each.phase is op.phase]
        is_read = op.kind in (Kind.FETCH, Kind.ALL_GATHER) and op.source is not op.target
        if is_read and store[op.source, CONTENT][0] is not (op.kind is Kind.FETCH):
            raise KernelError(f"M9: {op} reads what is not there: {schedule.ops}")
        sums = any((kind, op.target) in later for kind in REDUCTIONS)
        stays = (Kind.RELEASE, op.target) not in later and op.state is State.PARAMETERS
        if not op.takes_room or store[op.target, CONTENT][0]:
            yield Span.NONE
        else:
            yield Span.ALL_UNITS if stays or (sums and op.kind is Kind.FETCH) else Span.UNIT


def _schedules() -> Iterator[Schedule]:
    """Of every realisable placement of a batch axis; of named strategies as they sum and clip, too."""
    yield from map(schedule_of, realisable_placements().values())
    for parameters, optimizer in product(("R", "M", "O", "S*+O"), ("S*", "O", "S+O", "S*+O")):
        yield schedule_of(on_batch(parameters, optimizer, "S", hold=True))
    for modes in product(("S", "O"), ("S*", "S", "O"), ("O", "S+O", "S*+O")):
        yield schedule_of(on_batch(*modes, "S"))
    yield schedule_of(along(("outer", "inner"), "zero1"))
    both = (factor("dp", "outer") * factor("zero-offload", "inner")).states
    for placed in (*STRATEGIES.values(), both):
        some = {"each": True}, {"summed_first": placed.axes}, {"summed_again": placed.axes, "uses": 2}
        for fields in ({}, {"hold": True}, {"stays": True}, *some):
            schedule = schedule_of(replace(placed, **fields))
            yield schedule
            if schedule.finish:
                yield clipped(schedule)


def _phases(schedule: Schedule) -> Iterator[Phase]:
    """The phase that each operation serves."""
    for part in schedule.bodies:
        done = set[Kind]()
        for op in part:
            done.add(op.kind)
            yield _of_model(op, done) if part is schedule.micro_step else _of_states(op, done)
            if done >= {Kind.FORWARD} and op.kind not in (*AWAY, Kind.FORWARD):
                done.add(Kind.BACKWARD)


def _of_model(op: Op, done: set[Kind]) -> Phase:
    """In a micro-step, also one that ends with an update; `done`: what is, with the operation."""
    updates = Kind.UPDATE in done or op.state is State.OPTIMIZER
    if op.state is not State.GRADIENTS and Kind.BACKWARD in done and updates:
        return _of_states(op, done)
    puts_away = op.kind in (*AWAY, Kind.FORWARD) and Kind.BACKWARD not in done
    return Phase.FORWARD if Kind.FORWARD not in done or puts_away else Phase.BACKWARD


def _of_states(op: Op, done: set[Kind]) -> Phase:
    """After the last micro-step: gradients are reduced, states updated, weights published.

    Views that stay are there until gradients are reduced.
    """
    stayed = op.kind is Kind.RELEASE and Kind.UPDATE not in done
    if op.state is State.PARAMETERS and not stayed:
        return Phase.PUBLISH
    return Phase.UPDATE if Kind.UPDATE in done or op.state is State.OPTIMIZER else Phase.REDUCE
