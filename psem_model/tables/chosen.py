"""A part of a table that an author chose: rows, columns, a caption, a label; and own symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from psem_model.predict.closed import AXIS_SYMBOLS, LEGEND
from psem_model.text.cells import plain
from psem_model.text.errors import BadInput, choose, quoted
from psem_model.text.report import Row, Section, parts
from spec.plans.strategies import STRATEGIES

NAME = re.compile(r"[A-Za-z]+(_[A-Za-z0-9]+)?")  # of a symbol
LABEL = re.compile(r"[A-Za-z0-9:._-]+")  # of a table


@dataclass(frozen=True)
class Chosen:
    """Rows by what they begin with, columns by their titles; empty: all. In the order given."""

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    caption: str = ""
    label: str = ""

    def of(self, table: Section) -> Section:
        """That part of a table. Raises BadInput for a row or a column that it does not have."""
        rows, columns = table.rows, [*range(len(table.columns))]
        if self.rows:
            names = [_names(row, table.headed) for row in rows]
            known = [*dict.fromkeys(name for each in names for name in each)]
            wanted = [choose(f"--rows, table {table.key}", name, known) for name in self.rows]
            at = [
                [name in each for name in wanted].index(True) for each in names if {*wanted} & {*each}
            ]
            kept = [row for row, each in zip(rows, names, strict=True) if {*wanted} & {*each}]
            rows = tuple(row for _, row in sorted(zip(at, kept, strict=True), key=lambda pair: pair[0]))
        if self.columns:
            titles = [column.title for column in table.columns]
            columns = [
                titles.index(choose(f"--columns, table {table.key}", title, titles))
                for title in self.columns
            ]
        return replace(
            table,
            title=self.caption or table.title,
            label=self.label or table.label,
            columns=tuple(table.columns[number] for number in columns),
            rows=tuple(Row(tuple(row.cells[n] for n in columns)) for row in rows),
            headed=table.headed and columns[0] == 0 and len(columns) > 1,
        )


ALL_OF_IT = Chosen()


def _names(row: Row, headed: bool) -> list[str]:
    """What a row goes by: what it begins with, below its heading too."""
    return [" ".join(map(plain, parts(cell))) for cell in row.cells[: 1 + headed]]


def chosen(rows: str, columns: str, caption: str, label: str) -> Chosen:
    """What was typed. Raises BadInput for a label that LaTeX could not read."""
    if label and not LABEL.fullmatch(label):
        raise BadInput(
            f"--label: given {quoted(label)}; expected letters, digits and : . _ -, as in tab:memory"
        )
    return Chosen(tuple(_listed(rows)), tuple(_listed(columns)), caption, label)


def _listed(text: str) -> Iterator[str]:
    """Names with commas between them; a name with a comma in it is in quotes."""
    for quoted_name, name in re.findall(r'\s*(?:"([^"]*)"|([^,"]+))\s*,?', text):
        yield (quoted_name or name).strip()


def symbols(text: str) -> dict[str, str]:
    """Symbols from `psi=M,N=d`. Raises BadInput for a name that no formula has, or a bad symbol."""
    axes = {axis for placed in STRATEGIES.values() for axis in placed.axes if len(placed.axes) > 1}
    known = [name for name in LEGEND if name != "shard"]
    known += [*AXIS_SYMBOLS.values(), "M", "i", *(f"N_{axis}" for axis in sorted(axes))]
    found: dict[str, str] = {}
    for given in filter(None, (part.strip() for part in text.split(","))):
        name, equals, symbol = (part.strip() for part in given.partition("="))
        if not equals:
            raise BadInput(f"--symbols: given {quoted(given)}; expected name=symbol, such as psi=M,N=d")
        alike = [other for other in known if other.lower() == name.lower()]
        whole = name if name in known or len(alike) != 1 else alike[0]
        whole = choose("--symbols", whole, known)
        if not NAME.fullmatch(symbol):
            raise BadInput(
                f"--symbols: given {quoted(symbol)} for {whole}; expected letters, an index after _"
            )
        if whole in found:
            raise BadInput(f"--symbols: {whole} is given twice; expected once")
        found[whole] = symbol
    return found
