"""A certificate, checked: each claim's steps gone through, with the proofs of what is left to show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psem_check.reader import Graph, member, plain
from psem_check.terms import Rejected, named
from psem_check.tree import SHOWN, Part, Theorem

# what of a step has no numbers of terms in it, and what has those of symbols
AS_GIVEN = ("rule", "name", "uses", "of", "first", "then", "pointwise", "proof")
SYMBOLS = ("symbol", "found")


@dataclass(frozen=True)
class Checked:
    """A claim of which every step follows its rule, and every obligation is shown."""

    id: str
    statement: str
    theorems: list[tuple[Part, Theorem]]
    obligations: int

    @property
    def verdict(self) -> str:
        return "refuted" if self.theorems[0][1].rule == "refute" else "proved"


def in_a_line(text: Any) -> str:
    """Words of the certificate, which cannot pass for lines of the checker."""
    return text if type(text) is str and text.isascii() and text.isprintable() else ascii(text)


def check(document: Mapping[str, Any]) -> Iterator[Checked]:
    """The claims of a certificate, one by one. Raises Rejected at what breaks a rule."""
    with named("the certificate"):
        graph = graph_of(document)
        claims = {plain(claim["id"]): claim for claim in document["claims"]}
        if len(claims) != len(document["claims"]):
            raise Rejected("a claim stands twice")
    for id, claim in claims.items():
        with named(id):
            found = _claim(graph, claim)
        yield found


def _claim(graph: Graph, claim: Mapping[str, Any]) -> Checked:
    parts = [part_of(graph, part) for part in claim["parts"]]
    returned = []
    for number, which in claim["theorems"]:
        part = member(number, parts)
        theorem = member(which, part.theorems)
        if theorem.rule not in SHOWN:
            raise Rejected(f"{theorem.name} is by {theorem.rule}: it is not proved there")
        returned.append((part, theorem))
    if not returned:
        raise Rejected("it has no theorem")
    obligations = sum(part.obligations for part in parts)
    return Checked(claim["id"], in_a_line(claim["statement"]), returned, obligations)


def graph_of(document: Mapping[str, Any]) -> Graph:
    """The sorts, symbols and terms of a certificate."""
    graph = Graph()
    graph.read(document["sorts"], document["symbols"], document["terms"])
    return graph


def part_of(graph: Graph, given: Mapping[str, Any], kind: type[Part] = Part) -> Part:
    """One namespace of a claim, its steps gone through."""
    symbols = frozenset(map(graph.symbol, given["symbols"]))
    variables = frozenset(map(graph.symbol, given["variables"]))
    if any(graph.terms.symbols[v].arguments for v in variables) or not variables <= symbols:
        raise Rejected("a variable with arguments, or of another part")
    names = [graph.terms.symbols[s].name for s in symbols]
    if len(set(names)) != len(names) or not graph.values.isdisjoint(names):
        raise Rejected("two symbols have the same name, or one that of a value")
    part = kind(graph, variables, symbols)
    for number, step in enumerate(given["steps"]):
        with named(f"{given['name']}: step {number}, {step.get('name')}"):
            part.take(**{key: _read(graph, key, value) for key, value in step.items()})
    return part


def _read(graph: Graph, key: str, given: Any) -> Any:
    """What a step is given, with terms and symbols in place of their numbers, however deep in lists."""
    if key in AS_GIVEN:
        return given
    if type(given) is list:
        return [_read(graph, key, each) for each in given]
    return graph.symbol(given) if key in SYMBOLS else graph.term(given)
