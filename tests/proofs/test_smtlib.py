"""Obligations as text: standard SMT-LIB, in a logic that holds what occurs in them."""

import re
import signal
import threading

import z3
from hypothesis import given
from hypothesis import strategies as st

from proofs.trusted import smtlib
from proofs.trusted.kernel import Kernel
from proofs.trusted.parts import substitute
from proofs.trusted.smtlib import decided, logic_of, standalone_text
from proofs.trusted.terms import And, ArraySort, Bool, BoolVal, Ints, IntSort, Not, Or, RealSort


@st.composite
def formulas(draw, depth=3):
    """Conjunctions and disjunctions of any number of formulas, none and one among them."""
    if not depth or draw(st.booleans()):
        return Bool(draw(st.sampled_from(["candy", "orange", "a_and_b", "andor"])))
    joined = draw(st.sampled_from([And, Or, lambda *of: Not(And(*of))]))
    return joined(*draw(st.lists(formulas(depth=depth - 1), max_size=3)))


def read(text):
    """What a text asserts, once declared."""
    return And(*z3.parse_smt2_string(text))


@given(formulas(), formulas())
def test_conjunctions_and_disjunctions_are_written_with_two_members_or_more(fact, goal):
    text = standalone_text([fact, goal])
    assert not re.search(r"\((and|or) [^ ()]+\)", text)
    assert not re.search(r"(?<!\()\b(and|or)\b", text)


@given(formulas(), formulas(), st.permutations(["x0", "x1", "s0", "s1"]))
def test_the_answer_to_a_text_is_of_its_formulas_whatever_they_call_their_symbols(fact, goal, names):
    old = [Bool(name) for name in ("candy", "orange", "a_and_b", "andor")]
    renamed = list(zip(old, map(Bool, names), strict=True))
    both = [substitute(formula, *renamed) for formula in (fact, goal)]
    solver = z3.Solver()
    solver.add(*both)
    answer, (values, _) = decided(standalone_text(both), 1_000_000, 0)
    assert answer == solver.check()
    if answer == z3.sat:
        pairs = [(Bool(name), value.translate(z3.main_ctx())) for name, value in values.items()]
        left_open = [(Bool(name), BoolVal(True)) for name in names if name not in values]
        assert z3.is_true(z3.simplify(substitute(And(*both), *pairs, *left_open)))


def test_a_question_under_other_names_is_not_asked_again(monkeypatch):
    x, y, last = Ints("x y last_of_all")
    answer, (_, work) = decided(standalone_text([x * y == 3, x * y > 4]), 1_000_000, 0)
    monkeypatch.setattr(z3, "Solver", None)
    again = decided(standalone_text([last * x == 3, last * x > 4]), 1_000_000, 0)
    assert again == (answer, ({}, work)) == (z3.unsat, ({}, work))


@given(formulas(), formulas())
def test_the_text_says_what_the_formulas_say(fact, goal):
    solver = z3.Solver()
    solver.add(read(standalone_text([fact, goal])) != And(fact, goal))
    assert solver.check() == z3.unsat


def test_the_logic_holds_the_elements_of_arrays():
    k = Kernel("test")
    array = k.function("array", IntSort(), ArraySort(IntSort(), RealSort()))
    assert logic_of([array(0) == array(1)]) == "QF_AUFLIRA"


def test_an_interrupt_waits_until_the_reader_is_done(monkeypatch):
    masked = []

    class Reader:
        def from_string(self, text):
            masked.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            return reader.from_string(text)

        def add_decl(self, declared):
            reader.add_decl(declared)

    reader = smtlib._reader
    monkeypatch.setattr(smtlib, "_reader", Reader())
    monkeypatch.setattr(smtlib, "_free", {})
    smtlib.symbol("never_met_before", IntSort(), IntSort())
    assert masked == [True, True, True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_term_that_another_thread_drops_is_not_taken_away_meanwhile():
    a, b = z3.Bools("a b")
    shared = [And(a, b)]
    number = shared[0].get_id()
    collector = threading.Thread(target=shared.pop)
    collector.start()
    collector.join()
    context, made, numbers = z3.main_ctx().ref(), a.as_ast(), set()
    for _ in range(1000):  # z3 gives the numbers of terms that it took away to new ones
        made = z3.Z3_mk_not(context, made)
        numbers.add(z3.Z3_get_ast_id(context, made))
    assert number not in numbers
