"""Products of strategies, simulated beside what is predicted, stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from psem_model.measure.product_figures import figures
from psem_model.measure.states import FLOAT, LARGEST, MODULAR, PER_ELEMENT, Figure
from psem_model.predict.models import PARTS, Group, ModelPlan
from psem_model.predict.states import NO_COPY, NotRealisable, require_realisable
from psem_model.reading.inputs import BadInput
from psem_model.reading.plans import require_places
from psem_model.simulator import Floating
from psem_model.simulator.functions import Functions, Real, Residues
from psem_model.simulator.placing import Placing
from psem_model.simulator.products import PlacedTransformer, RealDescent, ResiduesOfDescent
from psem_model.text.figures import (
    counted,
    divergence_json,
    divergence_text,
    memory,
    plain,
    quantity,
    table,
)
from spec.distribute import NOTHING, distribute
from spec.match import Divergence
from spec.programs import Axis, Program
from spec.schedule import Schedule
from spec.transformer import LAYER

ARITHMETICS: dict[tuple[str, bool], Callable[[], Functions]] = {  # and whether optimizers keep anything
    (MODULAR, True): Residues,
    (MODULAR, False): ResiduesOfDescent,
    (FLOAT, True): Real,
    (FLOAT, False): RealDescent,
}
MOST_STAGES = 512  # which take a minute
PER_ACTIVATION = 20  # bytes at the fullest moment for each byte that is kept
PER_PAIR = 64  # of devices, for each group of weights
NOT_COUNTED = "not counted: gathered parameters and gradients, as they pass"


@dataclass(frozen=True)
class ProductRun:
    """A run beside its prediction: figures of each stage, per device; where it first differs."""

    plan: ModelPlan
    steps: int
    arithmetic: str
    seed: int
    stages: tuple[tuple[Figure, ...], ...]
    divergence: Divergence | None
    refused: NotRealisable | None = None  # how the training states are placed

    @property
    def matches(self) -> bool:
        """Whether every resting copy was the single device's after every step."""
        return self.divergence is None

    @property
    def as_predicted(self) -> bool:
        """Whether it matches, every figure is the predicted one, and the verdict accepts."""
        return self.matches and not self.unequal and self.refused is None

    @property
    def unequal(self) -> list[tuple[int, Figure]]:
        """Figures that are not as predicted, with their stage."""
        return [(k, f) for k, stage in enumerate(self.stages) for f in stage if not f.equal]

    @property
    def name(self) -> str:
        mesh, factors = self.plan.mesh, self.plan.product.factors
        return " * ".join(f"{f.name}({', '.join(f'{a}={mesh[a]}' for a in f.axes)})" for f in factors)

    def lines(self) -> list[str]:
        """In words."""
        plan, m = self.plan, self.plan.pipe.micro_batches
        out = [
            self.name,
            f"  {plan.psi:,} parameters; {counted(prod(plan.mesh.values()), 'device')}; "
            f"{m:,} micro-batch{'' if m == 1 else 'es'} a step",
            f"  {counted(self.steps, 'step')} in {self.arithmetic} arithmetic, seed {self.seed}",
            "",
        ]
        for number, stage in enumerate(self.stages):
            of = f"per device of stage {number}" if len(self.stages) > 1 else "per device"
            rows = [(of, "simulated", "predicted", "")]
            for f in stage:
                words = "equal" if f.equal else "differs"
                rows.append((f.words, plain(f.simulated), plain(f.predicted), words))
            out += [*table(rows, right=(1, 2)), ""]
        return [*out, f"  {NOT_COUNTED}", "", *self._comparison()]

    def _comparison(self) -> list[str]:
        reason = [self.refused.verdict.reason] if self.refused else []
        if self.divergence:
            why = [NO_COPY] if self.refused and self.refused.for_want_of_a_copy else []
            return [
                f"the run diverges: {divergence_text(self.divergence)}",
                *(f"the verdict: {r}" for r in reason),
                *why,
            ]
        after = "the step" if self.steps == 1 else f"each of {self.steps:,} steps"
        nearly = f", to a relative {Floating.tolerance:g}" if self.arithmetic == FLOAT else ""
        wrong = [f"stage {k}: {figure.words}" for k, figure in self.unequal]
        return [
            f"every copy of every parameter is that of the single device after {after}{nearly}",
            *([f"but not as predicted: {'; '.join(wrong)}"] if wrong else []),
            *(
                f"the run matches{nearly.removeprefix(',')}, but the verdict rejects: {r}"
                for r in reason
            ),
        ]

    def json(self) -> dict[str, Any]:
        """For a program."""
        plan = self.plan
        return {
            "strategy": self.name,
            "inputs": {
                "psi": plan.psi,
                "mesh": dict(plan.mesh),
                "micro_batch": plan.micro_batch,
                "sequence": plan.sequence,
                "accumulate": plan.pipe.micro_batches,
                "recompute": plan.again,
                "offload_activations": plan.offload,
                "steps": self.steps,
                "arithmetic": self.arithmetic,
                "seed": self.seed,
            },
            "stages": [
                {
                    f.key: {
                        "simulated": quantity(f.simulated),
                        "predicted": quantity(f.predicted),
                        "equal": f.equal,
                    }
                    for f in stage
                }
                for stage in self.stages
            ],
            "matches": self.matches,
            "divergence": None if self.divergence is None else divergence_json(self.divergence),
            "verdict": self.refused
            and {
                "rule": self.refused.verdict.rule,
                "reason": self.refused.verdict.reason,
                "for_want_of_a_copy": self.refused.for_want_of_a_copy,
            },
        }


