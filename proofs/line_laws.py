"""What lines that move values do to what forms stand for: T1, line by line, for any coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from proofs import lines
from proofs.kernel import Bool, Theorem
from proofs.lines import FIRST, OPERATORS, OWNER, Coefficients, Line
from proofs.meaning import CASES, COUNT, Meaning, literal, occurs
from proofs.sums import of_sums, total
from proofs.symbolic_checker import masked
from proofs.symbolic_schedule import FIRSTS, KINDS, ZERO, either, first_of
from spec.operators import ALL, Who

SHARES: dict[Who, str] = {ALL: "all", OWNER: "owner", FIRST: "first"}


class Laws(Meaning):
    """Of each kind of line that moves values."""

    def new(self, move: Line, f: Any, known: bool = True) -> Coefficients:
        """The coefficients after a line, in those before."""
        after = self.l.after_is[move.name, known]
        return [z3.simplify(after.at(op=o, f=f).goal.arg(1)) for o in COUNT]

    def after(self, move: Line, f: Any, known: bool = True) -> Coefficients:
        """Likewise, as the symbols for them."""
        l, after = self.l, self.l.after[move.name, known]
        return [after(o, f, l.scaled_by, *l.x, *l.z) for o in COUNT]

    def algebra(self, move: Line) -> Theorem:
        """The form after a line stands for what the line makes of what forms stood for."""
        l = self.l
        goal: list[Bool] = []
        made: list[Bool] = []
        scaled: list[Bool] = []
        uses: list[Theorem] = []
        made_by: list[Theorem] = []
        scaled_by: list[Theorem] = []
        for d, owner in CASES:
            f = literal(first_of, owner)
            known: dict[int, Theorem] = {}

            def part(e: int, c: Coefficients, owner: int = owner, known: Any = known) -> Any:
                said = self.unfolded(e, owner, c)
                known[said.goal.arg(0).get_id()] = said
                return said.goal.arg(0)

            def of(c: Coefficients, part: Any = part) -> Any:
                return lambda e: e if e is lines.ANYONE else part(e, c)

            at = self.viewed(self.views_at(owner, owner))
            whole = self.of_all_is.at(f=f, **at)
            new = self.unfolded(d, owner, self.new(move, f))
            value = move.value(d, owner, of(l.x), of(l.z), whole.goal.arg(0), ZERO, l.scaled_by)
            goal.append(self.there(d, owner, self.after(move, f)) == value)
            if (d, owner) in ((0, 0), (1, 1)):
                uses += [l.after_is[move.name, True].at(op=o, f=f) for o in COUNT]
            if z3.eq(new.goal.arg(0), value):
                continue
            read = [said for said in (*known.values(), whole) if occurs(said.goal.arg(0), value)]
            if move.name == "scale":  # a product of its own name, of what the part unfolds to
                before, terms = read[0].goal.children()
                times = [self.times_is.at(multiple=l.scaled_by, multiplied=v) for v in (terms, before)]
                scaled.append(new.goal.arg(0) == times[0].goal.arg(0))
                scaled_by += [new, times[0]]
                uses.append(times[1])
                made.append(new.goal.arg(0) == times[1].goal.arg(0))
                made_by += read
            else:
                made.append(new.goal.arg(0) == value)
                made_by += [new, *read]
        if scaled:
            made_by.append(self.proved("parts_scaled", scaled, scaled_by))
        if made:
            uses.append(self.proved(f"part_made_by_{move.name}", made, made_by))
        return self.proved(f"algebra_of_{move.name}", goal, uses)

    # ------------------------------------------------------- the sum over devices
    def sums_of_parts(self) -> None:
        """The parts that all devices have of a value add up to what a form says of the sum."""
        l, k, i, s, j = self.l, self.k, self.l.i, self.l.s, self.l.j
        owner, own = l.owner(j), self.views[0]
        f = first_of(owner)
        (c, v), more = self.factors, k.reals("further")
        times, times_is = self.times, self.times_is
        more_of_it = k.prove(
            "multiples_of_a_sum",
            times(c, v + more) == times(c, v) + times(c, more),
            uses=[times_is, times_is.at(multiplied=more), times_is.at(multiplied=v + more)],
        )
        once_more = k.prove(
            "one_multiple_more",
            times(c + 1, v) == times(c, v) + v,
            uses=[times_is, times_is.at(multiple=c + 1)],
        )
        params = [l.f, *l.x, *self.views[1:]]
        shares: dict[Who, Any] = {}
        shares_are: dict[Who, Theorem] = {}
        for who, name in SHARES.items():
            body = {g: self._share(masked(l.x, g), who) for g in FIRSTS}
            shares[who], shares_are[who] = k.define(f"share_of_{name}", params, either(l.f, body))
        splits: list[Bool] = []
        uses: list[Theorem] = []
        for d, o in CASES:
            at = self.viewed(self.views_at(d, o))
            g = literal(first_of, o)
            said = [self.unfolded(d, o, l.x), times_is.at(multiple=l.x[0], multiplied=at[str(own)])]
            said += [
                shares_are[who].at(f=g, **at)
                for who in SHARES
                if who == ALL or (who == OWNER and d == o) or (who == FIRST and d == 0 != o)
            ]
            part, *terms = (each.goal.arg(0) for each in said)
            splits.append(part == sum(terms[1:], terms[0]))
            uses += said
        split = self.proved("a_part_is_shares", splits, uses)
        x, views = l.x, l.views(s, i, j)
        of = [shares[who](f, *x, *views[1:]) for who in (ALL, OWNER, FIRST)]
        self.parts = parts = total(k, "parts", [*x, s, j], i, self.at_device(i, owner, x, views))
        first = z3.And(f == FIRST, i > 0)
        here = self.viewed(views)
        before = k.induct(
            "parts_of_devices",
            i,
            parts.upto(i)
            == times(x[0], l.all(s, j, i))
            + times(z3.ToReal(i), of[0])
            + z3.If(owner < i, of[1], ZERO)
            + z3.If(first, of[2], ZERO),
            base=[
                parts.start,
                l.all.start,
                l.owned,
                times_is.at(multiple=x[0], multiplied=ZERO),
                times_is.at(multiple=ZERO, multiplied=of[0]),
            ],
            step=[
                parts.next,
                l.all.next,
                split.at(**here),
                more_of_it.at(multiple=x[0], multiplied=l.all(s, j, i), further=views[0]),
                once_more.at(multiple=z3.ToReal(i), multiplied=of[0]),
            ],
        )
        in_shares: list[Bool] = []
        uses = []
        for o in FIRSTS:
            at = self.viewed(self.views_at(o, o))
            g = literal(first_of, o)
            said = [
                times_is.at(multiple=x[0], multiplied=self.views[1]),
                times_is.at(multiple=l.size, multiplied=shares[ALL](g, *x, *self.views_at(o, o)[1:])),
                *(shares_are[who].at(f=g, **at) for who in ([OWNER] if o == 0 else [OWNER, FIRST])),
                self.of_all_is.at(f=g, **at),
            ]
            even = shares_are[ALL].at(f=g, **at)
            first, *others, last = (each.goal.arg(0) for each in said)
            in_shares.append(sum(others, first) == last)
            uses += [*said, even]
        added = self.proved("shares_make_the_sum", in_shares, uses)
        self.whole_is = k.prove(
            "parts_make_the_sum",
            parts(*x, s, j, l.n) == self.of_all(f, *x, *views[1:]),
            (),
            [before.at(i=l.n), added.at(**here), l.owned],
        )

    def _share(self, x: Coefficients, who: Any) -> Any:
        _, whole, owners, firsts = self.views
        read = {ALL: whole, OWNER: owners, FIRST: firsts}
        return sum((c * read[op.of] for op, c in zip(OPERATORS, x, strict=True) if op.to == who), ZERO)

    # ------------------------------------------------------------ forms of places
    def coefficients_after(self, move: Line) -> Theorem:
        """The checker's coefficients after a line are what the operators make of those before."""
        l = self.l
        x, z = (l.form(l.t, place(l.t), l.s, l.f) for place in (l.source, l.target))
        after = l.after[move.name, True]
        goal = [
            c == after(o, l.f, l.factor(l.t), *x, *z)
            for o, c in enumerate(l.form(l.t + 1, l.target(l.t), l.s, l.f))
        ]
        given = [l.t >= 0, l.kind(l.t) == KINDS[move.name]]
        uses = [l.coefficient_next.at(op=o, b=l.target(l.t)) for o in COUNT]
        return self.k.prove(f"coefficients_of_{move.name}", z3.And(*goal), given, uses)

    def applied(self, algebra: Theorem) -> Theorem:
        """The law of a line for the coefficients, values and devices it meets."""
        l, f = self.l, first_of(self.l.owner(self.l.j))
        x, z = (l.form(l.t, place(l.t), l.s, f) for place in (l.source, l.target))
        names = map(str, (*l.x, *l.z, *self.views, l.scaled_by))
        return algebra.at(
            **dict(zip(names, (*x, *z, *l.views(l.s, l.d, l.j), l.factor(l.t)), strict=True))
        )

    def read_by(self, move: Line, x: Callable[[Any], Any], z: Callable[[Any], Any], whole: Any) -> Any:
        """What device d has after a line, where the rest is not."""
        l = self.l
        return move.value(l.d, l.owner(l.j), x, z, whole, ZERO, l.factor(l.t))

    def law(self, move: Line) -> Theorem:
        """What the target's form stands for after a line is what the line makes of what forms did."""
        l, k, t, s, d, j = self.l, self.k, self.l.t, self.l.s, self.l.d, self.l.j
        source, target = l.source(t), l.target(t)
        coefficients = self.coefficients_after(move)
        algebra = self.algebra(move)
        terms: dict[tuple[int, int], Theorem] = {}
        sums: list[Theorem] = []

        def of(b: Any) -> Callable[[Any], Any]:
            def at(e: Any) -> Any:
                if e is not lines.ANYONE:
                    e = z3.IntVal(e) if isinstance(e, int) else e
                    terms[b.get_id(), e.get_id()] = self.term_is.at(b=b, d=e)
                    sums.extend([self.stands_for.start.at(b=b, d=e), self.stands_for.next.at(b=b, d=e)])
                    return self.term(t, b, s, e, j)
                return e

            return at

        def total_of(b: Any) -> Callable[[Any], Any]:
            return lambda e: e if e is lines.ANYONE else self.stands_for(t, b, e, j, s)

        sums_up = "reduce" in move.name
        column = self.column(t, source, j, s, l.n) if sums_up else None
        value = self.read_by(move, of(source), of(target), column)
        uses = [
            self.term_is.at(t=t + 1, b=target),
            coefficients.at(f=first_of(l.owner(j))),
            self.applied(algebra),
        ]
        if sums_up:
            uses.append(self.columns_are.at(b=source))
        given = [t >= 0, l.kind(t) == KINDS[move.name]]
        term = k.prove(
            f"a_term_of_{move.name}",
            self.term(t + 1, target, s, d, j) == value,
            given,
            [*uses, *terms.values()],
        )
        after = {"t": t + 1, "b": target}
        columns = self.columns(t, source, j, l.n, s) if sums_up else None
        if sums_up:
            sums += [self.columns.start.at(i=l.n, b=source), self.columns.next.at(i=l.n, b=source)]
        return k.induct(
            f"law_of_{move.name}",
            s,
            self.stands_for(t + 1, target, d, j, s)
            == self.read_by(move, total_of(source), total_of(target), columns),
            given=given,
            base=[self.stands_for.start.at(**after), *sums[::2]],
            step=[self.stands_for.next.at(**after), *sums[1::2], term],
        )

    def sums_of_forms(self) -> None:
        """Summing what forms stand for over devices, and over original values, in either order."""
        l, k, t, b, s, i, j = self.l, self.k, self.l.t, self.l.b, self.l.s, self.l.i, self.l.j
        row, self.rows, self.column, self.columns, exchanged = of_sums(
            k, "forms", i, s, self.term(t, b, s, i, j), [t, b, j]
        )
        f = first_of(l.owner(j))
        form = l.form(t, b, s, f)
        names = dict(zip(map(str, l.x), form, strict=True))
        same = k.induct(
            "columns_are_parts",
            i,
            self.column(t, b, j, s, i) == self.parts(*form, s, j, i),
            base=[self.column.start, self.parts.start.at(**names)],
            step=[self.column.next, self.parts.next.at(**names), self.term_is.at(d=i)],
        )
        views = l.views(s, i, j)
        self.columns_are = k.prove(
            "a_column_is_the_sum",
            self.column(t, b, j, s, l.n) == self.of_all(f, *form, *views[1:]),
            (),
            [same.at(i=l.n), self.whole_is.at(**names), l.owned],
        )
        rows_are = k.induct(
            "rows_are_forms",
            s,
            row(t, b, j, i, s) == self.stands_for(t, b, i, j, s),
            base=[row.start, self.stands_for.start.at(d=i)],
            step=[row.next, self.stands_for.next.at(d=i)],
        )
        self.rows_are, self.exchanged = rows_are, exchanged
