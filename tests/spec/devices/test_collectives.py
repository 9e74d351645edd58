"""The ring step rules, run on lists: what they compute and how many steps they take."""

from hypothesis import given
from hypothesis import strategies as st

from spec.devices import collectives


def run_ring(n, initial, step_rule):
    """Apply a step rule n - 1 times to buffers[device][chunk]."""
    buffers = [list(row) for row in initial]
    for step in range(collectives.ring_steps(n)):
        after = step_rule(
            lambda d, c, b=buffers: b[d % n][c % n],
            step,
            lambda a, b: (a - b) % n == 0,
            lambda condition, then, otherwise: then if condition else otherwise,
        )
        buffers = [[after(d, c) for c in range(n)] for d in range(n)]
    return buffers


@st.composite
def contents(draw):
    n = draw(st.integers(1, 7))
    row = st.lists(st.integers(-99, 99), min_size=n, max_size=n)
    return draw(st.lists(row, min_size=n, max_size=n))


@given(contents())
def test_ring_reduce_scatter_sums(initial):
    n = len(initial)
    after = run_ring(n, initial, collectives.reduce_scatter_step)
    assert [after[d][d] for d in range(n)] == [sum(row[d] for row in initial) for d in range(n)]


@given(contents())
def test_ring_all_gather_copies_every_chunk(initial):
    n = len(initial)
    after = run_ring(n, initial, collectives.all_gather_step)
    assert after == [[initial[c][c] for c in range(n)]] * n


@given(contents())
def test_reduce_scatter_then_all_gather_is_all_reduce(initial):
    n = len(initial)
    scattered = run_ring(n, initial, collectives.reduce_scatter_step)
    after = run_ring(n, scattered, collectives.all_gather_step)
    assert after == [[sum(row[c] for row in initial) for c in range(n)]] * n


@given(st.integers(1, 10**6), st.integers(1, 10**9))
def test_volumes_are_steps_times_chunks(n, chunk):
    for collective in collectives.COLLECTIVES.values():
        rings = 2 if collective is collectives.ALL_REDUCE else 1
        assert collective.volume(n, chunk) == rings * (n - 1) * chunk


def test_layouts_chain():
    scatter, gather, reduce_ = (
        collectives.REDUCE_SCATTER,
        collectives.ALL_GATHER,
        collectives.ALL_REDUCE,
    )
    assert (scatter.before, gather.after) == (reduce_.before, reduce_.after)
    assert scatter.after is gather.before
