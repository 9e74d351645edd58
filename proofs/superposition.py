"""What devices have is a sum of original values, each as often as the lines say: on any mesh.

A line that moves values does the same to amounts as to values, since all of them are linear; what is
computed is a value of its own. So what is known of a place is the sum over all original values s and
devices i of amount(t, b, s, d, i, j) times value s of device i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Theorem
from proofs.lines import MOVES, Line
from proofs.sums import of_sums, total
from proofs.symbolic_schedule import (
    BACKWARD,
    CONTRIBUTION,
    KINDS,
    MOMENT,
    NOTHING,
    ONE,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    Content,
    Language,
)


def moving(at: Callable[[Any, Any], Any], in_group: Any, factor: Any) -> Content:
    """What is followed through a line that moves values."""
    return Content(at, in_group, ZERO, factor, ZERO, ZERO, ZERO, ZERO)


class Superposition:
    """By induction over the lines of the flat run."""

    def __init__(self, l: Language) -> None:
        self.l, self.k = l, l.k
        k, t, b, s, d, i, j = self.k, l.t, l.b, l.s, l.d, l.i, l.j
        # a product of its own name: where it is not unfolded, it is no product
        self.factors = k.reals("multiple multiplied")
        self.times, self.times_is = k.define("times", self.factors, self.factors[0] * self.factors[1])
        self.share = self.times(l.amount(t, b, s, d, i, j), l.original(s, i, j))
        self.shares = total(k, "shares", [t, b, s, d, j], i, self.share)
        self.stands_for = total(
            k, "stands_for", [t, b, d, j], s, self.shares(t, b, s, d, j, l.n)
        )
        self.line = [t >= 0, t < l.last]
        self.on_a_device = [d >= 0, d < l.n]
        self.finite = k.prove(
            "there_are_original_values",
            l.bound >= 0,
            uses=[l.numbered, l.names.at(w=WEIGHT, u=z3.IntVal(0), m=z3.IntVal(0))],
        )
        self._sums_over_groups()
        self.known = self._never_negative()
        self.not_gone = self._not_gone()
        # a device and an element where a place is not what it stands for, if there are any
        self.wrong_at, self.wrong_element, shown_at, self.found_at = k.choose(
            "wrong_at", [t, b, d], j, z3.Not(self.holds(t, b))
        )
        self.wrong, self.wrong_device, shown, self.found = k.choose(
            "wrong", [t, b], d, self.wrong_at(t, b, d)
        )
        self.fine = k.prove(
            "what_is_not_wrong_holds", self.holds(t, b), [z3.Not(self.wrong(t, b))], [shown_at, shown]
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
        return z3.Implies(z3.And(*self.on_a_device, self.knows(t, b)), self.is_right(t, b))

    def right_in(self, *places: Any) -> list[Bool]:
        """That what is in some places before line t is not wrong."""
        return [z3.Not(self.wrong(self.l.t, place)) for place in places]

    def _inside(self, **at: Any) -> Theorem:
        return self.l.mesh.inside.at(**at)

    # --------------------------------------------------------- sums over a group
    def _sums_over_groups(self) -> None:
        """What the amounts of a group add up to stands for the sum over the group."""
        l, k = self.l, self.k
        t, b, s, d, i, c, j = l.t, l.b, l.s, l.d, l.i, l.c, l.j
        member, size = l.mesh.member(t, d, c), l.mesh.size(t)
        share = self.times(l.amount(t, b, s, member, i, j), l.original(s, i, j))
        by_device, of_devices, by_member, self.of_members, swapped = of_sums(
            k, "group", c, i, share, [t, b, s, d, j]
        )
        shares = self.shares(t, b, s, member, j, l.n)
        by_value, of_values, by_member_too, self.of_value, swapped_too = of_sums(
            k, "group_values", c, s, shares, [t, b, d, j]
        )
        multiple, multiplied = self.factors
        more = k.reals("further")
        adds = k.prove(
            "multiples_add_up",
            self.times(multiple + more, multiplied)
            == self.times(multiple, multiplied) + self.times(more, multiplied),
            uses=[self.times_is, self.times_is.at(multiple=more), self.times_is.at(multiple=multiple + more)],
        )
        self.adds = adds
        amount = l.in_group(t, b, s, d, i, j, c)
        self.spread = k.induct(
            "a_groups_amounts_spread",
            c,
            self.times(amount, l.original(s, i, j)) == by_member(t, b, s, d, j, i, c),
            base=[
                l.in_group.start,
                by_member.start,
                self.times_is.at(multiple=ZERO, multiplied=l.original(s, i, j)),
            ],
            step=[
                l.in_group.next,
                by_member.next,
                adds.at(
                    multiple=amount,
                    further=l.amount(t, b, s, member, i, j),
                    multiplied=l.original(s, i, j),
                ),
            ],
        )
        rows = k.induct(
            "a_members_shares",
            i,
            by_device(t, b, s, d, j, c, i) == self.shares(t, b, s, member, j, i),
            base=[by_device.start, self.shares.start.at(d=member)],
            step=[by_device.next, self.shares.next.at(d=member)],
        )
        members = k.induct(
            "a_groups_shares",
            c,
            of_devices(t, b, s, d, j, l.n, c) == by_member_too(t, b, d, j, s, c),
            base=[of_devices.start.at(i=l.n), by_member_too.start],
            step=[of_devices.next.at(i=l.n), by_member_too.next, rows.at(i=l.n), self._inside()],
        )
        self.shares_spread = k.prove(
            "shares_of_a_group",
            self.of_members(t, b, s, d, j, size, l.n) == by_member_too(t, b, d, j, s, size),
            (),
            [swapped.at(c=size, i=l.n), members.at(c=size), self._inside()],
        )
        values = k.induct(
            "a_members_values",
            s,
            by_value(t, b, d, j, c, s) == self.stands_for(t, b, member, j, s),
            base=[by_value.start, self.stands_for.start.at(d=member)],
            step=[by_value.next, self.stands_for.next.at(d=member)],
        )
        everyone = total(k, "group_stands_for", [t, b, d, j, s], c, self.stands_for(t, b, member, j, s))
        self.group_stands_for = everyone
        groups = k.induct(
            "what_a_groups_values_are",
            c,
            of_values(t, b, d, j, s, c) == everyone(t, b, d, j, s, c),
            [s >= 0],
            base=[of_values.start, everyone.start],
            step=[of_values.next, everyone.next, values],
        )
        self.values_spread = k.prove(
            "values_of_a_group",
            self.of_value(t, b, d, j, size, s) == everyone(t, b, d, j, s, size),
            [s >= 0],
            [swapped_too.at(c=size), groups.at(c=size), self._inside()],
        )
        self.by_member, self.by_member_too = by_member, by_member_too

    # ---------------------------------------------------------- lines that move
    def reads(self, move: Line) -> list[tuple[Any, Any]]:
        """Places and devices that a line reads, but for those it adds up."""
        found: dict[tuple[int, int], tuple[Any, Any]] = {}

        def at(b: Any, e: Any) -> Any:
            found[b.get_id(), e.get_id()] = b, e
            return ZERO

        self.l.moved_on(move, moving(at, ZERO, ONE))
        return list(found.values())

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
        given = [t >= 0, l.kind(t) == KINDS[move.name]]
        after = {"t": t + 1, "b": target}
        value = l.original(s, i, j)
        amounts = [l.amount(t, b, s, e, i, j) for b, e in read]
        products = [self.times_is.at(multiple=m, multiplied=value) for m in (ZERO, *amounts)]
        made = l.amount(t + 1, target, s, d, i, j)
        one = k.prove(
            f"a_share_after_{move.name}",
            self.times(made, value) == share,
            [*given, i >= 0, i < l.n],
            [
                l.amounts_run.at(b=target),
                *([self.spread.at(b=source, c=size), self._inside()] if sums else products),
                *([] if sums else [self.times_is.at(multiple=made, multiplied=value)]),
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
            [row.at(i=l.n), self._inside(), *([self.shares_spread.at(b=source)] if sums else [])],
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
    def _never_negative(self) -> Theorem:
        """What is not known counts at least nothing, on all devices, in all places, at all times."""
        l, k, t, b, d, c, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.c, self.l.j
        here, after = l.unknowns(t, b, d, j), l.unknowns(t + 1, b, d, j)
        below, element, shown_below, found_below = k.choose("below_nothing_at", [t, b, d], j, here < 0)
        negative, device, shown, found = k.choose(
            "below_nothing", [t, b], d, z3.And(*self.on_a_device, below(t, b, d))
        )
        least = k.prove(
            "unknowns_count",
            here >= 0,
            [*self.on_a_device, z3.Not(negative(t, b))],
            [shown_below, shown],
        )
        none = z3.Not(negative(t, b))
        in_group = k.induct(
            "unknowns_of_a_group_count",
            c,
            l.unknowns_in_group(t, b, d, j, c) >= 0,
            [*self.on_a_device, none, c <= l.mesh.size(t)],
            base=[l.unknowns_in_group.start],
            step=[l.unknowns_in_group.next, least.at(d=l.mesh.member(t, d, c)), self._inside()],
        )
        one = k.integers("one_of_them")
        self.part_of_group = k.induct(
            "a_member_is_part_of_its_group",
            c,
            z3.Implies(
                one < c,
                l.unknowns(t, b, l.mesh.member(t, d, one), j) <= l.unknowns_in_group(t, b, d, j, c),
            ),
            [*self.on_a_device, none, one >= 0, c <= l.mesh.size(t)],
            base=[],
            step=[
                l.unknowns_in_group.next,
                in_group,
                least.at(d=l.mesh.member(t, d, c)),
                self._inside(),
            ],
        )
        read = {(b.get_id(), e.get_id()): (b, e) for move in MOVES for b, e in self.reads(move)}
        step = k.prove(
            "unknowns_count_after_a_line",
            after >= 0,
            [t >= 0, *self.on_a_device, none, *(z3.Not(negative(t, at(t))) for at in (l.source, l.target))],
            [
                l.unknowns_run,
                least,
                in_group.at(b=l.source(t), c=l.mesh.size(t)),
                *(least.at(b=b, d=e) for b, e in read.values()),
                self._inside(),
                *(self._inside(c=e) for e in (z3.IntVal(0), l.mesh.owner(t, d, j))),
            ],
        )

        def at(time: Any) -> dict[str, Any]:
            where = device(time, b)
            return {"d": where, "j": element(time, b, where)}

        zero, reads = z3.IntVal(0), ({"b": l.source(t)}, {"b": l.target(t)})
        self.never = k.induct(
            "nothing_is_below_nothing",
            t,
            none,
            base=[
                found.at(t=zero),
                found_below.at(t=zero, d=device(zero, b)),
                l.unknowns_begin.at(**at(zero)),
            ],
            step=[
                found.at(t=t + 1),
                found_below.at(t=t + 1, d=device(t + 1, b)),
                step.at(**at(t + 1)),
            ],
            at=[{}, *reads],
        )
        return k.prove(
            "what_is_not_known_counts", here >= 0, [t >= 0, *self.on_a_device], [self.never, least]
        )

    def _not_gone(self) -> Theorem:
        """What a device knows is there."""
        l, k, t, b, d, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.j
        gone = k.induct(
            "what_is_gone_is_not_known",
            t,
            z3.Implies(l.gone(b, t), l.unknowns(t, b, d, j) == 1),
            base=[l.gone_start, l.unknowns_begin],
            step=[l.gone_next, l.unknowns_run],
        )
        return k.prove(
            "what_is_known_is_there", z3.Not(l.gone(b, t)), [t >= 0, self.knows(t, b)], [gone]
        )

    # ------------------------------------------------------------------ each line
    def steps(self) -> tuple[Theorem, ...]:
        """What every line leaves right, by kind."""
        moves = [self._moved(move) for move in MOVES]
        return (*moves, self._untouched(), self._dropped(), self._backward(), *self._update())

    def _moved(self, move: Line) -> Theorem:
        l, k, t, b, d, c, j = self.l, self.k, self.l.t, self.l.b, self.l.d, self.l.c, self.l.j
        target = l.target(t)
        given = [t >= 0, l.kind(t) == KINDS[move.name], *self.on_a_device, self.knows(t + 1, target)]
        if move.name == "release":
            false = z3.BoolVal(False)
            return k.prove("step_release", false, given, [l.unknowns_run.at(b=target)])
        read = self.reads(move)
        facts = [
            l.runs.at(b=target),
            l.unknowns_run.at(b=target),
            self.not_gone.at(t=t + 1, b=target),
            self.law(move).at(s=l.bound),
            self.finite,
            *(self.fine.at(b=b, d=e) for b, e in read),
            *(self.known.at(b=b, d=e) for b, e in read),
            self._inside(),
            *(self._inside(c=e) for e in (z3.IntVal(0), l.mesh.owner(t, d, j))),
        ]
        places = [l.source(t), *([target] if move.name in ("keep", "accumulate") else [])]
        if "reduce" in move.name:
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
                        z3.Not(self.wrong(t, b)),
                        l.unknowns_in_group(t, b, d, j, size) == 0,
                        t >= 0,
                    ],
                    base=[l.everyone.start, self.group_stands_for.start.at(s=l.bound)],
                    step=[
                        l.everyone.next,
                        self.group_stands_for.next.at(s=l.bound),
                        self.fine.at(d=member),
                        self.known.at(d=member),
                        self.part_of_group.at(one_of_them=c, c=size),
                        self.never,
                        self._inside(),
                    ],
                ).at(b=source, c=size)
            )
        return k.prove(
            f"step_{move.name}",
            self.is_right(t + 1, target),
            [*given, *(self.right_in(*places) if read or "reduce" in move.name else [])],
            facts,
        )

    def _untouched(self) -> Theorem:
        l, k, t, b, s, d, i, j = self.l, self.k, *self._names()
        given = [t >= 0, l.untouched(b)]
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
                self._inside(),
            ],
        )
        return k.prove(
            "step_elsewhere",
            self.is_right(t + 1, b),
            [*given, *self.on_a_device, self.knows(t + 1, b), *self.right_in(b)],
            [
                l.runs,
                l.unknowns_run,
                self.not_gone.at(t=t + 1),
                same.at(s=l.bound),
                self.finite,
                self.fine,
            ],
        )

    def _names(self) -> tuple[Any, ...]:
        l = self.l
        return l.t, l.b, l.s, l.d, l.i, l.j

    def _dropped(self) -> Theorem:
        l, t, b = self.l, self.l.t, self.l.b
        return self.k.prove(
            "step_dropped",
            z3.Not(self.knows(t + 1, b)),
            [t >= 0, l.drops(b), b != l.target(t)],
            [l.unknowns_run],
        )

    def _single(self, name: str, t: Any, b: Any, made: Any, given: Sequence[Bool], ran: Theorem) -> Theorem:
        """What a place stands for of which each device has one value once: that value, of its own."""
        l, k, s, d, i, j = self.l, self.k, self.l.s, self.l.d, self.l.i, self.l.j
        own, at = l.original(made, d, j), {"t": t, "b": b}
        of = [self.times_is.at(multiple=a, multiplied=l.original(s, i, j)) for a in (ZERO, ONE)]
        row = k.induct(
            f"shares_of_{name}",
            i,
            self.shares(t, b, s, d, j, i) == z3.If(z3.And(s == made, d < i), own, ZERO),
            [*given, *self.on_a_device, i <= l.n],
            base=[self.shares.start.at(**at)],
            step=[self.shares.next.at(**at), ran, *of],
        )
        return k.induct(
            f"what_{name}_stands_for",
            s,
            self.stands_for(t, b, d, j, s) == z3.If(made < s, own, ZERO),
            [*given, *self.on_a_device, made >= 0],
            base=[self.stands_for.start.at(**at)],
            step=[self.stands_for.next.at(**at), row.at(i=l.n), self._inside()],
        ).at(s=l.bound)

    # ---------------------------------------------------- lines that compute
    def _backward(self) -> Theorem:
        l, k, t, b, s, d, i, j = self.l, self.k, *self._names()
        now, weight = l.step(t), l.state(WEIGHT, l.step(t))
        read = {"view": l.source(t), "activations": l.second(t)}
        right = [l.kind(t) == BACKWARD, l.is_right(t, d)]
        compares = self.agree(
            "a_right_backward_compares_equal",
            [t],
            lambda at: [l.kind(t) == BACKWARD, at.right],
            [(t, b, weight, now) for b in read.values()],
        )
        rows = [
            k.extend(
                f"{name}_is_the_weights",
                self.read(name, t, b, WEIGHT, now, [*right, *self.line], compares),
                j,
            )
            for name, b in read.items()
        ]
        made = l.made_gradient(t, d)
        names = (
            l.names.at(w=CONTRIBUTION, u=now, m=l.micro(t)),
            l.names.at(w=WRONG, u=t, m=z3.IntVal(0)),
        )
        given = [*self.line, l.kind(t) == BACKWARD]
        target = l.target(t)
        stands = self._single(
            "a_gradient", t + 1, target, made, given, l.amounts_run.at(b=target)
        )
        return k.prove(
            "step_backward",
            self.is_right(t + 1, target),
            [*given, *self.on_a_device, self.knows(t + 1, target), *self.right_in(*read.values())],
            [
                l.runs.at(b=target),
                self.not_gone.at(t=t + 1, b=target),
                stands,
                *rows,
                *names,
                l.numbered,
                l.original_is.at(s=made),
            ],
        )

    def _update(self) -> list[Theorem]:
        l, k, t, b, s, d, i, j = self.l, self.k, *self._names()
        now = l.step(t)
        read = (
            ("old_weight", l.source(t), WEIGHT),
            ("old_moment", l.second(t), MOMENT),
            ("gradient", l.third(t), None),
        )
        met = [l.kind(t) == UPDATE, l.is_met(t, d, j)]
        compares = self.agree(
            "a_met_update_compares_equal",
            [t],
            lambda at: [l.kind(t) == UPDATE, at.met],
            [(t, b, None if w is None else l.state(w, now), now) for _, b, w in read],
        )
        right = [
            self.read(name, t, b, w, now, [*met, *self.line], compares) for name, b, w in read
        ]
        given = [*self.line, l.kind(t) == UPDATE]
        found = []
        places = l.target(t), l.second(t)
        states = (WEIGHT, WRONG), (MOMENT, WRONG_MOMENT)
        named = zip(("weight", "moment"), places, l.made_states(t, d, j), states, strict=True)
        for name, place, made, kinds in named:
            other = [l.target(t) != l.second(t)] if name == "weight" else []
            stands = self._single(
                f"a_new_{name}", t + 1, place, made, [*given, *other], l.amounts_run.at(b=place)
            )
            names = (
                l.names.at(w=w, u=u, m=z3.IntVal(0))
                for w, u in zip(kinds, (now + 1, t), strict=True)
            )
            found.append(
                k.prove(
                    f"step_new_{name}",
                    self.is_right(t + 1, place),
                    [
                        *given,
                        *other,
                        *self.on_a_device,
                        self.knows(t + 1, place),
                        *self.right_in(*(b for _, b, _ in read)),
                    ],
                    [
                        l.runs.at(b=place),
                        self.not_gone.at(t=t + 1, b=place),
                        stands,
                        *right,
                        *names,
                        l.numbered,
                        l.original_is.at(s=made),
                        l.trains.at(u=now),
                    ],
                )
            )
        return found
