"""Outcomes of claims, kept from one run to the next: the same sources and solver give them again.

Only `psem prove` reads them; the audit proves everything. Of an entry that is damaged, or
of other sources, nothing is believed.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any

import click

from proofs.registry import Claim, Outcome
from proofs.trusted.oracle import RESOURCE_LIMIT, SEED, VERSION
from psem_model.text import places
from psem_model.text.errors import UserError
from psem_model.text.files import json_in, require_writable, write_atomically

NAME = "remembered.json"
SOURCES = ("spec", "proofs")
FIELDS = {f.name for f in fields(Outcome)} - {"claim"}


@cache
def key(folders: tuple[str, ...] = SOURCES) -> str:
    """What outcomes depend on: every file of these folders, the solver and its options, Python."""
    found = hashlib.sha256(repr((VERSION, RESOURCE_LIMIT, SEED, platform.python_version())).encode())
    for folder in folders:
        for path in sorted((places.PACKAGES / folder).rglob("*")):
            if path.suffix in (".py", ".toml"):
                data = path.read_bytes()
                found.update(f"{path.relative_to(places.PACKAGES)} {len(data)} ".encode() + data)
    return found.hexdigest()


def recalled(selected: Iterable[Claim]) -> dict[str, Outcome]:
    """By claim, the outcomes that are known of these sources."""
    known = _read(places.BUILD / NAME, tell=True)
    whole = [claim for claim in selected if {*known.get(claim.id, ())} >= FIELDS]
    return {claim.id: _outcome(claim, known[claim.id]) for claim in whole}


def remember(outcomes: Iterable[Outcome]) -> None:
    """Keep the outcomes that are as expected, beside those that are known of these sources."""
    kept = {o.claim.id: _entry(o) for o in outcomes if o.as_expected}
    path = places.BUILD / NAME
    claims = {**_read(path), **kept}
    document = {"key": key(), "claims": claims, "digest": _digest(claims)}
    with suppress(UserError):  # where nothing can be written nothing is remembered
        require_writable(places.BUILD, NAME)
        write_atomically(path, json.dumps(document, indent=1) + "\n")


def _read(path: Path, tell: bool = False) -> dict[str, Any]:
    """The entries of a file, if it is whole and of these sources. `tell`: if it is damaged, say so."""
    document = json_in(path)
    try:
        claims = document["claims"]
        stale, whole = document["key"] != key(), document["digest"] == _digest(claims)
    except (KeyError, TypeError):
        stale, whole = False, False
    if tell and not whole and not stale and path.exists():
        click.echo(f"psem: {path.name} is damaged: nothing in it is believed", err=True)
    return dict(claims) if whole and not stale else {}


def _digest(claims: Any) -> str:
    return hashlib.sha256(json.dumps([key(), claims], sort_keys=True).encode()).hexdigest()


def _entry(outcome: Outcome) -> dict[str, Any]:
    return {name: value for name, value in asdict(outcome).items() if name != "claim"}


def _outcome(claim: Claim, entry: dict[str, Any]) -> Outcome:
    return Outcome(claim, **{name: entry[name] for name in FIELDS})
