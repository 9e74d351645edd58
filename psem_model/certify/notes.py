"""Notes beside a certificate: what was done to it, and by which sources."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from psem_model.audit import sources


@dataclass(frozen=True)
class Note:
    """A note beside a certificate: what was done to these bytes, and by which sources."""

    suffix: str
    packages: tuple[str, ...]

    def of(self, path: Path) -> str:
        """The name of a file, which says of which claims it is; by what it is made; its hash."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        by = f"{sources.at_first(self.packages)} {python_version()} {version('z3-solver')}"
        return f"{path.name} {by} {digest}"

    def beside(self, path: Path) -> Path:
        """Where it is."""
        return path.with_suffix(self.suffix)

    def holds(self, path: Path) -> bool:
        """Whether it is there, and of the file and the sources as they are."""
        try:
            return self.beside(path).read_bytes() == self.of(path).encode()
        except OSError:
            return False


MADE = Note(".made", (*sources.PROVED, "psem_check", "psem_model.certify"))  # that it is complete
CHECKED = Note(".checked", ("psem_check",))
