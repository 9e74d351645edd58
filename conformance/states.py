"""Training states as psem derives them: by the book, and in the units in which PyTorch keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from conformance.cases import Case
from psem_model.predict.states import Prediction, predict_schedule
from spec.costs.memory import Sizes
from spec.derivation.derive import derive
from spec.models.states import POLICIES, BytePolicy, State
from spec.numbers.arithmetic import EXACT, Arithmetic, Exact, Number, ceil_div
from spec.plans.modes import GATHERED, M, R, S
from spec.plans.placement import Placement, on_batch, place
from spec.plans.strategies import STRATEGIES

FIRST_BUCKET, BUCKET = 2**20, 25 * 2**20  # bytes, unless said otherwise
NO_SYNC = on_batch("S*", "S", "R", "S")  # gradients whole until the last micro-step
PRECISIONS = {"adam": "fp32-adam", "momentum": "fp32-momentum", "sgd": "fp32-sgd"}
MIXED = "mixed-adam-fp32-gradients"
ROOT = ""  # what has the weights of no layer
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Slices(Exact):
    """Weights of a unit, each cut by rows of its first dimension, the last rank's padded.

    `ranks`: that they are cut over. Over more, as where copies are summed, the slices together are cut.
    `rank`: whose slices they are, without padding; None: with it.
    """

    weights: tuple[tuple[int, ...], ...]
    ranks: int
    rank: int | None = None

    def shard(self, elements: Number, unit: Number, devices: Number) -> Number:
        mine = sum(self.rows(shape[0]) * prod(shape[1:]) for shape in self.weights)
        return ceil_div(mine, devices // self.ranks)

    def rows(self, rows: int) -> int:
        most = int(ceil_div(rows, self.ranks))
        return most if self.rank is None else min(most, max(0, rows - self.rank * most))


@dataclass(frozen=True)
class Unit:
    """Weights that are placed, gathered and reduced together."""

    placement: Placement
    elements: int
    arithmetic: Arithmetic = EXACT


@dataclass(frozen=True)
class States:
    """Data parallelism of a case, on weights of so many shapes."""

    case: Case
    shapes: Shapes

    @property
    def mesh(self) -> dict[str, int]:
        """The axes that states are placed on."""
        return {axis: size for axis, size in self.case.mesh if axis not in ("tensor", "pipe")}

    @property
    def strategy(self) -> str:
        """Of what cuts no weight."""
        return self.case.strategy.partition(" x ")[0]

    @property
    def psi(self) -> int:
        return sum(map(prod, self.shapes.values()))

    @property
    def cast(self) -> bool:
        """Whether bf16 weights are made of fp32 ones."""
        return self.case.mixed and self.is_cut

    @property
    def is_cut(self) -> bool:
        """Whether weights are cut along an axis."""
        return self.strategy in ("fsdp2", "hsdp")

    @property
    def reduces_in_buckets(self) -> bool:
        """Whether DDP sums its gradients."""
        return self.strategy in ("ddp", "zero redundancy", "cp")

    @property
    def policy(self) -> BytePolicy:
        return POLICIES[MIXED if self.cast else PRECISIONS[self.case.optimizer]]

    def prediction(self, unit: Unit, size: int | None = None, micro_steps: int = 0) -> Prediction:
        """What psem derives of a unit; in units of a size."""
        sizes = Sizes(unit.elements, self.mesh, self.policy, size, unit.arithmetic)
        return predict_schedule(derive(unit.placement), sizes, micro_steps or self.case.micro_steps)

    # ------------------------------------------------------------------------- as a user types it
    @property
    def by_the_book(self) -> Prediction:
        """psem's strategy of that name, padded as if all units were as large as the largest layer."""
        case = self.case
        names = {"ddp": "dp", "zero redundancy": "zero1", "hsdp": "hsdp"}
        name = names.get(self.strategy) or ("fsdp-hold" if case.reshard is False else "fsdp")
        placement = STRATEGIES[name] if case.each or self.strategy != "fsdp2" else NO_SYNC
        largest = max(sum(map(prod, shapes)) for shapes in self.layers.values())
        return self.prediction(Unit(placement, self.psi), largest)

    # ------------------------------------------------------------------------- as PyTorch has it
    @cached_property
    def layers(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """The weights of each layer; those of no layer are the root's."""
        names = {name: layer_of(name) for name in self.shapes}
        return {
            layer: tuple(self.shapes[name] for name, of in names.items() if of == layer)
            for layer in dict.fromkeys(names.values())
        }

    def units(self, rank: int | None = None) -> Iterator[Unit]:
        """Buckets of DDP; layers, cut by rows, of FSDP2. `rank`: its own rows, without padding."""
        if not self.is_cut:
            (axis,) = self.mesh
            copied = place((axis,), {s: {axis: S if s is State.ACTIVATIONS else R} for s in State})
            yield from (Unit(copied, size) for size in self.buckets)
            return
        ranks = self.mesh[self.cut]
        for layer, weights in self.layers.items():
            slices = Slices(weights, ranks, rank)
            yield Unit(self.placement(layer), sum(map(prod, weights)), slices)

    @property
    def cut(self) -> str:
        """The axis that weights are cut along."""
        return "shard" if "shard" in self.mesh else "batch"

    def place_of(self, rank: int) -> int | None:
        """Which of the slices a rank has; None if weights are not cut."""
        inner = 1
        for axis, size in reversed(self.case.mesh):
            if axis == self.cut and self.is_cut:
                return rank // inner % size
            inner *= size
        return None

    def reduced(self, unit: Unit) -> Prediction:
        """The same with gradients in slices."""
        modes = dict(unit.placement.modes)
        modes[State.GRADIENTS] = modes[State.OPTIMIZER]
        return self.prediction(
            replace(unit, placement=replace(unit.placement, modes=tuple(modes.items())))
        )

    def placement(self, layer: str) -> Placement:
        """That of a layer's weights, or of the root's, which are not released after forward."""
        case = self.case
        holds = case.reshard is False or (case.reshard is None and layer == ROOT)
        weights = M if self.cast else GATHERED  # cast from what the optimizer updates
        cut = dict(zip(State, (weights, S, S if case.each else R, S), strict=True))
        copied = dict(zip(State, (M if self.cast else R, R, R, S), strict=True))
        modes = {s: {a: (cut if a == self.cut else copied)[s] for a in self.mesh} for s in State}
        return place(tuple(self.mesh), modes, holds)

    @cached_property
    def buckets(self) -> tuple[int, ...]:
        """Elements of each bucket: weights from the last to the first, until it has its bytes."""
        limits = [self.case.bucket or FIRST_BUCKET, self.case.bucket or BUCKET]
        found = [0]
        for shape in reversed(tuple(self.shapes.values())):
            found[-1] += prod(shape)
            if 4 * found[-1] >= limits[min(len(found), 2) - 1]:
                found.append(0)
        return tuple(size for size in found if size)

    @cached_property
    def owned(self) -> tuple[tuple[str, ...], ...]:
        """The weights that each rank updates: the largest first, each to who has fewest elements."""
        found: list[list[str]] = [[] for _ in range(self.case.ranks)]
        load = [0] * self.case.ranks
        sizes = {name: prod(shape) for name, shape in self.shapes.items()}
        for name in sorted(sizes, key=lambda name: -sizes[name]):
            least = load.index(min(load))
            found[least].append(name)
            load[least] += sizes[name]
        return tuple(map(tuple, found))


def layer_of(name: str) -> str:
    """The layer that has a weight; ROOT if none has."""
    first, _, rest = name.partition(".")
    return rest.partition(".")[0] if first == "layers" else ROOT
