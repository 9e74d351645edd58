"""A run of the checker leaves a theorem: schedules that are listed match a single device.

For every number of devices along each axis, of micro-steps and of steps. What the checker finds in
places before a line, written as amounts, is what devices have there: each line is shown to lead from
what it finds before to what it finds after, so by induction over the lines of the flat run it is so
always. So the comparisons that T2 supposes come out equal, and what T2 concludes holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from proofs.checking import symbols
from proofs.checking.content import Content
from proofs.checking.coordinates import Coordinates
from proofs.checking.every_line import EveryLine
from proofs.checking.lines import BACKWARD, MOVES, UPDATE
from proofs.checking.matching import Read, Where
from proofs.checking.operation_lines import NOWHERE
from proofs.checking.symbolic_schedule import Language
from proofs.checking.symbols import (
    BOOL,
    CONTRIBUTION,
    INT,
    KINDS,
    MOMENT,
    NOTHING,
    STARTS,
    WEIGHT,
    cases,
)
from proofs.plans.findings import Findings
from proofs.plans.listing import Listing, nexts, read, written
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, Not, Or

KIND = {**KINDS, BACKWARD.name: symbols.BACKWARD, UPDATE.name: symbols.UPDATE}
STATE = {"weight": WEIGHT, "moment": MOMENT}
OWNER = 0


class ListedLanguage(Language):
    """The language, of schedules that are listed, on a mesh of axes.

    schedule_number: which of them it is. line_of(t): which line of it line t is. updates_slices(t, a):
    whether an update is of slices along axis a. is_cut(b, a): whether place b is.
    """

    mesh: Coordinates
    most: int  # axes

    def __init__(self, k: Kernel, most: int) -> None:
        self.most = most
        super().__init__(k)

    def _mesh(self) -> Coordinates:
        k, b, d, j = self.k, self.b, self.d, self.j
        mesh = Coordinates(self)
        self.number, self.line_of = k.fixed("schedule_number", INT), k.function("line_of", INT, INT)
        self.updates_slices, self.is_cut = (
            k.function(name, INT, INT, BOOL) for name in ("updates_slices", "is_cut")
        )
        axes = [IntVal(x) for x in range(self.most)]
        cut = And(
            *(Implies(self.is_cut(b, x), mesh.along(d, x) == mesh.owner_along(x, j)) for x in axes)
        )
        mesh.holds, mesh.holds_is = k.define("holds", [b, d, j], cut)
        return mesh

    def is_right(self, t: Any, d: Any) -> Bool:
        return BoolVal(True)

    def is_met(self, t: Any, d: Any, j: Any) -> Bool:
        """An update is, of the elements that a device owns, along the axes along which it is of slices."""
        axes = [IntVal(x) for x in range(self.most)]
        along, owner = self.mesh.along, self.mesh.owner_along
        return And(*(Implies(self.updates_slices(t, x), along(d, x) == owner(x, j)) for x in axes))

    def is_lost(self, t: Any, d: Any, j: Any) -> Bool:
        return Not(self.is_met(t, d, j))


class ListedRuns(EveryLine):
    """Runs of listed schedules. The comparisons of T2 are proved of them."""

    l: ListedLanguage

    def __init__(self, k: Kernel, schedules: Mapping[str, Listing]) -> None:
        super().__init__(ListedLanguage(k, max(len(each.axes) for each in schedules.values())))
        l, (t, b, s, d, i, j) = self.l, self.variables()
        self.on_devices = [*self.on_a_device, i >= 0, i < l.n]
        self.begins = k.suppose(
            "the_run_begins_with_the_first_line",
            [],
            And(l.line_of(0) == 0, l.micro(0) == 0, l.step(0) == 0),
        )
        end = l.ends(l.u)
        self.ends = k.suppose(
            "a_step_ends_where_the_next_begins",
            [l.u],
            Implies(
                And(l.u >= 0, end >= 0, end <= l.last),
                And(l.line_of(end) == 0, l.micro(end) == 0, l.step(end) == l.u + 1),
            ),
        )
        self.one_of_these = k.suppose(
            "the_schedule_is_listed", [], And(l.number >= 0, l.number < len(schedules))
        )
        self.findings = Findings(l)
        self._laws()
        self.runs = [ListedRun(self, q, *each) for q, each in enumerate(schedules.items())]

    # ------------------------------------------------------------------------- laws
    def _laws(self) -> None:
        """What each kind of line makes of amounts, and where it leaves them; what names say."""
        l, k, (t, b, s, d, i, j) = self.l, self.k, self.variables()
        mesh, x = l.mesh, l.mesh.x
        self.leaves: dict[str, Theorem] = {}
        both = [l.of_amounts, l.of_unknowns]

        def after(
            name: str, place: Any, made: Callable[[Content], Any], given: Sequence[Bool]
        ) -> Theorem:
            of = zip(
                (l.amount(t + 1, place, s, d, i, j), l.unknowns(t + 1, place, d, j)), both, strict=True
            )
            runs = [l.amounts_run.at(b=place), l.unknowns_run.at(b=place)]
            goal = And(*(has == made(content) for has, content in of))
            return k.prove(f"amounts_after_{name}", goal, [t >= 0, *self.on_devices, *given], runs)

        target, second = l.target(t), l.second(t)
        for move in MOVES:
            here = [l.kind(t) == KINDS[move.name]]
            self.leaves[move.name] = after(
                move.name, target, lambda content, move=move: l.moved_on(move, content), here
            )
        kinds = l.kind(t) == symbols.BACKWARD, l.kind(t) == symbols.UPDATE
        self.leaves[BACKWARD.name] = after(
            BACKWARD.name, target, lambda c: c.gradient, [kinds[0], target != second]
        )
        self.leaves[UPDATE.name] = after(
            UPDATE.name, target, lambda c: c.weight, [kinds[1], target != second]
        )
        self.leaves["moments"] = after("moments", second, lambda c: c.moment, [kinds[1]])
        self.elsewhere = after("elsewhere", b, lambda c: c.at(b, d), [l.untouched(b)])
        c = l.c
        self.members = k.prove(
            "members_of_a_group_differ_along_its_axis",
            mesh.along(mesh.member(t, d, c), x) == If(x == mesh.axis(t), c, mesh.along(d, x)),
            [*self.on_a_device, c >= 0, c < mesh.size(t)],
            [mesh.member_is, mesh.moves.at(a=mesh.axis(t)), mesh.on_axes, mesh.size_is],
        )

    def names_at(self, t: Any) -> list[Theorem]:
        """What the names of the original values of line t's step are of."""
        l, zero = self.l, IntVal(0)
        return [
            *(l.name_is_its_own, l.numbered.at(t=t)),
            l.names.at(w=CONTRIBUTION, u=l.step(t), m=l.micro(t)),
            *(l.names.at(w=w, u=l.step(t) + u, m=zero) for w in (WEIGHT, MOMENT) for u in (0, 1)),
        ]

    # ------------------------------------------------------------------ comparisons
    def agree(
        self,
        name: str,
        at: Sequence[Any],
        when: Callable[[Where], Sequence[Bool]],
        reads: Sequence[Read],
    ) -> Theorem:
        """What is read, or kept, compares equal: of each schedule."""
        l, (t, b, _, d, i, j) = self.l, self.variables()
        where = Where(l.is_right(t, d), l.is_met(t, d, j), l.mesh.holds(b, d, j))
        given = [*when(where), *self.on_a_device]
        compares = And(*(self.compares(*each) for each in reads))
        found = [
            self.k.prove(f"{name}_of_{run.name}", compares, [*given, run.is_it], run.compared_at(reads))
            for run in self.runs
        ]
        return self.k.prove(name, Implies(And(*given), compares), (), [*found, self.one_of_these])


