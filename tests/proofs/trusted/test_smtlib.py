"""Obligations as text: standard SMT-LIB, and what the solver answers to it."""

import re
import signal

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from proofs.trusted import oracle
from proofs.trusted.oracle import ask, settle
from proofs.trusted.parts import substitute
from proofs.trusted.smtlib import ForAll, Question
from proofs.trusted.terms import (
    TRUE,
    And,
    BoolSort,
    Const,
    DeclareSort,
    EnumSort,
    Float64,
    FPVal,
    Function,
    Int,
    Ints,
    IntVal,
    Not,
    Or,
    Real,
    fp,
)

NAMES = ("candy", "orange", "a_and_b", "andor")


def Bool(name):
    return Const(name, BoolSort())


@pytest.fixture
def nothing_asked(monkeypatch):
    """A solver that has read nothing, and no answer is there already."""
    monkeypatch.setattr(oracle, "_session", oracle._Session())


@st.composite
def formulas(draw, depth=3):
    """Conjunctions and disjunctions of any number of formulas, none and one among them."""
    if not depth or draw(st.booleans()):
        return Bool(draw(st.sampled_from(NAMES)))
    joined = draw(st.sampled_from([And, Or, lambda *of: Not(And(*of))]))
    return joined(*draw(st.lists(formulas(depth=depth - 1), max_size=3)))


@given(formulas(), formulas())
def test_conjunctions_and_disjunctions_are_written_with_two_members_or_more(fact, goal):
    written = Question([fact, goal]).text
    assert not re.search(r"\((and|or) [^ ()]+\)", written)
    assert not re.search(r"(?<!\()\b(and|or)\b", written)


@given(formulas(), formulas(), st.permutations(["x0", "x1", "s0", "s1"]))
def test_the_answer_to_a_text_is_of_its_formulas_whatever_they_call_their_symbols(fact, goal, names):
    renamed = list(zip(map(Bool, NAMES), map(Bool, names), strict=True))
    both = [substitute(formula, *renamed) for formula in (fact, goal)]
    assert Question(both).text == Question([fact, goal]).text
    answer = ask(both)
    assert answer.said == ask([fact, goal]).said
    if answer.said == "sat":
        pairs = [(Bool(name), answer.values.get(name, TRUE)) for name in names]
        assert substitute(And(*both), *pairs) is TRUE


def test_a_question_under_other_names_is_not_asked_again(monkeypatch):
    x, y, last = Ints("x y last_of_all")
    first = ask([x * y == 3, x * y > 4])
    monkeypatch.setattr(oracle, "_solver", None)
    assert ask([last * x == 3, last * x > 4]) == first
    assert (first.said, first.values) == ("unsat", {})


@pytest.mark.parametrize("other", [">=", "=", "!="])
def test_questions_that_differ_have_two_texts(other):
    x, y = Ints("x y")
    formula = {">=": x + y >= 4, "=": x + x > 4, "!=": y + x > 4}[other]
    texts = {Question([given, x < y]).text for given in (x + y > 4, formula)}
    assert len(texts) == 2


def test_the_values_of_a_model_are_the_values_of_its_unknowns():
    colour, (red, green) = EnumSort("Colour", ["Red", "Green"])
    c, f, b, n, r = Const("c", colour), Const("f", Float64()), Bool("b"), Int("n"), Real("r")
    said = [c != red, Not(b), n == -3, r * 3 == -2, fp("fp.eq", f, FPVal(0.1))]
    found = ask(said).values
    assert found["c"] is green
    assert (str(found["b"]), str(found["n"]), str(found["r"])) == ("False", "-3", "-2/3")
    assert found["f"] is FPVal(0.1)


def test_symbols_and_sorts_have_numbers_for_names_in_what_is_asked():
    thing = DeclareSort("Thing")
    colour, (red, _) = EnumSort("Colour", ["Red", "Green"])
    f = Function("my_function", thing, colour)
    written = Question([f(Const("my_thing", thing)) == red]).text
    assert not re.search("my_|Thing|Colour|Red|Green", written)


