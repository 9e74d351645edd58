"""Where in a TOML text a key is. TOML readers say so for syntax errors only, not for values."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from typing import Any

Path = tuple[str | int, ...]  # keys and indices, from the top
CLOSERS = ("", "\n]", "\n]}", "\n}")  # what may end a text that stops between lines


def locate(text: str, path: Path) -> int:
    """The line, from 1 on, on which what `path` names begins; 1 if the text has no such thing.

    The first lines of a text are a text as well, if an open array is closed: the line is the first
    with which the path is there. Lines up to which it is none are taken with the lines after them.
    """
    lines = text.split("\n")

    def there(count: int) -> bool:
        for more in range(count, len(lines) + 1):
            content = _parsed("\n".join(lines[:more]))
            if content is not None:
                return _has(content, path)
        return False

    found = bisect_left(range(len(lines) + 1), True, key=there)
    return found if 1 <= found <= len(lines) else 1


def _parsed(text: str) -> dict[str, Any] | None:
    """The content of the beginning of a text; None if it stops amid a value."""
    for closer in CLOSERS:
        try:
            return tomllib.loads(text + closer)
        except (ValueError, RecursionError):
            continue
    return None


def _has(content: Any, path: Path) -> bool:
    for key in path:
        in_list = isinstance(content, list) and isinstance(key, int) and key < len(content)
        if in_list or (isinstance(content, dict) and key in content):
            content = content[key]
        else:
            return False
    return True
