"""Each published value beside what its rule predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isfunction, signature
from types import ModuleType

from psem_model.published import models, states
from psem_model.published.entries import Entry, Reproduced, published

Rule = Callable[[Entry], Reproduced]


def rules_in(*modules: ModuleType) -> dict[str, Rule]:
    """Rules by their names: the public functions of modules that take an entry, and nothing else."""
    every = [(name, f) for module in modules for name, f in vars(module).items() if isfunction(f)]
    public = {name: f for name, f in every if not name.startswith("_")}
    return {name: f for name, f in public.items() if [*signature(f).parameters] == ["entry"]}


def require_named(known: dict[str, Rule], entries: Iterable[Entry]) -> None:
    """Raise ValueError for a rule that is unknown, or that no entry names."""
    named = {entry.rule: entry.id for entry in entries}
    if unknown := named.keys() - known:
        name = min(unknown)
        raise ValueError(f"{named[name]}: given rule {name!r}; expected one of {', '.join(known)}")
    if unused := known.keys() - named:
        raise ValueError(f"rule {min(unused)!r}: no published value names it")


RULES = rules_in(states, models)
require_named(RULES, published())


def reproduce(entry: Entry) -> Reproduced:
    """The prediction of an entry. Raises KeyError for an unknown rule."""
    return RULES[entry.rule](entry)
