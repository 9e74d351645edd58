"""What devices know after a line: a value is known where it is made of known values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Theorem
from proofs.line_laws import Laws
from proofs.lines import FIRST, MOVES, NAMED, OWNER, Coefficients, Line
from proofs.meaning import CASES, COUNT, literal, occurs
from proofs.symbolic_checker import CheckedLanguage
from proofs.symbolic_schedule import (
    BACKWARD,
    FIRSTS,
    KINDS,
    ONE,
    PLACES,
    UPDATE,
    ZERO,
    first_of,
    place_of,
)
from spec.operators import OTHER


class Knowledge(Laws):
    """Of each kind of line, and of all lines up to a time."""

    def __init__(self, l: CheckedLanguage) -> None:
        super().__init__(l)
        laws = {m.name: self._knowledge(m) for m in MOVES}
        self.counted = {name: counts for name, (counts, _) in laws.items()}
        self.known = {name: knows for name, (_, knows) in laws.items() if knows}
        self.unknown_after = {m.name: self._unknown_after(m) for m in MOVES}
        self.always_counts = self._always_counts()
        self.not_gone = self._not_gone()

    def reads(self, move: Line) -> list[Coefficients]:
        """The forms that a line reads: of its source, of its target."""
        read: dict[str, Coefficients] = {}

        def of(which: str, form: Coefficients) -> Callable[[Any], Any]:
            def at(e: Any) -> Any:
                read[which] = form
                return e if e is lines.ANYONE else ZERO

            return at

        move.value(0, 1, of("source", self.l.x), of("target", self.l.z), ZERO, ZERO, ONE)
        move.value(1, 1, of("source", self.l.x), of("target", self.l.z), ZERO, ZERO, ONE)
        return list(read.values())

    def _knowledge(self, move: Line) -> tuple[Theorem, Theorem | None]:
        """What is not known counts at least nothing, and what is known is made of what is."""
        l, reads = self.l, self.reads(move)
        sums = "reduce" in move.name
        adds = sums or (len(reads) > 1 and move.name != "keep")
        counted, known, uses_c, uses_k = [], [], [], []
        for f in FIRSTS:
            new, after = self.new(move, f, False), self.after(move, f, False)
            same = [l.after_is[move.name, False].at(op=o, f=f) for o in COUNT]
            before = [self.counts_is.at(f=f, **self.named(form)) for form in reads]
            given = [self.enough(f), *(each.goal.arg(0) for each in before)]
            counted.append(z3.Implies(z3.And(*given), self.counts(f, *after)))
            # what is known is the same where the coefficients are
            untouched = any(all(map(z3.eq, new, form)) for form in reads)
            unfolded = [*before, self.counts_is.at(f=f, **self.named(new))]
            uses_c += [*([] if untouched else unfolded), *same]
            uses_k += [*(before if adds else []), *same]
            for d, owner in CASES:
                if literal(first_of, owner).as_long() == f:
                    at = literal(place_of, d, owner).as_long()
                    here = self.exists(f, next(q for q in PLACES if PLACES[q] == at))
                    nothing, facts = self._unknowns_read(move, d, owner, sums)
                    known.append(z3.Implies(z3.And(*given, here, self.knows(f, at, *after)), nothing))
                    if not untouched:
                        uses_k += [*facts, self.knows_is.at(f=f, p=at, **self.named(new))]
        some = [l.some] if sums else []
        counts = self.proved(f"counts_{move.name}", counted, [*some, *uses_c])
        if not reads and move.name == "zero":
            return counts, None
        return counts, self.proved(f"knows_{move.name}", known, [*some, *uses_k])

    def _unknowns_read(self, move: Line, d: int, owner: int, sums: bool) -> tuple[Bool, list[Theorem]]:
        """That a device reads nothing that is not known, and what knowing is there."""
        f = literal(first_of, owner).as_long()
        facts: dict[int, Theorem] = {}

        def knows(p: int, form: Coefficients) -> Bool:
            said = self.knows_is.at(f=f, p=p, **self.named(form))
            facts[said.goal.get_id()] = said
            return said.goal.arg(0)

        def is_unknown(form: Coefficients) -> Callable[[Any], Any]:
            def read(e: Any) -> Any:
                if e is lines.ANYONE:
                    return e
                return z3.If(knows(literal(place_of, e, owner).as_long(), form), ZERO, ONE)

            return read

        everywhere = [
            z3.Implies(self.exists(f, q), knows(PLACES[q], self.l.x))
            for q in ((*NAMED[f], OTHER) if sums else ())
        ]
        total = z3.If(z3.And(*everywhere), ZERO, ONE) if sums else ONE
        value = move.value(d, owner, is_unknown(self.l.x), is_unknown(self.l.z), total, ONE, ONE)
        return value == 0, [said for said in facts.values() if occurs(said.goal.arg(0), value)]

    def _unknown_after(self, move: Line) -> Theorem:
        """What is not known after a line, by the operators."""
        l, t, f = self.l, self.l.t, self.l.f
        x, z = (l.not_known(t, place(t), f) for place in (l.source, l.target))
        after = l.after[move.name, False]
        goal = [
            c == after(o, f, l.factor(t), *x, *z)
            for o, c in enumerate(l.not_known(t + 1, l.target(t), f))
        ]
        uses = [l.unknown_next.at(op=o, b=l.target(t)) for o in COUNT]
        given = [t >= 0, l.kind(t) == KINDS[move.name]]
        return self.k.prove(f"unknown_after_{move.name}", z3.And(*goal), given, uses)

    def counts_at(self, t: Any, b: Any, f: Any) -> Bool:
        return self.counts(f, *self.l.not_known(t, b, f))

    def knowledge_at(self, theorem: Theorem, f: Any) -> Theorem:
        """A law of what is not known, for the coefficients a line meets."""
        l, t = self.l, self.l.t
        x, z = (l.not_known(t, place(t), f) for place in (l.source, l.target))
        names = map(str, (*l.x, *l.z, l.scaled_by))
        return theorem.at(**dict(zip(names, (*x, *z, l.factor(t)), strict=True)))

    def _always_counts(self) -> Theorem:
        """What is not known counts at least nothing, on all devices, in all places, at all times."""
        l, k, t, b, f = self.l, self.k, self.l.t, self.l.b, self.l.f
        first = [z3.Or(f == OWNER, f == FIRST), self.enough(f)]
        goal, after = self.counts_at(t, b, f), self.counts_at(t + 1, b, f)
        steps = []
        for m in MOVES:
            of = {0: goal, 1: self.counts_at(t, l.source(t), f)}
            read = [of[form is l.x] for form in self.reads(m)]
            given = [t >= 0, *first, b == l.target(t), l.kind(t) == KINDS[m.name], *read]
            facts = [self.knowledge_at(self.counted[m.name], f), self.unknown_after[m.name]]
            steps.append(k.prove(f"counts_after_{m.name}", after, given, facts))
        now = [l.unknown_next.at(op=o) for o in COUNT]
        name = "counts_where_nothing_is_done"
        steps.append(k.prove(name, after, [t >= 0, goal, l.untouched(b)], now))
        computes = z3.And(b == l.target(t), z3.Or(l.kind(t) == BACKWARD, l.kind(t) == UPDATE))
        else_ = z3.Or(computes, l.writes_second(b), z3.And(b != l.target(t), l.drops(b)))
        unfolded = self.counts_is.at(**self.named(l.not_known(t + 1, b, f)))
        name = "counts_of_what_is_computed"
        steps.append(k.prove(name, after, [t >= 0, else_], [*now, unfolded]))
        return k.induct(
            "what_is_not_known_counts",
            t,
            goal,
            first,
            base=[
                *(l.unknown_start.at(op=o) for o in COUNT),
                self.counts_is.at(**self.named(l.not_known(0, b, f))),
            ],
            step=steps,
            at=[{}, {"b": l.source(t)}],
        )

    def _not_gone(self) -> Theorem:
        """What a device knows is there."""
        l, k, t, b, d, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.j
        first, place = first_of(l.owner(j)), place_of(d, l.owner(j))
        form = l.not_known(t, b, first)
        nothing = z3.And(*(c == amount for c, amount in zip(form, lines.one(), strict=True)))
        read = (*l.not_known(t, l.source(t), first), *l.not_known(t, l.target(t), first))
        at = dict(zip(map(str, (*l.x, *l.z)), read, strict=True))
        released = l.after_is["release", False].at(f=first, scaled_by=l.factor(t), **at)
        gone = k.induct(
            "what_is_gone_is_not_known",
            t,
            z3.Implies(l.gone(b, t), nothing),
            base=[l.gone_start, *(l.unknown_start.at(op=o, f=first) for o in COUNT)],
            step=[
                l.gone_next,
                *(l.unknown_next.at(op=o, f=first) for o in COUNT),
                *(released.at(op=o) for o in COUNT),
            ],
        )
        knows = self.knows_is.at(f=first, p=place, **self.named(form))
        return k.prove(
            "what_is_known_is_there",
            z3.Not(l.gone(b, t)),
            [t >= 0, self.knows(first, place, *form)],
            [gone, knows],
        )
