"""Outcomes of claims, and answers to questions, kept from one run to the next.

The same sources, solver and Python give the same outcome; the same text, solver and options the same
answer. Only `psem prove` reads them; the audit proves everything. Of what is damaged, or of other
sources, nothing is believed.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cache
from typing import Any

import click

from proofs.registry import Claim, Outcome
from proofs.trusted.oracle import RESOURCE_LIMIT, SEED, VERSION, Answered
from psem_model.audit.sources import FOLDERS, Sources, files, hashes, joined
from psem_model.text import places
from psem_model.text.errors import UserError
from psem_model.text.files import json_in, require_writable, write_atomically

NAME = "remembered.json"
FIELDS = {f.name for f in fields(Outcome)} - {"claim"}


def key(*of: str) -> str:
    """The hash of what is given, of the solver and its options, and of Python."""
    return _hash((VERSION, RESOURCE_LIMIT, SEED, platform.python_version(), *of))


@cache
def key_of_folders(folders: tuple[str, ...] = FOLDERS) -> str:
    """What depends on every file of some folders has this key."""
    return key(joined(hashes(files(folders)).items()))


class Memory:
    """What the file remembers, and the sources as they are now. `tell`: if it is damaged, say so."""

    def __init__(self, tell: bool = False) -> None:
        self.sources = Sources()
        path = places.BUILD / NAME
        document = json_in(path)
        try:
            self._fit, claims = str(document["fit"]), document["claims"]
            whole = document["digest"] == _digest(self._fit, claims)
        except (KeyError, TypeError):
            whole = False
        if not whole:
            self._fit, claims = "", {}
            if tell and path.exists():
                click.echo(f"psem: {path.name} is damaged: nothing in it is believed", err=True)
        self._entries = {id: entry for id, entry in claims.items() if {*entry} == {"key", *FIELDS}}

    def outcomes(self, selected: Iterable[Claim]) -> dict[str, Outcome]:
        """By claim, the outcomes that are known of the sources as they are."""
        entries = self._entries
        same = [c for c in selected if c.id in entries and entries[c.id]["key"] == self._key(c)]
        return {c.id: Outcome(c, **{name: entries[c.id][name] for name in FIELDS}) for c in same}

    def answers(self) -> Answered:
        """The solver's answers, whatever the sources."""
        return {
            asked: said for entry in self._entries.values() for asked, said in entry["answers"].items()
        }

    @property
    def is_fit(self) -> bool:
        """Whether of these sources claims and functions were seen to fit."""
        return self._fit == self.sources.whole()

    def keep(self, outcomes: Iterable[Outcome], fit: bool) -> None:
        """Keep the outcomes that are as expected, beside those that are known; and that sources fit."""
        claims = self._entries | {o.claim.id: self._entry(o) for o in outcomes if o.as_expected}
        whole = self.sources.whole() if fit else self._fit
        document = {"fit": whole, "claims": claims, "digest": _digest(whole, claims)}
        with suppress(UserError):  # where nothing can be written nothing is remembered
            require_writable(places.BUILD, NAME)
            write_atomically(places.BUILD / NAME, json.dumps(document, indent=1) + "\n")

    def _key(self, claim: Claim) -> str:
        """What an outcome depends on: the claim's row, and the files that its proof is made of."""
        return key(repr(claim), self.sources.digest(claim.id))

    def _entry(self, outcome: Outcome) -> dict[str, Any]:
        found = {name: value for name, value in asdict(outcome).items() if name != "claim"}
        return {"key": self._key(outcome.claim), **found}


def _digest(*of: Any) -> str:
    return _hash(json.dumps(of, sort_keys=True))


def _hash(of: object) -> str:
    return hashlib.sha256(str(of).encode()).hexdigest()
