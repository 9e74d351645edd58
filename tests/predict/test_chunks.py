"""Which chunks' gradients are there at once is decided by a few micro-batches."""

from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.chunks import apart
from spec.pipelines.idle_and_held import fullest_of_sums
from tests.support import plans


@given(plans.pipelines(most=4), st.data())
def test_chunks_of_many_micro_batches_are_apart_if_their_sums_are_not_all_there_at_once(pipe, data):
    stage = data.draw(st.integers(0, pipe.stages - 1))
    ones, zeros = [1] * pipe.chunks, [0] * pipe.chunks
    at_once = fullest_of_sums(pipe, stage, ones, zeros) == pipe.chunks
    assert bool(apart(pipe, stage, (), [{}] * pipe.chunks, {})) is not at_once
