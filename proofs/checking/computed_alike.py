"""T4: two lines that are alike compute values that are alike, and so do their forms.

Of a line of one step, or micro-step, and of one of another: each value one step, or so, later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proofs.checking.representation import Represented
from proofs.checking.symbols import (
    CONTRIBUTION,
    MOMENT,
    NORM,
    PLACES,
    TOKENS,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
)
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import IntVal, Not

Form = Callable[[Any, Any], Any]  # of a line and an original value


@dataclass(frozen=True)
class AlikeLines:
    """Two lines, `here` and `there`, of the steps `now` and `then`.

    so(form): what is made of the forms of s here is what is made of `earlier` there. lines, names: what
    is known of the lines, and of the names of both values. apart: whether what is not known has a form
    of s there, and none of `earlier`.
    """

    here: Any
    there: Any
    now: Any
    then: Any
    earlier: Any
    so: Callable[[Form], Bool]
    given: Sequence[Bool]
    lines: Sequence[Theorem]
    names: Sequence[Theorem]
    apart: bool = False

    def computed(self, l: Represented, word: str = "") -> Theorem:
        """What is computed is so: what devices have by their places, and the form of that."""
        k, s, level, zero = l.k, l.s, l.level, IntVal(0)
        here, there = self.here, self.there

        def form(t: Any, s: Any) -> Any:
            return l.placed(l.known, t, l.b, s, l.f, l.p)

        def spread(t: Any, s: Any) -> Any:
            return l.spread(l.known, t, l.b, s, l.word, l.f, l.p, level)

        at_both = (self.now, here), (self.then, there)
        steps = [self.now] if self.then is self.now else [self.now, self.then]
        values = [s, self.earlier] if self.apart else [self.earlier]
        lines = [*self.lines, l.placed_is.at(t=here)]
        names = [
            *(l.numbered.at(t=here), l.name_is_its_own, *self.names),
            *(l.names.at(w=w, u=v, m=l.micro(t)) for w in (CONTRIBUTION, TOKENS) for v, t in at_both),
            *(l.names.at(w=w, u=v + 1, m=zero) for w in (WEIGHT, MOMENT) for v in steps),
            *(l.names.at(w=NORM, u=v, m=zero) for v in steps),
            *(l.names.at(w=w, u=t, m=zero) for w in (WRONG, WRONG_MOMENT) for _, t in at_both),
        ]
        about: list[tuple[str, list[Bool], Any, list[Theorem]]]
        about = [("known_of_what", [l.known] if self.apart else [], self.earlier, names)]
        about += [("not_known_of_what", [Not(l.known)], s, [])] if self.apart else []
        by_place = [
            k.prove(
                f"what_is_{name}_{word}lines_compute_is_so",
                self.so(form),
                [*self.given, *known],
                [*lines, l.placed_is.at(t=there, s=x), *more],
            )
            for name, known, x, more in about
        ]
        a = l.mesh.axes - 1 - level
        there_are = [IntVal(place) for place in PLACES.values()]
        alone = [l.alone(place, l.word[a], l.f[a]) for place in there_are]
        return k.induct(
            f"forms_of_what_{word}lines_compute_are_so",
            level,
            self.so(spread),
            self.given,
            base=[
                *by_place,
                l.spread_none.at(t=here),
                *(l.spread_none.at(t=there, s=x) for x in values),
            ],
            step=[
                l.spread_next.at(t=here),
                *(l.spread_next.at(t=there, s=x) for x in values),
                l.chosen_is.at(
                    **dict(zip(map(str, l.three[0]), alone, strict=True)),
                    **dict.fromkeys(map(str, l.three[1]), ZERO),
                ),
                *(l.none.at(x0=each) for each in alone),
            ],
            at=[{"p": l.mesh.put(l.p, a, place)} for place in there_are],
        )
