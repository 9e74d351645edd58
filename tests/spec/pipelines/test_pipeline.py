"""Pipeline schedules: orders executed by their dependencies alone, beside the closed forms."""

from fractions import Fraction
from itertools import accumulate, product

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from proofs.pipelines import pipeline as proofs
from proofs.pipelines import pipeline_limits as limits
from proofs.trusted.kernel import Kernel, KernelError
from spec.pipelines import idle_and_held
from spec.pipelines import pipeline as spec
from spec.pipelines.idle_and_held import (
    backward_start,
    boundaries,
    bubble,
    bubble_of_ideal,
    bubble_of_makespan,
    forward_start,
    fullest,
    fullest_of_sums,
    ideal,
    in_flight,
    makespan,
    warm_up_start,
)
from spec.pipelines.pipeline import Half, Order, Pipeline, Work, warm_up, works_of_stage
from spec.pipelines.timeline import timed, timeline, waits_for
from tests.support import plans
from tests.support.pipes import IN_ONE_PART, boundary_sends

TIMES = st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=9)


@st.composite
def pipelines(draw, kinds=tuple(IN_ONE_PART)):
    kind = draw(st.sampled_from(kinds))
    stages, some = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    interleaved = kind is Order.INTERLEAVED
    micro_batches = some * stages if interleaved else some
    chunks = draw(st.integers(1, 4)) if interleaved else 1
    return Pipeline(kind, stages, micro_batches, chunks, draw(TIMES), draw(TIMES))


def of(pipe, stage, phase):
    """A stage's forwards, or its backwards, in its order."""
    return [work for work in works_of_stage(pipe, stage) if work.half is phase]


def closed_starts(pipe, stage):
    """When the timetable of closed forms starts each work of a stage."""
    starts = {Half.FORWARD: forward_start, Half.BACKWARD: backward_start}
    return {
        work: starts[phase](pipe, stage, unit)
        for phase in pipe.halves
        for unit, work in enumerate(of(pipe, stage, phase))
    }


@given(pipelines())
def test_every_stage_idles_as_long_as_the_closed_form_says(pipe):
    run = timeline(pipe)
    assert run.makespan == makespan(pipe)
    for stage in range(pipe.stages):
        assert run.bubble(stage) == bubble(pipe)
    assert run.bubble(0) / ideal(pipe) == bubble_of_ideal(pipe)
    assert run.bubble(0) / run.makespan == bubble_of_makespan(pipe)


@given(pipelines())
def test_every_stage_holds_as_much_as_the_closed_form_says(pipe):
    run = timeline(pipe)
    for stage in range(pipe.stages):
        assert run.in_flight(stage) == in_flight(pipe, stage)


@pytest.mark.slow
@given(pipelines())
def test_what_a_stage_holds_is_what_is_started_and_not_ended_at_some_moment(pipe):
    run = timeline(pipe)
    for stage, starts in enumerate(run.starts):
        held = [
            sum(
                start <= now < starts[Work(Half.BACKWARD, *work[1:])] + pipe.backward
                for work, start in starts.items()
                if work.half is Half.FORWARD
            )
            for now in starts.values()
        ]
        assert max(held) == run.in_flight(stage)


