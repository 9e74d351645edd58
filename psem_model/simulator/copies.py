"""The resting copies of a simulated run, beside the single device's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from psem_model.simulator.arithmetic import Array
from psem_model.simulator.layout import Layout, Slice
from psem_model.simulator.operations import Executor
from psem_model.simulator.single import Single
from spec.language.schedule import Buffer
from spec.meaning.match import Copies, Place
from spec.models.training import Statistics

Rows = Sequence[Array]  # of each unit (1 or devices, elements)
Index = tuple[int, int]  # a device's number, and an element's


def resting(
    run: Executor,
    weights: Rows,
    moments: Sequence[Rows],
    place: Callable[[Index], Place],
    step: int,
) -> Iterator[Copies]:
    """What the devices keep of parameters and optimizer state: of each state, unit by unit.

    `weights`, `moments[i]`: what each device must have of it. Padding must be zero; its elements'
    numbers are not below the number of elements.
    """
    store = run.store
    states = [(Buffer.PARAMETERS, 0, "parameters", weights)]
    states += [(Buffer.OPTIMIZER, 0, "master weights", weights)] * store.master
    for part, rows in enumerate(moments, int(store.master)):
        states.append((Buffer.OPTIMIZER, part, "optimizer state", rows))
    for buffer, part, state, rows in states:
        rest, start = store.rests[buffer], 0
        largest = max(np.abs(row).max() for row in rows)
        for unit, layout in enumerate(run.layouts if rest.stored and not rest.working else ()):
            held = store.own(buffer, unit)
            has = store.slab(buffer, unit, rest.host, held)[part]
            elements, single = _of_slice(layout, held, rows[unit])

            def numbered(i: Index, elements: Array = elements, start: int = start) -> Place:
                return place((i[0], start + int(elements[i])))

            yield Copies(step, state, has, single, numbered, largest)
            start += layout.length


def _of_slice(layout: Layout, held: Slice, row: Array) -> tuple[Array, Array]:
    """The elements that each device has of a slice, and what a row (1 or devices, ...) has there."""
    devices = layout.cluster.devices
    if not held:
        shape = (devices, layout.length)
        return np.broadcast_to(np.arange(layout.length), shape), np.broadcast_to(row, shape)
    elements = layout.elements(held)
    padded = np.pad(row, ((0, 0), (0, layout.padded - layout.length)))
    every = np.broadcast_to(padded, (devices, layout.padded))
    return elements, np.take_along_axis(every, elements, 1)


def beside(run: Executor, single: Single, step: int) -> Iterator[Copies]:
    """All that a schedule's run keeps, but for working copies; of the weights at least one copy."""

    def place(i: Index) -> Place:
        return Place(run.cluster.coordinate(i[0]), i[1])

    store = run.store
    weights = [Buffer.PARAMETERS, Buffer.OPTIMIZER] if store.master else [Buffer.PARAMETERS]
    if not any(store.rests[b].stored and not store.rests[b].working for b in weights):
        yield Copies(step, "parameters", None, single.weights[0][0], lambda i: place((0, i)))
    each = [[rows[i] for rows in single.moments.values()] for i in range(store.moments)]
    yield from resting(run, [*single.weights.values()], each, place, step)
    if run.schedule.training.statistics:
        seen = run.numbers.get(Buffer.STATISTICS, run.arithmetic.zeros((1, len(single.statistics))))
        seen = seen[:1] if run.schedule.training.statistics is Statistics.COPY else seen
        every = np.broadcast_to(single.statistics, seen.shape)
        yield Copies(step, "statistics", seen, every, place, np.abs(single.statistics).max())
