"""A step of a model: programs say what its parts compute, schedules where its weights' states are.

A program leaves terms of a weight's gradient on the devices of some axes: those that cut samples, and
what else the gradient sums over. The schedule of the weight's states sums over these, and over the
stages that have the weight; and over no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spec.devices.layouts import PARTIAL, Contraction, LayoutError, Lie, Lies, contract
from spec.devices.mesh import ALL_WEIGHTS, Axes
from spec.language.programs import Program
from spec.language.schedule import Schedule
from spec.models.layers import EVERY_LAYER, Layers
from spec.models.opaque import opaque
from spec.models.transformer import EMBEDDING, HEAD
from spec.models.values import Value


@dataclass(frozen=True)
class Group:
    """Weights, by name, and the one schedule of their states; of layers' weights, those of `layers`."""

    weights: tuple[str, ...]
    schedule: Schedule
    layers: Layers = EVERY_LAYER


@dataclass(frozen=True)
class Step:
    """Programs in the order of the model; a layer may be there many times.

    `pipe`: the axis that cuts the layers, if one does. `orders`: of each index the axes that may cut
    it, the outer one first.
    """

    programs: tuple[Program, ...]
    groups: tuple[Group, ...]
    pipe: str | None = None
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_opaque(self) -> bool:
        """Whether all that is known of the model is its parameters, which nothing cuts.

        Its schedule says all the rest.
        """
        cuts = self.pipe or any(axis.weight_indices for axis in self.programs[0].axes)
        return not cuts and [program.part for program in self.programs] == [opaque()]

    @property
    def clips(self) -> bool:
        """Whether gradients are clipped by the norm of all of them."""
        return any(group.schedule.training.clip for group in self.groups)

    @property
    def shared_weights(self) -> tuple[str, ...]:
        """Weights that parts on several stages use."""
        return tuple(name for name, parts in self.uses.items() if len(parts) > 1) if self.pipe else ()

    @property
    def held_layers(self) -> Layers:
        """Those whose weights have a schedule of their own; every layer, if none have."""
        return next((g.layers for g in self.groups if g.layers != EVERY_LAYER), EVERY_LAYER)

    @property
    def uses(self) -> dict[str, tuple[str, ...]]:
        """Of each weight, the names of the parts that use it."""
        found: dict[str, tuple[str, ...]] = {}
        for program in self.programs:
            for weight in program.part.weights:
                found[weight.name] = (*found.get(weight.name, ()), program.part.name)
        return found

    @property
    def root(self) -> frozenset[str]:
        """The weights of the embedding and of the head."""
        ends = (program.part for program in self.programs if program.part.name in (EMBEDDING, HEAD))
        return frozenset(weight.name for part in ends for weight in part.weights)

    def summed_over(self) -> dict[str, tuple[str, ...]]:
        """Of each weight, the axes over which its gradient is to be summed.

        Raises LayoutError if two parts that share it have it, or leave its gradient, otherwise.
        """
        found: dict[str, tuple[str, ...]] = {}
        first: dict[str, tuple[Value, Lies]] = {}
        for program in self.programs:
            for weight in program.part.weights:
                axes, has = program.summed_over(weight), (weight, program.lies[weight])
                if first.setdefault(weight.name, has) != has:
                    raise LayoutError(f"two parts have {weight.name}, not alike", weight.name)
                if found.setdefault(weight.name, axes) != axes:
                    raise LayoutError(
                        f"the gradient of {weight.name}: {program.part.name} leaves terms over "
                        f"{in_words(axes)}, another part over {in_words(found[weight.name])}",
                        weight.name,
                    )
        pipe = () if self.pipe is None else (self.pipe,)
        return {name: axes + pipe * (name in self.shared_weights) for name, axes in found.items()}

    def gradients_over(self) -> dict[str, tuple[Axes, Axes]]:
        """Of each weight, the axes over which its gradient is to be summed, and those of which each
        device has it whole.

        Raises LayoutError as `summed_over` does.
        """
        parts = [(program, weight) for program in self.programs for weight in program.part.weights]
        whole = {weight.name: program.whole_over(weight) for program, weight in parts}
        return {name: (axes, whole[name]) for name, axes in self.summed_over().items()}

    def gradient_norms(self) -> dict[str, dict[str, Lie]]:
        """Of each weight, how the square of its gradient's norm lies, if the gradient lies as it does.

        Along the axes of its program, over the stages, and over the groups of weights.
        """
        found: dict[str, dict[str, Lie]] = {}
        over = [ALL_WEIGHTS] if self.pipe is None else [self.pipe, ALL_WEIGHTS]
        for program in self.programs:
            for weight in program.part.weights:
                lies = program.lies[weight]
                along = {axis.name: of_gradient(weight, lies[axis.name]) for axis in program.axes}
                found[weight.name] = along | dict.fromkeys(over, PARTIAL)
        return found


def of_gradient(weight: Value, lie: Lie) -> Lie:
    """How the square of a gradient's norm lies along an axis along which the weight lies so."""
    return contract(Contraction(weight.indices, weight.indices, ()), lie, lie)


def in_words(axes: tuple[str, ...]) -> str:
    """Axes that something is summed over."""
    return " x ".join(axes) if axes else "no axis"