@given(pipelines(), st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_the_most_that_a_stage_holds_is_what_its_order_of_work_says_whatever_chunks_keep(pipe, sizes):
    sizes = (sizes * pipe.chunks)[: pipe.chunks]
    for stage in range(pipe.stages):
        signed = (
            sizes[work.chunk] * (1 if work.half is Half.FORWARD else -1)
            for work in works_of_stage(pipe, stage)
        )
        assert fullest(pipe, stage, sizes) == max(accumulate(signed))


@given(plans.pipelines(most=5), st.data())
def test_sums_are_there_from_a_chunks_first_backward_to_its_last_and_leave_what_is_left(pipe, data):
    stage = data.draw(st.integers(0, pipe.stages - 1))
    sizes, left = (data.draw(st.tuples(*[st.integers(0, 9)] * pipe.chunks)) for _ in range(2))
    works = works_of_stage(pipe, stage)
    last = Half.WEIGHTS if pipe.in_two_parts else Half.BACKWARD
    begins, ends = (
        [of(number for number, w in enumerate(works) if w.chunk == chunk and w.half is half)
         for chunk in range(pipe.chunks)]
        for of, half in ((min, Half.BACKWARD), (max, last))
    )  # fmt: skip
    there = (
        sum(
            0 if now < begins[c] else sizes[c] if now <= ends[c] else left[c]
            for c in range(pipe.chunks)
        )
        for now in range(len(works) + 1)
    )
    assert fullest_of_sums(pipe, stage, sizes, left) == max(there)


@given(pipelines([Order.GPIPE]))
def test_gpipe_starts_all_work_when_the_closed_form_says(pipe):
    for stage, starts in enumerate(timeline(pipe).starts):
        assert starts == closed_starts(pipe, stage)


@given(pipelines([Order.ONE_F_ONE_B]))
def test_1f1b_starts_all_work_when_the_closed_forms_say(pipe):
    for stage, starts in enumerate(timeline(pipe).starts):
        warm = of(pipe, stage, Half.FORWARD)[: pipe.stages - stage]
        early = {work: warm_up_start(pipe, stage, unit) for unit, work in enumerate(warm)}
        assert starts == closed_starts(pipe, stage) | early


@given(pipelines([Order.INTERLEAVED]))
def test_interleaved_starts_no_work_later_than_the_closed_form_says(pipe):
    for stage, starts in enumerate(timeline(pipe).starts):
        assert all(starts[work] <= at for work, at in closed_starts(pipe, stage).items())


@given(pipelines(), st.booleans())
def test_no_work_starts_before_what_it_needs_or_while_its_stage_is_busy(pipe, closed):
    stages = range(pipe.stages)
    starts = [closed_starts(pipe, k) for k in stages] if closed else timeline(pipe).starts
    times = {Half.FORWARD: pipe.forward, Half.BACKWARD: pipe.backward}
    for stage in stages:
        now = 0
        for work in works_of_stage(pipe, stage):
            assert now <= starts[stage][work]
            need = waits_for(work, stage, pipe)
            if need:
                assert starts[need[0]][need[1]] + times[need[1].half] <= starts[stage][work]
            now = starts[stage][work] + times[work.half]


@given(pipelines())
def test_every_stage_does_every_unit_once_each_way(pipe):
    every = set(product(pipe.halves, range(pipe.micro_batches), range(pipe.chunks)))
    for stage in range(pipe.stages):
        assert len(works_of_stage(pipe, stage)) == len(every)
        assert set(works_of_stage(pipe, stage)) == every


@given(pipelines())
def test_a_forward_goes_before_a_backward_by_the_warm_up_alone(pipe):
    for stage in range(pipe.stages):
        place = {work: x for x, work in enumerate(works_of_stage(pipe, stage))}
        backwards, before = [*of(pipe, stage, Half.BACKWARD)], warm_up(pipe, stage)
        for unit, forward in enumerate(of(pipe, stage, Half.FORWARD)):
            for back, backward in enumerate(backwards):
                first = place[forward] < place[backward]
                assert first == (unit <= before + back)


@given(pipelines(), st.randoms())
def test_no_order_of_work_takes_less(pipe, random):
    """Each stage does any work whose need is done, until all is done."""
    done = [[] for _ in range(pipe.stages)]
    left = [works_of_stage(pipe, stage) for stage in range(pipe.stages)]
    needs = [{w: waits_for(w, stage, pipe) for w in works} for stage, works in enumerate(left)]
    while any(left):
        stage = random.randrange(pipe.stages)
        wanted = [(w, needs[stage][w]) for w in left[stage]]
        ready = [w for w, need in wanted if need is None or need[1] in done[need[0]]]
        if ready:
            work = random.choice(ready)
            left[stage].remove(work)
            done[stage].append(work)
    assert timed(done, pipe).makespan >= makespan(pipe)


@given(pipelines())
def test_stages_send_what_their_neighbours_need(pipe):
    sent = [0] * pipe.stages
    for stage in range(pipe.stages):
        for work in works_of_stage(pipe, stage):
            need = waits_for(work, stage, pipe)
            if need and need[0] != stage:
                sent[need[0]] += 1
    assert sent == [boundary_sends(pipe, stage) for stage in range(pipe.stages)]
    if pipe.stages > 1:
        assert sum(sent) == 2 * pipe.micro_batches * boundaries(pipe)
        assert max(sent) <= 2 * pipe.micro_batches * pipe.chunks


def test_the_published_bubbles_are_found():
    pipe = Pipeline(Order.ONE_F_ONE_B, 64, 64)
    assert bubble_of_ideal(pipe) == Fraction(63, 64)
    assert bubble_of_makespan(pipe) == Fraction(63, 127)
    run = timeline(pipe)
    assert run.bubble(0) / ideal(pipe) == Fraction(63, 64)
    assert run.bubble(0) / run.makespan == Fraction(63, 127)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8))
