"""The second solver: cvc5 decides a file, from the file alone, by a solver made anew for it.

As a program it reads paths and writes an answer for each.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from psem_model.audit.processes import CORES, answers, program, serve

RESOURCES = 2_000_000  # cvc5's own deterministic count, for a file
SECONDS = 60  # of processor time, for a file, then the process is killed
PATIENCE = 120.0  # seconds by the clock, likewise


def options(resources: int = RESOURCES) -> dict[str, str]:
    """All that is said to cvc5 besides the file."""
    return {
        "decision": "justification",  # branch on what the goal needs
        "rlimit-per": str(resources),
        "stats-internal": "true",
    }


@dataclass(frozen=True)
class Answer:
    """What came of a file: sat, unsat, unknown (with the reason) or an error."""

    answer: str
    seconds: float = 0.0
    resources: int = 0
    digest: str = ""  # of the text that was read

    @property
    def is_known(self) -> bool:
        return self.answer in ("sat", "unsat")


def digest_of(text: bytes) -> str:
    """What tells one text from another."""
    return hashlib.sha256(text).hexdigest()


# ------------------------------------------------------------------------------- in the process
def answer(path: str, resources: int = RESOURCES) -> Answer:
    """Decide one file by a solver of its own."""
    import cvc5

    start = time.process_time()
    solver = cvc5.Solver(cvc5.TermManager())
    for name, value in options(resources).items():
        solver.setOption(name, value)
    said, digest = [], ""
    try:
        read = Path(path).read_bytes()
        digest = digest_of(read)
        parser = cvc5.InputParser(solver)
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, read.decode(), path)
        symbols = parser.getSymbolManager()
        while not (command := parser.nextCommand()).isNull():
            said.append(command.invoke(solver, symbols).strip())
        text = " ".join(filter(None, said))
    except Exception as error:  # whatever it is, this file has no answer
        text = f"error: {' '.join(str(error).split()) or type(error).__name__}"
    used = solver.getStatistics().get(True, True).get("resource::resourceUnitsUsed", {})
    return Answer(text, time.process_time() - start, int(used.get("value", 0)), digest)


# --------------------------------------------------------------------------- from the outside
def decide(
    paths: Iterable[str],
    resources: int = RESOURCES,
    seconds: int = SECONDS,
    patience: float = PATIENCE,
    cores: int = CORES,
) -> Iterator[tuple[str, Answer]]:
    """The answers to files as they come."""
    command = program("psem_model.audit.cvc5_solver", str(resources), str(seconds))
    for path, found, why in answers(command, paths, patience, cores):
        yield path, Answer(f"unknown ({why})") if found is None else Answer(**found)


if __name__ == "__main__":
    bound, until = map(int, sys.argv[1:])
    serve(lambda path: asdict(answer(path, bound)), until)
