"""Is the norm by which gradients are clipped that of all weights, each counted once?

Along the axes that cut a weight, over stages and over groups of weights it is in terms, which lines
sum; along the axes that a group's schedule is about, the verdict decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, Lie
from spec.devices.mesh import ALL_WEIGHTS, Axes
from spec.language.schedule import Buffer, Kind, Op, Schedule

_Lies = Mapping[str, Lie]
NO_NORM: _Lies = MappingProxyType({})  # nothing is there, or zero


def check_norm(schedule: Schedule, norms: Mapping[str, _Lies], number: int) -> None:
    """Raise LayoutError for a line by which the norm is not that of all weights.

    `norms`: of each weight of the group, how the square of its norm lies along the axes that the
    schedule is not about, and over stages and weights. `number`: of the group.
    """
    for part, ops in zip(("micro_step", "finish"), schedule.bodies, strict=True):
        has = NO_NORM
        for index, op in enumerate(ops):
            if Buffer.NORM not in (op.target, op.by):
                continue
            try:
                if part == "micro_step":
                    raise LayoutError("the norm is of the whole step's gradients: in finish")
                has = _after(op, has, norms, schedule.axes)
            except LayoutError as error:
                line = " ".join(str(op).split())
                raise LayoutError(f"{line}: {error}", (number, part, index)) from None


def check_joined(schedules: Iterable[Schedule]) -> None:
    """Raise LayoutError if some group of weights does not add its norm where others do."""
    times = [sum(ALL_WEIGHTS in op.axes for op in schedule.finish) for schedule in schedules]
    if len({*times}) > 1:
        number = min(range(len(times)), key=times.__getitem__)
        raise LayoutError(
            "other weights' norms are summed over weights, and not theirs", (number, "weights")
        )


def _after(op: Op, has: _Lies, norms: Mapping[str, _Lies], own: Axes) -> _Lies:
    """How the norm lies after a line. `own`: the axes that the schedule is about."""
    if op.kind is Kind.SQUARE_NORM:
        return _of_group(norms)
    if has is NO_NORM and op.kind is Kind.BROADCAST:
        raise LayoutError("there is no norm yet; needs square_norm before")
    if has is NO_NORM or op.kind in (Kind.RELEASE, Kind.RESET):
        return NO_NORM
    terms = [axis for axis, lie in has.items() if lie == PARTIAL]
    if op.by is Buffer.NORM and terms:
        part = "of these weights alone" if terms == [ALL_WEIGHTS] else "of each device's part alone"
        raise LayoutError(f"the norm is {part}; needs its sum over {' x '.join(terms)} before")
    over = [axis for axis in op.axes if axis in has]
    if op.mean and over:
        raise LayoutError("the norm of all is a sum, not a mean")
    for axis in over:
        if op.kind is Kind.BROADCAST and axis not in own:
            raise LayoutError(f"no device along {axis} has the norm of all; needs a sum over {axis}")
        if op.kind is Kind.ALL_REDUCE and axis not in terms:
            raise LayoutError(f"the norm is whole along {axis}: its sum counts it once for each device")
    left = [axis for axis in terms if axis not in over]
    if ALL_WEIGHTS in over and left:
        names = " x ".join(left)
        raise LayoutError(
            f"the norm is of each device's part along {names}; needs its sum over {names} too"
        )
    if ALL_WEIGHTS in over and op.axes[-1:] != (ALL_WEIGHTS,):
        raise LayoutError(f"the norm of all weights is a sum of whole ones; needs {ALL_WEIGHTS} last")
    return {**has, **dict.fromkeys(over, WHOLE)}


def _of_group(norms: Mapping[str, _Lies]) -> _Lies:
    """How the norm of some weights together lies. Raises LayoutError if theirs do not lie alike."""
    lies = next(iter(norms.values()), {})
    for weight, found in norms.items():
        for axis, lie in lies.items():
            if found[axis] != lie:
                raise LayoutError(
                    f"the norm of {weight} is {found[axis].words} along {axis}, and of others it is "
                    f"{lie.words}; needs a group of its own"
                )
    return lies
