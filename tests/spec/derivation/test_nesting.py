"""Slices as buffers that are put side by side: they stay chunks along the inner axis alone."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.reading.products import parse
from psem_model.reading.shapes import small
from psem_model.simulator.slices import Grid
from spec.checking.steps import check_orders, cut_twice
from spec.derivation.nesting import axis_orders, needed
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING
from spec.derivation.steps import derive
from spec.devices.layouts import LayoutError
from spec.models.parts import parts
from tests.support.examples import few

SIZES = {"a": 2, "b": 3, "c": 2}
AXES = tuple(SIZES)
POSITIONS = np.arange(24)
STRATEGIES = ("tp", "tp+sp", "cp", "cp-all-gather", "cp-all-to-all", "ep")
TWICE = ("tp+sp * tp+sp(t2)", "ep * ep(e2)", "cp-all-to-all * cp-all-to-all(c2)", "cp * cp(c2)")


def chunk(order, place):
    """The contiguous chunk of a device that axes cut in this order."""
    found = POSITIONS
    for axis in order:
        found = np.split(found, SIZES[axis])[place[axis]]
    return found


def devices():
    return (dict(zip(AXES, place, strict=True)) for place in product(*map(range, SIZES.values())))


@given(st.permutations(AXES), st.integers(1, 3), st.data())
def test_buffers_side_by_side_are_a_chunk_along_the_inner_axis_alone(order, count, data):
    cut = order[:count]
    axis = data.draw(st.sampled_from(cut))
    rest = [other for other in cut if other != axis]
    for place in devices():
        group = [chunk(cut, place | {axis: i}) for i in range(SIZES[axis])]
        joined = np.concatenate(group)
        assert np.array_equal(joined, chunk(rest, place)) == (axis == cut[-1])


@given(st.permutations(AXES), st.integers(1, 2))
def test_a_part_of_a_chunk_is_the_chunk_of_an_axis_inside(order, count):
    cut, axis = order[:count], order[count]
    for other in permutations([*cut, axis]):
        parts_of = (np.split(chunk(cut, d), SIZES[axis])[d[axis]] for d in devices())
        alike = all(map(np.array_equal, parts_of, (chunk(other, d) for d in devices())))
        assert alike == ([*other] == [*cut, axis])


def stepped(strategy, again=NOTHING, block="gpt"):
    return derive(parse(strategy).product, parts(small(block, "ep" in strategy)), again)


def products():
    for count in (1, 2, 3):
        for some in permutations(STRATEGIES, count):
            kinds = [name.split("-")[0].split("+")[0] for name in some]
            if len({*kinds}) == count:
                yield " * ".join(some)


@pytest.mark.parametrize("strategy", [*few(products()), *TWICE])
@pytest.mark.parametrize("again", [NOTHING, EVERYTHING, FROM_SLICES])
def test_a_derived_step_moves_along_inner_axes(strategy, again):
    step = stepped(strategy, again)
    check_orders(step.programs, step.orders)
    assert step.orders == axis_orders(step.programs)


@pytest.mark.parametrize("strategy", ["tp+sp * cp", "cp-all-to-all * tp+sp", "ep * tp+sp", *TWICE])
def test_each_device_has_one_chunk_of_each_index_of_every_value(strategy):
    step = stepped(strategy)
    mesh = {axis.name: 2 for axis in step.programs[0].axes}
    sizes = small("gpt", "ep" in strategy).sizes(16, 16) | {"g": 8, "e": 8, "c": 256}
    grid = Grid(step.programs, mesh, sizes, step.orders)
    assert cut_twice(step)
    for program in step.programs:
        for value, lies in program.lies.items():
            if program.is_in_turns(value):
                continue
            for index, positions in grid.where(value.indices, lies).items():
                assert (np.diff(positions, axis=1) == 1).all(), (value, index)


@pytest.mark.parametrize("strategy", ["tp+sp * cp", "cp-all-to-all * tp+sp", "tp+sp * tp+sp(t2)"])
def test_in_another_order_some_move_is_rejected(strategy):
    step = stepped(strategy)
    for index, cut in cut_twice(step).items():
        if any(of == index for of, *_ in needed(step.programs)):
            wrong = step.orders | {index: tuple(reversed(step.orders[index]))}
            with pytest.raises(LayoutError, match=rf"order of {index}"):
                check_orders(step.programs, wrong)
            assert len(cut) > 1
