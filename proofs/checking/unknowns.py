"""How often what is not known is in places: nothing at least, on all devices, at all times."""

from __future__ import annotations

from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.content import moving
from proofs.checking.lines import MOVES, Line
from proofs.checking.symbols import ONE, ZERO
from proofs.trusted.terms import And, Implies, IntVal, Not


def read_by(l: Language, move: Line) -> list[tuple[Any, Any]]:
    """Places and devices that a line reads, but for those it adds up."""
    found: dict[tuple[int, int], tuple[Any, Any]] = {}

    def at(b: Any, e: Any) -> Any:
        found[id(b), id(e)] = b, e
        return ZERO

    l.moved_on(move, moving(at, ZERO, ONE))
    return list(found.values())


class Counted:
    """By induction over the lines: what is not known counts at least nothing."""

    def __init__(self, l: Language) -> None:
        k, t, b, d, c, j = l.k, l.t, l.b, l.d, l.c, l.j
        size, group, member = l.mesh.size(t), l.unknowns_in_group, l.mesh.member(t, d, c)
        here, after = l.unknowns(t, b, d, j), l.unknowns(t + 1, b, d, j)
        on_a_device = [d >= 0, d < l.n]
        below, element, shown_below, found_below = k.choose("below_nothing_at", [t, b, d], j, here < 0)
        negative, device, shown, found = k.choose(
            "below_nothing", [t, b], d, And(*on_a_device, below(t, b, d))
        )
        least = k.prove(
            "unknowns_count", here >= 0, [*on_a_device, Not(negative(t, b))], [shown_below, shown]
        )
        none, inside = Not(negative(t, b)), l.mesh.inside
        in_group = k.induct(
            "unknowns_of_a_group_count",
            c,
            group(t, b, d, j, c) >= 0,
            [*on_a_device, none, c <= size],
            base=[group.start],
            step=[group.next, least.at(d=member), inside],
        )
        one = k.integers("one_of_them")
        self.part_of_group = k.induct(
            "a_member_is_part_of_its_group",
            c,
            Implies(one < c, l.unknowns(t, b, l.mesh.member(t, d, one), j) <= group(t, b, d, j, c)),
            [*on_a_device, none, one >= 0, c <= size],
            base=[],
            step=[group.next, in_group, least.at(d=member), inside],
        )
        source, target = l.source(t), l.target(t)
        read = {(id(b), id(e)): (b, e) for move in MOVES for b, e in read_by(l, move)}
        step = k.prove(
            "unknowns_count_after_a_line",
            after >= 0,
            [t >= 0, *on_a_device, none, Not(negative(t, source))],
            [
                l.unknowns_run,
                least,
                in_group.at(b=source, c=size),
                *(least.at(b=b, d=e) for b, e in read.values() if b is not target),
                *(inside.at(c=e) for e in (IntVal(0), l.mesh.owner(t, d, j))),
            ],
        )

        def at(time: Any) -> dict[str, Any]:
            where = device(time, b)
            return {"d": where, "j": element(time, b, where)}

        first, later = IntVal(0), t + 1
        self.never = k.induct(
            "nothing_is_below_nothing",
            t,
            none,
            base=[
                found.at(t=first),
                found_below.at(t=first, d=device(first, b)),
                l.unknowns_begin.at(**at(first)),
            ],
            step=[
                found.at(t=later),
                found_below.at(t=later, d=device(later, b)),
                step.at(**at(later)),
            ],
            at=[{}, {"b": source}],
        )
        self.known = k.prove(
            "what_is_not_known_counts", here >= 0, [t >= 0, *on_a_device], [self.never, least]
        )
