"""What a result depends on: every file of some packages."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PROVED = ("spec", "proofs")
UNREAD = "__pycache__"


def hash_of(packages: Iterable[str] = PROVED) -> str:
    """The hash of all files of some packages, where Python finds them: of their names and contents."""
    found = hashlib.sha256()
    for package in packages:
        for name, data in _files(package):
            found.update(f"{package} {name} {len(data)} ".encode(errors="surrogateescape") + data)
    return found.hexdigest()


@cache
def at_first(packages: tuple[str, ...] = PROVED) -> str:
    """The same, when it was first asked for: a command asks before it imports what it proves."""
    return hash_of(packages)


def are_unchanged(packages: tuple[str, ...] = PROVED) -> bool:
    """Whether no file has changed since then."""
    return hash_of(packages) == at_first(packages)


def _files(package: str) -> Iterator[tuple[str, bytes]]:
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        for where, folders, names in os.walk(folder, followlinks=True):
            folders[:] = sorted(each for each in folders if each != UNREAD)
            for path in filter(Path.is_file, (Path(where, name) for name in sorted(names))):
                yield path.relative_to(folder).as_posix(), path.read_bytes()
