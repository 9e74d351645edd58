"""Messages about indivisible elements: who may know what, and how many messages that takes.

A message carries one element's value, or a partial sum of it. What a device can know of an element
is at most what it and the senders to it knew: knows(e, d, c, t) says that after t messages about
element e, device d's value of it may depend on device c's contribution. Nothing is said of how
values are combined, so what follows holds for every way of doing so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofs.tools.sums import Sum, total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, BoolVal, If, Implies, Ints, IntSort, IntVal, Or

INT = IntSort()
E, D, C, T = Ints("e d c t")  # element, device, contributor, messages so far


def count(condition: Bool) -> Any:
    return If(condition, IntVal(1), IntVal(0))


@dataclass(frozen=True)
class Gossip:
    """A sequence of messages about each element, and who may know what after how many of them."""

    k: Kernel
    n: Any
    group: Theorem
    sender: Any
    receiver: Any
    senders: Theorem
    receivers: Theorem
    knows: Any
    first: Theorem
    then: Theorem
    until: Any  # until(e): the number of messages about element e
    lengths: Theorem

    def device(self, d: Any) -> Bool:
        """d is one of the devices."""
        return And(d >= 0, d < self.n)


def gossip(k: Kernel) -> Gossip:
    n = k.fixed("n", INT)
    k.integers("e d c t")
    sender, receiver = k.function("sender", INT, INT, INT), k.function("receiver", INT, INT, INT)
    senders, receivers = (
        k.suppose(f"{who.name}s_are_devices", [E, T], And(who(E, T) >= 0, who(E, T) < n))
        for who in (sender, receiver)
    )
    group = k.prove("at_least_one_device", n >= 1, uses=[senders])
    knows, first, then = k.recursion(
        "knows",
        [E, D, C],
        T,
        D == C,
        lambda before: Or(before(E, D, C), And(receiver(E, T) == D, before(E, sender(E, T), C))),
    )
    until = k.function("until", INT, INT)
    lengths = k.suppose("schedules_are_finite", [E], until(E) >= 0)
    return Gossip(k, n, group, sender, receiver, senders, receivers, knows, first, then, until, lengths)


@dataclass(frozen=True)
class Census:
    """How often each device took part in those of the first t messages that count."""

    g: Gossip
    name: str
    of: Sum  # of(e, d, t)
    by_all: Sum  # by_all(e, t, n): all devices together
    messages: Any  # how many there were, for t messages
    adds_up: Theorem
    positive: Theorem

    def enough(
        self, least: Any, excepted: Any, once: Theorem, lengths: Theorem, *uses: Theorem
    ) -> Theorem:
        """If every device but one took part, at least n - 1 of those messages were sent.

        `once`: given that d is a device other than `excepted`, of(e, d, least) >= 1.
        """
        g, m = self.g, self.by_all.index
        many = g.k.induct(
            f"{self.name}_by_all_but_one",
            m,
            self.by_all(E, least, m) >= m - count(excepted < m),
            given=[m <= g.n],
            base=[self.by_all.start.at(t=least)],
            step=[
                self.by_all.next.at(t=least),
                once.at(d=m),
                self.positive.at(d=m, t=least),
                lengths,
            ],
        )
        return g.k.prove(
            f"{self.name}_at_least_n_less_one_times",
            self.messages(E, least) >= g.n - 1,
            uses=[many.at(**{str(m): g.n}), self.adds_up.at(t=least), lengths, *uses],
        )


def census(g: Gossip, name: str, who: Any, among: Theorem, counts: Bool | None = None) -> Census:
    """`counts` says of message t whether it counts; None: all do."""
    k, n = g.k, g.n
    m = k.constant(f"{name}_devices", INT)
    counted = BoolVal(True) if counts is None else counts
    of = total(k, name, [E, D], T, count(And(who(E, T) == D, counted)))
    by_all = total(k, f"{name}_by_all", [E, T], m, of(E, m, T))
    positive = k.induct(f"{name}_is_a_count", T, of(E, D, T) >= 0, base=[of.start], step=[of.next])
    messages: Any = lambda _, t: t  # noqa: E731
    equations: list[Theorem] = []
    if counts is not None:
        those = total(k, f"{name}_messages", [E], T, count(counted))
        messages, equations = those, [those.start, those.next]
    none = k.induct(
        f"{name}_by_none_at_first",
        m,
        by_all(E, 0, m) == 0,
        base=[by_all.start.at(t=0)],
        step=[by_all.next.at(t=0), of.start.at(d=m)],
    )
    one_each = k.induct(
        f"{name}_by_one_device_each",
        m,
        by_all(E, T + 1, m) == by_all(E, T, m) + count(And(who(E, T) < m, counted)),
        given=[T >= 0],
        base=[by_all.start, by_all.start.at(t=T + 1), among],
        step=[by_all.next, by_all.next.at(t=T + 1), of.next.at(d=m)],
    )
    adds_up = k.induct(
        f"{name}_adds_up",
        T,
        by_all(E, T, n) == messages(E, T),
        base=[none.at(**{str(m): n}), *equations[:1], g.group],
        step=[one_each.at(**{str(m): n}), *equations[1:], among],
    )
    return Census(g, name, of, by_all, messages, adds_up, positive)


def leaves(g: Gossip, sent: Census) -> Theorem:
    """A contribution that another device knows of was sent by its device."""
    return g.k.induct(
        "what_is_known_elsewhere_was_sent",
        T,
        Implies(And(g.knows(E, D, C, T), D != C), sent.of(E, C, T) >= 1),
        base=[g.first],
        step=[g.then, sent.of.next.at(d=C), sent.positive.at(d=C)],
        at=[{}, {"d": g.sender(E, T)}],
    )


def arrives(g: Gossip, received: Census) -> Theorem:
    """A device that knows of another's contribution has received a message."""
    return g.k.induct(
        "what_is_known_of_others_was_received",
        T,
        Implies(And(g.knows(E, D, C, T), D != C), received.of(E, D, T) >= 1),
        base=[g.first],
        step=[g.then, received.of.next, received.positive],
    )
