"""Proof rules of propositional logic that are about any number of formulas.

A formula is a clause of its disjuncts; one that is no disjunction, of itself. Every rule here is a
function that says whether the conclusion follows from the premises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psem_check.terms import BOOL, Rejected, Term, Terms


def literals(terms: Terms, formula: Term) -> tuple[Term, ...]:
    if terms.heads[formula] == "or":
        return terms.arguments[formula]
    return () if formula == terms.false else (formula,)


def weakened(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """reordering, factoring: each disjunct of the premise is one of the conclusion."""
    (premise,) = premises
    return set(literals(terms, premise)) <= {*literals(terms, conclusion), conclusion}


def resolution(terms: Terms, premises: Sequence[Term], conclusion: Term, pivots: Sequence[Any]) -> bool:
    """Each clause after the first is resolved with what came before.

    A pivot is [whether it is positive in what came before, the formula].
    """
    if len(pivots) != len(premises) - 1:
        return False
    steps = [_signed(terms, *pivot) for pivot in pivots]
    known = _clause(terms, premises[0], steps[0][0] if steps else None)
    for premise, (here, there) in zip(premises[1:], steps, strict=True):
        known = (known - {here}) | (_clause(terms, premise, there) - {there})
    return known <= {*literals(terms, conclusion), conclusion}


def _signed(terms: Terms, positive: Any, pivot: Term) -> tuple[Term, Term]:
    """The pivot as it is in what came before, and its complement, in the other clause."""
    complement = terms.negation(pivot)
    return (pivot, complement) if positive is True else (complement, pivot)


def _clause(terms: Terms, formula: Term, pivot: Term | None) -> set[Term]:
    return {formula} if formula == pivot else set(literals(terms, formula))


def and_intro(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    joined = terms.arguments[conclusion] if terms.heads[conclusion] == "and" else (conclusion,)
    return conclusion in premises or set(joined) <= set(premises)


def and_elim(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    (premise,) = premises
    return terms.heads[premise] == "and" and conclusion in terms.arguments[premise]


def not_or_elim(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    (premise,) = premises
    denied, said = _under_not(terms, premise), _under_not(terms, conclusion)
    return denied is not None and said is not None and said in literals(terms, denied)


def not_and(terms: Terms, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    (premise,) = premises
    denied = _under_not(terms, premise)
    return denied is not None and _denials(terms, denied) <= set(literals(terms, conclusion))


def _denials(terms: Terms, conjunction: Term) -> set[Term]:
    """The negations of what a conjunction says one by one."""
    parts = terms.arguments[conjunction] if terms.heads[conjunction] == "and" else (conjunction,)
    return {terms.negation(part) for part in parts}


def cnf_and_pos(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """not (a and b), or a."""
    first, second = _two(terms, conclusion)
    conjunction = _under_not(terms, first)
    return (
        conjunction is not None
        and terms.heads[conjunction] == "and"
        and second in terms.arguments[conjunction]
    )


def cnf_and_neg(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """a and b, or not a, or not b."""
    first, *others = _clause_of(terms, conclusion)
    return terms.heads[first] == "and" and _denials(terms, first) <= set(others)


def cnf_or_pos(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """not (a or b), or a, or b."""
    first, *others = _clause_of(terms, conclusion)
    denied = _under_not(terms, first)
    return denied is not None and set(literals(terms, denied)) <= set(others)


def cnf_or_neg(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """a or b, or not a."""
    first, second = _two(terms, conclusion)
    denied = _under_not(terms, second)
    return denied is not None and denied in literals(terms, first)


def _under_not(terms: Terms, formula: Term) -> Term | None:
    return terms.arguments[formula][0] if terms.heads[formula] == "not" else None


def _clause_of(terms: Terms, conclusion: Term) -> tuple[Term, ...]:
    if terms.heads[conclusion] != "or":
        raise Rejected("not a disjunction")
    return terms.arguments[conclusion]


def _two(terms: Terms, conclusion: Term) -> tuple[Term, Term]:
    found = _clause_of(terms, conclusion)
    if len(found) != 2:
        raise Rejected("not a disjunction of two")
    return found[0], found[1]


def aci_norm(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """Conjunctions, or disjunctions, of the same formulas."""
    if terms.heads[conclusion] != "=":
        return False
    left, right = terms.arguments[conclusion]
    if terms.sorts[left] != BOOL:
        return False
    return any(
        _members(terms, left, head) == _members(terms, right, head)
        for head in {terms.heads[left], terms.heads[right]} & {"and", "or"}
    )


def absorb(terms: Terms, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """A conjunction with false in it is false; a disjunction with true in it is true."""
    if terms.heads[conclusion] != "=":
        return False
    left, right = terms.arguments[conclusion]
    absorbing = {"and": terms.false, "or": terms.true}.get(terms.heads[left])
    return absorbing == right and right in _members(terms, left, terms.heads[left])


def _members(terms: Terms, formula: Term, head: str) -> set[Term]:
    """What is joined by `head`, however it is nested, without what changes nothing."""
    neutral = terms.true if head == "and" else terms.false
    found: set[Term] = set()
    seen: set[Term] = set()
    pending = [formula]
    while pending:
        here = pending.pop()
        if here in seen:
            continue
        seen.add(here)
        if terms.heads[here] == head:
            pending.extend(terms.arguments[here])
        elif here != neutral:
            found.add(here)
    return found


RULES = {
    "reordering": weakened,
    "factoring": weakened,
    "resolution": resolution,
    "and_intro": and_intro,
    "and_elim": and_elim,
    "not_or_elim": not_or_elim,
    "not_and": not_and,
    "cnf_and_pos": cnf_and_pos,
    "cnf_and_neg": cnf_and_neg,
    "cnf_or_pos": cnf_or_pos,
    "cnf_or_neg": cnf_or_neg,
    "aci_norm": aci_norm,
    "absorb": absorb,
}
