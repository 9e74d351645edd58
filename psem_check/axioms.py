"""The axioms that a theorem may rest on, as formulas about symbols. There are no others.

Besides these, induction and the real numbers are part of the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psem_check.terms import Rejected, Term, Terms


def axiom(terms: Terms, name: str, functions: Sequence[int], variables: Sequence[Term]) -> Term:
    """The axiom of a name about functions, for all values of the variables."""
    axioms: dict[str, Callable[..., Term]] = {
        "linearity": _linearity,
        "determinism": _determinism,
        "exponential": _exponential,
    }
    if name not in axioms:
        raise Rejected(f"{name} is not an axiom")
    try:
        return axioms[name](terms, *functions, variables=variables)
    except (TypeError, ValueError) as error:
        raise Rejected(f"{name} is of other symbols") from error


def _linearity(
    terms: Terms, gradient: int, weighted_sum: int, samples: int, variables: Sequence[Term]
) -> Term:
    """The gradient of a batch, at an element, is the weighted sum over its samples."""
    *of, t, j = variables
    whole = terms.make("select", terms.apply(gradient, *of, t), j)
    return terms.equal(whole, terms.apply(weighted_sum, *of, t, j, terms.apply(samples, t)))


def _determinism(terms: Terms, on_device: int, function: int, variables: Sequence[Term]) -> Term:
    """What a device computes depends on the other arguments alone."""
    _, *arguments = variables
    return terms.equal(terms.apply(on_device, *variables), terms.apply(function, *arguments))


def _exponential(terms: Terms, exp: int, variables: Sequence[Term]) -> Term:
    """It turns sums into products, and is positive."""
    a, b = variables
    at = {x: terms.apply(exp, x) for x in (a, b)}
    sum_ = terms.apply(exp, terms.make("+", a, b))
    zero = terms.number(0, terms.sorts[at[a]])
    turns = terms.equal(sum_, terms.make("*", at[a], at[b]))
    return terms.make("and", turns, terms.make(">", at[a], zero))
