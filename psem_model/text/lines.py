"""Lines as wide as who reads them can see."""

from __future__ import annotations

import shutil
import sys
import textwrap

PIPE, WIDEST = 80, 100  # columns


def width() -> int:
    """Columns of the terminal, at most 100; 80 where the output is no terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return PIPE
    return min(max(shutil.get_terminal_size().columns, PIPE // 2), WIDEST)


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """A text in lines of that width, broken at spaces: what the first begins with, and the others."""
    return textwrap.wrap(
        text,
        width(),
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
