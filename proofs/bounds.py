"""C5: no schedule of messages does all-gather, reduce-scatter or all-reduce with less than the rings.

Elements are indivisible: a message carries one element's value, or a partial sum of it. What a
device can know of an element is at most what it and the senders to it knew: knows(e, d, c, t) says
that after t messages about element e, device d's value of it may depend on device c's contribution.
Nothing is said of how values are combined, so the bounds hold for every way of doing so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from proofs.kernel import Bool, Kernel, Theorem
from proofs.sums import Sum, of_sums, total
from spec import collectives as spec

INT = z3.IntSort()
E, D, C, T = z3.Ints("e d c t")  # element, device, contributor, messages so far


def _count(condition: Bool) -> Any:
    return z3.If(condition, z3.IntVal(1), z3.IntVal(0))


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
        return z3.And(d >= 0, d < self.n)


def _gossip(k: Kernel) -> Gossip:
    n = k.fixed("n", INT)
    group = k.suppose("at_least_one_device", [], n >= 1)
    k.integers("e d c t")
    sender, receiver = k.function("sender", INT, INT, INT), k.function("receiver", INT, INT, INT)
    senders, receivers = (
        k.suppose(f"{who.name()}s_are_devices", [E, T], z3.And(who(E, T) >= 0, who(E, T) < n))
        for who in (sender, receiver)
    )
    knows, first, then = k.recursion(
        "knows",
        [E, D, C],
        T,
        D == C,
        lambda before: z3.Or(before(E, D, C), z3.And(receiver(E, T) == D, before(E, sender(E, T), C))),
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

    def enough(self, least: Any, excepted: Any, once: Theorem, *uses: Theorem) -> Theorem:
        """If every device but one took part, at least n - 1 of those messages were sent.

        `once`: given that d is a device other than `excepted`, of(e, d, least) >= 1.
        """
        g, m = self.g, self.by_all.index
        many = g.k.induct(
            f"{self.name}_by_all_but_one",
            m,
            self.by_all(E, least, m) >= m - _count(excepted < m),
            given=[m <= g.n],
            base=[self.by_all.start.at(t=least)],
            step=[
                self.by_all.next.at(t=least),
                once.at(d=m),
                self.positive.at(d=m, t=least),
                *uses,
            ],
        )
        return g.k.prove(
            f"{self.name}_at_least_n_less_one_times",
            self.messages(E, least) >= g.n - 1,
            uses=[many.at(**{str(m): g.n}), self.adds_up.at(t=least), g.group, *uses],
        )


def _census(g: Gossip, name: str, who: Any, among: Theorem, counts: Bool | None = None) -> Census:
    """`counts` says of message t whether it counts; None: all do."""
    k, n = g.k, g.n
    m = k.constant(f"{name}_devices", INT)
    counted = z3.BoolVal(True) if counts is None else counts
    of = total(k, name, [E, D], T, _count(z3.And(who(E, T) == D, counted)))
    by_all = total(k, f"{name}_by_all", [E, T], m, of(E, m, T))
    positive = k.induct(f"{name}_is_a_count", T, of(E, D, T) >= 0, base=[of.start], step=[of.next])
    messages: Any = lambda _, t: t  # noqa: E731
    equations: list[Theorem] = []
    if counts is not None:
        those = total(k, f"{name}_messages", [E], T, _count(counted))
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
        by_all(E, T + 1, m) == by_all(E, T, m) + _count(z3.And(who(E, T) < m, counted)),
        given=[T >= 0],
        base=[by_all.start, by_all.start.at(t=T + 1), among],
        step=[by_all.next, by_all.next.at(t=T + 1), of.next.at(d=m)],
    )
    adds_up = k.induct(
        f"{name}_adds_up",
        T,
        by_all(E, T, n) == messages(E, T),
        base=[none.at(**{str(m): n}), *equations[:1], g.group],
        step=[one_each.at(**{str(m): n}), *equations[1:], among, g.group],
    )
    return Census(g, name, of, by_all, messages, adds_up, positive)


def _leaves(g: Gossip, sent: Census) -> Theorem:
    """A contribution that another device knows of was sent by its device."""
    return g.k.induct(
        "what_is_known_elsewhere_was_sent",
        T,
        sent.of(E, C, T) >= 1,
        given=[g.knows(E, D, C, T), D != C],
        base=[g.first],
        step=[g.then, sent.of.next.at(d=C), sent.positive.at(d=C)],
        at=[{}, {"d": g.sender(E, T)}],
    )


def _arrives(g: Gossip, received: Census) -> Theorem:
    """A device that knows of another's contribution has received a message."""
    return g.k.induct(
        "what_is_known_of_others_was_received",
        T,
        received.of(E, D, T) >= 1,
        given=[g.knows(E, D, C, T), D != C],
        base=[g.first],
        step=[g.then, received.of.next, received.positive],
    )


