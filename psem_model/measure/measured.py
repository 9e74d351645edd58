"""A simulated run beside its prediction: every figure of both, and whether the run is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psem_model.check.placements import NO_COPY
from psem_model.simulator import Floating
from psem_model.text.figures import counted, divergence_json, divergence_text
from psem_model.text.report import Column, Quantity, Report, Row, Section
from spec.arithmetic import Number
from spec.verdict import Verdict

MODULAR, EXACT, FLOAT = ARITHMETICS = ("modular", "exact", "float64")


@dataclass(frozen=True)
class Run:
    """How a plan is run: so many steps, in an arithmetic, with data from a seed."""

    steps: int = 1
    arithmetic: str = MODULAR
    seed: int = 0


@dataclass(frozen=True)
class Figure:
    """One number of a run, per device, and what is predicted."""

    key: str
    words: str
    simulated: Number
    predicted: Number

    @property
    def equal(self) -> bool:
        return bool(self.simulated == self.predicted)


@dataclass(frozen=True)
class Measured:
    """A run beside its prediction.

    `stages`: the figures of each. `divergence`: where the run first differs from the single device.
    `verdict`: of a schedule that is rejected. `inputs`: for programs.
    """

    text: str
    title: str
    facts: tuple[str, ...]
    run: Run
    inputs: Mapping[str, Any]
    stages: tuple[tuple[Figure, ...], ...]
    of_stages: bool  # whether programs are told of stages, or of figures alone
    not_counted: str
    divergence: Any
    verdict: Verdict | None
    for_want_of_a_copy: bool = False  # it would be accepted if the optimizer state had the weights
    likely: tuple[str, ...] = ()  # why figures are not as predicted, where they are not
    remarks: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Whether every resting copy was the single device's after every step."""
        return self.divergence is None

    @property
    def unequal(self) -> list[tuple[int, Figure]]:
        """Figures that are not as predicted, with their stage."""
        return [(k, f) for k, stage in enumerate(self.stages) for f in stage if not f.equal]

    @property
    def as_predicted(self) -> bool:
        """Whether it matches, every figure is the predicted one, and the verdict accepts."""
        return self.matches and not self.unequal and self.verdict is None

    def report(self) -> Report:
        """The same as a report."""
        run = self.run
        ran = f"{counted(run.steps, 'step')} in {run.arithmetic} arithmetic, seed {run.seed}"
        several = len(self.stages) > 1
        sections = tuple(
            _section(stage, f"per device of stage {k}" if several else "per device")
            for k, stage in enumerate(self.stages)
        )
        said = Section("", notes=(f"{self.not_counted}", *self._comparison()))
        return Report(
            "simulate",
            self.title,
            (*self.facts, ran),
            (*sections, said),
            self._data(),
            self.as_predicted,
        )

    def _comparison(self) -> Iterator[str]:
        reason = [] if self.verdict is None else [self.verdict.reason]
        if self.divergence is not None:
            yield f"the run diverges: {divergence_text(self.divergence)}"
            yield from (f"the verdict: {r}" for r in reason)
        else:
            after = "the step" if self.run.steps == 1 else f"each of {self.run.steps:,} steps"
            to = f" to a relative {Floating.tolerance:g}" if self.run.arithmetic == FLOAT else ""
            nearly = to and f",{to}"
            yield f"every copy of every parameter is that of the single device after {after}{nearly}"
            several = len(self.stages) > 1
            wrong = [f"stage {k}: {f.words}" if several else f.words for k, f in self.unequal]
            if wrong:
                yield "; ".join([f"but not as predicted: {wrong[0]}", *wrong[1:], *self.likely])
            yield from (f"the run matches{to}, but the verdict rejects: {r}" for r in reason)
        yield from [NO_COPY] if self.for_want_of_a_copy else []
        yield from self.remarks

    def _data(self) -> dict[str, Any]:
        """For a program."""
        stages = [{f.key: _data(f) for f in stage} for stage in self.stages]
        verdict = self.verdict
        return {
            "strategy": self.text,
            "inputs": self.inputs,
            **({"stages": stages} if self.of_stages else {"figures": stages[0]}),
            "matches": self.matches,
            "divergence": None if self.divergence is None else divergence_json(self.divergence),
            "verdict": verdict
            and {
                "rule": verdict.rule,
                "reason": verdict.reason,
                "for_want_of_a_copy": self.for_want_of_a_copy,
            },
        }


def _section(figures: tuple[Figure, ...], title: str) -> Section:
    columns = (
        Column(""),
        Column("simulated", right=True),
        Column("predicted", right=True),
        Column(""),
    )
    rows = tuple(
        Row(
            (f.words, _number(f.simulated), _number(f.predicted), "equal" if f.equal else "differs"),
            marked=not f.equal,
        )
        for f in figures
    )
    return Section(title, columns, rows, titled=True)


def _number(value: Number) -> Quantity:
    return Quantity(value)


def _data(figure: Figure) -> dict[str, Any]:
    simulated, predicted = Quantity(figure.simulated), Quantity(figure.predicted)
    return {"simulated": simulated, "predicted": predicted, "equal": figure.equal}
