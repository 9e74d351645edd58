"""A claim's proof as a page shows it: what is concluded, from what, the tree, the obligations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from proofs.premises import conjuncts
from proofs.registry import Result
from proofs.trusted.kernel import Theorem
from proofs.trusted.theorem import read
from psem_model.audit import explanation
from psem_model.audit.formulas import in_general, parts
from psem_model.pages import mathematics


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
    refuted: bool = False


@dataclass(frozen=True)
class Node:
    """A theorem in the tree: its rule, how many obligations it has itself, what it is made from."""

    name: str
    rule: str
    obligations: int
    parts: Sequence[Node] = ()
    leaves: Sequence[tuple[str, str]] = ()  # names and rules of what is made from nothing, once
    seen: int = 0  # others, which stand above
    above: bool = False  # its parts are shown where it stands first


@dataclass(frozen=True)
class Asked:
    """One obligation, and its text if that is shown."""

    name: str
    rule: str
    expected: str
    text: str
    second: str = ""  # the second solver's answer, if it was asked


def statement(theorem: Theorem, kind: str = "") -> Statement:
    """What a theorem says; of one that is refuted, for which values it does not hold."""
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
    values = tuple((found or {}).items())
    if set_given is None or set_then is None:
        return Statement(theorem.name, part, kind, (), (), True, general, under, values, bool(values))
    return Statement(
        theorem.name, part, kind, set_given, set_then, False, general, under, values, bool(values)
    )


def once(statements: Iterable[Statement]) -> list[Statement]:
    """Each statement once, whatever part it is of."""
    return list({(s.name, *s.given, *s.then): s for s in statements}.values())


def assumed(result: Result, kind: str) -> list[Statement]:
    """The hypotheses, or the axioms, of a claim's theorems."""
    return once(statement(theorem, kind) for theorem in explanation.assumed(result, kind))


def tree(result: Result) -> list[Node]:
    """The theorems of a claim, each with those it is made from."""
    shown: set[int] = set()
    return [_node(_source(theorem), shown) for theorem in result.theorems]


def _node(theorem: Theorem, shown: set[int]) -> Node:
    sources: dict[int, Theorem] = {}
    for part in () if id(theorem) in shown else theorem.parts:
        source = _source(part)  # what is said of several instances, once
        sources.setdefault(id(source), source)
    above = id(theorem) in shown and bool(theorem.parts)
    shown.add(id(theorem))
    ends = {i: s for i, s in sources.items() if not s.parts and not s.obligations}
    leaves = [(s.name, s.rule) for i, s in ends.items() if i not in shown]
    seen = len(ends) - len(leaves)
    shown.update(ends)
    parts = [_node(s, shown) for i, s in sources.items() if i not in ends]
    return Node(theorem.name, theorem.rule, len(theorem.obligations), parts, leaves, seen, above)


def _source(theorem: Theorem) -> Theorem:
    """The theorem that one is an instance of, or itself."""
    while theorem.rule == "instance":
        (theorem,) = theorem.parts
    return theorem


def obligations(result: Result, answers: Sequence[str]) -> list[Asked]:
    """The obligations of a claim, with the second solver's `answers` in order, if it was asked."""
    asked = [(explanation.name_of(t, o), o) for t in result.listed for o in t.obligations]
    said = answers or [""] * len(asked)
    return [
        Asked(name, o.rule, o.expected, o.text.strip(), second)
        for (name, o), second in zip(asked, said, strict=True)
    ]
