"""C1, C2, C3: the ring algorithms compute what they should, for every number of devices.

Devices and chunks are integers taken modulo n: contents are periodic, so no index is reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from proofs.claim import claim
from proofs.tools.sums import Sum, closed_form, total
from proofs.trusted.kernel import Kernel, Term, Theorem
from proofs.trusted.terms import And, If, Implies, IntSort, Not, Or, RealSort
from spec.devices import collectives as spec


class Ring:
    """A ring of n >= 1 devices: chunk numbers that differ by a multiple of n name the same chunk.

    What is known of them is proved where it is used.
    """

    def __init__(self, k: Kernel) -> None:
        self.k, self.n = k, k.fixed("n", IntSort())
        self.some_devices = k.suppose("at_least_one_device", [], self.n >= 1)
        a, b, q = self.names = k.integers("a b q")
        self.same, self.times, self.shown, self.found = k.choose(
            "same_chunk", [a, b], q, a - b == q * self.n
        )

    @cached_property
    def itself(self) -> Theorem:
        a, _, _ = self.names
        return self.k.prove("a_chunk_is_itself", self.same(a, a), uses=[self.shown.at(b=a, q=0)])

    @cached_property
    def not_near(self) -> Theorem:
        a, b, _ = self.names
        near = Or(And(a - b > 0, a - b < self.n), And(b - a > 0, b - a < self.n))
        differ = Not(self.same(a, b))
        return self.k.prove("chunks_less_than_n_apart_differ", differ, given=[near], uses=[self.found])

    @cached_property
    def round_once(self) -> Theorem:
        (a, b, _), n, same, times = self.names, self.n, self.same, self.times
        forth = self.k.prove(
            "a_chunk_after_n_is_the_same",
            Implies(same(a, b), same(a + n, b)),
            uses=[self.found, self.shown.at(a=a + n, q=times(a, b) + 1)],
        )
        back = self.k.prove(
            "and_back",
            Implies(same(a + n, b), same(a, b)),
            uses=[self.found.at(a=a + n), self.shown.at(q=times(a + n, b) - 1)],
        )
        goes_round = same(a + n, b) == same(a, b)
        return self.k.prove("a_chunk_number_may_go_round", goes_round, uses=[forth, back])


def _buffer(
    r: Ring, name: str, initial: Callable[..., Any], step: Callable[..., Any]
) -> tuple[Any, Theorem, Theorem]:
    """The buffers of a ring algorithm after s steps, by its step rule."""
    d, c, s = (r.k.constant(f"{name}_{v}", IntSort()) for v in "dcs")
    return r.k.recursion(
        name,
        [d, c],
        s,
        initial(d, c),
        lambda previous: step(previous, s, r.same, If)(d, c),
    )


def _goes_round(
    r: Ring,
    name: str,
    buffer: Any,
    start: Theorem,
    then: Theorem,
    initially: Sequence[Theorem],
    d: Term,
    c: Term,
    s: Term,
) -> Theorem:
    """A buffer's chunk number may go round: chunk c + n is chunk c."""

    def eq(theorem: Theorem, chunk: Any) -> Theorem:
        return theorem.at(**{f"{name}_d": d, f"{name}_c": chunk, f"{name}_s": s})

    def eq0(chunk: Any) -> Theorem:
        return start.at(**{f"{name}_d": d, f"{name}_c": chunk})

    sent = spec.reduce_scatter_sends if name.startswith("sums") else spec.all_gather_sends
    return r.k.induct(
        f"{name}_go_round",
        s,
        buffer(d, c + r.n, s) == buffer(d, c, s),
        base=[eq0(c), eq0(c + r.n), *initially],
        step=[eq(then, c), eq(then, c + r.n), r.round_once.at(a=c, b=sent(d - 1, s))],
        at=[{}, {str(d): d - 1}],
    )


@dataclass(frozen=True)
class Round:
    """Sums of a chunk over so many devices from one on; round the ring they may start anywhere."""

    indices: tuple[Any, ...]  # device, chunk, step, device from the start on
    window: Sum  # window(start, chunk; devices)
    along: Theorem
    chunks_go_round: Theorem
    earlier: Theorem
    later: Theorem


