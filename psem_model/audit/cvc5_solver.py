"""The second solver: cvc5 decides a file, from the file alone.

As a program it reads paths and writes an answer for each, a line of JSON. A solver is made anew for
each file. `decide` keeps one such process for each core: one that exceeds its time is killed, the
answer is unknown, and another takes its place.
"""

from __future__ import annotations

import hashlib
import json
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from psem_model.audit.processes import end, program, started

RESOURCES = 2_000_000  # cvc5's own deterministic count, for a file
SECONDS = 60  # of processor time, for a file, then the process is killed
PATIENCE = 120.0  # seconds by the clock, likewise: a process that waits forever uses no time
MEMORY = 4 << 30  # bytes, for a process
CORES = 2


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


def serve(resources: int, seconds: int) -> None:
    """Answer the paths that come in."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    for line in sys.stdin:
        until = int(time.process_time()) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
        print(json.dumps(asdict(answer(line.rstrip("\n"), resources))), flush=True)


# --------------------------------------------------------------------------- from the outside
@dataclass
class _Worker:
    """A process, and the file it is at."""

    process: subprocess.Popen[bytes]
    path: str = ""
    until: float = 0.0

    @property
    def answers(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def take(self, path: str, patience: float) -> None:
        assert self.process.stdin is not None
        self.path, self.until = path, time.monotonic() + patience
        with suppress(BrokenPipeError):  # it has ended: its answer will be none
            self.process.stdin.write(f"{path}\n".encode())

    def why_ended(self, seconds: int) -> str:
        """How a process that answers no more has come to its end."""
        with suppress(subprocess.TimeoutExpired):
            code = self.process.wait(timeout=5)
            if code == -signal.SIGXCPU:
                return f"killed at the limit of {seconds} s of processor time"
            return f"ended by signal {-code}" if code < 0 else f"exit {code}"
        return "says nothing more"


def decide(
    paths: Iterable[str],
    resources: int = RESOURCES,
    seconds: int = SECONDS,
    patience: float = PATIENCE,
    cores: int = CORES,
) -> Iterator[tuple[str, Answer]]:
    """The answers to files as they come, from a process for each core."""
    command = program("psem_model.audit.cvc5_solver", str(resources), str(seconds))
    pending = iter(paths)
    with ExitStack() as stack:

        def start(path: str) -> _Worker:
            made = _Worker(started(command, bufsize=0))
            stack.callback(end, made.process)
            made.take(path, patience)
            return made

        busy = [start(path) for _, path in zip(range(cores), pending, strict=False)]
        while busy:
            wait = max(0.0, min(worker.until for worker in busy) - time.monotonic())
            ready, _, _ = select.select([worker.answers for worker in busy], [], [], wait)
            for worker in list(busy):
                late = time.monotonic() >= worker.until
                if worker.answers not in ready and not late:
                    continue
                line = worker.answers.readline() if worker.answers in ready else b""
                if line:
                    yield worker.path, Answer(**json.loads(line))
                else:
                    clock = f"killed at the limit of {patience:g} s by the clock"
                    yield (
                        worker.path,
                        Answer(f"unknown ({clock if late else worker.why_ended(seconds)})"),
                    )
                following = next(pending, None)
                if not line:
                    end(worker.process)
                if following is None:
                    busy.remove(worker)
                elif line:
                    worker.take(following, patience)
                else:
                    busy[busy.index(worker)] = start(following)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
