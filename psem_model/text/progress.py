"""Bars: how far a long command is, for someone at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import click

Item = TypeVar("Item")
PATIENCE = 1.0  # seconds from which on a bar is worth the while


@contextmanager
def ticker(label: str, total: int, patience: float | None = None) -> Iterator[Callable[[int], None]]:
    """To be told how many of `total` are done; a bar if it takes long and someone is at a terminal."""
    start, enough = time.monotonic(), PATIENCE if patience is None else patience
    with ExitStack() as stack:
        bars: list[Any] = []

        def tell(done: int) -> None:
            if not bars and sys.stderr.isatty() and time.monotonic() - start >= enough:
                shown = click.progressbar(length=total, label=label, file=sys.stderr)
                bars.append(stack.enter_context(shown))
            for shown in bars:
                shown.update(done - shown.pos)

        yield tell


def ticked(label: str) -> Callable[[Sequence[Item]], Iterator[Item]]:
    """Items one by one, with such a bar."""

    def each(items: Sequence[Item]) -> Iterator[Item]:
        with ticker(label, len(items)) as tell:
            for done, item in enumerate(items, 1):
                yield item
                tell(done)

    return each
