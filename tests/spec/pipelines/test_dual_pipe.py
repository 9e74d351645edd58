"""DualPipeV: its order executed by dependencies alone, beside closed forms and what is published."""

from fractions import Fraction
from itertools import accumulate, pairwise, product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sympy import expand, symbols

from proofs.pipelines import dual_pipe as proofs
from proofs.pipelines import dual_pipe_timetable as timetable
from proofs.trusted.kernel import Kernel, KernelError
from spec.pipelines import dual_pipe, idle_and_held
from spec.pipelines import dual_pipe_times as times
from spec.pipelines import pipeline as spec
from spec.pipelines.dual_pipe import rounds_without
from spec.pipelines.idle_and_held import (
    bubble,
    bubble_of_ideal,
    bubble_of_makespan,
    bubble_repeated,
    fullest_in_order,
    fullest_in_two_parts,
    ideal,
    in_flight,
    makespan,
    repeated_of_ideal,
    waiting_beside,
)
from spec.pipelines.pipeline import (
    Half,
    Order,
    Pipeline,
    is_one_work,
    least_micro_batches,
    virtual_stage,
    works_of_stage,
)
from spec.pipelines.timeline import timeline, waits_for
from tests.support.pipes import boundary_sends, enough

TIMES = st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=9)
SIZES = st.lists(st.integers(0, 9), min_size=2, max_size=2)
LETTER = {Half.FORWARD: "F", Half.BACKWARD: "B", Half.WEIGHTS: "W"}
V = Order.DUALPIPE_V


@st.composite
def pipelines(draw, equal=True):
    """Of any times, or of equal ones: of a forward and a first part, and no second part longer."""
    stages = draw(st.integers(1, 5))
    forward = draw(TIMES)
    first = forward if equal else draw(TIMES)
    weights = forward * draw(st.fractions(Fraction(1, 9), 1)) if equal else draw(TIMES)
    micro_batches = enough(V, stages, draw(st.integers(1, 12)))
    return Pipeline(V, stages, micro_batches, 2, forward, first + weights, of_weights=weights)


def published(pipe):
    """(PP/2 - 1)(F&B + B - 3W), of twice as many chunks as stages (arXiv 2412.19437, table 2)."""
    together = pipe.forward + pipe.backward
    return (pipe.virtual_stages / Fraction(2) - 1) * (together + pipe.backward - 3 * pipe.of_weights)


def said(pipe, stage):
    """The works of a stage; those that are one are written together. Upper case: of the first chunk."""
    found = []
    works = works_of_stage(pipe, stage)
    for before, work in zip([None, *works], works, strict=False):
        letter = LETTER[work.half] if work.chunk == 0 else LETTER[work.half].lower()
        if before and is_one_work(pipe, stage, before, work):
            found[-1] += f"{letter}{work.micro_batch}"
        else:
            found.append(f"{letter}{work.micro_batch}")
    return " ".join(found)


# ------------------------------------------------------------------------------------- the order
def test_two_stages_are_as_in_the_published_implementation():
    """Its eight steps, by hand: nF0, nF0F1, nB1W1F1, nF0B1F1B0, nB1F1B0, nB1B0, nWB0, nW.

    (github.com/deepseek-ai/DualPipe, dualpipev.py) Nobody waits for stage 0's first chunk.
    """
    pipe = Pipeline(V, 2, 5, 2)
    steps = ["F0 F1", "F2 f0", "b0 w0 f1", "F3b1w1 f2B0W0 F4b2w2 f3B1W1", "b3w3 f4B2W2", "b4w4 B3"]
    assert said(pipe, 0) == " ".join(steps) + "W3 B4W4"
    steps = ["F0 f0 F1 f1", "F2 b0w0 f2B0W0 F3b1w1 f3B1W1 F4b2w2 f4B2W2", "b3w3 B3W3 b4 B4", "w4 W4"]
    assert said(pipe, 1) == " ".join(steps)