def simulate_product(
    plan: ModelPlan,
    steps: int,
    arithmetic: str,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> ProductRun:
    """Simulate a model on a product of strategies, beside one device, and predict it.

    `progress` is called with the number of works done, of `works`. Raises BadInput for a model that
    cannot be simulated, or not at these sizes.
    """
    require_fit(plan)
    if plan.model.turned and plan.model.head_dim % 2:
        raise BadInput(
            f"these sizes cannot be simulated: given {plan.model.head_dim} features of a head; "
            "expected an even number, as positions by angles turn them in pairs"
        )
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done)

    try:
        run = transformer(plan, arithmetic, seed)
        run.told = tell
        for _ in range(steps):
            run.step()
    except ValueError as error:  # slices that do not meet, tokens that do not spread evenly
        raise BadInput(f"these sizes cannot be simulated: {error}") from None
    found = tuple(tuple(figures(run, plan.stage(k))) for k in range(plan.pipe.stages))
    return ProductRun(plan, steps, arithmetic, seed, found, run.divergence, refused_of(plan))


def refused_of(plan: ModelPlan) -> NotRealisable | None:
    """Why its training states cannot be placed so, if they cannot."""
    try:
        require_realisable(plan.product.states, plan.mesh, plan.pipe.micro_batches, plan.policy)
    except NotRealisable as error:
        return error
    return None


def works(plan: ModelPlan, steps: int) -> int:
    """How often a run's progress is told: of each chunk, forward and backward of each micro-batch."""
    return int(steps * 2 * plan.pipe.units * plan.pipe.stages)


def require_fit(plan: ModelPlan) -> None:
    """Raise BadInput for a model that has no words, or too few places, or does not fit in memory."""
    if not plan.model.vocabulary:
        raise BadInput("--vocabulary: missing; expected how many words there are, to train on them")
    require_places(plan)
    if plan.pipe.stages > MOST_STAGES:
        stages = counted(plan.pipe.stages, "stage")
        raise BadInput(f"--devices: given {stages}; expected at most {MOST_STAGES} to simulate")
    inner, last = prod(plan.mesh.values()) // plan.pipe.stages, plan.pipe.stages - 1
    takes = PER_ELEMENT * plan.psi
    for number, alike in {0: 1, last: 1, **({1: last - 1} if last > 1 else {})}.items():
        stage = plan.stage(number)
        each = int(PER_ELEMENT * stage.parameters + PER_ACTIVATION * stage.kept(*PARTS))
        takes += alike * (inner * each + inner**2 * PER_PAIR * len(stage.groups))
    if takes > LARGEST:
        raise BadInput(
            f"--devices: given {counted(prod(plan.mesh.values()), 'device')} and a model of "
            f"{counted(plan.psi, 'parameter')}, which take about {memory(takes)}; expected at most "
            f"{memory(LARGEST)} to simulate"
        )


# --------------------------------------------------------------------- what the simulator needs
def transformer(
    plan: ModelPlan,
    arithmetic: str = MODULAR,
    seed: int = 0,
    schedule_of: Callable[[Group], Schedule] = lambda group: group.costs.schedule,
) -> PlacedTransformer:
    """The devices of a plan, and the single device."""
    batch = plan.product.states.axes
    return PlacedTransformer(
        plan.model,
        programs(plan),
        {axis: plan.mesh[axis] for axis in (*batch, *(cut.name for cut in plan.axes))},
        plan.indices["b"] * prod(plan.mesh[axis] for axis in batch),
        plan.sequence,
        ARITHMETICS[arithmetic, plan.policy.k > 0](),
        placings(plan, schedule_of),
        plan.policy,
        plan.pipe,
        seed,
        plan.offload,
    )


def programs(plan: ModelPlan) -> tuple[Program, Program, Program]:
    """Of embedding, layer and head, with samples cut along the axes of the training states, too."""
    batch = [Axis(name, stream="b") for name in plan.product.states.axes]
    embedding, layer, head = (
        distribute(part, (*batch, *plan.axes), plan.again if part.name == LAYER else NOTHING)
        for part in plan.parts
    )
    return embedding, layer, head


def placings(plan: ModelPlan, schedule_of: Callable[[Group], Schedule]) -> list[Placing]:
    """The groups of all stages; one that several stages have, once."""
    found = []
    for stage in map(plan.stage, range(plan.pipe.stages)):
        owned = {piece.owns(w) for piece in stage.pieces for w in piece.part.weights}
        for group in stage.groups:
            keys = sorted((number, name) for name, number in owned if name in group.weights)
            pipe = next((axis for axis in group.summed if axis == plan.product.pipe), "")
            stages = plan.shared[keys[0][::-1]] if pipe else (stage.number,)
            sizes = group.costs.sizes
            unit = sizes.psi if sizes.unit is None else sizes.unit
            found.append(Placing(schedule_of(group), tuple(keys), unit, stages, pipe))
    return [*dict.fromkeys(found)]