@dataclass(frozen=True)
class Traffic:
    """All messages about all elements, by the devices that send them."""

    g: Gossip
    size: Any  # elements
    v: Any  # what the busiest device sends
    messages: Sum  # about the first so many elements
    shared_out: Theorem  # all messages are at most n v
    some: Theorem

    def at_least(self, collective: spec.Collective, least: Theorem) -> Theorem:
        """If every element takes so many messages, some device sends its share of all of them.

        `least`: until(e) >= messages(n) of the collective.
        """
        k, n, y = self.g.k, self.g.n, self.messages.index
        together = k.induct(
            f"messages_of_{collective.name}",
            y,
            self.messages(y) >= y * collective.messages(n),
            base=[self.messages.start],
            step=[self.messages.next, least.at(e=y)],
        )
        return k.prove(
            f"{collective.name}_cannot_be_done_with_less",
            n * self.v >= self.size * collective.messages(n),
            uses=[self.shared_out, together.at(**{str(y): self.size}), self.some],
        )


def _traffic(g: Gossip, sent: Census) -> Traffic:
    k, n = g.k, g.n
    size, v = k.fixed("elements", INT), k.fixed("v", INT)
    some = k.suppose("elements_are_counted", [], size >= 0)
    x, y = k.integers("device element")
    sends, all_send, about, all_about, exchanged = of_sums(
        k, "traffic", x, y, sent.of(y, x, g.until(y)), []
    )
    bounded = k.suppose(
        "no_device_sends_more_than_v", [x], z3.Implies(g.device(x), sends(x, size) <= v)
    )
    same = k.induct(
        "what_all_send_about_one_element",
        x,
        about(y, x) == sent.by_all(y, g.until(y), x),
        base=[about.start, sent.by_all.start.at(e=y, t=g.until(y))],
        step=[
            about.next,
            sent.by_all.next.at(**{"e": y, "t": g.until(y), str(sent.by_all.index): x}),
        ],
    )
    messages = total(k, "messages", [], y, g.until(y))
    together = k.induct(
        "what_all_send_about_all_elements",
        y,
        all_about(n, y) == messages(y),
        base=[all_about.start.at(device=n), messages.start],
        step=[
            all_about.next.at(device=n),
            messages.next,
            same.at(device=n),
            g.group,
            sent.adds_up.at(e=y, t=g.until(y)),
            g.lengths.at(e=y),
        ],
    )
    at_most = k.induct(
        "devices_send_at_most_v_each",
        x,
        all_send(size, x) <= x * v,
        given=[x <= n],
        base=[all_send.start.at(element=size)],
        step=[all_send.next.at(element=size), bounded],
    )
    shared_out = k.prove(
        "all_messages_are_at_most_n_v",
        messages(size) <= n * v,
        uses=[
            at_most.at(device=n),
            together.at(element=size),
            exchanged.at(device=n, element=size),
            g.group,
            some,
        ],
    )
    return Traffic(g, size, v, messages, shared_out, some)


def _reduce_scatter_messages(
    g: Gossip, owner: Any, owners: Theorem, sent: Census, leaves: Theorem
) -> Theorem:
    """Every device but the owner has to send its contribution."""
    k = g.k
    gets = k.suppose(
        "the_owner_ends_with_every_contribution",
        [E, C],
        z3.Implies(g.device(C), g.knows(E, owner(E), C, g.until(E))),
    )
    once = k.prove(
        "every_other_device_sends",
        sent.of(E, D, g.until(E)) >= 1,
        given=[g.device(D), owner(E) != D],
        uses=[leaves.at(d=owner(E), c=D, t=g.until(E)), gets.at(c=D), g.lengths],
    )
    return sent.enough(g.until(E), owner(E), once, owners, g.lengths)


