"""T2's twelfth kind of line: a norm, of what the slices of a group's devices make up.

A norm is any function of the sum over elements of any function of them; an update may read it. Each
device adds up its own slice, and the group its devices. It is right on a device if all that it adds up
is the whole gradient: then it is a function of what is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.matching import Matching
from proofs.checking.symbols import BOOL, INT, NORM, NORM_OF, REAL, WRONG, ZERO, Element, indicator
from proofs.tools.sums import partition, total
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, If, IntVal


class NormedLanguage(Language):
    """The language, with norms. e is the number of an element, y a sum."""

    normed = True

    def _lines(self) -> None:
        super()._lines()
        k = self.k
        self.e, self.y = k.integers("e"), k.reals("y")
        self.elements = k.fixed("elements", INT)
        self.counted = k.suppose("elements_are_counted", [], self.elements >= 0)
        self.element = k.function("element", INT, Element)
        self.reads_norm = k.fixed("reads_norm", BOOL)
        self.fourth = k.function("fourth", INT, INT)
        self.part_of_norm = k.function("part_of_norm", INT, REAL, REAL)
        self.norm = k.function("norm", INT, REAL, REAL)

    @property
    def sources(self) -> tuple[Any, ...]:
        return (*super().sources, self.fourth)

    def _norm_of_whole(self) -> None:
        u, x = self.u, self.element(self.e)
        part = self.part_of_norm(u, self.single_gradient(u, x))
        self.of_whole = total(self.k, "parts_of_the_single_norm", [u], self.e, part)

    def single_norm(self, u: Any) -> Any:
        return self.norm(u, self.of_whole(u, self.elements))

    def applied_norm(self, u: Any) -> Any:
        return If(self.reads_norm, self.single_norm(u), ZERO)

    def _norm_of_devices(self) -> None:
        t, d, groups = self.t, self.d, self.mesh.of_norms

        def owner(e: Any) -> Any:
            return groups.owner(t, d, self.element(e))

        x = self.element(self.e)
        read = self.has(t, self.source(t), groups.with_element(t, d, x))[x]
        part = self.part_of_norm(self.step(t), read)
        placed, size = groups.inside.at(j=x), groups.size(t)
        found = partition(self.k, "parts_of_norms", self.c, self.e, owner, placed, size, part, [t, d])
        _, self.of_group, self.of_elements, self.group_is_of_elements = found

    def computed_norm(self, t: Any, d: Any) -> Any:
        return self.norm(self.step(t), self.of_group(t, d, self.elements, self.mesh.of_norms.size(t)))

    def norm_read(self, t: Any, d: Any) -> Any:
        return If(self.reads_norm, self.has(t, self.fourth(t), d)[self.j], ZERO)

    def amount_of_norm(self, t: Any) -> Any:
        made, own = self.made_norm(t, self.d), self.i == self.whose(self.s, self.d)
        return indicator(And(self.s == made, own))

    def made_norm(self, t: Any, d: Any) -> Any:
        """The name of what a norm is on a device."""
        return If(self.is_right(t, d), self.state(NORM, self.step(t)), self.state(WRONG, t))


class NormLine(Matching):
    """What a norm leaves right; a language without norms has no such lines."""

    def norm_steps(self) -> list[Theorem]:
        """What a norm leaves right."""
        if not isinstance(self.l, NormedLanguage):
            return [self.l.no_norms]
        return [self._norm(self.l)]

    def _norm(self, l: NormedLanguage) -> Theorem:
        t, now, source, target = l.t, l.step(l.t), l.source(l.t), l.target(l.t)
        squares = self._of_elements(l)
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
                *(l.names.at(w=w, u=u, m=IntVal(0)) for w, u in ((NORM, now), (WRONG, t))),
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
        return self.k.prove(
            name,
            self.is_right(t + 1, place),
            [*given, t < l.last, *self.on_a_device, self.knows(t + 1, place), *self.right_in(*read)],
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

    def _of_elements(self, l: NormedLanguage) -> Theorem:
        """Where all that a norm adds up compares equal, it is of the whole gradient."""
        k, t, d, j, e = self.k, l.t, l.d, l.j, l.e
        now, source, asks = l.step(t), l.source(t), k.integers("asks")
        groups = l.mesh.of_norms
        right = [*self.line, l.kind(t) == NORM_OF, l.is_right(t, asks), asks >= 0, asks < l.n]
        right.append(d == groups.with_element(t, asks, j))
        compares = self.all_equal_in(
            "a_right_norm_compares_equal",
            [t, l.s, l.i, j, d, asks],
            right,
            [(t, source, None, now)],
        )
        read = self.read("normed", t, source, None, now, right, compares)
        at = {"asks": d, "j": l.element(e)}
        member = groups.with_element(t, d, l.element(e))
        return k.induct(
            "a_norm_is_of_the_whole_gradient",
            e,
            l.of_elements(t, d, e) == l.of_whole(now, e),
            [
                *self.line,
                l.kind(t) == NORM_OF,
                l.is_right(t, d),
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
