"""What normal forms are made of: original values, times functions of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from spec.devices.operators import NormalForm, Offset, Word
from spec.numbers.arithmetic import Number

MicroStep = int | str  # of a micro-step: a number, or one of these
EACH = "any one"  # of which nothing is said
EVERY = "every"  # their sum
OWN = "its own"  # in a symbol that is such a sum: each one's
LAST = "last"


class Frozen(tuple[tuple[tuple[Any, Word], Number], ...]):
    """The terms of a normal form, in order. Symbols are inside symbols: a hash is computed once."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


class Symbol(NamedTuple):
    """An original value: of a step, and a micro-step or operation; times functions of numbers."""

    # weight, moment, gradient, tied, tokens, statistic, norm, scaled, fault, unknown, summed, before
    kind: str
    step: int
    which: MicroStep = 0
    made_of: Any = None  # of a norm, a SquareNorm; if scaled, a Scaled; if not known, why
    multipliers: tuple[Multiplier, ...] = ()

    @property
    def known(self) -> bool:
        return self.kind != "unknown"


class Multiplier(NamedTuple):
    """A function of a number, by which a value is multiplied."""

    function: str  # over: divided by the number; clip: clipped by the norm whose square it is
    number: Frozen


class SquareNorm(NamedTuple):
    """What the square norm of a gradient is made of. Along each axis: whether the gradient differs from
    device to device, and of slices, whose slice this one is.
    """

    gradient: Frozen
    varies: tuple[bool, ...]
    places: tuple[int, ...]


class Scaled(NamedTuple):
    """What a value was before it was multiplied by a factor that differs from device to device."""

    symbol: Symbol
    word: Word
    multiplier: Multiplier


BEFORE = "before"  # of symbols: what the earlier micro-steps left, whatever it is
SAME = ("weight", "moment", "statistics")  # symbols that are the same on every device
Offsets = tuple[Offset, ...]  # where a device is along each axis, seen from the element's owner


def frozen(form: NormalForm) -> Frozen:
    """A form as a part of a symbol."""
    return Frozen(sorted(form.items(), key=lambda item: repr(item[0])))


def of_other_parts(part: Any, parts: Iterable[Any]) -> Any:
    """The same kind of tuple, of other parts: of a symbol, or of what is in one."""
    return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)


def mentions(part: Any, what: str) -> bool:
    """Whether there is a symbol of a kind, or an index, in a part of a symbol."""
    inner = part if isinstance(part, tuple) else ()
    return part == what or any(mentions(p, what) for p in inner)
