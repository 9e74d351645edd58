"""Match, made executable: after every step, every resting copy is the single device's.

A run gives its copies in rows, each of one state; when a row's values are the single device's, exactly
or to a tolerance, is the run's to say. Rows are what the run has: lists of fractions or terms, arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Index = Any  # of a row: whatever its values are found by


@dataclass(frozen=True)
class Place:
    """Where a copy is: on a device, of a stage if there are several; and of what.

    `element`: its number, where elements are numbered. `weight`, `layer`: of a model that has them.
    """

    device: tuple[int, ...]
    element: int | None = None
    weight: str | None = None
    layer: int | None = None
    stage: int | None = None


@dataclass(frozen=True)
class Copies:
    """A row of copies of one state after a step, and the single device's value for each.

    `has` is None where no device keeps any; `single` then has the value of what is missed first.
    `largest`: the single device's largest number of the state, which a tolerance is relative to.
    """

    step: int
    state: str
    has: Any
    single: Any
    place: Callable[[Index], Place]
    largest: Any = 0

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Each copy in a list, beside the single device's value."""
        if self.has is None:
            return ((None, value) for value in self.single)
        return zip(self.has, self.single, strict=True)


@dataclass(frozen=True)
class Divergence:
    """A copy that is not the single device's; `has` is None where there is none."""

    step: int
    place: Place
    state: str
    has: Any
    single: Any


Unequal = Callable[[Copies], Iterable[Index]]  # where a row is not the single device's, in order


def exactly(copies: Copies) -> Iterator[int]:
    """Where a list of copies is not the single device's, to the last digit."""
    return (i for i, (has, single) in enumerate(copies.pairs()) if has != single)


def divergences(kept: Iterable[Copies], unequal: Unequal = exactly) -> Iterator[Divergence]:
    """Every copy that is not the single device's, in order; a state that nothing keeps, once."""
    for copies in kept:
        if copies.has is None:
            yield Divergence(copies.step, copies.place(0), copies.state, None, copies.single[0])
            continue
        for i in unequal(copies):
            yield Divergence(
                copies.step, copies.place(i), copies.state, copies.has[i], copies.single[i]
            )


def first_difference(kept: Iterable[Copies], unequal: Unequal = exactly) -> Divergence | None:
    """The first of them; none where the run matches."""
    return next(divergences(kept, unequal), None)
