"""X1: what owners of weights, or of slices, send, turn by turn, as the rings of C1 and C2 do it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby, product

from proofs.costs.own_parts import places_of
from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.communication import elements_sent, transfers
from spec.costs.memory import Sizes, Unit, Vector
from spec.costs.owners import AlikeOwners, Owners
from spec.derivation.schedules import schedule_of
from spec.devices.collectives import all_gather_sends, reduce_scatter_sends, ring_steps
from spec.devices.mesh import Axes, Device
from spec.language.schedule import Buffer, Kind, Op, Phase, Span
from spec.models.states import BytePolicy, State
from spec.numbers.arithmetic import EXACT, ceil_div
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES

Weights = tuple[tuple[int, ...], ...]  # their sizes, device by device
Sends = Callable[[int, int], int]  # the chunk that a device of a ring sends in a step
# powers of ten, so that a sum shows which are added up
WEIGHTS = ((1, 10), (), (10**2,), (10**3, 10**4), (10**5, 10**5), (10**6,))
IN_ROWS = ((1, 10), (10**2,), (10**2,), (10**2,), (10**2,), ())
ALIKE = ((10,),) * 6
MESH = {"a": 2, "b": 1, "c": 3}
SLICE = 10**7  # more than any has


def owners_send_what_rings_do(k: Kernel) -> None:
    """Raise KernelError where a device has, or sends, anything else; at most what some device does."""
    for fills, weights, slice_ in product((0, 1), (WEIGHTS, IN_ROWS, ALIKE), (None, SLICE)):
        places, rows = places_of(MESH), _rows(weights)
        of_each = [Owners(MESH, rows, bool(fills), place, slice_) for place in places]
        any_one, expected = Owners(MESH, rows, bool(fills), {}, slice_), _Expected(places, weights)
        padded = expected if slice_ is None else _Expected(places, ((slice_,),) * len(places))
        for axes, within in _groups(tuple(MESH)):
            _require(k, [any_one.has_slices_along(of) for of in (axes, ("other",))], [True, False])
            for found in (
                (
                    [each.slice_elements(axes) for each in of_each],
                    padded.held(axes),
                    any_one.slice_elements(axes),
                ),
                (
                    [each.sent_to_scatter(axes, within) for each in of_each],
                    expected.sent(axes, within, reduce_scatter_sends),
                    any_one.sent_to_scatter(axes, within),
                ),
                (
                    [each.sent_to_gather(axes, within) for each in of_each],
                    padded.sent(axes, within, all_gather_sends, fills),
                    any_one.sent_to_gather(axes, within),
                ),
                *(
                    (
                        [each.sent_to_sum(devices, axes) for each in of_each],
                        expected.summed(devices, axes),
                        any_one.sent_to_sum(devices, axes),
                    )
                    for devices in (2, 3)
                ),
            ):
                _require(k, *found)
        counts = [1 if slice_ else len(of) for of in weights]
        _require(k, [each.count for each in of_each], counts)
        for same in (((5, 5), (10,)), ((10,), (5, 5))):  # of whom the first has most, too
            _require(k, [Owners({"a": 2}, _rows(same)).count], [len(same[0])])
        _require(k, [any_one.count], [1 if slice_ else len(max(weights, key=sum))])
        psi = sum(map(sum, weights))
        _require(k, [any_one.padding_of(psi)], [6 * SLICE - psi if slice_ else 0])
    _require_named(k)


def _rows(weights: Weights) -> tuple[AlikeOwners, ...]:
    """Devices in order; those that own alike and are neighbours are one row."""
    return tuple(AlikeOwners(Counter(own), len([*alike])) for own, alike in groupby(weights))


class _Expected:
    """Of each place, by a ring's schedule, or by who is where."""

    def __init__(self, places: list[dict[str, int]], weights: Weights) -> None:
        self.places, self.weights = places, weights

    def sent(self, axes: Axes, within: Axes, sends: Sends, least: int = 0) -> list[int]:
        """Elements of the chunks that a device of a group sends; `least`: each has at least so many."""
        found = []
        for place in self.places:
            group = [at for at in self.places if all(at[a] == place[a] for a in at if a not in axes)]
            chunks = [max(least, sum(self.owned(at, axes + within))) for at in group]
            here, n = group.index(place), len(group)
            found.append(sum(chunks[sends(here, step) % n] for step in range(ring_steps(n))))
        return found

    def held(self, axes: Axes) -> list[int]:
        return [sum(self.owned(place, axes)) for place in self.places]

    def summed(self, devices: int, axes: Axes) -> list[int]:
        """Each weight is cut in as many chunks, rounded up; one is sent in each step of two rings."""
        chunks = 2 * ring_steps(devices)
        return [
            sum(chunks * ceil_div(size, devices) for size in self.owned(place, axes))
            for place in self.places
        ]

    def owned(self, at: Device, axes: Axes) -> list[int]:
        """Weights of all who are where a device is, along some axes."""
        owners = zip(self.places, self.weights, strict=True)
        return [size for own, of in owners if all(own[a] == at[a] for a in axes) for size in of]


