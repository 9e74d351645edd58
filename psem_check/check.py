"""A certificate, checked: each claim's steps gone through, and each obligation's proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from psem_check.graphs import Graph, listed, plain
from psem_check.proofs import check_proof
from psem_check.terms import Rejected
from psem_check.tree import ASSUMES, DEFINES, Obligation, Part, Theorem

MISSING = "it has no proof"
# what of a step has numbers of terms in it, and of symbols; `base` is a term in recursions alone
TERM = {"index", "goal", "formula", "body", "witness", "claim"}
TERMS = {*TERM, "params", "variables", "given", "values", "at"}
SYMBOLS = {"symbol", "found", "functions"}


@dataclass(frozen=True)
class Open:
    """An obligation without a proof that was checked, and why."""

    claim: str
    name: str
    why: str

    @property
    def missing(self) -> bool:
        """Whether the certificate itself says that it has no proof."""
        return self.why.startswith(MISSING)


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
    seen: set[str] = set()
    try:
        graph = graph_of(document)
        for claim in document["claims"]:
            if plain(claim["id"]) in seen:
                raise Rejected(f"the claim {claim['id']} stands twice")
            seen.add(claim["id"])
            yield _claim(graph, claim)
    except Rejected:
        raise
    except Exception as error:  # whatever is wrong with it, it shows nothing
        raise Rejected(f"it is no certificate: {type(error).__name__}: {error}") from error


def _claim(graph: Graph, claim: Mapping[str, Any]) -> Checked:
    parts = [part_of(graph, part, claim["id"]) for part in listed(claim["parts"])]
    returned = []
    for number, which in claim["theorems"]:
        part = parts[_natural(number, len(parts))]
        theorem = part.theorems[_natural(which, len(part.theorems))]
        if theorem.rule in (*DEFINES, *ASSUMES, "instance"):
            raise Rejected(f"{claim['id']}: {theorem.name} is a {theorem.rule}: it is not proved there")
        returned.append((part, theorem))
    if not returned:
        raise Rejected(f"{claim['id']}: it has no theorem")
    verdict = "refuted" if returned[0][1].rule == "refute" else "proved"
    if claim["verdict"] != verdict:
        raise Rejected(f"{claim['id']}: it is {verdict}, and not {claim['verdict']}")
    obligations = [obligation for part in parts for obligation in part.obligations]
    proofs = listed(claim["proofs"])
    if len(proofs) != len(obligations):
        raise Rejected(f"{claim['id']}: {len(proofs)} proofs of {len(obligations)} obligations")
    found = Checked(claim["id"], in_a_line(claim["statement"]), verdict, returned, len(obligations))
    for obligation, proof in zip(obligations, proofs, strict=True):
        if why := _why_open(graph, obligation, proof):
            found.open.append(Open(found.id, obligation.name, why))
    return found


def _why_open(graph: Graph, obligation: Obligation, proof: Any) -> str:
    """Why an obligation has no checked proof; nothing if it has one."""
    if type(proof) is str:
        return f"{MISSING}: {in_a_line(proof)}"
    try:
        check_proof(graph, obligation.facts, listed(proof))
    except Rejected as error:
        return f"its proof is rejected: {in_a_line(str(error))}"
    except Exception as error:  # whatever is wrong with it, it proves nothing
        return f"its proof cannot be read: {type(error).__name__}: {in_a_line(str(error))}"
    return ""


def graph_of(document: Mapping[str, Any]) -> Graph:
    """The sorts, symbols and terms of a certificate."""
    graph = Graph()
    graph.read(document["sorts"], document["symbols"], document["terms"])
    return graph


def part_of(graph: Graph, given: Mapping[str, Any], claim: str) -> Part:
    """One namespace of a claim, its steps gone through."""
    symbols = frozenset(map(graph.symbol, given["symbols"]))
    variables = frozenset(map(graph.symbol, given["variables"]))
    if any(graph.terms.symbols[v].arguments for v in variables) or not variables <= symbols:
        raise Rejected(f"{claim}: a variable with arguments, or of another part")
    names = [graph.terms.symbols[s].name for s in symbols]
    if len(set(names)) != len(names) or not graph.values.isdisjoint(names):
        raise Rejected(f"{claim}: two symbols have the same name, or one that of a value")
    part = Part(graph.terms, variables, symbols)
    for number, step in enumerate(given["steps"]):
        try:
            part.take(_with_terms(graph, step))
        except Rejected as error:
            raise Rejected(f"{given['name']}: step {number}, {step.get('name')}: {error}") from error
        except Exception as error:  # whatever is wrong with it, it is no step
            raise Rejected(
                f"{given['name']}: step {number} is no step: {type(error).__name__}: {error}"
            ) from error
    return part


def _natural(number: Any, below: int) -> int:
    if type(number) is not int or not 0 <= number < below:
        raise Rejected(f"{number!r} is not one of {below}")
    return number


def _with_terms(graph: Graph, step: Mapping[str, Any]) -> dict[str, Any]:
    """A step with terms and symbols in place of their numbers in the file, however deep in lists."""
    terms = {*TERMS, "base"} if step["rule"] == "recursion" else TERMS

    def read(given: Any, number: Callable[[Any], int]) -> Any:
        return [read(each, number) for each in given] if type(given) is list else number(given)

    kinds = {**dict.fromkeys(terms, graph.term), **dict.fromkeys(SYMBOLS, graph.symbol)}
    return {key: read(given, kinds[key]) if key in kinds else given for key, given in step.items()}
