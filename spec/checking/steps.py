"""Is a model's step right: its programs, what its schedules sum over, its norms, its slices?

Whether the schedule of each group of weights does what it is to do, the verdict says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from spec.checking.norms import check_joined, check_norm
from spec.checking.programs import check_program
from spec.derivation.nesting import needed
from spec.devices.layouts import LayoutError
from spec.devices.mesh import ALL_WEIGHTS, Axes
from spec.language.moves import Move
from spec.language.programs import Program
from spec.language.schedule import Buffer, Kind, Schedule
from spec.language.steps import Step, in_words
from spec.models.layers import has_each_once
from spec.models.transformer import is_layer
from spec.models.values import Operation

OfPart = TypeVar("OfPart")


def check_step(step: Step) -> Step:
    """The step, with how all values lie. Whether schedules do what they are to do, the verdict says.

    Raises LayoutError if a part does not do what one device does, or a gradient is summed otherwise
    than it must be.
    """
    step = replace(step, programs=tuple(in_part(program, check_program) for program in step.programs))
    check_parts(step)
    return step


def check_parts(step: Step) -> None:
    """Raise LayoutError if parts that are right, of which all values lie as is said, do not fit each
    other, or a layer itself, or the schedules of states do not fit them.
    """
    again = ((program, program) for program in step.programs if is_layer(program.part.name))
    for before, after in (*pairwise(step.programs), *again):
        takes = after.part.takes
        alike = takes and takes.indices == before.gives.indices
        if not takes or not alike or after.lies[takes] != before.lies[before.gives]:
            name = "it gives, and follows itself" if after is before else f"{before.part.name} gives"
            names = f"{after.part.name} does not take what {name}"
            raise LayoutError(names, (after.part.name, "takes"))
    check_orders(step.programs, step.orders)
    for group in () if step.is_opaque else step.groups:
        for op in group.schedule.ops:
            kept = op.target is Buffer.ACTIVATIONS and op.kind is not Kind.FORWARD
            number = op.of_a_number and not {op.source, op.target, op.by} & {Buffer.NORM}
            if kept or number:
                what = " ".join(str(op).split())
                raise LayoutError(
                    f"{what}: the states' schedule is of weights and gradients alone; activations and "
                    "samples are as the programs say",
                    group.weights[0] if group.weights else None,
                )
            of_all = group.schedule.samples_of_all
            if op.kind is Kind.BACKWARD and {*op.axes} != {*of_all}:
                raise LayoutError(
                    f"one backward has all samples along {in_words(of_all)}, and one along "
                    f"{in_words(op.axes)}; needs the same of each: a gradient lies in one way",
                    group.weights[0] if group.weights else None,
                )
    uses = step.uses
    for weight, (axes, whole) in step.gradients_over().items():
        groups = [group for group in step.groups if weight in group.weights]
        of_layers = is_layer(uses[weight][0])
        if not (has_each_once(g.layers for g in groups) if of_layers else len(groups) == 1):
            of_each = ", one for each layer" * (of_layers and len(groups) == 2)
            words = f"{weight} is in {len(groups)} groups of states; needs one{of_each}"
            raise LayoutError(words, weight)
        for group in groups:
            _check_sums(weight, axes, whole, group.schedule, step.is_opaque)
    _check_norms(step)


def _check_sums(weight: str, axes: Axes, whole: Axes, schedule: Schedule, is_opaque: bool) -> None:
    """Raise LayoutError if a schedule sums the gradient of a weight otherwise than over some axes.

    `whole`: those of which each device has it whole.
    """
    said = () if is_opaque else schedule.samples_of_all
    over = tuple(axis for axis in schedule.axes if axis not in said)
    unsaid = tuple(axis for axis in over if axis in whole)
    if {*over} != {*axes} or not {*said} <= {*whole}:
        also = f", and has it whole along {in_words(said)}" if said else ""
        also += f"; along {in_words(unsaid)} it is whole, which backward says by axes" if unsaid else ""
        raise LayoutError(
            f"the gradient of {weight} is to be summed over {in_words(axes)}; its states' "
            f"schedule is over {in_words(over)}{also}",
            weight,
        )


def _check_norms(step: Step) -> None:
    """Raise LayoutError if gradients are clipped by another norm than that of all weights, once.

    Of a model of which nothing is known the verdict says all.
    """
    if step.is_opaque:
        return
    norms, several = step.gradient_norms(), len(step.groups) > 1
    for number, group in enumerate(step.groups):
        about = {*group.schedule.axes} - {step.pipe} | (set() if several else {ALL_WEIGHTS})
        lies = {
            name: {axis: lie for axis, lie in norms[name].items() if axis not in about}
            for name in group.weights
        }
        check_norm(group.schedule, lies, number)
    check_joined(group.schedule for group in step.groups)


def in_part(program: Program, find: Callable[[Program], OfPart]) -> OfPart:
    """What is found of a part's program; a LayoutError says of which part its line is."""
    try:
        return find(program)
    except LayoutError as error:
        of_a_line = isinstance(error.at, Operation | Move)
        at = (program.part.name, error.at) if of_a_line else error.at
        raise LayoutError(str(error), at) from None


def check_orders(programs: Iterable[Program], found: Mapping[str, tuple[str, ...]]) -> None:
    """Raise LayoutError for the first move that leaves what is no slice. `found`: of each index."""
    for index, outer, inner, move, program in needed(programs):
        order = found[index]
        if order.index(outer) > order.index(inner):
            raise LayoutError(
                f"{inner} is outside {outer} in the order of {index}: parts of chunks are no slice; "
                f'needs {index} = ["{outer}", "{inner}"] in [order], or a move over {outer} first',
                (program.part.name, move),
            )


def cut_twice(step: Step) -> dict[str, tuple[str, ...]]:
    """Indices that are cut along several axes at once, and along which, the outer one first.

    A device has one chunk of such an index.
    """
    found: dict[str, set[str]] = {}
    axes = [axis.name for axis in step.programs[0].axes] if step.programs else []
    for program in step.programs:
        for lies in program.lies.values():
            along = [(lies[axis].index, axis) for axis in axes if lies[axis].index]
            indices = [index for index, _ in along]
            for index, axis in along:
                if indices.count(index) > 1:
                    found.setdefault(index, set()).add(axis)
    return {
        index: tuple(axis for axis in step.orders[index] if axis in cut) for index, cut in found.items()
    }
