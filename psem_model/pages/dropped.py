"""What appears when a hypothesis is dropped: values for which a step of the proof no longer follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proofs.registry import Result
from proofs.trusted.infix import text
from proofs.trusted.kernel import Obligation, Theorem
from proofs.trusted.parts import below
from proofs.trusted.terms import Bool, Not
from psem_model.audit.explanation import name_of
from psem_model.audit.formulas import source
from psem_model.audit.questions import facts_of, proved_theorems, values_of

TRIED = 3  # steps, the shortest first, in which a hypothesis is dropped
LARGEST = 4_000  # operators and symbols of a step that is tried
SHOWN = 8  # values


@dataclass(frozen=True)
class Failing:
    """A step that does not follow without a hypothesis, and values that show it."""

    step: str
    values: Sequence[tuple[str, str]]
    more: int  # values that are not shown


@dataclass(frozen=True)
class Use:
    """An obligation, and which of its facts are a hypothesis."""

    theorem: Theorem
    obligation: Obligation
    facts: frozenset[int]

    @property
    def size(self) -> int:
        """How many operators and symbols there are in the step."""
        return len(below([*self.obligation.facts, self.obligation.goal]))

    @property
    def without(self) -> list[Bool]:
        """The other facts, and that the goal is not so."""
        rest = [fact for i, fact in enumerate(self.obligation.facts) if i not in self.facts]
        return [*rest, Not(self.obligation.goal)]


def failing(result: Result) -> dict[str, Failing]:
    """By hypothesis, a step of a claim's proof that fails without it, where one is found."""
    found: dict[str, Failing] = {}
    for name, uses in uses_of(result).items():
        uses.sort(key=lambda use: use.size)
        short = [use for use in uses if use.size <= LARGEST]
        made = (each for use in short[:TRIED] if (each := _fails(use)) is not None)
        first = next(made, None)
        if first is not None:
            found[name] = first
    return found


def _fails(use: Use) -> Failing | None:
    values = values_of(use.without)
    if values is None:
        return None
    shown = [(text(term), text(value).lower()) for term, value in values]
    shown.sort(key=lambda pair: len(pair[0]))
    step = name_of(use.theorem, use.obligation)
    return Failing(step, shown[:SHOWN], max(len(shown) - SHOWN, 0))


def uses_of(result: Result) -> dict[str, list[Use]]:
    """By hypothesis, where it is a fact."""
    found: dict[str, list[Use]] = {}
    for theorem in proved_theorems(result.listed):
        facts: dict[tuple[str, int], set[int]] = {}
        for name, number, fact in _hypotheses_in(theorem):
            facts.setdefault((name, number), set()).add(fact)
        for (name, number), those in facts.items():
            use = Use(theorem, theorem.obligations[number], frozenset(those))
            found.setdefault(name, []).append(use)
    return found


def _hypotheses_in(theorem: Theorem) -> Iterator[tuple[str, int, int]]:
    """Each fact that is a hypothesis: its name, the number of the obligation, and its own."""
    for fact in facts_of(theorem):
        if fact.of is not None and source(fact.of).rule == "hypothesis":
            for which, place in fact.places:
                yield source(fact.of).name, which, place
