"""Schedules with an error that is a polynomial in a size."""

from dataclasses import replace
from fractions import Fraction

from spec.language.schedule import Buffer, Kind, Monomial, Op, Phase, Span


def product_of(roots):
    """The coefficients of (x - root) (x - root) ..., the constant one first."""
    found = [1]
    for root in roots:
        found = [a - root * b for a, b in zip([0, *found], [*found, 0], strict=True)]
    return found


def with_error(schedule, terms):
    """The schedule with the gradients taken several times more before what is in finish.

    `terms`: how often, a sum of (number, {size: exponent}).
    """
    phase, copy = Phase.REDUCE, Buffer.FRESH
    ops = [Op(Kind.KEEP, phase, Buffer.GRADIENTS, copy, span=Span.ALL_UNITS)]
    last, were = Fraction(1), dict[str, int]()
    for number, sizes in terms:
        change = {name: sizes.get(name, 0) - were.get(name, 0) for name in {*sizes, *were}}
        by = Monomial(number / last, tuple((name, e) for name, e in sorted(change.items()) if e))
        ops += [Op(Kind.SCALE, phase, copy, by=by), Op(Kind.ACCUMULATE, phase, copy, Buffer.GRADIENTS)]
        last, were = Fraction(number), sizes
    ops += [Op(Kind.RELEASE, phase, copy)] * bool(terms)
    return replace(schedule, finish=(*ops, *schedule.finish))


def with_roots(schedule, name, roots):
    """The schedule with an error that is 0 for some numbers of devices, or of micro-steps, only."""
    terms = [(c, {name: e} if e else {}) for e, c in enumerate(product_of(roots)) if c]
    return with_error(schedule, terms)
