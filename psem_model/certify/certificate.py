"""Make a certificate of claims: prove them, and find a proof for each obligation."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proofs.registry import Result
from psem_check.check import key_of, obligations
from psem_model.certify.prover import proofs
from psem_model.certify.tree import tree
from psem_model.text.files import write_atomically
from psem_model.text.places import BUILD

Tell = Callable[[int, int], None]
PIECE = 1 << 19  # bytes that are compressed at once


def kept() -> Path:
    """Where proofs are kept, by the hash of what they are of. The checker checks them all the same."""
    return BUILD / "proofs" / f"cvc5-{version('cvc5')}"


# of these none is found in minutes: products of times and numbers of units, under several maxima
NOT_SOUGHT = (
    "B6 second_parts_take_turns",
    "B6 first_parts_follow_the_second_parts_before",
    "B6 nothing_ends_after_the_span",
    "B6 from_its_first_start_no_stage_idles_longer",
    "B7 second_parts_follow_the_first_parts_before",
    "B7 second_parts_take_turns",
    "B7 first_parts_follow_the_second_parts_before",
    "B7 nothing_ends_after_the_span",
    "B7 from_its_first_start_no_stage_idles_longer",
    # cvc5's proofs of these use a rule that the checker does not have: arith_int_geq_tighten
    "B8 no_more_than_the_warm_up_and_one at 0",
    "B8 then_backwards_and_forwards_take_turns at 0",
    "B8 then_backwards_and_forwards_take_turns next",
)


def certificate(results: Sequence[Result], tell: Tell = lambda done, of: None) -> dict[str, Any]:
    """All that was proved, with a proof for each obligation or the reason why there is none."""
    document = tree(results)
    asked = ((f"{claim} {each.name}", text) for claim, each, text in obligations(document))
    questions = dict.fromkeys(text for name, text in asked if name not in NOT_SOUGHT)
    document["proofs"] = _proofs(list(questions), tell)
    return document


def _proofs(questions: Sequence[str], tell: Tell) -> dict[str, Any]:
    folder = kept()
    folder.mkdir(parents=True, exist_ok=True)
    keys = {text: key_of(text) for text in questions}
    found = {text: _read(folder / f"{key}.json") for text, key in keys.items()}
    new = [text for text, proof in found.items() if proof is None]
    for done, (text, proof) in enumerate(proofs(new), 1):
        tell(done, len(new))
        found[text] = proof
        write_atomically(folder / f"{keys[text]}.json", json.dumps(proof, separators=(",", ":")))
    return {keys[text]: proof for text, proof in found.items() if proof is not None}


def _read(path: Path) -> Any:
    """A proof that was kept; None if there is none, or it is damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def compressed(document: Mapping[str, Any], tell: Tell = lambda done, of: None) -> bytes:
    """The file of a certificate; `tell` is told how many bytes are compressed, of how many."""
    data, compressor = (
        json.dumps(document, separators=(",", ":")).encode(),
        lzma.LZMACompressor(preset=3),
    )
    parts = []
    for start in range(0, len(data), PIECE):
        tell(start, len(data))
        parts.append(compressor.compress(data[start : start + PIECE]))
    return b"".join([*parts, compressor.flush()])


def missing(document: Mapping[str, Any]) -> list[str]:
    """Why obligations have no proof, in sentences."""
    given = document["proofs"]
    keys = {
        f"{claim} {obligation.name}": key_of(text) for claim, obligation, text in obligations(document)
    }
    without = {name: given.get(key, {"missing": "none was looked for"}) for name, key in keys.items()}
    return [f"{name}: {p['missing']}" for name, p in without.items() if "missing" in p]