def _round(r: Ring, x: Any) -> Round:
    """The sums round a ring of what device d has of chunk c."""
    k, n = r.k, r.n
    d, c, s, i, start = k.integers("d c s i start")
    around = k.suppose("device_d_plus_n_is_device_d", [d, c], x(d + n, c) == x(d, c))
    along = k.suppose("chunk_c_plus_n_is_chunk_c", [d, c], x(d, c + n) == x(d, c))
    window = total(k, "window", [start, c], i, x(start + i, c))
    shifted = k.induct(
        "a_window_moves_by_one",
        i,
        window(start, c, i) + x(start + i, c) == x(start, c) + window(start + 1, c, i),
        base=[window.start, window.start.at(start=start + 1)],
        step=[window.next, window.next.at(start=start + 1)],
    )
    earlier = k.induct(
        "a_sum_round_the_ring_may_start_earlier",
        s,
        window(-s, c, n) == window(0, c, n),
        step=[shifted.at(start=-s - 1, i=n), around.at(d=-s - 1), r.some_devices],
    )
    later = k.induct(
        "a_sum_round_the_ring_may_start_later",
        s,
        window(s, c, n) == window(0, c, n),
        step=[shifted.at(start=s, i=n), around.at(d=s), r.some_devices],
    )
    also = k.induct(
        "a_sum_of_one_chunk_goes_round",
        i,
        window(start, c + n, i) == window(start, c, i),
        base=[window.start, window.start.at(c=c + n)],
        step=[window.next, window.next.at(c=c + n), along.at(d=start + i)],
    )
    return Round((d, c, s, i), window, along, also, earlier, later)


@dataclass(frozen=True)
class Scattered:
    """What a ring reduce-scatter leaves."""

    sums: Any
    window: Sum
    done: Theorem
    sums_go_round: Theorem
    window_goes_round: Theorem


def _reduce_scatter(r: Ring, x: Any) -> Scattered:
    """After n - 1 steps device d's chunk d is the sum of all devices' chunk d."""
    k, n = r.k, r.n
    around = _round(r, x)
    d, c, s, i = around.indices
    window, along, also = around.window, around.along, around.chunks_go_round
    sums, at0, then = _buffer(r, "sums", x, spec.reduce_scatter_step)

    def after(theorem: Theorem, device: Any, chunk: Any, step: Any) -> Theorem:
        return theorem.at(sums_d=device, sums_c=chunk, sums_s=step)

    # a chunk whose turn has not come is untouched
    untouched = k.induct(
        "chunks_wait_untouched",
        s,
        sums(d, d - 2 - i, s) == x(d, d - 2 - i),
        given=[s <= i, i < n],
        base=[at0.at(sums_d=d, sums_c=d - 2 - i)],
        step=[
            after(then, d, d - 2 - i, s),
            r.not_near.at(a=d - 2 - i, b=spec.reduce_scatter_sends(d - 1, s)),
        ],
    )
    # the travelling partial sum
    travelling = k.induct(
        "the_partial_sum_grows_by_one_device_a_step",
        s,
        sums(d, d - 1 - s, s) == window(d - s, d - 1 - s, s + 1),
        given=[s < n],
        base=[
            at0.at(sums_d=d, sums_c=d - 1),
            window.start.at(start=d, c=d - 1),
            window.next.at(start=d, c=d - 1, i=0),
        ],
        step=[
            after(then, d, d - 2 - s, s),
            untouched.at(i=s),
            r.itself.at(a=d - 2 - s),
            window.next.at(start=d - 1 - s, c=d - 2 - s, i=s + 1),
        ],
        at=[{"d": d - 1}],
    )
    goes_round = _goes_round(r, "sums", sums, at0, then, [along], d, c, s)
    done = k.prove(
        "ring_reduce_scatter_leaves_each_device_its_sum",
        sums(d, d, spec.ring_steps(n)) == window(0, d, n),
        uses=[
            r.some_devices,
            travelling.at(s=n - 1),
            goes_round.at(c=d - n, s=n - 1),
            also.at(start=0, c=d - n, i=n),
            around.earlier.at(s=n - 1 - d, c=d - n),
            around.later.at(s=d - n + 1, c=d - n),
        ],
    )
    return Scattered(sums, window, done, goes_round.at(s=n - 1), also.at(start=0, i=n))


