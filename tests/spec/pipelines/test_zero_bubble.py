"""Backward in two parts: orders executed by their dependencies alone, beside the closed forms."""

from fractions import Fraction
from itertools import accumulate, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.pipelines import zero_bubble as proofs
from proofs.pipelines import zero_bubble_limits as limits
from proofs.pipelines import zero_bubble_timetable as timetables
from proofs.trusted.kernel import Kernel, KernelError
from spec.pipelines import idle_and_held, zero_bubble
from spec.pipelines import pipeline as spec
from spec.pipelines.idle_and_held import (
    bubble,
    bubble_of_ideal,
    bubble_of_makespan,
    bubble_repeated,
    fullest_in_two_parts,
    ideal,
    in_flight,
    makespan,
    repeated_of_ideal,
    warm_up_start,
)
from spec.pipelines.pipeline import (
    STRETCH,
    Half,
    Order,
    Pipeline,
    delay,
    least_micro_batches,
    warm_up,
    weights_done,
    works_of_stage,
)
from spec.pipelines.timeline import timed, timeline, waits_for
from spec.pipelines.zero_bubble import first_part_start, paired_forward_start, second_part_start
from tests.support.examples import few
from tests.support.pipes import boundary_sends, enough

TIMES = st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=9)
LETTER = {Half.FORWARD: "F", Half.BACKWARD: "B", Half.WEIGHTS: "W"}


@st.composite
def pipelines(draw, kinds=tuple(STRETCH)):
    kind, stages = draw(st.sampled_from(kinds)), draw(st.integers(1, 6))
    micro_batches = enough(kind, stages, draw(st.integers(1, 16)))
    weights = draw(TIMES)
    return Pipeline(
        kind, stages, micro_batches, 1, draw(TIMES), draw(TIMES) + weights, of_weights=weights
    )


def closed_starts(pipe, stage):
    """When the timetable of closed forms starts each work of a stage."""

    def start(work):
        unit = work.micro_batch
        if work.half is Half.WEIGHTS:
            return second_part_start(pipe, stage, unit)
        if work.half is Half.BACKWARD:
            return first_part_start(pipe, stage, unit)
        early = unit <= warm_up(pipe, stage)
        return (warm_up_start if early else paired_forward_start)(pipe, stage, unit)

    return {work: start(work) for work in works_of_stage(pipe, stage)}


def held(pipe, stage, size, waiting):
    """What a stage holds after each of its works."""
    change = {Half.FORWARD: size, Half.BACKWARD: waiting - size, Half.WEIGHTS: -waiting}
    return accumulate(change[work.half] for work in works_of_stage(pipe, stage))


@given(pipelines())
def test_a_step_takes_as_long_as_the_closed_form_says_whatever_the_times(pipe):
    run = timeline(pipe)
    assert run.makespan == makespan(pipe)
    assert all(run.bubble(stage) == bubble(pipe) for stage in range(pipe.stages))
    assert run.bubble(0) / ideal(pipe) == bubble_of_ideal(pipe)
    assert run.bubble(0) / run.makespan == bubble_of_makespan(pipe)


@given(pipelines())
def test_from_its_own_first_start_the_first_stage_idles_longest_and_as_long_as_is_said(pipe):
    run = timeline(pipe)
    idle = [run.idle(stage) for stage in range(pipe.stages)]
    assert max(idle) == idle[0] == bubble_repeated(pipe)
    assert idle[0] / ideal(pipe) == repeated_of_ideal(pipe)


@given(pipelines(), st.integers(2, 4))
def test_steps_in_a_row_take_as_long_each_as_the_first_stage_from_its_first_start(pipe, steps):
    """Each stage does its works of a step, and goes on with those of the next."""
    orders = [
        [
            work._replace(micro_batch=work.micro_batch + step * pipe.micro_batches)
            for step in range(steps)
            for work in works_of_stage(pipe, stage)
        ]
        for stage in range(pipe.stages)
    ]
    each = ideal(pipe) + bubble_repeated(pipe)
    assert timed(orders, pipe).makespan <= makespan(pipe) + (steps - 1) * each


@given(pipelines())
def test_the_closed_forms_keep_what_works_need_and_the_order_of_each_stage(pipe):
    starts = [closed_starts(pipe, stage) for stage in range(pipe.stages)]
    run, end = timeline(pipe), makespan(pipe)
    for stage, own in enumerate(starts):
        now = 0
        for work, start in own.items():
            assert start >= now
            need = waits_for(work, stage, pipe)
            if need:
                assert starts[need[0]][need[1]] + pipe.durations[need[1].half] <= start
            now = start + pipe.durations[work.half]
        assert now <= end
        assert all(run.starts[stage][work] <= start for work, start in own.items())


@given(pipelines(), st.integers(0, 9), st.integers(0, 9))
def test_a_stage_holds_as_much_as_the_closed_form_says(pipe, size, waiting):
    run = timeline(pipe)
    for stage in range(pipe.stages):
        most = fullest_in_two_parts(pipe, stage, size, waiting, max(size, waiting))
        assert max(held(pipe, stage, size, waiting)) == most
        assert max(held(pipe, stage, 1, 1)) == least_micro_batches(pipe)  # as many on every stage
        assert run.in_flight(stage) == in_flight(pipe, stage)


@given(pipelines())
def test_every_stage_does_each_work_once_and_second_parts_in_turn(pipe):
    for stage in range(pipe.stages):
        works = works_of_stage(pipe, stage)
        assert len(works) == pipe.works
        assert {(w.half, w.micro_batch) for w in works} == {
            *product(Half, range(pipe.micro_batches)),
        }
        for phase in Half:
            turns = [work.micro_batch for work in works if work.half is phase]
            assert turns == sorted(turns)


