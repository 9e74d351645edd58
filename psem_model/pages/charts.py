"""Charts as shapes on a plane of user units, and as the table of what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import floor, log10
from textwrap import wrap

CHARACTER, LINE = 6.8, 12.0  # units that a character of a label takes, about, and a line
DOT, STEP = 5.0, 1.0  # from the middle of a dot to its end; by which a label is moved
STEPS = 5  # of an axis, at most


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
    """A picture, what it shows in words, and the numbers in it; `narrow`: the same for a phone."""

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
    narrow: Chart | None = None


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


def ticks(high: float) -> list[float]:
    """Round numbers from 0 up to a largest one, at most in five steps."""
    power = 10.0 ** floor(log10(high / STEPS))
    step = next(power * size for size in (1, 2, 5, 10) if high / (power * size) <= STEPS)
    return [step * n for n in range(int(high / step) + 1)]


def beside(up: Scale, x: float) -> list[Label]:
    """Numbers to the left of an axis that goes up."""
    return [Label(x - 4, up.at(t) + 4, f"{t:g}", "end") for t in ticks(up.high)]


def under(across: Scale, y: float) -> list[Label]:
    """Numbers below an axis that goes across."""
    return [Label(across.at(t), y, f"{t:g}", "middle") for t in ticks(across.high)]


def heading(text: str, width: float) -> list[Label]:
    """A title above a chart, in as many lines as it takes."""
    lines = wrap(text, int(width / CHARACTER))
    return [Label(0, LINE * (1 + number), line, kind="strong") for number, line in enumerate(lines)]


def placed(labels: Sequence[Label], dots: Sequence[Dot] = ()) -> list[Label]:
    """Labels that begin at their points, moved down where one would cover another, or a dot."""
    found: list[Label] = []
    for label in sorted(labels, key=lambda each: (each.y, each.x)):
        while any(_covers(label, other) for other in found) or any(_is_on(dot, label) for dot in dots):
            label = replace(label, y=label.y + STEP)
        found.append(label)
    return found


def _is_on(dot: Dot, label: Label) -> bool:
    """Whether a dot is within a label that begins at its point."""
    is_beside = label.x - DOT < dot.x < label.x + CHARACTER * len(label.text) + DOT
    middle = label.y - LINE / 3  # of its letters: it stands on its point
    return is_beside and abs(dot.y - middle) < LINE / 2 + DOT


def _covers(label: Label, other: Label) -> bool:
    first, second = sorted((label, other), key=lambda each: each.x)
    ends = first.x + CHARACTER * len(first.text)
    return abs(label.y - other.y) < LINE and ends > second.x
