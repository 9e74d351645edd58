"""Published values, as their sources print them, and how a prediction is compared with one.

What a source prints is compared as it prints it: with its rounding, and without the (N - 1)/N that
several sources drop. Formulas are compared as formulas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import sympy

from psem_model.predict.closed import symbol
from psem_model.text.files import beside
from spec.derivation.programs import NOTHING

SYMBOLS = {name: symbol(name) for name in ("Psi", "N", "K", *"bshactmpvnVLPM")}


@dataclass(frozen=True)
class Entry:
    """One published value in the words of its source, and what psem is asked for it.

    `rule`: the function that reproduces it. `plan`: a strategy or a product of them. `recompute`: what
    backward makes again. `policy`: bytes of an element. `collective`: the operation it is about.
    `printed_in`: what its digits count, in its unit. `sentence`: the words around its formulas.
    """

    id: str
    source: str
    quantity: str
    strategy: str
    value: Any  # a number or a formula
    unit: str
    rounding: str
    rule: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    formula: str = ""
    plan: str = ""
    recompute: str = NOTHING
    policy: str = ""
    collective: str = ""
    printed_in: int = 1
    second: str = ""  # a formula beside the first
    sentence: str = "{value}"

    @property
    def printed(self) -> Decimal | str:
        """A number with the digits that the source printed, or what it says in formulas and words."""
        if isinstance(self.value, str):
            return self.sentence.format(value=self.value, second=self.second)
        return Decimal(repr(self.value))

    def rounds_to(self, number: Fraction, rounding: str = ROUND_HALF_UP) -> bool:
        """Whether a number is printed so."""
        return rounded(number, self.value, rounding) == self.printed


@dataclass(frozen=True)
class Reproduced:
    """What is predicted, exactly: a number, a formula or several; whether the source prints that."""

    predicted: Any
    agrees: bool
    note: str = ""


@cache
def published() -> tuple[Entry, ...]:
    """All entries, in order. Raises TypeError for a field that is unknown or missing."""
    return tuple(Entry(**row) for row in rows_in(beside(__file__, "published.toml")))


def rows_in(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a file's groups: each has what its groups share, but for what it says itself."""
    for group in content["group"]:
        yield from _rows(group, {})


def _rows(row: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row beside what its group shares, tables put together; a row with rows is a group."""
    fields = {**shared, **row}
    fields |= {key: {**shared.get(key, {}), **of} for key, of in row.items() if isinstance(of, dict)}
    rows = fields.pop("rows", None)
    if rows is None:
        yield fields
    for inner in rows or ():
        yield from _rows(inner, fields)


def form(text: str, **names: Any) -> Any:
    """A formula of a source."""
    for short, whole in (("sbh", "s*b*h"), ("5as", "5*a*s"), ("(ht)", "(h*t)"), ("12h", "12*h")):
        text = text.replace(short, whole)
    return sympy.sympify(text, locals={**SYMBOLS, **names})


def same(one: Any, other: Any) -> bool:
    """Whether two formulas are equal for all values of their symbols."""
    return bool(sympy.simplify(sympy.sympify(one) - other) == 0)


def compared(entry: Entry, predicted: Any, **names: Any) -> Reproduced:
    """A prediction beside the number or the formula that the source prints. `names`: of its symbols."""
    return Reproduced(predicted, same(predicted, form(str(entry.value), **names)))


def rounded(value: Fraction, as_printed: Any, rounding: str, more: int = 0) -> Decimal:
    """A number with as many decimals as the source printed, or more."""
    exponent = Decimal(repr(as_printed)).normalize().as_tuple().exponent
    number = Decimal(value.numerator) / Decimal(value.denominator)
    return number.quantize(Decimal(1).scaleb(min(0, int(exponent)) - more), rounding=rounding)
