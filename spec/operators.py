"""The operator algebra: what a schedule can do to a per-device value along one axis of n devices.

    1    keep: one's own value
    S    sum: the sum over the group
    E    owner: the owner's value
    F    slice: one's own value if one is the owner, else nothing (zero)
    FS   the sum, kept by the owner

all_reduce is S, all_gather is E, reduce_scatter is FS. Operators along different axes commute;
accumulation adds. So every value is a combination of products of operators applied to the devices'
original values: its normal form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from spec.arithmetic import Number
from spec.mesh import Device

Value = Callable[[Device], Any]  # one element's value on each device
Total = Callable[[Number, Callable[[Any], Any]], Any]  # total(n, f) = f(0) + ... + f(n - 1)


class Operator(Enum):
    """What happened to a value along one axis."""

    KEEP = "1"
    SUM = "S"
    OWNER = "E"
    SLICE = "F"
    SUM_SLICE = "FS"


KEEP, SUM, OWNER, SLICE, SUM_SLICE = Operator


# -------------------------------------------------------------------- meaning
def nothing(_: Device) -> int:
    """The value of what is not there."""
    return 0


def summed(value: Value, axis: str, n: Number, total: Total) -> Value:
    """S: every device of the group has the sum over the group."""
    return lambda device: total(n, lambda i: value({**device, axis: i}))


def owners(value: Value, axis: str, owner: Number) -> Value:
    """E: every device of the group has the owner's value."""
    return lambda device: value({**device, axis: owner})


def sliced(
    value: Value,
    axis: str,
    owner: Number,
    select: Callable[[Any, Any, Any], Any],
    otherwise: Value = nothing,
) -> Value:
    """F: the owner has its value, the others nothing (or what they had otherwise)."""
    return lambda device: select(device[axis] == owner, value(device), otherwise(device))


# -------------------------------------------------------------------- algebra
def product(left: Operator, right: Operator, n: Number) -> tuple[Number, Operator]:
    """left after right, as a coefficient times one operator."""
    if left is KEEP:
        return 1, right
    if right is KEEP:
        return 1, left
    if left is SUM_SLICE:
        factor, middle = product(SUM, right, n)
        return factor, product(SLICE, middle, n)[1]
    has_sum = right in (SUM, SUM_SLICE)
    if left is SUM:
        factor = n if right in (SUM, OWNER) else 1
        return factor, SUM if has_sum else OWNER
    if left is OWNER:
        return 1, SUM if has_sum else OWNER
    return 1, SUM_SLICE if has_sum else SLICE


Word = tuple[Operator, ...]  # one operator for each axis
NormalForm = Mapping[tuple[Any, Word], Number]  # (symbol, word) -> coefficient


def apply(operator: Operator, axis: int, form: NormalForm, n: Number) -> dict[Any, Number]:
    """The normal form after `operator` along the axis of that index, of size n."""
    result: dict[Any, Number] = {}
    for (symbol, word), coefficient in form.items():
        factor, after = product(operator, word[axis], n)
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
    """The devices of a group, as one of them sees them."""

    SELF = "itself"
    OWNER = "the owner"
    REST = "each of the rest"


READS: dict[bool, dict[Operator, tuple[Source, ...]]] = {
    # on the owner itself
    True: {
        KEEP: (Source.SELF,),
        SUM: (Source.SELF, Source.REST),
        OWNER: (Source.SELF,),
        SLICE: (Source.SELF,),
        SUM_SLICE: (Source.SELF, Source.REST),
    },
    # on any other device
    False: {
        KEEP: (Source.SELF,),
        SUM: (Source.SELF, Source.OWNER, Source.REST),
        OWNER: (Source.OWNER,),
        SLICE: (),
        SUM_SLICE: (),
    },
}


def exists(owner: bool, source: Source, n: Number) -> bool:
    """Whether a group of n has such a device. A symbolic n stands for every n >= 3."""
    if source is Source.REST and isinstance(n, int):
        return n >= (2 if owner else 3)
    return True
