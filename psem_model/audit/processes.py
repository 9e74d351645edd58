"""Processes of the audit: they import from where this one does."""

from __future__ import annotations

import os
import subprocess
import sys


def program(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as a program, whatever packages the current directory has."""
    run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [
        *(sys.executable, "-P", "-c"),
        f"import runpy, sys; sys.path[:] = {sys.path!r}; {run}",
        *arguments,
    ]


def started(command: list[str], bufsize: int = -1, **environment: str) -> subprocess.Popen[bytes]:
    """A process that is written to and read from.

    Ctrl-C is for the command that started it, which ends it.
    """
    return subprocess.Popen(
        command,
        bufsize,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill it, and wait until it is gone."""
    process.kill()
    process.communicate()
