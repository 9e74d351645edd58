"""What a line of a program does along one axis, and that it is right: one theorem for each rule.

Along an axis of n devices a value lies whole (each device's is the value), sharded (on a device the
elements that it owns are the value's; the others may be anything), or partial (the value is the sum of
the devices'). Theorems are for all functions, owners and sizes. Indices that have the same part in a
contraction are one index here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proofs.models.context import shares_merge_turn_by_turn
from proofs.tools.sums import Sum, closed_form, equal_terms, of_sums, partition, total
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And, ArraySort, BoolVal, If, Implies, IntSort, Or, RealSort, RealVal
from spec.devices.layouts import Layout
from spec.devices.operators import owners, sliced, summed

INT, REAL = IntSort(), RealSort()
ROW = ArraySort(INT, REAL)
AXIS = "axis"
R, S, P = Layout
CONTRACT, ADD, FUNCTION, RENAME = "contract", "add", "function", "rename"
LEFT, RIGHT, BOTH, SUMMED = "left", "right", "both", "summed"  # what has an index that is kept, or not
ROWS, NAMED, NO = "rows", "named", ""  # needed whole; given another name; nothing is cut
MERGE = "merge"  # a softmax of each turn's keys alone, what is linear in it, and their merge


@dataclass(frozen=True)
class Rule:
    """What a line does along one axis: which part the cut index has in it, and how values lie."""

    does: str
    cut: str
    lies: tuple[Layout, ...]
    result: Layout

    def __str__(self) -> str:
        lies = "_".join(lie.value.lower() for lie in self.lies)
        cut = f"_cut_{self.cut}" if self.cut else ""
        return f"{self.does}{cut}_of_{lies}_is_{self.result.value.lower()}"


MERGED = Rule(MERGE, ROWS, (S,), R)


@dataclass(frozen=True)
class Held:
    """A value, and what each device has of it; of a partial value the sum over devices."""

    whole: Any
    local: Any
    lies_so: list[Theorem]
    terms: Sum | None = None


def _held(
    k: Kernel, name: str, lie: Layout, device: Any, at: Sequence[Any], mine: Any, sort: Any = REAL
) -> Held:
    """A value of any elements that lies so; `mine`: the device owns the element."""
    indices = [INT for _ in at]
    local = k.function(f"{name}_here", INT, *indices, sort)(device, *at)
    if lie is P:
        terms = total(k, f"{name}_terms", at, device, local)
        return Held(terms.upto, local, [], terms)
    whole = k.function(name, *indices, sort)(*at)
    row, same = [], local == whole
    if sort == ROW:
        row = [k.integers("place")]
        same = local[row[0]] == whole[row[0]]
    fact = k.suppose(f"{name}_lies_so", [device, *at, *row], Implies(mine, same) if lie is S else same)
    return Held(whole, local, [fact])


def proved(k: Kernel, rule: Rule) -> Theorem:
    """The theorem that a rule is right. Raises KernelError if there is none."""
    prover = {CONTRACT: _contracted, ADD: _added, FUNCTION: _function, RENAME: _renamed, MERGE: _merged}
    return prover.get(rule.does, _moved)(k, rule)


def _require(k: Kernel, rule: Rule, *right: bool) -> None:
    if not all(right):
        raise KernelError(f"{k.claim}: no theorem says that {rule}")


def _contracted(k: Kernel, rule: Rule) -> Theorem:
    if P in rule.lies:
        return _contracted_terms(k, rule)
    if rule.cut == SUMMED:
        return _contracted_slices(k, rule)
    _require(k, rule, rule.result is (R if rule.cut == NO else S), rule.cut != ROWS)
    device, left, right, both, i = k.integers("device left right both summed")
    given, mine = [], BoolVal(True)
    if rule.cut:
        at = {LEFT: left, RIGHT: right, BOTH: both}[rule.cut]
        mine = k.function("owner", INT, INT)(at) == device
        given = [mine]
    x = _held(k, "x", rule.lies[0], device, [left, both, i], mine)
    y = _held(k, "y", rule.lies[1], device, [right, both, i], mine)
    here = total(k, "here", [device, left, right, both], i, x.local * y.local)
    whole = total(k, "whole", [left, right, both], i, x.whole * y.whole)
    return k.induct(
        "result_lies_so",
        i,
        here.upto(i) == whole.upto(i),
        given=given,
        base=[here.start, whole.start],
        step=[here.next, whole.next, *x.lies_so, *y.lies_so],
    )


def _contracted_slices(k: Kernel, rule: Rule) -> Theorem:
    """Claim R1, of operands that lie so: the devices' sums over their own slices add up."""
    _require(k, rule, rule.result is P, S in rule.lies)
    device, left, right, both, i = k.integers("device left right both summed")
    n, size, owner = k.fixed("n", INT), k.fixed("size", INT), k.function("owner", INT, INT)
    owned = k.suppose("each_has_an_owner", [i], And(owner(i) >= 0, owner(i) < n))
    some = k.suppose("there_are_some", [], And(n >= 0, size >= 0))
    mine = owner(i) == device
    x = _held(k, "x", rule.lies[0], device, [left, both, i], mine)
    y = _held(k, "y", rule.lies[1], device, [right, both, i], mine)
    others = [left, right, both]
    term = If(mine, x.local * y.local, RealVal(0))
    here = total(k, "here", [device, *others], i, term)
    share, shares, whole, once = partition(
        k, "slices", device, i, owner, owned, n, x.whole * y.whole, others
    )
    same = k.induct(
        "own_slices_are_the_values",
        i,
        here.upto(i) == share(*others, device, i),
        base=[here.start, share.start],
        step=[here.next, share.next, *x.lies_so, *y.lies_so],
    )
    terms = total(k, "terms", [*others, i], device, here.upto(i))
    together = equal_terms(k, "so_are_their_sums", terms, shares, same, given=[i >= 0])
    return k.prove(
        "result_lies_so",
        terms(*others, size, n) == whole(*others, size),
        uses=[together.at(device=n, summed=size), once.at(summed=size), some],
    )


