"""From a placement to its schedule, by comparing how each phase has a state with how it needs it.

    forward, backward   need all parameters
    update              needs the gradient where the optimizer state is
    the next step       needs the parameters where they rest

What lies otherwise than it is needed is moved as in a model's program (`language.moves`): how it lies
before and after says by which collective. The derivation takes a placement at its word. Where the word
of a mode leaves a need unmet (a sharded view, a gradient slice for a whole update), the schedule says
so, and the verdict rejects it: it accepts what is realisable (`choosing.requirements`, claim P1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from spec.devices.layouts import Layout
from spec.devices.mesh import Axes
from spec.language.moves import COLLECTIVE, RANKS
from spec.language.schedule import Buffer, Kind, Op, Phase, Rest, Schedule, Span
from spec.models.states import State
from spec.plans.modes import GATHERED, R
from spec.plans.placement import Placement

Lying = Mapping[str, Layout]  # how a state lies along each axis
_WHOLE, _CUT, _TERMS = Layout


def _along(axes: Axes, cut: Axes) -> dict[str, Layout]:
    """Cut along some of the axes, whole along the others."""
    return {axis: _CUT if axis in cut else _WHOLE for axis in axes}


def _collectives(has: Lying, needs: Lying) -> dict[str, str]:
    """Along which axes something is to be moved, and how; what is whole has every slice."""
    pairs = {axis: (has[axis], layout) for axis, layout in needs.items()}
    return {a: COLLECTIVE[pair] for a, pair in pairs.items() if _WHOLE is not pair[0] is not pair[1]}


def _moved(
    phase: Phase,
    source: Buffer,
    has: Lying,
    needs: Lying,
    into: Buffer | None = None,
    span: Span = Span.NONE,
) -> list[Op]:
    """What lies in one way, brought to lie in another: what leaves less comes first.

    A device forgets what is not of its slice first: nothing is moved of it.
    """
    kinds, ops = _collectives(has, needs), []
    has = {a: _CUT if (layout, needs[a]) == (_WHOLE, _CUT) else layout for a, layout in has.items()}
    for kind in RANKS:
        over = tuple(axis for axis in kinds if kinds[axis] == kind)
        if over:
            within = tuple(a for a, layout in has.items() if layout is _CUT and a not in over)
            ops.append(Op(Kind(kind), phase, source, into, over, within, span))
            has |= {axis: needs[axis] for axis in over}
    return ops


@dataclass(frozen=True)
class _Step:
    """A placement, and where its update runs."""

    placement: Placement
    theta: Rest
    omega: Rest
    grads: Rest
    acts: Rest
    updates: Axes  # along these a device updates its own slice only
    on_host: bool  # whether the update runs in the host's memory

    @property
    def axes(self) -> Axes:
        return self.placement.axes

    @property
    def reads_in_place(self) -> bool:
        """Whether forward and backward read the resting parameters themselves."""
        gathered = self.placement.gathered_axes(State.PARAMETERS)
        return self.theta.stored and not self.theta.host and not gathered

    @property
    def adds_in_place(self) -> bool:
        """Whether backward adds to the resting gradients themselves."""
        in_place = self.grads.stored and not self.grads.host and not self.grads.sharded
        return in_place and not self.reduces_each and not self.summed_first

    @property
    def reduces_each(self) -> bool:
        """Whether a micro-step's gradient is summed along all axes before it is kept."""
        return self.placement.each and _TERMS in self.terms.values()

    @property
    def first(self) -> Axes:
        """The axes along which a gradient is summed, whole, before it is along others."""
        if self.placement.sums_whole:
            return _minus(self.axes, self.theta.sharded)
        return tuple(axis for axis in self.placement.summed_first if axis not in self.updates)

    @property
    def summed_first(self) -> Axes:
        """Those along which it is so in each micro-step: of whole sums slices may be kept."""
        if self.placement.sums_whole:
            return tuple(axis for axis in self.first if axis in self.grads.sharded)
        return () if self.placement.waits else self.first

    @property
    def summed_again(self) -> Axes:
        """The axes along which each use of a gradient by the optimizer sums its terms."""
        return tuple(axis for axis in self.placement.summed_again if axis not in self.updates)

    @property
    def terms(self) -> dict[str, Layout]:
        """How backward leaves a gradient: each device has what its samples contribute."""
        return dict.fromkeys(self.axes, _TERMS) | dict.fromkeys(self.placement.whole, _WHOLE)

    @property
    def kept(self) -> dict[str, Layout]:
        """How gradients lie where they rest: what is not cut, nor summed, is in terms."""
        summed = self.axes if self.reduces_each else self.summed_first
        return self.terms | dict.fromkeys(summed, _WHOLE) | dict.fromkeys(self.grads.sharded, _CUT)

    @property
    def updated(self) -> dict[str, Layout]:
        """How a gradient lies where it is applied: a slice that rests as S is used in place."""
        in_place = _minus(self.grads.sharded, self.placement.gathered_axes(State.GRADIENTS))
        return _along(self.axes, self.updates + in_place)


