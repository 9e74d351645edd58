"""Make a certificate of claims: prove them, and find a proof for each obligation."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proofs.registry import Result
from psem_check.check import graph_of, part_of
from psem_check.reader import VERSION, Graph
from psem_check.terms import Term
from psem_check.tree import Part
from psem_model.certify.prover import proofs
from psem_model.certify.questions import Lists, Reader, key_of, question
from psem_model.certify.tree import tree
from psem_model.text.files import json_in, write_atomically
from psem_model.text.places import BUILD

Tell = Callable[[int, int], None]
PIECE = 1 << 19  # bytes that are compressed at once


def kept() -> Path:
    """Where proofs are kept, by the hash of what they are of. The checker checks them all the same."""
    return BUILD / "proofs" / f"{VERSION}-cvc5-{version('cvc5')}"


def certificate(results: Sequence[Result], tell: Tell = lambda done, of: None) -> dict[str, Any]:
    """All that was proved, with a proof for each obligation or the reason why there is none."""
    document = tree(results)
    add_proofs(document, lambda questions: _proofs(questions, tell))
    return document


def add_proofs(
    document: dict[str, Any], find: Callable[[Sequence[str]], Mapping[str, Mapping[str, Any]]]
) -> None:
    """Of each obligation the proof that is found for its question, or why there is none."""
    graph, asked = questions(document)
    found = find(list(dict.fromkeys(text for _, text in asked)))
    lists = Lists(
        graph.terms,
        nodes=document["terms"],
        sorts=document["sorts"],
        symbols=document["symbols"],
        sort_numbers={sort: number for number, sort in enumerate(graph.sorts)},
        symbol_numbers={number: number for number in range(len(graph.terms.symbols))},
        numbers={term: number for number, term in enumerate(graph.numbers)},
    )
    for (_, place, key), (facts, text) in zip(places(document), asked, strict=True):
        place[key] = written(lists, facts, found[text])


@dataclass
class Asked(Part):
    """A part that notes what is left to show, and takes it for shown."""

    facts: list[tuple[Term, ...]] = field(default_factory=list)

    def impossible(self, facts: Sequence[Term], proof: Any) -> None:
        self.facts.append(tuple(facts))


def questions(document: Mapping[str, Any]) -> tuple[Graph, list[tuple[tuple[Term, ...], str]]]:
    """The facts of each obligation of a certificate, and its question."""
    graph = graph_of(document)
    given = [part for claim in document["claims"] for part in claim["parts"]]
    parts = [part_of(graph, each, Asked) for each in given]
    several = [facts for part in parts if isinstance(part, Asked) for facts in part.facts]
    return graph, [(facts, question(graph.terms, facts)) for facts in several]


def places(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Where the proofs of a certificate are, in order: of which step, in what, by which key."""
    for claim in document["claims"]:
        for step in (step for part in claim["parts"] for step in part["steps"]):
            name = f"{claim['id']} {step.get('name')}"
            if step["rule"] == "prove":
                yield name, step, "proof"
            elif step["rule"] == "induct":
                yield from ((name, step["proof"], which) for which in range(2))


def written(lists: Lists, facts: Sequence[Term], proof: Mapping[str, Any]) -> list[Any] | str:
    """A proof of a question as one of an obligation with these facts: its terms are in the lists."""
    if "missing" in proof:
        return str(proof["missing"])
    reader = Reader(lists.terms, facts)
    reader.read([], [], proof["terms"])

    def number(of: int) -> int:
        return lists.number(reader.numbers[of])

    steps: list[Any] = []
    for rule, first, *given in proof["steps"]:
        if rule == "law":
            steps.append([rule, first, [number(term) for term in given[0]]])
        elif rule == "products":
            of = [number(term) for term in first]
            steps.append([rule, of, [[number(term), by] for term, by in given[0]]])
        else:
            steps.append([rule, number(first), *given])
    return steps


def _proofs(questions: Sequence[str], tell: Tell) -> dict[str, Any]:
    folder = kept()
    folder.mkdir(parents=True, exist_ok=True)
    paths = {text: folder / f"{key_of(text)}.json" for text in questions}
    found = {text: json_in(path) for text, path in paths.items()}
    new = [text for text, proof in found.items() if proof is None]
    for done, (text, proof) in enumerate(proofs(new), 1):
        tell(done, len(new))
        found[text] = proof
        if "missing" not in proof:
            write_atomically(paths[text], json.dumps(proof, separators=(",", ":")))
    return found


def compressed(document: Mapping[str, Any], tell: Tell = lambda done, of: None) -> bytes:
    """The file of a certificate; `tell` is told how many bytes are compressed, of how many."""
    data = json.dumps(document, separators=(",", ":")).encode()
    compressor = lzma.LZMACompressor(preset=3)
    parts = []
    for start in range(0, len(data), PIECE):
        tell(start, len(data))
        parts.append(compressor.compress(data[start : start + PIECE]))
    return b"".join([*parts, compressor.flush()])


def missing(document: Mapping[str, Any]) -> list[str]:
    """Why obligations have no proof, in sentences."""
    found = [(name, place[key]) for name, place, key in places(document)]
    return [f"{name}: {proof}" for name, proof in found if type(proof) is str]
