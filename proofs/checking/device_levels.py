"""What a line does to what devices have of a form: along its axis, and along all axes after it."""

from __future__ import annotations

from typing import Any

from proofs.checking.axes import source_of
from proofs.checking.axis_tables import LINEAR
from proofs.checking.content import moving
from proofs.checking.levels import NUMBERS, Levels
from proofs.checking.lines import FIRST, OPERATORS, OWNER, Line
from proofs.checking.symbols import KINDS, ONE, ZERO, cases, first_of, indicator, place_of
from proofs.tools.sums import total
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import below, substitute
from proofs.trusted.terms import And, BoolVal, If, Implies, IntVal, ToReal
from spec.devices.operators import ALL, IDENTITY


class DeviceLevels(Levels):
    """The language, and its forms on devices."""

    def on_its_axis(self) -> None:
        """Along the axis of a line too, operator by operator."""
        k, t, word = self.k, self.t, self.word
        a = self.mesh.axis(t)
        target = self.target(t)
        seen = [self.seen(o, a) for o in NUMBERS]
        q = self.r
        stays = k.prove(
            "what_is_held_on_its_axis",
            self.held(*self._in(self.b, self.mesh.put(word, a, self.o)), q, a)
            == self.at(a, word=self.mesh.put(word, a, q)),
            (),
            [
                self.held_is.at(word=self.mesh.put(word, a, self.o), level=a),
                self.mesh.put_twice.at(a=a),
                self.mesh.on_axes,
            ],
        )
        uses, sums, made = [], [], []
        for of_target, place, name in ((False, self.source, "source"), (True, self.target, "target")):
            row, b = self.row[of_target], place(t)
            has = [self.at(a, b=b, word=self.mesh.put(word, a, q)) for q in NUMBERS]
            rows = [[row(self.known, t, o, q, self.f[a]) for q in NUMBERS] for o in NUMBERS]
            columns = list(zip(*rows, strict=True))
            held = [
                [self.held(*self._in(b, self.mesh.put(word, a, o)), q, a) for q in NUMBERS]
                for o in NUMBERS
            ]
            sums.append([self.mixed(*r, *h) for r, h in zip(rows, held, strict=True)])
            made.append(self.mixed(*has, *(self.mixed(*seen, *column) for column in columns)))
            uses.append(
                k.prove(
                    f"forms_of_its_{name}_along_the_axis_of_a_line",
                    self.mixed(*seen, *sums[-1]) == made[-1],
                    (),
                    [
                        *(stays.at(b=b, o=o, r=q) for o in NUMBERS for q in NUMBERS),
                        *(self.commutes.at(**self.row_as(r), **self.column_as(has)) for r in rows),
                        self.exchanged.at(
                            **self.row_as(seen), **self.column_as(has), **self.matrix_as(rows)
                        ),
                    ],
                )
            )
        self.moved_here = k.prove(
            "forms_are_moved_along_the_axis_of_a_line",
            self.at(a + 1, t=t + 1, b=target) == made[0] + made[1],
            [t >= 0, self.is_linear],
            [
                self.sight_next.at(t=t + 1, b=target, level=a),
                *(self.moved_below.at(word=self.mesh.put(word, a, o), level=a) for o in NUMBERS),
                self.adds.at(**self.row_as(seen), **self.column_as(sums[0]), **self.more_as(sums[1])),
                *(self.mesh.put_read.at(a=a, x=a, o=o) for o in NUMBERS),
                self.mesh.on_axes,
                *uses,
            ],
        )

    # ------------------------------------------------------------------- on devices
    def comes_to(self, t: Any, b: Any, d: Any, level: Any, word: Any = None) -> Any:
        """What device d has of the form of place b, of device i's value or of all alike."""
        word = self.word if word is None else word
        return self.value(self.known, self.alike, t, b, self.s, d, self.i, self.j, word, level)

    def on_device(self, d: Any) -> dict[str, Any]:
        """The arrays of a device, of an element and of whose value it sees."""
        mesh, j = self.mesh, self.j
        return {
            "f": mesh.firsts(j),
            "p": mesh.places(d, j),
            "q": mesh.sources(self.alike, d, self.i, j),
        }

    def located(self, d: Any, x: Any) -> list[Theorem]:
        """The places and the sources of a device along an axis."""
        return [self.mesh.places_are.at(d=d, x=x), self.mesh.sources_are.at(d=d, x=x)]

    def alike_before(self) -> None:
        """Devices that differ along an axis have the same along those before it."""
        k, mesh, level, d = self.k, self.mesh, self.level, self.d
        a, c = mesh.a, self.c
        there = mesh.moved(d, a, c)
        given = [a < mesh.axes, mesh.is_device(d), mesh.is_coordinate(c, a)]
        self.same_before = k.induct(
            "devices_have_the_same_before_they_differ",
            level,
            self.comes_to(self.t, self.b, there, level) == self.comes_to(self.t, self.b, d, level),
            [*given, level <= a],
            base=[self.sight_none.at(**self.on_device(e)) for e in (d, there)],
            step=[
                *(self.sight_next.at(**self.on_device(e)) for e in (d, there)),
                *(fact for e in (d, there) for fact in self.located(e, level)),
                mesh.moves.at(x=level),
            ],
            at=[{"word": self.mesh.put(self.word, level, o)} for o in NUMBERS],
        )

    # ----------------------------------------------------------- what a group adds up to
    def groups(self) -> None:
        """What devices of a group see by an operator, all together; what a form comes to on all."""
        k, mesh, c, r, alike, size = self.k, self.mesh, self.c, self.r, self.alike, self.size
        self.owned_at, self.of_at = k.integers("owned_at of_at")
        seen = self.entry(r, *self._codes(c), size)
        self.reads = total(k, "reads", [alike, r, self.of_at, self.owned_at, size], c, seen)
        params = [
            self.known,
            alike,
            self.t,
            self.b,
            self.s,
            self.d,
            self.i,
            self.j,
            self.word,
            self.level,
        ]
        member = mesh.member(self.t, self.d, c)
        self.group = total(k, "group", params, c, self.comes_to(self.t, self.b, member, self.level))
        count, codes = self._reads_upto(c), self._codes(c)
        self.reads_are = k.induct(
            "what_a_group_reads",
            c,
            self.reads.upto(c) == count,
            [self.owned_at >= 0, self.of_at >= 0],
            base=[self.reads.start],
            step=[
                self.reads.next,
                self.entry_is.at(o=r, at_f=codes[0], at_p=codes[1], at_q=codes[2]),
            ],
        )

    def _codes(self, c: Any) -> tuple[Any, Any, Any]:
        owner = self.owned_at
        return first_of(owner), place_of(c, owner), source_of(self.alike, c, self.of_at, owner)

    def _reads_upto(self, c: Any) -> Any:
        """How much the devices before c see by an operator, together."""
        owner, of, alike, number = self.owned_at, self.of_at, self.alike, ToReal(c)
        table: dict[int, Any] = {}
        for o, op in enumerate(OPERATORS):
            if op == IDENTITY:
                table[o] = If(alike, number, indicator(of < c))
                continue
            one = {ALL: BoolVal(True), OWNER: of == owner, FIRST: of == 0}[op.of]
            read = If(alike, self.size if op.of == ALL else ONE, indicator(one))
            if op.to == ALL:
                found = If(alike, number * (self.size if op.of == ALL else ONE), If(one, number, ZERO))
            else:
                found = If(c > (owner if op.to == OWNER else 0), read, ZERO)
            table[o] = If(owner == 0, ZERO, found) if FIRST in op else found
        return cases(self.r, table, ZERO)

    def groups_on_axis(self) -> None:
        """What a form comes to on a group, along the axis of a line."""
        k, mesh, c, t, word, d = self.k, self.mesh, self.c, self.t, self.word, self.d
        a, j = mesh.axis(t), self.j
        member = mesh.member(t, d, c)
        at = {
            "of_at": mesh.along(self.i, a),
            "owned_at": mesh.owner_along(a, j),
            "size": mesh.size_of(a),
        }
        has = [self.comes_to(t, self.b, d, a, self.mesh.put(word, a, q)) for q in NUMBERS]
        reads = [self.reads(self.alike, q, at["of_at"], at["owned_at"], at["size"], c) for q in NUMBERS]
        seen = [self.entry_at(q, a, member) for q in NUMBERS]
        self.group_here = k.induct(
            "a_form_on_a_group",
            c,
            substitute(self.group.upto(c), (self.level, a + 1)) == self.mixed(*has, *reads),
            [mesh.is_device(d), c <= mesh.devices(a)],
            base=[
                self.group.start.at(level=a + 1),
                self.of_nothing.at(**self.row_as(has)),
                *(self.reads.start.at(r=q, **at) for q in NUMBERS),
            ],
            step=[
                self.group.next.at(level=a + 1),
                *(self.reads.next.at(r=q, **at) for q in NUMBERS),
                self.sight_next.at(level=a, **self.on_device(member)),
                *(self.same_before.at(level=a, a=a, word=self.mesh.put(word, a, q)) for q in NUMBERS),
                self.commutes.at(**self.row_as(seen), **self.column_as(has)),
                self.adds.at(**self.row_as(has), **self.column_as(reads), **self.more_as(seen)),
                *self.located(member, a),
                mesh.firsts_are.at(x=a),
                mesh.moves.at(a=a, x=a),
                mesh.member_is,
                mesh.on_axes,
            ],
        )

    def entry_at(self, o: Any, x: Any, d: Any) -> Any:
        """What device d sees by an operator along an axis."""
        mesh, on = self.mesh, self.on_device(d)
        return self.entry(o, on["f"][x], on["p"][x], on["q"][x], mesh.size_of(x))

    def _algebra_of_reduce(self) -> tuple[Theorem, ...]:
        """What an all-reduce makes of an operator comes to what a group reads by it."""
        k, t, r, mesh = self.k, self.t, self.r, self.mesh
        f, p, q = self.at_f, self.at_p, self.at_q
        a = mesh.axis(t)
        size, owner = mesh.size_of(a), self.owned_at
        entries = [self.seen_by(o, p, q) for o in NUMBERS]
        move = next(move for move in LINEAR if move.name == "all_reduce")
        read = self.reads(self.alike, r, self.of_at, owner, size, mesh.devices(a))
        codes = [
            f == first_of(owner),
            p == place_of(self.c, owner),
            q == source_of(self.alike, self.c, self.of_at, owner),
        ]
        inside = [And(x >= 0, x < mesh.devices(a)) for x in (owner, self.of_at)]
        found = []
        for of_target, name in ((False, "source"), (True, "target")):
            rows = [self.row[of_target](self.known, t, o, r, f) for o in NUMBERS]
            numbers = self.on_numbers(move, of_target).at(**self.row_as(entries))
            facts = [
                *(self.entry_is.at(o=o, size=size) for o in self.mixing(move, of_target)),
                self.reads_are.at(c=mesh.devices(a), size=size),
            ]
            given = [self.kind(t) == KINDS["all_reduce"], *([] if of_target else [*codes, *inside])]
            goal = self.mixed(*entries, *rows) == (ZERO if of_target else read)
            facts = [numbers, *([] if of_target else facts)]
            found.append(k.prove(f"all_reduce_of_its_{name}", goal, given, facts))
        return tuple(found)

    # ------------------------------------------------------------- lines, on devices
    def lines_on_devices(self) -> dict[str, Theorem]:
        """By the kind of line: what devices have after it is what it makes of what they had."""
        return {move.name: self._on_all_axes(move, self._on_axis(move)) for move in LINEAR}

    def moved_at(self, move: Line, level: Any) -> Any:
        """What a line makes of what devices have along some axes."""
        t = self.t
        in_group = self.group(
            self.known,
            self.alike,
            t,
            self.source(t),
            self.s,
            self.d,
            self.i,
            self.j,
            self.word,
            level,
            self.mesh.size(t),
        )
        return self.moved_on(
            move, moving(lambda b, e: self.comes_to(t, b, e, level), in_group, self.by)
        )

    @property
    def by(self) -> Any:
        """By how much line t scales, if it does."""
        return If(self.known, self.factor(self.t), ONE)

    def _given(self, move: Line) -> list[Bool]:
        devices = map(self.mesh.is_device, (self.d, self.i)[: self.devices_of(move)])
        return [self.t >= 0, self.kind(self.t) == KINDS[move.name], *devices]

    def devices_of(self, move: Line) -> int:
        """Of how many it must be known that they are devices: who reads, and whose value it is."""
        return {"all_reduce": 2, "all_gather": 1, "broadcast": 1}.get(move.name, 0)

    def _reads(self, move: Line) -> list[tuple[Any, Any]]:
        """Places and devices that a line reads, but for those it adds up."""
        found: dict[tuple[int, int], tuple[Any, Any]] = {}

        def at(b: Any, e: Any) -> Any:
            found[id(b), id(e)] = b, e
            return ZERO

        self.moved_on(move, moving(at, ZERO, ONE))
        return list(found.values())

    def _on_axis(self, move: Line) -> Theorem:
        """Along the axis of the line."""
        k, t, d, mesh = self.k, self.t, self.d, self.mesh
        a = mesh.axis(t)
        f, p, q = (array[a] for array in self.on_device(d).values())
        at = {"at_f": f, "at_p": p, "at_q": q}
        reduces = move.name == "all_reduce"
        algebras = self._algebra_of_reduce() if reduces else self.algebra(move)
        owned = {"of_at": mesh.along(self.i, a), "owned_at": mesh.owner_along(a, self.j)}
        at |= {**owned, "c": mesh.along(d, a)} if reduces else {}
        members = [e for _, e in self._reads(move) if e is not d]
        located = [d, *members] if members or reduces else []
        coordinates = {"all_gather": mesh.owner(t, d, self.j), "broadcast": IntVal(0)}
        c = coordinates.get(move.name)
        sums = [self.source(t), self.target(t)]
        has = [
            [self.comes_to(t, b, d, a, self.mesh.put(self.word, a, o)) for o in NUMBERS] for b in sums
        ]
        seen = [self.entry_at(o, a, d) for o in NUMBERS]
        scaled = [
            self.multiples.at(size=self.by, **self.row_as(has[0]), **self.column_as(seen)),
            self.commutes.at(**self.row_as(seen), **self.column_as(has[0])),
        ]
        return k.prove(
            f"along_its_axis_{move.name}",
            self.comes_to(t + 1, self.target(t), d, a + 1) == self.moved_at(move, a + 1),
            self._given(move),
            [
                self.moved_here.at(**self.on_device(d)),
                *(each.at(r=o, **at) for each in algebras for o in NUMBERS),
                *(fact for e in located for fact in self.located(e, a)),
                *([mesh.firsts_are.at(x=a)] if located else []),
                *([mesh.places_are.at(x=a)] if move.name == "keep" else []),
                *(self.sight_next.at(b=b, level=a, **self.on_device(e)) for b, e in self._reads(move)),
                *(
                    self.same_before.at(
                        b=self.source(t), level=a, a=a, c=c, word=self.mesh.put(self.word, a, o)
                    )
                    for o in NUMBERS
                    if c is not None
                ),
                *([mesh.moves.at(a=a, x=a, c=c), mesh.member_is.at(c=c)] if c is not None else []),
                *([self.group_here.at(b=sums[0], c=mesh.size(t)), mesh.size_is] if reduces else []),
                *(
                    self.commutes.at(
                        **self.row_as([self.entry_at(o, a, e) for o in NUMBERS]),
                        **self.column_as(column),
                    )
                    for column, b in zip(has, sums, strict=True)
                    for place, e in self._reads(move)
                    if place is b and move.name != "scale"
                ),
                *(
                    self.of_nothing.at(**self.row_as(column))
                    for column, made in zip(has, algebras, strict=True)
                    if move.name == "keep" or below([made.goal])[-1].args[1] is ZERO
                ),
                *(scaled if move.name == "scale" else []),
                *(mesh.places_of if move.name == "keep" else []),
                *(mesh.places_of[1:] if move.name == "all_gather" else []),
                *([mesh.on_axes.at(a=a, d=self.i if reduces else d)] if move.name != "zero" else []),
            ],
        )

    def _on_all_axes(self, move: Line, here: Theorem) -> Theorem:
        """Along all axes after it."""
        k, t, d, mesh, level, word = self.k, self.t, self.d, self.mesh, self.level, self.word
        a, target = mesh.axis(t), self.target(t)
        seen = [self.entry_at(o, level, d) for o in NUMBERS]
        words = [self.mesh.put(word, level, o) for o in NUMBERS]
        reads = self._reads(move)
        has = [[self.comes_to(t, b, e, level, each) for each in words] for b, e in reads]
        coordinates = {"all_gather": mesh.owner(t, d, self.j), "broadcast": IntVal(0)}
        c = coordinates.get(move.name)
        members = [e for _, e in reads if e is not d]
        along = members or move.name == "all_reduce"  # of other devices too
        uses = [
            here,
            self.sight_next.at(t=t + 1, b=target, **self.on_device(d)),
            *(self.sight_next.at(b=b, **self.on_device(e)) for b, e in reads),
            *(fact for e in (d, *members) for fact in self.located(e, level) if members),
            *([mesh.moves.at(a=a, x=level, c=c), mesh.member_is.at(c=c)] if c is not None else []),
            *([mesh.on_axes.at(a=a)] if along else []),
            *(mesh.places_of[1:] if move.name == "all_gather" else []),
        ]
        if move.name == "accumulate":
            uses.append(
                self.adds.at(**self.row_as(seen), **self.column_as(has[0]), **self.more_as(has[1]))
            )
        if move.name == "scale":
            uses.append(self.multiples.at(size=self.by, **self.row_as(seen), **self.column_as(has[0])))
        if move.name == "zero":
            uses.append(self.of_nothing.at(**self.row_as(seen)))
        if move.name == "all_reduce":
            uses += [self.group_after.at(b=self.source(t), c=mesh.size(t)), mesh.size_is]
        return k.induct(
            f"after_its_axis_{move.name}",
            level,
            Implies(level > a, self.comes_to(t + 1, target, d, level) == self.moved_at(move, level)),
            [*self._given(move), *([level <= mesh.axes] if along else [])],
            base=[mesh.on_axes.at(a=a)],
            step=uses,
            at=[{"word": each} for each in words],
        )

    def groups_after(self) -> None:
        """What a form comes to on a group, along the axes after that of a line."""
        k, mesh, c, t, word, d, level = self.k, self.mesh, self.c, self.t, self.word, self.d, self.level
        a = mesh.axis(t)
        member = mesh.member(t, d, c)
        words = [self.mesh.put(word, level, o) for o in NUMBERS]
        seen = [self.entry_at(o, level, d) for o in NUMBERS]
        params = (self.known, self.alike, t, self.b, self.s, d, self.i, self.j)
        groups = [self.group(*params, each, level, c) for each in words]
        more = [self.comes_to(t, self.b, member, level, each) for each in words]
        self.group_after = k.induct(
            "a_form_on_a_group_after_its_axis",
            c,
            substitute(self.group.upto(c), (level, level + 1)) == self.mixed(*seen, *groups),
            [mesh.is_device(d), level > a, level < mesh.axes, c <= mesh.devices(a)],
            base=[
                self.group.start.at(level=level + 1),
                *(self.group.start.at(word=each) for each in words),
                self.of_nothing.at(**self.row_as(seen)),
            ],
            step=[
                self.group.next.at(level=level + 1),
                *(self.group.next.at(word=each) for each in words),
                self.sight_next.at(**self.on_device(member)),
                self.adds.at(**self.row_as(seen), **self.column_as(groups), **self.more_as(more)),
                *(fact for e in (d, member) for fact in self.located(e, level)),
                mesh.moves.at(a=a, x=level),
                mesh.member_is,
                mesh.on_axes.at(a=a),
            ],
        )
