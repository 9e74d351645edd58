"""The files that a claim's proof is made of: its module, and what that imports, and what these import.

Found without importing anything, by what the files of `spec/` and `proofs/` say.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from psem_model.text import places

FOLDERS = ("spec", "proofs")
ALWAYS = "proofs.registry"  # which proves every claim
CLAIMS = Path("proofs", "claims.toml")  # of which each claim has its own row
MARK = re.compile(r'^@claim\("(\w+)"\)', re.M)
IMPORT = re.compile(
    rf"^\s*(?:from|import)\s+((?:{'|'.join(FOLDERS)})\b[\w.]*)(?:\s+import\s+(\([^)]*\)|.*))?", re.M
)


def files(folders: Iterable[str] = FOLDERS) -> dict[Path, bytes]:
    """Every source file of some folders, from the folder of packages; with what is in it."""
    found = (path for folder in folders for path in sorted((places.PACKAGES / folder).rglob("*")))
    sources = [path for path in found if path.suffix in (".py", ".toml")]
    return {path.relative_to(places.PACKAGES): path.read_bytes() for path in sources}


def hashes(of: Mapping[Path, bytes]) -> dict[Path, str]:
    """The hash of what is in each file."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in of.items()}


def joined(of: Iterable[tuple[Path, str]]) -> str:
    """The hash of files, by the names and hashes of each."""
    return hashlib.sha256(
        "".join(f"{path.as_posix()} {each}\n" for path, each in of).encode()
    ).hexdigest()


class Sources:
    """All files, as they are now, and which of them claims are made of."""

    def __init__(self) -> None:
        found = files()
        modules = {_module(path): path for path in found if path.suffix == ".py"}
        text = {name: found[path].decode() for name, path in modules.items()}
        self._hashes = hashes(found)
        self._modules = modules
        self._imports = {name: modules.keys() & {*_imported(name, said)} for name, said in text.items()}
        self._proved_in: dict[str, list[str]] = {}
        for name, said in text.items():
            for id in MARK.findall(said):
                self._proved_in.setdefault(id, []).append(name)
        self._data = found.keys() - {*modules.values(), CLAIMS}

    def of(self, id: str) -> list[Path]:
        """The files that a claim is made of; none if no function is marked with it, or several are."""
        found = {*self._proved_in.get(id, [])}
        if len(found) != 1:
            return []
        left = [*found, ALWAYS]
        while left:
            new = self._imports[left.pop()] - found
            found |= new
            left += new
        return sorted({*self._data, *(self._modules[name] for name in found)})

    def digest(self, id: str) -> str:
        """The hash of the files of a claim."""
        return joined((path, self._hashes[path]) for path in self.of(id))

    def whole(self) -> str:
        """The hash of all files."""
        return joined(self._hashes.items())


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported(module: str, text: str) -> Iterator[str]:
    """A module, and what it may import, each with the packages that it is in."""
    named = [(module, ""), *IMPORT.findall(text)]
    for name, members in named:
        parts = name.split(".")
        yield from (".".join(parts[: i + 1]) for i in range(len(parts)))
        yield from (f"{name}.{member}" for member in re.findall(r"\w+", members))
