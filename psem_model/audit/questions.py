"""What is asked of obligations and of theorems: can all that they rest on hold, is each part needed?

A fact is what a goal is concluded from: a theorem in use, a `given`, an induction hypothesis; and
if the goal is itself an implication, what it is said to follow from, its premises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from proofs.premises import (
    all_are,
    closed,
    conditions,
    denied,
    hypotheses,
    made_from,
    premises_of,
    variables,
)
from proofs.registry import NOT_PROVED
from proofs.trusted.kernel import Obligation, Theorem
from proofs.trusted.oracle import ask, glance, reading, settle
from proofs.trusted.parts import below, substitute
from proofs.trusted.smtlib import ForAll
from proofs.trusted.terms import And, Bool, Const, Implies, IntVal, Not, Term
from proofs.trusted.theorem import implies, read
from psem_model.audit.formulas import source
from psem_model.audit.smtlib import text

VALUES = ("Bool", "Int", "Real")


@cache
def answer(text: str) -> str:
    """The solver's answer to a text as readers have it: sat, unsat or unknown."""
    return reading(text)


def together(formulas: Sequence[Bool]) -> str:
    """Whether formulas can hold together. Products are easy where all variables are one, or zero."""
    tried = ([*formulas, *said] for v in (1, 0) if (said := all_are(v, formulas)))
    if any(settle(each).said == "sat" for each in tried):
        return "sat"
    return settle(formulas).said if formulas else "sat"


def opened(obligation: Obligation) -> Obligation:
    """The same question, with the premises of its goal among its facts."""
    said, goal = premises_of(obligation.goal)
    return replace(obligation, facts=(*obligation.facts, *said), goal=goal)


def to_hold(obligation: Obligation) -> tuple[Bool, ...]:
    """What must be possible, lest the answer says nothing.

    Without the premises of an induction's base: that nothing is yet there is what many bases show.
    """
    is_base = obligation.rule == "induction base"
    return obligation.facts if is_base else opened(obligation).facts


def without(obligation: Obligation, index: int) -> str:
    """The obligation with one fact dropped. `sat` means that the fact was needed."""
    rest = [fact for i, fact in enumerate(obligation.facts) if i != index]
    return together([*rest, Not(obligation.goal)])


def proved_theorems(theorems: Sequence[Theorem]) -> list[Theorem]:
    """Those with obligations that the solver answered `unsat`: all but counterexamples."""
    return [t for t in theorems if t.obligations and t.rule != "counterexample"]


@dataclass(frozen=True)
class Fact:
    """What a theorem is proved with: an argument of its rule, or a premise of its goal.

    `places`: the obligations that it is a fact of, and its index there. `of`: the theorem that is used.
    """

    kind: str
    number: int
    places: Sequence[tuple[Obligation, int]]
    of: Theorem | None = None

    def __str__(self) -> str:
        return f"{self.kind}[{self.number}]"


def facts_of(theorem: Theorem) -> list[Fact]:
    """The arguments of its rule, then the premises of its goal.

    An induction has a `given`, and a premise of its goal, in its base and in its step.
    """
    premises = [
        Fact("premise", i, [(opened(asked), len(asked.facts) + i) for asked in theorem.obligations])
        for i in range(len(premises_of(theorem.goal)[0]))
    ]
    return [*_arguments(theorem), *premises]


def _arguments(theorem: Theorem) -> Iterator[Fact]:
    """Of a rule. The index being natural is the rule's own fact, and is left out."""
    if theorem.rule == "smt":
        (only,) = theorem.obligations
        uses = len(only.facts) - len(theorem.given)
        for i in range(uses):
            yield Fact("uses", i, [(only, i)], theorem.parts[i])
        for i in range(len(theorem.given)):
            yield Fact("given", i, [(only, uses + i)])
        return
    base, step = theorem.obligations
    given = len(theorem.given) - 1
    of_base = len(base.facts) - given
    of_step = len(theorem.parts) - of_base
    for i in range(of_base):
        yield Fact("base", i, [(base, i)], theorem.parts[i])
    for i in range(of_step):
        yield Fact("step", i, [(step, i)], theorem.parts[of_base + i])
    for i in range(of_step + 1, len(step.facts) - given):
        yield Fact("hypothesis", i - of_step - 1, [(step, i)])
    for i in range(given):
        yield Fact("given", i, [(base, of_base + i), (step, len(step.facts) - given + i)])