def by_steps(p, m, k):
    """The eight steps of the published implementation, in works: how many of each."""
    after, halves = p - 1 - k, (k + 1) // 2
    yield from [(Half.FORWARD, 0)] * (2 * after)
    yield from [(Half.FORWARD, 0), (Half.FORWARD, 1)] * (k + 1)
    yield from [(Half.BACKWARD, 1), (Half.WEIGHTS, 1), (Half.FORWARD, 1)] * after
    whole = {c: [(Half.BACKWARD, c), (Half.WEIGHTS, c)] for c in (0, 1)}
    second = [(Half.FORWARD, 1), *whole[0]]
    yield from [(Half.FORWARD, 0), *whole[1], *second] * (m - 2 * p + k + 1)
    yield from [*whole[1], *second] * after
    backwards = [whole[c] for _ in range(k + 1) for c in (1, 0)]
    yield from (work for each in backwards[: k + 1] for work in each)
    yield from (each[0] for each in backwards[k + 1 :])
    waiting = [each[1] for each in backwards[k + 1 :]] + [whole[0][1]] * after
    assert halves * 2 in (k, k + 1)
    for number in range(after):
        yield waiting[number]
        yield whole[0][0]
    yield from waiting[after:]


@given(st.integers(1, 9), st.integers(0, 9))
def test_the_order_is_that_of_the_published_steps_whatever_the_sizes(p, more):
    pipe = Pipeline(V, p, 2 * p + more, 2)
    for stage in range(p):
        works = works_of_stage(pipe, stage)
        assert [(work.half, work.chunk) for work in works] == [*by_steps(p, 2 * p + more, stage)]


@given(pipelines())
def test_each_chunk_runs_as_a_stage_of_1f1b_with_as_many_stages_as_chunks(pipe):
    plain = Pipeline(Order.ONE_F_ONE_B, pipe.virtual_stages, pipe.micro_batches)
    for stage, chunk in product(range(pipe.stages), (0, 1)):
        works = [
            w for w in works_of_stage(pipe, stage) if w.chunk == chunk and w.half is not Half.WEIGHTS
        ]
        virtual = virtual_stage(pipe, stage, chunk)
        assert [w._replace(chunk=0) for w in works] == works_of_stage(plain, virtual)


@given(pipelines())
def test_every_stage_does_each_work_once_and_second_parts_in_the_order_of_first_parts(pipe):
    for stage in range(pipe.stages):
        works = works_of_stage(pipe, stage)
        assert len(works) == pipe.works
        assert set(works) == {*product(Half, range(pipe.micro_batches), (0, 1))}
        first, second = (
            [work[1:] for work in works if work.half is phase]
            for phase in (Half.BACKWARD, Half.WEIGHTS)
        )
        assert first == second


# ----------------------------------------------------------------------------- how long it takes
@given(pipelines())
def test_every_stage_idles_as_published_where_forward_and_first_part_take_equally_long(pipe):
    run = timeline(pipe)
    assert bubble(pipe) == published(pipe)
    assert run.makespan == makespan(pipe)
    assert all(run.bubble(stage) == bubble(pipe) for stage in range(pipe.stages))
    assert max(run.idle(stage) for stage in range(pipe.stages)) == run.idle(0) == bubble_repeated(pipe)
    assert run.bubble(0) / ideal(pipe) == bubble_of_ideal(pipe) == repeated_of_ideal(pipe)
    assert run.bubble(0) / run.makespan == bubble_of_makespan(pipe)


def test_where_some_time_is_a_symbol_it_idles_as_published():
    b, w = symbols("b w", positive=True)
    pipe = Pipeline(V, 3, 6, 2, 1, b + w, of_weights=w)
    assert expand(bubble(pipe) - published(pipe)) == 0


@given(pipelines(equal=False))
def test_in_other_times_it_idles_otherwise_than_published(pipe):
    """More where a first part is shorter than a forward; less where longer, and the second not."""
    (b, w), f = pipe.backward_times, pipe.forward
    assume(pipe.stages > 1 and b != f)
    with pytest.raises(ValueError, match="no closed form of dualpipev; see timeline"):
        bubble(pipe)
    counted = timeline(pipe).bubble(0)
    if b < f:
        assert counted > published(pipe)
    elif w <= f:
        assert counted < published(pipe)


