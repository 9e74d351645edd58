"""Proofs with a change: what is accepted is valid, as a solver decides that has not seen the proof."""

import json

from psem_model.certify.certificate import questions
from psem_model.certify.questions import asked, question
from psem_model.certify.search import search
from tests.support.certificates import of_claims
from tests.support.examples import part
from tests.support.mutants import tried


def proofs():
    for _, text in questions(of_claims("S1", "E1", "M5"))[1]:
        yield text, search(text)


def accepted(proofs, count):
    """What came of mutants, of which none that is accepted is invalid; the rules they are of."""
    found, rules = tried(proofs, count, seed=1)
    assert not {what for what in found if what.startswith("INVALID")}
    assert found["unknown"] < count / 30
    return found, rules


def test_a_changed_step_that_is_accepted_is_valid():
    found, rules = accepted(list(proofs()), part(3000))
    assert found["rejected"] > part(1000)
    assert rules == ["follows", "law", "products"]


def test_changed_products_that_are_accepted_are_valid():
    # 0 < x < y and y / x <= 1
    symbols = [["x", [], 0], ["y", [], 0]]
    numbers = [["apply", 0], ["apply", 1], ["constant", 0, 0, 1], ["constant", 0, 1, 1], ["/", 1, 0]]
    comparisons = [["<", 2, 0], ["<", 0, 1], ["<=", 4, 3]]
    graph, facts = asked(json.dumps([[["Real"]], symbols, numbers + comparisons, [5, 6, 7]]))
    text = question(graph.terms, facts)
    proof = search(text)
    assert any(step[0] == "products" for step in proof["steps"])
    accepted([(text, proof)], part(2000))
