"""Processes of audits and certificates: they import from where this one does, and end when they hang.

A process reads requests and writes an answer for each, a line of JSON. One that exceeds its bounds is
killed, the request has no answer, and another process takes its place.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, Any

MEMORY = 4 << 30  # bytes, for a process
CORES = 2


def program(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as a program, whatever packages the current directory has."""
    run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [
        *(sys.executable, "-P", "-c"),
        f"import runpy, sys; sys.path[:] = {sys.path!r}; {run}",
        *arguments,
    ]


def started(command: list[str], **environment: str) -> subprocess.Popen[bytes]:
    """A process that is written to and read from.

    Ctrl-C is for the command that started it, which ends it.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill it, and wait until it is gone."""
    process.kill()
    with suppress(BrokenPipeError):  # of what it was yet to read
        process.communicate()


# ------------------------------------------------------------------------------- in the process
def serve(answer: Callable[[str], Any], seconds: int) -> None:
    """Answer the requests that come in, each in at most so many seconds of processor time."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    for line in sys.stdin:
        until = int(time.process_time()) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
        print(json.dumps(answer(line.rstrip("\n")), separators=(",", ":")), flush=True)


# --------------------------------------------------------------------------- from the outside
@dataclass
class _Worker:
    """A process, and the request it is at."""

    process: subprocess.Popen[bytes]
    request: str = ""
    until: float = 0.0

    @property
    def answers(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def take(self, request: str, patience: float) -> None:
        assert self.process.stdin is not None
        self.request, self.until = request, time.monotonic() + patience
        with suppress(BrokenPipeError):  # it has ended: its answer will be none
            self.process.stdin.write(f"{request}\n".encode())
            self.process.stdin.flush()

    def why_ended(self) -> str:
        """How a process that answers no more has come to its end."""
        with suppress(subprocess.TimeoutExpired):
            code = self.process.wait(timeout=5)
            if code == -signal.SIGXCPU:
                return "killed at its limit of processor time"
            return f"ended by signal {-code}" if code < 0 else f"exit {code}"
        return "says nothing more"


def answers(
    command: list[str], requests: Iterable[str], patience: float, cores: int = CORES
) -> Iterator[tuple[str, Any, str]]:
    """The answers to requests as they come, from a process for each core; or none, and why.

    `patience`: seconds by the clock for a request, as a process that waits forever uses no time.
    """
    pending = iter(requests)
    with ExitStack() as stack:

        def start(request: str) -> _Worker:
            made = _Worker(started(command))
            stack.callback(end, made.process)
            made.take(request, patience)
            return made

        busy = [start(request) for _, request in zip(range(cores), pending, strict=False)]
        while busy:
            wait = max(0.0, min(worker.until for worker in busy) - time.monotonic())
            ready, _, _ = select.select([worker.answers for worker in busy], [], [], wait)
            for worker in list(busy):
                late = time.monotonic() >= worker.until
                if worker.answers not in ready and not late:
                    continue
                line = worker.answers.readline() if worker.answers in ready else b""
                if line:
                    yield worker.request, json.loads(line), ""
                else:
                    clock = f"killed at the limit of {patience:g} s by the clock"
                    yield worker.request, None, clock if late else worker.why_ended()
                following = next(pending, None)
                if not line:
                    end(worker.process)
                if following is None:
                    busy.remove(worker)
                elif line:
                    worker.take(following, patience)
                else:
                    busy[busy.index(worker)] = start(following)
