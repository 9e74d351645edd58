"""R1-R6: what lies how after an operation, and how the backward pass sees it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from proofs.claim import claim
from proofs.language.type_system import AXIS, OPERATORS, Axis, name, one_axis
from proofs.tools.sums import Sum, closed_form, equal_terms, of_sums, partition, total
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And, If, IntSort, RealSort, RealVal
from spec.devices.layouts import PARTIAL, WHOLE, Contraction, Lie, along, contract, cotangent
from spec.devices.operators import ALL, IDENTITY, Operator, PerDevice, Who, transpose

INT, REAL = IntSort(), RealSort()
PRODUCT = Contraction(("r", "i"), ("i", "c"), ("r", "c"))


def _says(k: Kernel, contraction: Contraction, left: Lie, right: Lie, result: Lie) -> None:
    """The rule must say what is proved."""
    if contract(contraction, left, right) != result:
        raise KernelError(f"{k.claim}: the layout rule does not say {result} of {contraction}")


def _summed_over_cells(k: Kernel, contraction: Contraction, index: str) -> Theorem:
    """The devices' sums over their own slices of a summed index add up to the whole sum.

    However the index is cut, each value of it on one of n devices, for any operands and sizes.
    """
    _says(k, contraction, along(index), along(index), PARTIAL)
    if index in contraction.out:
        raise KernelError(f"{k.claim}: {index} is not summed over")
    device, item = k.integers("device item")
    n, size = k.fixed("n", INT), k.fixed("size", INT)
    owner = k.function("owner", INT, INT)
    at = {
        i: item if i == index else k.fixed(f"at_{i}", INT) for i in contraction.left + contraction.right
    }
    left, right = (
        k.function(side, *(INT for _ in indices), REAL)
        for side, indices in (("left", contraction.left), ("right", contraction.right))
    )
    term = left(*(at[i] for i in contraction.left)) * right(*(at[i] for i in contraction.right))
    owned = k.suppose("each_has_an_owner", [item], And(owner(item) >= 0, owner(item) < n))
    some = k.suppose("there_are_some", [], size >= 1)
    _, parts, whole, one = partition(k, "cells", device, item, owner, owned, n, term)
    return k.prove(
        "terms_add_up_to_the_contraction",
        parts(size, n) == whole(size),
        uses=[one.at(item=size), some],
    )


@claim("R1")
def contracted_index_leaves_a_partial_sum(k: Kernel) -> tuple[Theorem, ...]:
    """A contraction over a partitioned index leaves each device a term of the result. (Claim R1)"""
    return (_summed_over_cells(k, PRODUCT, "i"),)


@claim("R2")
def kept_index_leaves_a_slice(k: Kernel) -> tuple[Theorem, ...]:
    """A contraction that keeps a partitioned index leaves each device its slice. (Claim R2)

    What a device does not have counts as nothing; on its own slice it has the whole result.
    """
    _says(k, PRODUCT, along("r"), WHOLE, along("r"))
    _says(k, PRODUCT, WHOLE, along("c"), along("c"))
    d, i, r, c = k.integers("d i r c")
    owner = k.function("owner", INT, INT)
    left, right = (k.function(side, INT, INT, REAL) for side in ("left", "right"))
    full = total(k, "full", [r, c], i, left(r, i) * right(i, c))
    found = []
    for side, kept in (("left", r), ("right", c)):
        mine = owner(kept) == d
        zero = RealVal(0)
        own_left = If(mine, left(r, i), zero) if side == "left" else left(r, i)
        own_right = If(mine, right(i, c), zero) if side == "right" else right(i, c)
        local = total(k, f"of_own_{side}", [d, r, c], i, own_left * own_right)
        found.append(
            closed_form(
                k,
                f"slices_of_{side}_give_slices",
                local,
                If(mine, full.upto(i), zero),
                base=[full.start],
                uses=[full.next],
            )
        )
    return tuple(found)


@claim("R3")
def linear_maps_keep_partial_sums(k: Kernel) -> tuple[Theorem, ...]:
    """A linear map of a partial value is a partial value of the map's result. (Claim R3)

    A contraction with a whole operand, and elementwise sums and multiples.
    """
    _says(k, PRODUCT, PARTIAL, WHOLE, PARTIAL)
    _says(k, PRODUCT, WHOLE, PARTIAL, PARTIAL)
    d, i = k.integers("d i")
    n, size = k.fixed("n", INT), k.fixed("size", INT)
    sizes = k.suppose("sizes", [], And(n >= 1, size >= 1))
    x, y = (k.function(v, INT, INT, REAL) for v in ("x", "y"))
    w = k.function("w", INT, REAL)
    _, rows, by_device, columns, exchanged = of_sums(k, "mapped", d, i, x(d, i) * w(i), [])
    value = total(k, "value", [i], d, x(d, i))  # the value itself: the sum of the devices' terms
    mapped = total(k, "map_of_value", [], i, value(i, n) * w(i))
    scaled = closed_form(
        k,
        "a_factor_passes_a_sum",
        by_device,
        value(i, d) * w(i),
        base=[value.start],
        uses=[value.next],
    )
    same = equal_terms(
        k, "maps_of_terms_add_up", mapped, _UpTo(columns, n), uses=[scaled.at(d=n), sizes]
    )
    contraction = k.prove(
        "a_linear_map_of_terms_is_terms_of_the_map",
        rows(size, n) == mapped(size),
        uses=[exchanged.at(d=n, i=size), same.at(i=size), sizes],
    )
    a = k.fixed("a", REAL)
    of_x, of_y = total(k, "of_x", [i], d, x(d, i)), total(k, "of_y", [i], d, y(d, i))
    both = total(k, "of_both", [i], d, a * x(d, i) + y(d, i))
    elementwise = closed_form(
        k,
        "sums_and_multiples_of_terms",
        both,
        a * of_x.upto(d) + of_y.upto(d),
        base=[of_x.start, of_y.start],
        uses=[of_x.next, of_y.next],
    )
    return contraction, elementwise


class _UpTo:
    """A sum of sums, whose first bound is fixed."""

    def __init__(self, columns: Sum, n: Any) -> None:
        self.index = columns.index
        self.start = columns.start.at(d=n)
        self.next = columns.next.at(d=n)
        self.upto: Callable[[Any], Any] = lambda bound: columns(n, bound)


@claim("R4")
def nonlinear_maps_of_partial_sums_are_wrong(k: Kernel) -> tuple[Theorem, ...]:
    """A function of terms is terms of the function; a product of terms is a term of the product.

    Refuted by two devices: squares, rectified values, and products of two partial values. (Claim R4)
    """

    def positive(x: Any) -> Any:
        return max(x, Fraction(0)) if isinstance(x, Fraction) else If(x > 0, x, RealVal(0))

    def square(x0: Any, x1: Any) -> Any:
        return (x0 + x1) * (x0 + x1) == x0 * x0 + x1 * x1

    def rectified(x0: Any, x1: Any) -> Any:
        return positive(x0 + x1) == positive(x0) + positive(x1)

    def product(x0: Any, x1: Any, y0: Any, y1: Any) -> Any:
        return (x0 + x1) * (y0 + y1) == x0 * y0 + x1 * y1

    def refuted(words: str, unknowns: str, claim: Callable[..., Any]) -> Theorem:
        part = k.part(words)
        terms = part.reals(unknowns)

        def replay(**values: Fraction) -> bool:
            return bool(claim(*(values[u] for u in unknowns.split())))

        return part.refute(words, claim(*terms), terms, replay)

    return (
        refuted("squares_of_terms", "x0 x1", square),
        refuted("rectified_terms", "x0 x1", rectified),
        refuted("products_of_terms", "x0 x1 y0 y1", product),
    )


@claim("R5")
def gradients_lie_dually(k: Kernel) -> tuple[Theorem, ...]:
    """The gradient of a copy is a term, that of a term a copy; collectives' transposes are collectives.

    The pairing of cotangents and values is the sum over devices of their products: what the loss
    changes by. (Claim R5)
    """
    if (cotangent(WHOLE), cotangent(PARTIAL), cotangent(along("i"))) != (PARTIAL, WHOLE, along("i")):
        raise KernelError(f"{k.claim}: the cotangents are others")
    return (
        *_duality(k.part("layouts")),
        *(_transposed(k.part(name(op)), op) for op in OPERATORS),
    )


def _duality(k: Kernel) -> tuple[Theorem, Theorem]:
    d = k.integers("d")
    c, x = (k.function(v, INT, REAL) for v in ("c", "x"))
    copy = k.fixed("copy", REAL)
    terms, values = total(k, "terms", [], d, c(d)), total(k, "values", [], d, x(d))
    of_copies = total(k, "of_copies", [], d, c(d) * copy)
    of_terms = total(k, "of_terms", [], d, copy * x(d))
    return (
        closed_form(
            k,
            "gradients_of_copies_add_up",
            of_copies,
            terms.upto(d) * copy,
            base=[terms.start],
            uses=[terms.next],
        ),
        closed_form(
            k,
            "gradients_of_terms_are_copies",
            of_terms,
            copy * values.upto(d),
            base=[values.start],
            uses=[values.next],
        ),
    )


def _transposed(k: Kernel, operator: Operator) -> Theorem:
    """The pairing with what an operator makes of a value is that of its transpose with the value."""
    axis, d = one_axis(k), k.integers("d")
    c, x = (k.function(v, INT, REAL) for v in ("c", "x"))
    of_x, of_c = (lambda v, f=f: f(v[AXIS]) for f in (x, c))
    after = axis.meaning(operator, of_x)
    x_summed = axis.sums[-1] if axis.sums else None
    before = axis.meaning(transpose(operator), of_c)
    c_summed = axis.sums[-1] if operator.to == ALL else None
    forward = total(k, "forward", [], d, c(d) * after({AXIS: d}))
    backward = total(k, "backward", [], d, before({AXIS: d}) * x(d))
    if operator == IDENTITY:
        return equal_terms(k, "transposed", forward, backward)
    facts = [
        _product_of_sums(k, axis, "forward_pairing", forward, operator.to, c, c_summed, after),
        _product_of_sums(k, axis, "backward_pairing", backward, operator.of, x, x_summed, before),
    ]
    sizes = [axis.sizes] if ALL in operator else []
    return k.prove("transposed", forward(axis.n) == backward(axis.n), uses=[*facts, *sizes])


def _product_of_sums(
    k: Kernel,
    axis: Axis,
    words: str,
    pairing: Sum,
    who: Who,
    own: Any,
    summed: Sum | None,
    made: PerDevice,
) -> Theorem:
    """A pairing with what is the same on devices `who`, and nothing elsewhere, is a product."""
    d = pairing.index
    if summed is not None:
        value = summed(d) * made({AXIS: axis.owner})
        steps = [summed.next.at(**{str(summed.index): d})]
        return closed_form(k, words, pairing, value, base=[summed.start], uses=steps).at(d=axis.n)
    place = axis.place(who)
    value = If(place < d, own(place) * made({AXIS: place}), RealVal(0))
    fact = closed_form(k, words, pairing, value, base=[axis.sizes]).at(d=axis.n)
    return k.prove(
        f"{words}_at_one", pairing(axis.n) == own(place) * made({AXIS: place}), uses=[fact, axis.sizes]
    )


@claim("R6")
def one_theorem_for_gradients_and_activations(k: Kernel) -> tuple[Theorem, ...]:
    """Data parallelism's gradient all-reduce and tensor parallelism's activation all-reduce are R1.

    A weight's gradient sums over the samples, which the batch axis cuts; a row-parallel product sums
    over the features, which the feature axis cuts. (Claim R6)
    """
    gradient = Contraction(("sample", "in"), ("sample", "out"), ("in", "out"))
    activation = Contraction(("sample", "feature"), ("feature", "out"), ("sample", "out"))
    return (
        _summed_over_cells(k.part("weight_gradient"), gradient, "sample"),
        _summed_over_cells(k.part("row_parallel_product"), activation, "feature"),
    )