def unused(theorem: Theorem) -> Iterator[str]:
    """The facts that a theorem is proved without, but for those that rest on nothing.

    What rests on nothing holds as it stands: it is never needed, and says which products lead to a
    proof.
    """
    for fact in facts_of(theorem):
        if fact.kind == "uses" and fact.of is not None and rests_on_nothing(fact.of):
            continue
        if theorem.rule == "induction" and fact.kind in ("given", "premise"):
            asked = [together([*o.facts, Not(o.goal)]) for o in _stated_without(theorem, fact)]
        else:
            asked = [without(obligation, index) for obligation, index in fact.places]
        if "sat" not in asked:
            obligation, index = fact.places[-1]
            yield f"{obligation.name} {fact}: {brief(obligation.facts[index])}"


def rests_on_nothing(theorem: Theorem) -> bool:
    """Whether the solver proved it of numbers alone: without hypothesis, axiom or definition."""
    return all(each.rule in ("smt", "instance") for each in (theorem, *made_from([theorem])))


def _stated_without(theorem: Theorem, fact: Fact) -> Iterator[Obligation]:
    """Base and step of an induction without a `given` or a premise, in its hypothesis as well."""
    base, step = theorem.obligations

    def left(given: Sequence[Bool], goal: Bool) -> tuple[list[Bool], Bool]:
        said, follows = premises_of(goal)
        kept = {"given": list(given), "premise": said}
        del kept[fact.kind][fact.number]
        return kept["given"], Implies(And(*said), follows) if said else follows

    made, symbols = read(theorem).step.given, read(theorem).kernel._symbols

    def at(terms: Mapping[str, Any], formula: Bool) -> Bool:
        pairs = [(symbols[n](), IntVal(t) if type(t) is int else t) for n, t in terms.items()]
        return substitute(formula, *pairs)

    count = len(theorem.given) - 1
    of_base = len(base.facts) - count
    of_step = len(theorem.parts) - of_base + 1  # with the index being natural
    given, goal = left(base.facts[of_base:], base.goal)
    yield replace(base, facts=(*base.facts[:of_base], *given), goal=goal)
    claim = implies(*left(made["given"], made["goal"]))
    hypotheses = [at(terms, claim) for terms in made["at"]]
    given, goal = left(step.facts[len(step.facts) - count :], step.goal)
    yield replace(step, facts=(*step.facts[:of_step], *hypotheses, *given), goal=goal)


def brief(formula: Bool, length: int = 100) -> str:
    """A formula in one line."""
    text = " ".join(str(formula).split())
    return text if len(text) <= length else f"{text[:length]}..."


def witness(facts: Sequence[Bool]) -> str | None:
    """The facts with values under which they hold, as text; nothing if none are found.

    With values no solver need search: for a second one, nonlinear facts are hard to satisfy.
    """
    values = values_of(facts)
    return None if values is None else text([*facts, *map(_said, values)])


def values_of(facts: Sequence[Bool]) -> list[tuple[Term, Term]] | None:
    """Numbers and truth values under which facts hold; nothing if none are found."""
    terms = [t for t in below(facts) if t.op in ("apply", "select") and t.sort.kind in VALUES]
    called = [Const(f"value_{i}", term.sort) for i, term in enumerate(terms)]
    asked = [*facts, *(name == term for name, term in zip(called, terms, strict=True))]
    found = ask([*asked, *all_are(0, facts)])
    if found.said != "sat":
        found = ask(asked)
    if found.said != "sat":
        return None
    known = [(term, found.values.get(name.of.name)) for name, term in zip(called, terms, strict=True)]
    values = [(term, value) for term, value in known if value is not None]
    return values if answer(text([*facts, *map(_said, values)])) == "sat" else None


