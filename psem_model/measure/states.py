"""Simulated runs beside predictions: every figure of both, and whether the run is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from psem_model.check.schedules import MANY
from psem_model.predict.states import NO_COPY, predict_schedule, wants_a_copy
from psem_model.simulator import Floating, Mlp, Run, simulate
from psem_model.simulator.passes import passes
from psem_model.text.errors import BadInput, quoted
from psem_model.text.figures import (
    counted,
    divergence_json,
    divergence_text,
    memory,
    plain,
    quantity,
    table,
)
from spec.arithmetic import Number, ceil_div
from spec.memory import MODEL_STATES, Sizes
from spec.schedule import Schedule
from spec.states import BytePolicy
from spec.verdict import Verdict, check

LARGEST = 16 * 2**30  # bytes of all devices' arrays
MODULAR, EXACT, FLOAT = ARITHMETICS = ("modular", "exact", "float64")
PER_ELEMENT, PER_FRACTION, GROWTH = 100, 150, 2.5  # bytes at the fullest moment; per step, fractions
PER_UNIT, PER_LINK, PER_OPERATION, PER_BATCH = 5000, 32, 500, 400  # bytes beside them
NOT_COUNTED = "not counted: activations, statistics and samples, whose size is the model's"
JUDGED = 100  # micro-steps up to which the verdict on a run that matches takes no time
LIKELY = "likely a buffer that is never released, or a span that is not what its operation does"
MLP = re.compile(r"([0-9]{1,6})x([0-9]{1,6})")


@dataclass(frozen=True)
class Inputs:
    """What is simulated. `mlp`: layers and width of a multi-layer perceptron, if that is the model."""

    schedule: Schedule
    mesh: Mapping[str, int]
    psi: int
    steps: int
    micro_steps: int
    unit: int | None
    policy: BytePolicy
    arithmetic: str
    seed: int
    mlp: tuple[int, int] | None = None

    @property
    def devices(self) -> int:
        return prod(self.mesh.values())

    @property
    def passes(self) -> int:
        """How often the run's progress is told."""
        return self.steps * len(passes(self.schedule, self.micro_steps))

    def require_room(self) -> None:
        """Raise BadInput if what the devices hold would not fit in memory."""
        of_a_number = PER_ELEMENT
        if self.arithmetic == EXACT:
            of_a_number = int(PER_FRACTION * GROWTH ** min(self.steps, 50))
        operations = len(self.schedule.micro_step) + len(self.schedule.finish)
        size = "--psi" if self.mlp is None else "--mlp"
        parts = {
            f"--devices, {size}": self.devices * self.psi * of_a_number,
            f"{size}, --unit": ceil_div(self.psi, self.unit or self.psi) * PER_UNIT,
            "--devices": self.devices**2 * PER_LINK,
            "--accumulate": self.micro_steps * (operations * PER_OPERATION + self.devices * PER_BATCH),
        }
        takes = sum(parts.values())
        if takes > LARGEST:
            most = max(parts, key=lambda options: parts[options])
            raise BadInput(
                f"{most}: given {counted(self.devices, 'device')} with "
                f"{counted(self.psi, 'parameter')} each, {counted(self.steps, 'step')} of "
                f"{counted(self.micro_steps, 'micro-step')} in {self.arithmetic} arithmetic, which "
                f"take about {memory(takes)}; expected at most {memory(LARGEST)} to simulate"
            )


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
class Simulated:
    """A run beside its prediction. `verdict`: that of a schedule that is rejected."""

    name: str
    title: str
    inputs: Inputs
    run: Run
    figures: list[Figure]
    verdict: Verdict | None
    for_want_of_a_copy: bool = False  # it would be accepted if the optimizer state had the weights

    @property
    def as_predicted(self) -> bool:
        """Whether it matches, every figure is the predicted one, and the verdict accepts."""
        equal = all(figure.equal for figure in self.figures)
        return self.run.matches and equal and self.verdict is None

    def lines(self) -> list[str]:
        """In words."""
        i = self.inputs
        mesh = " x ".join(f"{axis} {size:,}" for axis, size in i.mesh.items())
        model = "" if i.mlp is None else f" (a perceptron of {i.mlp[0]} layers of {i.mlp[1]})"
        rows = [("per device", "simulated", "predicted", "")]
        for f in self.figures:
            words = "equal" if f.equal else "differs"
            rows.append((f.words, plain(f.simulated), plain(f.predicted), words))
        return [
            self.title,
            f"  {i.psi:,} parameters{model} in units of {i.unit or i.psi:,}; {mesh}; "
            f"{counted(i.micro_steps, 'micro-step')} a step",
            f"  {counted(i.steps, 'step')} in {i.arithmetic} arithmetic, seed {i.seed}",
            "",
            *table(rows, right=(1, 2)),
            f"  {NOT_COUNTED}",
            "",
            *self._comparison(),
        ]

    def _comparison(self) -> list[str]:
        exactly = self.inputs.arithmetic != FLOAT
        if self.run.divergence is None:
            after = "the step" if self.inputs.steps == 1 else f"each of {self.inputs.steps:,} steps"
            nearly = "" if exactly else f", to a relative {Floating.tolerance:g}"
            same = f"every copy of every parameter is that of the single device after {after}{nearly}"
            wrong = [figure.words for figure in self.figures if not figure.equal]
            lines = [same] + ([f"but not as predicted: {'; '.join(wrong)}; {LIKELY}"] if wrong else [])
            if self.verdict:
                how = "" if exactly else f" to a relative {Floating.tolerance:g}"
                lines.append(f"the run matches{how}, but the verdict rejects: {self.verdict.reason}")
            if self.inputs.micro_steps > JUDGED:
                lines.append(f"no verdict with more than {JUDGED} micro-steps: psem check gives it")
        else:
            lines = [f"the run diverges: {divergence_text(self.run.divergence)}"]
            lines += [f"the verdict: {self.verdict.reason}"] if self.verdict else []
        return lines + ([NO_COPY] if self.for_want_of_a_copy else [])

    def json(self) -> dict[str, Any]:
        """For a program."""
        i, divergence, verdict = self.inputs, self.run.divergence, self.verdict
        return {
            "strategy": self.name,
            "inputs": {
                "psi": i.psi,
                "unit": i.unit or i.psi,
                "mlp": i.mlp,
                "devices": i.devices,
                "mesh": dict(i.mesh),
                "steps": i.steps,
                "accumulate": i.micro_steps,
                "bytes": {k: float(getattr(i.policy, k.lower())) for k in ("w", "g", "K")},
                "arithmetic": i.arithmetic,
                "seed": i.seed,
            },
            "figures": {
                f.key: {
                    "simulated": quantity(f.simulated),
                    "predicted": quantity(f.predicted),
                    "equal": f.equal,
                }
                for f in self.figures
            },
            "matches": self.run.matches,
            "divergence": None if divergence is None else divergence_json(divergence),
            "verdict": verdict
            and {
                "rule": verdict.rule,
                "reason": verdict.reason,
                "for_want_of_a_copy": self.for_want_of_a_copy,
            },
        }