class ListedRun:
    """The run of one listed schedule: what devices have before each of its lines."""

    def __init__(self, of: ListedRuns, number: int, name: str, listed: Listing) -> None:
        self.of, self.l, self.k, self.name, self.listed = of, of.l, of.k, name, listed
        l, k, (t, b, s, d, i, j) = self.l, self.k, of.variables()
        self.is_it = l.number == number
        self.axes = [IntVal(x) for x in range(len(listed.axes))]
        self.line_is = [
            k.define(f"{name}_line_{r}", [t], self._line(r)) for r in range(len(listed.lines))
        ]
        self.program = k.suppose(
            f"lines_are_those_of_{name}",
            [t],
            Implies(
                And(self.is_it, *of.line),
                And(*(Implies(l.line_of(t) == r, line(t)) for r, (line, _) in enumerate(self.line_is))),
            ),
        )
        self.rests = k.suppose(f"what_rests_in_{name}", [b], Implies(self.is_it, self._rests()))
        params = [t, s, d, i, j]
        self.before_is = [
            k.define(f"{name}_before_line_{r}", params, self._before(r))
            for r in range(len(listed.lines))
        ]
        self.off = [
            k.choose(
                f"{name}_is_off_at_{r}",
                [t, s, i, j],
                d,
                And(*of.on_a_device, Not(before(*params))),
            )
            for r, (before, _) in enumerate(self.before_is)
        ]
        self.never_off = self._never_off()

    # ------------------------------------------------------------------ the schedule
    def _line(self, r: int) -> Bool:
        """What line t is, and which line comes next, if it is line r of the list."""
        l, t, listed = self.l, self.l.t, self.listed
        line = listed.lines[r]
        of = (
            (l.target, line.target),
            (l.source, line.source),
            (l.second, line.second),
            (l.third, line.third),
        )
        said = [l.kind(t) == KIND[line.kind]]
        said += [place(t) == IntVal(number) for place, number in of if number != NOWHERE]
        if line.axis:
            said.append(l.mesh.axis(t) == listed.axes.index(line.axis))
        if line.kind in (BACKWARD.name, UPDATE.name):
            along = {listed.axes.index(axis) for axis in line.axes}
            cuts = (l.updates_slices(t, IntVal(x)) for x in range(l.most))
            said += [cut if x in along else Not(cut) for x, cut in enumerate(cuts)]
        return And(*said, self._next(r))

    def _next(self, r: int) -> Bool:
        l, t, listed = self.l, self.l.t, self.listed
        m, u = l.micro(t), l.step(t)

        def then(line: int, micro_step: Any, step: Any) -> Bool:
            return And(l.line_of(t + 1) == line, l.micro(t + 1) == micro_step, l.step(t + 1) == step)

        if r + 1 == len(listed.lines):
            return then(0, IntVal(0), u + 1)
        if r + 1 == listed.body:
            return If(m + 1 < l.micro_steps, then(0, m + 1, u), then(r + 1, m, u))
        return then(r + 1, m, u)

    def _rests(self) -> Bool:
        """What there is at first, what is kept, cut along which axes; and how many axes there are."""
        l, b, listed = self.l, self.l.b, self.listed
        kept = {p: STARTS[start] for p, start in listed.starts.items() if "Zero" not in start}
        said = [l.mesh.axes == len(listed.axes), l.kept(b) == cases(b, kept, NOTHING)]
        for p, start in listed.starts.items():
            along = {listed.axes.index(axis) for axis in listed.slices[p]}
            cuts = ((x, l.is_cut(IntVal(p), IntVal(x))) for x in range(l.most))
            said.append(l.start(IntVal(p)) == STARTS[start])
            said += [cut if x in along else Not(cut) for x, cut in cuts]
        if listed.body == len(listed.lines):
            said.append(l.micro_steps == 1)
        return And(*said)

    # ---------------------------------------------------------- what the checker finds
    def _before(self, r: int) -> Bool:
        """What is found in each place."""
        found = self.listed.before[r].items()
        return And(*(self.of.findings.holds(each, self.l.t, p) for p, each in found))

    def found(self, r: int, places: set[int], **at: Any) -> list[Theorem]:
        """What is found in some places before line r says."""
        l = self.l
        t, d, i = (at.get(name, value) for name, value in (("t", l.t), ("d", l.d), ("i", l.i)))
        means = self.of.findings.means
        before = self.listed.before[r]
        return [means(found, t, p, d, i) for p, found in before.items() if p in places]

    def is_off(self, r: int, t: Any) -> Bool:
        """Whether some device does not have what is found before line r."""
        return self.off[r][0](t, self.l.s, self.l.i, self.l.j)

    def finds_on(self, device: Any, r: int, places: set[int], **at: Any) -> list[Theorem]:
        """What is found in some places of a device before line r, if the run is not off."""
        at = {"d": device, **at}
        shown, before_is = self.off[r][2], self.before_is[r][1]
        return [shown.at(**at), before_is.at(**at), *self.found(r, places, **at)]

    # ------------------------------------------------------------------ line by line
    def _never_off(self) -> Theorem:
        """Before every line, devices have what the checker finds."""
        l, k, (t, _, s, _, i, j) = self.l, self.k, self.of.variables()
        begin, zero = self._at_first(), IntVal(0)
        rows = range(len(self.listed.lines))
        lines = [self._leads(r) for r in rows]
        found = [found for *_, found in self.off]

        def who(r: int, time: Any) -> dict[str, Any]:
            return {"d": self.off[r][1](time, s, i, j)}

        right = (Implies(l.line_of(t) == r, Not(self.is_off(r, t))) for r in rows)
        return k.induct(
            f"{self.name}_is_as_the_checker_finds",
            t,
            And(l.line_of(t) >= 0, l.line_of(t) < len(rows), *right),
            [self.is_it, t <= l.last, i >= 0, i < l.n],
            base=[found[0].at(t=zero), begin.at(**who(0, zero)), self.of.begins],
            step=[
                *(each.at(t=t + 1) for each in found),
                *(line.at(d=i) for line in lines),
                *(line.at(**who(n, t + 1)) for r, line in enumerate(lines) for n in self._next_to(r)),
            ],
        )

    def _next_to(self, r: int) -> tuple[int, ...]:
        return nexts(r, self.listed.body, len(self.listed.lines))

    def _at_first(self) -> Theorem:
        l, zero, resting = self.l, IntVal(0), self.listed.starts
        params = (zero, *self.of.variables()[2:])
        return self.k.prove(
            f"{self.name}_begins",
            self.before_is[0][0](*params),
            [self.is_it, *self.of.on_devices],
            [
                self.before_is[0][1].at(t=zero),
                self.of.begins,
                self.rests,
                *(
                    each.at(b=IntVal(p))
                    for p in resting
                    for each in (l.amounts_begin, l.unknowns_begin)
                ),
                *self.found(0, {*resting}, t=zero),
                *(l.mesh.holds_is.at(b=IntVal(p)) for p in resting if self.listed.slices[p]),
                *(l.names.at(w=w, u=zero, m=zero) for w in (WEIGHT, MOMENT)),
                l.numbered,
            ],
        )

    def _leads(self, r: int) -> Theorem:
        """From what is found before line r to what is found before the next."""
        l, (t, _, s, d, i, j), of, listed = self.l, self.of.variables(), self.of, self.listed
        line, following = listed.lines[r], self._next_to(r)
        now, then = listed.before[r], [listed.before[n] for n in following]
        kept = {p for each in then for p in each} - {*written(line)}
        ends = following != (r + 1,)  # a micro-step or a step: what is found speaks of another one
        other = {p for p in kept if ends or any(each.get(p) != now.get(p) for each in then)}
        facts = [
            *(self.program, self.line_is[r][1]),
            *self.finds_on(d, r, read(line) | other),
            *(self.before_is[n][1].at(t=t + 1) for n in following),
            *(each for n in following for each in self.found(n, {*written(line)} | other, t=t + 1)),
            *(of.elsewhere.at(b=IntVal(p)) for p in sorted(kept)),
            *([of.leaves[line.kind]] if any(line.target in each for each in then) else []),
            *self._of_kind(r),
            *([l.numbered] if r + 1 == listed.body else []),
        ]
        after = [And(l.line_of(t + 1) == n, self.before_is[n][0](t + 1, s, d, i, j)) for n in following]
        given = [self.is_it, *of.line, *of.on_devices, l.line_of(t) == r, Not(self.is_off(r, t))]
        return self.k.prove(f"line_{r}_of_{self.name}", Or(*after), given, facts)

    def _of_kind(self, r: int) -> list[Theorem]:
        """What a line is about, besides places."""
        l, (t, _, s, d, i, j), of = self.l, self.of.variables(), self.of
        line, mesh = self.listed.lines[r], self.l.mesh
        if line.kind == BACKWARD.name:
            return [*of.names_at(t)[:3], mesh.apart_is, self.rests]
        if line.kind == UPDATE.name:
            return [of.leaves["moments"], *of.names_at(t)[1:]]
        if line.kind == "keep":
            return mesh.places_of
        if line.kind == "all_gather":
            own = mesh.owner(t, d, j)
            there = [of.members.at(c=own, x=x) for x in self.axes]
            found = self.finds_on(mesh.member(t, d, own), r, {line.source})
            return [*found, *there, mesh.owner_is, mesh.inside.at(c=own)]
        if line.kind == "all_reduce":
            return [self._group(r), mesh.size_is, mesh.on_axes.at(d=i, a=mesh.axis(t))]
        return []

    def _group(self, r: int) -> Theorem:
        """What a group adds up to."""
        l, (t, _, s, d, i, j), of, c = self.l, self.of.variables(), self.of, self.l.c
        line, mesh = self.listed.lines[r], self.l.mesh
        axis, b = self.listed.axes.index(line.axis), l.source(t)
        found, findings = self.listed.before[r][line.source], of.findings
        if found.is_along(axis):
            raise KernelError(f"{self.name} adds up slices")
        member = mesh.member(t, d, c)
        return self.k.induct(
            f"a_group_in_line_{r}_of_{self.name}",
            c,
            And(
                l.in_group(t, b, s, d, i, j, c) == findings.amount(found, l.step(t), l.micro(t), axis, c),
                l.unknowns_in_group(t, b, d, j, c) == 0,
            ),
            [
                *(self.is_it, *of.line, *of.on_devices, l.line_of(t) == r, Not(self.is_off(r, t))),
                *(c <= mesh.size(t), findings.where(found)),
            ],
            base=[
                l.in_group.start.at(b=b),
                l.unknowns_in_group.start.at(b=b),
                mesh.on_axes.at(d=i, a=IntVal(axis)),
            ],
            step=[
                *(l.in_group.next.at(b=b), l.unknowns_in_group.next.at(b=b)),
                *(self.program, self.line_is[r][1], *self.finds_on(member, r, {line.source})),
                *(of.members.at(x=x) for x in self.axes),
                mesh.inside,
            ],
        ).at(c=mesh.size(t))

    # ------------------------------------------------------------------ comparisons
    def compared_at(self, reads: Sequence[Read]) -> list[Theorem]:
        """What is found where something is compared."""
        l, d, i, zero = self.l, self.l.d, self.l.i, IntVal(0)
        time = reads[0][0]
        lines = self.listed.lines
        computing = [r for r, line in enumerate(lines) if line.kind in (BACKWARD.name, UPDATE.name)]
        rows = computing if time is l.t else [0]
        facts = [self.never_off.at(t=time, i=device) for device in (i, zero)]
        for r, device in product(rows, (i, zero)):
            places = read(lines[r]) if time is l.t else {*self.listed.starts}
            facts += self.finds_on(d, r, places, t=time, i=device)
        of_lines = [self.program, *(is_ for _, is_ in self.line_is)]
        facts += of_lines if time is l.t else [self.of.ends, l.mesh.holds_is]
        facts += [self.rests] if time is not l.t or self.listed.body == len(lines) else []
        return [*facts, *(self.of.compared(*each) for each in reads), *self.of.names_at(time)]