def _said(of: tuple[Term, Term]) -> Bool:
    """That a term has a value."""
    term, value = of
    if value.op == "bool":
        return term if value.of else Not(term)
    return term == value


GLANCE = 200_000  # z3's own deterministic count, for a question with quantifiers


def resting_on_none(listed: Sequence[Theorem], returned: Sequence[Theorem]) -> list[str]:
    """Theorems that were proved, and are neither returned nor what those are made from."""
    used = {id(theorem) for theorem in returned}
    used |= {id(part) for part in made_from(returned)}
    proved = [theorem for theorem in listed if theorem.rule not in NOT_PROVED]
    return [
        f"theorem {theorem.name}: no theorem of the claim rests on it"
        for theorem in proved
        if id(theorem) not in used
    ]


def for_all_values(theorem: Theorem) -> list[str]:
    """The hypotheses under it that speak of all values of a variable."""
    return sorted({part.name for part in hypotheses([theorem]) if variables(part)})


def impossible(theorem: Theorem) -> bool:
    """Whether z3 sees that its hypotheses, for all values, contradict each other or its conditions.

    With quantifiers, so it may not see it: only where the answer is yes does it say anything.
    """
    return _contradict([*conditions(theorem), *map(closed, hypotheses([theorem]))])


def implied(theorem: Theorem) -> list[str]:
    """The hypotheses under it that z3 sees to follow from the others, all for all values."""
    said = [part for part in hypotheses([theorem]) if part.rule == "hypothesis"]
    return [
        f"hypothesis {part.name}: the others of {theorem.name} imply it"
        for part in said
        if _contradict([*(closed(other) for other in said if other is not part), denied(part)])
    ]


def _contradict(formulas: Sequence[Bool | ForAll]) -> bool:
    return glance(formulas, GLANCE).said == "unsat"


def parts_of(formula: Bool) -> list[Bool]:
    """What a conjunction, perhaps under a condition, says one by one."""
    if formula.op == "and":
        return [part for each in formula.args for part in parts_of(each)]
    if formula.op == "=>":
        premise, goal = formula.args
        return [Implies(premise, part) for part in parts_of(goal)]
    return [formula]


def unused_parts(theorems: Sequence[Theorem]) -> list[str]:
    """Parts of a `given` that its theorem is proved without, and of a hypothesis that all are."""
    needed: dict[str, bool] = {}
    for theorem in proved_theorems(theorems):
        for fact in facts_of(theorem):
            for index, said in enumerate(_parts_of_fact(theorem, fact)):
                needed[said] = needed.get(said, False) or any(
                    _fails_without(obligation, place, index) for obligation, place in fact.places
                )
    return [said for said, is_needed in needed.items() if not is_needed]


def _parts_of_fact(theorem: Theorem, fact: Fact) -> list[str]:
    """The parts of a fact, if it is a `given` or a hypothesis and has several."""
    if fact.kind == "given":
        said = theorem.given[fact.number + (theorem.rule == "induction")]
        where = f"{theorem.name} {fact}"
    elif fact.of is not None and source(fact.of).rule == "hypothesis":
        where, said = f"hypothesis {source(fact.of).name}", source(fact.of).goal
    else:  # not of an induction; of the goal, each is a part already
        return []
    parts = parts_of(said)
    return [f"{where}: {brief(part)}" for part in parts] if len(parts) > 1 else []


def _fails_without(obligation: Obligation, fact: int, index: int) -> bool:
    """Whether the obligation is no longer proved without one part of a fact."""
    said = parts_of(obligation.facts[fact])
    rest = [*obligation.facts[:fact], *said[:index], *said[index + 1 :], *obligation.facts[fact + 1 :]]
    return together([*rest, Not(obligation.goal)]) == "sat"
