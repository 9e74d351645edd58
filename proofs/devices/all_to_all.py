"""C4: an all-to-all transposes the devices' chunks, and a second one puts them back.

Devices, and the chunks meant for them, are numbered 0..n-1; whom a device sends to, modulo n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proofs.claim import claim
from proofs.tools.sums import closed_form, total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, If, Implies, IntSort, Or, RealSort
from spec.devices.collectives import ALL_TO_ALL, all_to_all_sends, all_to_all_step, ring_steps


@dataclass(frozen=True)
class Group:
    """n devices: d and c are any two of them, s a number of steps."""

    k: Kernel
    n: Any
    d: Any
    c: Any
    s: Any

    @property
    def devices(self) -> list[Bool]:
        return [self.d >= 0, self.d < self.n, self.c >= 0, self.c < self.n]

    def same(self, a: Any, b: Any) -> Bool:
        """Equal modulo n, for numbers less than 2n apart."""
        return Or(a == b, a + self.n == b, a - self.n == b)


def _group(k: Kernel) -> Group:
    d, c, s = k.integers("d c s")
    return Group(k, k.fixed("n", IntSort()), d, c, s)


def _equal_modulo_n(g: Group) -> Theorem:
    """Whom a device sends to is equal modulo n to a device's number when `same` says so."""
    q = g.k.integers("q")
    to = all_to_all_sends(g.c, g.s)
    return g.k.prove(
        "numbers_differ_by_at_most_one_round",
        g.same(g.d, to),
        given=[*g.devices, g.s >= 0, g.s < ring_steps(g.n), to - g.d == q * g.n],
    )


def _exchanged(g: Group, name: str, sent: Callable[[Any, Any], Any]) -> tuple[Any, Theorem]:
    """What the devices have received after s steps; and that n - 1 steps transpose."""
    k, n, d, c, s = g.k, g.n, g.d, g.c, g.s
    received, start, then = k.recursion(
        name,
        [d, c],
        s,
        sent(d, c),
        lambda before: all_to_all_step(sent, before, s, g.same, If)(d, c),
    )
    away = If(c <= d, d - c, d - c + n)  # steps from c to d
    arrived = k.induct(
        f"{name}_in_turn",
        s,
        received(d, c, s) == If(away <= s, sent(c, d), sent(d, c)),
        given=g.devices,
        base=[start],
        step=[then],
    )
    last = ring_steps(n)
    transposed = k.prove(
        f"{name}_is_the_transpose",
        received(d, c, last) == sent(c, d),
        given=g.devices,
        uses=[arrived.at(s=last)],
    )
    return received, transposed


def _volume(k: Kernel) -> Theorem:
    """A device sends one chunk a step: (n-1)/n of what it has, when n chunks are all it has."""
    n, s, chunk, local = k.integers("n s chunk local")
    sent = total(k, "sent", [chunk], s, chunk)
    so_far = closed_form(k, "one_chunk_a_step", sent, s * chunk)
    volume = ALL_TO_ALL.volume(n, chunk)
    return k.prove(
        "volume_is_exact",
        And(
            volume == sent(chunk, ring_steps(n)),
            Implies(chunk * n == local, volume * n == (n - 1) * local),
        ),
        given=[n >= 1],
        uses=[so_far.at(s=n - 1)],
    )


@claim("C4")
def all_to_all_is_a_transpose(k: Kernel) -> tuple[Theorem, ...]:
    """After n - 1 steps device d has device c's chunk d in place c; once more, and all is back.

    Each device has sent n - 1 of its n chunks. (Claim C4; design 2.5)
    """
    g = _group(k)
    x = k.function("x", IntSort(), IntSort(), RealSort())
    received, there = _exchanged(g, "received", x)
    again, back = _exchanged(g, "received_again", lambda d, c: received(d, c, ring_steps(g.n)))
    inverse = k.prove(
        "a_second_all_to_all_undoes_it",
        again(g.d, g.c, ring_steps(g.n)) == x(g.d, g.c),
        given=g.devices,
        uses=[back, there.at(d=g.c, c=g.d)],
    )
    return there, inverse, _equal_modulo_n(g), _volume(k.part("volume"))
