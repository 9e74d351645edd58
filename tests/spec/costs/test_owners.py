"""Whole weights with one owner each: what devices send is what goes over the ring's links."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from spec.costs.owners import AlikeOwners, Owners

MESHES = st.dictionaries(st.sampled_from("abc"), st.integers(1, 4), min_size=1)
OWN = st.lists(st.integers(1, 20), max_size=3).map(Counter)


@st.composite
def owners(draw):
    """Any weights of the devices of a mesh, some of which have none; some neighbours own alike."""
    mesh, rows = draw(MESHES), []
    left = prod(mesh.values())
    while left:
        rows.append(AlikeOwners(draw(OWN), draw(st.integers(1, left))))
        left -= rows[-1].devices
    return Owners(mesh, tuple(rows), draw(st.booleans()))


def listed(of):
    """What each device owns, in order."""
    return [row.weight_sizes for row in of.rows for _ in range(row.devices)]


def places(of):
    return [dict(zip(of.mesh, at, strict=True)) for at in product(*map(range, of.mesh.values()))]


def at(of, place):
    return Owners(of.mesh, of.rows, of.fills, place)


def along(of):
    """Some axes, within slices along some."""
    for kinds in product(("along", "within", "beside"), repeat=len(of.mesh)):
        axes, within, _ = (
            tuple(axis for axis, kind in zip(of.mesh, kinds, strict=True) if kind == name)
            for name in ("along", "within", "beside")
        )
        yield axes, within


@given(owners())
def test_a_slice_has_the_weights_of_all_who_are_where_its_device_is(of):
    own = [*zip(places(of), listed(of), strict=True)]
    for place, (axes, _) in product(places(of), along(of)):
        slice_ = [sizes for there, sizes in own if all(there[axis] == place[axis] for axis in axes)]
        assert at(of, place).slice_elements(axes) == sum(sum(s.elements()) for s in slice_)


@given(owners())
def test_devices_in_a_row_that_own_alike_are_as_if_each_were_listed(of):
    alone = Owners(of.mesh, tuple(map(AlikeOwners, listed(of))), of.fills)
    assert of.count == alone.count
    for axes, within in along(of):
        assert of.slice_elements(axes) == alone.slice_elements(axes)
        for each in ("sent_to_scatter", "sent_to_gather"):
            assert getattr(of, each)(axes, within) == getattr(alone, each)(axes, within)
        assert of.sent_to_sum(3, within) == alone.sent_to_sum(3, within)


@given(owners())
def test_along_all_axes_each_weight_goes_over_every_link_of_its_ring_but_one(of):
    axes, devices = tuple(of.mesh), len(listed(of))
    here = [at(of, place) for place in places(of)]
    whole = sum(size for own in listed(of) for size in own.elements())
    assert sum(each.sent_to_scatter(axes, ()) for each in here) == (devices - 1) * whole
    empty = sum(not own for own in listed(of)) * of.fills
    assert sum(each.sent_to_gather(axes, ()) for each in here) == (devices - 1) * (whole + empty)


@given(owners())
def test_the_most_is_what_some_device_has_or_sends(of):
    here = [at(of, place) for place in places(of)]
    for axes, within in along(of):
        assert of.slice_elements(axes) == max(each.slice_elements(axes) for each in here)
        assert of.sent_to_sum(3, axes) == max(each.sent_to_sum(3, axes) for each in here)
        for sent in ("sent_to_scatter", "sent_to_gather"):
            assert getattr(of, sent)(axes, within) == max(getattr(o, sent)(axes, within) for o in here)


@given(owners())
def test_the_weights_counted_are_those_of_the_first_who_has_most_elements(of):
    every = tuple(of.mesh)
    here = [at(of, place) for place in places(of)]
    most = next(each for each in here if each.slice_elements(every) == of.slice_elements(every))
    assert of.count == most.count == listed(of)[here.index(most)].total()


@given(owners())
def test_sums_along_one_axis_and_then_another_end_at_the_owner(of):
    """What a device has of the sum is less by what it sent on, until its own weights are left."""
    if len(of.mesh) == 2:
        (one, other), whole = of.mesh, sum(size for own in listed(of) for size in own.elements())
        for each in (at(of, place) for place in places(of)):
            left = whole - each.sent_to_scatter((one,), ()) - each.sent_to_scatter((other,), (one,))
            assert left == each.slice_elements((one, other))


def test_equal_weights_are_sent_as_equal_slices_are():
    of = Owners({"a": 4}, (AlikeOwners({3: 1}, 4),))
    assert of.slice_elements(("a",)) == 3
    assert of.sent_to_scatter(("a",), ()) == of.sent_to_gather(("a",), ()) == 3 * 3
    assert of.sent_to_sum(2, ("a",)) == 2 * 2


def test_who_sends_most_may_be_who_comes_before_the_slice_that_has_least():
    """Of slices of three devices along `a` the fourth has 10 elements, the others have 15 each."""
    of = Owners({"a": 5, "b": 3}, (AlikeOwners({5: 1}, 10), AlikeOwners({}), AlikeOwners({5: 1}, 4)))
    assert of.sent_to_gather(("a",), ()) == (4 * 15 + 10) - 10


def numbers(grid):
    """How many there are of the numbers that devices have."""
    return sum(numbers(each) for _, each in grid) if isinstance(grid, tuple) else 1


def test_devices_have_as_few_numbers_as_rows_end_however_large_the_axes_are():
    rows = tuple(AlikeOwners({100 + n: 1}, 37 * n * n) for n in range(1, 30))
    for size in (100, 1000):
        left = 97 * size * 64 - sum(row.devices for row in rows)
        of = Owners({"a": 97, "b": size, "c": 64}, (*rows, AlikeOwners({1: 1}, left)))
        for axes, _ in along(of):
            assert numbers(of._elements(axes)) <= 3 * len(of.mesh) * len(of.rows)