def _minus(axes: Axes, others: Axes) -> Axes:
    return tuple(a for a in axes if a not in others)


def _union(axes: Axes, others: Axes) -> Axes:
    return axes + _minus(others, axes)


@lru_cache(maxsize=4096)
def schedule_of(placement: Placement) -> Schedule:
    """One training step of `placement`."""
    theta, omega, grads, acts = rests = tuple(placement.rest(s) for s in State)
    gathered = placement.gathered_axes(State.OPTIMIZER)
    if omega.stored:
        updates, on_host = _minus(omega.sharded, gathered), omega.host and not gathered
    else:  # an optimizer without state can run anywhere: where the slices are
        updates, on_host = _union(theta.sharded, grads.sharded), theta.host
    step = _Step(placement, theta, omega, grads, acts, updates, on_host)

    read = Buffer.PARAMETERS if step.reads_in_place else Buffer.VIEW
    stays = placement.stays and grads.stored and read is Buffer.VIEW
    at_once = {True: Span.ALL_UNITS, False: Span.UNIT}
    forward, backward = at_once[placement.hold], at_once[stays]
    micro_step = [
        *_see_parameters(step, Phase.FORWARD, forward),
        Op(Kind.FORWARD, Phase.FORWARD, read, Buffer.ACTIVATIONS),
        *_store_activations(acts),
        *([] if placement.hold else _release_view(step, Phase.FORWARD)),
        *([] if placement.hold else _see_parameters(step, Phase.BACKWARD, backward)),
        *_restore_activations(step, read),
        _backward(step, read),
        *([] if stays else _release_view(step, Phase.BACKWARD)),
    ]
    finish: list[Op] = []
    if grads.stored:
        micro_step += [] if step.adds_in_place else _keep_gradient(step)
        reduction, gradient = _bring_kept(step)
        copied = gradient is Buffer.FRESH
        finish += [
            *reduction,
            *(_release_view(step, Phase.REDUCE) if stays else []),
            *_update(step, gradient),
            *([Op(Kind.RELEASE, Phase.UPDATE, gradient)] if copied else []),
            Op(Kind.RESET, Phase.UPDATE, Buffer.GRADIENTS),
        ]
    else:
        micro_step += [
            *_reduced(step, _along(step.axes, updates)),
            *_bring_to_host(Buffer.FRESH, Buffer.FRESH, step, Phase.BACKWARD),
            *_update(step, Buffer.FRESH),
            Op(Kind.RELEASE, Phase.BACKWARD, Buffer.FRESH),
        ]
    return Schedule(
        placement.axes,
        tuple(zip(State, rests, strict=True)),
        tuple(micro_step),
        tuple(finish),
        stays=stays,
    )


# ------------------------------------------------------------------- parameters
def _see_parameters(step: _Step, phase: Phase, span: Span) -> list[Op]:
    """Bring the whole parameters into view, from where they rest."""
    if step.reads_in_place:
        return []
    theta, omega, view = step.theta, step.omega, Buffer.VIEW
    if theta.stored:
        in_use = _minus(theta.sharded, step.placement.gathered_axes(State.PARAMETERS))
        return _used(step, phase, theta, in_use, Buffer.PARAMETERS, view, span)
    # cast from the master copy, wherever the optimizer state rests
    room = Span.NONE if omega.host else span
    cast = Op(Kind.RECOMPUTE, phase, Buffer.OPTIMIZER, view, within=omega.sharded, span=room)
    return [cast, *_used(step, phase, omega, (), view, view, span)]