def simulated(
    name: str, title: str, inputs: Inputs, progress: Callable[[int], None] | None = None
) -> Simulated:
    """Simulate a schedule and predict it. Raises BadInput if it is not one for the model."""
    i = inputs
    try:
        run = simulate(
            i.schedule,
            i.mesh,
            i.psi,
            steps=i.steps,
            micro_steps=i.micro_steps,
            unit=i.unit,
            policy=i.policy,
            arithmetic=i.arithmetic,
            model=None if i.mlp is None else Mlp(i.mlp[1]),
            seed=i.seed,
            progress=progress,
        )
    except ValueError as error:
        if i.mlp is None:
            raise
        raise BadInput(f"--mlp: this schedule is not for a perceptron: {error}") from None
    found = Simulated(name, title, inputs, run, figures(inputs, run), None)
    if run.matches and i.micro_steps > JUDGED:
        return found
    # a run may match by luck: within the tolerance, or where its sizes do not show what is wrong
    case = (i.schedule, i.mesh, min(i.micro_steps, MANY), i.policy)
    verdict = check(*case)
    if verdict.accepted:
        return found
    return replace(found, verdict=verdict, for_want_of_a_copy=wants_a_copy(*case))


def figures(inputs: Inputs, run: Run) -> list[Figure]:
    """What is counted, per device, and what is predicted for it."""
    sizes = Sizes(inputs.psi, inputs.mesh, inputs.policy, inputs.unit)
    costs = predict_schedule(inputs.schedule, sizes, inputs.micro_steps)
    at_rest = [
        Figure(s.value, f"{s.value} at rest, bytes", run.resting[s], costs.resting[s])
        for s in MODEL_STATES
    ]
    return [
        *at_rest,
        Figure("resting", "all at rest, bytes", sum(run.resting.values()), costs.total),
        Figure("peak", "peak, bytes", run.peak, costs.peak),
        Figure("host", "on the host, bytes", run.host, costs.host),
        Figure("elements", "sent per step, elements", run.sent_elements, costs.elements),
        Figure("bytes", "sent per step, bytes", run.sent, costs.bytes),
        Figure("host_bytes", "over the host link, bytes", run.host_link, costs.host_bytes),
    ]


def mlp_of(given: str) -> tuple[int, int]:
    """Layers and width from "4x16"."""
    sizes = MLP.fullmatch(given.lower())
    layers, width = (int(n) for n in sizes.groups()) if sizes else (0, 0)
    if not (layers and width):
        raise BadInput(f"--mlp: given {quoted(given)}; expected layers x width, such as 4x16")
    return layers, width


def layer_size(width: int) -> int:
    """Parameters of a perceptron's layer: weights and biases."""
    return width * (width + 1)
