"""Layers of a model by their numbers, some or all others; and units that are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from spec.models.parts import Model
from spec.models.transformer import EMBEDDING, HEAD


@dataclass(frozen=True)
class Layers:
    """Layers of some numbers, from the end if negative; or, if `others`, all but these."""

    numbers: frozenset[int] = frozenset()
    others: bool = True

    @property
    def rest(self) -> Layers:
        """All layers that are none of these."""
        return replace(self, others=not self.others)

    def has(self, number: int, count: int) -> bool:
        """Whether the layer of a number is one of them, where there are so many in all."""
        return (number in self.numbers or number - count in self.numbers) is not self.others

    def counted(self, model: Model, first: int, after: int) -> Counter[str]:
        """How many of them there are of each kind, by the name of its part, from `first` to `after`."""
        count = model.layers
        numbers = {number % count for number in self.numbers if -count <= number < count}
        found = Counter[str]()
        for number in numbers:
            found += model.layers_of(number, number + 1) if first <= number < after else Counter()
        return model.layers_of(first, after) - found if self.others else found

    def __str__(self) -> str:
        numbers = ", ".join(map(str, sorted(self.numbers)))
        but = " but " * bool(numbers)
        return f"all{but}{numbers}" if self.others else numbers or "none"


EVERY_LAYER = Layers()
ROOT = "root"  # the unit of all weights outside layers


def has_each_once(some: Iterable[Layers]) -> bool:
    """Whether every layer, of however many, is one of some layers, and of no others."""
    found = [*some]
    return found == [EVERY_LAYER] or (len(found) == 2 and found[0].rest == found[1])


@dataclass(frozen=True)
class HeldUnits:
    """Units whose gathered weights are held from forward to backward: layers, and others by name."""

    names: frozenset[str] = frozenset()
    layers: Layers = EVERY_LAYER.rest

    def has(self, part: str) -> bool:
        """Whether the embedding, or the head, is one, or is in one."""
        return part in self.names or (ROOT in self.names and part in (EMBEDDING, HEAD))


NONE_HELD = HeldUnits()