@given(st.integers(2, 6), TIMES, TIMES)
def test_where_the_second_part_is_longer_it_idles_more_than_published(p, f, more):
    pipe = Pipeline(V, p, 2 * p, 2, f, 2 * f + more, of_weights=f + more)
    assert timeline(pipe).bubble(0) > published(pipe)


@given(st.integers(1, 5), st.integers(0, 4), TIMES, TIMES)
def test_what_runs_together_passes_on_what_it_makes_when_both_have_ended(p, more, f, w):
    pipe = Pipeline(V, p, 2 * p + more, 2, f, f + w, of_weights=w)
    starts = timeline(pipe).starts
    for stage in range(p):
        works = works_of_stage(pipe, stage)
        for before, work in pairwise(works):
            if before.half is Half.FORWARD and is_one_work(pipe, stage, before, work):
                assert starts[stage][work] == starts[stage][before] + f
                for other in range(p):
                    for late, start in starts[other].items():
                        if waits_for(late, other, pipe) == (stage, before):
                            assert start >= starts[stage][before] + pipe.forward + pipe.backward


# --------------------------------------------------------------------------------- closed forms
def closed_start(pipe, stage, work):
    """When the closed forms start a work; its second part, if it follows, and what waits aside."""
    p, m, after = pipe.stages, pipe.micro_batches, rounds_without(pipe.stages, stage)
    forward = work.half is Half.FORWARD
    number = work.micro_batch
    if work.chunk:
        number -= (stage + 1) * forward
    elif forward:
        number -= p + after if number < p + after else p
    else:
        number += after
    if number < 0:
        start = times.warming_start(pipe, stage, number)
        return start + work.chunk * pipe.forward
    if number < after:
        return times.opening_start(pipe, stage, number) + pipe.backward * forward
    if number >= m:
        return times.last_start(pipe, stage, number)
    if times.closing_round(pipe, stage, number) >= 0:
        return times.closing_start(pipe, stage, number, work.chunk)
    first_two = work.chunk != forward
    start = times.steady_start(pipe, stage, number) + (0 if first_two else times.together(pipe))
    has_forward = not first_two or number < m - p
    return start + pipe.forward * (has_forward and not forward)


@given(pipelines())
def test_the_closed_forms_keep_what_works_need_and_the_order_of_each_stage(pipe):
    run = timeline(pipe)
    closed = [
        {w: closed_start(pipe, k, w) for w in works_of_stage(pipe, k) if w.half is not Half.WEIGHTS}
        for k in range(pipe.stages)
    ]
    for stage, own in enumerate(closed):
        now = 0
        for work in works_of_stage(pipe, stage):
            start = own.get(work, now)
            assert run.starts[stage][work] <= start
            assert now <= start
            now = start + pipe.durations[work.half]
        assert now <= makespan(pipe)
        ended = times.all_first_parts_ended(pipe, stage)
        assert max(own.values()) + pipe.backward_times[0] == ended
        assert now == ended + (stage + 1) * pipe.of_weights


# ------------------------------------------------------------------------------------ what it holds
def held(pipe, stage, size, waiting):
    """What a stage holds after each of its works."""
    change = {Half.FORWARD: size, Half.BACKWARD: waiting - size, Half.WEIGHTS: -waiting}
    return accumulate(change[work.half] for work in works_of_stage(pipe, stage))


@given(pipelines())
def test_every_stage_holds_one_more_than_there_are_chunks(pipe):
    for stage in range(pipe.stages):
        assert timeline(pipe).in_flight(stage) == in_flight(pipe, stage) == pipe.virtual_stages + 1
        most = in_flight(pipe, stage) + waiting_beside(pipe, stage)
        assert max(held(pipe, stage, 1, 1)) == most == pipe.virtual_stages + 1
        assert max(held(pipe, stage, 0, 1)) <= stage + 1
        for chunk in (0, 1):
            signs = [
                {Half.FORWARD: 1, Half.BACKWARD: -1, Half.WEIGHTS: 0}[work.half]
                for work in works_of_stage(pipe, stage)
                if work.chunk == chunk
            ]
            after = pipe.virtual_stages - 1 - virtual_stage(pipe, stage, chunk)
            assert max(accumulate(signs)) == after + 1


