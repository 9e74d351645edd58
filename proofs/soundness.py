"""T4: whatever the schedule, what the checker accepts matches a single device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from proofs import lines
from proofs.claim import claim
from proofs.comparisons import (
    ACTIVATIONS,
    KEPT,
    OLD_MOMENT,
    OLD_WEIGHT,
    VIEW,
    WHOLE,
    Comparisons,
)
from proofs.kernel import Bool, Kernel, Theorem
from proofs.line_laws import COUNT
from proofs.lines import FIRST, MOVES, NAMED, OWNER, Line
from proofs.sums import closed_form, partition, total
from proofs.symbolic_schedule import (
    BACKWARD,
    CONTRIBUTION,
    FIRSTS,
    INT,
    KINDS,
    MOMENT,
    NOTHING,
    ONE,
    PLACES,
    STARTS,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    Language,
    cases,
    either,
    first_of,
    masked,
    of_one,
    place_of,
)
from spec.operators import OTHER


class Soundness(Comparisons):
    """By induction over lines."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        self.sums_of_parts()
        self.sums_of_forms()
        self.laws = {m.name: self.law(m) for m in MOVES}
        self.counted: dict[str, Theorem] = {}
        self.known: dict[str, Theorem] = {}
        for m in MOVES:
            self.counted[m.name], self.known[m.name] = self.knowledge(m)
        self.unknown_after = {m.name: self._unknown_after(m) for m in MOVES}
        self.always_counts = self._always_counts()

    def _unknown_after(self, move: Line) -> Theorem:
        """What is not known after a line, by the operators."""
        l, t, f = self.l, self.l.t, self.l.f
        x, z = (l.not_known(t, place(t), f) for place in (l.source, l.target))
        after = l.after[move.name, False]
        goal = [
            c == after(o, f, l.factor(t), *x, *z) for o, c in enumerate(l.not_known(t + 1, l.target(t), f))
        ]
        uses = [l.unknown_next.at(op=o, b=l.target(t)) for o in COUNT]
        given = [t >= 0, l.kind(t) == KINDS[move.name]]
        return self.k.prove(f"unknown_after_{move.name}", z3.And(*goal), given, uses)

    def counts_at(self, t: Any, b: Any, f: Any) -> Bool:
        return self.counts(f, *self.l.not_known(t, b, f))

    def untouched(self, b: Any) -> Bool:
        """Whether line t leaves a place as it is."""
        l = self.l
        return z3.Not(z3.Or(b == l.target(l.t), l.writes_second(b), l.drops(b)))

    def knowledge_at(self, theorem: Theorem, f: Any) -> Theorem:
        """A law of what is not known, for the coefficients a line meets."""
        l, t = self.l, self.l.t
        x, z = (l.not_known(t, place(t), f) for place in (l.source, l.target))
        names = map(str, (*l.x, *l.z, l.scaled_by))
        return theorem.at(**dict(zip(names, (*x, *z, l.factor(t)), strict=True)))

    def _always_counts(self) -> Theorem:
        """What is not known counts at least nothing, on all devices, in all places, at all times."""
        l, k, t, b, f = self.l, self.k, self.l.t, self.l.b, self.l.f
        few = z3.Or(f == OWNER, f == FIRST)
        given = [few, self.enough(f)]
        goal = self.counts_at(t, b, f)
        after = self.counts_at(t + 1, b, f)
        steps = []
        for m in MOVES:
            steps.append(
                k.prove(
                    f"counts_after_{m.name}",
                    after,
                    [
                        t >= 0, *given, b == l.target(t), l.kind(t) == KINDS[m.name],
                        *([self.counts_at(t, p(t), f) for p in (l.source, l.target)]),
                    ],
                    [self.knowledge_at(self.counted[m.name], f), self.unknown_after[m.name]],
                )
            )
        now = [l.unknown_next.at(op=o) for o in COUNT]
        unfold = self.counts_is.at(**self.named(l.not_known(t + 1, b, f)))
        steps.append(
            k.prove("counts_where_nothing_is_done", after, [t >= 0, goal, self.untouched(b)], now)
        )
        steps.append(
            k.prove(
                "counts_of_what_is_computed",
                after,
                [
                    t >= 0, *given,
                    z3.Or(z3.And(b == l.target(t), z3.Or(l.kind(t) == BACKWARD, l.kind(t) == UPDATE)), l.writes_second(b),
                          z3.And(b != l.target(t), l.drops(b))),
                ],
                [*now, unfold, l.some],
            )
        )
        start = [l.unknown_start.at(op=o) for o in COUNT]
        return k.induct(
            "what_is_not_known_counts",
            t,
            goal,
            given,
            base=[*start, self.counts_is.at(**self.named(l.not_known(0, b, f))), l.some],
            step=steps,
            at=[{}, {"b": l.source(t)}, {"b": l.target(t)}],
        )
