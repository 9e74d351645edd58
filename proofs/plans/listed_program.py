"""The lines of schedules that are listed, as hypotheses: what each is, what follows it, what rests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proofs.checking.lines import BACKWARD, UPDATE
from proofs.checking.operation_lines import COUNT, NORM, NOWHERE
from proofs.checking.symbols import NOTHING, STARTS, cases
from proofs.plans.listed_language import KIND, ListedLanguage
from proofs.plans.rows import About, Begun, Rows, Then
from proofs.tools.tables import Table
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or

AT_ONCE = 13  # ways to begin, of which one hypothesis speaks
COMPUTED = (BACKWARD.name, UPDATE.name, NORM, COUNT)


class ListedProgram:
    """Line t is the row that line_of(t) says, of the schedule; a step begins with its first row."""

    def __init__(self, l: ListedLanguage, rows: Rows) -> None:
        self.l, self.k, self.listed, self.every = l, l.k, rows, range(len(rows.rows))
        self._of_kinds: dict[str, Theorem] = {}
        k, t = self.k, l.t
        self.lines = Table(k, "line", [t], map(self._line, self.every))
        kinds = rows.kinds.items()
        kind = Or(*(And(among(l.line_of(t), each), l.kind(t) == KIND[name]) for name, each in kinds))
        unread = (Not(r) for r, has in ((l.reads_norm, l.clips), (l.reads_count, l.counts)) if not has)
        self.program = k.suppose(
            "lines_are_those_that_are_listed",
            [t],
            Implies(And(*l.line), And(self.lines.of(l.line_of(t), t), kind, *unread)),
        )
        resting = {
            begun.name: k.define(f"what_rests_in_{begun.name}", [l.b], self._rests(begun))
            for begun in rows.begun
        }
        self.meant = {name: meaning for name, (_, meaning) in resting.items()}
        self.rest_in: dict[str, Theorem] = {}
        for first in range(0, len(rows.begun), AT_ONCE):
            some = rows.begun[first : first + AT_ONCE]
            each = (Implies(self.is_one_of(b), resting[b.name][0](l.b)) for b in some)
            rests = k.suppose(f"what_rests_in_lists_from_{first}", [l.b], And(*each))
            self.rest_in |= {begun.name: rests for begun in some}

    def rests(self, begun: Begun) -> list[Theorem]:
        """What rests in schedules that begin so."""
        return [self.rest_in[begun.name], self.meant[begun.name]]

    def is_one_of(self, begun: Begun) -> Bool:
        """Whether the schedule is one of those that begin so."""
        return among(self.l.number, begun.numbers)

    def of_kind(self, kind: str) -> Theorem:
        """Which rows lines of a kind are."""
        if kind not in self._of_kinds:
            l, k, t = self.l, self.k, self.l.t
            self._of_kinds[kind] = k.prove(
                f"{kind}_lines",
                among(l.line_of(t), self.listed.of_kind(kind)),
                [*l.line, l.kind(t) == KIND[kind]],
                [self.program],
            )
        return self._of_kinds[kind]

    # ------------------------------------------------------------------ the schedules
    def _line(self, r: int) -> Bool:
        """What line t is, and which line comes next, if it is row r of the list."""
        l, t, row = self.l, self.l.t, self.listed.rows[r]
        line, about = row.line, row.about
        l.names_of_axes = about.axes
        of = (
            (l.target, line.target),
            (l.source, line.source),
            (l.second, line.second),
            (l.third, line.third),
            (l.fourth, line.fourth),
            (l.fifth, line.fifth),
        )
        said = [place(t) == IntVal(number) for place, number in of if number != NOWHERE]
        if line.kind == "scale":
            said.append(l.factor(t) == l.real(line.factor))
        if line.axis:
            said.append(l.mesh.axis(t) == about.axes.index(line.axis))
        if line.kind == NORM:
            said += [l.mesh.adds(t, IntVal(about.axes.index(axis))) for axis in line.axes]
        if line.kind in (BACKWARD.name, COUNT) and l.turn is not l.micro:
            again = line.micro_step != 0
            said.append(l.micro(t) == (l.turn(t) + l.turns if again else l.turn(t)))
        if line.kind in COMPUTED:
            of_slices = line.axes if line.kind == UPDATE.name else ()
            along = {about.axes.index(axis) for axis in of_slices}
            cuts = ((x, l.updates_slices(t, IntVal(x))) for x in l.sliced)
            said += [cut if x in along else Not(cut) for x, cut in cuts]
        return And(*said, self._about(about, line.kind), self._next(r))

    def _about(self, about: About, kind: str) -> Bool:
        """What is so of each schedule that has such a line."""
        l = self.l
        said = [l.mesh.axes == len(about.axes)]
        if l.turns is not l.micro_steps:
            said.append(l.micro_steps == (l.turns + l.turns if about.tied else l.turns))
        said += [l.turns == 1] * about.once
        if kind in (UPDATE.name, NORM):
            said += [l.reads_norm if about.clips else Not(l.reads_norm)] * l.clips
            said += [l.reads_count if about.counts else Not(l.reads_count)] * l.counts
            said += [Not(l.reads_moment)] * (not about.moments)
        return And(*said)

    def _next(self, r: int) -> Bool:
        """What comes next, in which schedules."""
        options = [*self.listed.then[r].items()]
        found = self._then(options[-1][0])
        for then, schedules in reversed(options[:-1]):
            found = If(among(self.l.number, schedules), self._then(then), found)
        return found

    def _then(self, then: Then) -> Bool:
        l, t = self.l, self.l.t
        m, u = l.turn(t), l.step(t)

        def follows(row: int, micro_step: Any, step: Any) -> Bool:
            return And(l.line_of(t + 1) == row, l.turn(t + 1) == micro_step, l.step(t + 1) == step)

        if then.ends:
            return follows(then.row, IntVal(0), u + 1)
        if then.turn != NOWHERE:
            return If(m + 1 < l.turns, follows(then.turn, m + 1, u), follows(then.row, m, u))
        return follows(then.row, m, u)

    def _rests(self, begun: Begun) -> Bool:
        """With which row a step begins, what there is at first, what is kept, cut along which axes."""
        l, b = self.l, self.l.b
        kept = {p: STARTS[start] for p, start in begun.starts.items() if "Zero" not in start}
        said = [l.first_row == begun.first, l.kept(b) == cases(b, kept, NOTHING)]
        for p, start in begun.starts.items():
            along = {begun.axes.index(axis) for axis in begun.slices[p]}
            cuts = ((x, l.mesh.is_cut(IntVal(p), IntVal(x))) for x in l.sliced)
            said.append(l.start(IntVal(p)) == STARTS[start])
            if "slices" in start:
                said += [Not(cut) for x, cut in cuts if x not in along]
            if "slices" in start and "Zero" not in start:
                said += [l.mesh.is_cut(IntVal(p), IntVal(x)) for x in sorted(along)]
        return And(*said)


def among(number: Any, these: Iterable[int]) -> Bool:
    """Whether a number is one of these: of a few, or from one to another."""
    found, numbers = [], sorted(these)
    while numbers:
        first = last = numbers.pop(0)
        while numbers and numbers[0] == last + 1:
            last = numbers.pop(0)
        alone = first == last
        found.append(number == first if alone else And(number >= first, number <= last))
    return Or(*found)
