"""The operator algebra: what a schedule can do to a per-device value along one axis of n devices.

An operator says which devices get the sum of what which devices have; the others get zero:

    S    all get the sum over all             all_reduce
    E    all get the owner's value            all_gather
    F    the owner keeps its value            a slice
    FS   the owner gets the sum over all      reduce_scatter

Another device than the owner is named by how many places after it it is. Beside these there is 1:
each keeps its own. Operators along different axes commute; accumulation adds. So every value is a
combination of products of operators applied to the devices' original values: its normal form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from spec.devices.mesh import Device
from spec.numbers.arithmetic import Number

PerDevice = Callable[[Device], Any]  # one element's value on each device
Total = Callable[[Number, Callable[[Any], Any]], Any]  # total(n, f) = f(0) + ... + f(n - 1)


Who = str | int  # all devices of the group, or the one that many places after the owner
ALL = "all"


class Operator(NamedTuple):
    """Devices `to` get the sum over devices `of`."""

    to: Who
    of: Who


IDENTITY = Operator("each", "itself")
SUM_ALL = Operator(ALL, ALL)
OWNER = Operator(ALL, 0)
SLICE = Operator(0, 0)
SUM_SLICE = Operator(0, ALL)


# -------------------------------------------------------------------- meaning
def zero(_: Device) -> int:
    """Zero, on every device."""
    return 0


def summed(value: PerDevice, axis: str, n: Number, total: Total) -> PerDevice:
    """S: every device of the group has the sum over the group."""
    return lambda device: total(n, lambda i: value({**device, axis: i}))


def owners(value: PerDevice, axis: str, owner: Number) -> PerDevice:
    """E: every device of the group has the owner's value."""
    return lambda device: value({**device, axis: owner})


def sliced(
    value: PerDevice,
    axis: str,
    owner: Number,
    select: Callable[[Any, Any, Any], Any],
    otherwise: PerDevice = zero,
) -> PerDevice:
    """F: the owner has its value, the others zero (or what they had otherwise)."""
    return lambda device: select(device[axis] == owner, value(device), otherwise(device))


# -------------------------------------------------------------------- algebra
def composed(left: Operator, right: Operator, n: Number) -> tuple[Number, Operator]:
    """left after right, as a coefficient times one operator.

    The coefficient is how many devices get something from `right` that `left` reads.
    """
    if left == IDENTITY or right == IDENTITY:
        return 1, right if left == IDENTITY else left
    both = (left.of, right.to)
    shared: Number = n if both == (ALL, ALL) else 1 if ALL in both else int(left.of == right.to)
    return shared, Operator(left.to, right.of)


def transpose(operator: Operator) -> Operator:
    """What the backward pass does where the forward pass did `operator`.

    all_reduce is its own transpose; those of all_gather and reduce_scatter are each other.
    """
    return operator if operator == IDENTITY else Operator(operator.of, operator.to)


Word = tuple[Operator, ...]  # one operator for each axis
NormalForm = Mapping[tuple[Any, Word], Number]  # (symbol, word) -> coefficient


def apply_operator(operator: Operator, axis: int, form: NormalForm, n: Number) -> dict[Any, Number]:
    """The normal form after `operator` along the axis of that index, of size n."""
    result: dict[Any, Number] = {}
    for (symbol, word), coefficient in form.items():
        factor, after = composed(operator, word[axis], n)
        if isinstance(factor, int) and factor == 0:
            continue
        term = (symbol, (*word[:axis], after, *word[axis + 1 :]))
        result[term] = result.get(term, 0) + factor * coefficient
    return result


def scale(form: NormalForm, factor: Number) -> dict[Any, Number]:
    """A multiple of a normal form."""
    return {term: factor * coefficient for term, coefficient in form.items()}


def add(form: NormalForm, other: NormalForm) -> dict[Any, Number]:
    """The sum of two normal forms."""
    result = dict(form)
    for term, coefficient in other.items():
        result[term] = result.get(term, 0) + coefficient
    return result


# ------------------------------------------------- what it comes to on a device
class Source(Enum):
    """Devices of a group that have no name, as one of them sees them."""

    __hash__ = object.__hash__  # quicker than by name, and it is looked up often

    SELF = "itself"
    REST = "each of the rest"


Offset = int | None  # of a device: places after the owner, or none of those that have a name
OTHER: Offset = None


@lru_cache(maxsize=4096)
def sources_of(operator: Operator, device: Offset, named: tuple[int, ...]) -> tuple[int | Source, ...]:
    """The devices whose values a device gets the sum of, each once.

    `named` are the places that are told apart; the rest of the group is one source.
    """
    itself = Source.SELF if device is None else device
    if operator == IDENTITY:
        return (itself,)
    if operator.to not in (ALL, device):
        return ()
    if operator.of != ALL:
        assert isinstance(operator.of, int)
        return (operator.of,)
    unnamed = (Source.SELF, Source.REST) if device is OTHER else (Source.REST,)
    return (*named, *unnamed)


def unnamed(device: Offset, named: tuple[int, ...], n: Number) -> Number:
    """How many devices of a group of n are neither named nor the one that looks."""
    return n - len(named) - (1 if device is OTHER else 0)
