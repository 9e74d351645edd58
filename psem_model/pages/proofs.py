"""A claim's proof as a page shows it: what is concluded, from what, the tree, the obligations."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from proofs.premises import conjuncts
from proofs.registry import Result
from proofs.trusted.kernel import Theorem
from proofs.trusted.theorem import read
from psem_model.audit import explanation
from psem_model.audit.formulas import in_general, parts
from psem_model.pages import mathematics
from psem_model.pages.evaluation import Evaluated, evaluation

READABLE = 5_000  # characters of an obligation whose text is on the page


@dataclass(frozen=True)
class Statement:
    """What is said: if these hold then those. `long`: too large to set; then neither is there."""

    name: str
    part: str
    kind: str = ""
    given: Sequence[Markup] = ()
    then: Sequence[Markup] = ()
    long: bool = False
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
    above: bool = False  # its parts are shown where it stands first


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
    long = set_given is None or set_then is None
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


def once(statements: Iterable[Statement]) -> list[Statement]:
    """Each statement once, whatever part it is of."""
    return list({(s.name, *s.given, *s.then): s for s in statements}.values())


def assumed(result: Result, kind: str) -> list[Statement]:
    """The hypotheses, or the axioms, of a claim's theorems."""
    return once(statement(theorem, kind) for theorem in explanation.assumed(result, kind))


def tree(result: Result) -> list[Node]:
    """The theorems of a claim, each with those it is made from; of trees that are alike, the first."""
    return _Tree().of(result.theorems)


class _Tree:
    """Theorems as nodes. Two are alike if they have one name and rule, and are made from alike ones."""

    def __init__(self) -> None:
        self.kinds: dict[Any, int] = {}  # by name, rule and kinds of parts
        self.kind_of: dict[int, int] = {}  # by identity
        self.shown: set[int] = set()

    def of(self, theorems: Iterable[Theorem]) -> list[Node]:
        return [self.node(_source(theorem)) for theorem in theorems]

    def kind(self, theorem: Theorem) -> int:
        if id(theorem) not in self.kind_of:
            parts = tuple(dict.fromkeys(self.kind(_source(part)) for part in theorem.parts))
            key = theorem.name, theorem.rule, len(theorem.obligations), parts
            self.kind_of[id(theorem)] = self.kinds.setdefault(key, len(self.kinds))
        return self.kind_of[id(theorem)]

    def node(self, theorem: Theorem) -> Node:
        kind = self.kind(theorem)
        above = kind in self.shown and bool(theorem.parts)
        sources: dict[int, Theorem] = {}
        for part in () if kind in self.shown else theorem.parts:
            source = _source(part)  # what is said of several instances, once
            sources.setdefault(self.kind(source), source)
        self.shown.add(kind)
        ends = {k: s for k, s in sources.items() if not s.parts and not s.obligations}
        leaves: dict[str, list[str]] = {}
        for each in (s for k, s in ends.items() if k not in self.shown):
            leaves.setdefault(each.rule, []).append(each.name)
        seen = len(ends) - sum(map(len, leaves.values()))
        self.shown.update(ends)
        parts = []
        for k, source in sources.items():
            if k in self.shown and k not in ends:
                leaves.setdefault("above", []).append(source.name)
            elif k not in ends:
                parts.append(self.node(source))
        return Node(theorem.name, theorem.rule, len(theorem.obligations), parts, leaves, seen, above)


def _source(theorem: Theorem) -> Theorem:
    """The theorem that one is an instance of, or itself."""
    while theorem.rule == "instance":
        (theorem,) = theorem.parts
    return theorem


def obligations(result: Result, answers: Sequence[str]) -> str:
    """The obligations of a claim, packed: name, rule, what is said of it if not `unsat`, short texts.

    `answers`: the second solver's, in order, if it was asked. What packs them, a browser has: JSON,
    deflated, in base64.
    """
    asked = [(explanation.name_of(t, o), o) for t in result.listed for o in t.obligations]
    said = answers or [""] * len(asked)
    found = [
        [
            name,
            o.rule,
            _odd(o.expected, second),
            text if len(text := o.text.strip()) <= READABLE else "",
        ]
        for (name, o), second in zip(asked, said, strict=True)
    ]
    data = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    return b64encode(zlib.compress(data, 9)).decode()


def _readable(text: str) -> str:
    return text if len(text) <= READABLE else ""


def _odd(first: str, second: str) -> str:
    """The solvers' answers, if one is not `unsat`."""
    if first == "unsat" and second in ("", "unsat"):
        return ""
    return f"z3 {first}{second and f', cvc5 {second}'}"