def test_the_bubble_in_devices_and_batch_is_that_in_stages_and_micro_batches(p, m, d):
    devices, batch = p * d, m * d
    expected = Fraction(devices - d, batch)
    assert bubble_of_ideal(Pipeline(Order.GPIPE, p, m)) == expected


@given(st.integers(1, 6), st.integers(2, 5), st.integers(1, 4))
def test_interleaving_costs_the_published_share_of_layers(p, groups, v):
    pipe = Pipeline(Order.INTERLEAVED, p, groups * p, v)
    layers = timeline(pipe).in_flight(0) * Fraction(1, p * v)  # of all L layers
    assert layers == 1 + Fraction(p - 1, p * v)


def test_interleaving_divides_the_bubble_by_the_chunks():
    whole = bubble(Pipeline(Order.ONE_F_ONE_B, 4, 8, 1, 4, 8))
    for v in (1, 2, 4):
        pipe = Pipeline(Order.INTERLEAVED, 4, 8, v, Fraction(4, v), Fraction(8, v))
        assert timeline(pipe).bubble(0) == whole / Fraction(v)


def test_the_interleaved_order_is_that_of_two_stages_with_two_chunks():
    first = works_of_stage(Pipeline(Order.INTERLEAVED, 2, 4, 2), 0)
    said = " ".join(f"{w.half.name[0]}{w.micro_batch}{'ab'[w.chunk]}" for w in first)
    # warm-up of 2(p - 1) + (v - 1) p = 4, then one forward, one backward
    warm, steady, cool = "F0a F1a F0b F1b", "F2a B0b F3a B1b F2b B0a F3b B1a", "B2b B3b B2a B3a"
    assert said == f"{warm} {steady} {cool}"


def test_closed_forms_are_symbolic_too():
    p, m, f, b = sympy.symbols("p m f b", positive=True)
    pipe = Pipeline(Order.GPIPE, p, m, 1, f, b)
    assert bubble_of_ideal(pipe) == (p - 1) / m
    assert sympy.simplify(bubble(pipe) / makespan(pipe) - (p - 1) / (m + p - 1)) == 0


@given(pipelines([Order.ONE_F_ONE_B]), st.data())
def test_a_backward_before_its_forward_is_a_deadlock(pipe, data):
    orders = [works_of_stage(pipe, stage) for stage in range(pipe.stages)]
    stage = data.draw(st.integers(0, pipe.stages - 1))
    back = Work(Half.BACKWARD, 0, 0)
    orders[stage].remove(back)
    orders[stage].insert(0, back)
    with pytest.raises(ValueError, match="deadlock"):
        timed(orders, pipe)


def test_a_warm_up_too_short_is_a_deadlock_or_takes_longer(monkeypatch):
    pipe = Pipeline(Order.ONE_F_ONE_B, 4, 8)
    monkeypatch.setattr(spec, "warm_up", lambda pipe, stage: max(0, warm_up(pipe, stage) - 1))
    run = timeline(pipe)
    assert run.makespan > makespan(pipe)
    assert run.in_flight(0) == 3
    monkeypatch.setattr(spec, "warm_up", lambda pipe, stage: warm_up(pipe, stage) - 1)
    with pytest.raises(ValueError, match="deadlock"):
        timeline(pipe)


