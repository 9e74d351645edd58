"""How many proofs are checked and how long it still takes: a line for someone at a terminal."""

from __future__ import annotations

import sys
import time

OFTEN = 0.2  # seconds between two lines
CLEAR = "\r\033[K"  # of the terminal's line


class Progress:
    """A line on the standard error that the next one replaces; nothing if that is no terminal."""

    def __init__(self) -> None:
        self._start = self._last = 0.0
        self._seen = sys.stderr.isatty()
        self._shown = False

    def tell(self, done: int, of: int) -> None:
        """So many are checked; the time that is left is told from the first on."""
        now = time.monotonic()
        self._start = self._start or now
        if not self._seen or done < 2 or now - self._last < OFTEN:
            return
        self._last = now
        left = round((now - self._start) / (done - 1) * max(0, of - done))
        self._show(f"checking  {done:,} of {of:,} proofs  {left // 60}:{left % 60:02} left")

    def reading(self) -> None:
        """The file is being read: how long it takes is not known."""
        if self._seen:
            self._show("reading the certificate")

    def _show(self, words: str) -> None:
        self._shown = True
        print(f"{CLEAR}{words}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away: something else is written."""
        if self._shown:
            print(CLEAR, end="", file=sys.stderr, flush=True)
            self._shown = False
