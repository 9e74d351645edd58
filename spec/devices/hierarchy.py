"""Devices on several axes, or levels, as one group: their numbers, and collectives level by level.

A level is an axis of the mesh: the devices of a node, the nodes of a rack. A hierarchical all-reduce
is a reduce-scatter inside, an all-reduce outside of what that leaves, and an all-gather inside.
"""

from __future__ import annotations

from collections.abc import Iterable

from spec.devices.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from spec.devices.layouts import Layout
from spec.devices.mesh import Mesh, first_element, group_size
from spec.devices.operators import OWNER, SUM_ALL, SUM_SLICE, Operator
from spec.numbers.arithmetic import Number

INNER, OUTER = "inner", "outer"


# -------------------------------------------------------------------- numbers
def device_number(inside: Number, coordinate: Number, stride: Number) -> Number:
    """A device's number, with one more axis: its number on the axes inside, one stride per place.

    The stride is how many devices the axes inside have. Coordinates are digits in mixed radix.
    """
    return first_element(coordinate, stride) + inside


def next_stride(stride: Number, size: Number) -> Number:
    """The stride of the next axis outside one of `size` devices; that of the innermost axis is 1."""
    return stride * size


# ------------------------------------------------------------- level by level
LevelMove = tuple[str, Collective]  # the level it acts along
LevelMoves = tuple[LevelMove, ...]

HIERARCHICAL: LevelMoves = ((INNER, REDUCE_SCATTER), (OUTER, ALL_REDUCE), (INNER, ALL_GATHER))
OUTER_FIRST: LevelMoves = ((OUTER, REDUCE_SCATTER), (INNER, ALL_REDUCE), (OUTER, ALL_GATHER))
ONE_AFTER_THE_OTHER: LevelMoves = ((INNER, ALL_REDUCE), (OUTER, ALL_REDUCE))

# what a collective does to an element's values along its level
OPERATORS: dict[str, Operator] = {
    REDUCE_SCATTER.name: SUM_SLICE,
    ALL_REDUCE.name: SUM_ALL,
    ALL_GATHER.name: OWNER,
}


def volumes(moves: Iterable[LevelMove], sizes: Mesh, cell: Number) -> dict[str, Number]:
    """Elements that each device sends along each level.

    `cell`: elements of the slice that is cut along all levels; the whole has group_size(sizes) cells.
    """
    sent: dict[str, Number] = dict.fromkeys(sizes, 0)
    cut: set[str] = set()
    for level, collective in moves:
        # it acts on what the other levels leave
        chunk = cell * group_size(sizes, (a for a in sizes if a != level and a not in cut))
        sent[level] = sent[level] + collective.volume(sizes[level], chunk)
        cut = cut | {level} if collective.after is Layout.SHARDED else cut - {level}
    return sent
