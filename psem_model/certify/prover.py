"""Proofs of many questions, each searched in a process that is stopped when it takes long.

As a program it reads questions and looks for a proof of each in one way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psem_model.audit.processes import answers, program, serve
from psem_model.certify.questions import check

PATIENCE = 120.0  # seconds by the clock, for a question


@dataclass(frozen=True)
class Way:
    """A way to a proof, and after how many seconds of processor time it is stopped."""

    name: str
    find: Callable[[str], dict[str, Any]]
    seconds: int


def ways() -> list[Way]:
    """The ways to a proof, in order."""
    from psem_model.certify.cases import MUCH
    from psem_model.certify.cvc5_proofs import prove
    from psem_model.certify.search import search

    return [
        Way("search", search, 20),
        Way("cvc5", prove, 5),
        Way("further search", lambda text: search(text, MUCH), 60),
        Way("cvc5, nonlinear", lambda text: prove(text, nonlinear=True), 20),
    ]


def proofs(questions: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Questions and their proofs as they come; where none is found, what is `missing`."""
    left = dict.fromkeys(questions, "")  # and why there is no proof yet
    for number, way in enumerate(ways()):
        command = program("psem_model.certify.prover", str(number))
        failed: dict[str, str] = {}
        for text, found, why in answers(command, [*left], PATIENCE):
            proof = {"missing": why} if found is None else found
            if "missing" not in proof:
                yield text, proof
            else:
                failed[text] = "; ".join(filter(None, (left[text], f"{way.name}: {proof['missing']}")))
        left = failed
    for text, why in left.items():
        yield text, {"missing": why}


def _found(way: Way, text: str) -> dict[str, Any]:
    """A proof that the checker accepts."""
    try:
        proof = way.find(text)
        if "missing" not in proof:
            check(text, proof)
        return proof
    except Exception as error:  # whatever it is, there is no proof
        return {"missing": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    way = ways()[int(sys.argv[1])]
    serve(lambda text: _found(way, text), way.seconds)
