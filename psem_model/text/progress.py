"""Bars: how far a long command is and how long it still takes, for someone at a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Timer
from typing import Any

import click

BESIDE, WIDEST = 24, 36  # characters of a line beside its label and bar, and of a bar
PATIENCE = 1.0  # seconds from which on a bar is worth the while
CLEAR = "\r\033[K"  # of the terminal's line: the bar
GONE = "\033[A\033[K"  # of the line before


def is_watched() -> bool:
    """Whether someone is at a terminal that can move its cursor."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def ticker(label: str, total: int, patience: float | None = None) -> Iterator[Callable[[int], None]]:
    """To be told how many of `total` are done; a bar if it takes long and someone is at a terminal.

    `patience`: seconds until there is one. When all is done, or ends in an error, it is gone.
    """
    start, enough = time.monotonic(), PATIENCE if patience is None else patience
    told, bars, over, one_at_a_time = [0], list[Any](), Event(), Lock()

    def show() -> None:
        with one_at_a_time:
            if not (bars or over.is_set()) and time.monotonic() - start >= enough:
                room = shutil.get_terminal_size().columns - len(label) - BESIDE
                width = max(1, min(WIDEST, room))
                shown = click.progressbar(length=total, label=label, file=sys.stderr, width=width)
                bars.append(shown.__enter__())
            for shown in bars if not over.is_set() else ():
                shown.update(told[0] - shown.pos)

    def tell(done: int) -> None:
        told[0] = done
        if is_watched():
            show()

    begin = Timer(enough, show)  # of what takes long until it first tells
    begin.daemon = True
    if enough and is_watched():
        begin.start()
    try:
        yield tell
    finally:
        begin.cancel()
        over.set()
        with one_at_a_time:
            for shown in bars:
                shown.render_finish()
                click.echo(GONE, nl=False, err=True)
