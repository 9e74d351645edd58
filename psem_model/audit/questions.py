"""What is asked of obligations and of theorems: can all that they rest on hold, is each part needed?

A fact is what a goal is concluded from: a theorem in use, a `given`, an induction hypothesis; and
if the goal is itself an implication, what it is said to follow from, its premises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, compress
from typing import Any, TypeAlias

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
from proofs.trusted.oracle import ask, glance, glance_without, reading, settle
from proofs.trusted.parts import below, substitute
from proofs.trusted.smtlib import ForAll
from proofs.trusted.terms import TRUE, And, Bool, Const, Implies, IntVal, Not, Term
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


LIMIT = 50_000  # z3's own deterministic count, for each answer to a text that asks several times


def needed(facts: Sequence[Bool], goal: Bool, dropped: Sequence[Sequence[int]]) -> list[bool]:
    """Whether a goal does not follow without these facts, by their numbers, dropped together; of each.

    The others can hold, then, and not the goal. All is asked in one text while all real variables are
    one, zero, or minus one; the rest one by one.
    """
    found = [False] * len(dropped)
    for value in (1, 0, -1):
        left = [i for i, known in enumerate(found) if not known]
        said = [*facts, Not(goal), *all_are(value, [*facts, goal])]
        answers = glance_without(said, [dropped[i] for i in left], LIMIT)
        for i, answer in zip(left, answers, strict=True):
            found[i] = answer == "sat"
    for i, some in enumerate(dropped):
        rest = [fact for number, fact in enumerate(facts) if number not in some]
        found[i] = found[i] or settle([*rest, Not(goal)]).said == "sat"
    return found


def proved_theorems(theorems: Sequence[Theorem]) -> list[Theorem]:
    """Those with obligations that the solver answered `unsat`: all but counterexamples."""
    return [t for t in theorems if t.obligations and t.rule != "counterexample"]


@dataclass(frozen=True)
class Fact:
    """What a theorem is proved with: an argument of its rule, or a premise of its goal.

    `places`: of which of the theorem's obligations it is a fact, and its index there. `of`: the theorem
    that is used.
    """

    kind: str
    number: int
    places: Sequence[tuple[int, int]]
    of: Theorem | None = None

    def __str__(self) -> str:
        return f"{self.kind}[{self.number}]"


def facts_of(theorem: Theorem) -> list[Fact]:
    """The arguments of its rule, then the premises of its goal.

    An induction has a `given`, and a premise of its goal, in its base and in its step.
    """
    before = [len(asked.facts) for asked in theorem.obligations]
    premises = [
        Fact("premise", i, [(which, count + i) for which, count in enumerate(before)])
        for i in range(len(premises_of(theorem.goal)[0]))
    ]
    return [*_arguments(theorem), *premises]


def _arguments(theorem: Theorem) -> Iterator[Fact]:
    """Of a rule. The index being natural is the rule's own fact, and is left out."""
    if theorem.rule == "smt":
        (only,) = theorem.obligations
        uses = len(only.facts) - len(theorem.given)
        for i in range(uses):
            yield Fact("uses", i, [(0, i)], theorem.parts[i])
        for i in range(len(theorem.given)):
            yield Fact("given", i, [(0, uses + i)])
        return
    base, step = theorem.obligations
    given = len(theorem.given) - 1
    of_base = len(base.facts) - given
    of_step = len(theorem.parts) - of_base
    for i in range(of_base):
        yield Fact("base", i, [(0, i)], theorem.parts[i])
    for i in range(of_step):
        yield Fact("step", i, [(1, i)], theorem.parts[of_base + i])
    for i in range(of_step + 1, len(step.facts) - given):
        yield Fact("hypothesis", i - of_step - 1, [(1, i)])
    for i in range(given):
        yield Fact("given", i, [(0, of_base + i), (1, len(step.facts) - given + i)])


def unused(theorem: Theorem) -> Iterator[str]:
    """The facts that a theorem is proved without, but for those that rest on nothing.

    What rests on nothing holds as it stands: it is never needed, and says which products lead to a
    proof.
    """
    facts = [f for f in facts_of(theorem) if f.kind != "uses" or not (f.of and rests_on_nothing(f.of))]
    stated = ("given", "premise") if theorem.rule == "induction" else ()
    asked = [opened(obligation) for obligation in theorem.obligations]
    places = [place for fact in facts if fact.kind not in stated for place in fact.places]
    used: set[tuple[int, int]] = set()
    for which, obligation in enumerate(asked):
        here = [place for place in places if place[0] == which]
        some = needed(obligation.facts, obligation.goal, [[index] for _, index in here])
        used.update(compress(here, some))
    for fact in facts:
        if fact.kind in stated:
            left = _stated_without(theorem, fact)
            is_needed = any(together([*o.facts, Not(o.goal)]) == "sat" for o in left)
        else:
            is_needed = not used.isdisjoint(fact.places)
        if not is_needed:
            which, index = fact.places[-1]
            yield f"{asked[which].name} {fact}: {brief(asked[which].facts[index])}"


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
    return None if values is None else text([*facts, *(_said(*each) for each in values)])


