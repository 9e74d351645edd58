"""A certificate, checked: each claim's steps gone through, and each obligation's proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from psem_check.proofs import check_proof
from psem_check.reader import Graph, listed, member, plain
from psem_check.terms import Rejected, named
from psem_check.tree import ASSUMES, DEFINES, Part, Theorem

# what of a step has numbers of terms in it, and of symbols
TERMS = ("index", "goal", "formula", "base", "body", "witness", "claim", "params", "variables", "given")
NUMBERED: dict[str, Callable[[Graph, Any], int]] = {
    **dict.fromkeys((*TERMS, "values", "at"), Graph.term),
    **dict.fromkeys(("symbol", "found", "functions"), Graph.symbol),
}


@dataclass(frozen=True)
class Open:
    """An obligation without a proof that was checked, and why."""

    name: str
    why: str


@dataclass
class Checked:
    """A claim of which every step follows its rule."""

    id: str
    statement: str
    verdict: str
    theorems: list[tuple[Part, Theorem]]
    obligations: int
    open: list[Open] = field(default_factory=list)


def in_a_line(text: Any) -> str:
    """Words of the certificate, which cannot pass for lines of the checker."""
    return text if type(text) is str and text.isprintable() else ascii(text)


def check(document: Mapping[str, Any]) -> Iterator[Checked]:
    """The claims of a certificate, one by one. Raises Rejected at a step that breaks its rule."""
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
    parts = [part_of(graph, part) for part in listed(claim["parts"])]
    returned = []
    for number, which in claim["theorems"]:
        part = member(number, parts)
        theorem = member(which, part.theorems)
        if theorem.rule in (*DEFINES, *ASSUMES, "instance"):
            raise Rejected(f"{theorem.name} is a {theorem.rule}: it is not proved there")
        returned.append((part, theorem))
    if not returned:
        raise Rejected("it has no theorem")
    verdict = "refuted" if returned[0][1].rule == "refute" else "proved"
    if claim["verdict"] != verdict:
        raise Rejected(f"it is {verdict}, and not {claim['verdict']}")
    obligations = [obligation for part in parts for obligation in part.obligations]
    proofs = listed(claim["proofs"])
    if len(proofs) != len(obligations):
        raise Rejected(f"{len(proofs)} proofs of {len(obligations)} obligations")
    found = Checked(claim["id"], in_a_line(claim["statement"]), verdict, returned, len(obligations))
    for obligation, proof in zip(obligations, proofs, strict=True):
        try:
            if type(proof) is str:
                raise Rejected(f"it has no proof: {proof}")
            with named("its proof"):
                check_proof(graph, obligation.facts, listed(proof))
        except Rejected as error:
            found.open.append(Open(obligation.name, in_a_line(str(error))))
    return found


def graph_of(document: Mapping[str, Any]) -> Graph:
    """The sorts, symbols and terms of a certificate."""
    graph = Graph()
    graph.read(document["sorts"], document["symbols"], document["terms"])
    return graph


def part_of(graph: Graph, given: Mapping[str, Any]) -> Part:
    """One namespace of a claim, its steps gone through."""
    symbols = frozenset(map(graph.symbol, given["symbols"]))
    variables = frozenset(map(graph.symbol, given["variables"]))
    if any(graph.terms.symbols[v].arguments for v in variables) or not variables <= symbols:
        raise Rejected("a variable with arguments, or of another part")
    names = [graph.terms.symbols[s].name for s in symbols]
    if len(set(names)) != len(names) or not graph.values.isdisjoint(names):
        raise Rejected("two symbols have the same name, or one that of a value")
    part = Part(graph.terms, variables, symbols)
    for number, step in enumerate(given["steps"]):
        with named(f"{given['name']}: step {number}, {step.get('name')}"):
            part.take({key: _read(graph, key, value) for key, value in step.items()})
    return part


def _read(graph: Graph, key: str, given: Any) -> Any:
    """What a step is given, with terms and symbols in place of their numbers, however deep in lists."""
    if key not in NUMBERED:
        return given
    if type(given) is list:
        return [_read(graph, key, each) for each in given]
    return NUMBERED[key](graph, given)
