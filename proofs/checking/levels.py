"""What devices have of a normal form, one axis after the other: T1, for any coefficients and axes.

A form comes to what the operators of its words make of a value: along one axis, of what it comes to
along those before. So a line does to what devices have what the specification does to values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking.axis_tables import COUNT, REST, SELF, Tables, moved
from proofs.checking.lines import FIRST, OPERATORS, OWNER, Line
from proofs.checking.symbolic_checker import CheckedLanguage
from proofs.checking.symbols import FIRSTS, KINDS, ONE, PLACES, ZERO, cases, either
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.terms import And, If, Implies, IntVal, RealVal
from spec.devices.operators import OTHER

MINUS = RealVal(-1)
DIAGONAL = ("copy", "accumulate", "scale")  # lines that make of an operator that operator
NUMBERS = [IntVal(o) for o in COUNT]
OF_FIRST = [number for number, op in zip(NUMBERS, OPERATORS, strict=True) if FIRST in op]


class Levels(CheckedLanguage):
    """The language, and what its forms come to along the axes before `level`."""

    def laws(self) -> None:
        """Of sums over operators."""
        k, x, z = self.k, self.left, self.right_one
        y = self.more = k.reals(" ".join(f"y_{o}" for o in COUNT))
        matrix = [k.reals(" ".join(f"m{o}_{q}" for q in COUNT)) for o in COUNT]
        columns = list(zip(*matrix, strict=True))
        self._products()
        nothing, both = [ZERO] * len(z), [a + b for a, b in zip(z, y, strict=True)]
        self.of_nothing = k.prove(
            "a_sum_of_nothing",
            self.mixed(*x, *nothing) == 0,
            (),
            [self.product(x, nothing), *(self.none.at(x0=each) for each in x)],
        )
        self.commutes = k.prove(
            "sums_over_operators_commute",
            self.mixed(*x, *z) == self.mixed(*z, *x),
            (),
            [
                self.product(x, z),
                self.product(z, x),
                *(self.swapped.at(x0=a, z0=b) for a, b in zip(x, z, strict=True)),
            ],
        )
        self.adds = k.prove(
            "sums_over_operators_add_up",
            self.mixed(*x, *both) == self.mixed(*x, *z) + self.mixed(*x, *y),
            (),
            [
                *(self.product(x, column) for column in (z, y, both)),
                *(self.plus.at(x0=a, z0=b, z1=c) for a, b, c in zip(x, z, y, strict=True)),
            ],
        )
        by_row = [self.mixed(*z, *row) for row in matrix]
        by_column = [self.mixed(*x, *column) for column in columns]
        self.exchanged = k.prove(
            "sums_over_operators_exchange",
            self.mixed(*x, *by_row) == self.mixed(*z, *by_column),
            (),
            [
                self.product(x, by_row),
                self.product(z, by_column),
                *(self._spread_out(a, z, row) for a, row in zip(x, matrix, strict=True)),
                *(self._spread_out(b, x, column) for b, column in zip(z, columns, strict=True)),
                *(self.exchange.at(x0=x[o], z0=z[q], z1=matrix[o][q]) for o in COUNT for q in COUNT),
            ],
        )
        by = self.size
        more = [by * each for each in z]
        self.multiples = k.prove(
            "sums_over_operators_of_multiples",
            self.mixed(*x, *more) == by * self.mixed(*x, *z),
            (),
            [
                self.product(x, more),
                self._spread_out(by, x, z),
                self.repeat_is.at(x0=by, z0=self.mixed(*x, *z)),
                *(self.repeat_is.at(x0=by, z0=each) for each in z),
                *(self.exchange.at(x0=by, z0=a, z1=b) for a, b in zip(x, z, strict=True)),
            ],
        )

    def _products(self) -> None:
        """Of products: they commute, add up and spread over sums."""
        k, (x, *_), (z, y, *_) = self.k, self.left, self.right_one
        repeat, is_ = self.repeat, self.repeat_is
        one = self.repeat_is.at(x0=ONE)
        nought = self.repeat_is.at(x0=ZERO)
        self.once = k.prove("repeated_once", repeat(ONE, z) == z, (), [one])
        self.never = k.prove("never_repeated", repeat(ZERO, z) == 0, (), [nought])
        self.none = k.prove("nothing_repeated", repeat(x, ZERO) == 0, (), [is_.at(z0=ZERO)])
        self.swapped = k.prove(
            "products_commute", repeat(x, z) == repeat(z, x), (), [is_, is_.at(x0=z, z0=x)]
        )
        self.plus = k.prove(
            "products_add_up",
            repeat(x, z + y) == repeat(x, z) + repeat(x, y),
            (),
            [is_, is_.at(z0=y), is_.at(z0=z + y)],
        )
        self.exchange = k.prove(
            "products_exchange",
            repeat(x, repeat(z, y)) == repeat(z, repeat(x, y)),
            (),
            [
                is_.at(x0=z, z0=y),
                is_.at(z0=y),
                is_.at(z0=repeat(z, y)),
                is_.at(x0=z, z0=repeat(x, y)),
            ],
        )
        terms = self.right_one
        parts = [sum(terms[:o], ZERO) for o in range(1, len(terms) + 1)]
        by = k.reals("repeated_by")
        spread = k.prove(
            "products_spread_over_sums",
            repeat(by, parts[-1]) == sum((repeat(by, each) for each in terms), ZERO),
            (),
            [
                self.plus.at(x0=by, z0=so_far, z1=each)
                for so_far, each in zip(parts, terms[1:], strict=False)
            ],
        )
        products = [repeat(a, b) for a, b in zip(self.left, terms, strict=True)]
        self.spread_sum = k.prove(
            "sums_over_operators_spread",
            repeat(by, self.mixed(*self.left, *terms))
            == sum((repeat(by, each) for each in products), ZERO),
            (),
            [self.product(self.left, terms), spread.at(**self.column_as(products))],
        )

    def _spread_out(self, by: Any, row: Sequence[Any], column: Sequence[Any]) -> Theorem:
        """A number times a sum over operators."""
        return self.spread_sum.at(repeated_by=by, **self.row_as(row), **self.column_as(column))

    def product(self, row: Sequence[Any], column: Sequence[Any]) -> Theorem:
        """What a sum over operators is."""
        return self.mixed_is.at(**self.row_as(row), **self.column_as(column))

    def row_as(self, row: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(map(str, self.left), row, strict=True))

    def column_as(self, column: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(map(str, self.right_one), column, strict=True))

    # ------------------------------------------------------------- lines, on one axis
    def codes(self, f: Any, p: Any) -> Bool:
        """That numbers are of a first device and of a place that there are together."""
        return And(Implies(f == OWNER, p != PLACES[FIRST]), p >= 0, p <= PLACES[OTHER])

    def seen_by(self, r: Any, p: Any, q: Any) -> Any:
        """What a device at place p sees by operator r, along the axis of line t."""
        return self.entry(r, self.at_f, p, q, self.mesh.size_of(self.mesh.axis(self.t)))

    def algebra(self, move: Line) -> tuple[Theorem, Theorem]:
        """What a line makes of an operator comes to what it makes of what the operator came to.

        Of its source, and of its target.
        """
        k, t, r, f, p, q = self.k, self.t, self.r, self.at_f, self.at_p, self.at_q
        named = If(q == SELF, IntVal(REST), q)  # seen from a device that has a name
        here = self.seen_by(r, p, q)
        owns = If(p == OWNER, here, ZERO)
        at_owner = self.seen_by(r, IntVal(OWNER), named)
        first = If(f == OWNER, IntVal(OWNER), IntVal(PLACES[FIRST]))
        at_first = self.seen_by(r, first, named)
        is_ = self.entry_is.at(size=self.mesh.size_of(self.mesh.axis(t)))
        own = is_.at(o=r)
        to_owner = is_.at(o=r, at_p=IntVal(OWNER), at_q=named)
        to_first = is_.at(o=r, at_p=first, at_q=named)
        by = If(self.known, self.factor(t), ONE)
        made = {
            "all_gather": (at_owner, ZERO, [to_owner]),
            "broadcast": (at_first, ZERO, [to_first]),
            "copy": (here, ZERO, []),
            "keep": (owns, If(p == OWNER, ZERO, here), [own]),
            "accumulate": (here, here, []),
            "scale": (by * here, ZERO, []),
            "zero": (ZERO, ZERO, []),
        }[move.name]
        entries = [self.seen_by(o, p, q) for o in NUMBERS]
        found = []
        for of_target, name, value in ((False, "source", made[0]), (True, "target", made[1])):
            rows = [self.row[of_target](self.known, t, o, r, f) for o in NUMBERS]
            numbers = self.on_numbers(move, of_target).at(**self.row_as(entries))
            facts = []
            if value is not ZERO:
                facts = [*(is_.at(o=o) for o in self.mixing(move, of_target)), *made[2]]
            seen = [self.codes(f, p), Implies(q == SELF, p == PLACES[OTHER])]
            elsewhere = move.name in ("all_gather", "broadcast") and not of_target
            given = [self.kind(t) == KINDS[move.name], *(seen if elsewhere else [])]
            if move.name in DIAGONAL and facts:
                given += [r >= 0, r < len(OPERATORS)]
            goal = self.mixed(*entries, *rows) == value
            found.append(k.prove(f"{move.name}_of_its_{name}", goal, given, [numbers, *facts]))
        return found[0], found[1]

    def mixing(self, move: Line, of_target: bool) -> list[Any]:
        """The operators that a line makes of others, or that it does not make."""
        cells = [moved(move, (g,), of_target) for g in FIRSTS]
        made = {o for table in cells for ((o,), (q,)) in table if not of_target or o != q}
        return OF_FIRST if move.name in DIAGONAL else [NUMBERS[o] for o in sorted(made)]

    def on_numbers(self, move: Line, of_target: bool) -> Theorem:
        """What a line makes of any numbers, one for each operator."""
        k, t, r, f, x = self.k, self.t, self.r, self.at_f, self.left
        cells = {g: moved(move, (g,), of_target) for g in FIRSTS}
        by = If(self.known, self.factor(t), ONE)
        tables = Tables(self.mesh.size_of(self.mesh.axis(t)), by)
        sums: dict[int, dict[int, Any]] = {g: {} for g in FIRSTS}
        factors: dict[int, dict[Any, Any]] = {o: {ZERO: ZERO} for o in COUNT}
        for g, table in cells.items():
            for ((o,), (q,)), amount in table.items():
                c = tables.term(amount)
                factors[o][c] = c
                sums[g][q] = sums[g].get(q, ZERO) + self._times(c, x[o])
        rows = [self.row[of_target](self.known, t, o, r, f) for o in NUMBERS]
        products = [
            fact for o, found in factors.items() for fact in (self._product(x[o], c) for c in found)
        ]
        return k.prove(
            f"{move.name}_of_numbers_in_its_{'target' if of_target else 'source'}",
            self.mixed(*x, *rows) == either(f, {g: cases(r, sums[g], ZERO) for g in FIRSTS}),
            [self.kind(t) == KINDS[move.name]],
            [
                self.product(x, rows),
                *products,
                *(self.row_is[of_target].at(o=o) for o in NUMBERS),
            ],
        )

    def _times(self, c: Any, x: Any) -> Any:
        """A number of a table times a variable."""
        return x if c is ONE else -x if c is MINUS else c * x

    def _product(self, x: Any, c: Any) -> Theorem:
        """What a variable, repeated so often, is."""
        return self.none.at(x0=x) if c is ZERO else self.repeat_is.at(x0=x, z0=c)

    # --------------------------------------------------- along the axes before a line's
    def before_its_axis(self) -> None:
        """Up to the axis of a line, forms after it are made of forms before it as words are."""
        k, word, r, level, t = self.k, self.word, self.r, self.level, self.t
        a = self.mesh.axis(t)
        self.form = [self.known, t, self.b, self.s, word, self.f, self.p, self.q]

        def inner(before: Callable[..., Any]) -> Any:
            return self.along(
                lambda o: self.seen(o, level),
                lambda o: before(*self.form[:4], self.mesh.put(word, level, o), *self.form[5:], r),
            )

        start = self.coefficient(self.known, self.b, self.s, self.mesh.put(word, a, r), self.f, t)
        # the same, whatever the word has on the axis of line t: operator r in its stead
        self.held, held_none, held_next = k.recursion("held", [*self.form, r], level, start, inner)
        self.held_is = k.induct(
            "what_is_held",
            level,
            self.held(*self.form, r, level) == self.at(level, word=self.mesh.put(word, a, r)),
            [level <= a],
            base=[held_none, self.sight_none.at(word=self.mesh.put(word, a, r))],
            step=[
                held_next,
                self.sight_next.at(word=self.mesh.put(word, a, r)),
                *(self.mesh.put_in_any_order.at(a=level, x=a, o=o) for o in NUMBERS),
            ],
            at=[{"word": self.mesh.put(word, level, o)} for o in NUMBERS],
        )
        made, rows, held, both = (
            self.at(level, t=t + 1, b=self.target(t)),
            [],
            [],
            (self.source, self.target),
        )
        for of_target, place in zip((False, True), both, strict=True):
            rows.append([self.row[of_target](self.known, t, word[a], q, self.f[a]) for q in NUMBERS])
            held.append([self.held(*self._in(place(t)), q, level) for q in NUMBERS])
        words = [self.mesh.put(word, level, o) for o in NUMBERS]
        below = [
            [[self.held(*self._in(place(t), each), q, level) for q in NUMBERS] for each in words]
            for place in (self.source, self.target)
        ]
        seen = [self.seen(o, level) for o in NUMBERS]
        sums = [
            [self.mixed(*row, *one) for one in matrix] for row, matrix in zip(rows, below, strict=True)
        ]
        self.moved_below = k.induct(
            "forms_are_moved_below_the_axis_of_a_line",
            level,
            made == sum((self.mixed(*row, *has) for row, has in zip(rows, held, strict=True)), ZERO),
            [t >= 0, self.is_linear, level <= a],
            base=[
                self.sight_none.at(t=t + 1, b=self.target(t)),
                *(
                    held_none.at(b=place(t), r=q)
                    for place in (self.source, self.target)
                    for q in NUMBERS
                ),
                self.coefficient_next.at(b=self.target(t)),
            ],
            step=[
                self.sight_next.at(t=t + 1, b=self.target(t)),
                *(self.mesh.put_read.at(a=level, x=a, o=o) for o in NUMBERS),
                *(
                    held_next.at(b=place(t), r=q)
                    for place in (self.source, self.target)
                    for q in NUMBERS
                ),
                *(
                    self.exchanged.at(
                        **self.row_as(seen), **self.column_as(row), **self.matrix_as(matrix)
                    )
                    for row, matrix in zip(rows, below, strict=True)
                ),
                self.adds.at(**self.row_as(seen), **self.column_as(sums[0]), **self.more_as(sums[1])),
            ],
            at=[{"word": self.mesh.put(word, level, o)} for o in NUMBERS],
        )

    def _in(self, b: Any, word: Any = None) -> list[Any]:
        """The form of a place."""
        known, t, _, s, here, *arrays = self.form
        return [known, t, b, s, here if word is None else word, *arrays]

    def seen(self, o: Any, x: Any) -> Any:
        """What is seen by an operator along an axis."""
        return self.entry(o, self.f[x], self.p[x], self.q[x], self.mesh.size_of(x))

    def at(self, level: Any, **other: Any) -> Any:
        """What a form comes to along the axes before `level`."""
        names = ("known", "t", "b", "s", "word", "f", "p", "q")
        return self.sight(*(other.get(n, v) for n, v in zip(names, self.form, strict=True)), level)

    def matrix_as(self, matrix: Sequence[Sequence[Any]]) -> dict[str, Any]:
        return {f"m{o}_{q}": matrix[o][q] for o in COUNT for q in COUNT}

    def more_as(self, column: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(map(str, self.more), column, strict=True))
