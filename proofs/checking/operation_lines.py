"""The lines of T2 and T4 that operations of a schedule are: `execute`, over the places of values.

Each value that an operation makes is in a place of its own, and what the specification does to make it
is one line, or one after a copy. So there is no second list of what an operation does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proofs.checking.lines import BACKWARD, UPDATE
from spec.devices.mesh import Axes
from spec.language.schedule import MICRO_STEPS, Monomial, Schedule
from spec.models.states import BytePolicy
from spec.models.training import Loss
from spec.numbers.arithmetic import Number

NOWHERE = -1
NORM, COUNT = "norm", "count"


class NotCovered(Exception):
    """What a schedule does of which T4 says nothing."""


@dataclass(frozen=True)
class LineAt:
    """One line of the flat run: of a kind of `lines.MOVES`, a backward, an update, a norm or a count.

    A backward drops its second source, the activations; an update leaves the moments there, and reads
    a norm in `fourth`, a count in `fifth`. Of tied parameters, the contributions of the second use are
    those of as many more micro-steps. `axis`: along which it is done, of a norm the `axes`; `shift`:
    how many devices before an element's owner the one is that takes it. `said`: the operation.
    """

    kind: str
    target: int
    source: int = NOWHERE
    second: int = NOWHERE
    third: int = NOWHERE
    factor: Number = 1
    step: int = 0
    micro_step: int = 0
    axis: str = ""
    axes: Axes = ()
    shift: int = 0
    fourth: int = NOWHERE
    fifth: int = NOWHERE
    said: str = field(default="", compare=False)


@dataclass(frozen=True)
class NormOf:
    """A square norm before a line is made of it: the slices that it is of, and the axes summed over.

    Along axes that the schedule is not about there are other parts of the weight. T2's norm adds up
    other weights; here one schedule is run, and what others add, where it is right, is a part of the
    function.
    """

    slices: int
    along: Axes
    summed: Axes = ()
    count: int = NOWHERE  # by which the gradient is divided


@dataclass(frozen=True)
class Applied:
    """A gradient that is divided by a count, or clipped: to T2 a gradient, and numbers that the update
    reads beside it; their places.
    """

    gradient: int
    count: int = NOWHERE
    norm: int = NOWHERE


class Places:
    """A domain of values (`spec.meaning.semantics.Domain`) that are places, written by lines.

    Raises NotCovered.
    """

    def __init__(
        self, schedule: Schedule, mesh: Mapping[str, Number], micro_steps: int, policy: BytePolicy
    ) -> None:
        training = schedule.training
        if training.statistics:
            raise NotCovered("statistics")
        self.schedule, self.mesh, self.micro_steps = schedule, mesh, micro_steps
        self.master, self.moments, self.step = policy.master, policy.k > 0, 0
        self.contributions = micro_steps * (2 if training.tied else 1)  # of a device to a gradient
        self.places = 0
        self.lines: list[LineAt] = []
        self.said = ""  # the operation that is executed
        # by place: what is cut along which axes, with zeros elsewhere; norms; what updates apply
        self.cut: dict[int, Axes] = {}
        self.norms: dict[int, NormOf] = {}
        self.applied: dict[int, Applied] = {}

    # ---------------------------------------------------------- what is done to values
    @property
    def zero(self) -> int:
        place = self._write("zero")
        self.cut[place] = ()
        return place

    def unknown(self, _: str) -> int:
        return self._place()  # never written

    def require_a_slice(self, *_: Any) -> None:
        """What is whole is cut: whether that is refused, the verdict says."""

    def sum(self, value: int, axis: str) -> int:
        norm = self.norms.get(value)
        own = axis in self.schedule.axes
        if norm and axis not in norm.summed and (axis in norm.along or not own):
            return self._named(self.norms, replace(norm, summed=(*norm.summed, axis)))
        if norm:
            raise NotCovered("sums of norms of whole gradients, or of norms that are summed already")
        return self._write("all_reduce", value, axis=axis)

    def owners(self, value: int, axis: str, shift: int = 0) -> int:
        return self._write("all_gather", value, axis=axis, shift=shift)

    def first(self, value: int, axis: str) -> int:
        if value in self.norms and axis not in self.schedule.axes:
            return value
        return self._write("broadcast", value, axis=axis)

    def replace(self, old: int, new: int, axes: Axes, shift: int = 0) -> int:
        of_zeros = self.cut.get(old) == () and not shift
        if new in self.applied:  # what is not divided or clipped beside it is no whole gradient
            applied = self.applied[new]
            beside = old if of_zeros else self._place()
            kept = self.replace(beside, applied.gradient, axes, shift)
            return self._named(self.applied, replace(applied, gradient=kept))
        along = (*self.cut.get(new, ()), *axes)
        for axis in axes:
            new = self._write("keep", new, self._copy(old), axis=axis, shift=shift)
        if of_zeros:
            self.cut[new] = along
        return new

    def add(self, value: int, other: int) -> int:
        return self._write("accumulate", other, self._copy(value))

    def scale(self, value: int, factor: Monomial) -> int:
        if not factor.number:
            return self.zero  # also of what is not known
        return self._write("scale", value, factor=factor.at(self.mesh, self.micro_steps))

    def forward(self, view: int, axes: Axes) -> int:
        return view

    def of_group(self, activations: int, axes: Axes) -> int:
        self._own_samples(axes)
        return activations

    def gradient(
        self, view: int, activations: int, micro_step: int, axes: Axes, tied: bool = False
    ) -> int:
        self._own_samples(axes)
        of = micro_step + self.micro_steps if tied else micro_step
        return self._write(BACKWARD.name, view, second=self._copy(activations), micro_step=of)

    def update(self, weight: int, moment: int, gradient: int) -> tuple[int, int]:
        """Of the sum over all samples: the optimizer may be any function of their mean, and clip."""
        applied = self.applied.get(gradient, Applied(gradient))
        training = self.schedule.training
        if (applied.norm != NOWHERE) > training.clip:
            raise NotCovered("clips in training that does not clip")
        if (applied.count != NOWHERE) > (training.loss is Loss.TOKEN_MEAN):
            raise NotCovered("divisions in training that does not divide by a count")
        summed, norm = self._of_all_samples(applied.gradient), self._norm(applied)
        moments = self._copy(moment)
        numbers = {"fourth": norm, "fifth": applied.count}
        made = self._write(UPDATE.name, weight, second=moments, third=summed, **numbers)
        return made, moments

    def _of_all_samples(self, gradient: int) -> int:
        """A mean over all samples as the sum."""
        if self.schedule.training.loss is not Loss.MEAN:
            return gradient
        all_samples = (*self.schedule.axes, MICRO_STEPS)
        return self.scale(gradient, Monomial(powers=tuple((name, 1) for name in all_samples)))

    def square_norm(self, gradient: int) -> int:
        of = self.applied.get(gradient, Applied(gradient))
        if of.norm != NOWHERE:
            raise NotCovered("norms of clipped gradients")
        along = self.cut.get(of.gradient, ())
        norm = NormOf(self._of_all_samples(of.gradient), along, count=of.count)
        return self._named(self.norms, norm)

    def _norm(self, applied: Applied) -> int:
        """The place of the norm by which a gradient is clipped, after the line that makes it."""
        if applied.norm not in self.norms:
            return applied.norm
        norm = self.norms[applied.norm]
        if norm.count != applied.count:
            raise NotCovered("norms of gradients that are divided otherwise than those they clip")
        axes = tuple(axis for axis in norm.summed if axis in self.schedule.axes)
        return self._write(NORM, norm.slices, axes=axes)

    def clip(self, gradient: int, square_norm: int) -> int:
        return self._apply(gradient, norm=square_norm)

    def tokens(self, micro_step: int) -> int:
        if self.schedule.training.tied:  # a device contributes more often than it counts
            raise NotCovered("counts of tokens beside tied parameters")
        return self._write(COUNT, micro_step=micro_step)

    def divide(self, value: int, count: int) -> int:
        return self._apply(value, count=self._copy(count))

    def _apply(self, value: int, **number: int) -> int:
        """A gradient that is divided, and then clipped, at most once."""
        before = self.applied.get(value)
        before = before or Applied(self._copy(value))
        if before.norm != NOWHERE or ("count" in number and before.count != NOWHERE):
            raise NotCovered("gradients that are divided or clipped again")
        return self._named(self.applied, replace(before, **number))

    def _named(self, named: dict[int, Any], value: Any) -> int:
        """A place of which something is known that no line makes."""
        place = self._place()
        named[place] = value
        return place

    def _statistics(self, *_: Any) -> int:
        raise NotCovered("statistics")

    statistic = _statistics

    def _own_samples(self, axes: Axes) -> None:
        if axes:
            raise NotCovered("samples that several devices share")

    # ------------------------------------------------------------------ places, lines
    def _place(self) -> int:
        self.places += 1
        return self.places - 1

    def _copy(self, value: int) -> int:
        return self._write("copy", value)

    def _write(self, kind: str, source: int = NOWHERE, target: int | None = None, **more: Any) -> int:
        read = {source, more.get("second"), more.get("third")} | {target}
        for what, places in (
            ("a norm than to clip", self.norms),
            ("a gradient that is divided or clipped than an update", self.applied),
        ):
            if not read.isdisjoint(places):
                raise NotCovered(f"other uses of {what}")
        target = self._place() if target is None else target
        self.lines.append(LineAt(kind, target, source, step=self.step, said=self.said, **more))
        return target
