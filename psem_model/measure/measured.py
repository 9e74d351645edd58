"""A simulated run beside its prediction: every figure of both, and whether the run is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psem_model.check.placements import BY_HAND, NO_COPY, NotRealisable
from psem_model.predict.plan import Plan
from psem_model.predict.realised import without_effect
from psem_model.predict.rounding import data as rounded
from psem_model.predict.rounding import in_words
from psem_model.predict.said import mesh_said
from psem_model.simulator import Floating
from psem_model.text.figures import counted, divergence_json, divergence_text, in_bytes
from psem_model.text.report import Column, Quantity, Report, Row, Section
from spec.meaning.match import Divergence
from spec.numbers.arithmetic import Number

NOT_DERIVED = f"no right step is derived of this placement; {BY_HAND}"
STATISTICS_OF = "activations, statistics and samples, whose size is the model's"
LIKELY = "likely a buffer of which slices are made again, or a span that is not what its operation does"
AT_MOST = (
    "what devices exchange for experts is predicted at most: it depends on which ones tokens choose, "
    "as evenly as they do"
)
MODULAR, EXACT, FLOAT = ARITHMETICS = ("modular", "exact", "float64")


@dataclass(frozen=True)
class Run:
    """How a plan is run: so many steps, in an arithmetic, with data from a seed."""

    steps: int = 1
    arithmetic: str = MODULAR
    seed: int = 0


@dataclass(frozen=True)
class Figure:
    """One number of a run, per device, and what is predicted; `at_most`: of any run."""

    key: str
    words: str
    simulated: Number
    predicted: Number
    at_most: bool = False

    @property
    def equal(self) -> bool:
        return bool(self.simulated == self.predicted)

    @property
    def as_predicted(self) -> bool:
        """Whether it is what is predicted, or no more, if that is predicted at most."""
        return self.equal or (self.at_most and bool(self.simulated < self.predicted))

    @property
    def said(self) -> str:
        """How it is, beside what is predicted."""
        return "equal" if self.equal else "no more" if self.as_predicted else "differs"


@dataclass(frozen=True)
class Measured:
    """A plan's run beside its prediction.

    `stages`: the figures of each. `divergence`: where the run first differs from the single device.
    `no`: why the plan is rejected, if it is.
    """

    plan: Plan
    run: Run
    stages: tuple[tuple[Figure, ...], ...]
    divergence: Divergence | None
    no: NotRealisable | None

    @property
    def matches(self) -> bool:
        """Whether every resting copy was the single device's after every step."""
        return self.divergence is None

    @property
    def unequal(self) -> list[tuple[int, Figure]]:
        """Figures that are not as predicted, with their stage."""
        return [(k, f) for k, stage in enumerate(self.stages) for f in stage if not f.as_predicted]

    @property
    def as_predicted(self) -> bool:
        """Whether it matches, every figure is the predicted one, and the verdict accepts."""
        return self.matches and not self.unequal and self.no is None

    @property
    def name(self) -> str:
        """The product, with the sizes of its axes; a placement, or a file's name."""
        plan, mesh = self.plan, self.plan.mesh
        if plan.opaque or plan.written:
            return plan.text
        sized = ((f.name, ", ".join(f"{a}={mesh[a]}" for a in f.axes)) for f in plan.product.factors)
        return " * ".join(f"{name}({sizes})" for name, sizes in sized)

    def facts(self) -> Iterator[str]:
        """What is run, and how."""
        plan, run = self.plan, self.run
        layers = ""
        if plan.perceptron:
            layers = f" (a perceptron of {plan.perceptron[0]} layers of {plan.perceptron[1]})"
        units = f" in units of {plan.unit or plan.psi:,}" if plan.opaque else ""
        steps = counted(plan.micro_steps, "micro-step")
        yield f"{plan.psi:,} parameters{layers}{units}; {mesh_said(plan)}; {steps} a step"
        yield f"{counted(run.steps, 'step')} in {run.arithmetic} arithmetic, seed {run.seed}"

    def report(self) -> Report:
        """The same as a report."""
        several = len(self.stages) > 1
        sections = tuple(
            _section(stage, f"per device of stage {k}" if several else "per device")
            for k, stage in enumerate(self.stages)
        )
        not_counted = [f"not counted: {STATISTICS_OF}"] if self.plan.opaque else []
        at_most = [AT_MOST] if any(f.at_most for stage in self.stages for f in stage) else []
        said = Section("", notes=(*not_counted, *at_most, *self._comparison()))
        moot = without_effect(self.plan)
        facts, data = (*self.facts(), *moot), {**self._data(), "without_effect": moot}
        return Report("simulate", self.name, facts, (*sections, said), data, self.as_predicted)

    def _comparison(self) -> Iterator[str]:
        reason = [] if self.no is None else [self.no.reason]
        if self.divergence:
            yield f"the run diverges: {divergence_text(self.divergence)}"
            yield from (f"the verdict: {r}" for r in reason)
        else:
            after = "the step" if self.run.steps == 1 else f"each of {self.run.steps:,} steps"
            to = f" to a relative {Floating.tolerance:g}" if self.run.arithmetic == FLOAT else ""
            nearly = to and f",{to}"
            yield f"every copy of every parameter is that of the single device after {after}{nearly}"
            name = self.plan.profile.name
            for words in in_words(self.plan):
                yield f"the run rounds nothing; by the profile {name} these are rounded {words}"
            several = len(self.stages) > 1
            wrong = [f"stage {k}: {f.words}" if several else f.words for k, f in self.unequal]
            if wrong:
                likely = [LIKELY] if self.plan.opaque else []
                yield "; ".join([f"but not as predicted: {wrong[0]}", *wrong[1:], *likely])
            yield from (f"the run matches{to}, but the verdict rejects: {r}" for r in reason)
        if self.no and self.no.for_want_of_a_copy:
            yield NO_COPY
            yield from [] if self.no.written else [NOT_DERIVED]

    def _data(self) -> dict[str, Any]:
        """For a program."""
        plan, run, no = self.plan, self.run, self.no
        return {
            "strategy": self.name,
            "inputs": {
                "psi": plan.psi,
                "unit": plan.unit or (plan.psi if plan.opaque else None),
                "mlp": plan.perceptron,
                "devices": plan.devices,
                "mesh": dict(plan.mesh),
                "micro_batch": plan.micro_batch,
                "sequence": plan.sequence,
                "accumulate": plan.micro_steps,
                "bytes": in_bytes(plan.policy),
                "profile": plan.profile.name,
                "recompute": plan.again,
                "offload_activations": plan.offload,
                "steps": run.steps,
                "arithmetic": run.arithmetic,
                "seed": run.seed,
            },
            "stages": [{f.key: _data(f) for f in stage} for stage in self.stages],
            "rounded": rounded(plan),
            "matches": self.matches,
            "divergence": self.divergence and divergence_json(self.divergence),
            "verdict": no
            and {
                "rule": no.verdict.rule,
                "reason": no.reason,
                "for_want_of_a_copy": no.for_want_of_a_copy,
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
            (f.words, Quantity(f.simulated), Quantity(f.predicted), f.said),
            marked=not f.as_predicted,
        )
        for f in figures
    )
    return Section(title, columns, rows, titled=True)


def _data(figure: Figure) -> dict[str, Any]:
    simulated, predicted = Quantity(figure.simulated), Quantity(figure.predicted)
    found = {"simulated": simulated, "predicted": predicted, "equal": figure.equal}
    return found | {"at_most": figure.at_most}
