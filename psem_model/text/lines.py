"""Lines as wide as who reads them can see."""

from __future__ import annotations

import shutil
import sys
import textwrap

PIPE, WIDEST, NARROWEST = 80, 100, 30  # columns


def width() -> int:
    """Columns of the terminal, at most 100; 80 where the output is no terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return PIPE
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """A text in lines of that width, broken at spaces: what the first begins with, and the others.

    Where there is no terminal a word that is longer has a line; on one it is broken.
    """
    rest = " " * len(first) if rest is None else rest
    return textwrap.wrap(
        text,
        width(),
        initial_indent=first,
        subsequent_indent=rest[: width() // 3],
        break_long_words=sys.stdout is not None and sys.stdout.isatty(),
        break_on_hyphens=False,
    )
