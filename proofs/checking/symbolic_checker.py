"""The checker's run of a schedule that is a symbol, on any number of axes.

For each place and each original value there is a normal form: a coefficient for each word, an operator
for each axis. By recursion over lines: a line that moves values does to a word what the specification
does to the operator on its axis (`axis_tables`); what a line computes, devices have by their places.
What is not known has a form as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from proofs.checking import lines
from proofs.checking.amounts import Language
from proofs.checking.axes import BY_AXIS, Axes
from proofs.checking.axes_apart import require_axes_apart, require_numbers
from proofs.checking.axis_tables import (
    COUNT,
    LINEAR,
    UNKNOWN,
    Tables,
    forms,
    moved,
    only,
)
from proofs.checking.lines import MOVES, OPERATORS
from proofs.checking.symbols import (
    BACKWARD,
    BOOL,
    COUNT_OF,
    FIRSTS,
    INT,
    KINDS,
    MOMENT,
    NORM,
    NORM_OF,
    ONE,
    PLACES,
    UPDATE,
    WEIGHT,
    WRONG,
    WRONG_MOMENT,
    ZERO,
    KindSort,
    cases,
    indicator,
)
from proofs.trusted.kernel import Bool, KernelError
from proofs.trusted.terms import And, If, IntVal, Or
from spec.devices.operators import IDENTITY, Operator
from spec.meaning.semantics import initial

RELEASE = KINDS["release"]


def require_starts() -> None:
    """That what places hold at first is, as a form, what devices have there by their places.

    Raises KernelError.
    """
    for name, first in product(lines.STARTS, FIRSTS):
        place, sharded = lines.STARTS[name]
        resting = lines.schedule(sharded)
        checker = forms((first,), resting)
        states = (checker.symbol(kind, lines.NOW) for kind in ("weight", "moment"))
        found: dict[Any, Any] = initial(resting, checker, *states)[place][1]
        state = {"W": "weight", "M": "moment"}.get(name[0])
        for kind in (*([state] if state else []), "unknown"):
            here: dict[Operator, Any] = {}
            for ((at,), (o,)), amount in only((first,)).items():
                if (at == lines.OWNER or not sharded) != (kind == "unknown"):
                    here[OPERATORS[o]] = here.get(OPERATORS[o], 0) + amount
            has = {op: amount for (symbol, (op,)), amount in found.items() if symbol.kind == kind}
            if {op: c for op, c in here.items() if c} != {op: c for op, c in has.items() if c}:
                raise KernelError(f"{name} are not what devices have by their places")
        released = next(move for move in MOVES if KINDS[move.name] is RELEASE)
        if [*released.of(forms((first,)), {}, {}).items()] != [((UNKNOWN, (IDENTITY,)), 1)]:
            raise KernelError("what is released is not what is not known, on every device")


class CheckedLanguage(Language):
    """The language, and the checker's run.

    known: whether the form is of an original value s, or of what is not known. word: an operator for
    each axis. f: where the first device is along each axis, p: where a device is; q: whose value it is
    that it sees. o and r number operators.
    """

    mesh: Axes

    def _mesh(self) -> Axes:
        k = self.k
        self.known, self.alike = (k.constant(name, BOOL) for name in ("is_known", "alike"))
        self.word, self.f, self.p, self.q = (
            k.constant(name, BY_AXIS) for name in ("word", "f", "p", "q")
        )
        self.o, self.level = k.integers("o level")
        self.at_f, self.at_p, self.at_q = k.integers("at_f at_p at_q")
        self.size = k.reals("size")
        mesh = Axes(self)
        self.r = mesh.r
        return mesh

    def _amounts(self) -> None:
        require_axes_apart()
        require_numbers()
        require_starts()
        self._tables()
        self._verdict()
        self._placed()
        self._run()

    # -------------------------------------------------------------- what is compared
    def _verdict(self) -> None:
        """Whether a line's comparisons come out equal, of an update by place; what is not known.

        right(t), met(f, p, t); spoils(f, t), lost(f, p, t): it gets into what a backward or a norm, an
        update computes.
        """
        k = self.k
        self.right = k.function("right", INT, BOOL)
        self.met, self.lost = (
            k.function(name, BY_AXIS, BY_AXIS, INT, BOOL) for name in ("met", "lost")
        )
        self.spoils = k.function("spoils", BY_AXIS, INT, BOOL)

    def is_right(self, t: Any, d: Any) -> Bool:
        """On all devices or on none: a form is of all of them."""
        return self.right(t)

    def is_met(self, t: Any, d: Any, j: Any) -> Bool:
        """By place."""
        return self.met(self.mesh.firsts(j), self.mesh.places(d, j), t)

    def is_lost(self, t: Any, d: Any, j: Any) -> Bool:
        """By place, if it is an update."""
        f = self.mesh.firsts(j)
        lost = self.lost(f, self.mesh.places(d, j), t)
        return If(self.kind(t) == UPDATE, lost, self.spoils(f, t))

    # ----------------------------------------------------------------------- tables
    def _tables(self) -> None:
        """row(of_target): what a line makes of an operator; entry: what a device sees; alone."""
        k, o, r, f, p, q = self.k, self.o, self.r, self.at_f, self.at_p, self.at_q
        tables = Tables(self.size, ONE)
        copy = next(move for move in LINEAR if move.name == "copy")
        for move, g, of_target in product(LINEAR, FIRSTS, (False, True)):
            alike = copy if move.name == "scale" else move  # nothing scales what is not known
            if moved(move, (g,), of_target, UNKNOWN) != moved(alike, (g,), of_target):
                raise KernelError(f"{move.name} of what is not known")
        known = self.known
        kind, factor = k.constant("line_kind", KindSort), k.reals("line_factor")
        of_line = Tables(self.size, If(known, factor, ONE))
        self.row, self.row_is = {}, {}
        for of_target, name in ((False, "of_source"), (True, "of_target")):
            by_kind = {KINDS[m.name]: of_line.row(m, o, r, f, of_target) for m in LINEAR}
            moving = {at: row for at, row in by_kind.items() if row is not ZERO}
            body = cases(kind, moving, ZERO)
            row, is_ = k.define(name, [known, kind, factor, self.size, o, r, f], body)
            self.row[of_target] = partial(self._row, row)
            line_kind, line_factor, size = self._of_line(self.t)
            self.row_is[of_target] = is_.at(line_kind=line_kind, line_factor=line_factor, size=size)
        self.entry, self.entry_is = k.define("entry", [o, f, p, q, self.size], tables.entry(o, f, p, q))
        self.alone, self.alone_is = k.define("alone", [p, o, f], tables.alone(p, o, f))
        self.left, self.right_one = (k.reals(" ".join(f"{v}{i}" for i in COUNT)) for v in "xz")
        # a product of its own name: where it is not unfolded, it is no product
        one, other = self.left[0], self.right_one[0]
        self.repeat, self.repeat_is = k.define("repeat", [one, other], one * other)
        products = (self.repeat(x, z) for x, z in zip(self.left, self.right_one, strict=True))
        self.mixed, self.mixed_is = k.define(
            "mixed", [*self.left, *self.right_one], sum(products, ZERO)
        )
        self.three = k.reals("c0 c1 c2"), k.reals("y0 y1 y2")
        self.chosen, self.chosen_is = k.define(
            "chosen",
            [*self.three[0], *self.three[1]],
            sum((self.repeat(c, y) for c, y in zip(*self.three, strict=True)), ZERO),
        )

    def _of_line(self, t: Any) -> tuple[Any, Any, Any]:
        """What a line that moves values is, besides its places: kind, factor, size of its groups."""
        return self.kind(t), self.factor(t), self.mesh.size_of(self.mesh.axis(t))

    def _row(self, row: Any, known: Any, t: Any, o: Any, r: Any, f: Any) -> Any:
        """A number of what line t makes of an operator."""
        return row(known, *self._of_line(t), o, r, f)

    def along(self, row: Callable[[Any], Any], value: Callable[[Any], Any]) -> Any:
        """A row of numbers times what words have that differ along an axis, by operator."""
        return self.mixed(*(row(IntVal(o)) for o in COUNT), *(value(IntVal(o)) for o in COUNT))

    # ----------------------------------------------------------- what lines compute
    def _placed(self) -> None:
        """placed: what a device at p has by its place after line t; spread: the form of that.

        Of line -1: what is there at first.
        """
        k, t, b, s, f, p = self.k, self.t, self.b, self.s, self.f, self.p
        mesh, known = self.mesh, self.known
        owned = mesh.owned(b, p, mesh.axes)
        begun = (
            self.begun(
                indicator(s == self.state(WEIGHT, 0)),
                indicator(s == self.state(MOMENT, 0)),
                ZERO,
                ZERO,
                owned,
            ),
            self.begun(ZERO, ZERO, ONE, ONE, owned),
        )
        made = (self._made(), self._made_unknown())
        at_first, later = (If(known, one, other) for one, other in (begun, made))
        self.placed, self.placed_is = k.define(
            "placed_at", [known, t, b, s, f, p], If(t < 0, at_first, later)
        )

        def wrapped(inner: Callable[..., Any]) -> Any:
            a = mesh.axes - 1 - self.level
            there = [IntVal(place) for place in PLACES.values()]
            return self.chosen(
                *(self.alone(place, self.word[a], f[a]) for place in there),
                *(inner(known, t, b, s, self.word, f, self.mesh.put(p, a, place)) for place in there),
            )

        self.spread, self.spread_none, self.spread_next = k.recursion(
            "spread",
            [known, t, b, s, self.word, f, p],
            self.level,
            self.placed(known, t, b, s, f, p),
            wrapped,
        )

    def _made(self) -> Any:
        t, s = self.t, self.s
        met, after = self.met(self.f, self.p, t), self.step(t) + 1
        computed, norm = (
            indicator(s == If(self.right(t), right, self.state(WRONG, t)))
            for right in (self.contribution(t), self.state(NORM, self.step(t)))
        )
        weight, moment = (
            indicator(s == If(met, self.state(right, after), self.state(wrong, t)))
            for right, wrong in ((WEIGHT, WRONG), (MOMENT, WRONG_MOMENT))
        )
        made = {BACKWARD: computed, UPDATE: weight, NORM_OF: norm}
        made[COUNT_OF] = indicator(s == self.count(t))
        return self.written(self.b, moment, cases(self.kind(t), made, ZERO), ZERO, ZERO)

    def _made_unknown(self) -> Any:
        t = self.t
        lost, spoilt = indicator(self.lost(self.f, self.p, t)), indicator(self.spoils(self.f, t))
        made = {BACKWARD: spoilt, NORM_OF: spoilt, UPDATE: lost, RELEASE: ONE}
        return self.written(self.b, lost, cases(self.kind(t), made, ZERO), ONE, ZERO)

    # ------------------------------------------------------------ the checker's run
    @property
    def is_linear(self) -> Bool:
        """Whether line t moves values."""
        return Or(*(self.kind(self.t) == KINDS[m.name] for m in LINEAR))

    def moves(self, b: Any) -> Bool:
        """Whether line t moves values to b."""
        return And(b == self.target(self.t), self.is_linear)

    def _run(self) -> None:
        k, t, b, s, word, f = self.k, self.t, self.b, self.s, self.word, self.f
        known, mesh = self.known, self.mesh
        a = mesh.axis(t)

        def after(before: Callable[..., Any]) -> Any:
            def of(place: Any, row: Any) -> Any:
                return self.along(
                    lambda r: row(known, t, word[a], r, f[a]),
                    lambda r: before(known, place, s, self.mesh.put(word, a, r), f),
                )

            moved_on = of(self.source(t), self.row[False]) + of(self.target(t), self.row[True])
            made = self.spread(known, t, b, s, word, f, mesh.nowhere, mesh.axes)
            here = If(self.untouched(b), before(known, b, s, word, f), made)
            return If(self.moves(b), moved_on, here)

        self.coefficient, self.at_first, self.coefficient_next = k.recursion(
            "coefficient",
            [known, b, s, word, f],
            t,
            self.spread(known, IntVal(-1), b, s, word, f, mesh.nowhere, mesh.axes),
            after,
        )

        def seen(inner: Callable[..., Any]) -> Any:
            x = self.level
            size = mesh.size_of(x)
            return self.along(
                lambda o: self.entry(o, f[x], self.p[x], self.q[x], size),
                lambda o: inner(known, t, b, s, self.mesh.put(word, x, o), f, self.p, self.q),
            )

        self.sight, self.sight_none, self.sight_next = k.recursion(
            "sight",
            [known, t, b, s, word, f, self.p, self.q],
            self.level,
            self.coefficient(known, b, s, word, f, t),
            seen,
        )

    def value(
        self,
        known: Any,
        alike: Any,
        t: Any,
        b: Any,
        s: Any,
        d: Any,
        i: Any,
        j: Any,
        word: Any,
        level: Any,
    ) -> Any:
        """What device d has of device i's value s, or of all devices' alike, along some axes."""
        mesh = self.mesh
        places, sources = mesh.places(d, j), mesh.sources(alike, d, i, j)
        return self.sight(known, t, b, s, word, mesh.firsts(j), places, sources, level)
