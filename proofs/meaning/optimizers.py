"""E5: optimizers on numbers, in several steps, are the sums that are written of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from proofs.trusted.kernel import KernelError
from spec.models import training

GRADIENTS = [Fraction(n, 3) for n in (5, -2, 0, 7, 1)]
RATE, DECAY, BETA1, BETA2, EPSILON = (Fraction(1, n) for n in (5, 3, 4, 7, 9))
START, BOUND, WEIGHT = 2, 2, 3
SIDES = Fraction(3, 5), Fraction(-4, 5)  # of a vector of length 1


def require_published(claim: str) -> None:
    """Raise KernelError unless optimizers and clippings do what is known of them."""
    for name, found, expected in (*_steps(), *_clippings()):
        if found != expected:
            raise KernelError(f"{claim}: {name} makes {found}, not {expected}")


def _decayed(decay: Fraction, numbers: Sequence[Fraction]) -> Fraction:
    """Each counts less the more come after it."""
    return sum((g * decay**after for after, g in enumerate(reversed(numbers))), Fraction(0))


def _steps() -> Iterator[tuple[str, Any, Any]]:
    """What steps leave, as sums over all gradients. Adam's root may be any number."""
    plain: Any = START
    by_moment, by_adam, moment, first, second = START, START, 0, 0, 0
    moments = []
    for step, gradient in enumerate(GRADIENTS, 1):
        past = GRADIENTS[:step]
        plain = training.sgd(plain, training.weighted(WEIGHT, gradient), RATE)
        by_moment, moment = training.momentum(by_moment, moment, gradient, RATE, DECAY)
        first, second = training.adam_moments(first, second, gradient, BETA1, BETA2)
        after = training.adam_weight(by_adam, first, step, RATE, EPSILON)
        moments.append(_decayed(DECAY, past))
        mean, of_squares = _decayed(BETA1, past), _decayed(BETA2, [g * g for g in past])
        yield "gradient descent", plain, START - RATE * WEIGHT * sum(past)
        yield "momentum", (moment, by_moment), (moments[-1], START - RATE * sum(moments))
        yield "Adam's moments", (first, second), ((1 - BETA1) * mean, (1 - BETA2) * of_squares)
        yield "Adam's step", (by_adam - after) * (step + EPSILON), RATE * first
        by_adam = after


def _clippings() -> Iterator[tuple[str, Any, Any]]:
    """A size's sign; the nearest value within bounds; a vector as long as may be, in its direction."""

    def select(condition: bool, yes: Any, no: Any) -> Any:
        return yes if condition else no

    numbers = [Fraction(n, 2) for n in range(-8, 9)]
    within = [n for n in numbers if abs(n) <= BOUND]
    for x in numbers:
        yield "a sign", training.sign(x, select), (x > 0) - (x < 0)
        nearest = min(within, key=lambda n: abs(n - x))
        yield "a clipped value", training.clip_value(x, BOUND, select), nearest
    for norm in (Fraction(1, 2), Fraction(2), Fraction(15)):
        length = min(norm, Fraction(BOUND))
        clipped = [training.clip_by_norm(x * norm, norm, BOUND, select) for x in SIDES]
        yield "a clipped vector", clipped, [x * length for x in SIDES]
