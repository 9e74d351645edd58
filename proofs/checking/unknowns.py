"""How often what is not known is in places: nothing at least, on all devices, at all times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.content import moving
from proofs.checking.lines import MOVES, Line
from proofs.checking.symbols import ONE, ZERO
from proofs.tools.sums import Sum
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, Implies, IntVal, Not


@dataclass(frozen=True)
class Time:
    """A variable for times; the line that is run at one; when lines are run."""

    at: Any
    line: Any
    run: tuple[Bool, ...]


def read_by(l: Language, move: Line) -> list[tuple[Any, Any]]:
    """Places and devices that a line reads, but for those it adds up."""
    found: dict[tuple[int, int], tuple[Any, Any]] = {}

    def at(b: Any, e: Any) -> Any:
        found[id(b), id(e)] = b, e
        return ZERO

    l.moved_on(move, moving(at, ZERO, ONE))
    return list(found.values())


class Counted:
    """By induction over the lines: what is not known counts at least nothing.

    `begin` and `runs` say what `unknowns` are at first, and after a line. `of`: a word for names.
    """

    def __init__(
        self, l: Language, of: str, time: Time, unknowns: Any, group: Sum, begin: Theorem, runs: Theorem
    ) -> None:
        k, t, b, d, c, j = l.k, time.at, l.b, l.d, l.c, l.j
        line, size = time.line, l.mesh.size(time.line)
        here, after = unknowns(t, b, d, j), unknowns(t + 1, b, d, j)
        on_a_device = [d >= 0, d < l.n]
        below, element, shown_below, found_below = k.choose(
            f"{of}below_nothing_at", [t, b, d], j, here < 0
        )
        negative, device, shown, found = k.choose(
            f"{of}below_nothing", [t, b], d, And(*on_a_device, below(t, b, d))
        )
        least = k.prove(
            f"{of}unknowns_count", here >= 0, [*on_a_device, Not(negative(t, b))], [shown_below, shown]
        )
        none = Not(negative(t, b))
        inside = l.mesh.inside.at(t=line)
        in_group = k.induct(
            f"{of}unknowns_of_a_group_count",
            c,
            group(t, b, d, j, c) >= 0,
            [*on_a_device, none, c <= size],
            base=[group.start],
            step=[group.next, least.at(d=l.mesh.member(line, d, c)), inside],
        )
        one = k.integers(f"{of}one_of_them")
        self.part_of_group = k.induct(
            f"{of}a_member_is_part_of_its_group",
            c,
            Implies(one < c, unknowns(t, b, l.mesh.member(line, d, one), j) <= group(t, b, d, j, c)),
            [*on_a_device, none, one >= 0, c <= size],
            base=[],
            step=[group.next, in_group, least.at(d=l.mesh.member(line, d, c)), inside],
        )

        def there(term: Any) -> Any:
            return substitute(term, (l.t, line))

        source, target = l.source(line), l.target(line)
        read = {
            (id(b), id(e)): (b, e)
            for move in MOVES
            for b, e in (map(there, each) for each in read_by(l, move))
        }
        step = k.prove(
            f"{of}unknowns_count_after_a_line",
            after >= 0,
            [t >= 0, *time.run, *on_a_device, none, Not(negative(t, source))],
            [
                runs,
                least,
                in_group.at(b=source, c=size),
                *(least.at(b=b, d=e) for b, e in read.values() if b is not target),
                *(inside.at(c=e) for e in (IntVal(0), l.mesh.owner(line, d, j))),
            ],
        )

        def at(time: Any) -> dict[str, Any]:
            where = device(time, b)
            return {"d": where, "j": element(time, b, where)}

        zero, name = IntVal(0), str(t)
        upto = [substitute(said, (t, t - 1)) for said in time.run]
        self.never = k.induct(
            f"{of}nothing_is_below_nothing",
            t,
            none,
            upto,
            base=[
                found.at(**{name: zero}),
                found_below.at(**{name: zero, "d": device(zero, b)}),
                begin.at(**at(zero)),
            ],
            step=[
                found.at(**{name: t + 1}),
                found_below.at(**{name: t + 1, "d": device(t + 1, b)}),
                step.at(**at(t + 1)),
            ],
            at=[{}, {"b": source}],
        )
        self.known = k.prove(
            f"{of}what_is_not_known_counts",
            here >= 0,
            [t >= 0, *upto, *on_a_device],
            [self.never, least],
        )
