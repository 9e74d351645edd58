"""The simulator's network: each collective alone, its values, its messages and their links."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.simulator import network as ring
from psem_model.simulator.arithmetic import PRIME, Arithmetic, Floating, Modular, Poison
from psem_model.simulator.layout import Cluster, Layout, covers, meet
from psem_model.simulator.network import Network

OP = ("micro_step", 0)
sizes = st.integers(1, 6)
lengths = st.integers(0, 5)
seeds = st.integers(0, 2**32 - 1)


class Recorder(Network):
    """A network that also writes each message down."""

    def __init__(self, devices):
        super().__init__(devices)
        self.log = []
        self.serve(OP)

    def move(self, payload, senders, receivers, sizes=None):
        arrived = super().move(payload, senders, receivers, sizes)
        for i, (sender, receiver) in enumerate(zip(senders, receivers, strict=True)):
            assert sender != receiver
            assert np.array_equal(arrived[:, i], payload[:, sender])
            self.log.append((int(sender), int(receiver), payload[0, sender].size))
        return arrived

    def tally(self):
        """What each device has sent, from the messages written down."""
        return [sum(n for s, _, n in self.log if s == d) for d in range(self.devices)]

    def counted(self):
        """The same, as the network counts it."""
        assert self.messages == len(self.log)
        return list(self.elements)


def world(outer, n, inner):
    """Groups of n devices along the middle one of three axes."""
    cluster = Cluster((("outer", outer), ("group", n), ("inner", inner)))
    return cluster, cluster.group(("group",)), Recorder(cluster.devices)


def drawn(seed, *shape):
    return np.random.default_rng(seed).integers(0, 1000, shape)


def members(cluster, device):
    """The group of a device along the middle axis, by its coordinates."""
    c = {a: v[device] for a, v in cluster.coordinates.items()}
    same = [
        d
        for d in range(cluster.devices)
        if all(cluster.coordinates[a][d] == c[a] for a in ("outer", "inner"))
    ]
    return sorted(same, key=lambda d: cluster.coordinates["group"][d])


def neighbours_only(cluster, network):
    for sender, receiver, _ in network.log:
        group = members(cluster, sender)
        assert receiver == group[(group.index(sender) + 1) % len(group)]


worlds = {"outer": st.integers(1, 2), "n": sizes, "inner": st.integers(1, 2)}


@given(**worlds, length=lengths, parts=st.integers(1, 3), seed=seeds)
def test_a_reduce_scatter_leaves_each_device_the_sum_of_its_chunk(outer, n, inner, length, parts, seed):
    cluster, group, network = world(outer, n, inner)
    chunks = drawn(seed, parts, cluster.devices, n, length)
    result = ring.reduce_scatter(chunks, group, np.add, network)
    for d in range(cluster.devices):
        together = members(cluster, d)
        expected = sum(chunks[:, e, together.index(d)] for e in together)
        assert np.array_equal(result[:, d], expected)
    neighbours_only(cluster, network)
    assert network.counted() == network.tally() == [(n - 1) * length] * cluster.devices


@given(**worlds, length=lengths, parts=st.integers(1, 3), seed=seeds)
def test_an_all_gather_leaves_every_chunk_on_every_device_in_order(
    outer, n, inner, length, parts, seed
):
    cluster, group, network = world(outer, n, inner)
    own = drawn(seed, parts, cluster.devices, length)
    result = ring.all_gather(own, group, network)
    for d in range(cluster.devices):
        expected = np.stack([own[:, e] for e in members(cluster, d)], 1)
        assert np.array_equal(result[:, d], expected)
    neighbours_only(cluster, network)
    assert network.counted() == network.tally() == [(n - 1) * length] * cluster.devices


@given(**worlds, length=lengths, seed=seeds)
def test_an_all_reduce_leaves_the_sum_everywhere_and_is_its_two_halves(outer, n, inner, length, seed):
    cluster, group, network = world(outer, n, inner)
    chunks = drawn(seed, 1, cluster.devices, n, length)
    result = ring.all_reduce(chunks, group, np.add, network)
    for d in range(cluster.devices):
        assert np.array_equal(result[:, d], sum(chunks[:, e] for e in members(cluster, d)))
    neighbours_only(cluster, network)
    halves = Recorder(cluster.devices)
    ring.all_gather(ring.reduce_scatter(chunks, group, np.add, halves), group, halves)
    assert network.counted() == network.tally() == halves.tally()


@given(**worlds, length=lengths, seed=seeds)
def test_an_all_to_all_transposes_and_is_its_own_inverse(outer, n, inner, length, seed):
    cluster, group, network = world(outer, n, inner)
    chunks = drawn(seed, 1, cluster.devices, n, length)
    result = ring.all_to_all(chunks, group, network)
    for d in range(cluster.devices):
        together = members(cluster, d)
        for i, e in enumerate(together):
            assert np.array_equal(result[:, d, i], chunks[:, e, together.index(d)])
    assert network.counted() == network.tally() == [(n - 1) * length] * cluster.devices
    assert len({(s, r) for s, r, _ in network.log}) == len(network.log)
    assert np.array_equal(ring.all_to_all(result, group, network), chunks)


@given(**worlds, length=lengths, seed=seeds)
def test_a_broadcast_passes_the_first_value_on_along_a_chain(outer, n, inner, length, seed):
    cluster, group, network = world(outer, n, inner)
    values = drawn(seed, 1, cluster.devices, length)
    result = ring.broadcast(values, group, network)
    for d in range(cluster.devices):
        together = members(cluster, d)
        assert np.array_equal(result[:, d], values[:, together[0]])
        last = d == together[-1]
        assert network.tally()[d] == (0 if last else length)
    neighbours_only(cluster, network)
    assert network.counted() == network.tally()


@given(n=st.integers(2, 6), length=lengths, seed=seeds, data=st.data())
def test_a_message_from_one_device_to_another_is_one_message(n, length, seed, data):
    sender, receiver = data.draw(st.permutations(range(n)))[:2]
    network = Recorder(n)
    values = drawn(seed, 1, n, length)
    result = ring.point_to_point(values, sender, receiver, network)
    expected = values.copy()
    expected[:, receiver] = values[:, sender]
    assert np.array_equal(result, expected)
    assert network.log == [(sender, receiver, length)]
    assert network.counted() == network.tally()


def test_one_device_sends_nothing():
    _, group, network = world(1, 1, 1)
    values = drawn(0, 1, 1, 1, 4)
    assert np.array_equal(ring.all_reduce(values, group, np.add, network), values)
    assert np.array_equal(ring.all_to_all(values, group, network), values)
    assert np.array_equal(ring.broadcast(values, group, network), values)
    assert network.log == [] and network.messages == 0


def test_a_host_transfer_is_counted_apart_from_what_devices_send():
    network = Network(3)
    network.serve(OP, width=2)
    network.to_host(5)
    network.to_host(np.array([5, 0, 4]))
    assert [*network.hosted[OP]] == [10, 5, 9]
    assert network.host_bytes == 20
    assert not network.elements.any() and network.messages == 0


# ------------------------------------------------------------------------ slices
meshes = st.fixed_dictionaries({a: st.integers(1, 3) for a in "xyz"})
some_axes = st.sets(st.sampled_from("xyz")).map(lambda s: tuple(sorted(s)))


def owned(layout, cluster, device, axes, shift):
    """The elements of a device's slice, by the definition of the grid."""
    found = []
    for e in range(layout.length):
        cell, inside = e // layout.chunk, True
        for axis in reversed(layout.cut):
            cell, coordinate = divmod(cell, cluster.sizes[axis])
            own = (cluster.coordinates[axis][device] + shift) % cluster.sizes[axis]
            inside &= axis not in axes or coordinate == own
        found += [e] if inside else []
    return found


