"""What a theorem is proved from, and whether it can hold: one that rests on the impossible is empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proofs.trusted.kernel import Theorem
from proofs.trusted.oracle import RESOURCE_LIMIT, SEED, ask, glance
from proofs.trusted.parts import substitute
from proofs.trusted.smtlib import ForAll
from proofs.trusted.terms import Bool, Const, KernelError, Not, RealSort, Term, symbols
from proofs.trusted.theorem import read

GLANCE = 50_000  # z3's own deterministic count, for a question that may be left open
LOOK = 40 * GLANCE  # for one that must be answered
MANY = 500  # formulas, of which nothing is seen at a glance
LOOKS = 5  # with different seeds: mostly sooner than one long look


def made_from(theorems: Iterable[Theorem]) -> list[Theorem]:
    """The theorems they are made from, and those are, down to hypotheses and definitions."""
    found: dict[int, Theorem] = {}
    pending = [part for theorem in theorems for part in read(theorem).parts]
    while pending:
        part = pending.pop()
        if id(part) not in found:
            found[id(part)] = part
            pending += read(part).parts
    return list(found.values())


def premises(theorems: Sequence[Theorem], whole: bool = False) -> list[Bool]:
    """What must be able to hold together, lest a theorem is empty: all it is made from, `given`, and
    what its goal follows from.

    Of a hypothesis for all values these are the instances in use. Left out is what is proved from
    others alone, which holds where they do; and what rests on no hypothesis, but of the `whole`.
    """
    used = [part for part in made_from(theorems) if read(part).rule != "smt"]
    parts = [part for part in used if whole or part.hypotheses]
    said = [read(part).statement for part in parts]
    return [*said, *(each for theorem in theorems for each in conditions(theorem))]


def conditions(theorem: Theorem) -> list[Bool]:
    """What its goal is said to follow from: `given`, and the premises of the goal."""
    record = read(theorem)
    return [*record.given, *premises_of(record.goal)[0]]


def premises_of(goal: Bool) -> tuple[list[Bool], Bool]:
    """Of p => (q => r): what p and q say one by one, and r."""
    said: list[Bool] = []
    while goal.op == "=>":
        premise, goal = goal.args
        said += conjuncts(premise)
    return said, goal


def conjuncts(formula: Bool) -> list[Bool]:
    """What a formula says one by one."""
    if formula.op != "and":
        return [formula]
    return [part for each in formula.args for part in conjuncts(each)]


def hypotheses(theorems: Iterable[Theorem]) -> list[Theorem]:
    """The hypotheses and axioms that theorems are made from."""
    return [part for part in made_from(theorems) if read(part).rule in ("hypothesis", "axiom")]


def closed(hypothesis: Theorem) -> Bool | ForAll:
    """What it says, for all values of its variables."""
    free, said = variables(hypothesis), read(hypothesis).goal
    bound = [Const(_new(hypothesis, f"any_{variable}"), variable.sort) for variable in free]
    said = substitute(said, *zip(free, bound, strict=True))
    return ForAll(tuple(bound), said) if free else said


def _new(hypothesis: Theorem, name: str) -> str:
    """A name for a bound variable that nothing else has, lest it takes in what is free elsewhere."""
    while name in read(hypothesis).kernel._symbols:
        name = f"any_{name}"
    return name


def denied(hypothesis: Theorem) -> Bool:
    """That what it says is not so, of some values of its variables."""
    return Not(read(hypothesis).goal)


def variables(hypothesis: Theorem) -> list[Term]:
    """Those of which a hypothesis speaks for all values."""
    record = read(hypothesis)
    found = (s for s in symbols(record.goal) if not s.takes)
    return [s() for s in sorted(found, key=str) if s.name in record.kernel._variables]


def answer(formulas: Sequence[Bool], patient: bool = True) -> str:
    """Whether formulas can hold together: sat, unsat or unknown. Zeros are tried for all reals."""
    zeros = [*formulas, *all_are(0, formulas)]
    looks = [(LOOK, seed) for seed in range(1, (LOOKS if patient else 1) + 1)]
    looks += [(RESOURCE_LIMIT, SEED)] if patient else []
    if any(ask(zeros, *look, simple=True, values=False).said == "sat" for look in looks):
        return "sat"
    return ask(formulas, values=False).said if patient else glance(formulas, GLANCE).said


def all_are(value: int, formulas: Sequence[Bool]) -> list[Bool]:
    """That all real variables have a value: products are then easy to satisfy, if they can be."""
    numbers = [s for s in symbols(*formulas) if not s.takes and s.gives == RealSort()]
    return [symbol() == value for symbol in sorted(numbers, key=str)]


def require_possible(claim: str, theorems: Sequence[Theorem]) -> None:
    """Raise KernelError for a theorem whose hypotheses and conditions cannot all hold.

    The answer must be `sat`: `unknown` does not pass. Of hypotheses for all values these are the
    instances in use; that as they stand they contradict each other must not be seen at a glance.
    """
    for group in of_like_cases(theorems):
        _require_each(claim, group)


def of_like_cases(theorems: Sequence[Theorem]) -> list[list[Theorem]]:
    """Theorems that rest on something, in groups of one kernel each.

    Those of cases that are seen to exclude each other are in different ones.
    """
    groups: list[list[Theorem]] = []
    for theorem in theorems:
        if theorem.counterexample is not None or not (theorem.hypotheses or conditions(theorem)):
            continue
        for group in groups:
            if read(group[0]).kernel is not read(theorem).kernel:
                continue
            together = [each for some in (*group, theorem) for each in conditions(some)]
            if glance(together, GLANCE).said != "unsat":
                group.append(theorem)
                break
        else:
            groups.append([theorem])
    return groups


def _require_each(claim: str, theorems: Sequence[Theorem]) -> None:
    """Of theorems of one kernel: each rests on what can all hold. One question may do for several."""
    if _can_hold(theorems):
        return
    if len(theorems) == 1:
        names = ", ".join(sorted(theorems[0].hypotheses))
        what = f"its hypotheses ({names}) and conditions" if names else "its conditions"
        nothing = f"{theorems[0].name} says nothing: {what} are not seen to hold together"
        raise KernelError(f"{claim}: {nothing}")
    half = len(theorems) // 2
    for part in (theorems[:half], theorems[half:]):
        _require_each(claim, part)


def _can_hold(theorems: Sequence[Theorem]) -> bool:
    """Whether what all of them rest on is seen to hold together; of one theorem patiently."""
    if _contradict(theorems):
        return False
    whole = premises(theorems, whole=True)
    said = glance(whole, GLANCE).said if len(whole) <= MANY else "unknown"
    if said == "unknown":  # some of what holds together does, too
        said = answer(premises(theorems), patient=len(theorems) == 1)
    return said == "sat"


def _contradict(theorems: Sequence[Theorem]) -> bool:
    """Whether z3 sees that the hypotheses of theorems, for all values, contradict each other."""
    said = [closed(each) for each in hypotheses(theorems)]
    return bool(said) and glance(said, GLANCE // 4).said == "unsat"
