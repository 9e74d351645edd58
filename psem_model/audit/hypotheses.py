"""What is asked of a theorem as a whole: can all that it rests on hold, is each part needed?"""

from __future__ import annotations

from collections.abc import Sequence

from proofs.premises import closed, conditions, denied, hypotheses, made_from, variables
from proofs.registry import NOT_PROVED
from proofs.trusted.kernel import Obligation, Theorem
from proofs.trusted.oracle import SEED, ask
from proofs.trusted.smtlib import ForAll
from proofs.trusted.terms import Bool, Implies, Not
from psem_model.audit.formulas import source
from psem_model.audit.questions import Fact, brief, facts_of, proved_theorems, together

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
    return ask(formulas, GLANCE, SEED).said == "unsat"


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
