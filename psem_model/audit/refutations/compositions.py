"""K6: unsafe compositions of two axes, those of the gallery, each beside its safe twin.

Four devices, two along each axis, with the contributions that the counterexample says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from proofs.meaning.sharpness import choose
from psem_model.audit.refutations.noted import Noted, root
from psem_model.audit.refutations.registry import Shown, Values, refutes
from psem_model.reading.schedules import read
from psem_model.simulator import Run, simulate
from psem_model.simulator.arithmetic import Array
from psem_model.simulator.models import Backward, Model
from psem_model.text.places import EXAMPLES
from spec.language.schedule import Schedule
from spec.models import training
from spec.models.states import POLICIES

DEVICES = 4
TWINS = {
    # unsafe_NAME: its twin, safe_NAME
    "wrong_group": "two_reductions",
    "double_reduction": "two_reductions",
    "accumulate_after_reduce": "two_reductions",
    "overlapping_axes": "replicas_first",
    "superset_of_the_group": "expert_copies",
    "shard_offset_of_the_other_axis": "reduce_once",
    "mean_twice": "means_along_both_axes",
    "context_loss_scale": "means_along_both_axes",
    "local_token_counts": "tokens_of_both_axes",
    "norm_of_one_axis": "sharded_along_both_axes",
    "expert_scale": "experts",
    "tied_after_reduce": "tied_along_both_axes",
    "stale_gather": "sharded_along_both_axes",
    "unpublished_parameters": "sharded_along_both_axes",
    "gathered_along_the_other_axis": "reduce_once",
    "statistics_of_one_axis": "statistics_of_both_axes",
}


def example(name: str) -> Schedule:
    """A schedule of the gallery."""
    return read(str(EXAMPLES / f"{name}.toml"))


class Counting(Noted):
    """Each device's samples have as many tokens as is said, in every micro-step."""

    def __init__(self, start: Fraction, counts: Array) -> None:
        super().__init__(start, DEVICES)
        self.counts = counts.reshape(DEVICES, 1)

    def count(self, integers: Array) -> Array:
        return self.counts


class Contributions(Model):
    """A model: what each device contributes in each micro-step, and by the second use."""

    def __init__(self, micro_steps: Sequence[Array], tied: Sequence[Array]) -> None:
        self.micro_steps, self.tied = micro_steps, tied

    def backward(self, of: Backward) -> list[Array]:
        parts = [self.micro_steps[of.when[1]], *self.tied]
        if of.everyones:  # samples of the group along the second axis
            parts = [part.reshape(2, 2, -1).sum(1).repeat(2, 0) for part in parts]
        return [part.copy() for part in parts]

    def whole(self, weights: Sequence[Array], step: int) -> list[Array]:
        return [np.asarray(sum(p.sum(0, keepdims=True) for p in (*self.micro_steps, *self.tied)))]


def run_of(schedule: Schedule, psi: int, model: Contributions, notes: Noted) -> Run:
    """One step on two devices along each axis."""
    return simulate(
        schedule,
        dict.fromkeys(schedule.axes, 2),
        psi,
        micro_steps=len(model.micro_steps),
        policy=POLICIES["fp32-sgd"],
        arithmetic=notes,
        model=model,
    )


def of_all_elements(grid: Array) -> Array:
    """Each device contributes the same to each of four elements."""
    return np.repeat(grid.reshape(DEVICES, 1), DEVICES, axis=1)


def of_one_device(grid: Array) -> Array:
    """The first device contributes to each element what is at its owner's place."""
    others = np.full((DEVICES - 1, DEVICES), Fraction(0))
    return np.vstack([grid.reshape(1, DEVICES), others])


def clipped(g: Array) -> Array:
    """Each element by the norm of those along the first axis."""
    norms = [root(square) for square in (g * g).sum(0)]
    factors = [training.clip_by_norm(Fraction(1), norm, 1, choose) for norm in norms]
    return np.asarray(g * np.array(factors, object))


# what each device applies, from the devices' values: gradients g, h, counts c
Applied = Callable[[Array, Array, Array], Any]


@refutes("K6", "wrong_group", "wrong_group", lambda g, h, c: g.sum(0))
@refutes("K6", "double_reduction", "double_reduction", lambda g, h, c: 2 * g.sum())
@refutes("K6", "superset_of_the_group", "superset_of_the_group", lambda g, h, c: 2 * g.sum())
@refutes(
    "K6",
    "accumulated_after_reduction",
    "accumulate_after_reduce",
    lambda g, h, c: 2 * g.sum() + h.sum(),
)
@refutes("K6", "tied_after_reduction", "tied_after_reduce", lambda g, h, c: g.sum() + h.sum(0))
@refutes("K6", "mean_along_one_axis", "context_loss_scale", lambda g, h, c: g.sum() / 2)
@refutes("K6", "counts_along_one_axis", "local_token_counts", lambda g, h, c: g.sum() / c.sum(0))
@refutes("K6", "norm_along_one_axis", "norm_of_one_axis", lambda g, h, c: clipped(g))
def an_unsafe_composition_applies_another_gradient(
    values: Values, name: str, applied: Applied
) -> Shown:
    g, h, c = (
        np.array([[values.get(f"{v}{i}{j}", Fraction(0)) for j in (0, 1)] for i in (0, 1)], object)
        for v in "ghc"
    )
    each = of_one_device if name == "norm_of_one_axis" else of_all_elements
    micro_steps = [each(g), each(h)] if name == "accumulate_after_reduce" else [each(g)]
    tied = [each(h)] if name == "tied_after_reduce" else []
    runs, as_said = [], []
    for schedule in (example(f"unsafe_{name}"), example(f"safe_{TWINS[name]}")):
        notes = Counting(Fraction(0), c)
        runs.append(run_of(schedule, DEVICES, Contributions(micro_steps, tied), notes))
        first = np.array(notes.applied[0], object)[:, 0].reshape(2, 2)
        as_said.append(bool((first == applied(g, h, c)).all()))
    unsafe, safe = runs
    return Shown(
        unsafe.messages,
        {
            "it diverges": not unsafe.matches,
            "its devices apply the gradients of the counterexample": as_said[0],
            "its safe twin matches": safe.matches,
            "the twin's devices apply others": not as_said[1],
        },
    )


@refutes("K6", "gathered_along_the_other_axis", "gathered_along_the_other_axis", (0, 1))
@refutes("K6", "shard_offset_of_the_other_axis", "shard_offset_of_the_other_axis", (1, 0))
def slices_of_the_other_axis_leave_an_old_parameter(
    values: Values, name: str, device: tuple[int, int]
) -> Shown:
    old, new = values["old"], values["new"]
    change = np.array([[old - new, Fraction(0)], [Fraction(0), Fraction(0)]], object)
    model = Contributions([of_all_elements(change)[:, :1]], [])  # the first device's
    unsafe, safe = (
        run_of(example(each), 1, model, Noted(old, DEVICES))
        for each in (f"unsafe_{name}", f"safe_{TWINS[name]}")
    )
    found = unsafe.divergence
    return Shown(
        unsafe.messages,
        {
            "the device keeps the old parameter": found is not None
            and (found.place.device, found.has, found.single) == (device, old, new),
            "its safe twin matches": safe.matches,
        },
    )
