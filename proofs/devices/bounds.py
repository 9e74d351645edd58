"""C5: no schedule of messages does a collective with less than the rings send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofs.claim import claim
from proofs.devices.gossip import (
    INT,
    C,
    Census,
    D,
    E,
    Gossip,
    T,
    arrives,
    census,
    count,
    gossip,
    leaves,
)
from proofs.tools.sums import Sum, of_sums, total
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or
from spec.devices import collectives as spec


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
    bounded = k.suppose("no_device_sends_more_than_v", [x], Implies(g.device(x), sends(x, size) <= v))
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


def _reduce_scatter_messages(g: Gossip, owner: Any, sent: Census, leave: Theorem) -> Theorem:
    """Every device but the owner has to send its contribution."""
    k = g.k
    gets = k.suppose(
        "the_owner_ends_with_every_contribution",
        [E, C],
        Implies(g.device(C), g.knows(E, owner(E), C, g.until(E))),
    )
    once = k.prove(
        "every_other_device_sends",
        sent.of(E, D, g.until(E)) >= 1,
        given=[g.device(D), owner(E) != D],
        uses=[leave.at(d=owner(E), c=D, t=g.until(E)), gets.at(c=D), g.lengths],
    )
    return sent.enough(g.until(E), owner(E), once, g.lengths)


def _all_gather_messages(g: Gossip, owner: Any) -> Theorem:
    """Every device but the owner has to receive the owner's value."""
    k = g.k
    gets = k.suppose(
        "every_device_ends_with_the_owners_value",
        [E, D],
        Implies(g.device(D), g.knows(E, D, owner(E), g.until(E))),
    )
    received = census(g, "received", g.receiver, g.receivers)
    once = k.prove(
        "every_other_device_receives",
        received.of(E, D, g.until(E)) >= 1,
        given=[g.device(D), owner(E) != D],
        uses=[arrives(g, received).at(c=owner(E), t=g.until(E)), gets, g.lengths],
    )
    return received.enough(g.until(E), owner(E), once, g.lengths)


