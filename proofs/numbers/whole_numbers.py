"""X1: whole numbers over others, in chunks and around a circle, tried one by one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod

from proofs.trusted.kernel import Kernel, KernelError
from spec.numbers.arithmetic import DIVISIBLE, EXACT, ceil_div, first_within, per, power, quotient

UP_TO = range(1, 7)


def whole_numbers_are_divided(k: Kernel) -> None:
    """Raise KernelError unless quotients, chunks, powers and steps around a circle are those found."""
    for a, b in product((0, *UP_TO), UP_TO):
        up = next(q for q in range(a + 1) if q * b >= a)
        exact = per(a, b)
        found = [ceil_div(a, b), quotient(a, b), quotient(Fraction(a), b), quotient(a, Fraction(b))]
        found += [per(Fraction(a), b), exact]
        _require(k, f"{a} over {b}", found, [up, up, *[Fraction(a, b)] * 4])
        _require(k, f"{a} over {b}, whole", isinstance(exact, int), any(q * b == a for q in range(7)))
        _require(k, f"{b} to the {a}", [power(b, -a) * power(b, a), power(b, a)], [1, prod([b] * a)])
        for unit in UP_TO:
            parts = [min(unit, a - start) for start in range(0, a, unit)]
            chunks = [next(c for c in range(part + 1) if c * b >= part) for part in parts]
            _require(k, f"{a} of {unit} on {b}", EXACT.shard(a, unit, b), sum(chunks))
            _require(k, f"{a} on {b}", DIVISIBLE.shard(a, unit, b), Fraction(a, b))
            _require(k, "the largest", EXACT.maximum(a, unit, b), sorted((a, unit, b))[-1])
    for modulus in UP_TO:
        for step, low, high in product(range(modulus), repeat=3):
            there = [n for n in range(modulus) if low <= n * step % modulus <= high]
            if low <= high:
                first = first_within(step, modulus, low, high)
                _require(k, f"{low} to {high} by {step} of {modulus}", first, min(there, default=None))


def _require(k: Kernel, of: str, found: object, expected: object) -> None:
    if found != expected:
        raise KernelError(f"{k.claim}: {of}: {found}, and not {expected}")
