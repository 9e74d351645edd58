"""T2's twelfth kind of line: a norm, of what the slices of a group's devices make up.

It is right on a device if all that it adds up is the whole gradient: then it is a function of what is
the same everywhere. An update may read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.matching import Matching
from proofs.checking.symbols import NORM, NORM_OF, WRONG
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import IntVal


class NormLine(Matching):
    """What a norm leaves right."""

    def _norm(self) -> Theorem:
        l, t = self.l, self.l.t
        now, source, target = l.step(t), l.source(t), l.target(t)
        squares = self._of_elements()
        made = l.made_norm(t, l.d)
        return self.made_right(
            "step_norm",
            "a_norm",
            (target, made),
            [t >= 0, l.kind(t) == NORM_OF],
            [source],
            [
                squares.at(e=l.elements),
                l.group_is_of_elements.at(e=l.elements),
                l.counted,
                l.names.at(w=NORM, u=now, m=IntVal(0)),
                *([l.names.at(w=WRONG, u=t, m=IntVal(0))] if l.where_right(t, l.d) else []),
            ],
        )

    def made_right(
        self,
        name: str,
        what: str,
        made: tuple[Any, Any],
        given: Sequence[Bool],
        read: Sequence[Any],
        uses: Sequence[Theorem],
        *more: Theorem,
    ) -> Theorem:
        """What a line makes of right places that it reads is right: `made`, a place and its value."""
        l, t, (place, value) = self.l, self.l.t, made
        stands = self.single(what, t + 1, place, value, given, l.amounts_run.at(b=place))
        reads = [t < l.last] if read else []
        return self.k.prove(
            name,
            self.is_right(t + 1, place),
            [*given, *reads, *self.on_a_device, self.knows(t + 1, place), *self.right_in(*read)],
            [
                l.runs.at(b=place),
                self.not_gone.at(t=t + 1, b=place),
                stands,
                *uses,
                l.numbered,
                l.original_is.at(s=value, d=l.whose(value, l.d)),
                *more,
            ],
        )

    def _of_elements(self) -> Theorem:
        """Where all that a norm adds up compares equal, it is of the whole gradient."""
        l, k = self.l, self.k
        t, d, j, e = l.t, l.d, l.j, l.e
        now, source, asks = l.step(t), l.source(t), k.integers("asks")
        groups = l.mesh.of_norms
        right = [*self.line, l.kind(t) == NORM_OF, *l.where_right(t, asks), asks >= 0, asks < l.n]
        right.append(d == groups.with_element(t, asks, j))
        compares = self.all_equal_in(
            "a_right_norm_compares_equal",
            [t, l.s, l.i, j, d, asks],
            right,
            [(t, source, None, now)],
        )
        self.normed = read = self.read("normed", t, source, None, now, right, compares)
        at = {"asks": d, "j": l.element(e)}
        member = groups.with_element(t, d, l.element(e))
        return k.induct(
            "a_norm_is_of_the_whole_gradient",
            e,
            l.of_elements(t, d, e) == l.of_whole(now, e),
            [
                *self.line,
                l.kind(t) == NORM_OF,
                *l.where_right(t, d),
                *self.on_a_device,
                *self.right_in(source),
            ],
            base=[l.of_elements.start, l.of_whole.start.at(u=now)],
            step=[
                l.of_elements.next,
                l.of_whole.next.at(u=now),
                read.at(d=member, **at),
                groups.inside.at(j=l.element(e), c=groups.owner(t, d, l.element(e))),
            ],
        )
