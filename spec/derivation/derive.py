"""From a placement to its schedule, by comparing what each phase has with what it needs.

    forward, backward   need all parameters
    update              needs the gradient where the optimizer state is
    the next step       needs the parameters where they rest

The derivation takes a placement at its word. Where the word of a mode leaves a need unmet (a
sharded view, a gradient slice for a whole update), the schedule says so, and the verdict rejects it:
a placement is realisable when its schedule is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from spec.devices.mesh import Axes
from spec.language.schedule import Buffer, Kind, Op, Phase, Rest, Schedule, Span
from spec.models.states import State
from spec.plans.modes import GATHERED, R
from spec.plans.placement import Placement


def _minus(axes: Axes, others: Axes) -> Axes:
    return tuple(a for a in axes if a not in others)


def _union(axes: Axes, others: Axes) -> Axes:
    return axes + _minus(others, axes)


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
    def reads_in_place(self) -> bool:
        """Whether forward and backward read the resting parameters themselves."""
        gathered = self.placement.gathered(State.PARAMETERS)
        return self.theta.stored and not self.theta.host and not gathered

    @property
    def adds_in_place(self) -> bool:
        """Whether backward adds to the resting gradients themselves."""
        in_place = self.grads.stored and not self.grads.host and not self.grads.sharded
        return in_place and not self.reduces_each and not self.first

    @property
    def reduces_each(self) -> bool:
        """Whether a micro-step's gradient is summed along all axes before it is kept."""
        return self.placement.each and bool(self.placement.axes)

    @property
    def first(self) -> Axes:
        """The axes along which a micro-step's gradient is summed, whole, before it is along others."""
        return tuple(axis for axis in self.placement.first if axis not in self.updates)

    @property
    def again(self) -> Axes:
        """The axes along which each use of a gradient by the optimizer sums its terms."""
        return tuple(axis for axis in self.placement.again if axis not in self.updates)


@lru_cache(maxsize=4096)
def derive(placement: Placement) -> Schedule:
    """One training step of `placement`."""
    theta, omega, grads, acts = rests = tuple(placement.rest(s) for s in State)
    gathered = placement.gathered(State.OPTIMIZER)
    if omega.stored:
        updates, on_host = _minus(omega.sharded, gathered), omega.host and not gathered
    else:  # an optimizer without state can run anywhere: where the slices are
        updates, on_host = _union(theta.sharded, grads.sharded), theta.host
    step = _Step(placement, theta, omega, grads, acts, updates, on_host)

    read = Buffer.PARAMETERS if step.reads_in_place else Buffer.VIEW
    micro_step = [
        *_see_parameters(step, Phase.FORWARD, Span.WHOLE if placement.hold else Span.UNIT),
        Op(Kind.FORWARD, Phase.FORWARD, read, Buffer.ACTIVATIONS),
        *_store_activations(acts),
        *([] if placement.hold else _release_view(step, Phase.FORWARD)),
        *([] if placement.hold else _see_parameters(step, Phase.BACKWARD, Span.UNIT)),
        *_restore_activations(step, read),
        _backward(step, read),
        *_release_view(step, Phase.BACKWARD),
    ]
    finish: list[Op] = []
    if grads.stored:
        micro_step += [] if step.adds_in_place else _keep_gradient(step)
        reduction, gradient = _reduce_kept(step)
        copied = gradient is Buffer.FRESH
        finish += [
            *reduction,
            *_update(step, gradient),
            *([Op(Kind.RELEASE, Phase.UPDATE, gradient)] if copied else []),
            Op(Kind.RESET, Phase.UPDATE, Buffer.GRADIENTS),
        ]
    else:
        micro_step += [
            *_reduce_first(step),
            *_reduce(_minus(placement.axes, step.first), Buffer.FRESH, updates, (), Phase.BACKWARD),
            *_bring_to_host(Buffer.FRESH, Buffer.FRESH, step, Phase.BACKWARD),
            *_update(step, Buffer.FRESH),
            Op(Kind.RELEASE, Phase.BACKWARD, Buffer.FRESH),
        ]
    return Schedule(
        placement.axes, tuple(zip(State, rests, strict=True)), tuple(micro_step), tuple(finish)
    )