def _used(
    step: _Step, phase: Phase, rest: Rest, in_use: Axes, source: Buffer, view: Buffer, span: Span
) -> list[Op]:
    """What rests somewhere, in view as it is used: fetched from the host, and gathered."""
    fetch = [Op(Kind.FETCH, phase, source, view, within=rest.sharded, span=span)]
    has, needs = _along(step.axes, rest.sharded), _along(step.axes, in_use)
    moves = _moved(phase, view if rest.host else source, has, needs, view, span)
    return fetch * rest.host + moves


def _release_view(step: _Step, phase: Phase) -> list[Op]:
    return [] if step.reads_in_place else [Op(Kind.RELEASE, phase, Buffer.VIEW)]


def _publish(step: _Step) -> list[Op]:
    """Bring the updated slices to every resting copy of the parameters."""
    theta, phase = step.theta, Phase.PUBLISH
    slices = _union(step.updates, theta.sharded)
    has, needs = _along(step.axes, slices), _along(step.axes, theta.sharded)
    kept, view = Buffer.PARAMETERS, Buffer.VIEW
    gathered = step.placement.gathered_axes(State.OPTIMIZER)
    fresh_weights = Buffer.OPTIMIZER_VIEW if gathered else Buffer.OPTIMIZER
    if not theta.stored:
        return []
    if not theta.host:
        fetch = Op(Kind.FETCH, phase, fresh_weights, kept, within=slices)
        return [*([fetch] if step.on_host else []), *_moved(phase, kept, has, needs)]
    if step.on_host and not _collectives(has, needs):  # the update has written them
        return []
    bring = Kind.FETCH if step.on_host else Kind.RECOMPUTE
    return [
        Op(bring, phase, fresh_weights, view, within=slices, span=Span.UNIT),
        *_moved(phase, view, has, needs, span=Span.UNIT),
        Op(Kind.OFFLOAD, phase, view, kept, within=theta.sharded),
        Op(Kind.RELEASE, phase, view),
    ]


# ------------------------------------------------------------------ activations
def _store_activations(acts: Rest) -> list[Op]:
    if not acts.stored:
        return [Op(Kind.RELEASE, Phase.FORWARD, Buffer.ACTIVATIONS)]
    return [Op(Kind.OFFLOAD, Phase.FORWARD, Buffer.ACTIVATIONS)] if acts.host else []


def _restore_activations(step: _Step, read: Buffer) -> list[Op]:
    acts, phase, buffer = step.acts, Phase.BACKWARD, Buffer.ACTIVATIONS
    gathered = step.placement.gathered_axes(State.ACTIVATIONS)
    if not acts.stored:
        return [Op(Kind.RECOMPUTE, phase, read, buffer)]
    fetch = [Op(Kind.FETCH, phase, buffer)] if acts.host else []
    return fetch + ([Op(Kind.ALL_GATHER, phase, buffer, None, gathered)] if gathered else [])


def _backward(step: _Step, read: Buffer) -> Op:
    """Produce this micro-step's gradient: of a device's own samples where those are its own.

    Where activations are replicated, or gathered, each device has every sample of the group.
    """
    modes = {a: step.placement.mode(State.ACTIVATIONS, a) for a in step.axes}
    everyones = tuple(a for a, mode in modes.items() if mode in (R, GATHERED))
    if step.adds_in_place:
        return Op(Kind.BACKWARD, Phase.BACKWARD, read, Buffer.GRADIENTS, everyones)
    return Op(Kind.BACKWARD, Phase.BACKWARD, read, Buffer.FRESH, everyones, span=Span.UNIT)