def _all_gather_messages(g: Gossip, owner: Any, owners: Theorem) -> Theorem:
    """Every device but the owner has to receive the owner's value."""
    k = g.k
    gets = k.suppose(
        "every_device_ends_with_the_owners_value",
        [E, D],
        z3.Implies(g.device(D), g.knows(E, D, owner(E), g.until(E))),
    )
    received = _census(g, "received", g.receiver, g.receivers)
    once = k.prove(
        "every_other_device_receives",
        received.of(E, D, g.until(E)) >= 1,
        given=[g.device(D), owner(E) != D],
        uses=[_arrives(g, received).at(c=owner(E), t=g.until(E)), gets, g.lengths],
    )
    return received.enough(g.until(E), owner(E), once, owners, g.lengths)


def _all_reduce_messages(g: Gossip, sent: Census, leaves: Theorem) -> Theorem:
    """Before some device knows everything n - 1 devices must send; after it n - 1 must receive."""
    k, n, knows, until = g.k, g.n, g.knows, g.until
    several = k.suppose("at_least_two_devices", [], n >= 2)
    lacks, lacked, lack_shown, lack_found = k.choose(
        "lacks", [E, D, T], C, z3.And(g.device(C), z3.Not(knows(E, D, C, T)))
    )
    done, whose, done_shown, done_found = k.choose(
        "somebody_is_done", [E, T], D, z3.And(g.device(D), z3.Not(lacks(E, D, T)))
    )
    gets = k.suppose(
        "every_device_ends_with_every_contribution",
        [E, D, C],
        z3.Implies(z3.And(g.device(D), g.device(C)), knows(E, D, C, until(E))),
    )
    all_done = k.prove(
        "every_device_is_done",
        z3.Not(lacks(E, D, until(E))),
        given=[g.device(D)],
        uses=[lack_found.at(t=until(E)), gets.at(c=lacked(E, D, until(E)))],
    )
    early = _census(g, "sent_early", g.sender, g.senders, z3.Not(done(E, T)))
    late = _census(g, "received_late", g.receiver, g.receivers, done(E, T))

    # nobody is done at first
    other = z3.If(D == 0, z3.IntVal(1), z3.IntVal(0))
    lacking = k.prove(
        "at_first_every_device_lacks_another",
        lacks(E, D, 0),
        uses=[lack_shown.at(c=other, t=0), g.first.at(c=other), several],
    )
    nobody = k.prove(
        "at_first_nobody_is_done",
        z3.Not(done(E, 0)),
        uses=[done_found.at(t=0), lacking.at(d=whose(E, 0))],
    )
    # once done, always done
    keeps = k.prove(
        "knowledge_is_kept",
        z3.Implies(lacks(E, D, T + 1), lacks(E, D, T)),
        given=[T >= 0],
        uses=[
            lack_found.at(t=T + 1),
            g.then.at(c=lacked(E, D, T + 1)),
            lack_shown.at(c=lacked(E, D, T + 1)),
        ],
    )
    stays = k.prove(
        "somebody_stays_done",
        z3.Implies(done(E, T), done(E, T + 1)),
        given=[T >= 0],
        uses=[done_found, keeps.at(d=whose(E, T)), done_shown.at(d=whose(E, T), t=T + 1)],
    )
    # until then all messages are early ones
    all_early = k.induct(
        "until_then_every_message_is_early",
        T,
        early.of(E, D, T) == sent.of(E, D, T),
        given=[z3.Or(T == 0, z3.Not(done(E, T - 1)))],
        base=[early.of.start, sent.of.start],
        step=[early.of.next, sent.of.next, stays.at(t=T - 1)],
    )
    first_done = z3.And(done(E, T + 1), z3.Not(done(E, T)))
    who = whose(E, T + 1)
    all_sent = k.prove(
        "by_then_every_other_device_has_sent",
        early.of(E, D, T + 1) >= 1,
        given=[first_done, T >= 0, g.device(D), who != D],
        uses=[
            all_early.at(t=T + 1),
            leaves.at(d=who, c=D, t=T + 1),
            done_found.at(t=T + 1),
            lack_shown.at(d=who, c=D, t=T + 1),
        ],
    )
    m = early.by_all.index
    many = k.induct(
        "by_then_all_but_one_have_sent",
        m,
        early.by_all(E, T + 1, m) >= m - _count(who < m),
        given=[m <= n, first_done, T >= 0],
        base=[early.by_all.start.at(t=T + 1)],
        step=[early.by_all.next.at(t=T + 1), all_sent.at(d=m), early.positive.at(d=m, t=T + 1)],
    )
    half = k.induct(
        "n_less_one_messages_are_early",
        T,
        early.messages(E, T) >= n - 1,
        given=[done(E, T)],
        base=[nobody],
        step=[many.at(**{str(m): n}), early.adds_up.at(t=T + 1), g.group, early.messages.next],
    )
    # afterwards everybody else has yet to learn something
    leader, leader_start, leader_next = k.recursion(
        "first_to_be_done",
        [E],
        T,
        z3.IntVal(0),
        lambda before: z3.If(done(E, T), before(E), g.receiver(E, T)),
    )
    c = lacked(E, D, T)
    unchanged = k.prove(
        "who_receives_nothing_learns_nothing",
        z3.Implies(lacks(E, D, T), lacks(E, D, T + 1)),
        given=[T >= 0, g.receiver(E, T) != D],
        uses=[lack_found, g.then.at(c=c), lack_shown.at(c=c, t=T + 1)],
    )
    learns = k.induct(
        "whoever_is_done_later_received_late",
        T,
        late.of(E, D, T) >= 1,
        given=[done(E, T), z3.Not(lacks(E, D, T)), g.device(D), leader(E, T) != D],
        base=[nobody],
        step=[late.of.next, late.positive, leader_next, unchanged, done_shown],
    )
    end = until(E)
    someone = k.prove(
        "in_the_end_somebody_is_done",
        done(E, end),
        uses=[done_shown.at(d=0, t=end), all_done.at(d=0), g.group],
    )
    once = k.prove(
        "every_other_device_receives_late",
        late.of(E, D, end) >= 1,
        given=[g.device(D), leader(E, end) != D],
        uses=[learns.at(t=end), someone, all_done, g.lengths],
    )
    leads = k.induct(
        "the_first_is_a_device",
        T,
        leader(E, T) >= 0,
        base=[leader_start],
        step=[leader_next, g.receivers],
    )
    other_half = late.enough(end, leader(E, end), once, leads.at(t=end), g.lengths)
    split = k.induct(
        "every_message_is_early_or_late",
        T,
        early.messages(E, T) + late.messages(E, T) == T,
        base=[early.messages.start, late.messages.start],
        step=[early.messages.next, late.messages.next],
    )
    return k.prove(
        "an_all_reduce_takes_2_n_less_1_messages",
        until(E) >= spec.ALL_REDUCE.messages(n),
        uses=[half.at(t=end), other_half, split.at(t=end), someone, g.lengths],
    )


def rings_are_optimal(k: Kernel) -> tuple[Theorem, ...]:
    """No schedule of indivisible elements sends less than the rings from its busiest device.

    For M elements on n devices it sends at least (n - 1)/n M for an all-gather or reduce-scatter,
    2(n - 1)/n M for an all-reduce: what the rings send when n divides M. (Claim C5; design 2.5)
    """
    g = _gossip(k)
    owner = k.function("owner", INT, INT)
    owners = k.suppose("owners_are_devices", [E], g.device(owner(E)))
    sent = _census(g, "sent", g.sender, g.senders)
    leaves, traffic = _leaves(g, sent), _traffic(g, sent)
    return (
        traffic.at_least(spec.ALL_GATHER, _all_gather_messages(g, owner, owners)),
        traffic.at_least(spec.REDUCE_SCATTER, _reduce_scatter_messages(g, owner, owners, sent, leaves)),
        traffic.at_least(spec.ALL_REDUCE, _all_reduce_messages(g, sent, leaves)),
    )
