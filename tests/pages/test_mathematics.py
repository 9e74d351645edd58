"""Mathematics: what is set says what the formula says."""

import re
from html import unescape

import pytest

from proofs.trusted.terms import (
    And,
    ArraySort,
    BoolSort,
    BoolVal,
    Const,
    Function,
    If,
    Implies,
    Ints,
    IntSort,
    Not,
    Or,
    RealSort,
    ToReal,
)
from psem_model.pages.mathematics import conditions, term_in_pieces

x, y, n = Ints("x y n")
p, q = Const("p", BoolSort()), Const("q", BoolSort())
f = Function("f", IntSort(), RealSort())
a = Const("a", ArraySort(IntSort(), RealSort()))


def said(markup):
    """The text of some mathematics, without spaces."""
    return "".join(unescape(re.sub(r"<[^>]+>", "", str(markup))).split())


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ((x + y) * n, "(x+y)·n"),
        (x + y * n, "x+y·n"),
        (x - (y - n), "x−(y−n)"),  # noqa: RUF001
        (x - y - n, "x−y−n"),  # noqa: RUF001
        (-(x + y), "−(x+y)"),  # noqa: RUF001
        (And(p, Or(q, x <= 1)), "p∧(q∨x≤1)"),  # noqa: RUF001
        (Or(p, And(q, x <= 1)), "p∨(q∧x≤1)"),  # noqa: RUF001
        (Not(x == y), "x≠y"),
        (And(p, Not(x <= y)), "p∧x>y"),
        (Not(p == q), "¬(p⇔q)"),
        (Implies(Implies(p, q), p), "(p⇒q)⇒p"),
        (Implies(p, Implies(q, p)), "p⇒q⇒p"),
        (Not(And(p, q)), "¬(p∧q)"),
        ((p == q), "p⇔q"),
        (f(x + 1) == a[y], "f(x+1)=a[y]"),
        (If(p, x, y) + 1 == n, "(xifpelsey)+1=n"),
        ((x / y) * n == x % y, "(xdivy)·n=xmody"),
        (ToReal(x) >= f(0), "x≥f(0)"),
    ],
)
def test_brackets_are_where_they_are_needed(term, text):
    assert said(term_in_pieces(term)) == text


def test_what_is_too_large_is_not_set():
    assert conditions([And(*(x + i <= y for i in range(100)))]) is None
    assert len(conditions([And(x <= y, y <= n)])) == 2


def test_what_is_true_anyway_is_not_set_and_nothing_twice():
    true = BoolVal(True)
    found = conditions([Implies(true, p), Implies(q, true), p])
    assert [said(each) for each in found] == ["p"]
