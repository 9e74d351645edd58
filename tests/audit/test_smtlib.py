"""Formulas as text for readers: standard SMT-LIB, in a logic that holds what occurs in them."""

import pytest

from proofs.trusted import oracle
from proofs.trusted.kernel import Kernel
from proofs.trusted.parts import below
from proofs.trusted.terms import ArraySort, Int, IntSort, RealSort
from psem_model.audit.smtlib import OwnNames, Spelling, logic_of, text
from tests.support.examples import slow_but


def test_the_logic_holds_the_elements_of_arrays():
    k = Kernel("test")
    array = k.function("array", IntSort(), ArraySort(IntSort(), RealSort()))
    assert logic_of(below([array(0) == array(1)])) == "QF_AUFLIRA"


@pytest.mark.parametrize("times", slow_but([3, 4], range(1, 8)))
def test_what_is_said_often_is_defined_once_if_the_text_becomes_shorter(times):
    """And then each says the same."""
    x, y = Int("x"), Int("y")
    often = (x * x * x * x + y * y * y * y) * (x + y + 1) * (x - y - 1)
    formulas = [often > i for i in range(times)]
    apart = [text([formula]) for formula in formulas]
    again = sum(line.startswith("(assert") * len(line) for each in apart for line in each.splitlines())
    together = text(formulas)
    lines = [line for line in together.splitlines() if line.startswith(("(define", "(assert"))]
    assert sum(map(len, lines)) <= again
    assert ("define-fun" in together) == (times > 1)
    assert oracle.reading(together) == "sat"


def test_what_is_said_often_of_a_parameter_has_it_for_a_parameter():
    x, y = Int("x"), Int("y")
    long = (x * y + x * x + y * y) * (x * 11 + y * 13)
    said = Spelling([long == 1, long == 2, long == 3, long == 4], OwnNames(), [x])
    (line,) = said.lines
    assert line.startswith("(define-fun $product1 ((x Int)) Int ")
    assert said(long == 1) == "(= ($product1 x) 1)"
