"""Checking a step, derived or of a file: its programs, and the schedule of every weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psem_model.check.rounding import Rounded, rounded
from psem_model.check.schedules import CheckedGroup, check_schedule, sizes_given
from psem_model.text.figures import counted
from psem_model.text.report import Column, Report, Row, Section
from spec.checking.steps import check_step, cut_twice
from spec.derivation.steps import derive
from spec.devices.layouts import LayoutError
from spec.language.moves import Move
from spec.language.schedule import Schedule
from spec.language.steps import Group, Step
from spec.models.custom import Custom
from spec.models.layers import EVERY_LAYER, Layers
from spec.models.profiles import TEXTBOOK, Profile, realised_parts
from spec.models.states import MIXED_ADAM, BytePolicy
from spec.models.transformer import Transformer
from spec.models.values import Operation
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.stages import check_stages, pieces, sends, to_sum
from spec.plans.compose import Product

if TYPE_CHECKING:
    from psem_model.check.step_runs import StepRun

PlaceOf = Callable[[object], int | None]
IN_EXACT = "accepted in exact arithmetic"
NO_RUN: dict[str, Any] = {"divergence": None, "no_run": None}  # of a whole step
ROUNDED = "not exact: from how many bytes to how many these lines round what they read"


@dataclass(frozen=True)
class Checked:
    """What was found of a step, derived or of a file: of its programs, and of each group of weights.

    Of an opaque model the schedule of its one group says all.
    """

    text: str
    step: Step
    wrong: str = ""  # with a program, or with what is summed; empty if nothing is
    at: int | None = None  # the line of a file that this is on
    run: StepRun | None = None  # of what is wrong with it
    groups: tuple[CheckedGroup, ...] = ()  # in the order of the step's
    layers: str = ""  # of which kind: gpt, llama, or what a configuration is of
    experts: bool = False  # whether the layers have them
    of_a_kind: bool = False  # whether sizes of the model were not said
    profile: str = ""  # by which it is realised, if one was asked for
    rounds: tuple[Rounded, ...] = ()  # what is not exact

    @property
    def alone(self) -> CheckedGroup | None:
        """The group that says all."""
        return self.groups[0] if self.step.is_opaque and self.groups else None

    @property
    def lines_of(self) -> dict[str, int]:
        """How many lines the program of each part has."""
        return {program.part.name: len(program.lines) for program in self.step.programs}

    @property
    def accepted(self) -> bool:
        return not self.wrong and all(each.accepted for each in self.groups)

    @property
    def proof_is_of(self) -> str:
        """What a proof is of, if it is not of all."""
        return "" if self.step.is_opaque else "schedules of weights: "

    @property
    def headline(self) -> str:
        """Whether it is accepted, and of which layers, if they are only a kind."""
        line, said = self.at, "accepted" if self.accepted else "rejected"
        if self.alone:
            line, said = self.alone.line, self.alone.said()
        if self.accepted and self.rounds:
            said = said.replace("accepted", IN_EXACT, 1)
        of = f"{self.layers} layers{' with experts' if self.experts else ''}"
        kind = f", for {of} that it cuts evenly (see --block, --config)" if self.of_a_kind else ""
        where = f"{self.text}, line {line}" if line else self.text
        where += f", by the profile {self.profile}" * bool(self.profile)
        return f"{where}: {said}{kind}"

    def report(self) -> Report:
        """The same as a report."""
        of_groups = (section for each in self.of_groups for section in self.sections(*each))
        sections = (*of_groups, *([self.inexact()] if self.accepted and self.rounds else []))
        return Report("check", self.headline, self.facts(), sections, self.data(), self.accepted)

    def inexact(self) -> Section:
        """The lines that round, though all is right in exact arithmetic."""
        columns = (Column("of"), Column("line", 1), Column("bytes"))
        rows = []
        for each in self.rounds:
            group = None if each.group is None else self.step.groups[each.group]
            of = each.of[0] if group is None else _named(group.weights, group.layers)
            of = "" if self.alone else of
            line = f"line {each.number}, {each}" if each.number else str(each)
            rows.append(Row((of, line, each.widths)))
        return Section(ROUNDED, columns, tuple(rows))

    def facts(self) -> tuple[str, ...]:
        """What was found of its programs, or what its only group is accepted for."""
        if self.alone:
            types = ("types of states are the profile's, all else is as the file says",)
            return (*types * bool(self.profile), *self.alone.scope) if self.accepted else ()
        run = (self.run.words,) if self.run else ()
        return (self.wrong, *run) if self.wrong else tuple(self._of_programs())

    def _of_programs(self) -> Iterator[str]:
        programs = ", ".join(f"{name} {number}" for name, number in self.lines_of.items())
        yield f"programs accepted, whatever the sizes; lines: {programs}"
        if shared := ", ".join(self.step.shared_weights):
            yield f"several stages use {shared}: their gradients are summed"
        for index, axes in cut_twice(self.step).items():
            cut = f"{index} is cut along {' x '.join(axes)}"
            yield f"{cut}, the first outermost: each device has one contiguous chunk"

    @property
    def of_groups(self) -> list[tuple[Group, CheckedGroup]]:
        """Each group of weights, and what was found of it."""
        return list(zip(self.step.groups, self.groups, strict=True)) if self.groups else []

    def sections(self, group: Group, found: CheckedGroup) -> tuple[Section, ...]:
        """What was found of a group of weights."""
        if found is self.alone:
            return found.sections()
        along = " x ".join(group.schedule.axes) or "no axis"
        what = f"{_named(group.weights, group.layers)}, placed along {along}"
        return found.sections(f"{what}: {found.said(f'line {found.line}, ' if found.line else '')}")

    def data(self) -> dict[str, Any]:
        """For a program."""
        rounds = {
            "profile": self.profile or None,
            "rounded": [each.data() for each in self.rounds],
        }
        if self.alone:
            return {"file": self.text, **self.alone.data(), **rounds}
        of_strategy = {"layers": {"kind": self.layers, "experts": self.experts}} if self.layers else {}
        return {
            "strategy" if self.layers else "file": self.text,
            "accepted": self.accepted,
            **of_strategy,
            "programs": {"lines": self.lines_of, "wrong": self.wrong or None, "line": self.at},
            "shared": list(self.step.shared_weights),
            "weights": [
                {
                    "axes": list(group.schedule.axes),
                    "names": list(group.weights),
                    "layers": None if group.layers == EVERY_LAYER else str(group.layers),
                    "schedule": {"file": self.text, **found.data()},
                }
                for group, found in self.of_groups
            ],
            **(self.run.data() if self.run else NO_RUN),
            **rounds,
        }


def _named(weights: tuple[str, ...], layers: Layers = EVERY_LAYER) -> str:
    """How many weights, the first of them, and of which layers, if not of all."""
    names = ", ".join(weights[:2]) + (", ..." if len(weights) > 2 else "")
    names += "" if layers == EVERY_LAYER else f"; of layers, {layers.said}"
    return f"{counted(len(weights), 'weight')} ({names})"


def check_product(
    text: str,
    product: Product,
    model: Transformer | Custom,
    sizes: dict[str, int] | None,
    micro_steps: int | None,
    policy: BytePolicy | None,
    profile: Profile = TEXTBOOK,
    types: BytePolicy = MIXED_ADAM,
) -> Checked:
    """Check the derived step of a product of strategies, for a kind of model, realised by a profile.

    Programs do not depend on sizes, and what stages send and sum not on how many layers each has: a
    layer for each of two shows it (claim E11). Schedules are checked for `sizes`, or for every number
    of devices along each axis; without a policy, for every kind of optimizer. `types`: of the states.
    """
    realises = profile.in_plan(types, product.pipe is not None)
    step = derive(product, realised_parts(model, profile, types.computed), profile=realises)
    stages = min(2, model.layers) if product.pipe else 1
    layers = min(stages, model.layers)
    placed = pieces(replace(model, layers=layers), Pipeline(Order.ONE_F_ONE_B, stages, 1))
    if sizes is not None and product.pipe:  # what stages share, the first and the last have
        sizes = sizes | {product.pipe: min(2, sizes[product.pipe])}
    try:
        check_stages(placed, sends(placed), to_sum(placed))
    except LayoutError as error:
        return Checked(text, step, str(error))
    most = max((group.schedule for group in step.groups), key=lambda schedule: len(schedule.axes))
    sizes_given(most, sizes, micro_steps, product.axes)  # too many axes are told at once

    def checked(_: int, schedule: Schedule) -> CheckedGroup:
        given = sizes_given(schedule, sizes, micro_steps, product.axes)
        return check_schedule(schedule, given, policy)

    return replace(checked_step(text, step, checked), rounds=rounded(step, types))


def checked_step(
    text: str,
    step: Step,
    checked: Callable[[int, Schedule], CheckedGroup],
    place: PlaceOf | None = None,
) -> Checked:
    """What is found of a step. `checked`: of the schedule of a group, and its number. `place`: the
    line of a file on which what a LayoutError is about stands.
    """
    try:
        step = check_step(step)
    except LayoutError as error:
        line = error.at[1] if isinstance(error.at, tuple) else None
        what = f"{line}: {error}" if isinstance(line, Operation | Move) else str(error)
        run = None if step.is_opaque else _run(step)
        return Checked(text, step, what, place(error.at) if place else None, run)
    found = (checked(number, group.schedule) for number, group in enumerate(step.groups))
    return Checked(text, step, groups=tuple(found))


def _run(step: Step) -> StepRun:
    """A small run of a step that is rejected."""
    from psem_model.check.step_runs import small_step_run

    return small_step_run(step)