def _contracted_terms(k: Kernel, rule: Rule) -> Theorem:
    """Claim R3, of one operand in terms and the other whole on every device."""
    _require(k, rule, rule.result is P, R in rule.lies, rule.cut == NO)
    device, left, right, both, i = k.integers("device left right both summed")
    n, size = k.fixed("n", INT), k.fixed("size", INT)
    some = k.suppose("there_are_some", [], And(n >= 0, size >= 0))
    x = _held(k, "x", rule.lies[0], device, [left, both, i], None)
    y = _held(k, "y", rule.lies[1], device, [right, both, i], None)
    others = [left, right, both]
    _, here, column, columns, exchanged = of_sums(k, "here", device, i, x.local * y.local, others)
    partial, copy = (x, y) if x.terms else (y, x)
    value: Callable[[Any], Any] = lambda devices: partial.whole(devices) * copy.whole  # noqa: E731
    terms = partial.terms
    assert terms is not None
    factor = closed_form(
        k,
        "a_factor_passes_a_sum",
        column,
        value(device),
        base=[terms.start],
        uses=[terms.next, *copy.lies_so],
    )
    whole = total(k, "whole", others, i, value(n))
    same = k.induct(
        "so_do_sums",
        i,
        columns(*others, n, i) == whole.upto(i),
        base=[columns.start.at(device=n), whole.start],
        step=[columns.next.at(device=n), whole.next, factor.at(device=n), some],
    )
    return k.prove(
        "result_lies_so",
        here(*others, size, n) == whole(*others, size),
        uses=[exchanged.at(device=n, summed=size), same.at(summed=size), some],
    )


def _added(k: Kernel, rule: Rule) -> Theorem:
    _require(k, rule, {*rule.lies} == {rule.result}, (rule.cut == NO) == (rule.result is not S))
    device, at = k.integers("device element")
    mine = k.function("owner", INT, INT)(at) == device if rule.result is S else None
    x, y = (_held(k, name, rule.result, device, [at], mine) for name in "xy")
    if x.terms is None or y.terms is None:
        given = [] if mine is None else [mine]
        same = x.local + y.local == x.whole + y.whole
        return k.prove("result_lies_so", same, given, [*x.lies_so, *y.lies_so])
    here = total(k, "here", [at], device, x.local + y.local)
    of_both = x.whole(device) + y.whole(device)
    base, uses = [x.terms.start, y.terms.start], [x.terms.next, y.terms.next]
    return closed_form(k, "result_lies_so", here, of_both, base=base, uses=uses)


def _function(k: Kernel, rule: Rule) -> Theorem:
    """Any function of a whole row of elements, or of one; or its derivative there."""
    (lie,) = rule.lies
    _require(k, rule, lie is rule.result is not P, rule.cut == (BOTH if lie is S else NO))
    device, at = k.integers("device row")
    mine = k.function("owner", INT, INT)(at) == device if lie is S else None
    given = [] if mine is None else [mine]
    x = _held(k, "x", lie, device, [at], mine, ROW)
    place, function = k.integers("element"), k.function("function", ROW, INT, REAL)
    uses = [fact.at(place=place) for fact in x.lies_so]
    alike = k.prove("elements_are_alike", x.local[place] == x.whole[place], given, uses)
    rows = k.extend("rows_are_alike", alike, place)
    return k.prove(
        "result_lies_so", function(x.local, place) == function(x.whole, place), given, [rows]
    )


def _merged(k: Kernel, rule: Rule) -> Theorem:
    """Claim F2, turn by turn."""
    _require(k, rule, rule == MERGED)
    return shares_merge_turn_by_turn(k)


