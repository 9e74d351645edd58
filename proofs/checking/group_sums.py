"""What devices have as a sum over original values and devices, and the sums over groups of it."""

from __future__ import annotations

from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.symbols import ZERO
from proofs.tools.sums import of_sums, total
from proofs.trusted.kernel import Theorem


class GroupSums:
    """What places stand for, and what groups of devices add up to."""

    def __init__(self, l: Language) -> None:
        self.l, self.k = l, l.k
        k, t, b, s, d, i, j = self.k, l.t, l.b, l.s, l.d, l.i, l.j
        # a product of its own name: where it is not unfolded, it is no product
        self.factors = k.reals("multiple multiplied")
        self.times, self.times_is = k.define("times", self.factors, self.factors[0] * self.factors[1])
        self.share = self.times(l.amount(t, b, s, d, i, j), l.original(s, i, j))
        self.shares = total(k, "shares", [t, b, s, d, j], i, self.share)
        self.stands_for = total(k, "stands_for", [t, b, d, j], s, self.shares(t, b, s, d, j, l.n))
        self._sums_over_groups()

    def variables(self) -> tuple[Any, ...]:
        l = self.l
        return l.t, l.b, l.s, l.d, l.i, l.j

    def inside(self, **at: Any) -> Theorem:
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
            uses=[
                self.times_is,
                self.times_is.at(multiple=more),
                self.times_is.at(multiple=multiple + more),
            ],
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
            step=[of_devices.next.at(i=l.n), by_member_too.next, rows.at(i=l.n), self.inside()],
        )
        self.shares_spread = k.prove(
            "shares_of_a_group",
            self.of_members(t, b, s, d, j, size, l.n) == by_member_too(t, b, d, j, s, size),
            (),
            [swapped.at(c=size, i=l.n), members.at(c=size), self.inside()],
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
            [swapped_too.at(c=size), groups.at(c=size), self.inside()],
        )
        self.by_member, self.by_member_too = by_member, by_member_too
