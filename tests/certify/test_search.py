"""What the search finds by itself, and that its terms are those of the checker's forms."""

from typing import Any

import pytest
from hypothesis import given

from psem_check.proofs import Steps
from psem_check.reader import Graph
from psem_check.terms import BOOL, INT, REAL, Symbol, Terms
from psem_model.certify.cases import LITTLE
from psem_model.certify.cores import Cores
from psem_model.certify.formulas import Formulas
from psem_model.certify.questions import check, question
from psem_model.certify.search import Proof, search
from tests.support.certificates import Solver
from tests.support.drawn import drawn_formulas

MODE = ("Values", "Mode", ("R", "S", "M"))
ROW = ("Array", INT, REAL)


class Written:
    """Formulas about a few symbols, as one writes them."""

    def __init__(self):
        self.terms = Terms()
        sorts = {"n": INT, "m": INT, "x": REAL, "y": REAL, "z": REAL, "s": MODE, "u": ROW, "v": ROW}
        self.terms.symbols = [Symbol(name, (), sort) for name, sort in sorts.items()]
        self.terms.symbols += [Symbol("f", (INT,), REAL), Symbol("p", (REAL,), BOOL)]
        self.numbers = {symbol.name: i for i, symbol in enumerate(self.terms.symbols)}

    def __call__(self, head, *of):
        """A number, a value, a symbol or an operator with its arguments."""
        terms = self.terms
        if isinstance(head, int):
            return terms.number(head, *of)
        if head in MODE[2]:
            return terms.make((MODE, MODE[2].index(head)))
        made = [part if isinstance(part, int) else self(*part) for part in of]
        if head == "distinct":
            return terms.negation(terms.equal(*made))
        return (
            terms.make(self.numbers[head], *made) if head in self.numbers else terms.make(head, *made)
        )


def zero(sort):
    return (0, sort)


N, M, X, Y, Z, S, U, V = (tuple(name) for name in "nmxyzsuv")
FOUND: dict[str, Any] = {
    "bounds": [("<", X, Y), ("<", Y, Z), ("<", Z, X)],
    "numbers of a range": [
        (">=", N, zero(INT)),
        ("<", N, (2, INT)),
        ("distinct", N, zero(INT)),
        ("distinct", N, (1, INT)),
    ],
    "values of an enumeration": [("distinct", S, (mode,)) for mode in MODE[2]],
    "numbers that bounds make equal": [
        ("<=", N, M),
        ("<=", M, N),
        ("distinct", ("f", N), ("f", M)),
    ],
    "a product": [("<", zero(REAL), X), ("<", X, Y), (">=", ("*", X, X), ("*", Y, Y))],
    "a quotient": [("<", zero(REAL), X), ("<", X, Y), (">=", ("/", X, Y), (1, REAL))],
    "a sign": [("<", N, ("+", N, ("*", M, M))), ("<=", M, zero(INT)), (">=", M, zero(INT))],
    "an array that was changed": [
        ("=", V, ("store", U, N, X)),
        ("distinct", ("select", V, N), X),
    ],
    "conjunctions of which some are not needed": [
        *(("or", ("p", (i, REAL)), ("p", ("+", X, (i, REAL)))) for i in range(1, 5)),
        ("or", ("p", Y), ("<", X, Y)),
        ("not", ("p", Y)),
        ("or", ("<", Y, X), ("p", Z)),
        ("not", ("p", Z)),
    ],
}


@pytest.mark.parametrize("what", FOUND)
def test_what_is_impossible_is_found_to_be_so(what):
    write = Written()
    text = question(write.terms, [write(*fact) for fact in FOUND[what]])
    check(text, search(text))


@pytest.mark.parametrize("what", FOUND)
def test_without_one_of_the_facts_nothing_is_found(what):
    write = Written()
    facts = [write(*fact) for fact in FOUND[what]]
    for fact in facts:
        others = [other for other in facts if other != fact]
        if not Solver(write.terms).follows(others, write.terms.false):
            assert "missing" in search(question(write.terms, others))


def test_of_many_conjunctions_only_those_that_are_needed_are_gone_through():
    write = Written()
    facts = [write(*fact) for fact in FOUND["conjunctions of which some are not needed"]]
    first, *_ = Proof(question(write.terms, facts), LITTLE).found()["steps"]
    assert first[0] == "follows"


@given(drawn_formulas(2, 5))
def test_a_form_is_that_of_its_term(drawn):
    terms, formulas = drawn
    forms = Steps(Graph(terms)).forms
    made = Formulas(forms, [])
    for formula in formulas:
        form = forms.of(formula)
        assert forms.of(made.of(form)) == form


@given(drawn_formulas(2, 4))
def test_what_cannot_hold_together_is_impossible(drawn):
    terms, formulas = drawn
    forms = Steps(Graph(terms)).forms
    given_ = [forms.of(formula) for formula in formulas]
    core = Cores(forms, inside=True).core(given_)
    if core:
        chosen = [f for f in formulas if forms.of(f) in core]
        assert Solver(terms).follows(chosen, terms.false) is not False
