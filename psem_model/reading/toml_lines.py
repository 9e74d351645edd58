"""Reading a TOML file key by key: an error is one line, with the file and the line of the key.

TOML readers say where syntax errors are, and not where values are.
"""

from __future__ import annotations

import re
import sys
import tomllib
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from psem_model.text.errors import (
    TOO_DEEP,
    TOO_MANY_DIGITS,
    BadInput,
    listed,
    nearest,
    quoted,
    shortened,
)
from psem_model.text.files import named

Path = tuple[str | int, ...]  # keys and indices, from the top
CLOSERS = ("", "\n]", "\n]}", "\n}")  # what may end a text that stops between lines
KINDS = {bool: "true or false", int: "a whole number", str: "a name in quotes"}
KINDS |= {list: "an array [...]", dict: "a table { ... }"}

Name = TypeVar("Name", bound=Enum)
Kept = TypeVar("Kept", bool, int, str, list[Any], dict[str, Any])


def shown(value: Any) -> str:
    """A value as an error repeats it, true and false as TOML writes them."""
    return str(value).lower() if isinstance(value, bool) else quoted(value)


@dataclass(frozen=True)
class File:
    """A file's name and text, and the content of one of its tables: that at `prefix`, or of all."""

    name: str
    text: str
    content: dict[str, Any]
    prefix: Path = ()

    def wrong(self, path: Path, given: str, expected: str, near: str = "") -> BadInput:
        """An error at a key: what is given there and what is expected."""
        line = locate(self.text, self.prefix + path)
        at = next((i for i, part in enumerate(path) if type(part) is int), 0)
        if at:  # of a list
            lists = " ".join(str(part) for part in path[:at] if part != "step")
            key = ", ".join([f"{lists} {int(path[at]) + 1}", *map(str, path[at + 1 :])])
        else:
            key = shortened(".".join(map(str, path)))
        nearest_ = f"; nearest: {near}" if near else ""
        return BadInput(
            f"{named(self.name)}, line {line}, {key}: given {given}; expected {expected}{nearest_}"
        )

    def missing(self, path: Path, key: str, expected: str) -> BadInput:
        """An error at a table in which a key is missing."""
        return self.wrong(path or (key,), f"no {key}" if path else "nothing", expected)

    def choose(self, path: Path, given: Any, choices: Iterable[str]) -> str:
        """One of some names."""
        names = list(choices)
        if self.typed(path, given, str) not in names:
            raise self.wrong(path, shown(given), f"one of {listed(names)}", nearest(given, names))
        return str(given)

    def typed(self, path: Path, value: Any, kind: type[Kept]) -> Kept:
        """A value of one type."""
        if type(value) is not kind:
            raise self.wrong(path, shown(value), KINDS[kind])
        return value

    def table(self, path: Path, value: Any, known: Iterable[str] | None) -> dict[str, Any]:
        """A table without unknown keys; of any keys, if none are known."""
        names = None if known is None else list(known)
        return self.known(path, value, names, f"one of the keys {', '.join(names or ())}")

    def known(
        self, path: Path, value: Any, names: Iterable[str] | None, expected: str
    ) -> dict[str, Any]:
        """The same; `expected`: in words, the keys that are known."""
        table = self.typed(path, value, dict)
        known = [*table] if names is None else list(names)
        for key in table:
            if key not in known:
                raise self.wrong((*path, key), f"the key {shown(key)}", expected, nearest(key, known))
        return table

    def named(self, path: Path, value: Any, kind: type[Name]) -> Name:
        """A name of one of the specification's things."""
        return kind(self.choose(path, value, [each.value for each in kind]))

    def once(self, path: Path, names: list[str], what: str = "axis") -> tuple[str, ...]:
        """Names without repetition."""
        for name in names:
            if names.count(name) > 1:
                raise self.wrong(path, f"{shown(name)} twice", f"each {what} once")
        return tuple(names)


def content_of(text: str, name: str, expected: str) -> dict[str, Any]:
    """What a text says; `name` is what errors call it. Raises BadInput with one line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(_syntax(name, text, str(error))) from None
    except RecursionError:
        raise BadInput(f"{named(name)}: given {TOO_DEEP}; expected {expected}") from None
    except ValueError:  # of a number
        most = sys.get_int_max_str_digits()
        long = re.search(rf"[0-9_]{{{most + 1},}}", text)
        line = text.count("\n", 0, long.start()) + 1 if long else 1
        where = f"{named(name)}, line {line}, TOML"
        raise BadInput(f"{where}: given {TOO_MANY_DIGITS}; expected {expected}") from None


def _syntax(name: str, text: str, message: str) -> str:
    """What TOML cannot take, in one line; tomllib says where."""
    at = re.search(r"\(at line (\d+), column \d+\)$", message)
    lines = text.rstrip().split("\n")
    line = int(at[1]) if at else len(lines)
    given = lines[line - 1].strip() if line <= len(lines) else ""
    what = re.sub(r" \(at [^)]*\)$", "", message)
    return f"{named(name)}, line {line}, TOML: given {shown(given)}; expected valid TOML: {what}"


def locate(text: str, path: Path) -> int:
    """The line, from 1 on, on which what `path` names begins, or else what should have it.

    The first lines of a text are a text as well, if an open array is closed: the line is the first
    with which the path is there. Lines up to which it is none are taken with the lines after them.
    """
    lines = text.split("\n")

    content = _parsed(text)
    while not _has(content, path):
        path = path[:-1]

    def there(count: int) -> bool:
        for more in range(count, len(lines) + 1):
            content = _parsed("\n".join(lines[:more]))
            if content is not None:
                return _has(content, path)
        return False

    return max(1, bisect_left(range(len(lines)), True, key=there))


@lru_cache(maxsize=256)
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