def _all_gather(
    r: Ring,
    own: Callable[[Any, Any], Any],
    value: Callable[[Any], Any],
    starts: Callable[[Any], Theorem],
    own_goes_round: Callable[[Any, Any], Sequence[Theorem]],
    value_goes_round: Callable[[Any], Theorem],
) -> Theorem:
    """After n - 1 steps every device has every chunk's value, if device c began with chunk c's."""
    k, n = r.k, r.n
    d, c, s, i = (k.constant(v, IntSort()) for v in ("e", "chunk", "t", "behind"))
    copies, at0, then = _buffer(r, "copies", own, spec.all_gather_step)

    def after(device: Any, chunk: Any) -> Theorem:
        return then.at(copies_d=device, copies_c=chunk, copies_s=s)

    arrived = k.induct(
        "chunks_arrive_in_turn",
        s,
        copies(d, d - i, s) == value(d - i),
        given=[i >= 0, i <= s, s < n],
        base=[at0.at(copies_d=d, copies_c=d), starts(d)],
        step=[
            after(d, d - i),
            r.itself.at(a=d - 1 - s),
            r.not_near.at(a=d - i, b=spec.all_gather_sends(d - 1, s)),
        ],
        at=[{}, {"e": d - 1, "behind": s}],
    )
    goes_round = _goes_round(r, "copies", copies, at0, then, own_goes_round(d, c), d, c, s)
    done = k.prove(
        "ring_all_gather_leaves_every_device_every_chunk",
        copies(d, c, spec.ring_steps(n)) == value(c),
        given=[d >= 0, d < n, c >= 0, c < n],
        uses=[
            arrived.at(behind=d - c, t=n - 1),
            arrived.at(behind=d - c + n, t=n - 1),
            goes_round.at(chunk=c - n, t=n - 1),
            value_goes_round(c - n),
        ],
    )
    return done


def _starting_buffers(k: Kernel) -> Any:
    """What device d has of chunk c at first."""
    return k.function("x", IntSort(), IntSort(), RealSort())


def _volume(k: Kernel, collective: spec.Collective, rings: int) -> Theorem:
    """A device sends one chunk a step, n - 1 steps a ring; the chunk is ceil(M / n)."""
    chunk, elements, s, n = k.integers("ring_chunk elements sent_steps group")
    sent = total(k, "sent", [chunk], s, chunk)
    so_far = closed_form(k, "one_chunk_a_step", sent, s * chunk)
    volume = collective.volume(n, chunk)
    return k.prove(
        f"{collective.name}_volume_is_exact",
        And(
            volume == rings * sent(chunk, spec.ring_steps(n)),
            Implies(chunk * n == elements, volume * n == rings * (n - 1) * elements),
        ),
        given=[n >= 1],
        uses=[so_far.at(sent_steps=n - 1)],
    )


def _ring_reduce(k: Kernel) -> tuple[Theorem, Theorem]:
    """A sum that sets out from its owner, and to which each device adds, is home after n hops."""
    r, x = Ring(k), _starting_buffers(k)
    around = _round(r, x)
    d, t = k.integers("at turn")
    sums, first, then = k.recursion(
        "sums",
        [d],
        t,
        x(d, d),
        lambda before: spec.ring_reduce_step(before, x, t + 1)(d),
    )
    window, n = around.window, r.n
    travelling = k.induct(
        "the_sum_grows_by_one_device_a_turn",
        t,
        sums(d, t) == window(d - t, d - t, t + 1),
        base=[first, window.start.at(start=d, c=d), window.next.at(start=d, c=d, i=0)],
        step=[then, window.next.at(start=d - t - 1, c=d - t - 1, i=t + 1)],
        at=[{"at": d - 1}],
    )
    home = k.prove(
        "after_one_hop_more_each_device_has_its_sum",
        sums(d - 1, n - 1) == window(0, d, n),
        uses=[
            r.some_devices,
            travelling.at(at=d - 1, turn=n - 1),
            around.chunks_go_round.at(start=0, c=d - n, i=n),
            around.earlier.at(s=n - d, c=d - n),
            around.later.at(s=d - n, c=d - n),
        ],
    )
    chunk, hop = k.integers("ring_chunk hop")
    hops = k.fixed("hops", IntSort())
    sent = total(k, "sent", [chunk], hop, chunk)
    few = [
        spec.RING_REDUCE.volume(number, chunk) == _hops_to_others(number) * chunk
        for number in (1, 2, 3)
    ]
    volume = k.prove(
        "ring_reduce_volume_is_exact",
        And(spec.RING_REDUCE.volume(hops, chunk) == sent(chunk, hops), *few),
        given=[hops >= 2],
        uses=[closed_form(k, "one_chunk_a_hop", sent, hop * chunk).at(hop=hops)],
    )
    return home, volume


