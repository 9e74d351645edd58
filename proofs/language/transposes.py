"""E10: a cotangent paired with a contraction is the operand paired with the backward contraction."""

from __future__ import annotations

from proofs.checking.symbols import INT, REAL
from proofs.tools.sums import closed_form, equal_terms, of_sums, total
from proofs.trusted.kernel import Kernel, Theorem


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