def _renamed(k: Kernel, rule: Rule) -> Theorem:
    """Any linear map between elements of one owner: from tokens to slots and back."""
    _require(k, rule, rule.lies == (S,), rule.result is S)
    device, old, new = k.integers("device old new")
    owner, of_new = k.function("owner", INT, INT), k.function("owner_of_new", INT, INT)
    takes = k.function("takes", INT, INT, REAL)
    same_owner = Or(takes(new, old) == 0, of_new(new) == owner(old))
    kept = k.suppose("elements_keep_their_owner", [new, old], same_owner)
    x = _held(k, "x", S, device, [old], owner(old) == device)
    mine = If(owner(old) == device, takes(new, old) * x.local, RealVal(0))
    here = total(k, "here", [device, new], old, mine)
    whole = total(k, "whole", [new], old, takes(new, old) * x.whole)
    return k.induct(
        "result_lies_so",
        old,
        here.upto(old) == whole.upto(old),
        given=[of_new(new) == device],
        base=[here.start, whole.start],
        step=[here.next, whole.next, kept, *x.lies_so],
    )


def _moved(k: Kernel, rule: Rule) -> Theorem:
    """A collective's meaning: sum, or take the owner's; keep all, or one's own by another index."""
    (before,) = rule.lies
    device, i, j = k.integers("device i j")
    n = k.fixed("n", INT)
    owner, to = (k.function(name, INT, INT)(at) for name, at in (("owner", i), ("to", j)))
    x = _held(k, "x", before, device, [i, j], owner == device)
    function = x.local.of
    value: Callable[[Any], Any] = lambda at: function(at[AXIS], i, j)  # noqa: E731
    whole, uses = x.whole, x.lies_so
    if x.terms is not None:
        made: list[Sum] = []

        def add(_: Any, terms: Callable[[Any], Any]) -> Any:
            made.append(total(k, "received", [i, j], device, terms(device)))
            return made[0].upto(n)

        value = summed(value, AXIS, n, add)
        everywhere = value({AXIS: device})
        value, whole = (lambda _: everywhere), x.whole(n)
        some = k.suppose("there_are_some", [], n >= 0)
        uses = [equal_terms(k, "what_is_summed", made[0], x.terms).at(device=n), some]
    elif before is S:
        value = owners(value, AXIS, owner)
        uses = [fact.at(device=owner) for fact in uses]
    own = rule.result is S
    after = sliced(value, AXIS, to, If) if own else value
    given = [to == device] if own else []
    return k.prove("result_lies_so", after({AXIS: device}) == whole, given, uses)


def contractions_have_transposes(k: Kernel) -> Theorem:
    """A cotangent paired with a contraction is the operand paired with the backward contraction.

    sum c(l,r,b) sum x(l,b,i) y(r,b,i) = sum x(l,b,i) sum c(l,r,b) y(r,b,i), for any sizes.
    """
    left, right, both, i = k.integers("left right both summed")
    c = k.function("c", INT, INT, INT, REAL)(left, right, both)
    x, y = (k.function(name, INT, INT, INT, REAL) for name in "xy")
    x, y = x(left, both, i), y(right, both, i)
    each = [left, both]
    by_right, rows, by_summed, columns, exchanged = of_sums(k, "pairs", right, i, c * x * y, each)
    made = total(k, "made", [left, right, both], i, x * y)
    back = total(k, "back", [left, both, i], right, c * y)
    of_made = total(k, "of_made", [*each, i], right, c * made.upto(i))
    of_back = total(k, "of_back", [*each, right], i, x * back.upto(right))
    factors = [
        closed_form(k, f"{name}_factor", s, factor * inner, base=[start], uses=[then])
        for name, s, factor, inner, start, then in (
            ("cotangents", by_right, c, made.upto(i), made.start, made.next),
            ("operands", by_summed, x, back.upto(right), back.start, back.next),
        )
    ]
    sides = [
        equal_terms(k, "of_what_is_made", of_made, rows, factors[0], given=[i >= 0]),
        equal_terms(k, "of_what_is_pulled_back", of_back, columns, factors[1], given=[right >= 0]),
    ]
    one = k.prove(
        "for_each_kept_index",
        of_made(*each, i, right) == of_back(*each, right, i),
        given=[i >= 0, right >= 0],
        uses=[*sides, exchanged],
    )
    sizes = [i >= 0, right >= 0]
    for index, params in ((left, [right, both, i]), (both, [left, right, i])):
        made_side, back_side = (
            total(k, f"{side}_over_{index}", params, index, term)
            for side, term in zip(("made", "back"), one.goal.args, strict=True)
        )
        one = equal_terms(k, f"transposed_over_{index}", made_side, back_side, one, given=sizes)
        sizes.append(index >= 0)
    return one
