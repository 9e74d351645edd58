"""What a rule needs of its numbers beyond + - * : splitting a whole into shards, and the maximum.

A rule never asks what its numbers are. Whole numbers give the exact, padded sizes; fractions,
symbols and terms give the closed forms of the divisible case.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

Number = Any  # int, Fraction, a NumPy array, a SymPy expression or a Z3 term


class Arithmetic(Protocol):
    """How one kind of number divides and compares."""

    def shard(self, elements: Number, unit: Number, devices: Number) -> Number:
        """Elements each of `devices` keeps of a whole that is stored in units of `unit` elements."""

    def maximum(self, first: Number, *others: Number) -> Number:
        """The largest."""


def ceil_div(a: Number, b: Number) -> Number:
    """The least whole number of b's that covers a. Whole numbers or arrays of them, b >= 1."""
    return -(-a // b)


def quotient(a: Number, b: Number) -> Number:
    """a over b: whole numbers rounded up, other numbers exactly."""
    return ceil_div(a, b) if isinstance(a, int) and isinstance(b, int) else a / b


def per(a: Number, b: Number) -> Number:
    """a over b, exactly: a whole number where it is one, else a fraction."""
    if not (isinstance(a, int | Fraction) and isinstance(b, int)):
        return a / b
    found = Fraction(a, b)
    return found.numerator if found.denominator == 1 else found


def first_within(step: int, modulus: int, low: int, high: int) -> int | None:
    """The least n, from 0 on, for which n * step, modulo a modulus, is from low to high; none: no n.

    0 <= step < modulus and 0 <= low <= high < modulus.
    """
    if low == 0 or step == 0:
        return 0 if low == 0 else None
    n: int = ceil_div(low, step)
    if n * step <= high:
        return n
    # what is beside steps of the modulus, modulo the step
    turns = first_within(modulus % step, step, -high % step, -low % step)
    return None if turns is None else -(-(low + turns * modulus) // step)


def power(base: Number, exponent: int) -> Number:
    """base ** exponent, exactly: a whole number becomes a fraction where it must."""
    return (Fraction(base) if isinstance(base, int) and exponent < 0 else base) ** exponent


class Exact:
    """Whole numbers: each unit is cut into equal chunks, the last ones padded."""

    def shard(self, elements: Number, unit: Number, devices: Number) -> Number:
        if unit is elements:
            return ceil_div(elements, devices)
        units, rest = elements // unit, elements % unit
        return units * ceil_div(unit, devices) + ceil_div(rest, devices)

    def maximum(self, first: Number, *others: Number) -> Number:
        return max(first, *others) if others else first


class Divisible(Exact):
    """Exact fractions, as if every whole were divisible by every group: the closed forms."""

    def shard(self, elements: Number, unit: Number, devices: Number) -> Number:
        return Fraction(elements) / devices


EXACT: Arithmetic = Exact()
DIVISIBLE: Arithmetic = Divisible()