def test_enumerations_of_one_name_are_two_in_what_is_asked():
    two, (_, second) = EnumSort("Pig", ["First", "Second"])
    three, (_, _, third) = EnumSort("Pig", ["First", "Second", "Third"])
    asked = [Const("x", two) == second, Const("y", three) == third]
    assert Question(asked).text.count("declare-datatypes") == 2
    assert ask(asked).said == "sat"


def test_a_variable_of_a_hypothesis_need_not_occur_in_it():
    n = Int("n")
    hypothesis = ForAll((n,), Bool("b"))
    assert ask([hypothesis, Not(Bool("b"))]).said == "unsat"


def test_what_speaks_of_a_bound_variable_is_not_written_above():
    n = Int("n")
    long = (n + 1) * 2 + 3
    asked = ForAll((n,), Or(long > 4, long + 1 < 4, long * 2 == 8))
    assert "define-fun" not in Question([asked]).text


def test_an_interrupt_waits_until_the_reader_is_done(monkeypatch):
    masked = []

    class Reader(z3.Solver):
        def from_string(self, given):
            masked.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            super().from_string(given)

    monkeypatch.setattr(z3, "Solver", Reader)
    ask([Int("never_asked_before") == 77_077])
    assert masked == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_an_interrupt_waits_until_a_text_is_answered_that_is_read_after_others(monkeypatch):
    masked, evaluated = [], z3.Z3_eval_smtlib2_string

    def evaluate(*given):
        masked.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return evaluated(*given)

    monkeypatch.setattr(z3, "Z3_eval_smtlib2_string", evaluate)
    settle([Int("never_asked_before") == 77_078])
    assert masked == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_what_one_text_says_is_forgotten_when_the_next_is_read(nothing_asked):
    """The same name of another sort, with other values; what held holds no longer."""
    x, y = Int("x"), Real("x")
    said = [settle(asked).said for asked in ([x > 4], [x < 3], [y < 1, y > 0], [x < 1, x > 0])]
    assert said == ["sat", "sat", "sat", "unsat"]


def test_what_is_answered_is_not_asked_again_in_the_next_claim(nothing_asked, monkeypatch):
    first = settle([Int("x") > 4])
    oracle.start()
    monkeypatch.setattr(z3, "Z3_eval_smtlib2_string", None)
    assert settle([Int("y") > 4]) == first


def test_after_a_text_that_cannot_be_read_a_new_solver_answers(nothing_asked):
    for wrong in ("(assert nothing)\n(check-sat)\n", "(check-sat)\n(check-sat)\n"):
        with pytest.raises((z3.Z3Exception, ValueError)):
            oracle._session.answer(wrong, oracle.SOON)
        assert z3.get_param("rlimit") == "0"
    assert settle([Int("x") > 4]).said == "sat"


def test_the_limit_of_a_question_is_not_that_of_other_solvers(nothing_asked):
    assert settle([Int("x") > 4]).said == "sat"
    assert z3.get_param("rlimit") == "0"


def test_a_solver_forgets_all_after_some_texts_and_answers_alike(nothing_asked):
    for number in range(2 * oracle._session.most + 3):
        x = Int("x")
        assert settle([x > number, x < number + 1 + number % 2]).said == (
            "sat" if number % 2 else "unsat"
        )


def test_enumerations_of_texts_that_one_solver_reads_are_told_apart(nothing_asked):
    def has_the_first_two(names):
        sort, values = EnumSort("Of" + names, [*names])
        x = Const("x", sort)
        asked = [Not(Or(x == values[0], x == values[1]))]
        return settle(asked).said

    assert [has_the_first_two(names) for names in ("AB", "CDE", "FG", "HIJ")] == [
        "unsat",
        "sat",
        "unsat",
        "sat",
    ]


def test_what_is_asked_alike_of_other_symbols_is_answered_with_their_names():
    """Their texts are the same; values are not taken from the answer to the other."""
    for name in ("x", "y"):
        assert ask([Int(name) == 3]).values == {name: IntVal(3)}


def test_an_answer_that_is_soon_there_leaves_the_values_of_the_same_question_to_be_asked(nothing_asked):
    said = [Int("asked_twice") == 4]
    assert settle(said).values == {}
    assert ask(said).values == {"asked_twice": IntVal(4)}
