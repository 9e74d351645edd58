"""Certificates with a step that breaks its rule: the checker names it, and checks nothing."""

import pytest

from proofs.trusted.terms import ArraySort, Implies, IntSort
from psem_check.check import check
from psem_check.printing import lines_of
from tests.support.certificates import all_rules, changed, made, proofs_in, rejected

CERTIFICATE = made(all_rules)


@pytest.fixture
def document():
    return changed(CERTIFICATE)


def step_of(document, name, rule=None):
    (part,) = document["claims"][0]["parts"]
    named = [s for s in part["steps"] if s.get("name") == name or s["rule"] == rule]
    return named[0]


def term(document, *node):
    document["terms"].append(list(node))
    return len(document["terms"]) - 1


def symbol(document, name):
    return next(i for i, (known, *_) in enumerate(document["symbols"]) if known == name)


def constant(document, name):
    return document["terms"].index(["apply", symbol(document, name)])


def integer(document, number):
    return term(document, "constant", document["sorts"].index(["Int"]), number)


def test_a_certificate_of_all_rules_is_checked(document):
    (found,) = check(document)
    assert found.obligations == 5
    assert found.verdict == "proved"


def test_a_changed_goal_is_another_obligation(document):
    step = step_of(document, "sum_is_positive")
    left, _ = document["terms"][step["goal"]][1:]
    three = integer(document, 3)
    step["goal"] = term(document, ">=", left, three)
    assert "the proof of sum_is_positive" in rejected(document)


def test_a_changed_hypothesis_is_another_obligation(document):
    step = step_of(document, "start_is_positive")
    left, _ = document["terms"][step["formula"]][1:]
    step["formula"] = term(document, ">=", left, integer(document, 0))
    assert "the proof of sum_is_positive" in rejected(document)


def test_a_hypothesis_that_is_false_is_none(document):
    step = step_of(document, "start_is_positive")
    left, _ = document["terms"][step["formula"]][1:]
    step["formula"] = term(document, "<", left, left)
    assert "cannot hold" in rejected(document)


def test_a_proof_of_another_obligation_is_none(document):
    (one, key), (other, place), *_ = proofs_in(document)
    one[key], other[place] = other[place], one[key]
    assert "the proof of" in rejected(document)


@pytest.mark.parametrize("wrong", [[], {}, None, "no reason", [[]] * 4, 1, [[], []]])
def test_each_obligation_has_its_proof(document, wrong):
    for place, key in proofs_in(document):
        forged = changed(document)
        for (here, known), (there, _) in zip(proofs_in(document), proofs_in(forged), strict=True):
            if here is place and known == key:
                there[key] = wrong
        assert "the proof of" in rejected(forged)


@pytest.mark.parametrize("wrong", [[], None, [[]], [[], [], []]])
def test_an_induction_has_two_proofs(document, wrong):
    step_of(document, "grows")["proof"] = wrong
    rejected(document)


def test_the_induction_hypothesis_is_of_the_index_alone(document):
    n = constant(document, "n")
    step_of(document, "grows")["at"] = [[[n, integer(document, 7)]]]
    assert "index alone" in rejected(document)


def test_a_recursion_may_not_apply_itself_at_another_index(document):
    step = step_of(document, "total", "recursion")
    n, m = constant(document, "n"), constant(document, "m")
    following = term(document, "+", n, integer(document, 1))
    step["body"] = term(document, "apply", symbol(document, "total"), m, following)
    assert "the value before it" in rejected(document)


def test_a_definition_may_not_mention_itself(document):
    step = step_of(document, "twice")
    m = constant(document, "m")
    itself = term(document, "apply", symbol(document, "twice"), m)
    step["body"] = term(document, "+", itself, integer(document, 1))
    assert "not a new symbol" in rejected(document)


def test_a_definition_leaves_no_variable_open(document):
    step_of(document, "twice")["body"] = constant(document, "x")
    assert "open" in rejected(document)


def test_a_symbol_is_defined_once(document):
    (part,) = document["claims"][0]["parts"]
    again = {**step_of(document, "twice"), "name": "again"}
    part["steps"].append(again)
    assert "not a new symbol" in rejected(document)


def test_a_theorem_rests_on_no_later_one(document):
    step_of(document, "sum_is_positive")["uses"] = [99]
    assert "99 is none of" in rejected(document)


def test_no_theorem_is_a_definition_or_a_hypothesis(document):
    document["claims"][0]["theorems"] = [[0, 0]]
    assert "not proved there" in rejected(document)


def test_a_claim_without_theorems_is_none(document):
    document["claims"][0]["theorems"] = []
    assert "no theorem" in rejected(document)


def test_a_claim_stands_once(document):
    document["claims"] *= 2
    assert "stands twice" in rejected(document)


