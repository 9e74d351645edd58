"""How many proofs are checked and how long it still takes: a line for someone at a terminal."""

from __future__ import annotations

import sys
import time

OFTEN = 0.2  # seconds between two lines
CLEAR = "\r\033[K"  # of the terminal's line


class Progress:
    """A line on the standard error that the next one replaces; nothing if that is no terminal."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()
        self._seen = sys.stderr.isatty()
        self._shown = False

    def tell(self, done: int, of: int) -> None:
        """So many are checked."""
        now = time.monotonic()
        if not self._seen or not done or now - self._last < OFTEN:
            return
        self._last, self._shown = now, True
        left = round((now - self._start) / done * max(0, of - done))
        words = f"checking  {done:,} of {of:,} proofs  {left // 60}:{left % 60:02} left"
        print(f"{CLEAR}{words}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away: something else is written."""
        if self._shown:
            print(CLEAR, end="", file=sys.stderr, flush=True)
            self._shown = False
