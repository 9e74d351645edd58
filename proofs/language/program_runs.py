"""E10: in a program whose lines the checker accepts all that is made lies as it is said to.

For each kind of line, where what it reads lies so, so does what it makes; by induction over the lines
of any program. Axes compose: along one, elements are those of all devices along the others, and what
moves along another is a linear map between elements of one owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.language.line_by_line import so_of_every_line
from proofs.language.program_lines import (
    ADD,
    COMES_IN,
    CONTRACT,
    CUT,
    FUNCTION,
    LEAVE,
    MOVES,
    PARTIAL,
    READ_TWO,
    RENAME,
    ProgramLines,
)
from proofs.tools.sums import closed_form, equal_terms, of_sums, partition
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import TRUE, And, If, Implies, Not


class ProgramRuns(ProgramLines):
    """Runs of programs: accepted lines leave what lies as it is said to."""

    def __init__(self, k: Kernel) -> None:
        super().__init__(k)
        t, d, e = self.t, self.d, self.e
        here = And(*self.is_device(d), Not(self.lies_so(t, d, e)))
        wrong_on, self.element, shown, wrong_there = k.choose("is_wrong_on", [t, d], e, here)
        self.is_wrong, self.device, some, is_on = k.choose("is_wrong", [t], d, wrong_on(t, d))
        self.right = k.prove(
            "what_is_not_wrong_lies_so",
            self.lies_so(t, d, e),
            [*self.is_device(d), Not(self.is_wrong(t))],
            [shown, some],
        )
        on = self.device(t)
        self.where_wrong = [is_on, wrong_there.at(device=on)]
        at = {"device": on, "element": self.element(t, on)}
        begins = Implies(self.is_a(COMES_IN), self.lies_so(t, d, e))
        comes_in = k.suppose("what_comes_in_lies_so", [t, d, e], begins)
        self.line_is_right = [each.at(**at) for each in (comes_in, self._line())]
        self.accepted_programs = self._program()

    # ---------------------------------------------------------------------- a line
    def given(self, kind: str) -> list[Bool]:
        """What the checker asks of a line of a kind; what it reads is not wrong."""
        reads = self.reads if kind in READ_TWO else self.reads[:1]
        return [self.asked()[kind], *(Not(self.is_wrong(v)) for v in reads)]

    def _line(self) -> Theorem:
        """What an accepted line makes lies so, if what it reads does."""
        t, d, e = self.t, self.d, self.e
        f, _ = self.reads
        of_reads = [self.right.at(line=v) for v in self.reads]
        facts = {
            CONTRACT: [
                self._contracted().at(item=self.size(t)),
                self._contracted_slices(),
                self._contracted_terms(),
                self.some,
            ],
            ADD: [self._added().at(device=self.n), *of_reads],
            FUNCTION: self._rows(),
            LEAVE: [self._left().at(device=self.n), of_reads[0]],
            RENAME: [self._renamed().at(item=self.size(t)), self.some],
        }
        owner = self.owner(f, e)
        gathered = [
            self.right.at(line=f, device=owner),
            self.owned.at(index=self.cut(f), item=self.coordinate(e, self.cut(f))),
        ]
        facts |= {
            move: gathered if before is CUT else [of_reads[0]] for move, (before, _) in MOVES.items()
        }

        def on_device(kind: str) -> list[Bool]:  # what owners have is the same for all devices
            return [] if MOVES.get(kind, ())[:1] == (CUT,) else self.is_device(d)

        cases = [
            self.k.prove(
                f"what_a_line_makes_lies_so_by_{kind}",
                self.lies_so(t, d, e),
                [*on_device(kind), self.is_a(kind), *self.given(kind)],
                [self.runs, self.runs_alone, *uses],
            )
            for kind, uses in facts.items()
        ]
        not_wrong = (Not(self.is_wrong(v)) for v in self.reads)
        given = [*self.is_device(d), Not(self.is_a(COMES_IN)), self.accepts(), *not_wrong]
        return self.k.prove("what_a_line_makes_lies_so", self.lies_so(t, d, e), given, cases)

    def _of_operands(self, at: Any) -> list[Theorem]:
        """How both operands lie at an element, and where that is along what cuts them."""
        found = [self.right.at(line=v, element=at) for v in self.reads]
        return [*found, *(self.within_is.at(index=self.cut(v)) for v in self.reads)]

    def _contracted(self) -> Theorem:
        """Of what is whole or cut: each device makes the elements that it is to have."""
        t, d, e, i = self.t, self.d, self.e, self.i
        here, alone = self.here.contracted, self.alone.contracted
        return self.k.induct(
            "own_elements_are_contracted",
            i,
            here(t, d, e, i) == alone(t, e, i),
            [*self.is_device(d), *self.given(CONTRACT), self.lie(t) != PARTIAL, self.has(t, d, e)],
            base=[here.start, alone.start],
            step=[here.next, alone.next, *self._of_operands(self.within(t, e, i))],
        )

    def _contracted_slices(self) -> Theorem:
        """Over what both are cut along: the devices' sums over their own slices add up (R1)."""
        t, d, e, i, f = self.t, self.d, self.e, self.i, self.reads[0]
        here, alone = self.here.contracted, self.alone.contracted

        def owner(item: Any) -> Any:
            return self.own(self.cut(f), self.item_at(t, item, self.cut(f)))

        placed = self.owned.at(index=self.cut(f), item=self.item_at(t, i, self.cut(f)))
        share, shares, whole, once = partition(
            self.k, "slices", d, i, owner, placed, self.n, alone.term, [t, e]
        )
        slices = [*self.given(CONTRACT), self.lie(t) == PARTIAL, self.lie(f) == CUT]
        own = self.k.induct(
            "own_slices_are_the_values",
            i,
            here(t, d, e, i) == share(t, e, d, i),
            [*self.is_device(d), *slices],
            base=[here.start, share.start],
            step=[here.next, share.next, *self._of_operands(self.within(t, e, i))[:-1]],
        )
        added = self._terms_are("slices_add_up", shares, own, [d <= self.n, *slices])
        same = equal_terms(self.k, "slices_are_of_the_whole", whole, alone)
        return self._partial_is("slices_make_the_whole", [self.n >= 0, *slices], added, [once, same])

    def _contracted_terms(self) -> Theorem:
        """Of what is partial and what is whole: the terms' products add up to the sum's (R3)."""
        t, d, e, i = self.t, self.d, self.e, self.i
        f, g = self.reads
        is_first, at = self.lie(f) == PARTIAL, self.within(t, e, i)
        partial, copy = If(is_first, f, g), If(is_first, g, f)
        here, alone = self.here.contracted, self.alone.contracted
        term = self.held(partial, d, at) * self.held(copy, d, at)
        row, rows, column, columns, exchanged = of_sums(self.k, "of_terms", d, i, term, [t, e])
        whole_or_partial = [*self.given(CONTRACT), self.lie(f) != CUT]
        terms = [*whole_or_partial, self.lie(t) == PARTIAL]
        typed = [terms[0], *terms[-2:]]
        of_partial = {"line": partial, "element": at}
        factor = closed_form(
            self.k,
            "a_factor_passes_a_sum",
            column,
            self.terms(partial, at, d) * self.whole(copy, at),
            [d <= self.n, *whole_or_partial],
            base=[self.terms.start.at(**of_partial)],
            uses=[self.terms.next.at(**of_partial), self.right.at(line=copy, element=at)],
        )
        same = self.k.induct(
            "so_do_sums",
            i,
            columns(t, e, self.n, i) == alone(t, e, i),
            [*self.is_device(d), *terms],
            base=[columns.start.at(device=self.n), alone.start],
            step=[
                *(columns.next.at(device=self.n), alone.next, factor.at(device=self.n)),
                self.right.at(**of_partial),
            ],
        )
        own = equal_terms(self.k, "terms_are_contracted", here, row, given=typed)
        added = self._terms_are("terms_add_up", rows, own, typed)
        all_devices = exchanged.at(device=self.n)
        given = [*self.is_device(d), *terms]
        return self._partial_is("terms_make_the_whole", given, added, [all_devices, same])

    def _terms_are(self, name: str, sums: Any, own: Theorem, given: list[Bool]) -> Theorem:
        """The sum of what devices contract, each by its own sum: of all items."""
        t, d, e, size = self.t, self.d, self.e, self.size(self.t)
        return self.k.induct(
            name,
            d,
            self.terms(t, e, d) == sums(t, e, size, d),
            [self.is_a(CONTRACT), *given],
            base=[self.terms.start, sums.start.at(item=size)],
            step=[self.terms.next, sums.next.at(item=size), own.at(item=size), self.runs, self.some],
        ).at(device=self.n)

    def _partial_is(
        self, name: str, given: list[Bool], added: Theorem, facts: Sequence[Theorem]
    ) -> Theorem:
        """What devices contract adds up to what the single device does; `facts`: of so many items."""
        t, e, size = self.t, self.e, self.size(self.t)
        goal = self.terms(t, e, self.n) == self.alone.contracted(t, e, size)
        uses = [added, *(each.at(item=size) for each in facts), self.some]
        return self.k.prove(name, goal, [self.is_a(CONTRACT), *given], uses)

    def _added(self) -> Theorem:
        """Terms of a sum are sums of terms."""
        e, d, t = self.e, self.d, self.t
        f, g = self.reads
        of_both = self.terms(f, e, d) + self.terms(g, e, d)
        at = [{"line": v} for v in (t, f, g)]
        return self.k.induct(
            "terms_are_added",
            d,
            self.terms(t, e, d) == of_both,
            [self.is_a(ADD)],
            base=[self.terms.start.at(**each) for each in at],
            step=[*(self.terms.next.at(**each) for each in at), self.runs],
        )

    def _left(self) -> Theorem:
        """Terms that are left are as they were."""
        e, d, t = self.e, self.d, self.t
        f, _ = self.reads
        return self.k.induct(
            "terms_are_left",
            d,
            self.terms(t, e, d) == self.terms(f, e, d),
            [self.is_a(LEAVE)],
            base=[self.terms.start, self.terms.start.at(line=f)],
            step=[self.terms.next, self.terms.next.at(line=f), self.runs],
        )

    def _rows(self) -> list[Theorem]:
        """A function reads a whole row of elements, or one, of each operand: a device has it."""
        t, d, e, i = self.t, self.d, self.e, self.i
        given = [*self.is_device(d), self.asked()[FUNCTION], self.has(t, d, e)]
        found = []
        for which, v in enumerate(self.reads):
            here, alone = self.here.rows[which], self.alone.rows[which]
            facts = [
                *(self.here.reads[which], self.alone.reads[which]),
                self.right.at(line=v, element=self.within(t, e, i)),
                self.within_is.at(index=self.cut(v)),
            ]
            same = self.k.prove(
                f"elements_{which}_are_alike",
                here[i] == alone[i],
                [*given, Not(self.is_wrong(v))],
                facts,
            )
            found.append(self.k.extend(f"rows_{which}_are_alike", same, i))
        return found

    def _renamed(self) -> Theorem:
        """Any linear map between elements of one owner: from tokens to slots and back."""
        t, d, e, i = self.t, self.d, self.e, self.i
        here, alone = self.here.renamed, self.alone.renamed
        old = self.right.at(line=self.reads[0], element=self.renamed_from(t, e, i))
        return self.k.induct(
            "own_elements_are_renamed",
            i,
            here(t, d, e, i) == alone(t, e, i),
            [*self.is_device(d), self.is_a(RENAME), *self.given(RENAME), self.has(t, d, e)],
            base=[here.start, alone.start],
            step=[here.next, alone.next, old, self.keeps_owner],
        )

    # ------------------------------------------------------------------- a program
    def _program(self) -> Theorem:
        """Where the checker accepts all lines before one, what each of them makes lies so."""
        k, t = self.k, self.t
        self.are_accepted, self.accepted_first, self.accepted_next = k.recursion(
            "lines_before_are_accepted",
            [],
            t,
            TRUE,
            lambda before: And(before(), self.is_accepted(t)),
        )
        facts = [self.accepted_next, self.accepted_is, *self.where_wrong, *self.line_is_right]
        accepted, right = [self.are_accepted(t)], Not(self.is_wrong(t))
        other, never = so_of_every_line(k, t, right, self.reads, facts, accepted)
        return k.prove(
            "what_accepted_lines_make_lies_so",
            self.lies_so(other, self.d, self.e),
            [*accepted, other >= 0, other < t, *self.is_device(self.d)],
            [never, self.right.at(line=other)],
        )
