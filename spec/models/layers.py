"""Layers of a model by their numbers, some or all others; and units that are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
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

    @property
    def said(self) -> str:
        """The same of a model's, in words."""
        return str(self) if self.others else f"those numbered {self}"

    def __str__(self) -> str:
        numbers = ", ".join(_runs(sorted(self.numbers)))
        but = " but " * bool(numbers)
        return f"all{but}{numbers}" if self.others else numbers or "none"


def _runs(numbers: list[int]) -> Iterator[str]:
    """Numbers in words: three or more that follow each other by the first and the last.

    Not -1 and 0: these are the last layer and the first.
    """
    while numbers:
        follow = (n == numbers[0] + i and (n < 0) is (numbers[0] < 0) for i, n in enumerate(numbers))
        after = next((i for i, does in enumerate(follow) if not does), len(numbers))
        few = numbers[:after] if after < 3 else []
        yield from map(str, few) if few else [f"{numbers[0]} to {numbers[after - 1]}"]
        numbers = numbers[after:]


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