@given(pipelines([Order.ZB_H1]))
def test_without_second_parts_zb_h1_is_1f1b_and_its_messages_are_the_same(pipe):
    plain = Pipeline(Order.ONE_F_ONE_B, pipe.stages, pipe.micro_batches)
    for stage in range(pipe.stages):
        works = [work for work in works_of_stage(pipe, stage) if work.half is not Half.WEIGHTS]
        assert works == works_of_stage(plain, stage)
        assert boundary_sends(pipe, stage) == boundary_sends(plain, stage)


def test_zb_h1_is_as_worked_out_by_hand():
    """The first stage never puts a second part off; the last of four does, for three backwards."""
    pipe = Pipeline(Order.ZB_H1, 4, 6)
    said = [
        [f"{LETTER[w.half]}{w.micro_batch + 1}" for w in works_of_stage(pipe, stage)]
        for stage in (0, 3)
    ]
    first, last = map(" ".join, said)
    steady = "F4 B1 W1 F5 B2 W2 F6 B3 W3"
    assert first == f"F1 F2 F3 {steady} B4 W4 B5 W5 B6 W6"
    assert last == "F1 B1 F2 B2 F3 B3 F4 B4 W1 F5 B5 W2 F6 B6 W3 W4 W5 W6"


def test_published_idle_times_are_found_in_equal_times():
    """A third of 1F1B's with ZB-H1, and none between steps with ZB-H2 (arXiv 2401.10241, 2.3)."""
    plain = Pipeline(Order.ONE_F_ONE_B, 8, 24, 1, 1, 2)
    assert bubble(Pipeline(Order.ZB_H1, 8, 24)) * 3 == bubble(plain)
    assert bubble_repeated(Pipeline(Order.ZB_H2, 8, 24)) == 0
    assert bubble(Pipeline(Order.ZB_H2, 8, 24)) == 7  # forwards, until the last stage starts


@pytest.mark.parametrize(
    ("pipe", "words"),
    [
        (Pipeline(Order.ZB_H1, 4, 3), "3 micro-batches: zb-h1 on 4 stages needs 4"),
        (Pipeline(Order.ZB_H2, 4, 6), "6 micro-batches: zb-h2 on 4 stages needs 7"),
        (Pipeline(Order.ZB_H1, 2, 4, 2), "one chunk per stage"),
        (Pipeline(Order.ZB_H1, 2, 4, 1, 1, 1, of_weights=1), "times 1, 0, 1: each must be more than 0"),
    ],
)
def test_pipelines_without_such_a_schedule_are_refused(pipe, words):
    with pytest.raises(ValueError, match=words):
        timeline(pipe)


def test_with_fewer_micro_batches_the_closed_forms_do_not_hold(monkeypatch):
    monkeypatch.setattr(spec, "require_schedule", lambda pipe: None)
    pipe = Pipeline(Order.ZB_H1, 3, 2)
    orders = [works_of_stage(pipe, stage) for stage in range(3)]
    assert timed(orders, pipe).makespan > makespan(pipe)


# ------------------------------------------------------------- the claims, and wrong closed forms
B6, B7 = proofs.zb_h1_idles, proofs.zb_h2_idles
B8 = limits.two_parts_hold_as_much_on_every_stage


def shifted(function, by):
    """The rule with another result."""
    return lambda pipe, *args: function(pipe, *args) + by(pipe)


MUTANTS = [
    ("warm_up", shifted(warm_up, lambda _: -1), [B6, B7, B8]),
    ("warm_up", shifted(warm_up, lambda _: 1), [B6, B7, B8]),
    ("delay", shifted(delay, lambda _: 1), [B6, B7, B8]),
    ("delay", lambda pipe, stage: 0, [B6, B7, B8]),
    ("weights_done", shifted(weights_done, lambda _: 1), [B6, B7, B8]),
    ("bubble", shifted(bubble, lambda pipe: pipe.forward), [B6, B7]),
    ("bubble", shifted(bubble, lambda pipe: -pipe.forward), [B6, B7]),
    ("bubble_repeated", shifted(bubble_repeated, lambda pipe: pipe.forward), [B6, B7]),
    ("bubble_repeated", shifted(bubble_repeated, lambda pipe: -pipe.forward), [B6, B7]),
    ("first_part_start", shifted(first_part_start, lambda pipe: pipe.forward), [B6, B7]),
    ("paired_forward_start", shifted(paired_forward_start, lambda pipe: -pipe.forward), [B6, B7]),
    ("second_part_start", shifted(second_part_start, lambda pipe: -pipe.of_weights), [B6, B7]),
    ("least_micro_batches", shifted(least_micro_batches, lambda _: -1), [B6, B7, B8]),
    ("fullest_in_two_parts", shifted(fullest_in_two_parts, lambda _: -1), [B8]),
    ("fullest_in_two_parts", shifted(fullest_in_two_parts, lambda _: 1), [B8]),
]


@pytest.mark.parametrize(
    ("name", "wrong", "claim"),
    few(
        pytest.param(name, wrong, claim, id=f"{name}-{i}-{claim.__name__}")
        for i, (name, wrong, claims) in enumerate(MUTANTS)
        for claim in claims
    ),
)
def test_wrong_rules_and_closed_forms_are_not_proved(monkeypatch, name, wrong, claim):
    for module in (spec, idle_and_held, zero_bubble, proofs, limits, timetables):
        monkeypatch.setattr(module, name, wrong, raising=False)
    with pytest.raises(KernelError, match="the solver says sat"):
        claim(Kernel("B"))
