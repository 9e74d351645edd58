"""The checker's run of a schedule that is a symbol.

For each place and each original value the coefficients of a normal form, and those of what is not
known, by recursion over lines. What a line makes of them is what the specification makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking import lines
from proofs.checking.lines import (
    FIRST,
    GRADIENT,
    MOVES,
    NAMED,
    OPERATORS,
    OWNER,
    UNKNOWN,
    Coefficients,
    Line,
)
from proofs.checking.symbolic_schedule import (
    BACKWARD,
    BOOL,
    FIRSTS,
    INT,
    KINDS,
    MOMENT,
    ONE,
    PLACES,
    STARTS,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    Element,
    Language,
    Mesh,
    cases,
    either,
    first_of,
    place_of,
)
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import And, If, IntVal, ToReal
from spec.checking.words import Symbol
from spec.devices.operators import OTHER


def of_one(op: Any, amounts: Coefficients) -> Any:
    """The coefficient of an operator, given by its number."""
    return cases(op, dict(enumerate(amounts)), ZERO)


def masked(amounts: Sequence[Any], first: Any) -> Coefficients:
    """Coefficients, where operators that speak of a first device that owns are no others."""
    return [
        (ZERO if first is OWNER else a if first is FIRST else If(first == OWNER, ZERO, a))
        if FIRST in op
        else a
        for op, a in zip(OPERATORS, amounts, strict=True)
    ]


def by_place(amount: Callable[[int], Any], first: int) -> Coefficients:
    """The coefficients of a value that devices have as often as their places say."""
    only = {p: lines.only_at(p, first) for p in (*NAMED[first], OTHER)}
    return [sum((amount(PLACES[p]) * only[p][o] for p in only), ZERO) for o in range(len(OPERATORS))]


class OneAxis(Mesh):
    """The mesh of one axis: all devices are a group, in their order."""

    def __init__(self, k: Kernel, n: Any, t: Any, b: Any, d: Any, c: Any, j: Any) -> None:
        self.owner_of = k.function("owner", Element, INT)
        owner = self.owner_of(j)
        owned = k.suppose("each_element_has_an_owner", [j], And(owner >= 0, owner < n))
        self.size, size_is = k.define("group_size", [t], n)
        self.member, self.member_is = k.define("member", [t, d, c], c)
        self.coordinate, coordinate_is = k.define("coordinate", [t, d], d)
        self.owner, self.owner_is = k.define("owner_in_group", [t, d, j], owner)
        self.holds, self.holds_is = k.define("holds", [b, d, j], d == owner)
        self.places = [coordinate_is, self.owner_is]
        self.size_is = size_is
        self.some = k.prove("there_are_devices", And(n >= 1, owner >= 0, owner < n), (), [owned])
        facts = [self.some, size_is, self.member_is, self.owner_is]
        self.inside = k.prove("devices_are_a_group", self.are_devices(n, t, d, c, j), (), facts)


class CheckedLanguage(Language):
    """The language, and the checker's run. f is the place of the first device, p that of a device."""

    def _mesh(self) -> OneAxis:
        self.f, self.p, self.op = self.k.integers("f p op")
        self.size = ToReal(self.n)
        return OneAxis(self.k, self.n, self.t, self.b, self.d, self.c, self.j)

    def owner(self, j: Any) -> Any:
        """The device that owns an element."""
        return self.mesh.owner_of(j)

    def _amounts(self) -> None:
        self._transfer()
        self._checker()

    def is_right(self, t: Any, d: Any) -> Bool:
        """On all devices or on none: a form is of all of them."""
        return self.right(t)

    def is_met(self, t: Any, d: Any, j: Any) -> Bool:
        """By place."""
        return self.met(first_of(self.owner(j)), place_of(d, self.owner(j)), t)

    def is_lost(self, t: Any, d: Any, j: Any) -> Bool:
        """By place, if it is an update."""
        place = If(self.kind(t) == BACKWARD, IntVal(0), place_of(d, self.owner(j)))
        return self.lost(first_of(self.owner(j)), place, t)

    # ------------------------------------------------------------ the transfer of T1
    def _transfer(self) -> None:
        """after(move): the coefficients after a line, as functions of those before."""
        k = self.k
        self.x, self.z = ([k.reals(f"{v}{o}") for o in range(len(OPERATORS))] for v in "xz")
        self.scaled_by = k.reals("scaled_by")
        params = [self.op, self.f, self.scaled_by, *self.x, *self.z]
        self.after: dict[tuple[str, bool], Any] = {}
        self.after_is: dict[tuple[str, bool], Theorem] = {}
        for move in MOVES:
            for known, symbol in ((True, GRADIENT), (False, UNKNOWN)):
                name = f"{move.name}_{'of' if known else 'of_unknown'}"
                body = either(self.f, {f: self._moved(move, f, symbol) for f in FIRSTS})
                self.after[move.name, known], self.after_is[move.name, known] = k.define(
                    name, params, body
                )

    def _moved(self, move: Line, first: int, symbol: Symbol) -> Any:
        x, z = (masked(v, first) for v in (self.x, self.z))
        found = move.forms(x, z, symbol, self.size, first, self.scaled_by)
        return of_one(self.op, masked(lines.coefficients(found, symbol.kind), first))

    # ----------------------------------------------------------- the checker's run
    def _checker(self) -> None:
        k, t, b, s, f, op = self.k, self.t, self.b, self.s, self.f, self.op
        # whether the comparisons of a line come out equal: of an update at each place
        self.right = k.function("right", INT, BOOL)
        self.met = k.function("met", INT, INT, INT, BOOL)
        self.lost = k.function("lost", INT, INT, INT, BOOL)  # what is not known gets in
        step, wrong = self.step(t), (self.state(w, t) for w in (WRONG, WRONG_MOMENT))
        weights, moments = (
            self.updated(self.state(w, step + 1), v)
            for w, v in zip((WEIGHT, MOMENT), wrong, strict=True)
        )
        computed = If(self.right(t), self.contribution(t), self.state(WRONG, t))
        self.coefficient, self.coefficient_start, self.coefficient_next = k.recursion(
            "coefficient",
            [op, b, s, f],
            t,
            self.form_begun(True),
            lambda prev: self._after(
                True,
                lambda o, place: prev(IntVal(o), place, s, f),
                prev(op, b, s, f),
                If(s == computed, of_one(op, lines.one()), ZERO),
                weights,
                moments,
            ),
        )
        lost = self._by_place(lambda p: If(self.lost(f, p, t), ONE, ZERO))
        self.unknown, self.unknown_start, self.unknown_next = k.recursion(
            "not_known",
            [op, b, f],
            t,
            self.form_begun(False),
            lambda prev: self._after(
                False,
                lambda o, place: prev(IntVal(o), place, f),
                prev(op, b, f),
                If(self.lost(f, 0, t), of_one(op, lines.one()), ZERO),
                lost,
                lost,
            ),
        )

    def form_begun(self, known: bool) -> Any:
        """The coefficients of a place at first."""
        of = {True: ("weight", "moment"), False: ("unknown",)}[known]
        named = {"weight": self.state(WEIGHT, 0), "moment": self.state(MOMENT, 0)}
        table = {}
        for name, start in STARTS.items():
            found = {f: lines.started(name, self.size, f) for f in FIRSTS}
            kind = next((v for v in of if any(s.kind == v for s, _ in found[OWNER])), of[0])
            form = either(
                self.f, {f: of_one(self.op, lines.coefficients(found[f], kind)) for f in FIRSTS}
            )
            table[start] = If(self.s == named[kind], form, ZERO) if known else form
        return cases(self.start(self.b), table, ZERO if known else of_one(self.op, lines.one()))

    def updated(self, right: Any, wrong: Any) -> Any:
        """The coefficients of what an update writes: the next state where its needs are met."""

        def at(p: int) -> Any:
            met = self.met(self.f, p, self.t)
            return If(self.s == If(met, right, wrong), ONE, ZERO)

        return self._by_place(at)

    def _by_place(self, amount: Callable[[int], Any]) -> Any:
        """The coefficient of a value that devices have by their places."""
        return either(self.f, {f: of_one(self.op, by_place(amount, f)) for f in FIRSTS})

    def _after(
        self,
        known: bool,
        read: Callable[[int, Any], Any],
        before: Any,
        computed: Any,
        weights: Any,
        moments: Any,
    ) -> Any:
        """A coefficient after line t."""
        t = self.t
        x, z = (
            [read(o, place(t)) for o in range(len(OPERATORS))] for place in (self.source, self.target)
        )
        new = {
            KINDS[m.name]: self.after[m.name, known](self.op, self.f, self.factor(t), *x, *z)
            for m in MOVES
        }
        dropped = ZERO if known else of_one(self.op, lines.one())
        made = cases(self.kind(t), {**new, BACKWARD: computed}, weights)
        return self.written(self.b, moments, made, dropped, before)

    def form(self, t: Any, b: Any, s: Any, f: Any) -> Coefficients:
        """The coefficients of an original value in a place before a line."""
        return [self.coefficient(IntVal(o), b, s, f, t) for o in range(len(OPERATORS))]

    def not_known(self, t: Any, b: Any, f: Any) -> Coefficients:
        """The coefficients of what is not known."""
        return [self.unknown(IntVal(o), b, f, t) for o in range(len(OPERATORS))]
