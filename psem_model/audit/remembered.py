"""Outcomes of claims, and answers to questions, kept from one run to the next.

The same sources, solver and Python give the same outcome; the same text, put by the same code to the
same solver with the same options, has the same answer. Only `psem prove` reads them; the audit proves
everything. Of what is damaged, or of other sources, nothing is believed.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any

import click

from proofs.registry import Claim, Outcome
from proofs.trusted.oracle import RESOURCE_LIMIT, SEED, VERSION, Answered
from psem_model.audit import sources
from psem_model.text import places
from psem_model.text.errors import UserError
from psem_model.text.files import json_in, require_writable, write_atomically

NAME = "remembered.json"
FIELDS = {f.name for f in fields(Outcome)} - {"claim"}
ASKS = ("proofs.trusted",)  # the code that puts questions, and reads answers
KEYS = ("key", "asked_by")


class Memory:
    """What earlier runs found. `tell`: if the file is damaged, say so."""

    def __init__(self, tell: bool = False) -> None:
        sources.at_first()
        path = places.BUILD / NAME
        document = json_in(path)
        try:
            whole = document["digest"] == _digest(document["claims"], document["fit"])
        except (KeyError, TypeError):
            whole = False
        if tell and not whole and path.exists():
            click.echo(f"psem: {path.name} is damaged: nothing in it is believed", err=True)
        claims = document["claims"] if whole else {}
        self._fit: str = document["fit"] if whole else ""
        self._entries = {id: entry for id, entry in claims.items() if {*entry} == {*KEYS, *FIELDS}}

    def outcomes(self, selected: Iterable[Claim]) -> dict[str, Outcome]:
        """By claim, the outcomes that are known of the sources as they are."""
        known = {id: entry for id, entry in self._entries.items() if entry["key"] == _key()}
        found = (claim for claim in selected if claim.id in known)
        return {c.id: Outcome(c, **{name: known[c.id][name] for name in FIELDS}) for c in found}

    def answers(self) -> Answered:
        """The answers that the code as it is would be given, whatever the claims say now."""
        asked = _asked_by()
        same = (entry["answers"] for entry in self._entries.values() if entry["asked_by"] == asked)
        return {text: answer for answers in same for text, answer in answers.items()}

    @property
    def is_fit(self) -> bool:
        """Whether, of the sources as they are, claims and functions were seen to fit."""
        return self._fit == _key()

    def change(self, outcomes: Iterable[Outcome], fit: bool = False) -> None:
        """Keep outcomes that are as expected, beside those of other claims; forget what is not.

        `fit`: claims and functions are seen to. Where sources have changed meanwhile, or nothing can be
        written, nothing is kept.
        """
        for outcome in outcomes:
            self._entries.pop(outcome.claim.id, None)
            if outcome.as_expected:
                self._entries[outcome.claim.id] = _entry(outcome)
        fit_ = _key() if fit else self._fit
        document = {"fit": fit_, "claims": self._entries, "digest": _digest(self._entries, fit_)}
        with suppress(UserError):
            require_writable(places.BUILD, NAME)
            if sources.are_unchanged():
                write_atomically(places.BUILD / NAME, json.dumps(document, indent=1) + "\n")


def _entry(outcome: Outcome) -> dict[str, Any]:
    found = {name: value for name, value in asdict(outcome).items() if name != "claim"}
    return {"key": _key(), "asked_by": _asked_by(), **found}


def _key() -> str:
    """What an outcome depends on."""
    return _hash(VERSION, RESOURCE_LIMIT, SEED, platform.python_version(), sources.at_first())


def _asked_by() -> str:
    """What an answer depends on, beside the text and the options."""
    return _hash(VERSION, sources.at_first(ASKS))


def _digest(*of: Any) -> str:
    return _hash(json.dumps(of, sort_keys=True))


def _hash(*of: object) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()
