"""The runs of schedules that are listed: devices have what the checker finds, before each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from proofs.checking.lines import BACKWARD, UPDATE
from proofs.checking.operation_lines import COUNT, NORM, NOWHERE, NotCovered
from proofs.checking.symbols import MOMENT, NOTHING, STARTS, TOKENS, WEIGHT, cases
from proofs.checking.symbols import NORM as WHOLE
from proofs.plans.findings import Findings
from proofs.plans.listed_language import KIND, ListedLanguage
from proofs.plans.listing import Finding
from proofs.plans.reads_and_writes import read, written
from proofs.plans.rows import About, Begun, Found, Rows, Then
from proofs.tools.tables import Table
from proofs.trusted.kernel import Bool, KernelError, Theorem
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or

Variants = Mapping[int, tuple[Found, ...]]
GROUPS = ("all_gather", "all_reduce", "broadcast")
COMPUTED = (BACKWARD.name, UPDATE.name, NORM, COUNT)


class ListedRun:
    """What devices have before each row, in the run of one of some schedules."""

    def __init__(self, l: ListedLanguage, findings: Findings, rows: Rows) -> None:
        self.l, self.k, self.findings, self.listed = l, l.k, findings, rows
        k, t, d = self.k, l.t, l.d
        self.every = range(len(rows.rows))
        self._of_kinds: dict[str, Theorem] = {}
        params = [t, l.s, l.d, l.i, l.j]
        self.lines = Table(k, "line", [t], map(self._line, self.every))
        self.before = Table(k, "before_line", params, map(self._before, self.every))
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
        rests = ((self.is_one_of(begun), resting[begun.name][0](l.b)) for begun in rows.begun)
        self.all_rest = k.suppose("what_rests", [l.b], And(*(Implies(*each) for each in rests)))
        self.meant = {name: meaning for name, (_, meaning) in resting.items()}
        self.off = k.choose(
            "is_off",
            [t, l.s, l.i, l.j],
            d,
            And(l.is_device(d), Not(self.before.of(l.line_of(t), *params))),
        )
        self.never_off = self._never_off()

    def rests(self, begun: Begun) -> list[Theorem]:
        """What rests in schedules that begin so."""
        return [self.all_rest, self.meant[begun.name]]

    def is_one_of(self, begun: Begun) -> Bool:
        """Whether the schedule is one of those that begin so."""
        return among(self.l.number, begun.numbers)

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

    # ---------------------------------------------------------- what the checker finds
    def _before(self, r: int) -> Bool:
        """Which schedule it is, if not any of them, and what is found in each place."""
        l, row = self.l, self.listed.rows[r]
        l.names_of_axes = row.about.axes
        said = [among(l.number, row.numbers)] if len(row.numbers) < self.listed.schedules else []
        for place, variants in row.found.items():
            for each in variants:
                holds = self.findings.holds(each.finding, l.t, place)
                always = each.numbers == row.numbers
                said.append(holds if always else Implies(among(l.number, each.numbers), holds))
        return And(*said)

    def found(self, r: int, places: set[int], numbers: Set[int], **at: Any) -> list[Theorem]:
        """What is found in some places before row r says, in some schedules."""
        l = self.l
        t, d, i = (at.get(name, value) for name, value in (("t", l.t), ("d", l.d), ("i", l.i)))
        means, before = self.findings.means, self.listed.rows[r].in_some(numbers)
        here = {p: before[p] for p in sorted(places) if p in before}
        return [means(each.finding, t, p, d, i) for p, found in here.items() for each in found]

    @property
    def on_track(self) -> Bool:
        """Whether all devices have what is found before line t."""
        l = self.l
        return Not(self.off[0](l.t, l.s, l.i, l.j))

    def finds_on(
        self, device: Any, r: int, places: set[int], numbers: Set[int], **at: Any
    ) -> list[Theorem]:
        """What is found in some places of a device before row r, if the run is not off."""
        at = {"d": device, **at}
        return [self.off[2].at(**at), *self.before.at(r, **at), *self.found(r, places, numbers, **at)]

    # ------------------------------------------------------------------ line by line
    def _never_off(self) -> Theorem:
        """Before every line, devices have what the checker finds."""
        l, k, t, zero = self.l, self.k, self.l.t, IntVal(0)
        begins = [self._at_first(begun) for begun in self.listed.begun]
        begin = k.prove(
            "all_begin",
            self._is_so(zero),
            l.on_devices,
            [*begins, l.is_listed],
        )
        given = [*l.line, *l.on_devices, self.on_track]
        by_line = self.before.joined(
            "lines_lead", self._is_so(t + 1), l.line_of(t), given, map(self._leads, self.every)
        )

        def who(time: Any) -> dict[str, Any]:
            return {"d": self.off[1](time, l.s, l.i, l.j)}

        return k.induct(
            "all_is_as_the_checker_finds",
            t,
            And(self._is_a_row(t), self.on_track),
            [t <= l.last, l.i >= 0, l.i < l.n],
            base=[self.off[3].at(t=zero), begin.at(**who(zero)), begin.at(d=l.i)],
            step=[self.off[3].at(t=t + 1), by_line.at(d=l.i), by_line.at(**who(t + 1))],
        )

    def _is_a_row(self, t: Any) -> Bool:
        return self.before.has(self.l.line_of(t))

    def _is_so(self, t: Any) -> Bool:
        """Line t is a row, and device d has what is found before it."""
        l = self.l
        return And(self._is_a_row(t), self.before.of(l.line_of(t), t, l.s, l.d, l.i, l.j))

    def _at_first(self, begun: Begun) -> Theorem:
        l, zero, r, resting = self.l, IntVal(0), begun.first, begun.starts
        found, numbers = self.listed.rows[r].in_some({*begun.numbers}), {*begun.numbers}
        alone = {(start, found.get(p)): p for p, start in resting.items()}
        return self.k.prove(
            f"{begun.name}_begins",
            self._is_so(zero),
            [self.is_one_of(begun), *l.on_devices],
            [
                *self.before.at(r, t=zero),
                l.begins,
                *self.rests(begun),
                *(
                    each.at(b=IntVal(p))
                    for p in resting
                    for each in (l.amounts_begin, l.unknowns_begin)
                ),
                *self.found(r, {*alone.values()}, numbers, t=zero),
                *(l.mesh.holds_is.at(b=IntVal(p)) for p in resting if begun.slices[p]),
                *(l.names.at(w=w, u=zero, m=zero) for w in (WEIGHT, MOMENT)),
                *l.bounds,
            ],
        )

    def _leads(self, r: int) -> Theorem:
        """From what is found before row r to what is found before the next."""
        l, rows = self.l, self.listed
        t, d, row = l.t, l.d, rows.rows[r]
        line, now, flows = row.line, row.found, rows.next_to(r)
        l.names_of_axes = row.about.axes
        then = {n: rows.rows[n].in_some(numbers) for n, numbers in flows.items()}
        left = {place for found in then.values() for place in found}
        kept = left - {*written(line)}
        reads, writes = self._says(r)
        copied = {line.target: now.get(line.source, ())} if line.kind == "copy" else {}
        means: list[Theorem] = []
        numbers: set[int] = set()  # of schedules in which something else is found of what is kept
        for n, found in then.items():
            begins = n in rows.begins(r)
            other = {p for p in kept & {*found} if begins or not row.stays(p, found[p])}
            reads, numbers = reads | other, numbers | (flows[n] if other else set())
            about = self._once({**now, **copied}, found, other | writes)
            means += self.found(n, about, flows[n], t=t + 1)
        some = any(len(rows.rows[n].numbers) < rows.schedules for n in then)
        goes_on = bool(reads or kept) or some or line.kind in ("copy", "keep")
        facts = [
            *(self.program, *self.lines.at(r)),
            *(self.finds_on(d, r, reads, numbers or row.numbers) if goes_on else []),
            *(fact for n in then for fact in self.before.at(n, t=t + 1)),
            *{str(each.goal): each for each in means}.values(),
            *(l.elsewhere(p) for p in sorted(kept)),
            *([l.leaves(line.kind)] if line.target in left else []),
            *self._of_kind(r, left),
            *(l.bounds if any(each.turn != NOWHERE for each in rows.then[r]) else []),
            *([l.is_listed] if len(rows.then[r]) > 1 and len(row.numbers) == rows.schedules else []),
        ]
        given = [*l.line, *l.on_devices, l.line_of(t) == r]
        given += [self.on_track] if goes_on or line.kind in GROUPS else []
        try:
            return self.k.prove(f"line_{r}_leads", self._is_so(t + 1), given, facts)
        except KernelError as why:
            raise KernelError(f"z3 has not proved what is there after: {line.said}") from why

    def _once(self, now: Variants, then: Variants, places: set[int]) -> set[int]:
        """Of places that had and have the same, and on all devices, one."""
        once: dict[Any, int] = {}
        for p in places:
            found = then.get(p, ())
            in_part = not found or any(self.findings.where(each.finding) for each in found)
            once[p if in_part or p not in now else (now[p], found)] = p
        return {*once.values()}

    def _says(self, r: int) -> tuple[set[int], set[int]]:
        """The places of which a line needs what is found on the device before it, and after it."""
        row, rows = self.listed.rows[r], self.listed.rows
        line, nexts = row.line, self.listed.next_to(r)
        made = {line.target, *written(line)}
        if line.kind in (*COMPUTED, *GROUPS):
            return set(), made
        afters = (rows[n].after(line.target, numbers) for n, numbers in nexts.items())
        found = {*filter(None, afters)}
        same = found == {row.at(line.source)}
        if line.kind == "copy" and same and not self.listed.begins(r):
            return set(), set()
        own = line.kind == "keep" and row.about.axes.index(line.axis)
        if line.kind == "keep" and found and all(own in each.owned for each in found):
            return set() if same else {line.source}, made
        return read(line), made

    def _of_kind(self, r: int, left: Set[int]) -> list[Theorem]:
        """What a line is about, besides places. `left`: those of which something is found after it."""
        l, t, d, i, j = self.l, self.l.t, self.l.d, self.l.i, self.l.j
        line, mesh = self.listed.rows[r].line, self.l.mesh
        if line.kind == BACKWARD.name:
            return [l.name_is_its_own, *l.bounds, l.contribution_is, mesh.apart_is]
        if line.kind == UPDATE.name:
            after = l.step(t) + 1
            moments = [l.leaves("moments"), l.state_is(MOMENT, after)] * (line.second in left)
            return [*moments, *l.bounds, *([l.state_is(WEIGHT, after)] * (line.target in left))]
        if line.kind == NORM:
            return [*l.bounds, l.state_is(WHOLE, l.step(t))]
        if line.kind == COUNT:
            return [l.name_is_its_own, *l.bounds, l.count_is, mesh.apart_is]
        if line.kind == "keep":
            return mesh.places_of if line.target in left else []
        if line.kind == "scale":
            return [is_one for _, is_one in l.inverses.values()]
        if line.target not in left:
            return []  # nothing is said of what the group gets
        if line.kind == "all_reduce":
            return [self._group(r), mesh.size_is, mesh.on_axes.at(d=i, a=mesh.axis(t))]
        if line.kind in GROUPS:  # one of the group has it
            one = mesh.owner(t, d, j) if line.kind == "all_gather" else IntVal(0)
            numbers = self.listed.rows[r].numbers
            found = self.finds_on(mesh.member(t, d, one), r, {line.source}, numbers)
            return [*found, *self._there(r, one), mesh.owner_is, mesh.inside.at(c=one)]
        return []

    def _source(self, r: int) -> Finding:
        """What is found where a line reads. Raises KernelError where nothing is."""
        row = self.listed.rows[r]
        found = row.at(row.line.source)
        if found is None:
            raise KernelError(f"nothing is found in the source of: {row.line.said}")
        return found

    def _there(self, r: int, c: Any) -> list[Theorem]:
        """Where a member of a group is, along the axes of which the finding speaks."""
        coordinates = self.findings.coordinates(self._source(r))
        return [self.l.members.at(c=c, x=IntVal(x)) for x in coordinates]

    def _group(self, r: int) -> Theorem:
        """What a group adds up to."""
        l = self.l
        t, s, d, i, j, c = l.t, l.s, l.d, l.i, l.j, l.c
        row, mesh = self.listed.rows[r], l.mesh
        line, b = row.line, l.source(t)
        axis = row.about.axes.index(line.axis)
        found, findings = self._source(r), self.findings
        if found.is_along(axis):
            raise NotCovered(f"sums over {line.axis} of slices along {line.axis}")
        member = mesh.member(t, d, c)
        return self.k.induct(
            f"a_group_in_line_{r}",
            c,
            And(
                l.in_group(t, b, s, d, i, j, c)
                == findings.amount(found, l.step(t), l.turn(t), axis, c),
                l.unknowns_in_group(t, b, d, j, c) == 0,
            ),
            [
                *(*l.line, *l.on_devices, l.line_of(t) == r, self.on_track),
                *(c <= mesh.size(t), *findings.where(found)),
            ],
            base=[
                l.in_group.start.at(b=b),
                l.unknowns_in_group.start.at(b=b),
                mesh.on_axes.at(d=i, a=IntVal(axis)),
            ],
            step=[
                *(l.in_group.next.at(b=b), l.unknowns_in_group.next.at(b=b)),
                *(
                    self.program,
                    *self.lines.at(r),
                    *self.finds_on(member, r, {line.source}, row.numbers),
                ),
                *self._there(r, c),
                mesh.inside,
            ],
        ).at(c=mesh.size(t))

    # ------------------------------------------------------------------ comparisons
    def compared(self, r: int, what: Any = None) -> list[Theorem]:
        """What is found where row r reads; of an update weight and gradient, its moment, its norm, or
        its count.
        """
        l, zero, line = self.l, IntVal(0), self.listed.rows[r].line
        facts = [self.never_off.at(i=i) for i in (l.i, zero)]
        numbers = {MOMENT: line.second, WHOLE: line.fourth, TOKENS: line.fifth}
        beside = numbers if line.kind == UPDATE.name else {}
        places = {beside[what]} if what is not None else read(line) - {*beside.values()}
        for i in (l.i, zero):
            facts += self.finds_on(l.d, r, places, self.listed.rows[r].numbers, i=i)
        of_step = what is None or what is TOKENS
        states = (what,) if not of_step else () if line.kind == NORM or what is TOKENS else (WEIGHT,)
        return [
            *(*facts, self.program, *self.lines.at(r)),
            *(l.state_is(w, l.step(l.t)) for w in states),
            *l.bounds,
        ]

    def of_owners(self, r: int, asks: Any) -> list[Theorem]:
        """Where the owner of an element is in the group of a device, whose slices a norm is of."""
        row, l = self.listed.rows[r], self.l
        found = row.at(row.line.source)
        axes = self.findings.coordinates(found) if found else []
        return [l.mesh.owners_in_norms.at(d=asks, x=IntVal(x)) for x in axes]

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

    def met(self, r: int) -> list[Bool]:
        """Where an update is, along the axes along which it is of slices."""
        row, l, mesh = self.listed.rows[r], self.l, self.l.mesh
        along = (IntVal(x) for x, axis in enumerate(row.about.axes) if axis in row.line.axes)
        own = {x: mesh.along(l.d, x) == mesh.owner_along(x, l.j) for x in along}
        return [Implies(l.updates_slices(l.t, x), owns) for x, owns in own.items()]

    def kept_at_the_end(self, begun: Begun, start: str) -> list[Theorem]:
        """What is found where copies of a start are kept, at the end of a step."""
        l, end, places = self.l, self.l.ends(self.l.u), {*begun.keeps(start)}
        facts = [*self.rests(begun), l.steps_end]
        facts += [l.mesh.holds_is] if "slices" in start else []
        for i in (l.i, IntVal(0)):
            facts += [self.never_off.at(t=end, i=i)]
            facts += self.finds_on(l.d, begun.first, places, {*begun.numbers}, t=end, i=i)
        return [*facts, l.state_is(MOMENT if "Moment" in start else WEIGHT, l.u + 1)]


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
