"""S1, S2, S3: shards cover all elements, once each, with little padding, and gather to the whole."""

from __future__ import annotations

from typing import Any

from proofs.claim import claim
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, If, IntSort, RealSort, RealVal
from spec.devices.mesh import first_element, padding, shard_contains

INT = IntSort()


def _chunks(k: Kernel) -> tuple[Any, Any, Any, Theorem, Theorem]:
    """n devices, Psi elements, and the chunk ceil(Psi/n) by the two bounds that define it."""
    n, psi, chunk = k.fixed("n", INT), k.fixed("psi", INT), k.fixed("chunk", INT)
    enough = k.suppose("chunks_hold_psi_elements", [], chunk * n >= psi)
    no_more = k.suppose("smaller_chunks_do_not", [], chunk * n < psi + n)
    return n, psi, chunk, enough, no_more


@claim("S1")
def shards_cover_and_are_disjoint(k: Kernel) -> tuple[Theorem, ...]:
    """Every element has exactly one owner among the n devices. (Claim S1; design 2.2)"""
    n, psi, chunk, enough, _ = _chunks(k)
    e, d, other = k.integers("e d other")
    some = k.suppose("there_are_devices_and_elements", [], And(n >= 1, psi >= 1))
    positive = k.prove("chunks_are_not_empty", chunk >= 1, uses=[some, enough])
    owned, owner, shown, found = k.choose("is_owned", [e], d, And(*shard_contains(d, e, chunk)))
    # each next element is in the same shard, or the first of the next
    covered = k.induct(
        "every_element_is_owned",
        e,
        owned(e),
        base=[shown.at(e=0, d=0), positive],
        step=[found, shown.at(e=e + 1, d=owner(e)), shown.at(e=e + 1, d=owner(e) + 1)],
    )
    disjoint = k.prove(
        "no_element_is_owned_twice",
        d == other,
        given=[*shard_contains(d, e, chunk), *shard_contains(other, e, chunk)],
    )
    among = k.prove(
        "owners_are_among_the_devices",
        And(d >= 0, d < n),
        given=[e >= 0, e < psi, *shard_contains(d, e, chunk)],
        uses=[enough],
    )
    return covered, disjoint, among


@claim("S2")
def padding_is_less_than_one_element_per_device(k: Kernel) -> tuple[Theorem, ...]:
    """Shards hold fewer than n elements of padding, none when n divides Psi. (Claim S2; design 2.2)"""
    n, psi, chunk, *ceiling = _chunks(k)
    units = k.fixed("units", INT)
    pad = padding(psi, chunk, n)
    little = k.prove("padding_is_little", And(pad >= 0, pad < n), uses=ceiling)
    x = k.integers("x")
    times = k.prove("so_many_slots_are_n_at_least", x * n >= n, given=[x >= 1, n >= 1])
    none = k.prove(
        "no_padding_when_n_divides_psi",
        pad == 0,
        given=[psi == units * n],
        uses=[*ceiling, times.at(x=chunk - units), times.at(x=units - chunk)],
    )
    return little, none


@claim("S3")
def gathering_the_shards_is_the_identity(k: Kernel) -> tuple[Theorem, ...]:
    """Cut into shards, then gathered, every element is what it was. (Claim S3; design 2.5)"""
    _, psi, chunk, *_ = _chunks(k)
    e, d, slot = k.integers("e d slot")
    whole = k.function("whole", INT, RealSort())
    inside = And(slot >= 0, slot < chunk, first_element(d, chunk) + slot < psi)
    shard, cut = k.define(
        "shard", [d, slot], If(inside, whole(first_element(d, chunk) + slot), RealVal(0))
    )
    # the owner's slot of e is its distance from the start of the owner's shard
    gathered, gather = k.define("gathered", [d, e], shard(d, e - first_element(d, chunk)))
    same = k.prove(
        "gathered_shards_are_the_whole",
        gathered(d, e) == whole(e),
        given=[e < psi, *shard_contains(d, e, chunk)],
        uses=[gather, cut.at(slot=e - first_element(d, chunk))],
    )
    padded = k.prove(
        "padding_is_zero",
        shard(d, slot) == 0,
        given=[first_element(d, chunk) + slot >= psi],
        uses=[cut],
    )
    return same, padded
