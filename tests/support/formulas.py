"""Formulas as tables print them, evaluated."""

from fractions import Fraction

import sympy


def number(text, values):
    """A formula's value. A shard: whole units, each cut and padded, and the rest of one."""

    def shard(a, u, n):
        return a // u * sympy.ceiling(u / n) + sympy.ceiling((a % u) / n)

    names = {name: sympy.Integer(value) for name, value in values.items()}
    found = sympy.sympify(text, locals={"ceil": sympy.ceiling, "shard": shard, **names})
    return Fraction(int(found.p), int(found.q))