vectors = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 3)).map(lambda v: (v[0] * v[1], v[1])),
    min_size=1,
    max_size=3,
)


@given(meshes, some_axes, vectors)
def test_each_device_has_whole_rows_of_each_vector_and_all_have_them_all(mesh, cut, of):
    cluster = Cluster(tuple(mesh.items()))
    layout = Layout(cluster, cut, *of)
    elements = layout.elements(layout.slice(layout.cut))
    real = [set(mine[mine < layout.length].tolist()) for mine in elements]
    assert set.union(*real) == set(range(layout.length))
    start = 0
    for length, row in of:
        rows = [set(range(i, i + row)) for i in range(start, start + length, row)]
        assert all(own <= mine or not own & mine for own in rows for mine in real)
        start += length


@given(meshes, some_axes, some_axes, st.integers(1, 20), st.integers(0, 3))
def test_a_slice_is_the_cells_with_the_devices_own_coordinates(mesh, cut, axes, length, shift):
    cluster = Cluster(tuple(mesh.items()))
    layout = Layout(cluster, cut, (length, 1))
    axes = tuple(a for a in axes if a in cut)
    held = layout.slice(axes, shift)
    for d in range(cluster.devices):
        elements = [int(e) for e in layout.elements(held)[d] if e < length]
        assert elements == owned(layout, cluster, d, axes, shift)


@given(meshes, some_axes, some_axes, some_axes, vectors, st.data())
def test_what_is_put_in_a_slice_is_taken_from_it(mesh, cut, axes, more, of, data):
    length = sum(size for size, _ in of)
    cluster = Cluster(tuple(mesh.items()))
    layout, poison = Layout(cluster, cut, *of), Poison(0, Modular())
    shift = data.draw(st.integers(0, 2))
    held, part = layout.slice(axes, shift), layout.slice(axes + more, shift)
    assert covers(held, part) and meet(held, part) == part
    whole = np.arange(1, length + 1) + np.zeros((1, cluster.devices, 1), int)
    rows = layout.take(whole, (), held, poison)
    own = layout.take(whole, (), part, poison)
    assert np.array_equal(layout.take(rows, held, part, poison), own) and not poison.drawn
    forgotten = rows.copy()
    layout.forget(forgotten, held, part, poison)
    real = layout.elements(part) < length
    assert not (layout.take(forgotten, held, part, poison) == own)[:, real].any()
    layout.put(forgotten, held, part, own)
    assert np.array_equal(forgotten, rows)