def _groups(every: Axes) -> Iterator[tuple[Axes, Axes]]:
    """Along which axes, within slices along which."""
    for axis in every:
        yield (axis,), tuple(other for other in every if other != axis)
        yield (axis,), ()
    yield every, ()


def _require(k: Kernel, has: list[int], expected: list[int], most: int | None = None) -> None:
    if has != expected or most not in (None, max(expected)):
        raise KernelError(f"{k.claim}: owners have {has}, at most {most}; expected {expected}")


def _require_named(k: Kernel) -> None:
    """Updated weights come from their owners, each by a broadcast; what is read is gathered.

    So are slices of one vector, with their padding. Of a unit one may have all, or has room for no more
    than of all.
    """
    whole, owners = sum(map(sum, WEIGHTS)), Owners({BATCH: len(WEIGHTS)}, _rows(WEIGHTS))
    largest = max(map(sum, WEIGHTS))
    first = whole - min(map(sum, WEIGHTS))  # all but what the device next to who has least has
    scatter, gather = ("reduce_scatter", first), ("all_gather", first)
    expected = {
        "zero1": [scatter, ("broadcast", first)],
        "zero2": [scatter, ("broadcast", first)],
        "zero3": [gather, gather, scatter],
    }
    crossing = [("offload", largest), ("fetch", largest)]
    expected["zero-offload"] = [scatter, *crossing, ("broadcast", first)]
    units = tuple(Unit((Vector(size, 1, owner),)) for owner, of in enumerate(WEIGHTS) for size in of)
    slices = [scatter, ("all_gather", (len(WEIGHTS) - 1) * SLICE)]
    cases = [(name, None, moved) for name, moved in expected.items()]
    for name, slice_, moved in (*cases, ("zero1", SLICE, slices), ("zero2", SLICE, slices)):
        sizes = Sizes(whole, owners.mesh, BytePolicy(2, 2, 12), None, EXACT, (BATCH,), units)
        sizes = replace(sizes, owners=replace(owners, slice=slice_))
        found = transfers(schedule_of(STRATEGIES[name]), sizes)
        has = [(move.collective, move.elements) for move in found]
        rests = slice_ or largest
        if has != moved or sizes.at_rest(State.OPTIMIZER, (BATCH,)) != rests:
            raise KernelError(f"{k.claim}: owners in {name} send {has}, not {moved}")
        _require_units(k, sizes)
    _require_all_reduced(k, units)


