"""How states are cut, rest and pass, where it is not in equal slices of one vector, unit by unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from psem_model.simulator.layout import Cluster, Layout, Vector, layout_of
from spec.models.states import State


@dataclass(frozen=True)
class Cut:
    """A unit of vectors, each of so many elements in rows, of which devices have whole ones.

    `owners`: if devices have whole vectors, the number of each one's among those that slices are along.
    `slice`: if all units are one vector, the elements of a slice, of which any unit has room for no
    more; `padding`: at the vector's end, on each of those devices.
    """

    vectors: tuple[Vector, ...]
    owners: tuple[int, ...] = ()
    slice: int | None = None
    padding: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """Elements of all its vectors."""
        return sum(length for length, _ in self.vectors)

    def layout(self, cluster: Cluster, cut: tuple[str, ...]) -> Layout:
        """How it lies on devices."""
        of = {"owners": self.owners, "padding": self.padding}
        return layout_of(cluster, cut, *self.vectors, room=self.slice, **of)


def flat(length: int) -> Cut:
    """A unit of one vector, cut into elements."""
    return Cut(((length, 1),))


@dataclass(frozen=True)
class Rests:
    """What rests otherwise than in padded slices, or passes otherwise than one unit after the other.

    `unpadded`: states without padding. `wholes`: weights of which each device has a state of all, along
    axes that cut the weight; `sizes`: of each index in all. `waits_whole`: gradients are whole until
    they are summed, and leave slices; `sums_by_chunk`: those of each chunk of a stage after its last
    backward. `copies`: gradients are copied to be reduced. `fills`: who owns
    no weight sends an element. `adds_alone`: gradients of a weight are an array of their own until they
    are added. `ahead`: units that are gathered before their turn. `placeholders`:
    there are arrays in place of gradients of products, which are added up elsewhere.
    """

    unpadded: frozenset[State] = frozenset()
    wholes: Mapping[State, frozenset[str]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    waits_whole: bool = False
    sums_by_chunk: bool = False
    copies: bool = False
    fills: bool = False
    ahead: int = 0
    placeholders: bool = False
    adds_alone: bool = False


def in_slices(lengths: Iterable[int], devices: int, multiple: int) -> tuple[Cut, ...]:
    """Units that are one vector, cut in slices, each of a multiple of so many elements, with padding.

    Padding is the last unit's.
    """
    ends = np.cumsum([*lengths])
    size = -(-int(ends[-1]) // (devices * multiple)) * multiple
    owner = np.arange(ends[-1]) // size  # of each element
    padding = tuple((size - np.bincount(owner, minlength=devices)).tolist())
    found = []
    for of in np.split(owner, ends[:-1]):
        owners, counts = np.unique(of, return_counts=True)
        vectors = tuple((int(count), 1) for count in counts)
        found.append(Cut(vectors, tuple(owners.tolist()), size))
    return (*found[:-1], replace(found[-1], padding=padding))


PADDED = Rests()
