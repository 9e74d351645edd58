"""Each published value beside what its rule predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from psem_model.published import models, states
from psem_model.published.entries import Entry, Reproduced, published

Rule = Callable[[Entry], Reproduced]


def by_name(rules: Iterable[Rule], entries: Iterable[Entry]) -> dict[str, Rule]:
    """Rules by their names. Raises ValueError for one that is unknown, or that no entry names."""
    known = {rule.__name__: rule for rule in rules}
    named = {entry.rule: entry.id for entry in entries}
    if unknown := named.keys() - known:
        name = min(unknown)
        raise ValueError(f"{named[name]}: given rule {name!r}; expected one of {', '.join(known)}")
    if unused := known.keys() - named:
        raise ValueError(f"rule {min(unused)!r}: no published value names it")
    return known


RULES = by_name((*states.RULES, *models.RULES), published())


def reproduce(entry: Entry) -> Reproduced:
    """The prediction of an entry. Raises KeyError for an unknown rule."""
    return RULES[entry.rule](entry)
