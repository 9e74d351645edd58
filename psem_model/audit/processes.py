"""Processes of the audit: they import from where this one does."""

from __future__ import annotations

import sys


def program(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as a program, whatever packages the current directory has."""
    run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [
        *(sys.executable, "-P", "-c"),
        f"import runpy, sys; sys.path[:] = {sys.path!r}; {run}",
        *arguments,
    ]
