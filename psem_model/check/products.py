"""Checking a step, derived or of a file: its programs, and the schedule of every weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psem_model.check.optimizers import in_words
from psem_model.check.schedules import Checked, check_schedule, sizes_given
from psem_model.text.figures import counted
from psem_model.text.report import Report, Section
from spec.checking.steps import check_step, cut_twice
from spec.derivation.steps import derive_step
from spec.devices.layouts import LayoutError
from spec.language.moves import Move
from spec.language.schedule import Schedule
from spec.language.steps import Step
from spec.models.parts import parts
from spec.models.states import BytePolicy
from spec.models.transformer import Transformer
from spec.models.values import Operation
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.stages import check_stages, pieces, sends, to_sum
from spec.plans.compose import Product


@dataclass(frozen=True)
class Weights:
    """Weights whose gradients are summed over the same axes, and the verdict on their schedule."""

    axes: tuple[str, ...]  # that the schedule is about
    names: tuple[str, ...]
    checked: Checked

    def sections(self) -> tuple[Section, ...]:
        """What was found of their schedule."""
        along = " x ".join(self.axes) if self.axes else "no axis"
        what = f"{counted(len(self.names), 'weight')} ({_some(self.names)}), placed along {along}"
        verdict = self.checked.verdict
        kinds = in_words(self.checked.kinds)
        wrong = self.checked.wrong
        where = f"line {wrong.number}, " if wrong and wrong.number else ""
        said = f"accepted{kinds}" if verdict.accepted else f"rejected: {where}{self.checked.what}"
        return self.checked.sections(f"{what}: {said}")


PlaceOf = Callable[[object], int | None]


@dataclass(frozen=True)
class CheckedStep:
    """What was found of a step, derived or of a file. Of an opaque model its one schedule says all."""

    text: str
    step: Step
    wrong: str = ""  # with a program, or with what is summed; empty if nothing is
    at: int | None = None  # the line of a file that this is on
    weights: tuple[Weights, ...] = ()
    layers: str = ""  # of which kind: gpt, llama, or what a configuration is of
    experts: bool = False  # whether the layers have them
    of_a_kind: bool = False  # whether sizes of the model were not said

    @property
    def lines_of(self) -> dict[str, int]:
        """How many lines the program of each part has."""
        return {program.part.name: len(program.lines) for program in self.step.programs}

    @property
    def schedules(self) -> tuple[Checked, ...]:
        """The schedules of its weights."""
        return tuple(each.checked for each in self.weights)

    @property
    def accepted(self) -> bool:
        return not self.wrong and all(each.accepted for each in self.schedules)

    @property
    def proof_is_of(self) -> str:
        """What a proof is of, if it is not of all."""
        return "" if self.step.is_opaque else "schedules of weights: "

    @property
    def headline(self) -> str:
        """Whether it is accepted, and of which layers, if they are only a kind."""
        verdict = "accepted" if self.accepted else "rejected"
        of = f"{self.layers} layers{' with experts' if self.experts else ''}"
        kind = f", for {of} that it cuts evenly (see --block, --config)" if self.of_a_kind else ""
        where = f"{self.text}, line {self.at}" if self.at else self.text
        return f"{where}: {verdict}{kind}"

    def report(self) -> Report:
        """The same as a report."""
        of = self.schedules[0] if self.step.is_opaque and self.schedules else self
        return Report("check", of.headline, of.facts(), of.sections(), of.data(), self.accepted)

    def facts(self) -> tuple[str, ...]:
        """What was found of its programs."""
        return (self.wrong,) if self.wrong else tuple(self._of_programs())

    def _of_programs(self) -> Iterator[str]:
        programs = ", ".join(f"{name} {number}" for name, number in self.lines_of.items())
        yield f"programs accepted, whatever the sizes; lines: {programs}"
        if self.step.shared:
            yield f"several stages use {', '.join(self.step.shared)}: their gradients are summed"
        for index, axes in cut_twice(self.step).items():
            cut = f"{index} is cut along {' x '.join(axes)}"
            yield f"{cut}, the first outermost: each device has one contiguous chunk"

    def sections(self) -> tuple[Section, ...]:
        """What was found of each group of weights."""
        return tuple(section for found in self.weights for section in found.sections())

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "strategy": self.text,
            "accepted": self.accepted,
            "layers": {"kind": self.layers, "experts": self.experts},
            "programs": {"lines": self.lines_of, "wrong": self.wrong or None, "line": self.at},
            "shared": list(self.step.shared),
            "weights": [
                {"axes": list(w.axes), "names": list(w.names), "schedule": w.checked.data()}
                for w in self.weights
            ],
        }


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:2]) + (", ..." if len(names) > 2 else "")


def check_product(
    text: str,
    product: Product,
    model: Transformer,
    sizes: dict[str, int] | None,
    micro_steps: int | None,
    policy: BytePolicy | None,
) -> CheckedStep:
    """Check the derived step of a product of strategies, for a kind of model.

    Programs do not depend on sizes, and what stages send and sum not on how many layers each has: a
    layer for each of two shows it (claim E11). Schedules are checked for `sizes`, or for every number
    of devices along each axis; without a policy, for every kind of optimizer.
    """
    step = derive_step(product, parts(model))
    stages = min(2, model.layers) if product.pipe else 1
    placed = pieces(replace(model, layers=stages), Pipeline(Order.ONE_F_ONE_B, stages, 1))
    if sizes is not None and product.pipe:  # what stages share, the first and the last have
        sizes = sizes | {product.pipe: min(2, sizes[product.pipe])}
    try:
        check_stages(placed, sends(placed), to_sum(placed))
    except LayoutError as error:
        return CheckedStep(text, step, str(error))
    most = max((group.schedule for group in step.groups), key=lambda schedule: len(schedule.axes))
    sizes_given(most, sizes, micro_steps, product.axes)  # too many axes are told at once

    def checked(_: int, schedule: Schedule) -> Checked:
        given = sizes_given(schedule, sizes, micro_steps, product.axes)
        return check_schedule(text, schedule, given, policy)

    return checked_step(text, step, checked)


def checked_step(
    text: str, step: Step, checked: Callable[[int, Schedule], Checked], place: PlaceOf | None = None
) -> CheckedStep:
    """What is found of a step. `checked`: of the schedule of a group, and its number. `place`: the
    line of a file on which what a LayoutError is about stands.
    """
    try:
        step = check_step(step)
    except LayoutError as error:
        line = error.at[1] if isinstance(error.at, tuple) else None
        what = f"{line}: {error}" if isinstance(line, Operation | Move) else str(error)
        return CheckedStep(text, step, what, place(error.at) if place else None)
    found = []
    for number, group in enumerate(step.groups):
        found.append(Weights(group.schedule.axes, group.weights, checked(number, group.schedule)))
    return CheckedStep(text, step, weights=tuple(found))
