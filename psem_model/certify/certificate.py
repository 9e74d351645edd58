"""Make a certificate of claims: prove them, and find a proof for each obligation."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proofs.registry import Result
from psem_check.check import key_of, obligations
from psem_check.reader import VERSION
from psem_model.audit import remembered
from psem_model.certify.prover import proofs
from psem_model.certify.tree import tree
from psem_model.text.files import json_in, write_atomically
from psem_model.text.places import BUILD

Tell = Callable[[int, int], None]
SOURCES = (*remembered.SOURCES, "psem_check", "psem_model/certify")
PIECE = 1 << 19  # bytes that are compressed at once


def kept() -> Path:
    """Where proofs are kept, by the hash of what they are of. The checker checks them all the same."""
    return BUILD / "proofs" / f"{VERSION}-cvc5-{version('cvc5')}"


@dataclass(frozen=True)
class Note:
    """A note beside a certificate: what was done to these bytes, and by which sources."""

    suffix: str
    folders: tuple[str, ...]

    def of(self, path: Path) -> str:
        """The name of a file, which says of which claims it is, and the hashes of sources and file."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return f"{path.name} {remembered.key(self.folders)} {digest}"

    def beside(self, path: Path) -> Path:
        """Where it is."""
        return path.with_suffix(self.suffix)

    def holds(self, path: Path) -> bool:
        """Whether it is there, and of the file and the sources as they are."""
        try:
            return self.beside(path).read_bytes() == self.of(path).encode()
        except OSError:
            return False


MADE = Note(".made", SOURCES)  # that it is complete
CHECKED = Note(".checked", ("psem_check",))


def certificate(results: Sequence[Result], tell: Tell = lambda done, of: None) -> dict[str, Any]:
    """All that was proved, with a proof for each obligation or the reason why there is none."""
    document = tree(results)
    questions = dict.fromkeys(text for _, _, text in obligations(document))
    document["proofs"] = _proofs(list(questions), tell)
    return document


def _proofs(questions: Sequence[str], tell: Tell) -> dict[str, Any]:
    folder = kept()
    folder.mkdir(parents=True, exist_ok=True)
    keys = {text: key_of(text) for text in questions}
    found = {text: json_in(folder / f"{key}.json") for text, key in keys.items()}
    new = [text for text, proof in found.items() if proof is None]
    for done, (text, proof) in enumerate(proofs(new), 1):
        tell(done, len(new))
        found[text] = proof
        if "missing" not in proof:
            write_atomically(folder / f"{keys[text]}.json", json.dumps(proof, separators=(",", ":")))
    return {keys[text]: proof for text, proof in found.items() if proof is not None}


def compressed(document: Mapping[str, Any], tell: Tell = lambda done, of: None) -> bytes:
    """The file of a certificate; `tell` is told how many bytes are compressed, of how many."""
    data = json.dumps(document, separators=(",", ":")).encode()
    compressor = lzma.LZMACompressor(preset=3)
    parts = []
    for start in range(0, len(data), PIECE):
        tell(start, len(data))
        parts.append(compressor.compress(data[start : start + PIECE]))
    return b"".join([*parts, compressor.flush()])


def missing(document: Mapping[str, Any]) -> list[str]:
    """Why obligations have no proof, in sentences."""
    given = document["proofs"]
    if not any("missing" in proof for proof in given.values()):
        return []  # each that is asked was looked for
    keys = {
        f"{claim} {obligation.name}": key_of(text) for claim, obligation, text in obligations(document)
    }
    without = {name: given.get(key, {"missing": "none was looked for"}) for name, key in keys.items()}
    return [f"{name}: {p['missing']}" for name, p in without.items() if "missing" in p]
