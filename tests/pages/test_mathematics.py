"""Mathematics: what is set says what the formula says."""

import re
from html import unescape

import pytest
import sympy
import z3
from hypothesis import given
from hypothesis import strategies as st

from psem_model.pages.mathematics import conditions, formula, line, term_in_pieces

x, y, n = z3.Ints("x y n")
p, q = z3.Bools("p q")
f = z3.Function("f", z3.IntSort(), z3.RealSort())
a = z3.Array("a", z3.IntSort(), z3.RealSort())


def said(markup):
    """The text of some mathematics, without spaces."""
    fractions = re.sub(r"<mfrac>(.*?)(?=<mrow>|<mn>\d+</mn></mfrac>)", r"\1", str(markup))
    return "".join(unescape(re.sub(r"<[^>]+>", "", fractions)).split())


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ((x + y) * n, "(x+y)·n"),
        (x + y * n, "x+y·n"),
        (x - (y - n), "x−(y−n)"),  # noqa: RUF001
        (x - y - n, "x−y−n"),  # noqa: RUF001
        (-(x + y), "−(x+y)"),  # noqa: RUF001
        (z3.And(p, z3.Or(q, x <= 1)), "p∧(q∨x≤1)"),  # noqa: RUF001
        (z3.Or(p, z3.And(q, x <= 1)), "p∨(q∧x≤1)"),  # noqa: RUF001
        (z3.Not(x == y), "x≠y"),
        (z3.And(p, z3.Not(x <= y)), "p∧x>y"),
        (z3.Not(p == q), "¬(p⇔q)"),
        (z3.Implies(z3.Implies(p, q), p), "(p⇒q)⇒p"),
        (z3.Implies(p, z3.Implies(q, p)), "p⇒q⇒p"),
        (z3.Not(z3.And(p, q)), "¬(p∧q)"),
        ((p == q), "p⇔q"),
        (f(x + 1) == a[y], "f(x+1)=a[y]"),
        (z3.If(p, x, y) + 1 == n, "(xifpelsey)+1=n"),
        ((x / y) * n == x % y, "(xdivy)·n=xmody"),
        (z3.ToReal(x) >= f(0), "x≥f(0)"),
    ],
)
def test_brackets_are_where_they_are_needed(term, text):
    assert said(term_in_pieces(term)) == text


def test_what_is_too_large_is_not_set():
    assert conditions([z3.And(*(x + i <= y for i in range(100)))]) is None
    assert len(conditions([z3.And(x <= y, y <= n)])) == 2


def test_what_is_true_anyway_is_not_set_and_nothing_twice():
    true = z3.BoolVal(True)
    found = conditions([z3.Implies(true, p), z3.Implies(q, true), p])
    assert [said(each) for each in found] == ["p"]


def test_names_are_escaped():
    assert "<b>" not in term_in_pieces(z3.Int("<b>") == 1)
    assert "<b>" not in line("a <b> c")
    assert line("N <= ceil(Psi/N) n^2 => x*y") == "N ≤ ⌈Ψ/N⌉ n<sup>2</sup> ⇒ x·y"


SYMBOLS = st.sampled_from(sympy.symbols("Psi N K m U", positive=True))


@given(SYMBOLS, SYMBOLS, st.integers(1, 9))
def test_a_formula_has_each_of_its_symbols(first, second, number):
    found = said(formula(first * number / second + sympy.ceiling(first)))
    for symbol in {first, second} if first != second else ():
        assert {"Psi": "Ψ"}.get(symbol.name, symbol.name) in found
