"""A program as a symbol, along one axis: what its lines do, and which of them the checker accepts.

Lines are functions of which nothing is said: what line t does, what it reads, how what it makes lies.
Along an axis of n devices a value lies whole (each device's is the value), cut (of the elements that a
device owns its own are the value's; the others may be anything), or partial (the value is the sum of
the devices'). An element has a coordinate along every index; a value reads those of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proofs.checking.symbols import BOOL, INT, REAL, ZERO, Element, cases
from proofs.language.line_by_line import read_earlier
from proofs.tools.sums import Sum, total
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.terms import FALSE, And, ArraySort, EnumSort, If, Implies, Not, Or
from spec.devices.layouts import Layout
from spec.devices.operators import owners, sliced, summed

ROW = ArraySort(INT, REAL)
LieSort, _lies = EnumSort("Lie", ["Whole", "Cut", "Partial"])
LIES = WHOLE, CUT, PARTIAL = tuple(_lies)
LIE_OF = dict(zip(Layout, LIES, strict=True))
CONTRACT, ADD, FUNCTION, RENAME = "contract", "add", "function", "rename"
COMES_IN, LEAVE = "comes_in", "leave"  # what a program begins with, and what it is to leave
MOVES = {  # from how a value lies, and to how
    "all_reduce": (PARTIAL, WHOLE),
    "reduce_scatter": (PARTIAL, CUT),
    "all_gather": (CUT, WHOLE),
    "slice": (WHOLE, CUT),
    "all_to_all": (CUT, CUT),
}
_names = [CONTRACT, ADD, FUNCTION, RENAME, LEAVE, *MOVES, COMES_IN]
KindSort, _kinds = EnumSort("OperationKind", [name.capitalize() for name in _names])
KINDS = dict(zip(_names, _kinds, strict=True))
READ_TWO = CONTRACT, ADD, FUNCTION
GO_OVER = CONTRACT, FUNCTION  # an index: they sum, or have rows, over it
AXIS = "axis"
At = Callable[[Any, Any], Any]  # of a line's value, and an element


class Made:
    """What lines make of what some device has, or the single device; `params`: line, device, element.

    `has`: which elements of a value it has. A sum over an index is over what it has of both operands.
    """

    def __init__(self, l: ProgramLines, name: str, params: Sequence[Any], at: At, has: Any) -> None:
        self.l, self.at = l, at
        k, t, e, i = l.k, l.t, l.e, l.i
        first, second, there, old = l.first(t), l.second(t), l.within(t, e, i), l.renamed_from(t, e, i)
        product, renamed = at(first, there) * at(second, there), l.takes(t, e, i) * at(first, old)
        both = And(has(first, there), has(second, there))
        self.contracted: Sum = total(k, f"contracted{name}", params, i, If(both, product, ZERO))
        self.renamed: Sum = total(k, f"renamed{name}", params, i, If(has(first, old), renamed, ZERO))
        self.rows, self.reads = [], list[Theorem]()
        for operand, v in (("first", first), ("second", second)):
            row = k.function(f"row_of_{operand}{name}", *(p.sort for p in params), ROW)(*params)
            said = row[i] == at(v, there)
            self.reads.append(k.suppose(f"rows_of_{operand}{name}_are_read", [*params, i], said))
            self.rows.append(row)

    def by_kind(self, moved: dict[str, Any]) -> Any:
        """What a line makes, as its kind says."""
        l, t, e = self.l, self.l.t, self.l.e
        made = {
            CONTRACT: self.contracted.upto(l.size(t)),
            ADD: self.at(l.first(t), e) + self.at(l.second(t), e),
            FUNCTION: l.function(t, *self.rows, e),
            RENAME: self.renamed.upto(l.size(t)),
            LEAVE: self.at(l.first(t), e),
        }
        return cases(l.kind(t), {KINDS[kind]: of for kind, of in (made | moved).items()}, ZERO)


class ProgramLines:
    """The symbols, and what devices and a single device do in each line."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.t, self.d, self.i, self.a = k.integers("line device item index")
        self.e = k.constant("element", Element)
        t, d, i, a, e = self.t, self.d, self.i, self.a, self.e
        self.n, self.kind = k.fixed("n", INT), k.function("kind", INT, KindSort)
        self.first, self.second = (k.function(name, INT, INT) for name in ("first", "second"))
        self.lie, self.cut = k.function("lie", INT, LieSort), k.function("cut", INT, INT)
        self.over, self.size = k.function("over", INT, INT, BOOL), k.function("size", INT, INT)
        self.coordinate = k.function("coordinate", Element, INT, INT)
        self.item_at, self.own = (
            k.function("item_at", INT, INT, INT, INT),
            k.function("own", INT, INT, INT),
        )
        self.within, self.renamed_from = (
            k.function(name, INT, Element, INT, Element) for name in ("within", "renamed_from")
        )
        self.takes = k.function("takes", INT, Element, INT, REAL)
        self.function = k.function("function", INT, ROW, ROW, Element, REAL)
        self.held, self.anything = (
            k.function(name, INT, INT, Element, REAL) for name in ("held", "anything")
        )
        self.whole = k.function("whole", INT, Element, REAL)
        self.some = k.suppose("there_are_items_or_none", [t], self.size(t) >= 0)
        there = If(self.over(t, a), self.item_at(t, i, a), self.coordinate(e, a))
        within = self.coordinate(self.within(t, e, i), a) == there
        self.within_is = k.suppose("lines_read_the_elements_of_their_indices", [t, e, i, a], within)
        owner = self.own(a, i)
        self.owned = k.suppose("each_has_an_owner", [a, i], And(owner >= 0, owner < self.n))
        keeps = self.owner(self.first(t), self.renamed_from(t, e, i)) == self.owner(t, e)
        self.keeps_owner = k.suppose(
            "renamed_elements_keep_their_owner",
            [t, e, i],
            Implies(self.is_a(RENAME), Or(self.takes(t, e, i) == 0, keeps)),
        )
        self.terms = total(k, "terms", [t, e], d, self.held(t, d, e))
        self.here = Made(
            self,
            "_here",
            [t, d, e],
            lambda v, at: self.held(v, d, at),
            lambda v, at: self.has(v, d, at),
        )
        self.alone = Made(self, "", [t, e], self.whole, lambda v, at: And())
        moved = dict.fromkeys(MOVES, self.whole(self.first(t), e))
        self.runs_alone, self.runs = (
            k.suppose(name, variables, Or(self.is_a(COMES_IN), made))
            for name, variables, made in (
                ("one_device_runs_the_lines", [t, e], self.whole(t, e) == self.alone.by_kind(moved)),
                (
                    "devices_run_the_lines",
                    [t, d, e],
                    self.held(t, d, e) == self.here.by_kind(self._moved()),
                ),
            )
        )

        self.reads = self.first(t), self.second(t)
        earlier = read_earlier(self.is_a(COMES_IN), t, self.reads)
        accepted = And(self.accepts(), earlier)
        self.is_accepted, self.accepted_is = k.define("is_accepted", [t], accepted)
        self.known_rules: dict[str, Theorem] = {}

    # ------------------------------------------------------------------ how values lie
    def is_a(self, kind: str) -> Bool:
        made: Bool = self.kind(self.t) == KINDS[kind]
        return made

    def is_device(self, d: Any) -> list[Bool]:
        return [d >= 0, d < self.n]

    def owner(self, v: Any, e: Any) -> Any:
        """The device that owns an element of a value that is cut."""
        return self.own(self.cut(v), self.coordinate(e, self.cut(v)))

    def has(self, v: Any, d: Any, e: Any) -> Bool:
        """Whether a device has an element: if the value is cut, it owns it."""
        return Implies(self.lie(v) == CUT, self.owner(v, e) == d)

    def lies_so(self, v: Any, d: Any, e: Any) -> Bool:
        """Whether a value lies as it is said to, on a device and at an element."""
        same = self.held(v, d, e) == self.whole(v, e)
        is_sum = self.terms(v, e, self.n) == self.whole(v, e)
        return If(self.lie(v) == PARTIAL, is_sum, Implies(self.has(v, d, e), same))

    # ------------------------------------------------------------------- what lines do
    def _moved(self) -> dict[str, Any]:
        """What moves leave on a device, as collectives mean it; where it is no owner, anything."""
        t, d, e, v = self.t, self.d, self.e, self.first(self.t)
        found = {}

        def here(at: Any) -> Any:
            return self.held(v, at[AXIS], e)

        for move, (before, after) in MOVES.items():
            value: Callable[[Any], Any] = here
            if before is PARTIAL:
                value = summed(value, AXIS, self.n, lambda n, _: self.terms(v, e, n))
            elif before is CUT:
                value = owners(value, AXIS, self.owner(v, e))
            if after is CUT:
                value = sliced(value, AXIS, self.owner(t, e), If, lambda _: self.anything(t, d, e))
            found[move] = value({AXIS: d})
        return found

    def accepts(self) -> Bool:
        """What the checker asks of a line."""
        return And(*(Implies(self.is_a(kind), said) for kind, said in self.asked().items()))

    def asked(self) -> dict[str, Bool]:
        """What it asks of a line of each kind: how what it reads and makes lies."""
        t, f, g = self.t, self.first(self.t), self.second(self.t)
        one, other, made = self.lie(f), self.lie(g), self.lie(t)

        def lie(*of: Any) -> Bool:
            return And(*(has == asked for has, asked in zip((one, other, made), of, strict=True)))

        def kept(v: Any) -> Bool:
            return And(self.cut(v) == self.cut(t), Not(self.over(t, self.cut(v))))

        return {
            CONTRACT: Or(
                lie(WHOLE, WHOLE, WHOLE),
                And(lie(CUT, WHOLE, CUT), kept(f)),
                And(lie(WHOLE, CUT, CUT), kept(g)),
                And(lie(CUT, CUT, CUT), kept(f), kept(g)),
                And(lie(CUT, CUT, PARTIAL), self.cut(f) == self.cut(g), self.over(t, self.cut(f))),
                lie(PARTIAL, WHOLE, PARTIAL),
                lie(WHOLE, PARTIAL, PARTIAL),
            ),
            ADD: Or(
                lie(WHOLE, WHOLE, WHOLE),
                lie(PARTIAL, PARTIAL, PARTIAL),
                And(lie(CUT, CUT, CUT), self.cut(f) == self.cut(t), self.cut(g) == self.cut(t)),
            ),
            FUNCTION: Or(lie(WHOLE, WHOLE, WHOLE), And(lie(CUT, CUT, CUT), kept(f), kept(g))),
            RENAME: And(one == CUT, made == CUT),
            LEAVE: And(one == made, Implies(made == CUT, self.cut(f) == self.cut(t))),
            **{move: And(one == lies[0], made == lies[1]) for move, lies in MOVES.items()},
        }

    def rule(self, kind: str, lies: Sequence[Layout], made: Layout, is_over: bool = False) -> Theorem:
        """A line is accepted that reads and makes what lies so, cut along one index if it is cut.

        `is_over`: whether it goes over that. Raises KernelError if the checker's comparisons are not
        right of such lines.
        """
        over = ["over"] * is_over
        name = "_".join([kind, *(lie.value for lie in lies), "to", made.value, *over, "is_accepted"])
        if name not in self.known_rules:
            t, given = self.t, [self.is_a(kind)]
            values = [*zip(self.reads, lies, strict=False), (t, made)]
            if kind != COMES_IN:
                given += [self.lie(value) == LIE_OF[lie] for value, lie in values]
                given.append(read_earlier(FALSE, t, self.reads))
            if kind in (*READ_TWO, LEAVE):
                given += [self.cut(v) == self.a for v, lie in values if LIE_OF[lie] is CUT]
            if kind in GO_OVER and any(LIE_OF[lie] is CUT for lie in lies):
                given.append(self.over(t, self.a) if is_over else Not(self.over(t, self.a)))
            self.known_rules[name] = self.k.prove(name, self.is_accepted(t), given, [self.accepted_is])
        return self.known_rules[name]