# -------------------------------------------------------------------- gradients
def _keep_gradient(step: _Step) -> list[Op]:
    """A micro-step's gradient goes where gradients rest; sharded ones are reduced on the way."""
    fresh, phase, slices = Buffer.FRESH, Phase.BACKWARD, step.grads.sharded
    ops = _reduced(step, step.kept)
    if step.grads.host:
        ops.append(Op(Kind.OFFLOAD, phase, fresh, within=slices))
    keep = Op(Kind.ACCUMULATE, phase, fresh, Buffer.GRADIENTS, within=slices)
    return [*ops, keep, Op(Kind.RELEASE, phase, fresh)]


def _reduced(step: _Step, needs: Lying) -> list[Op]:
    """A micro-step's gradient, summed along the axes that come first, and then as it is needed."""
    firsts = step.terms | dict.fromkeys(step.summed_first, _WHOLE)
    return [
        *_moved(Phase.BACKWARD, Buffer.FRESH, step.terms, firsts),
        *_moved(Phase.BACKWARD, Buffer.FRESH, firsts, needs),
    ]


def _bring_kept(step: _Step) -> tuple[list[Op], Buffer]:
    """Bring the kept gradient to the update, and say in which buffer it arrives.

    It is summed along the axes along which it is in terms, gathered where it rests as S*, and brought
    to the side where the update runs.
    """
    kept, work, phase = Buffer.GRADIENTS, Buffer.FRESH, Phase.REDUCE
    has, needs = step.kept, step.updated
    firsts = has | {axis: _WHOLE for axis in step.first if has[axis] is _TERMS}
    in_terms = tuple(axis for axis, layout in firsts.items() if layout is _TERMS)
    again = tuple(axis for axis in in_terms if axis in step.summed_again)
    cut = tuple(axis for axis, layout in has.items() if layout is _CUT)
    summed = firsts | {axis: needs[axis] for axis in step.axes if axis not in (*again, *cut)}
    whole = summed | dict.fromkeys(again, _WHOLE)
    ops, buffer = [], kept
    if step.grads.host and (_collectives(has, needs) or not step.on_host):
        span = Span.ALL_UNITS if _TERMS in has.values() else Span.UNIT
        ops.append(Op(Kind.FETCH, phase, kept, work, within=step.grads.sharded, span=span))
        buffer = work
    ops += _moved(phase, buffer, has, firsts) + _moved(phase, buffer, firsts, summed)
    if again:
        # what was fetched is summed in place, once for all uses
        span, uses = (Span.NONE, 1) if buffer is work else (Span.UNIT, step.placement.uses)
        ops += _moved(phase, buffer, summed, whole, work, span) * uses
        buffer = work
    if gathers := _moved(phase, buffer, whole, needs, work, Span.UNIT):
        ops, buffer = ops + gathers, work
    if not (step.grads.host and buffer is kept):
        ops += _bring_to_host(buffer, work, step, phase)
        buffer = work if step.on_host else buffer
    return ops, buffer


def _bring_to_host(source: Buffer, into: Buffer, step: _Step, phase: Phase) -> list[Op]:
    """Move a reduced gradient to the host, if the update runs there."""
    if not step.on_host:
        return []
    return [Op(Kind.OFFLOAD, phase, source, into, within=step.updates)]


# ----------------------------------------------------------------------- update
def _update(step: _Step, gradient: Buffer) -> list[Op]:
    """Apply the gradient within each device's slice, where the optimizer state is; publish."""
    omega, phase, kept, view = step.omega, Phase.UPDATE, Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW
    if not step.placement.gathered_axes(State.OPTIMIZER):
        again = Op(Kind.RECOMPUTE, phase, kept)  # it is where the weights are
        update = Op(Kind.UPDATE, phase, gradient, kept, within=step.updates)
        return [*([] if omega.stored else [again]), update, *_publish(step)]
    store = Kind.OFFLOAD if omega.host else Kind.KEEP
    return [
        *_used(step, phase, omega, step.updates, kept, view, Span.UNIT),
        Op(Kind.UPDATE, phase, gradient, view, within=step.updates),
        Op(store, phase, view, kept, within=omega.sharded),
        *_publish(step),
        Op(Kind.RELEASE, phase, view),
    ]
