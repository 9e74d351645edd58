"""What is in terms: their parts and symbols; other terms in place of parts. Trusted."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from proofs.trusted.sorts import KernelError, RealSort, is_sort
from proofs.trusted.terms import Symbol, Term, applied, symbol_of, term_of

_in_terms: dict[int, frozenset[Symbol]] = {}  # by identity: terms stay
_real: set[int] = set()  # terms in which there is a real number, likewise
_replaced: dict[tuple[int, ...], Term] = {}  # what came of a term, and of pairs of others for its parts


def genuine(term: Term) -> None:
    """Raises KernelError if a term, its symbol or its sort was given another class, that may lie."""
    if type(term) is not Term or not is_sort(term.sort):
        raise KernelError("not a term: its class was changed")
    if term.op == "apply":
        symbol_of(term.of)


def below(terms: Iterable[Term]) -> list[Term]:
    """Terms and all their parts, each once, parts first."""
    found: dict[int, Term] = {}

    def visit(term: Term) -> None:
        genuine(term)
        for arg in term.args:
            if id(arg) not in found:
                visit(arg)
        found[id(term)] = term

    for term in terms:
        if id(term) not in found:
            visit(term)
    return list(found.values())


def symbols(*terms: Term) -> frozenset[Symbol]:
    """The symbols that occur in terms."""
    missing = [term for term in terms if id(term_of(term)) not in _in_terms]
    for term in below(missing) if missing else ():
        if id(term) not in _in_terms:
            found = [_in_terms[id(arg)] for arg in term.args]
            own = frozenset([term.of]) if term.op == "apply" else frozenset()
            largest = max(found, key=len, default=own)
            alone = own <= largest and all(each <= largest for each in found)
            _in_terms[id(term)] = largest if alone else own.union(*found)
            if term.sort == RealSort() or any(id(arg) in _real for arg in term.args):
                _real.add(id(term))
    return frozenset().union(*(_in_terms[id(term)] for term in terms))


def speak_of_reals(*terms: Term) -> bool:
    """Whether there is a real number in terms."""
    symbols(*terms)
    return any(id(term) in _real for term in terms)


def constants(*terms: Term) -> frozenset[str]:
    """The names of the constants that occur in terms."""
    return frozenset(symbol.name for symbol in symbols(*terms) if not symbol.takes)


def name_of(term: Term) -> str:
    """The name of a constant; a term that is none has no name."""
    return term.of.name if term.op == "apply" and not term.args else ""


def substitute(term: Any, *pairs: tuple[Any, Any]) -> Any:
    """The term with others in place of some of its parts, all at once."""
    done: dict[int, Any] = {}
    for part, other in pairs:
        genuine(part)
        genuine(other)
        if term_of(part).sort != term_of(other).sort:
            raise KernelError(f"{other} cannot stand for {part}: it is of another sort")
        done.setdefault(id(part), other)
    key = (id(term_of(term)), *map(id, chain.from_iterable(pairs)))
    if key in _replaced:
        return _replaced[key]
    heads = {part.of for part, _ in pairs} if all(part.op == "apply" for part, _ in pairs) else None

    def replaced(here: Any) -> Any:
        known = done.get(id(here))
        if known is None:
            genuine(here)
            if heads is not None and heads.isdisjoint(_in_terms.get(id(here)) or symbols(here)):
                known = here
            else:
                known = with_args(here, tuple(map(replaced, here.args)))
            done[id(here)] = known
        return known

    return _replaced.setdefault(key, replaced(term))


def with_args(term: Any, args: tuple[Any, ...]) -> Any:
    """The same operation of other arguments."""
    if all(a is b for a, b in zip(args, term.args, strict=True)):
        return term
    if term.op == "apply":
        return term.of(*args)
    return args[0][args[1]] if term.op == "select" else applied(term.op, args)