@pytest.mark.parametrize(
    "node",
    [
        ("+", "x", "real"),
        ("and", "x", "x"),
        ("=", "x", "real"),
        ("ite", "x", "x", "x"),
        ("and", "true"),
        ("<", "x"),
        ("to_real", "real"),
        ("/", "x", "x"),
        ("select", "x", "x"),
        ("forall", "true"),
        ("distinct", "x", "x"),
        ("constant", "Int", 1.5),
        ("constant", "Int", True),
        ("constant", "Int", 1, 1),
        ("constant", -1, 1),
        ("constant",),
        ("constant", "Real", 1, 0),
        ("constant", "Real", 1.0, 2),
        ("constant", "Bool", 1),
        ("apply", -1),
        (0, "x"),
        (["and"], "x"),
        (),
    ],
)
def test_a_term_has_one_sort(document, node):
    bool_, whole, real = (document["sorts"].index([sort]) for sort in ("Bool", "Int", "Real"))
    known = {
        "Bool": bool_,
        "Int": whole,
        "Real": real,
        "x": constant(document, "x"),
        "real": term(document, "constant", real, 1, 2),
        "true": term(document, "constant", bool_, True),
    }
    term(document, *(known.get(part, part) if isinstance(part, str) else part for part in node[:1]))
    document["terms"][-1] += [known.get(p, p) if isinstance(p, str) else p for p in node[1:]]
    rejected(document)


@pytest.mark.parametrize("key", ["rule", "name", "goal", "given", "uses"])
def test_a_step_without_a_part_of_it_is_none(document, key):
    del step_of(document, "sum_is_positive")[key]
    assert "sum_is_positive cannot be read" in rejected(document) or key in ("rule", "name")


@pytest.mark.parametrize("wrong", [None, [], {}, "1", -1, 10**9, True])
def test_a_number_that_refers_to_nothing_is_rejected(document, wrong):
    step_of(document, "sum_is_positive")["goal"] = wrong
    rejected(document)


def test_a_symbol_of_another_part_is_not_there(document):
    (part,) = document["claims"][0]["parts"]
    part["symbols"].remove(symbol(document, "twice"))
    assert "not a new symbol" in rejected(document) or "another part" in rejected(document)


@pytest.mark.parametrize("name", ["", "x y", "x\n", "and", "n\u0430", "1", "if"])
def test_a_name_cannot_be_taken_for_anything_else(document, name):
    document["symbols"][symbol(document, "x")][0] = name
    assert "plain name" in rejected(document)


def test_two_symbols_of_a_part_have_two_names(document):
    document["symbols"][symbol(document, "x")][0] = "m"
    assert "same name" in rejected(document)


def test_words_of_a_certificate_stay_in_their_line(document):
    document["claims"][0]["statement"] = "It holds.\nY proved: checked"
    (found,) = check(document)
    assert "\n" not in found.statement


def arrays(k):
    """Arrays of zeros are equal, and an integer times itself can be itself."""
    i, y = k.integers("i y")
    a, b = (k.fixed(name, ArraySort(IntSort(), IntSort())) for name in "ab")
    zeros = [k.suppose(f"{array}_is_zero", [i], array[i] == 0) for array in (a, b)]
    alike = k.prove("they_agree", a[i] == b[i], uses=zeros)
    other = k.prove("they_agree_at", Implies(i == y, a[i] == b[i]), uses=zeros)
    refuted = k.refute("squares_differ", y * y != y, [y], lambda y: y * y != y)
    assert other
    return (k.extend("they_are_equal", alike, i), refuted)


ARRAYS = made(arrays)


def test_arrays_that_agree_are_equal():
    (found,) = check(ARRAYS)
    assert found.verdict == "proved"


@pytest.mark.parametrize("wrong", ["they_agree_at", "a_is_zero"])
def test_arrays_are_equal_if_they_agree_at_an_arbitrary_index(wrong):
    document = changed(ARRAYS)
    (part,) = document["claims"][0]["parts"]
    names = [s.get("name") for s in part["steps"] if s["rule"] != "instance"]
    step_of(document, "they_are_equal")["pointwise"] = names.index(wrong)
    assert "not an equation" in rejected(document)


def test_values_that_do_not_refute_are_rejected():
    document = changed(ARRAYS)
    step = step_of(document, "squares_differ")
    step["values"][0][1] = integer(document, 2)
    assert "do not refute" in rejected(document)
    step["values"] = []
    assert "do not refute" in rejected(document)


def test_a_counterexample_is_no_fact():
    document = changed(ARRAYS)
    (part,) = document["claims"][0]["parts"]
    part["steps"].append({"rule": "instance", "of": len(part["steps"]) - 2, "values": []})
    numbers = [s["rule"] for s in part["steps"]]
    part["steps"][-1]["of"] = numbers.index("refute")
    assert "not a fact" in rejected(document)


def test_what_was_chosen_is_printed_with_what_it_was_chosen_by(document):
    (found,) = check(document)
    printed = "\n".join(lines_of(found))
    assert printed.count("definition of even, even_witness") == 2