# ------------------------------------------------------------------- parameters
def _see_parameters(step: _Step, phase: Phase, span: Span) -> list[Op]:
    """Bring the whole parameters into view, from where they rest."""
    if step.reads_in_place:
        return []
    theta, omega, view = step.theta, step.omega, Buffer.VIEW
    if theta.stored:
        source, on_host = Buffer.PARAMETERS, theta.host
        slices, gathered = theta.sharded, step.placement.gathered(State.PARAMETERS)
        ops = []
    else:  # cast from the master copy, wherever the optimizer state rests
        source, on_host = view, omega.host
        slices, gathered = omega.sharded, omega.sharded
        room = Span.NONE if on_host else span
        ops = [Op(Kind.RECOMPUTE, phase, Buffer.OPTIMIZER, view, within=slices, span=room)]
    if on_host:
        ops.append(Op(Kind.FETCH, phase, source, view, within=slices, span=span))
        source = view
    if gathered:
        rest = _minus(slices, gathered)
        ops.append(Op(Kind.ALL_GATHER, phase, source, view, gathered, rest, span))
    return ops


def _release_view(step: _Step, phase: Phase) -> list[Op]:
    return [] if step.reads_in_place else [Op(Kind.RELEASE, phase, Buffer.VIEW)]


def _publish(step: _Step) -> list[Op]:
    """Bring the updated slices to every resting copy of the parameters."""
    theta, updates, phase = step.theta, step.updates, Phase.PUBLISH
    missing, slices = _minus(updates, theta.sharded), _union(updates, theta.sharded)
    kept, view = Buffer.PARAMETERS, Buffer.VIEW
    gathered = step.placement.gathered(State.OPTIMIZER)
    fresh_weights = Buffer.OPTIMIZER_VIEW if gathered else Buffer.OPTIMIZER
    if not theta.stored:
        return []
    if not theta.host:
        fetch = Op(Kind.FETCH, phase, fresh_weights, kept, within=slices)
        gather = Op(Kind.ALL_GATHER, phase, kept, None, missing, theta.sharded)
        return [*([fetch] if step.on_host else []), *([gather] if missing else [])]
    if step.on_host and not missing:
        return [Op(Kind.RECOMPUTE, phase, fresh_weights, kept, within=slices)]
    bring = Kind.FETCH if step.on_host else Kind.RECOMPUTE
    ops = [Op(bring, phase, fresh_weights, view, within=slices, span=Span.UNIT)]
    if missing:
        ops.append(Op(Kind.ALL_GATHER, phase, view, None, missing, theta.sharded, Span.UNIT))
    store = Op(Kind.OFFLOAD, phase, view, kept, within=theta.sharded)
    return [*ops, store, Op(Kind.RELEASE, phase, view)]


# ------------------------------------------------------------------ activations
def _store_activations(acts: Rest) -> list[Op]:
    if not acts.stored:
        return [Op(Kind.RELEASE, Phase.FORWARD, Buffer.ACTIVATIONS)]
    return [Op(Kind.OFFLOAD, Phase.FORWARD, Buffer.ACTIVATIONS)] if acts.host else []


def _restore_activations(step: _Step, read: Buffer) -> list[Op]:
    acts, phase, buffer = step.acts, Phase.BACKWARD, Buffer.ACTIVATIONS
    gathered = step.placement.gathered(State.ACTIVATIONS)
    if not acts.stored:
        return [Op(Kind.RECOMPUTE, phase, read, buffer)]
    fetch = [Op(Kind.FETCH, phase, buffer)] if acts.host else []
    return fetch + ([Op(Kind.ALL_GATHER, phase, buffer, None, gathered)] if gathered else [])


def _backward(step: _Step, read: Buffer) -> Op:
    """Produce this micro-step's gradient: of a device's own samples where those are its own.

    Where activations are replicated, or gathered, each device has every sample of the group.
    """
    modes = {a: step.placement.mode(State.ACTIVATIONS, a) for a in step.placement.axes}
    everyones = tuple(a for a, mode in modes.items() if mode in (R, GATHERED))
    if step.adds_in_place:
        return Op(Kind.BACKWARD, Phase.BACKWARD, read, Buffer.GRADIENTS, everyones)
    return Op(Kind.BACKWARD, Phase.BACKWARD, read, Buffer.FRESH, everyones, span=Span.UNIT)


