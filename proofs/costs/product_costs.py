"""K7: what strategies of the training states send and keep together, each on an axis of its own.

A slice along all axes has `cell` elements, padded, so Psi is as many cells as there are devices. A
strategy alone on its axis has shards of as many cells as the other axes leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from proofs.claim import claim
from proofs.derivation.two_axes import require_as_along_one, require_summed_as_said
from proofs.tools.encoding import Symbolic
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And
from spec.costs.communication import elements_sent
from spec.costs.memory import MODEL_STATES, Sizes, resting
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import Axes, group_size
from spec.language.schedule import COLLECTIVE_KINDS, Kind, Op, Phase, Schedule
from spec.models.states import BytePolicy, State
from spec.plans.compose import HoldError, Product, factor
from spec.plans.placement import Placement
from spec.plans.strategies import STRATEGIES

AXES = ("a", "b", "c")
Sent = dict[tuple[bool, Axes], Any]  # elements: of each micro-step or after them, along which axes
# each on one axis; fused updates reduce when the others do not, and take one micro-step
NAMES = [name for name in STRATEGIES if len(STRATEGIES[name].axes) == 1 and name != "fused-update"]
HYBRID = ("dp", "zero3")


@claim("K7")
def costs_of_products(k: Kernel) -> tuple[Theorem, ...]:
    """A product sends what each strategy alone sends on what the others leave; memory is multiplied.

    In each micro-step, and after them. Forward and backward see everything: the others leave it all.
    A strategy leaves 1/n of a reduction after the micro-steps, if it has reduced the gradient to n
    slices, or does so first; and 1/n of what is published, if parameters rest in n slices. What several
    move at once is one collective along all their axes: it sends what the first alone sends on
    everything, the next on the first one's slices, and so on. A strategy along two axes sends and keeps
    what it does along one of their product size. (Claim K7; design 2.9)
    """
    require_as_along_one()
    require_summed_as_said()
    if len({factor(name, AXES[0]).states for name in NAMES}) != len({STRATEGIES[n] for n in NAMES}):
        raise KernelError(f"{k.claim}: on another axis two strategies are one")
    sizes = _Sizes(k)
    proved: dict[Placement, Theorem] = {}
    memory: dict[Any, None] = {}
    for names in (*product(NAMES, repeat=2), *((*HYBRID, name) for name in NAMES)):
        try:
            whole = Product(tuple(map(factor, names, AXES)))
        except HoldError:
            continue
        if whole.states not in proved:
            name, schedule = "_x_".join(names).replace("-", "_"), schedule_of(whole.states)
            sent, expected = _sent(schedule, sizes.of(whole.axes)), _expected(whole, sizes)
            if sent.keys() != expected.keys():
                raise KernelError(f"{k.claim}: {name} sends along {[*sent]}, not along {[*expected]}")
            alike = (sent[moment] == expected[moment] for moment in sent)
            proved[whole.states] = k.prove(name, And(*alike))
            memory |= dict.fromkeys(_memory(whole, schedule, sizes))
    as_one = And(*(alike for name in NAMES for alike in _as_one(k, name, sizes)))
    return (
        *proved.values(),
        k.prove("what_rests_is_multiplied", And(*memory)),
        k.prove("two_axes_of_a_strategy_are_one_of_product_size", as_one),
    )


class _Sizes:
    """The sizes of some axes, and what a strategy on one of them has of what the others leave."""

    def __init__(self, k: Kernel) -> None:
        self.cell, *sizes = k.reals("cell l m n")
        self.mesh = dict(zip(AXES, sizes, strict=True))
        self.policy = BytePolicy(*k.reals("w g k"))

    def psi(self, axes: Axes) -> Any:
        return self.cell * group_size(self.mesh, axes)

    def of(self, axes: Axes) -> Sizes:
        """Of a product on these axes."""
        psi = self.psi(axes)
        return Sizes(psi, self.mesh, self.policy, None, Symbolic([(psi, self.cell)]), axes)

    def as_one(self, axes: Axes, axis: str) -> Sizes:
        """With one axis in place of some, of as many devices."""
        psi, mesh = self.psi(axes), {axis: group_size(self.mesh, axes)}
        return Sizes(psi, mesh, self.policy, None, Symbolic([(psi, self.cell)]), (axis,))

    def alone(self, axis: str, axes: Axes, left: Axes) -> Sizes:
        """On one of the axes, where the others are cut but for those in `left`."""
        psi, shard = self.psi(axes), self.psi(left)
        return Sizes(psi, self.mesh, self.policy, None, Symbolic([(psi, shard)]), (axis,))


def _placed(whole: Product) -> dict[str, Placement]:
    """The strategy on each axis."""
    return {axis: one.states for one in whole.factors if one.states for axis in one.axes}


def _moving(schedule: Schedule) -> list[tuple[bool, Op]]:
    """The operations that send to other devices, and whether they do in each micro-step."""
    ops = [(True, op) for op in schedule.micro_step] + [(False, op) for op in schedule.finish]
    return [(each, op) for each, op in ops if op.kind in COLLECTIVE_KINDS]


def _sent(schedule: Schedule, sizes: Sizes) -> Sent:
    sent: Sent = Counter()
    for each, op in _moving(schedule):
        sent[each, op.axes] += elements_sent(op, schedule, sizes)
    return sent


def _expected(whole: Product, sizes: _Sizes) -> Sent:
    """By the rule, from what each strategy sends on its own."""
    sent: Sent = Counter()
    axes, placed = whole.axes, _placed(whole)
    alone = {axis: schedule_of(placement) for axis, placement in placed.items()}
    moments = {axis: {_moment(*moving) for moving in _moving(alone[axis])} for axis in axes}
    for axis in axes:
        for each, op in _moving(alone[axis]):
            at_once = tuple(other for other in axes if _moment(each, op) in moments[other])
            later = at_once[at_once.index(axis) + 1 :]
            others = [o for o in axes if o not in at_once and not _leaves_slices(placed[o], op.phase)]
            left = sizes.alone(axis, axes, (*later, *others))
            sent[each, at_once] += elements_sent(op, alone[axis], left)
    return sent


def _moment(each: bool, op: Op) -> tuple[bool, Phase, Kind]:
    """What is the same moment, and the same movement, to two strategies."""
    return each, op.phase, op.kind


# what a strategy has in slices when something is moved in a phase: else it leaves it all
IN_SLICES = {
    Phase.REDUCE: (State.GRADIENTS, State.OPTIMIZER),
    Phase.PUBLISH: (State.PARAMETERS,),
}


def _leaves_slices(placement: Placement, phase: Phase) -> bool:
    """Whether a strategy leaves 1/n of what is moved in a phase, and not all of it."""
    return any(placement.rest(state).sharded for state in IN_SLICES.get(phase, ()))


def _as_one(k: Kernel, name: str, sizes: _Sizes) -> Iterator[Any]:
    """A strategy along two axes sends at each moment, and keeps of each state, what it does on one."""
    axes, one = AXES[:2], "all"
    both = schedule_of(Product(tuple(factor(name, axis) for axis in axes)).states)
    alone = schedule_of(Product((factor(name, one),)).states)
    on_both, on_one = sizes.of(axes), sizes.as_one(axes, one)
    sent, expected = _sent(both, on_both), _sent(alone, on_one)
    if {(each, axes) for each, _ in expected} != sent.keys():
        raise KernelError(f"{k.claim}: {name} sends along {[*sent]}, not along {axes} at once")
    yield from (sent[each, axes] == moved for (each, _), moved in expected.items())
    for state, host in product(MODEL_STATES, (False, True)):
        yield resting(both, state, on_both, host) == resting(alone, state, on_one, host)


def _memory(whole: Product, schedule: Schedule, sizes: _Sizes) -> list[Any]:
    """What a state takes, wherever it rests, over what it takes unsharded, is the product of these."""

    def takes(schedule: Schedule, state: State, sizes: Sizes) -> Any:
        return resting(schedule, state, sizes) + resting(schedule, state, sizes, host=True)

    found, axes = [], whole.axes
    for state in MODEL_STATES:
        unsharded = sizes.psi(axes) * sizes.policy.of(state)
        together = takes(schedule, state, sizes.of(axes))
        alone = []
        for axis, placement in _placed(whole).items():
            others = tuple(other for other in axes if other != axis)
            alone.append(takes(schedule_of(placement), state, sizes.alone(axis, axes, others)))
        found.append(prod([unsharded] * (len(alone) - 1), start=together) == prod(alone))
    return found
