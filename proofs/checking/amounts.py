"""How often devices have the values that theirs are made of, through the lines of a schedule."""

from __future__ import annotations

from typing import Any

from proofs.checking.content import Content
from proofs.checking.symbolic_schedule import Symbols
from proofs.checking.symbols import (
    BOOL,
    INT,
    MOMENT,
    NORM,
    ONE,
    REAL,
    TOKENS,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    Element,
    indicator,
)
from proofs.tools.sums import total
from proofs.trusted.kernel import Bool, Kernel
from proofs.trusted.terms import And, If, Implies


class Language(Symbols):
    """The symbols of a schedule, and amounts.

    amount(t, b, s, d, i, j): how often device d has device i's value s. unknowns(t, b, d, j): how often
    what is not known. right: a backward reads on device d what the single device does; met: an update
    of element j. lost: what is not known gets into what a line computes.
    """

    def __init__(self, k: Kernel) -> None:
        super().__init__(k)
        self._amounts()

    def _amounts(self) -> None:
        k, t, b, s, d, i, j = self.k, self.t, self.b, self.s, self.d, self.i, self.j
        self.right = k.function("right", INT, INT, BOOL)
        self.met = k.function("met", INT, INT, Element, BOOL)
        self.lost = k.function("lost", INT, INT, Element, BOOL)
        self.amount = k.function("amount", INT, INT, INT, INT, INT, Element, REAL)
        self.unknowns = k.function("unknowns", INT, INT, INT, Element, REAL)
        self._groups_of_amounts()
        self.amounts_begin = k.suppose(
            "amounts_begin",
            [b, s, d, i, j],
            Implies(
                And(self.is_device(d), self.is_device(i)),
                self.amount(0, b, s, d, i, j) == self.amount_begun(),
            ),
        )
        self.amounts_run = k.suppose(
            "amounts_run_the_lines",
            [t, b, s, d, i, j],
            Implies(
                And(t >= 0, self.is_device(d), self.is_device(i)),
                self.amount(t + 1, b, s, d, i, j) == self.ran(self.of_amounts),
            ),
        )
        self.unknowns_begin = k.suppose(
            "unknowns_begin",
            [b, d, j],
            Implies(self.is_device(d), self.unknowns(0, b, d, j) == self.unknowns_begun()),
        )
        self.unknowns_run = k.suppose(
            "unknowns_run_the_lines",
            [t, b, d, j],
            Implies(
                And(t >= 0, self.is_device(d)),
                self.unknowns(t + 1, b, d, j) == self.ran(self.of_unknowns),
            ),
        )

    def _groups_of_amounts(self) -> None:
        """What is followed through a line, and what the groups of devices add up to."""
        k, t, b, s, d, i, c, j = self.k, self.t, self.b, self.s, self.d, self.i, self.c, self.j
        member, size, source = self.mesh.member(t, d, c), self.mesh.size(t), self.source(t)
        self.in_group = total(k, "in_group", [t, b, s, d, i, j], c, self.amount(t, b, s, member, i, j))
        self.unknowns_in_group = total(
            k, "unknowns_in_group", [t, b, d, j], c, self.unknowns(t, b, member, j)
        )
        lost = indicator(self.is_lost(t, d, j))
        weight, moment = self.made_states(t, d, j)
        gradient, weight, moment = (
            indicator(And(s == made, i == self.whose(s, d)))
            for made in (self.made_gradient(t, d), weight, moment)
        )
        self.of_amounts = Content(
            lambda b, e: self.amount(t, b, s, e, i, j),
            self.in_group(t, source, s, d, i, j, size),
            ZERO,
            self.factor(t),
            gradient,
            weight,
            moment,
            ZERO,
            self.amount_of_norm(t),
            indicator(And(s == self.count(t), i == self.whose(s, d))),
        )
        self.of_unknowns = Content(
            lambda b, e: self.unknowns(t, b, e, j),
            self.unknowns_in_group(t, source, d, j, size),
            *(ONE, ONE, lost, lost, lost, ONE, lost, ZERO),
        )

    def is_right(self, t: Any, d: Any) -> Bool:
        """Whether a backward reads on a device what the single device does."""
        return self.right(t, d)

    def where_right(self, t: Any, d: Any) -> list[Bool]:
        """Under which conditions that is so."""
        return [self.is_right(t, d)]

    def is_met(self, t: Any, d: Any, j: Any) -> Bool:
        """Whether an update does, of an element."""
        return self.met(t, d, j)

    def is_lost(self, t: Any, d: Any, j: Any) -> Bool:
        """Whether what is not known gets into what a line computes."""
        return self.lost(t, d, j)

    def amount_begun(self) -> Any:
        """How often device d has device i's value s in place b at first."""
        own = self.i == self.whose(self.s, self.d)
        weight, moment = (If(And(own, self.s == self.state(w, 0)), ONE, ZERO) for w in (WEIGHT, MOMENT))
        return self.begun(weight, moment, ZERO, ZERO)

    def unknowns_begun(self) -> Any:
        """How often it has what is not known."""
        return self.begun(ZERO, ZERO, ONE, ONE)

    def made_gradient(self, t: Any, d: Any) -> Any:
        """The name of what backward computes on a device."""
        return If(self.is_right(t, d), self.contribution(t), self.state(WRONG, t))

    def count(self, t: Any) -> Any:
        """The name of what is counted in a line."""
        return self.named(TOKENS, self.step(t), self.micro(t))

    def amount_of_norm(self, t: Any) -> Any:
        """How often device d has device i's value s in a norm of line t."""
        made, own = self.made_norm(t, self.d), self.i == self.whose(self.s, self.d)
        return indicator(And(self.s == made, own))

    def made_norm(self, t: Any, d: Any) -> Any:
        """The name of what a norm is on a device."""
        return If(self.is_right(t, d), self.state(NORM, self.step(t)), self.state(WRONG, t))

    def made_states(self, t: Any, d: Any, j: Any) -> tuple[Any, Any]:
        """The names of the weight and the moment that an update computes on a device."""
        wrong, after = (WRONG, WRONG_MOMENT), self.step(t) + 1
        weight, moment = (
            If(self.is_met(t, d, j), self.state(right, after), self.state(instead, t))
            for right, instead in zip((WEIGHT, MOMENT), wrong, strict=True)
        )
        return weight, moment