def test_a_warm_up_too_long_holds_more(monkeypatch):
    pipe = Pipeline(Order.ONE_F_ONE_B, 4, 8)
    monkeypatch.setattr(spec, "warm_up", lambda pipe, stage: warm_up(pipe, stage) + 1)
    assert timeline(pipe).in_flight(0) == 5


@pytest.mark.parametrize(
    ("pipe", "words"),
    [
        (Pipeline(Order.GPIPE, 0, 4), "at least 1"),
        (Pipeline(Order.GPIPE, 2, 0), "at least 1"),
        (Pipeline(Order.INTERLEAVED, 2, 2, 0), "at least 1"),
        (Pipeline(Order.GPIPE, 2, 4, 1, 0, 1), "more than 0"),
        (Pipeline(Order.ONE_F_ONE_B, 2, 4, 2), "one chunk per stage"),
        (Pipeline(Order.INTERLEAVED, 2, 3, 2), "whole groups of 2"),
    ],
)
def test_pipelines_without_a_schedule_are_refused(pipe, words):
    with pytest.raises(ValueError, match=words):
        timeline(pipe)


def test_stages_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="expected one of 0 to 1"):
        works_of_stage(Pipeline(Order.GPIPE, 2, 4), 2)


# ------------------------------------------------------------- the claims, and wrong closed forms
B1, B2, B3 = proofs.gpipe_idles, proofs.one_forward_one_backward_idles, proofs.interleaved_idles
B4, B5 = limits.stages_hold_no_more_than_their_warm_up_and_one, limits.no_order_idles_less


def shifted(function, by):
    """The rule with another result."""
    return lambda pipe, *args: function(pipe, *args) + by(pipe)


MUTANTS = [
    ("warm_up", shifted(warm_up, lambda _: -1), [B2, B3, B4]),
    ("warm_up", shifted(warm_up, lambda _: 1), [B2, B3, B4]),
    ("bubble", shifted(bubble, lambda pipe: pipe.forward), [B1, B2, B3]),
    ("makespan", shifted(makespan, lambda pipe: pipe.forward), [B1, B2, B3, B5]),
    ("in_flight", shifted(in_flight, lambda _: -1), [B4]),
    ("in_flight", shifted(in_flight, lambda _: 1), [B4]),
    ("forward_start", shifted(forward_start, lambda pipe: pipe.forward), [B1, B2, B3]),
    ("backward_start", shifted(backward_start, lambda pipe: -pipe.backward), [B1, B2, B3]),
    ("backward_start", shifted(backward_start, lambda pipe: pipe.backward), [B1, B2, B3]),
    (
        "warm_up_start",
        lambda pipe, stage, unit: (stage + unit) * pipe.backward,
        [B2],
    ),
    ("backward_unit", spec.forward_unit, [B3]),
    ("bubble_of_ideal", lambda pipe: pipe.stages / pipe.forwards, [B1, B2, B3]),
    ("bubble_of_makespan", bubble_of_ideal, [B1, B2, B3]),
    ("runs_forward", lambda pipe, stage, f, b: (f < pipe.forwards, f - b <= 0), [B1, B2, B3, B4]),
    (
        "runs_forward",
        lambda pipe, stage, f, b: (f < pipe.forwards, f <= warm_up(pipe, stage)),
        [B2, B3, B4],
    ),
]


@pytest.mark.parametrize(
    ("name", "wrong", "claim"),
    [
        pytest.param(name, wrong, claim, id=f"{name}-{i}-{claim.__name__}")
        for i, (name, wrong, claims) in enumerate(MUTANTS)
        for claim in claims
    ],
)
def test_wrong_rules_and_closed_forms_are_not_proved(monkeypatch, name, wrong, claim):
    for module in (spec, idle_and_held, proofs, limits):
        monkeypatch.setattr(module, name, wrong, raising=False)
    with pytest.raises(KernelError, match="the solver says sat"):
        claim(Kernel("B"))
