"""What each assertion of an obligation is: which theorem or hypothesis, at which instance."""

from __future__ import annotations

from collections.abc import Iterable

from proofs.trusted import smtlib
from proofs.trusted.infix import text
from proofs.trusted.kernel import Obligation, Theorem
from proofs.trusted.terms import Not, is_term
from proofs.trusted.theorem import read

KINDS = {"hypothesis": "hypothesis", "axiom": "axiom", "definition": "definition"}


def annotated(theorem: Theorem, obligation: Obligation) -> str:
    """An obligation in SMT-LIB, with a comment above each assertion."""
    asserted = [*obligation.facts, Not(obligation.goal)]
    return smtlib.text(asserted, [*notes(theorem, obligation), "and not what is to be shown"])


def notes(theorem: Theorem, obligation: Obligation) -> list[str]:
    """What each fact of an obligation is, in their order."""
    step = read(theorem).step.given
    if theorem.rule == "smt":
        uses = step["uses"]
        return [*map(_said, uses), *["given"] * (len(obligation.facts) - len(uses))]
    if theorem.rule != "induction":
        return ["given"] * len(obligation.facts)
    if obligation.rule == "induction base":
        uses = step["base"]
        return [*map(_said, uses), *["given, at 0"] * (len(obligation.facts) - len(uses))]
    uses, index = step["step"], step["index"]
    found = [*map(_said, uses), f"{index} is a natural number"]
    found += [f"induction hypothesis{_at(terms.items())}" for terms in step["at"]]
    return [*found, *[f"given, at {index} + 1"] * (len(obligation.facts) - len(found))]


def _said(theorem: Theorem) -> str:
    """A theorem in use: its kind and its name, and what stands in place of its variables."""
    instances = []
    while theorem.rule == "instance":
        step = read(theorem).step.given
        instances.append(_at(step["terms"].items()))
        theorem = step["of"]
    return f"{KINDS.get(theorem.rule, 'theorem')} {theorem.name}{''.join(reversed(instances))}"


def _at(terms: Iterable[tuple[str, object]]) -> str:
    shown = ", ".join(f"{name} = {text(v) if is_term(v) else v}" for name, v in terms)
    return f" at {shown}" if shown else ""