@given(pipelines(), st.integers(0, 9), SIZES, SIZES, SIZES)
def test_the_fullest_moment_is_that_of_any_number_of_micro_batches(pipe, more, sizes, waiting, over):
    passing = [max(pair) + extra for *pair, extra in zip(sizes, waiting, over, strict=True)]
    longer = Pipeline(V, pipe.stages, least_micro_batches(pipe) + more, 2)
    for stage in range(pipe.stages):
        change = {
            Half.FORWARD: sizes,
            Half.BACKWARD: [w - s for s, w in zip(sizes, waiting, strict=True)],
        }
        change[Half.WEIGHTS] = [-w for w in waiting]
        now = most = 0
        for phase, _, chunk in works_of_stage(longer, stage):
            if phase is Half.BACKWARD:
                most = max(most, now - sizes[chunk] + passing[chunk])
            now += change[phase][chunk]
            most = max(most, now)
        assert now == 0
        assert fullest_in_order(pipe, stage, sizes, waiting, passing) == most


@given(pipelines(), st.integers(0, 9), *[SIZES] * 4)
def test_what_a_chunk_keeps_once_is_there_while_any_micro_batch_is(
    pipe, more, sizes, waiting, over, once
):
    passing = [max(pair) + extra for *pair, extra in zip(sizes, waiting, over, strict=True)]
    interleaved = Pipeline(Order.INTERLEAVED, pipe.stages, pipe.stages * (1 + more % 3), 2)
    longer = Pipeline(V, pipe.stages, least_micro_batches(pipe) + more, 2)
    for of, run, later, during in (
        (pipe, longer, waiting, passing),
        (interleaved, interleaved, [0, 0], sizes),
    ):
        for stage in range(run.stages):
            kept, waits = [0, 0], [0, 0]  # micro-batches of each chunk

            def there(kept=kept, waits=waits, later=later):
                each = zip(kept, sizes, waits, later, once, strict=True)
                return sum(k * size + w * wait + (k + w > 0) * one for k, size, w, wait, one in each)

            most = 0
            for phase, _, chunk in works_of_stage(run, stage):
                kept[chunk] += phase is Half.FORWARD
                work = during[chunk] - sizes[chunk] if phase is Half.BACKWARD else 0
                most = max(most, there(), there() + work)
                kept[chunk] -= phase is Half.BACKWARD
                waits[chunk] += (phase is Half.BACKWARD) * run.in_two_parts - (phase is Half.WEIGHTS)
                most = max(most, there())
            assert fullest_in_order(of, stage, sizes, later, during, once) == most


@given(st.sampled_from([Order.ZB_H1, Order.ZB_H2]), st.integers(1, 5), *[st.integers(0, 9)] * 3)
def test_counted_the_fullest_moment_of_zero_bubble_orders_is_their_closed_form(
    kind, stages, size, waiting, more
):
    pipe = Pipeline(kind, stages, enough(kind, stages, 1))
    passing = max(size, waiting) + more
    for stage in range(stages):
        closed = fullest_in_two_parts(pipe, stage, size, waiting, passing)
        counted = fullest_in_order(pipe, stage, [size], [waiting], [passing])
        assert counted == closed


@given(pipelines())
def test_stages_send_what_their_neighbours_need_and_the_last_nothing_to_itself(pipe):
    sent = [0] * pipe.stages
    for stage in range(pipe.stages):
        for work in works_of_stage(pipe, stage):
            need = waits_for(work, stage, pipe)
            if need and need[0] != stage:
                sent[need[0]] += 1
    assert sent == [boundary_sends(pipe, stage) for stage in range(pipe.stages)]


