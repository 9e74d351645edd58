"""Checking a product of strategies: its programs, its stages, and the schedule of every weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from psem_model.check.optimizers import in_words
from psem_model.check.schedules import Checked, check_schedule, sizes_given
from psem_model.text.figures import counted
from psem_model.text.report import Report, Section
from spec.compose import Product
from spec.derive import derive
from spec.distribute import distribute
from spec.layouts import LayoutError
from spec.programs import check
from spec.stages import check_stages, pieces, sends, to_sum
from spec.states import BytePolicy
from spec.transformer import Transformer, parts


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
        said = f"accepted{kinds}" if verdict.accepted else f"rejected: {self.checked.what}"
        return self.checked.sections(f"{what}: {said}")


@dataclass(frozen=True)
class CheckedProduct:
    """What was found of a product of strategies."""

    text: str
    lines_of: dict[str, int]  # of the embedding's, a layer's and the head's program
    wrong: str  # with a program, or with the stages; empty if nothing is
    shared: tuple[str, ...]  # weights that several stages use
    weights: tuple[Weights, ...]
    layers: str = ""  # of which kind: gpt, llama, or what a configuration is of
    experts: bool = False  # whether the layers have them
    of_a_kind: bool = False  # whether sizes of the model were not said

    @property
    def accepted(self) -> bool:
        return not self.wrong and all(w.checked.verdict.accepted for w in self.weights)

    @property
    def headline(self) -> str:
        """Whether it is accepted, and of which layers, if they are only a kind."""
        verdict = "accepted" if self.accepted else "rejected"
        of = f"{self.layers} layers{' with experts' if self.experts else ''}"
        kind = f", for {of} that it cuts evenly (see --block, --config)" if self.of_a_kind else ""
        return f"{self.text}: {verdict}{kind}"

    def report(self) -> Report:
        """The same as a report."""
        sections: tuple[Section, ...] = ()
        if self.wrong:
            facts = [self.wrong]
        else:
            programs = ", ".join(f"{name} {number}" for name, number in self.lines_of.items())
            facts = [f"programs accepted, whatever the sizes; lines: {programs}"]
            if self.shared:
                facts.append(f"several stages use {', '.join(self.shared)}: their gradients are summed")
            sections = tuple(section for found in self.weights for section in found.sections())
        return Report("check", self.headline, tuple(facts), sections, self.data(), self.accepted)

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "strategy": self.text,
            "accepted": self.accepted,
            "layers": {"kind": self.layers, "experts": self.experts},
            "programs": {"lines": self.lines_of, "wrong": self.wrong or None},
            "shared": list(self.shared),
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
) -> CheckedProduct:
    """Check a product of strategies for a kind of model.

    Programs do not depend on sizes, and what stages send and sum not on how many layers each has: a
    layer for each of two shows it (claim E11). Schedules are checked for `sizes`, or for every number
    of devices along each axis; without a policy, for every kind of optimizer.
    """
    stages = min(2, model.layers) if product.pipe else 1
    placed = pieces(replace(model, layers=stages), stages)
    shared = tuple(name for name, _ in to_sum(placed))
    if sizes is not None and product.pipe:  # what stages share, the first and the last have
        sizes = sizes | {product.pipe: min(2, sizes[product.pipe])}
    lines_of, groups = {}, dict[tuple[str, ...], dict[str, None]]()
    try:
        check_stages(placed, sends(placed), to_sum(placed))
        for part in parts(model):
            program = distribute(part, product.cuts)
            check(program)
            lines_of[part.name] = len(program.lines)
            for weight in part.weights:
                summed = program.summed(weight)
                if product.pipe and weight.name in shared:
                    summed += (product.pipe,)
                groups.setdefault(summed, {})[weight.name] = None
    except LayoutError as error:
        return CheckedProduct(text, lines_of, str(error), shared, ())
    placed_along = {product.states_of(summed): tuple(names) for summed, names in groups.items()}
    most = max(placed_along, key=lambda placement: len(placement.axes))
    sizes_given(derive(most), sizes, micro_steps, product.axes)  # too many axes are told at once
    checked = []
    for placement, names in placed_along.items():
        schedule = derive(placement)
        given = sizes_given(schedule, sizes, micro_steps, product.axes)
        verdict = check_schedule(text, schedule, given, policy)
        checked.append(Weights(schedule.axes, names, verdict))
    return CheckedProduct(text, lines_of, "", shared, tuple(checked))
