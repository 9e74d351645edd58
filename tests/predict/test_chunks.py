"""What chunks do at once, and in which order, is decided by a few micro-batches."""

from hypothesis import given
from hypothesis import strategies as st

from psem_model.predict.chunks import apart
from psem_model.predict.unlike import makes_no_buckets
from spec.pipelines.idle_and_held import fullest_of_sums
from spec.pipelines.pipeline import Half, works_of_stage
from tests.support import plans


@given(plans.pipelines(most=4), st.data())
def test_chunks_of_many_micro_batches_are_apart_if_their_sums_are_not_all_there_at_once(pipe, data):
    stage = data.draw(st.integers(0, pipe.stages - 1))
    ones, zeros = [1] * pipe.chunks, [0] * pipe.chunks
    at_once = fullest_of_sums(pipe, stage, ones, zeros) == pipe.chunks
    assert bool(apart(pipe, stage, (), [{}] * pipe.chunks, {})) is not at_once


@given(plans.pipelines(most=4))
def test_ddp_makes_no_buckets_in_many_micro_batches_if_not_in_few(pipe):
    backwards, between = [0] * pipe.chunks, set()
    for work in works_of_stage(pipe, 0):
        if work.half is Half.BACKWARD:
            backwards[work.chunk] += 1
        elif work.half is Half.FORWARD and 0 < backwards[work.chunk] < pipe.micro_batches:
            between.add(work.chunk)
    none = pipe.micro_batches > 1 and len(between) < pipe.chunks
    assert makes_no_buckets(pipe) is none
