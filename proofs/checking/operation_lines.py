"""The lines of T2 and T4 that operations of a schedule are: `execute`, over the places of values.

Each value that an operation makes is in a place of its own, and what the specification does to make it
is one line, or one after a copy. So there is no second list of what an operation does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from proofs.checking.lines import BACKWARD, UPDATE
from spec.devices.mesh import Axes
from spec.language.schedule import MICRO_STEPS, Monomial, Schedule
from spec.models.states import BytePolicy
from spec.models.training import Loss
from spec.numbers.arithmetic import Number

NOWHERE = -1
NORM = "norm"


class NotCovered(Exception):
    """What a schedule does of which T4 says nothing."""


@dataclass(frozen=True)
class LineAt:
    """One line of the flat run: of a kind of `lines.MOVES`, a backward, an update, a norm; its places.

    A backward drops its second source, the activations; an update leaves the moments there, and reads
    a norm in `fourth`. Of tied parameters, the contributions of the second use are those of as many
    more micro-steps. `axis`: along which it is done, of a norm the `axes`; `shift`: how many devices
    before an element's owner the one is that takes it.
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


@dataclass(frozen=True)
class NormOf:
    """A square norm before a line is made of it: the slices that it is of, and the axes summed over."""

    slices: int
    along: Axes
    summed: Axes = ()


@dataclass(frozen=True)
class Clipped:
    """A clipped gradient, to T2 a gradient and a norm that the update reads: their places."""

    gradient: int
    norm: int


class Places:
    """A domain of values (`spec.meaning.semantics.Domain`) that are places, written by lines.

    Raises NotCovered.
    """

    def __init__(
        self, schedule: Schedule, mesh: Mapping[str, Number], micro_steps: int, policy: BytePolicy
    ) -> None:
        training = schedule.training
        for name, used in (
            ("an optimizer without moments", policy.k == 0),
            ("statistics", training.statistics),
            ("counts of tokens", training.loss is Loss.TOKEN_MEAN),
        ):
            if used:
                raise NotCovered(name)
        self.schedule, self.mesh, self.micro_steps = schedule, mesh, micro_steps
        self.master, self.step = policy.master, 0
        self.contributions = micro_steps * (2 if training.tied else 1)  # of a device to a gradient
        self.places = 0
        self.lines: list[LineAt] = []
        # by place: what is cut along which axes, with zeros elsewhere; norms; clipped gradients
        self.cut: dict[int, Axes] = {}
        self.norms: dict[int, NormOf] = {}
        self.clipped: dict[int, Clipped] = {}

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
        if norm and axis in norm.along and axis not in norm.summed:
            return self._named(self.norms, replace(norm, summed=(*norm.summed, axis)))
        if norm:
            raise NotCovered("sums of norms but over the slices of one weight")
        return self._write("all_reduce", value, axis=axis)

    def owners(self, value: int, axis: str, shift: int = 0) -> int:
        return self._write("all_gather", value, axis=axis, shift=shift)

    def first(self, value: int, axis: str) -> int:
        return self._write("broadcast", value, axis=axis)

    def replace(self, old: int, new: int, axes: Axes, shift: int = 0) -> int:
        if new in self.clipped:  # what is not clipped beside it is no whole gradient
            clipped = self.clipped[new]
            kept = self.replace(self._place(), clipped.gradient, axes, shift)
            return self._named(self.clipped, replace(clipped, gradient=kept))
        of_zeros = self.cut.get(old) == () and not shift
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
        return self._write("scale", value, factor=factor.value(self.mesh, self.micro_steps))

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
        if (gradient in self.clipped) > self.schedule.training.clip:
            raise NotCovered("clips in training without them")
        clipped = self.clipped.get(gradient, Clipped(gradient, NOWHERE))
        summed, norm = self._of_all_samples(clipped.gradient), self._norm(clipped.norm)
        moments = self._copy(moment)
        made = self._write(UPDATE.name, weight, second=moments, third=summed, fourth=norm)
        return made, moments

    def _of_all_samples(self, gradient: int) -> int:
        """A mean over all samples as the sum."""
        if self.schedule.training.loss is not Loss.MEAN:
            return gradient
        all_samples = (*self.schedule.axes, MICRO_STEPS)
        return self.scale(gradient, Monomial(sizes=tuple((name, 1) for name in all_samples)))

    def square_norm(self, gradient: int) -> int:
        along = self.cut.get(gradient, ())
        return self._named(self.norms, NormOf(self._of_all_samples(gradient), along))

    def _norm(self, place: int) -> int:
        """The place of a norm, after the line that makes it."""
        if place not in self.norms:
            return place
        norm = self.norms[place]
        return self._write(NORM, norm.slices, axes=norm.summed)

    def clip(self, gradient: int, square_norm: int) -> int:
        return self._named(self.clipped, Clipped(self._copy(gradient), square_norm))

    def _named(self, named: dict[int, Any], value: Any) -> int:
        """A place of which something is known that no line makes."""
        place = self._place()
        named[place] = value
        return place

    def _counts(self, *_: Any) -> int:
        raise NotCovered("counts of tokens")

    def _statistics(self, *_: Any) -> int:
        raise NotCovered("statistics")

    statistic = _statistics
    tokens, divide = _counts, _counts

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
        for what, places in (("norms", self.norms), ("clipped gradients", self.clipped)):
            if not read.isdisjoint(places):
                raise NotCovered(f"what is made of {what} but by an update")
        target = self._place() if target is None else target
        self.lines.append(LineAt(kind, target, source, step=self.step, **more))
        return target
