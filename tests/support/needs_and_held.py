"""What a step of a placement sends, by what each use of a state needs beside what is held before it.

Nothing is derived: along each axis a value is whole on each device, a slice of it, or a term of a sum.
"""

from fractions import Fraction
from math import prod

from spec.models.states import State
from spec.plans.modes import Mode

WHOLE, SLICE, TERM = "whole", "slice", "term"
SLICED = (Mode.SHARDED, Mode.GATHERED)


class UnmetError(Exception):
    """A need that no collective meets, or that the modes do not say is met."""


def sent_to_meet(needed, held, mesh):
    """Elements that each device sends, of one: sums to the owners, then to all, then gathers.

    Of what it needs a slice of, a device that has the whole takes that first.
    """

    def devices(before, after):
        return prod(mesh[axis] for axis in held if (held[axis], needed[axis]) == (before, after))

    if any(needed[axis] == TERM != held[axis] for axis in held):
        raise UnmetError
    slices = devices(SLICE, SLICE) * devices(SLICE, WHOLE) * devices(WHOLE, SLICE)
    part = Fraction(1, slices)
    owners, everyone = devices(TERM, SLICE), devices(TERM, WHOLE)
    sent = part * (owners - 1) / owners
    part /= owners
    sent += 2 * part * (everyone - 1) / everyone
    return sent + part * (devices(SLICE, WHOLE) - 1)


def sent_by_state(placement, mesh, micro_steps):
    """Of each state, elements that each device sends in a step, of one. Raises UnmetError."""
    axes = placement.axes
    theta, omega, grads, acts = (
        {axis: placement.mode(state, axis) for axis in axes} for state in State
    )
    made = {state: not placement.rest(state).stored for state in State}
    rests = {
        state: {axis: SLICE if placement.mode(state, axis) in SLICED else WHOLE for axis in axes}
        for state in State
    }
    if any(mode not in (Mode.SHARDED, Mode.MATERIALIZED) for mode in acts.values()):
        raise UnmetError  # of devices that have other samples, each has its own
    # forward and backward need all parameters
    source, whole = (omega if made[State.PARAMETERS] else theta), dict.fromkeys(axes, WHOLE)
    held = {axis: SLICE if source[axis] in SLICED else WHOLE for axis in axes}
    gathers = made[State.PARAMETERS] or Mode.SHARDED not in theta.values()
    if not gathers or (made[State.PARAMETERS] and made[State.OPTIMIZER]):
        raise UnmetError
    uses = micro_steps * (1 if placement.hold else 2)
    found = {State.PARAMETERS: uses * sent_to_meet(whole, held, mesh)}
    # the update needs the gradient where the optimizer state is
    if made[State.OPTIMIZER]:
        raise UnmetError  # but for an optimizer without state
    update = {axis: SLICE if omega[axis] is Mode.SHARDED else WHOLE for axis in axes}
    found[State.OPTIMIZER] = sent_to_meet(update, rests[State.OPTIMIZER], mesh)
    terms = dict.fromkeys(axes, TERM)
    if made[State.GRADIENTS]:
        if micro_steps > 1:
            raise UnmetError
        found[State.GRADIENTS] = sent_to_meet(update, terms, mesh)
    else:
        kept = {axis: SLICE if grads[axis] in SLICED else TERM for axis in axes}
        in_place = {axis for axis in axes if grads[axis] is Mode.SHARDED and update[axis] == WHOLE}
        for axis in in_place:  # of what is updated only slices are right: they are all that is kept
            if rests[State.OPTIMIZER][axis] != SLICE or held[axis] == WHOLE:
                raise UnmetError
        needed = update | dict.fromkeys(in_place, SLICE)
        each, last = sent_to_meet(kept, terms, mesh), sent_to_meet(needed, kept, mesh)
        found[State.GRADIENTS] = micro_steps * each + last
    # the next step needs the parameters where they rest
    if not made[State.PARAMETERS]:
        found[State.PARAMETERS] += sent_to_meet(rests[State.PARAMETERS], update, mesh)
    return found
