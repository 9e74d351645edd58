"""What operators make of numerals: of fractions, and of floats, which are the machine's own.

Sums, products, comparisons and connectives are not here: normal forms work these out.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any


def float_of(bits: int) -> float:
    """The number that 64 bits are."""
    (found,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    return float(found)


def bits_of(number: float) -> int:
    return int.from_bytes(struct.pack(">d", number), "big")


def _div(a: Fraction, b: Fraction) -> Fraction:
    """SMT-LIB's: the remainder is not negative.

    By zero it is any function: ZeroDivisionError.
    """
    return Fraction(math.floor(a / b) if b > 0 else math.ceil(a / b))


def _mod(a: Fraction, b: Fraction) -> Fraction:
    return a - b * _div(a, b)


OPERATORS: dict[Any, Callable[..., bool | float | Fraction]] = {
    "abs": abs,
    "div": _div,
    "mod": _mod,
    "to_int": lambda a: Fraction(math.floor(a)),
    "is_int": lambda a: a.denominator == 1,
    "fp.add": operator.add,
    "fp.eq": operator.eq,
    "fp.lt": operator.lt,
    "fp.gt": operator.gt,
    "fp.leq": operator.le,
    "fp.geq": operator.ge,
}