def _require_all_reduced(k: Kernel, units: tuple[Unit, ...]) -> None:
    """What is summed whole is cut in as many chunks, all of a unit; of slices each of their weights."""
    psi, policy, devices = sum(map(sum, WEIGHTS)), BytePolicy(2, 2, 12), len(WEIGHTS)
    unit = Unit(tuple(vector for each in units for vector in each.vectors))
    chunks = 2 * ring_steps(devices) * ceil_div(psi, devices)
    of_most = 2 * ring_steps(3) * max(sum(ceil_div(size, 3) for size in of) for of in WEIGHTS)
    for placement, mesh, sent in (
        (replace(STRATEGIES["zero1"], sums_whole=True), {BATCH: devices}, chunks),
        (STRATEGIES["hsdp"], {"shard": devices, "replica": 3}, of_most),
    ):
        (axis,) = [*mesh][:1]
        owners = Owners({axis: devices}, _rows(WEIGHTS))
        sizes = Sizes(psi, mesh, policy, None, EXACT, (axis,), (unit,), owners=owners)
        found = transfers(schedule_of(placement), sizes)
        has = [move.elements for move in found if move.collective == "all_reduce"]
        if has != [sent]:
            raise KernelError(f"{k.claim}: owners send {has} while gradients are summed, not {sent}")
    alike = Op(Kind.BROADCAST, Phase.PUBLISH, Buffer.PARAMETERS, axes=("replica",), within=(axis,))
    if elements_sent(alike, schedule_of(placement), sizes) != max(map(sum, WEIGHTS)):
        raise KernelError(f"{k.claim}: of slices that are made alike a device sends others'")
    whole = Op(Kind.ALL_REDUCE, Phase.REDUCE, Buffer.GRADIENTS, axes=(axis,), within=("replica",))
    if elements_sent(whole, schedule_of(placement), sizes) != chunks:
        raise KernelError(f"{k.claim}: what owners have no slices of is not summed whole")


def _require_units(k: Kernel, sizes: Sizes) -> None:
    """Of a unit, and of two, what the device that has most has; of slices, what there is room for."""
    unit = Unit((Vector(2, 5, 0), Vector(3, 4, 1), Vector(1, 7, 1)))
    whole, most, psi = 2 * 5 + 3 * 4 + 1 * 7, 3 * 4 + 1 * 7, sizes.psi
    assert sizes.owners
    small = replace(sizes, owners=replace(sizes.owners, slice=11))
    for each, rooms in ((sizes, whole if sizes.owners.slice else most), (small, 11)):
        of_units = [
            each.slice(axes, Span.UNIT, (replace(unit, times=times),))
            for times in (1, 2)
            for axes in ((BATCH,), ())
        ]
        if of_units != [rooms, whole, 2 * rooms, 2 * whole]:
            raise KernelError(f"{k.claim}: of units and in all owners have {of_units}")
        two = each.slice((BATCH,), Span.UNIT, (unit, unit)), each.slice((BATCH,), passing=(unit,))
        copied = replace(each, policy=replace(sizes.policy, copied=True)).copied((), Span.UNIT, (unit,))
        if two != (2 * rooms, each.slice((BATCH,))) or copied != whole * sizes.policy.g:
            raise KernelError(f"{k.claim}: of two units owners have {two}, copied {copied}")
        mesh = {**sizes.mesh, "other": 2}
        beside = replace(each, mesh=mesh, cut=(BATCH, "other"))  # of which there are as many again
        if beside.slice((BATCH,), Span.UNIT, (unit,)) != 2 * rooms:
            raise KernelError(f"{k.claim}: beside another axis owners have no {2 * rooms}")
        if replace(each, mesh=mesh, units=()).at_rest(State.OPTIMIZER, ("other",)) != ceil_div(psi, 2):
            raise KernelError(f"{k.claim}: where nothing is owned, slices are owners'")
    of_one = sizes.slice((BATCH,), Span.UNIT)  # of which nothing is told
    if small.slice((BATCH,)) != 11 or not of_one == sizes.slice((BATCH,)) <= sizes.psi:
        raise KernelError(f"{k.claim}: of all units a slice has {small.slice((BATCH,))}")
