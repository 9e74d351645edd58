"""X5: what crosses a host link, one micro-step after the other, and what weights slices touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.communication import added_up, elements_sent, most_touched, totals, transfers
from spec.costs.memory import Sizes, resting
from spec.derivation.schedules import schedule_of
from spec.language.schedule import HOST_TRANSFERS, Buffer, Kind, Op, Phase, Schedule, Span
from spec.models.states import BytePolicy, State
from spec.plans.compose import factor
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

PSI, DEVICES, TOUCHED = 10, 4, 7
SLICE = len(range(0, PSI, DEVICES))  # elements of a device that has most
W, G, K = 2, 3, 5  # bytes of an element of each state
BYTES = {State.PARAMETERS: W, State.GRADIENTS: G, State.OPTIMIZER: K}
BESIDE = {State.PARAMETERS: 1, State.GRADIENTS: 2, State.OPTIMIZER: 4}  # elements, of what is whole
ADDED = 11  # bytes of one that is added to on the device
PLACEMENTS = (
    STRATEGIES["zero-offload"],
    on_batch("R", "S+O", "S"),  # gradients go to the host to be applied, and do not stay there
    replace(on_batch("S+O", "S+O", "S+O"), stays=True),
    on_batch("R+O", "R+O", "R+O", "S+O"),
    on_batch("R", "S+O", "M"),  # and each micro-step's are
    on_batch("R", "S+O", "R+O"),
)
VIEW_DOWN = Op(Kind.OFFLOAD, Phase.BACKWARD, Buffer.VIEW)
BACK = Op(Kind.FETCH, Phase.BACKWARD, Buffer.GRADIENTS, Buffer.FRESH, span=Span.UNIT)
RUNS = (  # sizes of weights, and how often they follow
    (((3, 1, 4), 5), ((2,), 1), ((5, 2), 7)),
    (((1,), 1), ((5,), 3)),
    (((6,), 1), ((2,), 4), ((6,), 3)),
)
Crossing = tuple[Op, int, int, int]  # how often, elements and bytes of all times


def micro_steps_cross(k: Kernel) -> None:
    """Raise KernelError unless what crosses in a step is what does in each of its micro-steps.

    Gradients that are added to on the device come back for each but the first, and go each time: all of
    the weights that a slice touches, or slices. At last slices go as they rest.
    """
    _require_room(k)
    schedules = [*map(schedule_of, PLACEMENTS)]
    schedules.append(replace(schedules[0], micro_step=(*schedules[0].micro_step, VIEW_DOWN)))
    cases = product(schedules, (1, 3), (None, TOUCHED), (0, ADDED))
    for schedule, micro_steps, touched, added in cases:
        policy = BytePolicy(W, G, K, added=added, gathered=13)
        sizes = Sizes(PSI, {BATCH: DEVICES}, policy, beside=BESIDE)
        found = transfers(schedule, sizes, micro_steps, touched)
        has = _told((m.op, m.times, m.elements, m.bytes) for m in found if m.to_host)
        crossings = [*_crossings(schedule, micro_steps, touched, added)]
        if has != _told(crossings) or totals(found)[2] != sum(bytes_ for *_, bytes_ in crossings):
            raise KernelError(f"{k.claim}: {has} cross in {micro_steps} micro-steps")
        back = (each for op, _, each, _ in crossings if replace(op, within=()) == BACK)
        copies = {elements * ADDED for elements in back}
        if added_up(schedule, sizes, micro_steps, touched) != sum(copies):
            raise KernelError(f"{k.claim}: of gradients that come back the host has no {copies} bytes")


def _require_room(k: Kernel) -> None:
    """Raise KernelError unless of slices along two axes that rest no more crosses, whatever is said.

    And unless a view that is there before a step rests on the device, and what it is of on the host.
    """
    placed = (factor("zero-offload", "outer") * factor("zero-offload", "inner")).states
    schedule, sizes = schedule_of(placed), Sizes(12, {"outer": 2, "inner": 3}, BytePolicy(W, G, K))
    (fetch,) = (op for op in schedule.ops if op.kind is Kind.FETCH)
    for axes in ((), placed.axes[:1], placed.axes[1:], placed.axes):
        elements = elements_sent(replace(fetch, within=axes), schedule, sizes)
        if elements != 2:
            raise KernelError(f"{k.claim}: of slices of 2 elements {elements} cross, within {axes}")
    viewed = replace(schedule_of(on_batch("O", "R", "R", "S")), start=(Buffer.VIEW,))
    rests = [resting(viewed, State.PARAMETERS, sizes, host) for host in (False, True)]
    if rests != [12 * W, 12 * W]:
        raise KernelError(f"{k.claim}: of 12 parameters and their view {rests} bytes rest")


def _told(crossings: Iterable[Crossing]) -> Counter[tuple[Op, int]]:
    """By what is moved, from where and to where: how often, how many elements and bytes."""
    found = Counter[tuple[Op, int]]()
    for op, *numbers in crossings:
        for what, number in enumerate(numbers):
            found[replace(op, into=op.target), what] += number
    return found


def _crossings(
    schedule: Schedule, micro_steps: int, touched: int | None, added: int
) -> Iterator[Crossing]:
    """One micro-step after the other, and what finishes the step."""
    sums = any(op.kind is Kind.ACCUMULATE for op in schedule.micro_step)
    numbered = [(number, op) for number in range(micro_steps) for op in schedule.micro_step]
    is_there = False  # a view
    for number, op in (*numbered, *((None, op) for op in schedule.finish)):
        was_there, makes_view = is_there, op.takes_room and op.target is Buffer.VIEW
        is_there = makes_view or (is_there and (op.kind, op.target) != (Kind.RELEASE, Buffer.VIEW))
        if op.kind not in HOST_TRANSFERS or (makes_view and was_there):
            continue
        if op.state not in BYTES:  # activations, which are no parameters
            yield op, 1, 0, 0
            continue
        own, width = SLICE if op.within else PSI + BESIDE[op.state], BYTES[op.state]
        are_added = added and number is not None and micro_steps != 1 and sums
        if not (are_added and op.kind is Kind.OFFLOAD and op.state is State.GRADIENTS):
            yield op, 1, own, own * width
            continue
        each = own if touched is None else touched
        if number:
            yield replace(BACK, within=op.within), 1, each, each * ADDED
        yield op, 1, each, each * ADDED
        if number == micro_steps - 1:
            yield replace(op, phase=Phase.REDUCE), 1, own, own * width


def slices_touch_weights(k: Kernel) -> None:
    """Raise KernelError unless no slice touches weights of more elements, found element by element."""
    for runs in RUNS:
        weights = [size for sizes, times in runs for size in sizes * times]
        weight_of = [number for number, size in enumerate(weights) for _ in range(size)]
        for size in range(1, len(weight_of) + 2):
            slices = ({*weight_of[at : at + size]} for at in range(0, len(weight_of), size))
            most = max(sum(weights[number] for number in touched) for touched in slices)
            if most_touched(runs, size) != most:
                raise KernelError(f"{k.claim}: a slice of {size} touches weights of {most} elements")