@given(meshes, some_axes, some_axes, vectors, st.data())
def test_outside_a_slice_nothing_is_known_and_what_is_read_is_another_each_time(
    mesh, cut, axes, of, data
):
    length = sum(size for size, _ in of)
    cluster = Cluster(tuple(mesh.items()))
    layout, poison = Layout(cluster, cut, *of), Poison(0, Modular())
    held = layout.slice(axes, data.draw(st.integers(0, 2)))
    whole = np.arange(1, length + 1) + np.zeros((1, cluster.devices, 1), int)
    rows = layout.take(whole, (), held, poison)
    once, again = (layout.take(rows, held, (), poison) for _ in range(2))
    for d in range(cluster.devices):
        known = np.isin(np.arange(length), layout.elements(held)[d])
        assert np.array_equal(once[0, d] == whole[0, d], known)
        assert np.array_equal(once[0, d] == again[0, d], known)


@given(meshes, some_axes, some_axes, some_axes, vectors, st.integers(0, 2))
def test_joining_undoes_splitting_and_each_chunk_is_its_owners(mesh, cut, within, axes, of, shift):
    length = sum(size for size, _ in of)
    cluster = Cluster(tuple(mesh.items()))
    layout = Layout(cluster, cut, *of)
    axes = tuple(a for a in axes if a in cut and a not in within)
    held, own = layout.slice(within, shift), layout.slice(within + axes, shift)
    whole = np.arange(1, length + 1) + np.zeros((1, cluster.devices, 1), int)
    rows = layout.take(whole, (), held, Poison(0, Modular()))
    chunks = layout.split(rows, held, axes, shift)
    back = layout.join(chunks, held, axes, shift)
    assert np.array_equal(back[..., : rows.shape[-1]], rows)
    group = cluster.group(axes)
    mine = chunks[:, np.arange(cluster.devices), group.position]
    expected = layout.take(whole, (), own, Poison(0, Modular()))
    if own:  # else it is everyone's, vector by vector within each cell
        assert np.array_equal(mine[..., : expected.shape[-1]], expected)


# ------------------------------------------------------------------- arithmetics
residues = st.lists(st.integers(0, PRIME - 1), min_size=4, max_size=4).map(np.array)


def modulo(fractions):
    """Exact values as residues."""
    found = [
        Fraction(f).numerator * pow(Fraction(f).denominator, -1, PRIME) for f in np.ravel(fractions)
    ]
    return np.array([f % PRIME for f in found]).reshape(np.shape(fractions))


@given(residues, residues)
def test_residues_compute_what_fractions_do_modulo_the_prime(a, b):
    exact, modular = Arithmetic(), Modular()
    a_, b_ = exact.of(a), exact.of(b)
    a, b = modular.of(a), modular.of(b)
    pairs = [
        (exact.add(a_, b_), modular.add(a, b)),
        (exact.mul(a_, b_), modular.mul(a, b)),
        (exact.total(a_, 0), modular.total(a, 0)),
        (
            exact.matmul(a_.reshape(2, 2), b_.reshape(2, 2)),
            modular.matmul(*np.reshape([a, b], (2, 2, 2))),
        ),
        (exact.reciprocal(a_), modular.reciprocal(a)),
        (exact.clip_factor(a_), modular.clip_factor(a)),
        (exact.descend(a_, b_), modular.descend(a, b)),
        *zip(exact.next(a_, b_[None], a_, 0), modular.next(a, b[None], a, 0), strict=True),
    ]
    for fractions, numbers in pairs:
        if not any(Fraction(f).denominator % PRIME == 0 for f in np.ravel(fractions)):
            assert np.array_equal(modulo(fractions), numbers)


@pytest.mark.parametrize("arithmetic", [Arithmetic(), Modular(), Floating()])
def test_dividing_by_nothing_gives_nothing(arithmetic):
    assert not arithmetic.reciprocal(arithmetic.zeros((3, 1))).any()
    assert arithmetic.reciprocal(arithmetic.count(np.array([2, 4]))).all()


def test_adam_and_momentum_follow_their_definitions():
    w, g = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    weight, moments = Floating().next(w, np.zeros((2, 2)), g, 0)
    assert np.allclose(weight, w - 0.001 * g / (np.abs(g) + 1e-6))
    assert np.allclose(moments, [0.1 * g, 0.001 * g * g])
    weight, moments = Floating(adam=False).next(w, np.ones((1, 2)), g, 0)
    assert np.allclose(moments, [0.9 + g + 0.01 * w]) and np.allclose(weight, w - 0.001 * moments[0])
