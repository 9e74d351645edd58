"""T2: what is not known may be this or that, so that what has it differs in two runs.

Two runs of the same lines, of which one device has another value in one empty place, once. Up to the
first comparison that comes out unequal what lines compute is the same in both: it is the single
device's. Places differ by as much as lines make of 1 there, and of 0 everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.content import moving
from proofs.checking.lines import MOVES
from proofs.checking.symbols import INT, KINDS, ONE, REAL, ROW, ZERO, Element, indicator
from proofs.checking.unknowns import read_by
from proofs.tools.sums import total
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or


class TwoChoices:
    """The runs, and how often a device has in a place what is another value in one of them."""

    def __init__(self, l: Language) -> None:
        self.l, self.k = l, l.k
        k, t, b, d, c, j = self.k, l.t, l.b, l.d, l.c, l.j
        self.other = l.of_run("has_otherwise", INT, INT, INT, ROW)
        self.often = k.function("has_it", INT, INT, INT, Element, REAL)
        self.empty_at, self.empty, self.device, self.until = (
            k.fixed(name, INT) for name in ("empty_at", "empty_place", "empty_on", "until")
        )
        self.on_a_device = [d >= 0, d < l.n]
        member = l.mesh.member(t, d, c)
        self.others = total(k, "everyone_otherwise", [t, b, d, j], c, self.other(t, b, member)[j])
        self.in_group = total(k, "group_has_it", [t, b, d, j], c, self.often(t, b, member, j))
        self.begun, self.runs = self._suppose(
            "it_is_another_value",
            lambda t: l.has(t, b, d)[j] + self._once(t),
            lambda t: self.other(t, b, d)[j],
            replace(
                l.content,
                at=lambda b, e: self.other(t, b, e)[j],
                in_group=self.others(t, l.source(t), d, j, l.mesh.size(t)),
            ),
        )
        source = self.in_group(t, l.source(t), d, j, l.mesh.size(t))
        self.often_begun, self.often_runs = self._suppose(
            "it_is_there",
            self._once,
            lambda t: self.often(t, b, d, j),
            moving(lambda b, e: self.often(t, b, e, j), source, l.factor(t)),
        )
        self.apart, self.who, self.apart_shown, self.apart_found = k.choose(
            "runs_are_otherwise_apart", [t, b, j], d, And(*self.on_a_device, Not(self._is_so(t)))
        )

    def _once(self, t: Any) -> Any:
        """1 where the other run has another value, before line t."""
        l = self.l
        there = And(t == self.empty_at, l.b == self.empty, l.d == self.device)
        outside = And(t == 0, l.begun(ZERO, ZERO, ONE, ONE) == 1)  # of slices, at first
        return indicator(And(there, Or(l.gone(l.b, t), outside)))

    def _suppose(
        self, name: str, empty: Callable[[Any], Any], has: Callable[[Any], Any], content: Any
    ) -> tuple[Theorem, Theorem]:
        """What is in places at first, and after lines: `empty` where nothing is known."""
        l, k, t = self.l, self.k, self.l.t
        at = [l.b, l.d, l.j]
        begun = k.suppose(f"{name}_at_first", at, has(0) == empty(0))
        after = If(l.gone(l.b, t + 1), empty(t + 1), l.ran(content))
        within = And(t >= 0, t < self.until)
        return begun, k.suppose(f"{name}_after_lines", [t, *at], Implies(within, has(t + 1) == after))

    def _is_so(self, t: Any) -> Bool:
        """The other run has as much more as it is there."""
        l, b, d, j = self.l, self.l.b, self.l.d, self.l.j
        return self.other(t, b, d)[j] == l.has(t, b, d)[j] + self.often(t, b, d, j)

    def _line(self) -> Theorem:
        """A line leaves the runs as far apart as it is there."""
        l, k, t, b, d, c, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.c, self.l.j
        source, so = l.source(t), self._is_so(t)
        shown = k.prove(
            "it_is_so_on_a_device",
            so,
            [*self.on_a_device, Not(self.apart(t, b, j))],
            [self.apart_shown],
        )
        groups = k.induct(
            "groups_are_as_far_apart",
            c,
            self.others(t, b, d, j, c) == l.everyone(t, b, d, j, c) + self.in_group(t, b, d, j, c),
            [*self.on_a_device, Not(self.apart(t, b, j)), c <= l.mesh.size(t)],
            base=[self.others.start, l.everyone.start, self.in_group.start],
            step=[
                *(self.others.next, l.everyone.next, self.in_group.next),
                *(shown.at(d=l.mesh.member(t, d, c)), l.mesh.inside),
            ],
        ).at(b=source, c=l.mesh.size(t))
        runs = [l.runs, self.runs, self.often_runs]
        said = substitute(so, (t, t + 1))
        within = [t >= 0, t < self.until]

        def after(
            name: str, given: Sequence[Bool], reads: Sequence[Any], uses: Sequence[Theorem]
        ) -> Theorem:
            near = [Not(self.apart(t, place, j)) for place in dict.fromkeys(reads)]
            here = self.on_a_device if near else []
            return k.prove(f"runs_after_{name}", said, [*within, *here, *near, *given], [*runs, *uses])

        target, moves = l.target(t), self._moves(b)
        found = [
            after("a_line_elsewhere", [l.untouched(b)], [b], [shown]),
            after("a_line_that_computes", [Not(l.untouched(b)), Not(moves)], [], []),
        ]
        for move in MOVES:
            reads = read_by(l, move)
            uses = [shown.at(b=place, d=e) for place, e in reads]
            uses += [groups, l.mesh.inside] if "reduce" in move.name else []
            member = {"all_gather": l.mesh.owner(t, d, j), "broadcast": IntVal(0)}.get(move.name)
            uses += [] if member is None else [l.mesh.inside.at(c=member)]
            of = [place for place, _ in reads] or ([source] if "reduce" in move.name else [])
            found.append(after(move.name, [b == target, l.kind(t) == KINDS[move.name]], of, uses))
        return k.prove(
            "runs_after_a_line",
            said,
            [*within, *self.on_a_device, *(Not(self.apart(t, place, j)) for place in (source, b))],
            found,
        )

    def _moves(self, b: Any) -> Bool:
        """Whether line t moves values to b."""
        l = self.l
        return And(b == l.target(l.t), Or(*(l.kind(l.t) == KINDS[move.name] for move in MOVES)))

    def theorem(self) -> Theorem:
        """Where it is there at all, one of both runs has not what is needed, whatever that is."""
        l, k, t, b, d, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.j
        needed, first = k.reals("needed"), self.who(0, b, j)
        apart = k.induct(
            "runs_are_as_far_apart_as_it_is_there",
            t,
            Not(self.apart(t, b, j)),
            [t <= self.until],
            base=[self.apart_found.at(t=0), self.begun.at(d=first), self.often_begun.at(d=first)],
            step=[self.apart_found.at(t=t + 1), self._line().at(d=self.who(t + 1, b, j))],
            at=[{}, {"b": l.source(t)}],
        )
        return k.prove(
            "what_is_not_known_makes_two_values",
            Or(l.has(t, b, d)[j] != needed, self.other(t, b, d)[j] != needed),
            [t >= 0, t <= self.until, *self.on_a_device, self.often(t, b, d, j) != 0],
            [apart, self.apart_shown],
        )
