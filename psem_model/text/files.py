"""Files that a user names: read up to a size, written whole or not at all, errors in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psem_model.text.errors import BadInput, nearest, refused, shortened

LARGEST_FILE = 2**20  # bytes of a file that is read
LONGEST_NAME = 200  # characters of a name that a message shows


def named(path: str | Path) -> str:
    """A file's name as messages show it: in one line, and not all of a long one."""
    name = str(path)
    name = name if name.isprintable() else repr(name)
    return shortened(name, LONGEST_NAME)


def beside(module: str, name: str) -> dict[str, Any]:
    """The TOML file of this name that is packaged beside a module. `module`: its `__file__`."""
    import tomllib  # not at start-up: most commands read no such file

    return tomllib.loads(Path(module).with_name(name).read_text(encoding="utf-8"))


def json_in(path: Path) -> Any:
    """The JSON document in a file of ours; none if there is none, or it is damaged."""
    try:
        return json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None


def read_text(path: str, expected: str) -> str:
    """The UTF-8 text of a file, its lines ended by newlines alone.

    `expected`: what it should be, in the errors. Raises BadInput with one line.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"{named(path)}: cannot read it: {why}; expected {expected}") from None
    if len(data) > LARGEST_FILE:
        raise BadInput(f"{named(path)}: given more than {LARGEST_FILE:,} bytes; expected {expected}")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{named(path)}, line {line}: given bytes that are not UTF-8 text; expected {expected}"
        ) from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What is done to write a file or a folder. Raises BadInput, with its name, for OSError."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {named(path)}: {error.strerror or error}") from None


def require_writable(folder: Path, *files: str) -> None:
    """Raise BadInput now, rather than after the work, if files in a folder cannot be written."""
    import tempfile  # not at start-up: it imports ways to compress

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    for name in files:
        require_no_folder(folder / name)


def require_no_folder(path: Path) -> None:
    """Raise BadInput for a folder where a file is to be."""
    if path.is_dir() and not path.is_symlink():
        raise BadInput(f"cannot write {named(path)}: Is a directory")


def file_to_write(option: str, given: str, suffixes: Sequence[str], usual: str) -> Path:
    """A file that a user names, of some kinds. Raises BadInput if it cannot be written there.

    `usual`: what it is called in the error, if what was given has no name.
    """
    path = Path(given)
    if path.suffix.lower() not in suffixes or "\0" in given:
        stem = shortened(path.stem) if path.stem.isprintable() else ""
        near = f"{stem or usual}{nearest(path.suffix, suffixes) or suffixes[0]}"
        raise refused(option, given, f"a file that ends in {', '.join(suffixes)}; nearest: {near}")
    if not path.parent.is_dir():
        raise BadInput(f"cannot write {named(path)}: there is no folder {named(path.parent)}")
    require_no_folder(path)
    return path


def write_atomically(path: Path, content: str | bytes) -> None:
    """The whole file or nothing; an interrupt may come at any moment. Raises BadInput."""
    begun = path.with_name(f"{path.name}.{os.getpid()}.part")
    with writing(path):
        try:
            begun.write_bytes(content.encode() if isinstance(content, str) else content)
            os.replace(begun, path)
        except BaseException:
            begun.unlink(missing_ok=True)  # it may be in its place already
            raise
