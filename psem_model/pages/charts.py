"""Charts as shapes on a plane of user units, and as the table of what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import floor, log10

CHARACTER, LINE = 6.8, 12.0  # units that a character of a label takes, about, and a line


@dataclass(frozen=True)
class Bar:
    """A rectangle; `kind` is how it is filled, `title` what it says when it is pointed at."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str = ""


@dataclass(frozen=True)
class Dot:
    """A point of a kind, which has a shape of its own."""

    x: float
    y: float
    kind: str
    title: str = ""


@dataclass(frozen=True)
class Stroke:
    """A line from point to point."""

    points: Sequence[tuple[float, float]]
    kind: str = "axis"


@dataclass(frozen=True)
class Label:
    """Text at a point."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    kind: str = ""


@dataclass(frozen=True)
class Chart:
    """A picture, what it shows in words, and the numbers in it."""

    title: str
    says: str
    width: float
    height: float
    bars: Sequence[Bar] = ()
    dots: Sequence[Dot] = ()
    strokes: Sequence[Stroke] = ()
    labels: Sequence[Label] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Picture:
    """Charts that belong together, and what the kinds of their shapes mean."""

    id: str
    title: str
    says: str
    charts: Sequence[Chart]
    legend: Sequence[tuple[str, str]] = field(default_factory=tuple)  # kind, meaning


@dataclass(frozen=True)
class Scale:
    """From numbers to places: `low` is at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a number, to a tenth of a unit."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return round(self.start + share * (self.end - self.start), 1)


def ticks(high: float, most: int = 5) -> list[float]:
    """Round numbers from 0 up to a largest one, at most so many steps."""
    power = 10.0 ** floor(log10(high / most))
    step = next(power * size for size in (1, 2, 5, 10) if high / (power * size) <= most)
    return [step * n for n in range(int(high / step) + 1)]


def placed(labels: Sequence[Label]) -> list[Label]:
    """Labels that begin at their points, moved down where one would cover another."""
    found: list[Label] = []
    for label in sorted(labels, key=lambda each: (each.y, each.x)):
        while any(_covers(label, other) for other in found):
            label = replace(label, y=label.y + LINE)
        found.append(label)
    return found


def _covers(label: Label, other: Label) -> bool:
    first, second = sorted((label, other), key=lambda each: each.x)
    ends = first.x + CHARACTER * len(first.text)
    return abs(label.y - other.y) < LINE and ends > second.x
