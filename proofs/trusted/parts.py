"""What is in terms: their parts and symbols; other terms in place of parts. Trusted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from operator import is_
from typing import Any

from proofs.trusted.sorts import REAL, KernelError, is_sort
from proofs.trusted.terms import Symbol, Term, symbol_of, symbols, term_of, with_args

_parts: dict[int, dict[int, Term]] = {}  # by identity: a term's parts, each once, arguments first
_replaced: dict[tuple[int, ...], dict[int, Any]] = {}  # by pairs of terms: what came of others


def genuine(terms: Collection[Term]) -> None:
    """Raises KernelError if a term, its symbol or its sort was given another class, that may lie."""
    if any(kind is not Term for kind in {*map(type, terms)}):
        raise KernelError("not a term: its class was changed")
    heads, sorts = [term.of for term in terms if term.op == "apply"], [term.sort for term in terms]
    for head in dict(zip(map(id, heads), heads, strict=True)).values():
        symbol_of(head)
    if not all(map(is_sort, dict(zip(map(id, sorts), sorts, strict=True)).values())):
        raise KernelError("not a sort: its class was changed")


def below(terms: Iterable[Term]) -> list[Term]:
    """Terms and all their parts, each once, parts first."""
    found: dict[int, Term] = {}
    for term in terms:
        if id(term_of(term)) not in _parts:
            _parts[id(term)] = _below(term)
        found |= _parts[id(term)]
    genuine(found.values())
    return [*found.values()]


def _below(whole: Term) -> dict[int, Term]:
    found: dict[int, Term] = {}

    def visit(term: Term) -> None:
        if type(term) is not Term:
            raise KernelError("not a term: its class was changed")
        for arg in term.args:
            if id(arg) in _parts:
                found.update(_parts[id(arg)])
            elif id(arg) not in found:
                visit(arg)
        found[id(term)] = term

    visit(whole)
    return found


def speak_of_reals(*terms: Term) -> bool:
    """Whether there is a real number in terms."""
    return any(part.sort is REAL for part in below(terms))


def constants(*terms: Term) -> frozenset[str]:
    """The names of the constants that occur in terms."""
    known = map(symbol_of, symbols(*terms))
    return frozenset(symbol.name for symbol in known if not symbol.takes)


def name_of(term: Term) -> str:
    """The name of a constant; a term that is none has no name."""
    return term.of.name if term.op == "apply" and not term.args else ""


def substitute(term: Any, *pairs: tuple[Any, Any]) -> Any:
    """The term with others in place of some of its parts, all at once."""
    return substituted([term], *pairs)[0]


def substituted(terms: Iterable[Any], *pairs: tuple[Any, Any]) -> list[Any]:
    """Terms with others in place of some of their parts, all at once."""
    pairs = tuple((term_of(part), term_of(other)) for part, other in pairs)  # read once
    done = _replaced.setdefault((*map(id, chain.from_iterable(pairs)),), {})
    for part, other in pairs:
        if part.sort is not other.sort:
            raise KernelError(f"{other} cannot stand for {part}: it is of another sort")
        done.setdefault(id(part), other)
    genuine([*chain.from_iterable(pairs)])
    constant = all(part.op == "apply" for part, _ in pairs)
    heads = frozenset(part.of for part, _ in pairs) if constant else frozenset[Symbol]()

    def replaced(here: Any) -> Any:
        known = done.get(id(here))
        if known is None:
            if constant and heads.isdisjoint(symbols(here)):
                known = here
            else:
                args = [*map(replaced, term_of(here).args)]
                known = here if all(map(is_, args, here.args)) else with_args(here, args)
            done[id(here)] = known
        return known

    return [replaced(term_of(term)) for term in terms]
