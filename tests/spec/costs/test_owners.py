"""Whole weights with one owner each: what devices send is what goes over the ring's links."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from spec.costs.owners import Owners

MESHES = st.sampled_from([{"a": 1}, {"a": 2}, {"a": 4}, {"a": 2, "b": 3}])


@st.composite
def owners(draw):
    """Any weights of the devices of a mesh, some of which have none."""
    mesh = draw(MESHES)
    own = st.lists(st.integers(1, 20), max_size=3).map(Counter)
    devices = prod(mesh.values())
    weights = tuple(draw(st.lists(own, min_size=devices, max_size=devices)))
    return Owners(mesh, weights, draw(st.booleans()))


def places(of):
    return [dict(zip(of.mesh, at, strict=True)) for at in product(*map(range, of.mesh.values()))]


def at(of, place):
    return Owners(of.mesh, of.weight_sizes, of.fills, place)


@given(owners())
def test_along_all_axes_each_weight_goes_over_every_link_of_its_ring_but_one(of):
    axes, devices = tuple(of.mesh), len(of.weight_sizes)
    here = [at(of, place) for place in places(of)]
    whole = sum(size for own in of.weight_sizes for size in own.elements())
    assert sum(each.sent_to_scatter(axes, ()) for each in here) == (devices - 1) * whole
    empty = sum(not own for own in of.weight_sizes) * of.fills
    assert sum(each.sent_to_gather(axes, ()) for each in here) == (devices - 1) * (whole + empty)


@given(owners())
def test_the_most_is_what_some_device_has_or_sends(of):
    for axes in [tuple(of.mesh), *((axis,) for axis in of.mesh)]:
        here = [at(of, place) for place in places(of)]
        assert of.slice_elements(axes) == max(each.slice_elements(axes) for each in here)
        assert of.sent_to_scatter(axes, ()) == max(each.sent_to_scatter(axes, ()) for each in here)
        assert of.sent_to_gather(axes, ()) == max(each.sent_to_gather(axes, ()) for each in here)


@given(owners())
def test_the_weights_counted_are_those_of_the_first_who_has_most_elements(of):
    every = tuple(of.mesh)
    here = [at(of, place) for place in places(of)]
    most = next(each for each in here if each.slice_elements(every) == of.slice_elements(every))
    assert of.count == most.count == of.weight_sizes[here.index(most)].total()


@given(owners())
def test_sums_along_one_axis_and_then_another_end_at_the_owner(of):
    """What a device has of the sum is less by what it sent on, until its own weights are left."""
    if len(of.mesh) == 2:
        for place in places(of):
            each = at(of, place)
            whole = sum(size for own in of.weight_sizes for size in own.elements())
            left = whole - each.sent_to_scatter(("a",), ()) - each.sent_to_scatter(("b",), ("a",))
            assert left == each.slice_elements(("a", "b"))


def test_equal_weights_are_sent_as_equal_slices_are():
    of = Owners({"a": 4}, ({3: 1}, {3: 1}, {3: 1}, {3: 1}))
    assert of.slice_elements(("a",)) == 3
    assert of.sent_to_scatter(("a",), ()) == of.sent_to_gather(("a",), ()) == 3 * 3
    assert of.sent_to_sum(2, ("a",)) == 2 * 2
