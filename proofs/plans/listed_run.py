"""The run of one schedule that is listed: devices have what the checker finds, before each line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofs.checking.lines import BACKWARD, UPDATE
from proofs.checking.operation_lines import COUNT, NORM, NOWHERE, NotCovered
from proofs.checking.symbols import MOMENT, NOTHING, STARTS, TOKENS, WEIGHT, cases
from proofs.checking.symbols import NORM as WHOLE
from proofs.plans.findings import Findings
from proofs.plans.listed_language import KIND, ListedLanguage
from proofs.plans.listing import Finding, Listing
from proofs.plans.reads_and_writes import nexts, read, written
from proofs.trusted.kernel import Bool, KernelError, Theorem
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or

Found = Mapping[int, Finding | None]
GROUPS = ("all_gather", "all_reduce", "broadcast")
COMPUTED = (BACKWARD.name, UPDATE.name, NORM, COUNT)


class ListedRun:
    """The run of one listed schedule: what devices have before each of its lines."""

    def __init__(
        self, l: ListedLanguage, findings: Findings, number: int, name: str, listed: Listing
    ) -> None:
        self.l, self.k, self.findings, self.name, self.listed = l, l.k, findings, name, listed
        k, t, b, s, d, i, j = self.k, l.t, l.b, l.s, l.d, l.i, l.j
        self.is_it = l.number == number
        self.axes = [IntVal(x) for x in range(len(listed.axes))]
        self._of_kinds: dict[str, Theorem] = {}
        l.names_of_axes = listed.axes
        self.line_is = [
            k.define(f"{name}_line_{r}", [t], self._line(r)) for r in range(len(listed.lines))
        ]
        self.program = k.suppose(
            f"lines_are_those_of_{name}",
            [t],
            Implies(
                And(self.is_it, *l.line),
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
                And(l.is_device(d), Not(before(*params))),
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
            (l.fourth, line.fourth),
            (l.fifth, line.fifth),
        )
        said = [l.kind(t) == KIND[line.kind]]
        said += [place(t) == IntVal(number) for place, number in of if number != NOWHERE]
        if line.kind == "scale":
            said.append(l.factor(t) == l.real(line.factor))
        if line.axis:
            said.append(l.mesh.axis(t) == listed.axes.index(line.axis))
        if line.kind == NORM:
            said += [l.mesh.adds(t, IntVal(listed.axes.index(axis))) for axis in line.axes]
        if line.kind in (BACKWARD.name, COUNT) and l.turn is not l.micro:
            again = line.micro_step != 0
            said.append(l.micro(t) == (l.turn(t) + l.turns if again else l.turn(t)))
        if line.kind in COMPUTED:
            of_slices = line.axes if line.kind == UPDATE.name else ()
            along = {listed.axes.index(axis) for axis in of_slices}
            cuts = ((x, l.updates_slices(t, IntVal(x))) for x in l.sliced)
            said += [cut if x in along else Not(cut) for x, cut in cuts]
        return And(*said, self._next(r))

    def _next(self, r: int) -> Bool:
        l, t, listed = self.l, self.l.t, self.listed
        m, u = l.turn(t), l.step(t)

        def then(line: int, micro_step: Any, step: Any) -> Bool:
            return And(l.line_of(t + 1) == line, l.turn(t + 1) == micro_step, l.step(t + 1) == step)

        if r + 1 == len(listed.lines):
            return then(0, IntVal(0), u + 1)
        if r + 1 == listed.body:
            return If(m + 1 < l.turns, then(0, m + 1, u), then(r + 1, m, u))
        return then(r + 1, m, u)

    def _rests(self) -> Bool:
        """What there is at first, what is kept, cut along which axes; and how many axes there are."""
        l, b, listed = self.l, self.l.b, self.listed
        kept = {p: STARTS[start] for p, start in listed.starts.items() if "Zero" not in start}
        said = [l.mesh.axes == len(listed.axes), l.kept(b) == cases(b, kept, NOTHING)]
        for p, start in listed.starts.items():
            along = {listed.axes.index(axis) for axis in listed.slices[p]}
            cuts = ((x, l.mesh.is_cut(IntVal(p), IntVal(x))) for x in l.sliced)
            said.append(l.start(IntVal(p)) == STARTS[start])
            if "slices" in start:
                said += [Not(cut) for x, cut in cuts if x not in along]
            if "slices" in start and "Zero" not in start:
                said += [l.mesh.is_cut(IntVal(p), IntVal(x)) for x in sorted(along)]
        if listed.body == len(listed.lines):
            said.append(l.turns == 1)
        if l.turns is not l.micro_steps:
            said.append(l.micro_steps == (l.turns + l.turns if listed.tied else l.turns))
        said.append(l.reads_norm if listed.clips else Not(l.reads_norm))
        said.append(l.reads_count if listed.counts else Not(l.reads_count))
        return And(*said)

    # ---------------------------------------------------------- what the checker finds
    def _before(self, r: int) -> Bool:
        """What is found in each place."""
        found = self.listed.before[r].items()
        return And(*(self.findings.holds(each, self.l.t, p) for p, each in found))

    def found(self, r: int, places: set[int], **at: Any) -> list[Theorem]:
        """What is found in some places before line r says."""
        l = self.l
        t, d, i = (at.get(name, value) for name, value in (("t", l.t), ("d", l.d), ("i", l.i)))
        means = self.findings.means
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
        l, k = self.l, self.k
        t, s, i, j = l.t, l.s, l.i, l.j
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
            base=[found[0].at(t=zero), begin.at(**who(0, zero)), l.begins],
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
        params = (zero, l.s, l.d, l.i, l.j)
        alone = {(start, self.listed.before[0].get(p)): p for p, start in resting.items()}
        return self.k.prove(
            f"{self.name}_begins",
            self.before_is[0][0](*params),
            [self.is_it, *l.on_devices],
            [
                self.before_is[0][1].at(t=zero),
                l.begins,
                self.rests,
                *(
                    each.at(b=IntVal(p))
                    for p in resting
                    for each in (l.amounts_begin, l.unknowns_begin)
                ),
                *self.found(0, {*alone.values()}, t=zero),
                *(l.mesh.holds_is.at(b=IntVal(p)) for p in resting if self.listed.slices[p]),
                *(l.names.at(w=w, u=zero, m=zero) for w in (WEIGHT, MOMENT)),
                *l.bounds,
            ],
        )

    def _leads(self, r: int) -> Theorem:
        """From what is found before line r to what is found before the next."""
        l, listed = self.l, self.listed
        t, s, d, i, j = l.t, l.s, l.d, l.i, l.j
        line, now = listed.lines[r], listed.before[r]
        then = {n: listed.before[n] for n in self._next_to(r)}
        kept = {p for each in then.values() for p in each} - {*written(line)}
        reads, writes = self._says(r)
        copied = {line.target: now.get(line.source)} if line.kind == "copy" else {}
        means: list[Theorem] = []
        for n, found in then.items():
            other = {p for p in kept if n == 0 or found.get(p) != now.get(p)}
            reads = reads | other
            means += self.found(n, self._once({**now, **copied}, found, other | writes), t=t + 1)
        goes_on = bool(reads or kept)
        facts = [
            *(self.program, self.line_is[r][1]),
            *(self.finds_on(d, r, reads) if goes_on else []),
            *(self.before_is[n][1].at(t=t + 1) for n in then),
            *{str(each.goal): each for each in means}.values(),
            *(l.elsewhere(p) for p in sorted(kept)),
            *([l.leaves(line.kind)] if any(line.target in each for each in then.values()) else []),
            *self._of_kind(r),
            *(l.bounds if len(then) > 1 else []),
        ]
        after = [And(l.line_of(t + 1) == n, self.before_is[n][0](t + 1, s, d, i, j)) for n in then]
        given = [self.is_it, *l.line, *l.on_devices, l.line_of(t) == r]
        given += [Not(self.is_off(r, t))] if goes_on or line.kind in GROUPS else []
        try:
            return self.k.prove(f"line_{r}_of_{self.name}", Or(*after), given, facts)
        except KernelError as why:
            raise KernelError(f"z3 has not proved what is there after: {line.said}") from why

    def _once(self, now: Found, then: Found, places: set[int]) -> set[int]:
        """Of places that had and have the same, and on all devices, one."""
        once = {}
        for p in places:
            found = then.get(p)
            in_part = found is None or self.findings.where(found)
            once[p if in_part or p not in now else (now[p], found)] = p
        return {*once.values()}

    def _says(self, r: int) -> tuple[set[int], set[int]]:
        """The places of which a line needs what is found on the device before it, and after it."""
        line, before = self.listed.lines[r], self.listed.before
        made = {line.target, *written(line)}
        if line.kind in (*COMPUTED, *GROUPS):
            return set(), made
        afters = (before[n].get(line.target) for n in self._next_to(r))
        after = next(filter(None, afters), None)
        same = after is not None and before[r].get(line.source) == after
        ends = r + 1 == self.listed.body == len(before)  # of a step that is one micro-step
        if line.kind == "copy" and same and not ends:
            return set(), set()
        if line.kind == "keep" and after and self.listed.axes.index(line.axis) in after.owned:
            return set() if same else {line.source}, made
        return read(line), made

    def _of_kind(self, r: int) -> list[Theorem]:
        """What a line is about, besides places."""
        l, t, d, i, j = self.l, self.l.t, self.l.d, self.l.i, self.l.j
        line, mesh = self.listed.lines[r], self.l.mesh
        if line.kind == BACKWARD.name:
            return [l.name_is_its_own, *l.bounds, l.contribution_is, mesh.apart_is, self.rests]
        if line.kind == UPDATE.name:
            after = l.step(t) + 1
            return [l.leaves("moments"), *l.bounds, *(l.state_is(w, after) for w in (WEIGHT, MOMENT))]
        if line.kind == NORM:
            return [*l.bounds, l.state_is(WHOLE, l.step(t))]
        if line.kind == COUNT:
            return [l.name_is_its_own, *l.bounds, l.count_is, mesh.apart_is, self.rests]
        if line.kind == "keep":
            return mesh.places_of
        if line.kind == "scale":
            return [is_one for _, is_one in l.inverses.values()]
        if not any(line.target in self.listed.before[n] for n in self._next_to(r)):
            return []  # nothing is said of what the group gets
        if line.kind == "all_reduce":
            return [self._group(r), mesh.size_is, mesh.on_axes.at(d=i, a=mesh.axis(t))]
        if line.kind in GROUPS:  # one of the group has it
            one = mesh.owner(t, d, j) if line.kind == "all_gather" else IntVal(0)
            found = self.finds_on(mesh.member(t, d, one), r, {line.source})
            return [*found, *self._there(r, one), mesh.owner_is, mesh.inside.at(c=one)]
        return []

    def _there(self, r: int, c: Any) -> list[Theorem]:
        """Where a member of a group is, along the axes of which the finding speaks."""
        found = self.listed.before[r][self.listed.lines[r].source]
        return [self.l.members.at(c=c, x=IntVal(x)) for x in self.findings.coordinates(found)]

    def _group(self, r: int) -> Theorem:
        """What a group adds up to."""
        l = self.l
        t, s, d, i, j, c = l.t, l.s, l.d, l.i, l.j, l.c
        line, mesh = self.listed.lines[r], self.l.mesh
        axis, b = self.listed.axes.index(line.axis), l.source(t)
        found, findings = self.listed.before[r][line.source], self.findings
        if found.is_along(axis):
            raise NotCovered(f"sums over {line.axis} of slices along {line.axis}")
        member = mesh.member(t, d, c)
        return self.k.induct(
            f"a_group_in_line_{r}_of_{self.name}",
            c,
            And(
                l.in_group(t, b, s, d, i, j, c)
                == findings.amount(found, l.step(t), l.turn(t), axis, c),
                l.unknowns_in_group(t, b, d, j, c) == 0,
            ),
            [
                *(self.is_it, *l.line, *l.on_devices, l.line_of(t) == r, Not(self.is_off(r, t))),
                *(c <= mesh.size(t), *findings.where(found)),
            ],
            base=[
                l.in_group.start.at(b=b),
                l.unknowns_in_group.start.at(b=b),
                mesh.on_axes.at(d=i, a=IntVal(axis)),
            ],
            step=[
                *(l.in_group.next.at(b=b), l.unknowns_in_group.next.at(b=b)),
                *(self.program, self.line_is[r][1], *self.finds_on(member, r, {line.source})),
                *self._there(r, c),
                mesh.inside,
            ],
        ).at(c=mesh.size(t))

    # ------------------------------------------------------------------ comparisons
    def compared(self, kind: str, what: Any = None) -> list[Theorem]:
        """What is found where a line of a kind reads; of an update weight and gradient, its moment, its
        norm, or its count.
        """
        l, zero = self.l, IntVal(0)
        facts = [self.never_off.at(i=i) for i in (l.i, zero)]
        for r, line in enumerate(self.listed.lines):
            if line.kind == kind:
                numbers = {MOMENT: line.second, WHOLE: line.fourth, TOKENS: line.fifth}
                beside = numbers if kind == UPDATE.name else {}
                places = {beside[what]} if what is not None else read(line) - {*beside.values()}
                for i in (l.i, zero):
                    facts += self.finds_on(l.d, r, places, i=i)
                facts.append(self.line_is[r][1])
        facts.append(self.of_kind(kind))
        of_step = what is None or what is TOKENS
        once = kind in (UPDATE.name, NORM) and of_step and self.listed.body == len(self.listed.lines)
        states = (what,) if not of_step else () if kind == NORM or what is TOKENS else (WEIGHT,)
        return [
            *facts,
            *(l.state_is(w, l.step(l.t)) for w in states),
            *l.bounds,
            *([self.rests] * (once or what is WHOLE or l.turns is not l.micro_steps)),
        ]

    def of_owners(self, asks: Any) -> list[Theorem]:
        """Where the owner of an element is in the group of a device, whose slices a norm is of."""
        l = self.l
        lines = [(r, line) for r, line in enumerate(self.listed.lines) if line.kind == NORM]
        found = filter(None, (self.listed.before[r].get(line.source) for r, line in lines))
        axes = {x for each in found for x in self.findings.coordinates(each)}
        return [l.mesh.owners_in_norms.at(d=asks, x=IntVal(x)) for x in sorted(axes)]

    def of_kind(self, kind: str) -> Theorem:
        """Which lines are of a kind: those of the list; if it does not clip none is a norm."""
        if kind not in self._of_kinds:
            l, k, t = self.l, self.k, self.l.t
            lines = [*zip(self.listed.lines, self.line_is, strict=True)]
            which = [
                And(l.line_of(t) == r, is_(t))
                for r, (line, (is_, _)) in enumerate(lines)
                if line.kind == kind
            ]
            others = [says for line, (_, says) in lines if line.kind != kind]
            self._of_kinds[kind] = k.prove(
                f"{kind}_lines_of_{self.name}",
                Or(Not(l.kind(t) == KIND[kind]), *which),
                [self.is_it, *l.line, l.is_device(l.d)],
                [self.never_off.at(i=l.d), self.program, *others],
            )
        return self._of_kinds[kind]

    @property
    def met(self) -> list[Bool]:
        """Where an update is, along the axes along which one is of slices."""
        l, mesh = self.l, self.l.mesh
        axes = {axis for line in self.listed.lines for axis in line.axes if line.kind == UPDATE.name}
        along = [x for x, axis in zip(self.axes, self.listed.axes, strict=True) if axis in axes]
        own = {x: mesh.along(l.d, x) == mesh.owner_along(x, l.j) for x in along}
        return [Implies(l.updates_slices(l.t, x), own[x]) for x in along]

    def keeps(self, start: str) -> list[int]:
        """The places that are kept as of a start."""
        return [p for p, of in self.listed.starts.items() if of == start]

    def kept_at_the_end(self, start: str) -> list[Theorem]:
        """What is found where copies of a start are kept, at the end of a step."""
        l, end, places = self.l, self.l.ends(self.l.u), {*self.keeps(start)}
        facts = [self.rests, l.steps_end, *([l.mesh.holds_is] if "slices" in start else [])]
        for i in (l.i, IntVal(0)):
            facts += [self.never_off.at(t=end, i=i), *self.finds_on(l.d, 0, places, t=end, i=i)]
        return [*facts, l.state_is(MOMENT if "Moment" in start else WEIGHT, l.u + 1)]
