"""What holds of every term with some operators, by what SMT-LIB says that they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psem_check.terms import Rejected, Term, Terms


def law(terms: Terms, name: str, of: Sequence[Term]) -> Term:
    """The law of a name about these terms. Raises Rejected if there is none."""
    count = {"read": 4, "value": 1, "abs": 1}.get(name, 2)
    if name not in LAWS or len(of) != count:
        raise Rejected("it is not a law")
    return LAWS[name](terms, *of)


def _zero(terms: Terms, b: Term) -> Term:
    """b = 0."""
    return terms.equal(b, terms.number(0, terms.sorts[b]))


def _quotient(terms: Terms, a: Term, b: Term) -> Term:
    """(a / b) b = a, or b is zero."""
    whole = terms.make("*", terms.make("/", a, b), b)
    return terms.make("or", _zero(terms, b), terms.equal(whole, a))


def _div(terms: Terms, m: Term, n: Term) -> Term:
    """n q <= m < n (q + 1) for the quotient q if n is positive, n (q - 1) if it is negative."""
    q, zero = terms.make("div", m, n), terms.number(0, terms.sorts[n])
    lower = terms.make("<=", terms.make("*", n, q), m)

    def between(sign: str, step: int) -> Term:
        moved = terms.make("+", q, terms.number(step, terms.sorts[n]))
        upper = terms.make("<", m, terms.make("*", n, moved))
        return terms.implication([terms.make(sign, n, zero)], terms.conjunction([lower, upper]))

    return terms.make("and", between(">", 1), between("<", -1))


def _mod(terms: Terms, m: Term, n: Term) -> Term:
    """m mod n = m - n (m div n), or n is zero."""
    rest = terms.make("-", m, terms.make("*", n, terms.make("div", m, n)))
    return terms.make("or", _zero(terms, n), terms.equal(terms.make("mod", m, n), rest))


def _abs(terms: Terms, a: Term) -> Term:
    """|a| is a, or -a if a is negative."""
    negative = terms.make("<", a, terms.number(0, terms.sorts[a]))
    return terms.equal(terms.make("abs", a), terms.make("ite", negative, terms.make("neg", a), a))


def _abs_product(terms: Terms, a: Term, b: Term) -> Term:
    """|a b| = |a| |b|."""
    absolutes = [terms.make("abs", factor) for factor in (a, b)]
    whole = terms.make("abs", terms.make("*", a, b))
    return terms.equal(whole, terms.make("*", *absolutes))


def _read(terms: Terms, array: Term, at: Term, value: Term, index: Term) -> Term:
    """What a changed array has at an index: the value there, and elsewhere what it had."""
    found = terms.make("select", terms.make("store", array, at, value), index)
    before = terms.make("select", array, index)
    return terms.equal(found, terms.make("ite", terms.equal(index, at), value, before))


def _value(terms: Terms, one: Term) -> Term:
    """A term of an enumeration is one of its values."""
    sort = terms.sorts[one]
    if not isinstance(sort, tuple) or sort[0] != "Values":
        raise Rejected("not of an enumeration")
    values = [terms.make(("value", sort, i)) for i in range(len(sort[2]))]
    cases = [terms.equal(one, value) for value in values]
    return terms.make("or", *cases) if len(cases) > 1 else cases[0]


LAWS: dict[str, Callable[..., Term]] = {
    "quotient": _quotient,
    "div": _div,
    "mod": _mod,
    "abs": _abs,
    "abs_product": _abs_product,
    "read": _read,
    "value": _value,
}
