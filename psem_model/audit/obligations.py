"""An obligation for readers: what is known in general; then at which instances, and what it is for.

What is known (theorems `thm`, hypotheses `hyp`, axioms, definitions `def`) is stated once, each as a
predicate of the variables that something stands for; the obligation asserts these by name. What an
induction's step shows is a predicate too: it holds of n, and not of n + 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from proofs.trusted.kernel import Obligation, Theorem
from proofs.trusted.parts import below, name_of
from proofs.trusted.terms import Bool, IntVal, Symbol, Term, symbols
from proofs.trusted.theorem import implies, read
from psem_model.audit.formulas import source
from psem_model.audit.smtlib import OwnNames, Spelling, call, standalone

KINDS = {"hypothesis": "hyp", "axiom": "axiom", "definition": "def"}
STEP = "induction step"
KNOWN, ASKED = "; what is known", "; the obligation"
GOAL = "goal"  # what an induction's step supposes of n, and shows of n + 1


@dataclass(frozen=True)
class Statement:
    """A formula with a name, and its variables by theirs."""

    name: str
    formula: Bool
    variables: Mapping[str, Term]


@dataclass(frozen=True)
class Use:
    """A statement as it is used: what stands for variables, by name."""

    of: Statement
    terms: Mapping[str, Term]


class Predicate:
    """A statement as a function of the variables for which something stands in one of its uses."""

    def __init__(self, uses: Sequence[Use], number: int = 1) -> None:
        """`number`: which one it is of those of this name."""
        self.uses, (self.of, *_) = uses, (use.of for use in uses)
        self.name = self.of.name if number == 1 else f"{self.of.name}.{number}"
        varied = {name for use in uses for name in use.terms}
        self.params = [v for name, v in self.of.variables.items() if name in varied]

    @property
    def free(self) -> frozenset[Symbol]:
        """The symbols that it speaks of, but for its parameters."""
        return symbols(self.of.formula) - {v.of for v in self.params}

    def args(self, use: Use) -> list[Term]:
        """What stands for its parameters."""
        return [use.terms.get(name_of(v), v) for v in self.params]

    @property
    def all_args(self) -> list[Term]:
        return [term for use in self.uses for term in self.args(use)]

    def line(self, names: OwnNames, said: Spelling) -> str:
        return names.defined(self.name, self.params, self.of.formula.sort, said(self.of.formula))

    def at(self, use: Use, said: Spelling) -> str:
        return call(self.name, map(said, self.args(use)))


def use_of(theorem: Theorem) -> Use:
    """Of which theorem it is an instance, and where."""
    if theorem.rule != "instance":
        return Use(_statement(theorem), {})
    (of,) = theorem.parts
    known = _statement(of)
    terms = _terms(read(theorem).step.given["terms"]).items()
    return Use(known, {n: t for n, t in terms if n in known.variables and t is not known.variables[n]})


@cache
def _statement(theorem: Theorem) -> Statement:
    name = f"{KINDS.get(source(theorem).rule, 'thm')}.{theorem.name}"
    return _stated(name, implies(theorem.given, theorem.goal))


def _stated(name: str, formula: Bool) -> Statement:
    return Statement(name, formula, {name_of(p): p for p in below([formula]) if name_of(p)})


def _terms(given: Mapping[str, Any]) -> dict[str, Term]:
    return {name: IntVal(term) if type(term) is int else term for name, term in given.items()}


def uses_in(theorem: Theorem, obligation: Obligation) -> list[Use]:
    """What an obligation uses, in the order of its facts."""
    of = {"smt": "uses", "induction base": "base", STEP: "step"}.get(obligation.rule)
    return [use_of(each) for each in read(theorem).step.given[of]] if of else []


def goals(theorem: Theorem, obligation: Obligation, given: Sequence[Bool]) -> list[Use]:
    """Last what is to be shown, if this is given; before it what an induction's step supposes."""
    step = read(theorem).step.given
    if obligation.rule != STEP:
        return [Use(_stated(GOAL, implies(given, obligation.goal)), {})]
    said = _stated(GOAL, implies(step["given"], step["goal"]))
    index = step["index"]
    return [Use(said, terms) for terms in [*map(_terms, step["at"]), {name_of(index): index + 1}]]


def predicates(used: Sequence[Use]) -> dict[int, Predicate]:
    """What is used, by the identity of its formula: one theorem may be used as several instances."""
    alike: dict[int, list[Use]] = {}
    for use in used:
        alike.setdefault(id(use.of.formula), []).append(use)
    names: Counter[str] = Counter()
    found = {}
    for key, uses in alike.items():
        names[uses[0].of.name] += 1
        found[key] = Predicate(uses, names[uses[0].of.name])
    return found


def together(asserted: Sequence[str]) -> list[str]:
    """What is known, as one assertion, a fact a line."""
    return ["(and\n  " + "\n  ".join(asserted) + ")"] if len(asserted) > 1 else [*asserted]


def exported(theorem: Theorem, obligation: Obligation) -> str:
    """One of a theorem's obligations as a text, complete."""
    used = uses_in(theorem, obligation)
    asked = goals(theorem, obligation, obligation.facts[len(used) :])
    known, goal = predicates(used), Predicate(asked)
    of_step = obligation.rule == STEP
    natural = [read(theorem).step.given["index"] >= 0] if of_step else []

    names = OwnNames()
    params = {id(v): v for p in known.values() for v in p.params}
    general = Spelling([p.of.formula for p in known.values()], names, [*params.values()])
    here = [*natural, *goal.all_args, *(term for p in known.values() for term in p.all_args)]
    said = Spelling([goal.of.formula, *here], names, goal.params, len(general.lines))
    asserted = [known[id(use.of.formula)].at(use, said) for use in used] + [*map(said, natural)]
    asserted += [goal.at(use, said) for use in asked[:-1]]
    refuted = call("not", [goal.at(asked[-1], said)]) if of_step else said.denied(goal.of.formula)
    lines = [KNOWN, *general.lines, *(p.line(names, general) for p in known.values())] if known else []
    lines += [ASKED, *said.lines, *([goal.line(names, said)] if of_step else [])]
    lines += [f"(assert {each})" for each in (*together(asserted), refuted)]
    stated = [goal, *known.values()]
    free = symbols(*here).union(*(p.free for p in stated))
    return standalone(names, [*here, *(p.of.formula for p in stated)], free, lines)
