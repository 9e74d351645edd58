"""K5: parts that are right by themselves, and whether they fit each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from proofs.language.small_parts import projection
from proofs.trusted.kernel import KernelError
from spec.checking.steps import check_parts, check_step
from spec.derivation.programs import program_of
from spec.derivation.schedules import schedule_of
from spec.derivation.steps import derive
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, along
from spec.devices.mesh import ALL_WEIGHTS, Axes
from spec.language.moves import Axis
from spec.language.programs import Program
from spec.language.schedule import Buffer, Kind, Schedule
from spec.language.steps import Group, Step
from spec.models.layers import Layers
from spec.models.transformer import is_layer
from spec.models.values import FULL, Part
from spec.plans.compose import Product, factor
from spec.plans.strategies import STRATEGIES


def wrong(step: Step, checks: Callable[[Step], object] = check_parts) -> Any:
    """Where a step is wrong, apart from what the verdict says of its schedules; nothing if nowhere."""
    try:
        checks(step)
    except LayoutError as error:
        return error.at
    return None


def require_joined(one: str, other: str, parts: Sequence[Part]) -> None:
    """Raise KernelError unless a step is rejected whose first part gives what lies as in `one`, and
    whose next part takes it as in the `other` strategy, on the same axis: each is right by itself.
    """
    first, step = (derive(Product((factor(name),)), parts) for name in (one, other))
    joined = replace(step, programs=(first.programs[0], *step.programs[1:]))
    told = wrong(joined, check_step)
    if told != (step.programs[1].part.name, "takes"):
        raise KernelError(f"{one}, then {other}: {told} is said to be wrong")


def require_in_order(names: Sequence[str], parts: Sequence[Part], index: str) -> None:
    """Raise KernelError unless a step is rejected whose axes cut an index in the other order."""
    step = derive(Product(tuple(map(factor, names))), parts)
    other = replace(step, orders={**step.orders, index: step.orders[index][::-1]})
    if wrong(step, check_step) is not None or wrong(other, check_step) is None:
        raise KernelError(f"{' * '.join(names)}: in the other order of {index} it is accepted")


def require_shared_alike() -> None:
    """Raise KernelError unless parts that share a weight are accepted if, and only if, it is alike."""
    one, zero1 = projection(), Product((factor("zero1"),))
    for alike in (True, False):
        wider = {weight: weight if alike else replace(weight, width=FULL) for weight in one.weights}
        operations = (
            replace(line, reads=tuple(wider.get(value, value) for value in line.reads))
            for line in one.operations
        )
        other = replace(one, name="other", operations=tuple(operations))
        try:
            accepted = bool(check_step(derive(zero1, (one, other))))
        except LayoutError:
            accepted = False
        if accepted is not alike:
            raise KernelError(f"two parts share weights, alike: {alike}; accepted: {accepted}")


def require_follows_itself() -> None:
    """Raise KernelError unless a layer that gives another value than it takes is rejected, alone."""
    one = projection()
    gives = replace(one.gives, indices=(*one.gives.indices[:-1], "k"))
    last = one.operations[-1]
    down = replace(last.reads[1], indices=(last.reads[1].indices[0], "k"))
    operations = *one.operations[:-1], last.on((last.reads[0], down), gives)
    layer = replace(one, name="layer", operations=operations, gives=gives)
    if wrong(derive(Product((factor("dp"),)), (layer,))) is None:
        raise KernelError(f"a layer that takes {one.takes} and gives {gives} follows itself")


def require_layers_in_one_group(parts: Sequence[Part]) -> None:
    """Raise KernelError unless states of one layer and of the others, which are alike, are accepted;
    and with those of the one again they are not.
    """
    step = derive(factor("zero1") * factor("tp"), parts)
    name = next(w.name for part in parts if is_layer(part.name) for w in part.weights)
    of, one = next(g for g in step.groups if name in g.weights), Layers(frozenset({0}), others=False)
    others = [replace(g, weights=tuple(w for w in g.weights if w != name)) for g in step.groups]
    some, rest = (replace(of, weights=(name,), layers=layers) for layers in (one, one.rest))
    for groups, right in (((some, rest), True), ((some, rest, some), False)):
        if (wrong(replace(step, groups=(*others, *groups)), check_step) is None) is not right:
            raise KernelError(f"{name} in {len(groups)} groups: not as it is to be")


def require_along_all(product: Product, step: Step) -> None:
    """Raise KernelError unless programs are along each axis of a product, once, but that of stages."""
    along = sorted(axis for axis in product.axes if axis != product.pipe)
    for program in step.programs:
        if sorted(axis.name for axis in program.axes) != along:
            raise KernelError(f"{program.part.name} is along {program.axes}, not {along}")


def require_shared_lie_alike(plan: str, step: Step) -> None:
    """Raise KernelError unless a step is rejected of which two parts have a weight, not alike."""
    first, *others = step.programs
    for number, program in enumerate(others, 1):
        for weight in {*program.part.weights} & {*first.part.weights}:
            lies = program.lies[weight]
            turned = {axis: WHOLE if lie.index else along("h") for axis, lie in lies.items()}
            other = replace(program, lies={**program.lies, weight: turned})
            programs = (*step.programs[:number], other, *step.programs[number + 1 :])
            if wrong(replace(step, programs=programs)) != weight.name:
                raise KernelError(f"{plan}: accepted, with {weight} that lies in two ways")


def require_taken_as_given(names: Sequence[str], parts: Sequence[Part]) -> None:
    """Raise KernelError unless a step of several kinds of layers is rejected of which some part takes
    what is given transposed, or in terms along an axis; also if it is a layer that gives it, and the
    next part that takes it; and if the first part, which takes nothing, is there twice.
    """
    step = derive(Product(tuple(map(factor, names))), parts)
    every = step.programs
    others = [(every[0], (every[0], *every))]
    for number, program in enumerate(every[1:], 1):
        before, after = every[:number], every[number + 1 :]
        others += [(program, (*before, other, *after)) for other in _taking_otherwise(program)]
        if after and is_layer(program.part.name):
            next_one, *_ = _taking_otherwise(after[0])
            others.append((program, (*before, _giving_turned(program), next_one, *after[1:])))
    for program, programs in others:
        if wrong(replace(step, programs=programs)) != (program.part.name, "takes"):
            raise KernelError(f"accepted, with what {program.part.name} takes otherwise")


def _taking_otherwise(program: Program) -> Iterator[Program]:
    """The program, taking what it takes transposed, and in terms along the last axis."""
    takes = program.part.takes
    if takes is None:
        raise KernelError(f"{program.part.name} takes nothing")
    turned = replace(takes, indices=takes.indices[::-1])
    part, lies = replace(program.part, takes=turned), program.lies[takes]
    yield replace(program, part=part, lies={**program.lies, turned: lies})
    terms = {**lies, program.axes[-1].name: PARTIAL}
    yield replace(program, lies={**program.lies, takes: terms})


def _giving_turned(program: Program) -> Program:
    turned = replace(program.gives, indices=program.gives.indices[::-1])
    return replace(program, gives=turned, lies={**program.lies, turned: program.lies[program.gives]})


def require_summed_as_left() -> None:
    """Raise KernelError unless a weight's schedule is accepted if, and only if, it sums over the axes
    along which a part leaves terms, and backward has all samples along no others than those along which
    the gradient is whole: of two axes, along each in terms, whole, or cut.
    """
    axes = Axis("one"), Axis("other")
    program = program_of(projection(), axes)
    weight, *others = program.part.weights
    dp = schedule_of(STRATEGIES["dp"])
    alone = Group(tuple(other.name for other in others), _over(dp, (), ()))
    for lies in product((PARTIAL, WHOLE, along("h")), repeat=2):
        has = dict(zip(("one", "other"), lies, strict=True))
        left = {**program.lies, program.gradients[weight]: has}
        for does in product(("sums", "has all", "nothing"), repeat=2):
            over, said = (
                tuple(axis for axis, what in zip(has, does, strict=True) if what == word)
                for word in ("sums", "has all")
            )
            group = Group((weight.name,), _over(dp, over, said))
            step = Step((replace(program, lies=left),), (group, alone))
            right = all((lie == PARTIAL) is (axis in over) for axis, lie in has.items())
            right &= all(has[axis] == WHOLE for axis in said)
            if (wrong(step) is None) is not right:
                raise KernelError(
                    f"{lies}: summed over {over}, with all samples along {said}: accepted"
                )


def _over(schedule: Schedule, over: Axes, said: Axes) -> Schedule:
    """A schedule over some axes, along some of which backward has all samples; it sums nothing."""
    ops = (replace(op, axes=said * (op.kind is Kind.BACKWARD)) for op in schedule.micro_step)
    return replace(schedule, axes=(*over, *said), micro_step=tuple(ops), finish=())


def require_norm_of_one_group(parts: Sequence[Part]) -> None:
    """Raise KernelError unless on stages the norm of one group of weights is to be summed over these.

    Whether it is summed over groups of weights, too, or not.
    """
    step = derive(factor("dp") * factor("pp"), parts, clip=True)
    (group,) = step.groups
    at = next(n for n, op in enumerate(group.schedule.finish) if op.target is Buffer.NORM and op.axes)
    for axes in (("pipe",), (ALL_WEIGHTS, "pipe"), (ALL_WEIGHTS,)):
        finish = [*group.schedule.finish]
        finish[at] = replace(finish[at], axes=axes)
        of_norm = replace(group, schedule=replace(group.schedule, finish=tuple(finish)))
        if (wrong(replace(step, groups=(of_norm,))) is None) is not ("pipe" in axes):
            raise KernelError(f"on stages a norm that is summed over {axes} is accepted, or is not")