def _all_reduce_messages(g: Gossip, sent: Census, leave: Theorem) -> Theorem:
    """Before some device knows everything n - 1 devices must send; after it n - 1 must receive."""
    k, n, knows, until = g.k, g.n, g.knows, g.until
    several = k.suppose("at_least_two_devices", [], n >= 2)
    lacks, lacked, lack_shown, lack_found = k.choose(
        "lacks", [E, D, T], C, And(g.device(C), Not(knows(E, D, C, T)))
    )
    done, whose, done_shown, done_found = k.choose(
        "somebody_is_done", [E, T], D, And(g.device(D), Not(lacks(E, D, T)))
    )
    gets = k.suppose(
        "every_device_ends_with_every_contribution",
        [E, D, C],
        Implies(And(g.device(D), g.device(C)), knows(E, D, C, until(E))),
    )
    all_done = k.prove(
        "every_device_is_done",
        Not(lacks(E, D, until(E))),
        given=[g.device(D)],
        uses=[lack_found.at(t=until(E)), gets.at(c=lacked(E, D, until(E)))],
    )
    early = census(g, "sent_early", g.sender, g.senders, Not(done(E, T)))
    late = census(g, "received_late", g.receiver, g.receivers, done(E, T))

    # nobody is done at first
    other = If(D == 0, IntVal(1), IntVal(0))
    lacking = k.prove(
        "at_first_every_device_lacks_another",
        lacks(E, D, 0),
        uses=[lack_shown.at(c=other, t=0), g.first.at(c=other), several],
    )
    nobody = k.prove(
        "at_first_nobody_is_done",
        Not(done(E, 0)),
        uses=[done_found.at(t=0), lacking.at(d=whose(E, 0))],
    )
    # once done, always done
    keeps = k.prove(
        "knowledge_is_kept",
        Implies(lacks(E, D, T + 1), lacks(E, D, T)),
        given=[T >= 0],
        uses=[
            lack_found.at(t=T + 1),
            g.then.at(c=lacked(E, D, T + 1)),
            lack_shown.at(c=lacked(E, D, T + 1)),
        ],
    )
    stays = k.prove(
        "somebody_stays_done",
        Implies(done(E, T), done(E, T + 1)),
        given=[T >= 0],
        uses=[done_found, keeps.at(d=whose(E, T)), done_shown.at(d=whose(E, T), t=T + 1)],
    )
    # until then all messages are early ones
    all_early = k.induct(
        "until_then_every_message_is_early",
        T,
        early.of(E, D, T) == sent.of(E, D, T),
        given=[Or(T == 0, Not(done(E, T - 1)))],
        base=[early.of.start, sent.of.start],
        step=[early.of.next, sent.of.next, stays.at(t=T - 1)],
    )
    first_done = And(done(E, T + 1), Not(done(E, T)))
    who = whose(E, T + 1)
    all_sent = k.prove(
        "by_then_every_other_device_has_sent",
        early.of(E, D, T + 1) >= 1,
        given=[first_done, T >= 0, g.device(D), who != D],
        uses=[
            all_early.at(t=T + 1),
            leave.at(d=who, c=D, t=T + 1),
            done_found.at(t=T + 1),
            lack_shown.at(d=who, c=D, t=T + 1),
        ],
    )
    m = early.by_all.index
    many = k.induct(
        "by_then_all_but_one_have_sent",
        m,
        early.by_all(E, T + 1, m) >= m - count(who < m),
        given=[m <= n, first_done, T >= 0],
        base=[early.by_all.start.at(t=T + 1)],
        step=[early.by_all.next.at(t=T + 1), all_sent.at(d=m), early.positive.at(d=m, t=T + 1)],
    )
    half = k.induct(
        "n_less_one_messages_are_early",
        T,
        Implies(done(E, T), early.messages(E, T) >= n - 1),
        base=[nobody],
        step=[many.at(**{str(m): n}), early.adds_up.at(t=T + 1), g.group, early.messages.next],
    )
    # afterwards everybody else has yet to learn something
    leader, _, leader_next = k.recursion(
        "first_to_be_done",
        [E],
        T,
        IntVal(0),
        lambda before: If(done(E, T), before(E), g.receiver(E, T)),
    )
    c = lacked(E, D, T)
    unchanged = k.prove(
        "who_receives_nothing_learns_nothing",
        Implies(lacks(E, D, T), lacks(E, D, T + 1)),
        given=[T >= 0, g.receiver(E, T) != D],
        uses=[lack_found, g.then.at(c=c), lack_shown.at(c=c, t=T + 1)],
    )
    learns = k.induct(
        "whoever_is_done_later_received_late",
        T,
        Implies(
            And(done(E, T), Not(lacks(E, D, T)), g.device(D), leader(E, T) != D),
            late.of(E, D, T) >= 1,
        ),
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
    other_half = late.enough(end, leader(E, end), once, g.lengths, g.group)
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


@claim("C5")
def rings_are_optimal(k: Kernel) -> tuple[Theorem, ...]:
    """No schedule of indivisible elements sends less than the rings from its busiest device.

    For M elements on n devices it sends at least (n - 1)/n M for an all-gather or reduce-scatter,
    2(n - 1)/n M for an all-reduce: what the rings send when n divides M. (Claim C5; design 2.5)
    """
    g = gossip(k)
    owner = k.function("owner", INT, INT)
    sent = census(g, "sent", g.sender, g.senders)
    leave, traffic = leaves(g, sent), _traffic(g, sent)
    return (
        traffic.at_least(spec.ALL_GATHER, _all_gather_messages(g, owner)),
        traffic.at_least(spec.REDUCE_SCATTER, _reduce_scatter_messages(g, owner, sent, leave)),
        traffic.at_least(spec.ALL_REDUCE, _all_reduce_messages(g, sent, leave)),
    )
