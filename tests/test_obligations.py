"""What the solver was asked, asked again: no vacuous premises, no unused ones, no unlisted claim."""

import importlib
import re
from collections import Counter
from functools import cache
from inspect import getdoc, isfunction, signature

import pytest
import z3

from proofs import registry
from proofs.kernel import RESOURCE_LIMIT, SEED
from proofs.smtlib import standalone_text

CLAIMS = registry.claims()
every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)


@cache
def result_of(claim):
    return registry.prove(claim)


def proved_theorems(claim):
    """Theorems with obligations that the solver answered `unsat`: all but counterexamples."""
    return [
        theorem
        for theorem in result_of(claim).listed
        if theorem.obligations and theorem.rule != "counterexample"
    ]


@cache
def answer(text):
    solver = z3.Solver(ctx=z3.Context())
    solver.set("rlimit", RESOURCE_LIMIT)
    solver.set("random_seed", SEED)
    solver.from_string(text)
    return str(solver.check())


def together(*formulas):
    """Whether the formulas can hold together, asked in a context of its own."""
    return answer(standalone_text(list(formulas))) if formulas else "sat"


def without(obligation, index):
    """The twin: the obligation with one fact dropped. `sat` means that the fact was needed."""
    rest = [f for i, f in enumerate(obligation.facts) if i != index]
    return together(*rest, z3.Not(obligation.goal))


def entries(theorem):
    """Where each fact comes from: the argument of the rule, then (obligation, index) per use.

    An induction puts one `given` into its base and its step; it is used if either needs it.
    The index being natural is the rule's own fact, and is left out.
    """
    found = {}
    if theorem.rule == "smt":
        (asked,) = theorem.obligations
        uses = len(asked.facts) - len(theorem.given)
        for i in range(len(asked.facts)):
            label = f"uses[{i}]" if i < uses else f"given[{i - uses}]"
            found[label] = [(asked, i)]
        return found
    base, step = theorem.obligations
    given = len(theorem.given) - 1
    of_base = len(base.facts) - given
    of_step = len(theorem.parts) - of_base
    for i in range(of_base):
        found[f"base[{i}]"] = [(base, i)]
    for i in range(of_step):
        found[f"step[{i}]"] = [(step, i)]
    for i in range(of_step + 1, len(step.facts) - given):
        found[f"hypothesis[{i - of_step - 1}]"] = [(step, i)]
    for i in range(given):
        found[f"given[{i}]"] = [(base, of_base + i), (step, len(step.facts) - given + i)]
    return found


def brief(formula, length=100):
    text = " ".join(str(formula).split())
    return text if len(text) <= length else f"{text[:length]}..."


@every_claim
def test_facts_of_every_obligation_can_hold_together(claim):
    answers = {
        obligation.name: together(*obligation.facts)
        for theorem in proved_theorems(claim)
        for obligation in theorem.obligations
    }
    assert {name: said for name, said in answers.items() if said != "sat"} == {}


@every_claim
def test_no_fact_of_an_obligation_is_unused(claim):
    unused = [
        f"{claim.id} {theorem.name} {label} (fact {places[-1][1]} of {places[-1][0].name}): "
        f"{brief(places[-1][0].facts[places[-1][1]])}"
        for theorem in proved_theorems(claim)
        for label, places in entries(theorem).items()
        if all(without(obligation, index) != "sat" for obligation, index in places)
    ]
    assert not unused, "\n".join(["facts that can be dropped:", *unused])


@every_claim
def test_every_theorem_with_facts_fails_without_some_fact(claim):
    idle = [
        theorem.name
        for theorem in proved_theorems(claim)
        if any(obligation.facts for obligation in theorem.obligations)
        and all(
            without(obligation, index) != "sat"
            for obligation in theorem.obligations
            for index in range(len(obligation.facts))
        )
    ]
    assert idle == []


@every_claim
def test_every_verdict_is_as_expected(claim):
    result = result_of(claim)
    assert result.verdict == claim.expected, result.failure


@every_claim
def test_every_exported_text_stands_alone_and_gives_its_expected_answer(claim):
    for obligation in result_of(claim).obligations:
        assert obligation.text.startswith("(set-logic ")
        assert answer(obligation.text) == obligation.expected, obligation.name


@every_claim
def test_every_claim_returns_theorems_of_its_own_run(claim):
    result = result_of(claim)
    assert result.theorems
    assert all(any(t is listed for listed in result.listed) for t in result.theorems)
    assert all(t.obligations or t.parts for t in result.theorems), "a bare definition or hypothesis"


@every_claim
def test_every_docstring_names_its_claim(claim):
    doc = getdoc(claim.function())
    assert re.findall(r"\(Claim (\w+)", doc) == [claim.id]


def test_ids_of_claims_are_unique():
    assert [i for i, count in Counter(c.id for c in CLAIMS).items() if count > 1] == []


def test_expected_verdicts_are_proved_or_refuted():
    assert {claim.expected for claim in CLAIMS} == {"proved", "refuted"}


def test_every_claim_function_is_registered_under_exactly_one_claim():
    shape = "(k: Kernel) -> tuple[Theorem, ...]"
    found = []
    for path in sorted((registry.ROOT / "proofs").glob("*.py")):
        module = importlib.import_module(f"proofs.{path.stem}")
        for name, function in vars(module).items():
            if name.startswith("_") or not isfunction(function):
                continue
            if function.__module__ == module.__name__ and written(function) == shape:
                found.append(f"{module.__name__}.{name}")
    assert sorted(found) == sorted(claim.theorem for claim in CLAIMS)


def written(function):
    return str(signature(function)).replace("'", "")
