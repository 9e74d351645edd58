"""A claim's proof as a page shows it: what is concluded, from what, the tree, the obligations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from proofs.premises import conjuncts
from proofs.registry import Result
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.theorem import read
from psem_model.audit import explanation
from psem_model.audit.formulas import implication, in_general, parts, source
from psem_model.audit.obligations import exported
from psem_model.pages import mathematics
from psem_model.pages.evaluation import Evaluated, evaluation
from psem_model.pages.render import packed


@dataclass(frozen=True)
class Statement:
    """What is said: if these hold then those. `long`: what is too large to set, as text instead."""

    name: str
    part: str
    kind: str = ""
    given: Sequence[Markup] = ()
    then: Sequence[Markup] = ()
    long: str = ""
    general: str = ""  # of which variables it speaks for all values
    under: Sequence[str] = ()  # hypotheses
    counterexample: Sequence[tuple[str, str]] = ()
    played: Sequence[Evaluated] = ()  # its values, then what they make of each formula
    refuted: bool = False


@dataclass(frozen=True)
class Node:
    """A theorem in the tree: its rule, how many obligations it has itself, what it is made from."""

    name: str
    rule: str
    obligations: int
    parts: Sequence[Node] = ()
    leaves: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # of what is made from nothing, by rule
    seen: int = 0  # others, which stand above
    where: str = ""  # its parts are shown, if not here: above, or in another claim


def statement(theorem: Theorem, kind: str = "", played: bool = False) -> Statement:
    """What a theorem says; of one that is refuted, for which values it does not hold.

    `played`: and what these values make of each of its formulas.
    """
    part = read(theorem).kernel.claim.partition("/")[2]
    found = theorem.counterexample
    if found is None:
        given, then = parts(theorem)
    else:
        (asked,) = theorem.obligations
        given, then = list(asked.facts), conjuncts(asked.goal)
    set_given, set_then = mathematics.conditions(given), mathematics.conditions(then)
    general = in_general(theorem) if kind == "hypothesis" else ""
    under = [] if kind else sorted(theorem.hypotheses)
    long = "" if set_given is not None and set_then is not None else _as_text(given, then)
    return Statement(
        theorem.name,
        part,
        kind,
        () if long else set_given or (),
        () if long else set_then or (),
        long,
        general,
        under,
        tuple((found or {}).items()),
        evaluation(found, given, then) if found and played else (),
        bool(found),
    )


def _as_text(given: Sequence[Bool], then: Sequence[Bool]) -> str:
    """Formulas as `psem explain` prints them."""
    return "\n".join(implication(given, then, 0))


def once(statements: Iterable[Statement]) -> list[Statement]:
    """Each statement once, whatever part it is of."""
    return list({(s.name, *s.given, *s.then): s for s in statements}.values())


def assumed(result: Result, kind: str) -> list[Statement]:
    """The hypotheses, or the axioms, of a claim's theorems."""
    return once(statement(theorem, kind) for theorem in explanation.assumed(result, kind))


def definitions(result: Result) -> tuple[list[Statement], int]:
    """What a claim's statements are defined by, the first of them; and how many more there are."""
    found = explanation.defined(result)
    shown = [statement(part, "definition") for part in found[: explanation.MANY]]
    return shown, len(found) - len(shown)


class Trees:
    """Theorems as nodes. Two are alike if they have one name and rule, and are made from alike ones:
    what is shown once, of a claim, is named afterwards, with the claim if it is another.
    """

    def __init__(self) -> None:
        self.kinds: dict[Any, int] = {}  # by name, rule and kinds of parts
        self.kind_of: dict[int, int] = {}  # by identity
        self.theorems: list[Theorem] = []  # that they are of, so that none takes another's identity
        self.shown: dict[int, str] = {}  # in which claim a kind is shown

    def of(self, result: Result) -> list[Node]:
        """The theorems of a claim, each with those it is made from."""
        return [self.node(source(theorem), result.claim.id) for theorem in result.theorems]

    def kind(self, theorem: Theorem) -> int:
        if id(theorem) not in self.kind_of:
            self.theorems.append(theorem)
            parts = tuple(dict.fromkeys(self.kind(source(part)) for part in theorem.parts))
            key = theorem.name, theorem.rule, len(theorem.obligations), parts
            self.kind_of[id(theorem)] = self.kinds.setdefault(key, len(self.kinds))
        return self.kind_of[id(theorem)]

    def node(self, theorem: Theorem, claim: str) -> Node:
        kind = self.kind(theorem)
        before = self.shown.get(kind)
        where = ("above" if before == claim else f"in {before}") if before and theorem.parts else ""
        sources: dict[int, Theorem] = {}
        for part in () if before else theorem.parts:
            one = source(part)  # what is said of several instances, once
            sources.setdefault(self.kind(one), one)
        self.shown.setdefault(kind, claim)
        ends = {k: s for k, s in sources.items() if not s.parts and not s.obligations}
        leaves: dict[str, list[str]] = {}
        for each in (s for k, s in ends.items() if self.shown.get(k) != claim):
            leaves.setdefault(each.rule, []).append(each.name)
        seen = len(ends) - sum(map(len, leaves.values()))
        self.shown.update(dict.fromkeys(ends, claim))
        parts = []
        for k, one in sources.items():
            if k in self.shown and k not in ends:
                stands = "above" if self.shown[k] == claim else f"in {self.shown[k]}"
                leaves.setdefault(stands, []).append(one.name)
            elif k not in ends:
                parts.append(self.node(one, claim))
        return Node(theorem.name, theorem.rule, len(theorem.obligations), parts, leaves, seen, where)


class Texts:
    """Lines of obligations, and markup, of all claims: each once, since most lines stand in several."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Of a line, of markup, or of a claim's obligations."""
        return self.numbers.setdefault(str(text), len(self.numbers))

    def steps(self, text: str) -> list[int]:
        """Its lines: so many further on, or less a number."""
        numbers = map(self.number, text.split("\n"))
        pairs = pairwise((0, *numbers))
        return [number - before if number > before else -number for before, number in pairs]

    def packed(self) -> str:
        """All of them, by number."""
        return packed([*self.numbers])


def obligations(result: Result, answers: Sequence[str], texts: Texts) -> int:
    """The number of a claim's obligations: name, rule, what is said if not `unsat`, its lines, as JSON.

    `answers`: the second solver's, in order, if it was asked.
    """
    asked = [(t, o) for t in result.listed for o in t.obligations]
    said = answers or [""] * len(asked)
    rows = [
        [
            explanation.name_of(t, o),
            o.rule,
            _odd(o.expected, second),
            texts.steps(exported(t, o).strip()),
        ]
        for (t, o), second in zip(asked, said, strict=True)
    ]
    return texts.number(json.dumps(rows, separators=(",", ":")))


def _odd(first: str, second: str) -> str:
    """The solvers' answers, if one is not `unsat`."""
    if first == "unsat" and second in ("", "unsat"):
        return ""
    return f"z3 {first}{second and f', cvc5 {second}'}"
