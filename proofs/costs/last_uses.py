"""M9: after which operation nothing uses a buffer, element by element, on each device.

Devices are on two axes, two on each, and each has of each buffer the slices of all. An operation reads
some of these, and writes some; what is written whole is not used any more. Steps follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from proofs.checking.witnesses import meant, operation
from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.memory import done_with
from spec.derivation.schedules import schedule_of
from spec.language.schedule import PASSING, Buffer, Kind, Op, Span
from spec.plans.strategies import STRATEGIES

AXES = ("a", "b")
PLACES = [dict(zip(AXES, at, strict=True)) for at in product(range(2), repeat=2)]
CELLS = [*product(PLACES, repeat=2)]  # a device, and whose slice
ALL = 2 ** len(CELLS) - 1  # a set of these is a number, of which each is a bit
FRESH, TIED, VIEW, GRADIENTS = Buffer.FRESH, Buffer.TIED, Buffer.VIEW, Buffer.GRADIENTS


def buffers_are_used_until_then(k: Kernel) -> None:
    """Raise KernelError unless a buffer is done with where no device reads an element of it any more.

    Where slices are another device's, it may be said to be used for longer.
    """
    dp = schedule_of(STRATEGIES["dp"])
    tied, stays = meant(dp, tied=True), replace(dp, stays=True)
    cases = *product((dp,), _of_fresh()), *product((dp, tied, stays), _of_others())
    for schedule, ops in cases:
        done = done_with(replace(schedule, micro_step=ops, finish=()))
        never = _done(ops, schedule.training.tied, schedule.stays)
        of_others = any(op.shift and op.within for op in ops)
        if done != never and not (of_others and _within(done, never)):
            raise KernelError(f"{k.claim}: {[*map(str, ops)]}: done with {done}, and not {never}")


def _within(some: Sequence[frozenset[Buffer]], others: Sequence[frozenset[Buffer]]) -> bool:
    return all(one <= other for one, other in zip(some, others, strict=True))


def _of_fresh() -> Iterator[tuple[Op, ...]]:
    """What makes fresh gradients, and two operations that use them, or make them anew."""
    slices: list[Any] = [{"within": within} for within in ((), ("a",), AXES)]
    ways: Any = *slices, {"within": ("a",), "shift": 1}
    gathers: Any = {"axes": ("a",)}, {"axes": ("a",), "shift": 1}, {"axes": ("b",), "within": ("a",)}
    unit: Any = {"span": Span.UNIT}
    makes = [operation(Kind.KEEP, GRADIENTS, FRESH, **way, **unit) for way in ways]
    makes += [operation(Kind.ALL_GATHER, GRADIENTS, FRESH, **way, **unit) for way in gathers[1:]]
    makes += [operation(Kind.ZERO, FRESH, **unit)]
    uses = [operation(Kind.ACCUMULATE, FRESH, GRADIENTS, **way) for way in (*ways, {"within": ("b",)})]
    uses += [operation(Kind.ALL_GATHER, FRESH, TIED, **way, **unit) for way in gathers]
    uses += [operation(Kind.ALL_GATHER, FRESH, axes=("a",), **unit), operation(Kind.RELEASE, FRESH)]
    uses += [operation(Kind.ALL_REDUCE, FRESH, TIED, axes=("a",), **unit)]
    yield from product(makes, uses, uses)
    yield from product(makes[:4], makes[:4], uses)


def _of_others() -> Iterator[tuple[Op, ...]]:
    """Views that are read, tied gradients, and what is there to be added to."""
    unit: Any = {"span": Span.UNIT}
    within = ("a",)
    makes = [operation(Kind.KEEP, Buffer.PARAMETERS, VIEW, within=within, **unit)]
    makes += [operation(Kind.ZERO, TIED, **unit)]
    reads = [operation(Kind.BACKWARD, VIEW, FRESH, within=of, **unit) for of in ((), within)]
    reads += [operation(Kind.FORWARD, VIEW, Buffer.ACTIVATIONS)]
    adds = [operation(Kind.ACCUMULATE, TIED, FRESH), operation(Kind.RESET, FRESH)]
    adds += [operation(Kind.ACCUMULATE, FRESH, TIED, within=of) for of in ((), within)]
    adds += [operation(Kind.UPDATE, FRESH, Buffer.OPTIMIZER_VIEW), operation(Kind.RELEASE, VIEW)]
    yield from product(makes, reads, adds)


def _done(ops: Sequence[Op], tied: bool, stays: bool) -> tuple[frozenset[Buffer], ...]:
    """After each operation, the passing buffers of which nothing that follows reads an element."""
    touched = [_touched(op, tied, stays) for op in ops]
    needed, found = dict.fromkeys(PASSING, 0), []
    for op, here in [*zip(ops, touched, strict=True)][::-1] * 2:
        released = {op.target} if op.kind is Kind.RELEASE else set()
        found.append(frozenset(released.union(b for b in PASSING if not needed[b])))
        needed = {b: needed[b] & ~writes | reads for b, (reads, writes) in here.items()}
    return tuple(found[: -len(ops) - 1 : -1])


@cache
def _touched(op: Op, tied: bool, stays: bool) -> dict[Buffer, tuple[int, int]]:
    """The elements of each buffer that an operation reads, or adds to, and those that it makes anew."""
    found = dict.fromkeys(PASSING, (0, 0))
    if op.kind is Kind.RELEASE:
        return found | {op.target: (ALL * stays, ALL)}
    own = _own(op.within, op.shift)
    made = {op.target} if op.takes_room else set()
    made |= {TIED} if op.kind is Kind.BACKWARD and tied else set()
    for buffer in PASSING:
        reads = own if buffer is op.target and not op.takes_room else 0
        if buffer is op.source and op.kind in (Kind.BACKWARD, Kind.FORWARD):
            reads = ALL
        elif buffer is op.source and op.kind is Kind.ALL_GATHER:  # from those who have them
            reads |= _own(op.within + op.axes, op.shift)
        elif buffer is op.source and op.kind is not Kind.ZERO:
            reads |= own
        found[buffer] = reads, own * (buffer in made)
    return found


@cache
def _own(axes: tuple[str, ...], shift: int) -> int:
    """What devices have of slices along some axes, their own or those of others further on."""
    own = (all((at[axis] + shift) % 2 == of[axis] for axis in axes) for at, of in CELLS)
    return sum(is_own << number for number, is_own in enumerate(own))
