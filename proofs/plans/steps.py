"""K5: steps of products that clip are accepted, and with one fault of a norm they are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from proofs.trusted.kernel import KernelError
from spec.checking.steps import check_step
from spec.checking.verdict import check
from spec.derivation.steps import derive_step
from spec.devices.layouts import LayoutError
from spec.devices.mesh import ALL_WEIGHTS
from spec.language.schedule import Buffer, Kind, Op
from spec.language.steps import Group, Step
from spec.models.values import Part
from spec.plans.compose import Product, factor

DEVICES, MICRO_STEPS = 2, 2


def require_accepted(names: tuple[str, ...], parts: Sequence[Part]) -> None:
    """Raise KernelError unless a product's step that clips is right, and with any fault is not.

    `names`: of the strategies that are its factors.
    """
    plan = " * ".join(names)
    step = derive_step(Product(tuple(map(factor, names))), parts, clip=True)
    try:
        accepted = _is_accepted(step, step.groups)
    except LayoutError as error:
        raise KernelError(f"{plan}: {error}") from None
    if not accepted or not step.clips:
        raise KernelError(f"{plan}: a step that clips is not accepted")
    for number, fault in _faults(step):
        groups = (*step.groups[:number], fault, *step.groups[number + 1 :])
        try:
            accepted = _is_accepted(replace(step, groups=groups), (fault,))
        except LayoutError:
            continue
        if accepted:
            lines = " ".join(" ".join(map(str, fault.schedule.finish)).split())
            raise KernelError(f"{plan}: another norm is accepted: {lines}")


def _is_accepted(step: Step, groups: Sequence[Group]) -> bool:
    """Whether some groups' schedules are right. Raises LayoutError if the rest of a step is not."""
    check_step(step)
    schedules = (group.schedule for group in groups)
    return all(check(s, dict.fromkeys(s.axes, DEVICES), MICRO_STEPS).accepted for s in schedules)


def _faults(step: Step) -> Iterator[tuple[int, Group]]:
    """Groups whose norm is another: a line of it is left out, is there twice, or lacks an axis."""
    alone = len(step.groups) == 1  # no other weights' norms are to be added
    for number, group in enumerate(step.groups):
        before = group.schedule.finish
        for i, op in enumerate(before):
            for instead in _other_lines(op, alone) if Buffer.NORM in (op.target, op.by) else ():
                finish = (*before[:i], *instead, *before[i + 1 :])
                yield number, replace(group, schedule=replace(group.schedule, finish=finish))


def _other_lines(op: Op, alone: bool) -> Iterator[tuple[Op, ...]]:
    """What may wrongly stand for a line of a norm."""
    yield ()
    if op.kind is Kind.ALL_REDUCE:
        yield op, op
    for axis in op.axes if len(op.axes) > 1 else ():
        if not (alone and axis == ALL_WEIGHTS):
            yield (replace(op, axes=tuple(other for other in op.axes if other != axis)),)
