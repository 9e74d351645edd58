"""Listed schedules: a line of several, that reads the same, stands once for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from proofs.checking.lines import BACKWARD, UPDATE
from proofs.checking.operation_lines import COUNT, NORM, NOWHERE, LineAt
from proofs.plans.listing import Finding, Listing
from proofs.plans.reads_and_writes import read
from spec.devices.mesh import Axes


@dataclass(frozen=True)
class About:
    """What the schedule of a line is about: its axes; whether a step is one micro-step; whether a
    micro-step contributes twice; whether updates read a norm, a count, a moment.
    """

    axes: Axes
    once: bool
    tied: bool
    clips: bool
    counts: bool
    moments: bool

    def of(self, line: LineAt) -> About:
        """As far as a line asks for it."""
        if line.kind in (UPDATE.name, NORM):
            return self
        once = self.once and line.kind in (BACKWARD.name, COUNT)
        return replace(self, once=once, clips=False, counts=False, moments=True)


@dataclass(frozen=True)
class Line:
    """A line, and what is found where it reads. `again`: how often it is before this in a step."""

    about: About
    line: LineAt
    read: tuple[tuple[int, Finding], ...]
    again: int


@dataclass(frozen=True)
class Found:
    """What is found in a place, in which schedules."""

    finding: Finding
    numbers: frozenset[int]


@dataclass
class Row:
    """A line of some schedules, by their numbers; what is found before it, by place."""

    about: About
    line: LineAt
    numbers: set[int]
    found: dict[int, tuple[Found, ...]]

    def at(self, place: int) -> Finding | None:
        """What is found in a place that the line reads."""
        return self.found[place][0].finding if place in self.found else None

    def in_some(self, numbers: Set[int]) -> dict[int, tuple[Found, ...]]:
        """What is found by place, in some schedules."""
        found = {
            place: tuple(Found(each.finding, each.numbers & numbers) for each in variants)
            for place, variants in self.found.items()
        }
        some = {place: tuple(v for v in variants if v.numbers) for place, variants in found.items()}
        return {place: variants for place, variants in some.items() if variants}

    def stays(self, place: int, later: Iterable[Found]) -> bool:
        """Whether what is found later in a place is what is found now, in each schedule."""
        return place in self.found and all(
            now.finding == then.finding or now.numbers.isdisjoint(then.numbers)
            for then in later
            for now in self.found[place]
        )

    def after(self, place: int, numbers: Iterable[int]) -> Finding | None:
        """What is found in a place in one of some schedules, if anything is."""
        found = (each for each in self.found.get(place, ()) if not each.numbers.isdisjoint(numbers))
        return next((each.finding for each in found), None)


@dataclass(frozen=True)
class Then:
    """The row that follows. `turn`: the first of the next micro-step, if there is one; `ends`: whether
    what follows is the next step.
    """

    row: int
    turn: int = NOWHERE
    ends: bool = False

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows that may follow."""
        return (self.row,) if self.turn in (NOWHERE, self.row) else (self.turn, self.row)

    @property
    def begins(self) -> tuple[int, ...]:
        """Those with which a micro-step, or a step, begins."""
        return (self.row,) if self.ends else tuple({self.turn} - {NOWHERE})


@dataclass(frozen=True)
class Begun:
    """Schedules that begin alike, by their numbers: the name of one; their first row; what rests, cut
    along what.
    """

    name: str
    numbers: tuple[int, ...]
    first: int
    axes: Axes
    starts: Mapping[int, str]
    slices: Mapping[int, Axes]

    def keeps(self, start: str) -> list[int]:
        """The places that are kept as of a start."""
        return [place for place, of in self.starts.items() if of == start]


class Rows:
    """All rows, those of a kind of line together; what follows each, in which schedules. `paths`: the
    rows of each schedule, in order.
    """

    def __init__(self, listings: Mapping[str, Listing]) -> None:
        each = [*listings.values()]
        self.schedules = len(each)
        paths = [[*_lines(listed)] for listed in each]
        lines = sorted(dict.fromkeys(line for path in paths for line in path), key=_kind)
        number = {line: r for r, line in enumerate(lines)}
        self.rows = [Row(line.about, line.line, set(), {}) for line in lines]
        self.then: list[dict[Then, list[int]]] = [{} for _ in lines]
        self.paths = [[number[line] for line in path] for path in paths]
        found: list[dict[int, dict[Finding, set[int]]]] = [{} for _ in lines]
        begun: dict[tuple[int, Hashable], list[int]] = {}
        for q, (listed, rows) in enumerate(zip(each, self.paths, strict=True)):
            for r, then, before in zip(rows, _follows(rows, listed.body), listed.before, strict=True):
                self.rows[r].numbers.add(q)
                self.then[r].setdefault(then, []).append(q)
                for place, finding in before.items():
                    found[r].setdefault(place, {}).setdefault(finding, set()).add(q)
            resting = frozenset(listed.starts.items()), frozenset(listed.slices.items())
            begun.setdefault((rows[0], resting), []).append(q)
        for row, before_it in zip(self.rows, found, strict=True):
            row.found = {
                place: tuple(Found(finding, frozenset(of)) for finding, of in by_finding.items())
                for place, by_finding in sorted(before_it.items())
            }
        names = [*listings]
        self.begun = [
            Begun(names[q], tuple(of), first, each[q].axes, each[q].starts, each[q].slices)
            for (first, _), of in begun.items()
            for q in of[:1]
        ]

    def of_kind(self, kind: str) -> range:
        """The rows of a kind of line."""
        found = [r for r, row in enumerate(self.rows) if row.line.kind == kind]
        return range(found[0], found[-1] + 1) if found else range(0)

    @property
    def kinds(self) -> dict[str, range]:
        """The kinds of line that there are, and their rows."""
        return {kind: self.of_kind(kind) for kind in dict.fromkeys(row.line.kind for row in self.rows)}

    def next_to(self, r: int) -> dict[int, set[int]]:
        """The rows that may follow a row, and in which schedules."""
        found: dict[int, set[int]] = {}
        for then, numbers in self.then[r].items():
            for n in then.rows:
                found.setdefault(n, set()).update(numbers)
        return found

    def begins(self, r: int) -> set[int]:
        """Those of them with which a micro-step, or a step, begins."""
        return {n for then in self.then[r] for n in then.begins}


def _kind(line: Line) -> str:
    return line.line.kind


def _lines(listed: Listing) -> Iterator[Line]:
    once = listed.body == len(listed.lines)
    about = About(listed.axes, once, listed.tied, listed.clips, listed.counts, listed.moments)
    seen: dict[Line, int] = {}
    for line, before in zip(listed.lines, listed.before, strict=True):
        there = tuple((place, before[place]) for place in sorted(read(line)) if place in before)
        found = Line(about.of(line), line, there, 0)
        seen[found] = seen.get(found, -1) + 1
        yield replace(found, again=seen[found])


def _follows(rows: list[int], body: int) -> Iterator[Then]:
    for i in range(len(rows)):
        if i + 1 == len(rows):
            yield Then(rows[0], ends=True)
        elif i + 1 == body:
            yield Then(rows[i + 1], turn=rows[0])
        else:
            yield Then(rows[i + 1])


def findings_of(found: Iterable[Found]) -> tuple[Finding, ...]:
    """What is found, in whichever schedules."""
    return tuple(each.finding for each in found)
