"""Where in a TOML text a key is. TOML readers say so for syntax errors only, not for values."""

from __future__ import annotations

import re
import sys
import tomllib
from bisect import bisect_left
from typing import Any

from psem_model.text.errors import TOO_DEEP, TOO_MANY_DIGITS, BadInput
from psem_model.text.files import named

Path = tuple[str | int, ...]  # keys and indices, from the top
CLOSERS = ("", "\n]", "\n]}", "\n}")  # what may end a text that stops between lines


def content_of(text: str, name: str, expected: str) -> dict[str, Any]:
    """What a text says; `name` is what errors call it.

    Raises TOMLDecodeError for what is not TOML, and BadInput for what is too long or too deep to read.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise BadInput(f"{named(name)}: given {TOO_DEEP}; expected {expected}") from None
    except ValueError:  # of a number
        most = sys.get_int_max_str_digits()
        long = re.search(rf"[0-9_]{{{most + 1},}}", text)
        line = text.count("\n", 0, long.start()) + 1 if long else 1
        where = f"{named(name)}, line {line}, TOML"
        raise BadInput(f"{where}: given {TOO_MANY_DIGITS}; expected {expected}") from None


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
