"""What devices have is a sum of original values, each as often as the lines say: on any mesh.

A line that moves values does the same to amounts as to values, since all of them are linear; what is
computed is a value of its own. So what is known of a place is the sum over all original values s and
devices i of amount(t, b, s, d, i, j) times value s of device i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.content import moving
from proofs.checking.group_sums import GroupSums
from proofs.checking.lines import Line
from proofs.checking.symbols import KINDS, ONE, ZERO
from proofs.checking.unknowns import Counted, read_by
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, If, Implies, IntVal, Not


class Superposition(GroupSums):
    """By induction over the lines of the flat run."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        k, t, b, d, j = self.k, l.t, l.b, l.d, l.j
        self.line = [t >= 0, t < l.last]
        self.on_a_device = [d >= 0, d < l.n]
        self.counted = Counted(l)
        self.not_gone = self._not_gone()
        # a device and an element where a place is not what it stands for, if there are any
        self.wrong_at, self.wrong_element, shown_at, self.found_at = k.choose(
            "wrong_at", [t, b, d], j, Not(self.holds(t, b))
        )
        self.wrong, self.wrong_device, shown, self.found = k.choose(
            "wrong", [t, b], d, self.wrong_at(t, b, d)
        )
        self.fine = k.prove(
            "what_is_not_wrong_holds", self.holds(t, b), [Not(self.wrong(t, b))], [shown_at, shown]
        )

    def is_right(self, t: Any, b: Any) -> Bool:
        """Device d has what place b stands for."""
        l = self.l
        return l.has(t, b, l.d)[l.j] == self.stands_for(t, b, l.d, l.j, l.bound)

    def knows(self, t: Any, b: Any) -> Bool:
        """Whether nothing that is not known is in what device d has of element j."""
        return self.l.unknowns(t, b, self.l.d, self.l.j) == 0

    def holds(self, t: Any, b: Any) -> Bool:
        """Device d has what place b stands for, if it knows it."""
        return Implies(And(*self.on_a_device, self.knows(t, b)), self.is_right(t, b))

    def right_in(self, *places: Any) -> list[Bool]:
        """That what is in some places before line t is not wrong."""
        return [Not(self.wrong(self.l.t, place)) for place in places]

    # ---------------------------------------------------------- lines that move
    def reads(self, move: Line) -> list[tuple[Any, Any]]:
        """Places and devices that a line reads, but for those it adds up."""
        return read_by(self.l, move)

    def law(self, move: Line) -> Theorem:
        """What the target stands for after a line is what the line makes of what it stood for."""
        l, k = self.l, self.k
        t, s, d, i, j = l.t, l.s, l.d, l.i, l.j
        source, target, size = l.source(t), l.target(t), l.mesh.size(t)
        sums, read = "reduce" in move.name, self.reads(move)

        def of(value: Callable[[Any, Any], Any], in_group: Any) -> Any:
            return l.moved_on(move, moving(value, in_group, l.factor(t)))

        share = of(
            lambda b, e: self.times(l.amount(t, b, s, e, i, j), l.original(s, i, j)),
            self.by_member(t, source, s, d, j, i, size),
        )
        shares = of(
            lambda b, e: self.shares(t, b, s, e, j, i), self.of_members(t, source, s, d, j, size, i)
        )
        whole = of(
            lambda b, e: self.shares(t, b, s, e, j, l.n), self.by_member_too(t, source, d, j, s, size)
        )
        stands = of(
            lambda b, e: self.stands_for(t, b, e, j, s), self.of_value(t, source, d, j, size, s)
        )
        right = of(
            lambda b, e: self.stands_for(t, b, e, j, s),
            self.group_stands_for(t, source, d, j, s, size),
        )
        given = [t >= 0, l.kind(t) == KINDS[move.name], *self.on_a_device]
        after = {"t": t + 1, "b": target}
        value = l.original(s, i, j)
        amounts = [l.amount(t, b, s, e, i, j) for b, e in read]
        made = l.amount(t + 1, target, s, d, i, j)
        multiples = {"accumulate": [*amounts, made], "scale": [*amounts, made], "zero": [ZERO]}
        products = [
            self.times_is.at(multiple=m, multiplied=value) for m in multiples.get(move.name, [])
        ]
        one = k.prove(
            f"a_share_after_{move.name}",
            self.times(made, value) == share,
            [*given, i >= 0, i < l.n],
            [
                l.amounts_run.at(b=target),
                *([self.spread.at(b=source, c=size), self.inside()] if sums else products),
            ],
        )
        at = [{"b": b, "d": e} for b, e in read]
        members = self.of_members
        row = k.induct(
            f"shares_after_{move.name}",
            i,
            self.shares(t + 1, target, s, d, j, i) == shares,
            [*given, i <= l.n],
            base=[
                self.shares.start.at(**after),
                *(self.shares.start.at(**each) for each in at),
                *([members.start.at(b=source, c=size)] if sums else []),
            ],
            step=[
                self.shares.next.at(**after),
                *(self.shares.next.at(**each) for each in at),
                *([members.next.at(b=source, c=size)] if sums else []),
                one,
            ],
        )
        all_rows = k.prove(
            f"all_shares_after_{move.name}",
            self.shares(t + 1, target, s, d, j, l.n) == whole,
            given,
            [row.at(i=l.n), *([self.shares_spread.at(b=source)] if sums else [])],
        )
        stood = k.induct(
            f"what_stands_after_{move.name}",
            s,
            self.stands_for(t + 1, target, d, j, s) == stands,
            given,
            base=[
                self.stands_for.start.at(**after),
                *(self.stands_for.start.at(**each) for each in at),
                *([self.of_value.start.at(b=source, c=size)] if sums else []),
            ],
            step=[
                self.stands_for.next.at(**after),
                *(self.stands_for.next.at(**each) for each in at),
                *([self.of_value.next.at(b=source, c=size)] if sums else []),
                all_rows,
            ],
        )
        if not sums:
            return stood
        return k.prove(
            f"law_of_{move.name}",
            self.stands_for(t + 1, target, d, j, s) == right,
            [*given, s >= 0],
            [stood, self.values_spread.at(b=source)],
        )

    # ------------------------------------------------------------ what is not known
    def _not_gone(self) -> Theorem:
        """What a device knows is there."""
        l, k, t, b, d, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.j
        gone = k.induct(
            "what_is_gone_is_not_known",
            t,
            Implies(l.gone(b, t), l.unknowns(t, b, d, j) == 1),
            self.on_a_device,
            base=[l.gone_start, l.unknowns_begin],
            step=[l.gone_next, l.unknowns_run],
        )
        return k.prove(
            "what_is_known_is_there",
            Not(l.gone(b, t)),
            [t >= 0, *self.on_a_device, self.knows(t, b)],
            [gone],
        )

    # ------------------------------------------------------------------ each line
    def moved(self, move: Line) -> Theorem:
        l, k, t, b, d, c, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.c, self.l.j
        target = l.target(t)
        given, known = [t >= 0, l.kind(t) == KINDS[move.name]], self.knows(t + 1, target)
        if move.name == "release":
            return k.prove(
                "step_release", Not(known), [*given, *self.on_a_device], [l.unknowns_run.at(b=target)]
            )
        given += self.on_a_device
        if move.name != "zero":
            given.append(known)
        read = self.reads(move)
        facts = [
            l.runs.at(b=target),
            l.unknowns_run.at(b=target),
            self.not_gone.at(t=t + 1, b=target),
            self.law(move).at(s=l.bound),
            l.finite,
            *(self.fine.at(b=b, d=e) for b, e in read),
        ]
        if move.name == "accumulate":
            facts += [self.counted.known.at(b=b, d=e) for b, e in read]
        coordinates = {"all_gather": l.mesh.owner(t, d, j), "broadcast": IntVal(0)}
        facts += [self.inside(c=c) for name, c in coordinates.items() if name == move.name]
        places = [l.source(t), *([target] if move.name in ("keep", "accumulate") else [])]
        if "reduce" in move.name:
            facts.append(self.inside())
            member, size = l.mesh.member(t, d, c), l.mesh.size(t)
            source = l.source(t)
            facts.append(
                k.induct(
                    "groups_have_what_they_stand_for",
                    c,
                    l.everyone(t, b, d, j, c) == self.group_stands_for(t, b, d, j, l.bound, c),
                    [
                        *self.on_a_device,
                        c <= size,
                        Not(self.wrong(t, b)),
                        l.unknowns_in_group(t, b, d, j, size) == 0,
                        t >= 0,
                    ],
                    base=[l.everyone.start, self.group_stands_for.start.at(s=l.bound)],
                    step=[
                        l.everyone.next,
                        self.group_stands_for.next.at(s=l.bound),
                        self.fine.at(d=member),
                        self.counted.known.at(d=member),
                        self.counted.part_of_group.at(one_of_them=c, c=size),
                        self.counted.never,
                        self.inside(),
                    ],
                ).at(b=source, c=size)
            )
        return k.prove(
            f"step_{move.name}",
            self.is_right(t + 1, target),
            [*given, *(self.right_in(*places) if read or "reduce" in move.name else [])],
            facts,
        )

    def untouched(self) -> Theorem:
        l, k, t, b, s, d, i, j = self.l, self.k, *self.variables()
        given = [t >= 0, l.untouched(b), *self.on_a_device]
        after = {"t": t + 1}
        shares = k.induct(
            "shares_elsewhere",
            i,
            self.shares(t + 1, b, s, d, j, i) == self.shares(t, b, s, d, j, i),
            [*given, i <= l.n],
            base=[self.shares.start, self.shares.start.at(**after)],
            step=[self.shares.next, self.shares.next.at(**after), l.amounts_run],
        )
        same = k.induct(
            "what_stands_elsewhere",
            s,
            self.stands_for(t + 1, b, d, j, s) == self.stands_for(t, b, d, j, s),
            given,
            base=[self.stands_for.start, self.stands_for.start.at(**after)],
            step=[
                self.stands_for.next,
                self.stands_for.next.at(**after),
                shares.at(i=l.n),
            ],
        )
        return k.prove(
            "step_elsewhere",
            self.is_right(t + 1, b),
            [*given, self.knows(t + 1, b), *self.right_in(b)],
            [
                l.runs,
                l.unknowns_run,
                self.not_gone.at(t=t + 1),
                same.at(s=l.bound),
                l.finite,
                self.fine,
            ],
        )

    def dropped(self) -> Theorem:
        l, t, b = self.l, self.l.t, self.l.b
        return self.k.prove(
            "step_dropped",
            Not(self.knows(t + 1, b)),
            [t >= 0, *self.on_a_device, l.drops(b), b != l.target(t)],
            [l.unknowns_run],
        )

    def single(
        self, name: str, t: Any, b: Any, made: Any, given: Sequence[Bool], ran: Theorem
    ) -> Theorem:
        """What a place stands for of which each device has one value once: that value, of its own."""
        l, k, s, d, i, j = self.l, self.k, self.l.s, self.l.d, self.l.i, self.l.j
        who = l.whose(made, d)
        own, at = l.original(made, who, j), {"t": t, "b": b}
        of = [self.times_is.at(multiple=a, multiplied=l.original(s, i, j)) for a in (ZERO, ONE)]
        row = k.induct(
            f"shares_of_{name}",
            i,
            self.shares(t, b, s, d, j, i) == If(And(s == made, who < i), own, ZERO),
            [*given, *self.on_a_device, i <= l.n],
            base=[self.shares.start.at(**at)],
            step=[self.shares.next.at(**at), ran, *of],
        )
        return k.induct(
            f"what_{name}_stands_for",
            s,
            self.stands_for(t, b, d, j, s) == If(made < s, own, ZERO),
            [*given, *self.on_a_device, made >= 0],
            base=[self.stands_for.start.at(**at)],
            step=[self.stands_for.next.at(**at), row.at(i=l.n)],
        ).at(s=l.bound)
