"""T2's twelfth kind of line: a norm of all weights, of what the slices of groups of devices make up.

It is right on a device if all that it adds up of every weight is the whole gradient: then it is a
function of what is the same everywhere. An update may read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.matching import Matching
from proofs.checking.symbols import NORM, NORM_OF, WRONG
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, IntVal, Not


class NormLine(Matching):
    """What a norm leaves right."""

    def _norm(self) -> Theorem:
        l, t = self.l, self.l.t
        now, target, weights = l.step(t), l.target(t), self._of_weights()
        made = l.made_norm(t, l.d)
        return self.made_right(
            "step_norm",
            "a_norm",
            (target, made),
            [t >= 0, l.kind(t) == NORM_OF],
            [self.norm_is_of_right],
            [
                weights.at(weight=l.all_weights),
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
        right: Sequence[Bool],
        uses: Sequence[Theorem],
        *more: Theorem,
    ) -> Theorem:
        """What a line makes is right where what it reads is: `made`, a place and its value."""
        l, t, (place, value) = self.l, self.l.t, made
        stands = self.single(what, t + 1, place, value, given, l.amounts_run.at(b=place))
        reads = [t < l.last] if right else []
        return self.k.prove(
            name,
            self.is_right(t + 1, place),
            [*given, *reads, *self.on_a_device, self.knows(t + 1, place), *right],
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

    def read_by_norms(self) -> tuple[list[Bool], list[Theorem], list[dict[str, Any]]]:
        """That norm t reads no place of a weight that is wrong; which one, if any, and where."""
        l, t = self.l, self.l.t
        wrong = And(l.is_a_weight, self.wrong(t, l.normed(t)))
        misread, one, self.misread, found = self.k.choose("a_norm_reads_wrong", [t], l.weight, wrong)
        self.norm_is_of_right = Not(misread(t))
        place = substitute(l.normed(t), (l.weight, one(t)))
        return [self.norm_is_of_right], [found], [{"weight": one(t), "b": place}]

    def _of_weights(self) -> Theorem:
        """Where all that a norm adds up of weights compares equal, it is of the whole gradients."""
        l, t, d, elements = self.l, self.l.t, self.l.d, self._of_elements()
        return self.k.induct(
            "a_norm_is_of_the_whole_gradients_of_weights",
            l.weight,
            l.of_groups(t, d, l.weight) == l.of_wholes(l.step(t), l.weight),
            [
                *(*self.line, l.kind(t) == NORM_OF, *l.where_right(t, d), *self.on_a_device),
                *(self.norm_is_of_right, l.weight <= l.all_weights),
            ],
            base=[l.of_groups.start, l.of_wholes.start.at(u=l.step(t))],
            step=[
                *(l.of_groups.next, l.of_wholes.next.at(u=l.step(t)), elements.at(e=l.elements)),
                *(l.group_is_of_elements.at(e=l.elements), l.counted, self.misread),
            ],
        )

    def _of_elements(self) -> Theorem:
        """Where all that a norm adds up compares equal, it is of the whole gradient."""
        l, k = self.l, self.k
        t, d, j, e = l.t, l.d, l.j, l.e
        now, source, asks = l.step(t), l.normed(t), k.integers("asks")
        groups = l.mesh.of_norms
        right = [*self.line, l.kind(t) == NORM_OF, *l.where_right(t, asks), asks >= 0, asks < l.n]
        right += [d == groups.with_element(t, asks, j), l.is_a_weight]
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
            "a_norm_is_of_the_whole_gradient_of_a_weight",
            e,
            l.of_elements(t, d, e) == l.of_whole(now, e),
            [
                *self.line,
                l.kind(t) == NORM_OF,
                *l.where_right(t, d),
                *self.on_a_device,
                *self.right_in(source),
                l.is_a_weight,
            ],
            base=[l.of_elements.start, l.of_whole.start.at(u=now)],
            step=[
                l.of_elements.next,
                l.of_whole.next.at(u=now),
                read.at(d=member, **at),
                groups.inside.at(j=l.element(e), c=groups.owner(t, d, l.element(e))),
            ],
        )
