"""Proofs of many questions, each searched in a process of its own that is stopped when it takes long.

As a program it reads questions, a line each, and writes for each a line: its number and its proof.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psem_model.audit.processes import end, program, started

PATIENCE = 120  # seconds by the clock, likewise
MEMORY = 4 << 30  # bytes
CORES = 2


@dataclass(frozen=True)
class Way:
    """A way to a proof, and after how many seconds of processor time it is stopped."""

    name: str
    find: Callable[[str], dict[str, Any]]
    seconds: int


def ways() -> list[Way]:
    """The ways to a proof, in order."""
    from psem_model.certify.cvc5_proofs import prove
    from psem_model.certify.product_search import search

    return [
        Way("cvc5", prove, 6),
        Way("products", search, 60),
        Way("cvc5, nonlinear", lambda text: prove(text, nonlinear=True), 20),
    ]


def proofs(questions: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Questions and their proofs as they come; where none is found, what is `missing`."""
    process = started(program("psem_model.certify.prover"))
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(f"{text}\n" for text in questions).encode())
        process.stdin.close()
        process.stdin = None
        for line in process.stdout:
            number, proof = json.loads(line)
            yield questions[number], proof
    finally:
        end(process)


# ------------------------------------------------------------------------------- in the process
class Attempt:
    """A process that looks for one proof in one way."""

    def __init__(self, number: int, text: str, way: int, failed: str = "") -> None:
        self.number, self.text, self.way, self.failed = number, text, way, failed

    def start(self) -> int:
        """The descriptor on which its answer comes."""
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            _answer(self.text, ways()[self.way], write)
        os.close(write)
        self.answer = b""
        return read

    def ended(self) -> dict[str, Any]:
        """Its answer, when there is no more to read."""
        os.waitpid(self.pid, 0)
        way = ways()[self.way]
        found = (
            json.loads(self.answer) if self.answer else {"missing": f"stopped after {way.seconds} s"}
        )
        if "missing" in found:
            why = [self.failed, f"{way.name}: {found['missing']}"]
            found["missing"] = "; ".join(filter(None, why))
        return dict(found)


def _answer(text: str, way: Way, write: int) -> None:
    """In a process of its own: look for a proof, and end."""
    try:
        signal.alarm(PATIENCE)
        resource.setrlimit(resource.RLIMIT_CPU, (way.seconds, way.seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            found = way.find(text)
        except Exception as error:  # whatever it is, there is no proof
            found = {"missing": f"{type(error).__name__}: {error}"}
        with os.fdopen(write, "w") as answers:
            json.dump(found, answers, separators=(",", ":"))
    finally:
        os._exit(0)


def serve(questions: Sequence[str]) -> None:
    """Write the proof of each question, as they come."""
    known = len(ways())  # imported once, for all that are forked
    waiting = deque(Attempt(number, text, 0) for number, text in enumerate(questions))
    running: dict[int, Attempt] = {}
    while waiting or running:
        while waiting and len(running) < CORES:
            attempt = waiting.popleft()
            running[attempt.start()] = attempt
        for ready in select.select(list(running), [], [])[0]:
            more = os.read(ready, 1 << 20)
            running[ready].answer += more
            if more:
                continue
            os.close(ready)
            attempt = running.pop(ready)
            found = attempt.ended()
            if "missing" in found and attempt.way + 1 < known:
                again = Attempt(attempt.number, attempt.text, attempt.way + 1, found["missing"])
                waiting.appendleft(again)
            else:
                print(json.dumps([attempt.number, found], separators=(",", ":")), flush=True)


if __name__ == "__main__":
    serve(sys.stdin.read().splitlines())