def values_of(facts: Sequence[Bool]) -> list[tuple[Term, Term]] | None:
    """Numbers and truth values under which facts hold, and which rows are the same; nothing if none are
    found.
    """
    terms = [t for t in below(facts) if t.op in ("apply", "select") and t.sort.kind in VALUES]
    rows = [t for t in below(facts) if t.op == "apply" and t.sort.kind == "Array"]
    rows = [t for t in rows if t.sort.parts[0].kind == "Sort"]
    same = {(a, b): a == b for a, b in combinations(rows, 2) if a.sort == b.sort}
    terms += same.values()
    called = [Const(f"value_{i}", term.sort) for i, term in enumerate(terms)]
    asked = [*facts, *(name == term for name, term in zip(called, terms, strict=True))]
    found = ask([*asked, *all_are(0, facts)])
    if found.said != "sat":
        found = ask(asked)
    if found.said != "sat":
        return None
    known = {term: found.values.get(name.of.name) for name, term in zip(called, terms, strict=True)}
    again = {b for (_, b), equal in same.items() if known[equal] is TRUE}  # the same as one before it
    spared = {
        equal
        for (a, b), equal in same.items()
        if a in again or (b in again and known[equal] is not TRUE)
    }
    return [(term, value) for term, value in known.items() if value is not None and term not in spared]


def _said(term: Term, value: Term) -> Bool:
    """That a term has a value."""
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


def implied(theorems: Sequence[Theorem]) -> Iterator[str]:
    """The hypotheses that z3 sees to follow from the others under a theorem, all for all values.

    Those that are all under another theorem as well are asked about there.
    """
    under: dict[frozenset[int], tuple[Theorem, list[Theorem]]] = {}
    for theorem in theorems:
        said = [part for part in hypotheses([theorem]) if part.rule == "hypothesis"]
        under.setdefault(frozenset(map(id, said)), (theorem, said))
    for some, (theorem, said) in under.items():
        for part in said if not any(some < others for others in under) else ():
            if _contradict([*(closed(other) for other in said if other is not part), denied(part)]):
                yield f"hypothesis {part.name}: the others of {theorem.name} imply it"


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


Part: TypeAlias = tuple[str, str]  # of what it is one, and what it says


def unused_parts(theorems: Sequence[Theorem]) -> list[str]:
    """Parts of a `given` that its theorem is proved without, and of a hypothesis that all are.

    A part is dropped from all instances of its hypothesis at once.
    """
    parts: dict[Part, Bool] = {}
    used: set[Part] = set()
    for theorem in proved_theorems(theorems):
        known = {
            place: _with_parts(theorem, fact) for fact in facts_of(theorem) for place in fact.places
        }
        for each in known.values():
            parts |= each
        for which, obligation in enumerate(theorem.obligations):
            facts: list[Bool] = []
            places: dict[Part, list[int]] = {}
            for i, fact in enumerate(obligation.facts):
                keys, said = known.get((which, i), {}), parts_of(fact)
                if len(keys) == len(said):  # an instance may have fewer
                    for place, key in enumerate(keys, len(facts)):
                        places.setdefault(key, []).append(place)
                facts += said
            left = [key for key in places if key not in used]
            used.update(compress(left, needed(facts, obligation.goal, [places[key] for key in left])))
    return [f"{key[0]}: {brief(part)}" for key, part in parts.items() if key not in used]


def _with_parts(theorem: Theorem, fact: Fact) -> dict[Part, Bool]:
    """The parts of a fact, if it is a `given` or a hypothesis and has several."""
    if fact.kind == "given":
        where = f"{theorem.name} {fact}"
        said = theorem.given[fact.number + (theorem.rule == "induction")]
    elif fact.of is not None and source(fact.of).rule == "hypothesis":
        where, said = f"hypothesis {source(fact.of).name}", source(fact.of).goal
    else:  # not of an induction; of the goal, each is a part already
        return {}
    parts = parts_of(said)
    return {(where, str(part)): part for part in parts} if len(parts) > 1 else {}
