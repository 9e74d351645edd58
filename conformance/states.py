"""Training states: what psem derives for PyTorch's strategies, in the book's units and in PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from conformance.cases import Case
from conformance.logs import Log
from psem_model.predict.states import Prediction, predict_schedule
from spec.arithmetic import EXACT, Arithmetic, Exact, Number, ceil_div
from spec.derive import derive
from spec.memory import Sizes
from spec.modes import GATHERED, M, R, S
from spec.placement import Placement, on_batch, place
from spec.states import POLICIES, BytePolicy, State
from spec.strategies import STRATEGIES

FIRST_BUCKET, BUCKET = 2**20, 25 * 2**20  # bytes, unless said otherwise
NO_SYNC = on_batch("S*", "S", "R", "S")  # gradients whole until the last micro-step
PRECISIONS = {"adam": "fp32-adam", "momentum": "fp32-momentum", "sgd": "fp32-sgd"}


class Rows(Exact):
    """A weight cut by rows of its first dimension: equally many for each rank, the last ones padded."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def shard(self, elements: Number, unit: Number, devices: Number) -> Number:
        return self.kept(devices) * (elements // self.rows)

    def kept(self, devices: Number) -> Number:
        return ceil_div(self.rows, devices)


class RowsOf(Rows):
    """The rows that one rank has, without padding."""

    def __init__(self, rows: int, rank: int) -> None:
        super().__init__(rows)
        self.rank = rank

    def kept(self, devices: Number) -> Number:
        most = super().kept(devices)
        return min(most, max(0, self.rows - self.rank * most))


@dataclass(frozen=True)
class Unit:
    """Weights that are placed, gathered and reduced together."""

    placement: Placement
    elements: int
    arithmetic: Arithmetic = EXACT


@dataclass(frozen=True)
class States:
    """A case of data parallelism, by its log's shapes."""

    case: Case
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def mesh(self) -> dict[str, int]:
        return self.case.sizes

    @cached_property
    def elements(self) -> dict[str, int]:
        """Of each weight, in the model's order."""
        return {name: size_of(shape) for name, shape in self.shapes.items()}

    @property
    def psi(self) -> int:
        return sum(self.elements.values())

    # ------------------------------------------------------------------------- as a user types it
    @property
    def textbook(self) -> str | Placement:
        """psem's strategy of that name."""
        case = self.case
        if case.strategy == "fsdp2" and not case.each:
            return NO_SYNC
        names = {"ddp": "dp", "zero redundancy": "zero1", "hsdp": "hsdp"}
        return names.get(case.strategy) or ("fsdp-hold" if case.reshard is False else "fsdp")

    def policy(self) -> BytePolicy:
        return POLICIES["mixed-adam-fp32-gradients" if self.cast else PRECISIONS[self.case.optimizer]]

    @property
    def cast(self) -> bool:
        """Whether bf16 weights are made of fp32 ones."""
        return self.case.mixed and self.case.strategy in ("fsdp2", "hsdp")

    @cached_property
    def by_the_book(self) -> Prediction:
        """One kind of unit, the largest layer; padded as if all were as large."""
        name = self.textbook
        placement = STRATEGIES[name] if isinstance(name, str) else name
        unit = max(sum(sizes) for sizes in self.by_layer().values())
        sizes = Sizes(self.psi, self.mesh, self.policy(), unit)
        return predict_schedule(derive(placement), sizes, self.case.micro_steps)

    # ------------------------------------------------------------------------- as PyTorch has it
    def by_layer(self) -> dict[str, list[int]]:
        """Elements of the weights of each layer; those of no layer are the root's."""
        found: dict[str, list[int]] = {}
        for name, size in self.elements.items():
            found.setdefault(layer_of(name), []).append(size)
        return found

    def units(self, rank: int | None = None) -> Iterator[Unit]:
        """PyTorch's: buckets, or weights by rows. `rank`: what is its own, without padding."""
        if self.case.strategy in ("ddp", "zero redundancy"):
            yield from (Unit(STRATEGIES["dp"], size) for size in self.buckets())
            return
        for name, shape in self.shapes.items():
            place = None if rank is None else rank % self.mesh[self.cut]
            rows = Rows(shape[0]) if place is None else RowsOf(shape[0], place)
            yield Unit(self.placement(layer_of(name)), size_of(shape), rows)

    @property
    def cut(self) -> str:
        """The axis that weights are cut along."""
        return "shard" if "shard" in self.mesh else "batch"

    def placement(self, layer: str) -> Placement:
        """That of a layer's weights, or of the root's, which are not released after forward."""
        case = self.case
        holds = case.reshard is False or (case.reshard is None and layer == ROOT)
        weights = M if self.cast else GATHERED  # cast from what the optimizer updates
        cut = dict(zip(State, (weights, S, S if case.each else R, S), strict=True))
        copied = dict(zip(State, (M if self.cast else R, R, R, S), strict=True))
        modes = {s: {a: (cut if a == self.cut else copied)[s] for a in self.mesh} for s in State}
        return place(tuple(self.mesh), modes, holds)

    def prediction(self, unit: Unit) -> Prediction:
        """What psem derives for a unit."""
        sizes = Sizes(unit.elements, self.mesh, self.policy(), None, unit.arithmetic)
        return predict_schedule(derive(unit.placement), sizes, self.case.micro_steps)

    def buckets(self) -> Iterator[int]:
        """Elements of each bucket: weights from the last to the first, until it has its bytes."""
        limits, size = [self.case.bucket or FIRST_BUCKET, self.case.bucket or BUCKET], 0
        for elements in reversed(self.elements.values()):
            size += elements
            if 4 * size >= limits[0]:
                yield size
                size, limits = 0, limits[-1:]
        if size:
            yield size


ROOT = ""


def layer_of(name: str) -> str:
    """The layer that has a weight; ROOT if none has."""
    first, _, rest = name.partition(".")
    return rest.partition(".")[0] if first == "layers" else ROOT


def size_of(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
