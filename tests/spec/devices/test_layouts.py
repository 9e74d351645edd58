"""The layout rule beside real contractions: what each device computes lies as the rule says."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spec.derivation.programs import program_of
from spec.devices.layouts import (
    PARTIAL,
    WHOLE,
    Contraction,
    LayoutError,
    along,
    contract,
    cotangent,
    linear,
    nonlinear,
    normalised,
)
from spec.devices.operators import (
    ALL,
    IDENTITY,
    OWNER,
    SLICE,
    SUM_ALL,
    SUM_SLICE,
    Operator,
    transpose,
)
from spec.models.values import Builder, Operation, Role, Value

LETTERS = "ijkl"


@st.composite
def contractions(draw):
    """Two operands of a few indices; every index is in the result or in both operands."""
    indices = draw(st.lists(st.sampled_from(LETTERS), min_size=1, max_size=4, unique=True))
    left, right, out = [], [], []
    for index in indices:
        where = draw(st.sampled_from(["left", "right", "both", "summed"]))
        left += [index] if where != "right" else []
        right += [index] if where != "left" else []
        out += [index] if where != "summed" else []
    return Contraction(tuple(left), tuple(right), tuple(out))


def lies(indices):
    return st.sampled_from([WHOLE, PARTIAL, *map(along, indices)])


def held(value, indices, lie, devices, rng):
    """What each device has of a value: all of it, its slice (zero elsewhere), or a term."""
    if lie == WHOLE:
        return [value] * devices
    if lie == PARTIAL:
        terms = [rng.integers(-9, 9, value.shape) for _ in range(devices - 1)]
        return [*terms, value - sum(terms)]
    return [np.where(mask(value.shape, indices, lie.index, d), value, 0) for d in range(devices)]


def mask(shape, indices, index, device):
    """Where a device's slice along an index is: every `devices`-th place belongs to one device."""
    grid = np.indices(shape)[indices.index(index)] if shape else np.zeros((), int)
    return grid // 2 == device


def einsum(contraction, left, right):
    c = contraction
    return np.einsum(f"{''.join(c.left)},{''.join(c.right)}->{''.join(c.out)}", left, right)


def backward(contraction):
    """The contractions that give the cotangents of left and of right, in a derived program."""
    left, right = Value("left", contraction.left), Value("right", contraction.right, Role.WEIGHT)
    part = Builder("part", left)
    out = part.contract(left, right, Value("out", contraction.out))
    program = program_of(part.part(out), ())
    lines = [line for line in program.backward if isinstance(line, Operation)]
    made_by = {line.makes: line.contraction for line in lines}
    return made_by[program.returns], made_by[program.gradients[right]]


def lies_so(values, whole, indices, lie):
    if lie == WHOLE:
        return all((v == whole).all() for v in values)
    if lie == PARTIAL:
        return (sum(values) == whole).all()
    masks = [mask(whole.shape, indices, lie.index, d) for d in range(len(values))]
    return all(
        (np.where(m, v, 0) == np.where(m, whole, 0)).all() for m, v in zip(masks, values, strict=True)
    )


@given(st.data())
def test_what_devices_compute_lies_as_the_rule_says(data):
    contraction, devices = data.draw(contractions()), 2
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    left, right = (
        rng.integers(-9, 9, (4,) * len(side)) for side in (contraction.left, contraction.right)
    )
    left_lies, right_lies = data.draw(lies(contraction.left)), data.draw(lies(contraction.right))
    try:
        result = contract(contraction, left_lies, right_lies)
    except LayoutError:
        assume(False)
    ours = zip(
        held(left, contraction.left, left_lies, devices, rng),
        held(right, contraction.right, right_lies, devices, rng),
        strict=True,
    )
    values = [einsum(contraction, *pair) for pair in ours]
    assert lies_so(values, einsum(contraction, left, right), contraction.out, result)


@given(contractions(), st.integers(0, 99))
def test_backward_contractions_are_the_derivatives(contraction, seed):
    rng = np.random.default_rng(seed)
    left, right, change = (
        rng.integers(-9, 9, (3,) * len(side))
        for side in (contraction.left, contraction.right, contraction.left)
    )
    out_bar = rng.integers(-9, 9, (3,) * len(contraction.out))
    to_left, to_right = backward(contraction)
    # a bilinear map's change is its value at the change
    changed = (einsum(contraction, change, right) * out_bar).sum()
    assert changed == (einsum(to_left, out_bar, right) * change).sum()
    other = rng.integers(-9, 9, right.shape)
    changed = (einsum(contraction, left, other) * out_bar).sum()
    assert changed == (einsum(to_right, left, out_bar) * other).sum()


@given(contractions(), st.data())
def test_cotangents_of_a_layout_come_out_of_the_backward_contractions(contraction, data):
    cut = data.draw(st.sampled_from(sorted(set(contraction.left + contraction.right))))
    left, right = (
        along(cut) if cut in side else WHOLE for side in (contraction.left, contraction.right)
    )
    out = contract(contraction, left, right)
    # the loss's gradient of a term is the same on every device: cotangent(P) = R
    given_back = cotangent(out)
    to_left, to_right = backward(contraction)
    assert contract(to_left, given_back, right) == cotangent(left)
    assert contract(to_right, left, given_back) == cotangent(right)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (lambda: contract(Contraction(("i",), ("i",), ()), along("i"), WHOLE), "cut in one operand"),
        (lambda: contract(Contraction(("i",), ("j",), ("i", "j")), along("i"), along("j")), "i and j"),
        (
            lambda: contract(Contraction(("i",), ("i",), ()), PARTIAL, PARTIAL),
            "in terms and what is in terms",
        ),
        (
            lambda: contract(Contraction(("i",), ("i",), ()), PARTIAL, along("i")),
            "in terms and what is cut along i",
        ),
        (lambda: linear(WHOLE, PARTIAL), "what is whole and what is in terms"),
        (lambda: nonlinear(PARTIAL), "not linear"),
        (lambda: normalised(along("h"), "h"), "needed whole"),
        (lambda: normalised(PARTIAL, "h"), "not linear"),
    ],
)
def test_what_is_not_a_term_or_a_slice_is_refused(operation, words):
    with pytest.raises(LayoutError, match=words):
        operation()


def test_linear_operations_keep_every_layout():
    for lie in (WHOLE, PARTIAL, along("s")):
        assert linear(lie, lie) == lie
    assert normalised(along("s"), "h") == along("s")


def test_transposes_of_collectives_are_collectives():
    assert transpose(SUM_ALL) == SUM_ALL  # all_reduce
    assert transpose(OWNER) == SUM_SLICE  # all_gather, reduce_scatter
    assert transpose(SUM_SLICE) == OWNER
    assert transpose(SLICE) == SLICE
    assert transpose(IDENTITY) == IDENTITY
    assert transpose(Operator(ALL, 1)) == Operator(1, ALL)  # broadcast, reduce