@pytest.mark.parametrize(
    ("pipe", "words"),
    [
        (Pipeline(V, 4, 7, 2), "7 micro-batches: dualpipev on 4 stages needs 8"),
        (Pipeline(V, 4, 8), "dualpipev has two chunks per stage, not 1"),
        (Pipeline(V, 4, 8, 3), "dualpipev has two chunks per stage, not 3"),
        (Pipeline(V, 2, 4, 2, 1, 1, of_weights=1), "times 1, 0, 1: each must be more than 0"),
    ],
)
def test_pipelines_without_such_a_schedule_are_refused(pipe, words):
    with pytest.raises(ValueError, match=words):
        timeline(pipe)


@pytest.mark.parametrize("stages", range(2, 12, 2))
def test_a_stage_of_a_v_has_the_chunks_of_a_device_of_dualpipe_and_of_its_mirror_image(stages):
    """Of p stages device d has stage d of one direction, and stage p - 1 - d of the other."""
    pipe = Pipeline(V, stages // 2, stages, 2)
    for stage in range(stages // 2):
        chunks = {virtual_stage(pipe, stage, chunk) for chunk in (0, 1)}
        assert chunks == {stage, stages - 1 - stage}


# ------------------------------------------------------------- the claims, and wrong rules
B9, B10 = proofs.dual_pipe_v_idles, proofs.dual_pipe_v_holds


def shifted(function, by):
    """The rule with another result, by as many of its first argument."""
    return lambda first, *args: function(first, *args) + by(first)


def forwards(number):
    return lambda pipe: number * pipe.forward


def parts(number):
    return lambda pipe: number * pipe.of_weights


def more(number):
    return lambda _: number


MUTANTS = [
    ("bubble", shifted(bubble, forwards(1)), [B9]),
    ("bubble", shifted(bubble, forwards(-1)), [B9]),
    ("bubble_repeated", shifted(bubble_repeated, forwards(-1)), [B9]),
    ("warming_start", shifted(times.warming_start, forwards(1)), [B9]),
    ("warming_start", shifted(times.warming_start, forwards(-1)), [B9]),
    ("opening_start", shifted(times.opening_start, parts(1)), [B9]),
    ("opening_start", shifted(times.opening_start, parts(-1)), [B9]),
    ("steady_start", shifted(times.steady_start, parts(1)), [B9]),
    ("steady_start", shifted(times.steady_start, parts(-1)), [B9]),
    ("closing_start", shifted(times.closing_start, parts(1)), [B9]),
    ("closing_start", shifted(times.closing_start, parts(-1)), [B9]),
    ("last_start", shifted(times.last_start, forwards(1)), [B9]),
    ("last_start", shifted(times.last_start, forwards(-1)), [B9]),
    ("rounds_without", shifted(rounds_without, more(1)), [B9]),
    ("rounds_without", shifted(rounds_without, more(-1)), [B9, B10]),
    ("forward_of_first", shifted(dual_pipe.forward_of_first, more(1)), [B9, B10]),
    ("backward_of_first", shifted(dual_pipe.backward_of_first, more(-1)), [B9, B10]),
    ("forward_of_second", shifted(dual_pipe.forward_of_second, more(1)), [B9, B10]),
    ("backward_of_second", shifted(dual_pipe.backward_of_second, more(1)), [B9, B10]),
    ("weights_done", shifted(spec.weights_done, more(-1)), [B9, B10]),
    ("weights_done", shifted(spec.weights_done, more(1)), [B9]),
    ("delay", shifted(spec.delay, more(1)), [B9]),
    ("in_flight", shifted(in_flight, more(-1)), [B10]),
    ("boundaries", shifted(idle_and_held.boundaries, more(1)), [B10]),
    ("virtual_stage", lambda pipe, stage, chunk: chunk * pipe.stages + stage, [B10]),
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
    for module in (dual_pipe, spec, idle_and_held, times, proofs, timetable):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, wrong)
    with pytest.raises(KernelError, match="the solver says sat"):
        claim(Kernel("B"))
