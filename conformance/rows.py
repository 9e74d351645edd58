"""Rows: a figure of a case as it was recorded, beside what psem derives, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache

from conformance.case import Case
from conformance.cases import cases
from conformance.derived import Derived, derived
from conformance.figures import Figure, Values, measured
from conformance.logs import log_of
from conformance.profiles import why
from spec.numbers.arithmetic import Number

EQUAL_WITHIN = 1e-12  # of parameters after three steps in float64
NUMERICS = Figure("difference")


class Verdict(Enum):
    """What becomes of a row."""

    EQUAL = "equal"
    PROFILE = "equal under the profile"
    FAILS = "fails"


@dataclass(frozen=True)
class Row:
    """One figure. Values are rank by rank. `reason`: why the profile's is not the textbook's.

    `named`: by the profile's name alone.
    """

    case: Case
    figure: Figure
    recorded: tuple[Number, ...]
    textbook: tuple[Number, ...]
    profile: tuple[Number, ...]
    named: tuple[Number, ...]
    reason: str

    @property
    def says_anything(self) -> bool:
        """Whether anything was recorded, or is predicted."""
        return any(
            value not in (0, (0, 0)) for told in (self.recorded, self.textbook) for value in told
        )

    @property
    def needs_file(self) -> bool:
        """Whether it is equal under the profile, and not by its name alone."""
        return self.verdict is Verdict.PROFILE and self.recorded != self.named

    @property
    def verdict(self) -> Verdict:
        if self.recorded == self.textbook:
            return Verdict.EQUAL
        return Verdict.PROFILE if self.recorded == self.profile else Verdict.FAILS


@cache
def rows_of(case: Case) -> tuple[Row, ...]:
    """Every figure that was recorded, or that psem derives. KeyError if the case was not recorded."""
    log = log_of(case)
    found, by = measured(case, log), derived(case, log.ranks)
    figures = sorted({*found, *by.textbook, *by.profile} - by.outside)
    rows = [_row(case, figure, found, by, len(log.ranks)) for figure in figures]
    rows = [row for row in rows if row.says_anything]
    if log.difference is not None:
        same = (log.difference <= EQUAL_WITHIN,)
        rows.append(Row(case, NUMERICS, same, *((True,),) * 3, ""))
    return tuple(rows)


def _row(case: Case, figure: Figure, found: Values, by: Derived, ranks: int) -> Row:
    nothing: tuple[Number, ...] = ((0, 0) if figure.axis else 0,) * ranks
    of = found, by.textbook, by.profile, by.named
    recorded, book, profile, named = (values.get(figure, nothing) for values in of)
    return Row(case, figure, recorded, book, profile, named, why(case, figure))


def rows() -> Iterator[Row]:
    """Of all cases."""
    for case in cases():
        yield from rows_of(case)
