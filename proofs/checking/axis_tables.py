"""What the specification's code makes of normal forms along one axis, as tables of numbers.

A form has a coefficient for each word, which is an operator for each axis. What a line does along its
axis it does to each word by the operator there, whatever the others are; so does who looks. So tables
for one axis say it. They are made by the specification's own code, of one operator after another;
`axes_apart` requires that it makes the same of forms of several words, on several axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import product
from typing import Any

from proofs.checking.lines import AXIS, FACTOR, MOVES, NAMED, NOW, OPERATORS, Line
from proofs.checking.symbols import FIRSTS, ONE, PLACES, ZERO, cases, either
from proofs.trusted.terms import KernelError, RealVal
from spec.checking.forms import Forms
from spec.checking.symbols import Symbol
from spec.devices.operators import OTHER, SUM_ALL, Offset, Source
from spec.language.schedule import Schedule
from spec.models.states import MIXED_ADAM
from spec.numbers.any_size import Polynomial, any_size

AXES = (AXIS, "other", "third")
COUNT = range(len(OPERATORS))
OWN, NAMED_FIRST, SELF, REST, EVERYBODY = range(5)  # whose value it is, seen from a device
SOURCES: dict[Any, int] = {0: OWN, 1: NAMED_FIRST, Source.SELF: SELF, Source.REST: REST}
LINEAR = tuple(move for move in MOVES if move.name != "release")
ALIKE = tuple(Symbol(kind, NOW) for kind in ("weight", "moment"))  # the same on all devices
EACH = Symbol("gradient", NOW)  # each device's own
UNKNOWN = Symbol("unknown", 0, made_of="it is not known")
Form = Mapping[Any, Any]
Word = tuple[int, ...]  # the number of an operator for each axis


def forms(
    firsts: tuple[int, ...], schedule: Schedule | None = None, sizes: tuple[int, ...] = ()
) -> Forms:
    """The checker on axes of any sizes, or of these, by the place of the first device along each."""
    axes = AXES[: len(firsts)]
    of = dict(zip(axes, sizes, strict=True)) if sizes else {a: any_size(a) for a in axes}
    mesh = {**of, FACTOR: any_size(FACTOR)}
    schedule = schedule or Schedule(axes, (), (), ())
    return Forms(schedule, mesh, 2, MIXED_ADAM, None, dict(zip(axes, firsts, strict=True)), True)


@cache
def moving(firsts: tuple[int, ...]) -> Forms:
    """The same, of any sizes, for what moves values or looks at them: it remembers nothing else."""
    return forms(firsts)


def words(firsts: tuple[int, ...]) -> Iterator[Word]:
    """Those there are: where the first device is the owner, none has an operator that speaks of it."""
    return product(*([o for o in COUNT if g or 1 not in OPERATORS[o]] for g in firsts))


def places(firsts: tuple[int, ...]) -> Iterator[tuple[Offset, ...]]:
    """Those of devices."""
    return product(*((*NAMED[g], OTHER) for g in firsts))


def unit(symbol: Symbol, word: Word) -> Form:
    """A form of one word."""
    return {(symbol, tuple(OPERATORS[o] for o in word)): 1}


# --------------------------------------------------------------------------- tables
@lru_cache
def moved(
    move: Line, firsts: tuple[int, ...], of_target: bool, symbol: Symbol = EACH
) -> dict[tuple[Word, Word], Any]:
    """(o, q) -> how much of word o a line makes of what had word q in its source, or its target."""
    found: dict[tuple[Word, Word], Any] = {}
    for q in words(firsts):
        source, target = (unit(symbol, q), {}) if not of_target else ({}, unit(symbol, q))
        after = move.of(moving(firsts), source, target)
        for (made, operators), amount in after.items():
            if made.kind == symbol.kind and amount != 0:
                word = tuple(map(OPERATORS.index, operators))
                found[word, q] = found.get((word, q), 0) + amount
    return {at: amount for at, amount in found.items() if amount != 0}


@cache
def sights(firsts: tuple[int, ...], o: Word, at: Any) -> tuple[tuple[tuple[Any, ...], Any], ...]:
    """Whose value a device there has by word o, along each axis, and how much. Raises KernelError."""
    seen = moving(firsts).at(unit(EACH, o), at)
    if any(len(sources) != len(firsts) for _, sources in seen):
        raise KernelError("what devices see along an axis is not of one source there")
    return tuple((sources, amount) for (_, sources), amount in seen.items())


@lru_cache
def entries(firsts: tuple[int, ...]) -> dict[tuple[Any, Word, Word], Any]:
    """(places, sources, o) -> how much a device there has, by word o, of a source's value."""
    found: dict[tuple[Any, Word, Word], Any] = {}
    for at, o in product(places(firsts), words(firsts)):
        for sources, amount in sights(firsts, o, at):
            found[at, tuple(SOURCES[source] for source in sources), o] = amount
        for symbol in ALIKE:
            seen = moving(firsts).at(unit(symbol, o), at)
            if not {*seen} <= {(symbol, ())}:
                raise KernelError(f"{symbol.kind} are not alike on all devices")
            for amount in seen.values():
                found[at, (EVERYBODY,) * len(firsts), o] = amount
    return found


