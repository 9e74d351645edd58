"""Reading a certificate: JSON, plain or compressed. Whatever is wrong with it is a rejection."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from psem_check.terms import Rejected

VERSION = 4
LARGEST = 1 << 30  # bytes, decompressed


def read(path: Path) -> dict[str, Any]:
    """The document in a file. Raises OSError, and Rejected for what is no certificate."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        data = _decompressed(data)
    try:
        document = json.loads(
            data, object_pairs_hook=_distinct, parse_float=_no_number, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise Rejected(f"it is not JSON: {type(error).__name__}: {str(error)[:80]}") from error
    expected = {"certificate", "sorts", "symbols", "terms", "claims"}
    if type(document) is not dict or set(document) != expected:
        raise Rejected(f"a certificate has {', '.join(sorted(expected))}, and nothing else")
    if document["certificate"] != VERSION or type(document["certificate"]) is not int:
        raise Rejected(f"this checker reads certificates of version {VERSION}")
    return document


def _decompressed(data: bytes) -> bytes:
    reader = lzma.LZMADecompressor()
    try:
        found = reader.decompress(data, LARGEST)
    except lzma.LZMAError as error:
        raise Rejected(f"it cannot be decompressed: {error}") from error
    if not reader.eof or reader.unused_data:
        raise Rejected("it is cut off, or larger than a certificate can be")
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Rejected("a key stands twice")
    return found


def _no_number(text: str) -> Any:
    raise Rejected(f"{text[:40]} is not a number of certificates")
