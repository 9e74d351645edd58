"""Which places lines read and write, and which lines are needed for what is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

from proofs.checking.lines import BACKWARD, UPDATE
from proofs.checking.operation_lines import NOWHERE, LineAt


def written(line: LineAt) -> tuple[int, ...]:
    """The places that a line writes: a backward drops its activations, an update has moments."""
    return (line.target, line.second) if line.kind in (BACKWARD.name, UPDATE.name) else (line.target,)


def read(line: LineAt) -> set[int]:
    """The places that a line reads: what a slice is kept in, or a value is added to, is read, too."""
    target = line.target if line.kind in ("keep", "accumulate") else NOWHERE
    return {line.source, line.second, line.third, line.fourth, line.fifth, target} - {NOWHERE}


@dataclass(frozen=True)
class Live:
    """The places, before each line and after it, of which what is kept is made later, or where that is.

    `stays`: the places, beside those that are kept, of which something may be read in the next
    micro-step, or step, that was written in the one before.
    """

    lines: Sequence[LineAt]
    body: int
    kept: Set[int]
    stays: Set[int]

    @cached_property
    def before(self) -> list[Set[int]]:
        live: list[Set[int]] = [frozenset() for _ in self.lines]
        changed = True
        while changed:
            earlier = list(live)
            for r, line in reversed([*enumerate(self.lines)]):
                then, makes = self._after(r, live), {*written(line)}
                live[r] = then - makes | read(line) if then & makes else then
            changed = earlier != live
        return live

    @property
    def needed(self) -> list[bool]:
        """Of each line whether what is kept is made of what it makes."""
        after = (self._after(r, self.before) for r in range(len(self.lines)))
        return [
            not live.isdisjoint(written(line)) for line, live in zip(self.lines, after, strict=True)
        ]

    def _after(self, r: int, live: Sequence[Set[int]]) -> Set[int]:
        then = nexts(r, self.body, len(self.lines))
        return frozenset().union(
            *(live[n] & self.stays | self.kept if n == 0 else live[n] for n in then)
        )


def nexts(r: int, body: int, lines: int) -> tuple[int, ...]:
    """The lines that may follow a line: the first of a micro-step, or the one after it."""
    last = r + 1 == lines
    return (0,) if last else (0, r + 1) if r + 1 == body else (r + 1,)


# ------------------------------------------------------------------------- fewer places and copies
def numbered_anew(live: Live, first: int) -> tuple[LineAt, ...]:
    """The lines, whose places from a number on are the first that nothing live is in."""
    lines, new = [], dict[int, int]()
    for line, there in zip(live.lines, live.before, strict=True):
        needed = there | read(line)
        used, before = {new.get(place, place) for place in needed}, {**new}
        for place in written(line):
            if place >= first and place not in needed:
                new[place] = next(n for n in count(first) if n not in used)
            used.add(new.get(place, place))
        lines.append(_renamed(line, before | {p: new[p] for p in written(line) if p in new}))
    return tuple(lines)


def shortened(lines: Sequence[LineAt], resting: set[int]) -> list[LineAt]:
    """The same lines without copies of what is not read again: its place goes on to be used instead."""
    for r, line in enumerate(lines):
        x, y = line.source, line.target
        if line.kind == "copy" and y not in resting and _free(lines[r + 1 :], x, y, resting):
            renamed = [_renamed(each, {y: x}) for each in (*lines[:r], *lines[r + 1 :])]
            kept = [each for each in renamed if each.kind != "copy" or each.source != each.target]
            return shortened(kept, resting)
    return [*lines]


def _free(lines: Sequence[LineAt], x: int, y: int, resting: set[int]) -> bool:
    """Whether what is in place x is never read in these lines, nor at their end; and x is not written
    as long as y is used, but with what is in y at last.
    """
    for r, line in enumerate(lines):
        if x in read(line):
            return False
        if x in written(line):
            back = (line.kind, line.source, line.target) == ("copy", y, x)
            after = lines[r + 1 :] if back else lines[r:]
            return all(y not in {*read(each), *written(each)} for each in after)
    return x not in resting


def _renamed(line: LineAt, new: Mapping[int, int]) -> LineAt:
    places = ("source", "target", "second", "third", "fourth", "fifth")
    was = {name: getattr(line, name) for name in places}
    renamed: dict[str, Any] = {name: new[place] for name, place in was.items() if place in new}
    return replace(line, **renamed) if renamed else line
