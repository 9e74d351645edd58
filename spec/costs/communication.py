"""Communication of a schedule: what each operation moves, per device and step.

A collective along some axes acts on what the other axes leave: each device's slice is the chunk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from spec.costs.memory import MODEL_STATES, Sizes
from spec.devices.collectives import COLLECTIVES
from spec.devices.mesh import group_size
from spec.language.schedule import (
    COLLECTIVE_KINDS,
    HOST_TRANSFERS,
    REDUCTIONS,
    SCALARS,
    SLICING,
    Buffer,
    Kind,
    Op,
    Phase,
    Schedule,
    Span,
)
from spec.models.states import State
from spec.numbers.arithmetic import Number, ceil_div, first_within, quotient


@dataclass(frozen=True)
class Transfer:
    """What one operation moves in one step, per device."""

    op: Op
    times: Number  # micro-steps it is done in
    elements: Number  # in all of them
    bytes: Number
    by_owners: bool = False  # an all_gather of weights that each have one owner: broadcasts

    @property
    def collective(self) -> str:
        """Its name."""
        return Kind.BROADCAST.value if self.by_owners else self.op.kind.value

    @property
    def to_host(self) -> bool:
        """Whether it crosses the host link, in either direction."""
        return self.op.kind in HOST_TRANSFERS


def elements_sent(op: Op, schedule: Schedule, sizes: Sizes) -> Number:
    """Elements one device sends in one execution of `op`; 0 if it moves nothing that is counted."""
    if op.target in SCALARS:
        chunk = whole = 1
    elif op.state in MODEL_STATES and not sizes.is_empty(op.state):
        chunk, whole = sizes.slice(op.within + op.axes), sizes.slice(op.within)
    else:
        return 0 * sizes.psi
    if op.state and op.kind in HOST_TRANSFERS:  # what there is, as far as there is room for it
        slices = (*op.within, *schedule.slices(op.source), *schedule.slices(op.target))
        return sizes.at_rest(op.state, tuple(dict.fromkeys(slices)))
    devices = group_size(sizes.mesh, op.axes)
    if (
        sizes.owners
        and op.kind in SLICING + REDUCTIONS
        and sizes.owners.has_slices_along(op.axes + op.within)
    ):
        if op.kind is Kind.ALL_GATHER:
            return sizes.owners.sent_to_gather(op.axes, op.within)
        if op.kind is Kind.REDUCE_SCATTER:
            return sizes.owners.sent_to_scatter(op.axes, op.within)
        if sizes.owners.has_slices_along(op.within):
            return sizes.owners.sent_to_sum(devices, op.within)
        chunk = replace(sizes, owners=None, cut=()).slice(op.axes)  # of whole units, whoever owns them
    if op.kind is Kind.BROADCAST:  # along a chain: all but the last device send all of it
        alone = sizes.arithmetic.maximum(0 * devices, 2 - devices)  # 1 of one device, else 0
        return whole - whole * alone
    return COLLECTIVES[op.kind.value].volume(devices, chunk)


def _by_owners(op: Op, sizes: Sizes) -> bool:
    """Whether an operation brings weights, each from its one owner, to all devices."""
    whole = sizes.owners is not None and sizes.owners.slice is None
    return whole and op.kind is Kind.ALL_GATHER and op.phase is Phase.PUBLISH


def transfers(
    schedule: Schedule, sizes: Sizes, micro_steps: Number = 1, touched: Number | None = None
) -> list[Transfer]:
    """Every operation that moves data, in order.

    `touched`: elements of the weights of which gradients are brought back whole to be added to; none:
    slices are.
    """
    found = []
    for ops, times in ((schedule.micro_step, micro_steps), (schedule.finish, 1)):
        for op in ops:
            if op.kind in (*HOST_TRANSFERS, *COLLECTIVE_KINDS):
                often = 1 if schedule.is_there(op, 1) else times
                elements = often * elements_sent(op, schedule, sizes)
                size, by_owners = elements * sizes.width_sent(op), _by_owners(op, sizes)
                moved = Transfer(op, often, elements, size, by_owners)
                is_added_to = is_brought_back(op, schedule, sizes, micro_steps)
                found += _back_and_forth(moved, sizes, touched) if is_added_to else [moved]
    return found


def is_brought_back(op: Op, schedule: Schedule, sizes: Sizes, micro_steps: Number) -> bool:
    """Whether what an operation of a micro-step moves to the host comes back to be added to."""
    is_kept = op.phase is Phase.BACKWARD and schedule.rest(State.GRADIENTS).host
    to_host = op.kind is Kind.OFFLOAD and op.state is State.GRADIENTS and is_kept
    return to_host and bool(sizes.policy.added) and micro_steps != 1


def _back_and_forth(moved: Transfer, sizes: Sizes, touched: Number | None) -> list[Transfer]:
    """Gradients that are added up on the device: each time to the host, and back but for the first;
    and slices there once more, as they rest.
    """
    op, times = moved.op, moved.times
    back = Op(Kind.FETCH, op.phase, Buffer.GRADIENTS, Buffer.FRESH, within=op.within, span=Span.UNIT)
    own, width = quotient(moved.elements, times), sizes.policy.added
    each = own if touched is None else touched
    return [
        Transfer(op, times, times * each, times * each * width),
        Transfer(back, times - 1, (times - 1) * each, (times - 1) * each * width),
        Transfer(replace(op, phase=Phase.REDUCE), 1, own, own * sizes.width_sent(op)),
    ]


def added_up(
    schedule: Schedule, sizes: Sizes, micro_steps: Number, touched: Number | None = None
) -> Number:
    """Bytes on the host of the copy of gradients that is brought back to be added to: of slices, or of
    the weights that are `touched`.
    """
    if not any(is_brought_back(op, schedule, sizes, micro_steps) for op in schedule.micro_step):
        return 0 * sizes.psi
    if touched is not None:
        return sizes.policy.added * touched
    slices = schedule.rest(State.GRADIENTS).sharded
    return sizes.policy.added * sizes.at_rest(State.GRADIENTS, slices)


def most_touched(runs: Sequence[tuple[Sequence[int], int]], size: int) -> int:
    """Elements of the weights of which a slice of so many elements has any part, at most.

    Slices are of all weights, one after the other. `runs`: sizes of weights, and how often they follow.
    (DeepSpeed, runtime/zero/stage_1_and_2.py: get_partition_info)
    """
    starts = [0, *accumulate(times * sum(sizes) for sizes, times in runs)]
    within = [[0, *accumulate(sizes)] for sizes, _ in runs]

    def weight_at(element: int) -> tuple[int, int]:
        """Where the weight that has an element starts, and where the next one does."""
        run = bisect_right(starts, element) - 1
        ends = within[run]
        place = (element - starts[run]) % ends[-1]
        number, first = bisect_right(ends, place), element - place
        return first + ends[number - 1], first + ends[number]

    def touched(number: int) -> int:
        (first, _), (_, end) = map(weight_at, (number * size, min((number + 1) * size, starts[-1]) - 1))
        return end - first

    ends = {(end - 1) // size for end in starts[1:]}  # slices that have the end of a run
    within_runs = (
        _within_run(start, times, ends_, size)
        for start, (_, times), ends_ in zip(starts, runs, within, strict=False)
    )
    return max(map(touched, ends.union(*within_runs)))


def _within_run(start: int, times: int, ends: Sequence[int], size: int) -> Iterator[int]:
    """The numbers of slices of a size within a run: of those that touch alike, the first.

    `start`: of the run; `ends`: of the weights of a layer, after 0. What a slice touches depends on the
    place in its layer where it begins: it is another from where it begins, or ends, in another weight.
    """
    first, layer = ceil_div(start, size), ends[-1]
    count = (start + times * layer) // size - first
    begins = first * size - start
    places = {(end - back - begins) % layer for end in ends for back in (0, size - 1)}
    for low, after in pairwise(sorted({0, layer, *places})):
        number = first_within(size % layer, layer, low, after - 1)
        if number is not None and number < count:
            yield first + number


def totals(found: list[Transfer], zero: Number = 0) -> tuple[Number, Number, Number]:
    """Elements and bytes sent to other devices, and bytes over the host link."""
    sent = [m for m in found if not m.to_host]
    return (
        sum((m.elements for m in sent), zero),
        sum((m.bytes for m in sent), zero),
        sum((m.bytes for m in found if m.to_host), zero),
    )