@lru_cache
def only(firsts: tuple[int, ...]) -> dict[tuple[Any, Word], Any]:
    """(places, o) -> how much of word o there is in what devices there have, and no others."""
    found = {}
    for at in places(firsts):
        checker = moving(firsts)
        for (_, operators), amount in checker._only_at(checker.symbol(EACH.kind, NOW), at).items():
            if amount != 0:
                found[at, tuple(map(OPERATORS.index, operators))] = amount
    return found


@lru_cache
def counts(firsts: tuple[int, ...]) -> dict[tuple[Any, Word], Any]:
    """(places, sources) -> how many devices these are, seen from there: those that there may be."""
    everywhere = OPERATORS.index(SUM_ALL)
    found = {}
    for at in places(firsts):
        checker = moving(firsts)
        for sources, _ in sights(firsts, (everywhere,) * len(firsts), at):
            found[at, tuple(SOURCES[s] for s in sources)] = checker._devices(at, sources)
    return found


# ------------------------------------------------------------------------- as terms
def term(amount: Any, size: Any, factor: Any) -> Any:
    """A number of a table, which may be in the size of the axis, or in what a line scales by."""
    if not isinstance(amount, Polynomial):
        return RealVal(str(amount))
    found = ZERO
    for powers, times in amount.terms:
        part = RealVal(str(times))
        for name, exponent in powers:
            if exponent != 1:
                raise KernelError(f"a power of {name} in a table")
            value = {AXIS: size, FACTOR: factor}[name]
            part = value if part is ONE else part * value
        found = part if found is ZERO else found + part
    return found


def nested(keys: tuple[Any, ...], table: Mapping[tuple[Any, ...], Any], otherwise: Any = ZERO) -> Any:
    """What a table has at some terms, one after the other."""
    if not keys:
        return table.get((), otherwise)
    under: dict[Any, dict[tuple[Any, ...], Any]] = {}
    for (key, *rest), value in table.items():
        under.setdefault(key, {})[tuple(rest)] = value
    return cases(keys[0], {at: nested(keys[1:], t, otherwise) for at, t in under.items()}, otherwise)


Table = Mapping[tuple[Any, ...], Any]


def by_first(
    f: Any, table: Callable[[int], Mapping[tuple[Any, ...], Any]], keys: tuple[Any, ...]
) -> Any:
    """A table for each place of the first device, at terms."""
    return either(f, {g: nested(keys, table(g)) for g in FIRSTS})


class Tables:
    """The tables at terms: numbers of operators (o, q), places (p), sources (s) and firsts (f)."""

    def __init__(self, size: Any, factor: Any) -> None:
        self.size, self.factor = size, factor

    def term(self, amount: Any) -> Any:
        """A number of a table."""
        return term(amount, self.size, self.factor)

    def row(self, move: Line, o: Any, q: Any, f: Any, of_target: bool) -> Any:
        def table(g: int) -> Table:
            found = moved(move, (g,), of_target)
            return {(*x, *y): self.term(amount) for (x, y), amount in found.items()}

        return by_first(f, table, (o, q))

    def entry(self, o: Any, f: Any, p: Any, s: Any) -> Any:
        def table(g: int) -> Table:
            found = entries((g,)).items()
            return {(PLACES[at], who, by): self.term(a) for ((at,), (who,), (by,)), a in found}

        return by_first(f, table, (p, s, o))

    def alone(self, p: Any, o: Any, f: Any) -> Any:
        def table(g: int) -> Table:
            return {(PLACES[at], by): self.term(a) for ((at,), (by,)), a in only((g,)).items()}

        return by_first(f, table, (p, o))

    def count(self, f: Any, p: Any, s: Any) -> Any:
        def table(g: int) -> Table:
            return {(PLACES[at], who): self.term(a) for ((at,), (who,)), a in counts((g,)).items()}

        return by_first(f, table, (p, s))
