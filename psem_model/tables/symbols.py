"""An author's own symbols: what they stand for in some tables, and that no two quantities share one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any

import sympy

from psem_model.predict.closed import AXIS_SYMBOLS, LEGEND
from psem_model.tables.table import Style, formulas
from psem_model.text import prose
from psem_model.text.errors import BadInput, listed, or_nearest, quoted, refused
from psem_model.text.report import Cell, Note, Prose, Section, parts

NAME = re.compile(r"[A-Za-z]+(_[A-Za-z0-9]+)?")  # of a symbol
LATEX = re.compile(r"\\?([A-Za-z]+)(?:_\{?([A-Za-z0-9]+)\}?)?")  # the same as an author types it


def typed(text: str) -> dict[str, str]:
    """Symbols from `psi=M,N=d`, by what was typed. Raises BadInput for what is no symbol."""
    found: dict[str, str] = {}
    for given in filter(None, (part.strip() for part in text.split(","))):
        name, equals, symbol = (part.strip() for part in given.partition("="))
        if not equals:
            raise refused("--symbols", given, "name=symbol, such as psi=M,N=d")
        written = LATEX.fullmatch(symbol)
        if written:
            symbol = "_".join(filter(None, written.groups()))
        if not NAME.fullmatch(symbol):
            letters = NAME.search(symbol)
            near = f"; nearest: {name}={letters[0]}" if letters and "\\" not in symbol else ""
            raise BadInput(
                f"--symbols: given {quoted(symbol)} for {quoted(name)}; expected letters, an index "
                f"after _, as in Theta or N_s: LaTeX has its Greek letters by their names{near}"
            )
        if name in found:
            raise BadInput(f"--symbols: {name} is given twice; expected once")
        found[name] = symbol
    return found


def names(table: Section) -> set[str]:
    """The symbols of its formulas and sentences. Without a legend they are others', and stay."""
    if table.legend is None:
        return set()
    cells = [cell for row in table.rows for cell in row.cells]
    said = [part for cell in cells for part in parts(cell) if isinstance(part, Prose)]
    found = {str(symbol) for form in formulas(table) for symbol in form.free_symbols}
    return found.union(*map(prose.symbols, said))


def resolved(style: Style, tables: Iterable[Section]) -> Style:
    """The style with symbols by their names in some tables, in small or capital letters as there.

    Raises BadInput for one that none of them has.
    """
    known = set[str]().union(*map(names, tables))
    printed = {Style().symbol(name): name for name in sorted(known)}  # N_s, of N_shard
    found: dict[str, str] = {}
    for given, symbol in style.symbols.items():
        name = printed.get(given, given)
        alike = [other for other in known if other.lower() == name.lower()]
        has_meaning = name in known or name in LEGEND or name in AXIS_SYMBOLS.values()
        whole = name if has_meaning or len(alike) != 1 else alike[0]
        if whole not in known:
            there = listed(sorted(printed, key=str.lower))
            expected = f"one of {there}{or_nearest(given, printed)}" if known else "no symbols"
            raise BadInput(
                f"--symbols: given {quoted(given)}, which is in none of these tables; "
                f"expected {expected}"
            )
        if whole in found:
            raise BadInput(f"--symbols: {whole} is given twice; expected once")
        found[whole] = symbol
    return replace(style, symbols=found)


def require_apart(style: Style, tables: Sequence[Section]) -> None:
    """Raise BadInput where one symbol would stand for two quantities, in one table or in two."""
    meant: dict[str, dict[str, str]] = {}  # by symbol: names, and what they mean
    for table in tables:
        for name in sorted(names(table)):
            words = (table.legend or {}).get(name, f"of the table {table.key}")
            meant.setdefault(style.symbol(name), {}).setdefault(name, words)
    shared = {symbol: of for symbol, of in meant.items() if len(of) > 1}
    if not shared:
        return
    wrong = "; ".join(
        f"{symbol} would be both {' and '.join(f'{name} ({words})' for name, words in of.items())}"
        for symbol, of in shared.items()
    )
    raise BadInput(f"--symbols: {wrong}; expected a symbol for each; nearest: {_apart(style, meant)}")


def _apart(style: Style, meant: Mapping[str, Mapping[str, str]]) -> str:
    """The symbols that were typed, and others for quantities that would share one."""
    found = dict(style.symbols)
    taken = {*meant, *found.values(), *LEGEND, *(name for of in meant.values() for name in of)}
    for of in meant.values():
        _, *others = sorted(of, key=lambda name: (name not in style.symbols, name))
        for name in others:
            wanted = (name.swapcase(), *ascii_letters)
            found[name] = next(each for each in wanted if NAME.fullmatch(each) and each not in taken)
            taken.add(found[name])
    return "--symbols " + ",".join(f"{name}={symbol}" for name, symbol in found.items())


def renamed(table: Section, style: Style) -> Section:
    """The same with the symbols of a style; without a legend they are others', and stay."""
    if table.legend is None:
        return table
    own = names(table)
    called = {name: style.symbol(name) for name in own}
    symbols = {symbol for form in formulas(table) for symbol in form.free_symbols}
    changed = {symbol: _named(symbol, called[str(symbol)]) for symbol in symbols}

    def cell(given: Cell) -> Cell:
        if isinstance(given, Note):
            return replace(given, said=tuple(map(cell, given.said)))
        if isinstance(given, tuple):
            return tuple(map(cell, given))
        if isinstance(given, Prose):
            return Prose(prose.renamed(given, called))
        return given.xreplace(changed) if isinstance(given, sympy.Basic) else given

    legend = {style.symbol(name): words for name, words in table.legend.items() if name in own}
    legend |= {name: words for name, words in table.legend.items() if "(" in name}
    rows = tuple(replace(row, cells=tuple(map(cell, row.cells))) for row in table.rows)
    return replace(table, rows=rows, notes=tuple(map(cell, table.notes)), legend=legend)


def _named(symbol: Any, name: str) -> Any:
    return symbol if str(symbol) == name else sympy.Symbol(name, **symbol.assumptions0)