def _hops_to_others(devices: int) -> int:
    """Of the hops of a sum round a ring, until it is home, how many are from a device to another."""
    return sum((device + 1) % devices != device for device in range(devices))


def _ring_gather(k: Kernel) -> tuple[Theorem, Theorem]:
    """In turn t a device has the chunk that the device t before it began with."""
    d, t = k.integers("at turn")
    own = k.function("own", IntSort(), RealSort())
    has, first, then = k.recursion(
        "has", [d], t, own(d), lambda before: spec.ring_gather_step(before)(d)
    )
    meaning = k.induct(
        "chunks_come_in_turn",
        t,
        has(d, t) == own(spec.all_gather_sends(d, t)),
        base=[first],
        step=[then],
        at=[{"at": d - 1}],
    )
    return meaning, _volume(k, spec.RING_GATHER, 1)


@claim("C1")
def ring_reduce_scatter_sums(k: Kernel) -> tuple[Theorem, ...]:
    """After n - 1 steps of a ring reduce-scatter, device d has the sum of all devices' chunk d.

    Each device has sent (n - 1) chunks of ceil(M/n) elements. Where each adds to a chunk's sum in the
    chunk's turn, from its owner on, the sum is home after n. (Claim C1; design 2.5)
    """
    r = Ring(k)
    meaning = _reduce_scatter(r, _starting_buffers(k)).done
    return meaning, _volume(k, spec.REDUCE_SCATTER, 1), *_ring_reduce(k.part("turn_by_turn"))


@claim("C2")
def ring_all_gather_copies(k: Kernel) -> tuple[Theorem, ...]:
    """After n - 1 steps of a ring all-gather, every device has every device's chunk.

    Each device has sent (n - 1) chunks of ceil(M/n) elements. Where a device has one chunk at a time,
    it has that of the device t before it in turn t. (Claim C2; design 2.5)
    """
    r = Ring(k)
    own = _starting_buffers(k)
    value = k.function("value", IntSort(), RealSort())
    d, c = k.integers("device chunk_number")
    begins = k.suppose("device_d_begins_with_chunk_d", [d], own(d, d) == value(d))
    own_round = k.suppose("chunk_c_plus_n_is_chunk_c", [d, c], own(d, c + r.n) == own(d, c))
    value_round = k.suppose("with_the_same_value", [c], value(c + r.n) == value(c))
    meaning = _all_gather(
        r,
        own,
        value,
        lambda e: begins.at(device=e),
        lambda e, chunk: [own_round.at(device=e, chunk_number=chunk)],
        lambda chunk: value_round.at(chunk_number=chunk),
    )
    return meaning, _volume(k, spec.ALL_GATHER, 1), *_ring_gather(k.part("turn_by_turn"))


@claim("C3")
def ring_all_reduce_sums_everywhere(k: Kernel) -> tuple[Theorem, ...]:
    """A ring reduce-scatter, then a ring all-gather: every device has the sum of every chunk.

    Each device has sent 2(n - 1) chunks of ceil(M/n) elements. (Claim C3; design 2.5)
    """
    r = Ring(k)
    scattered = _reduce_scatter(r, _starting_buffers(k))
    last = spec.ring_steps(r.n)
    meaning = _all_gather(
        r,
        lambda d, c: scattered.sums(d, c, last),
        lambda c: scattered.window(0, c, r.n),
        lambda d: scattered.done.at(d=d),
        lambda d, c: [scattered.sums_go_round.at(d=d, c=c), r.some_devices],
        lambda c: scattered.window_goes_round.at(c=c),
    )
    return meaning, _volume(k, spec.ALL_REDUCE, 2)
