"""The runs of schedules that are listed: devices have what the checker finds, before each row."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from proofs.checking.lines import BACKWARD, UPDATE
from proofs.checking.operation_lines import COUNT, NORM, NOWHERE, NotCovered
from proofs.checking.symbols import MOMENT, TOKENS, WEIGHT
from proofs.checking.symbols import NORM as WHOLE
from proofs.plans.findings import Findings
from proofs.plans.listed_language import ListedLanguage
from proofs.plans.listed_program import COMPUTED, ListedProgram, among
from proofs.plans.listing import Finding
from proofs.plans.reads_and_writes import read, written
from proofs.plans.rows import Begun, Found, Rows, findings_of
from proofs.tools.tables import Table
from proofs.trusted.kernel import Bool, KernelError, Theorem
from proofs.trusted.terms import And, Implies, IntVal, Not

Variants = Mapping[int, tuple[Found, ...]]
GROUPS = ("all_gather", "all_reduce", "broadcast")


class ListedRun(ListedProgram):
    """What devices have before each row, in the run of one of some schedules."""

    def __init__(self, l: ListedLanguage, findings: Findings, rows: Rows) -> None:
        super().__init__(l, rows)
        self.findings = findings
        params = [l.t, l.s, l.d, l.i, l.j]
        self.before = Table(self.k, "before_line", params, map(self._before, self.every))
        self.off = self.k.choose(
            "is_off",
            [l.t, l.s, l.i, l.j],
            l.d,
            And(l.is_device(l.d), Not(self.before.of(l.line_of(l.t), *params))),
        )
        self.never_off = self._never_off()

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
        begin = k.prove("all_begin", self._is_so(zero), l.on_devices, [*begins, l.is_listed])
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
        alone = {(start, findings_of(found.get(p, ()))): p for p, start in resting.items()}
        words = "".join(resting.values())
        begun_as = [w for w, word in ((WEIGHT, "Weight"), (MOMENT, "Moment")) if word in words]
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
                *(l.names.at(w=w, u=zero, m=zero) for w in begun_as),
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
            same = line.kind == "copy" and not begins
            same = same and rows.rows[n].after(line.target, flows[n]) == row.at(line.source)
            opened = other | writes - ({line.target} if same else set())
            about = self._once({**now, **copied}, found, opened, line.target)
            means += [self.findings.means(each, t + 1, p, d, l.i) for p, each in about]
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

    def _once(
        self, now: Variants, then: Variants, places: set[int], first: int
    ) -> list[tuple[int, Finding]]:
        """What is found in some places. Of those that are alike, were so, and have it on all devices,
        one: that which has it in most schedules, the `first` if it is one of these.
        """

        def before(p: int, numbers: Set[int]) -> set[Finding]:
            return {v.finding for v in now.get(p, ()) if not v.numbers.isdisjoint(numbers)}

        def covers(other: int, its: Found, p: int, each: Found) -> bool:
            like = its.finding == each.finding and its.numbers >= each.numbers
            return like and before(other, each.numbers) == before(p, each.numbers)

        chosen: list[tuple[int, Found]] = []
        found = [(p, each) for p in places for each in then.get(p, ())]
        for p, each in sorted(found, key=lambda of: (-len(of[1].numbers), of[0] != first, of[0])):
            in_part = p not in now or self.findings.where(each.finding)
            if in_part or not any(covers(*one, p, each) for one in chosen):
                chosen.append((p, each))
        return [(p, each.finding) for p, each in chosen]

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
        places = self._read(r, what)
        for i in (l.i, zero):
            facts += self.finds_on(l.d, r, places, self.listed.rows[r].numbers, i=i)
        of_step = what is None or what is TOKENS
        states = (what,) if not of_step else () if line.kind == NORM or what is TOKENS else (WEIGHT,)
        return [
            *(*facts, self.program, *self.lines.at(r)),
            *(l.state_is(w, l.step(l.t)) for w in states),
            *l.bounds,
        ]

    def _read(self, r: int, what: Any) -> set[int]:
        """The places that row r reads: of an update of weight and gradient, or of one of the others."""
        line = self.listed.rows[r].line
        numbers = {MOMENT: line.second, WHOLE: line.fourth, TOKENS: line.fifth}
        beside = numbers if line.kind == UPDATE.name else {}
        return {beside[what]} if what is not None else read(line) - {*beside.values()}

    def of_owners(self, r: int, asks: Any) -> list[Theorem]:
        """Where the owner of an element is in the group of a device, whose slices a norm is of."""
        row, l = self.listed.rows[r], self.l
        found = row.at(row.line.source)
        axes = self.findings.coordinates(found) if found else []
        return [l.mesh.owners_in_norms.at(d=asks, x=IntVal(x)) for x in axes]

    def met(self, r: int, what: Any = None) -> list[Bool]:
        """Where an update is, along the axes along which it is of slices; if what it reads is."""
        row, l, mesh = self.listed.rows[r], self.l, self.l.mesh
        found = map(row.at, self._read(r, what))
        if not any(self.findings.where(each) for each in found if each):
            return []
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