# -------------------------------------------------------------------- gradients
def _keep_gradient(step: _Step) -> list[Op]:
    """A micro-step's gradient goes where gradients rest; sharded ones are reduced on the way."""
    grads = step.grads
    fresh, phase, slices = Buffer.FRESH, Phase.BACKWARD, grads.sharded
    others = _minus(step.placement.axes if step.reduces_each else slices, step.first)
    ops = _reduce_first(step) + _reduce(others, fresh, slices, (), phase)
    if grads.host:
        ops.append(Op(Kind.OFFLOAD, phase, fresh, within=slices))
    keep = Op(Kind.ACCUMULATE, phase, fresh, Buffer.GRADIENTS, within=slices)
    return [*ops, keep, Op(Kind.RELEASE, phase, fresh)]


def _reduce_first(step: _Step) -> list[Op]:
    """Sum a micro-step's gradient along the axes that come first."""
    return _reduce(step.first, Buffer.FRESH, (), (), Phase.BACKWARD)


def _reduce(axes: Axes, buffer: Buffer, updates: Axes, within: Axes, phase: Phase) -> list[Op]:
    """Sum along `axes`: to the owners where the update is sharded, to everyone elsewhere."""
    scatter = tuple(a for a in axes if a in updates)
    everyone = _minus(axes, scatter)
    ops = []
    if scatter:
        ops.append(Op(Kind.REDUCE_SCATTER, phase, buffer, None, scatter, within))
    if everyone:
        ops.append(Op(Kind.ALL_REDUCE, phase, buffer, None, everyone, within + scatter))
    return ops


def _reduce_kept(step: _Step) -> tuple[list[Op], Buffer]:
    """Bring the kept gradient to the update, and say in which buffer it arrives.

    It is summed along the axes it is not summed along yet, gathered where it rests as S*, and
    brought to the side where the update runs.
    """
    grads, kept, work, phase = step.grads, Buffer.GRADIENTS, Buffer.FRESH, Phase.REDUCE
    summed = step.placement.axes if step.reduces_each else grads.sharded + step.first
    unreduced = _minus(step.placement.axes, summed)
    again = tuple(axis for axis in unreduced if axis in step.again)
    gather = _minus(step.placement.gathered(State.GRADIENTS), step.updates)
    if grads.host and (unreduced or gather or not step.on_host):
        span = Span.WHOLE if unreduced else Span.UNIT
        fetch = Op(Kind.FETCH, phase, kept, work, within=grads.sharded, span=span)
        ops, buffer = [fetch], work
    else:
        ops, buffer = [], kept
    ops += _reduce(_minus(unreduced, again), buffer, step.updates, grads.sharded, phase)
    slices = _minus(_union(grads.sharded, tuple(a for a in unreduced if a in step.updates)), gather)
    if again:
        # what was fetched is summed in place, once for all uses
        span, uses = (Span.NONE, 1) if buffer is work else (Span.UNIT, step.placement.uses)
        ops += [Op(Kind.ALL_REDUCE, phase, buffer, work, again, slices, span)] * uses
        buffer = work
    if gather:
        ops.append(Op(Kind.ALL_GATHER, phase, buffer, work, gather, slices, Span.UNIT))
        buffer = work
    if not (grads.host and buffer is kept):
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
    gathered = step.placement.gathered(State.OPTIMIZER)
    if not omega.stored:
        again = Op(Kind.RECOMPUTE, phase, kept, within=step.updates)
        update = Op(Kind.UPDATE, phase, gradient, kept, within=step.updates)
        return [again, update, *_publish(step)]
    if not gathered:
        update = Op(Kind.UPDATE, phase, gradient, kept, within=step.updates)
        return [update, *_publish(step)]
    rest = _minus(omega.sharded, gathered)
    fetch = Op(Kind.FETCH, phase, kept, view, within=omega.sharded, span=Span.UNIT)
    source = view if omega.host else kept
    gather = Op(Kind.ALL_GATHER, phase, source, view, gathered, rest, Span.UNIT)
    update = Op(Kind.UPDATE, phase, gradient, view, within=step.updates)
    store = Op(Kind.OFFLOAD, phase, view, kept, within=omega.sharded)
    keep = Op(Kind.KEEP, phase, view, kept, within=omega.sharded)
    return [
        *([fetch] if omega.host else []),
        gather,
        update,
        store if omega.host else keep,
        *_publish(step),
        Op(Kind.RELEASE, phase, view),
    ]
