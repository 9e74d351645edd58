"""What was recorded of PyTorch is what psem derives, or differs by a formula."""

import json
from dataclasses import fields, replace

import pytest

from conformance.cases import cases
from conformance.figures import Figure
from conformance.logs import FOLDER, file_of, log_of, recorded
from conformance.plans import figures_of, planned, product_of
from conformance.profiles import changes
from conformance.rows import EQUAL_WITHIN, Verdict, rows_of
from conformance.shapes import Configured, Mlp
from conformance.typed import CONFIG, can_be_typed, options_of, shown, strategy_of
from psem_model.commands.predict import predict
from psem_model.predict.asked import OF_MODELS, Asked, asked
from psem_model.predict.read import read
from tests.support.examples import few

CASES = cases()
SMALL = 2**11  # bytes of a log, all in all
BY_NAME = {case.name: case for case in CASES}
FEW = [BY_NAME[name] for name in (
    "ddp, mlp 7-13-5, batch 4, bucket 400",
    "zero redundancy, mlp 7-13-5, batch 4",
    "fsdp2, mlp 7-13-5, batch 4, mixed",
    "hsdp, mlp 7-13-5, replica 2 x shard 2",
    "tp+sp, decoder 2x16x24 4/4 32, tensor 2",
    "fsdp2 x tp, decoder 3x24x40 4/2 30, batch 2 x tensor 2",
    "pp, decoder 3x24x40 4/2 30, pipe 2, micro steps 4, order 1f1b",
    "cp, fused decoder 3x24x40 4/2 30, context 2, rotate all-to-all",
    "cp, fused decoder 3x24x40 4/2 30, context 4, rotate all-gather",
    "zero redundancy, mlp 12-20-20-4 without biases, batch 4, views",
    "fsdp2, mlp 7-13-5, batch 4, micro steps 3, no_sync",
    "fsdp2, decoder 2x16x24 4/4 32, batch 4, offload",
    "fsdp2, gpt 3x28x56 7/7 37, batch 5, mixed, micro steps 2, offload",
    "fsdp2 x tp, decoder 2x48x36 8/2 29, batch 3 x tensor 2, samples 1",
    "fsdp2 x tp, decoder 2x16x24 4/4 30, batch 2 x tensor 4, whole words",
    "tp, decoder 2x16x30 4/4 32, tensor 4",
    "tp, decoder 2x16x9 4/4 32, tensor 4",
    "fsdp2 x pp, decoder 3x24x40 4/2 30, pipe 2 x batch 2, micro steps 4, order 1f1b",
    "fsdp2 x pp, decoder 8x16x24 2/2 20, pipe 2 x batch 2, micro steps 4, no reshard, order gpipe",
    "zero redundancy x pp, decoder 3x24x40 4/2 30, pipe 2 x batch 2, micro steps 3, order 1f1b",
    "ddp x pp, decoder 3x24x40 4/2 30, pipe 2 x batch 2, micro steps 3, order 1f1b",
    "fsdp2 x tp x pp, decoder 3x24x40 4/2 30, pipe 2 x batch 2 x tensor 2, micro steps 3, order 1f1b",
    "fsdp2 x tp, decoder 3x24x40 4/2 30, batch 2 x tensor 2, mixed",
    "fsdp2 x tp+sp, fused decoder 3x20x27 5/5 35, batch 2 x tensor 5, micro steps 3, no_sync",
    "fsdp2 x tp+sp, fused decoder 2x16x24 4/4 32, batch 2 x tensor 2, mixed, micro steps 2, cut loss",
    "zero redundancy, decoder 2x16x24 4/4 32, batch 2, micro steps 3, no_sync",
    "fsdp2, decoder 2x16x24 4/4 32, batch 4, micro steps 3, no_sync, offload",
    "fsdp2 x cp, fused decoder 2x16x24 4/4 32, batch 2 x context 2, rotate all-to-all",
    "hsdp x cp, fused decoder 3x24x40 4/2 30, context 2 x batch 2, rotate all-to-all",
    "fsdp2 x cp, fused decoder 3x24x40 4/2 30, batch 2 x context 2, mixed, rotate all-to-all",
    "fsdp2 x pp, decoder 5x16x24 2/2 20, pipe 2 x batch 2, micro steps 2, order interleaved, chunks 2",
    "pp, decoder 9x28x56 7/7 37, pipe 3, samples 1, micro steps 6, order interleaved, chunks 2",
)]  # fmt: skip


def wrong(case):
    """The rows of a case that fail, and those that differ and nobody says why."""
    rows = rows_of(case)
    failing = [row for row in rows if row.verdict is Verdict.FAILS]
    return failing + [row for row in rows if row.verdict is not Verdict.EQUAL and not row.reason]


def test_no_two_cases_have_a_name():
    assert len(BY_NAME) == len(CASES)


def test_what_was_recorded_is_the_cases_and_no_others():
    assert {file.name for file in FOLDER.iterdir()} == {file_of(c.strategy).name for c in CASES}
    for strategy in {case.strategy for case in CASES}:
        assert recorded(strategy)["cases"].keys() == {c.name for c in CASES if c.strategy == strategy}


def test_what_was_recorded_is_small():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < SMALL * len(CASES)


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.name)
def test_a_row_of_each_strategy_is_derived(case):
    assert rows_of(case)
    assert not wrong(case)


@pytest.mark.slow
def test_every_row_is_equal_or_is_under_a_profile_with_a_reason():
    assert not [row for case in CASES for row in wrong(case)]


@pytest.mark.slow
def test_a_name_alone_gives_every_row_but_of_buckets_and_units_that_a_user_chose():
    more = [row for case in CASES for row in rows_of(case) if row.needs_file]
    assert {(row.figure.what, *changes(row.case)) for row in more} == {
        ("all_reduce", "buckets"),
        ("all_gather", "held_units"),
        ("all_gather", "units", "held_units"),
    }
    assert all(row.case.bucket or row.case.held or row.case.shared_words for row in more)
    assert sum(row.case.bucket > 0 for row in more) <= 11


def test_parameters_are_those_of_one_process_wherever_they_are_in_one_precision():
    for case in CASES:
        far = log_of(case).difference
        assert (far is None) is not case.has_numbers
        assert far is None or far <= EQUAL_WITHIN


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.name)
def test_a_row_fails_if_anything_recorded_on_any_rank_is_more(case):
    for row in rows_of(case):
        for at, value in enumerate(row.recorded):
            more = (value[0] + 1, value[1]) if row.figure.axis else value + 1
            damaged = replace(row, recorded=(*row.recorded[:at], more, *row.recorded[at + 1 :]))
            assert damaged.verdict is Verdict.FAILS


TYPED = [case for case in CASES if can_be_typed(case)]


def as_typed(case, folder):
    """The plan of the command that is typed for a case."""
    if isinstance(case.model, Configured):
        (folder / CONFIG).write_text(json.dumps(case.model.content))
    given = [strategy_of(case), *options_of(case, str(folder / CONFIG))]
    params = predict.make_context("predict", given).params
    known = {f.name for f in fields(Asked)} | {*OF_MODELS}
    return read(asked("predict", {name: value for name, value in params.items() if name in known}))


@pytest.mark.parametrize("strategy", {case.strategy: None for case in TYPED})
def test_the_plan_of_a_case_is_the_one_that_a_user_types(strategy, tmp_path):
    for case in few(case for case in TYPED if case.strategy == strategy):
        assert figures_of(as_typed(case, tmp_path).fullest) == figures_of(planned(case).profile.fullest)


def test_all_but_perceptrons_and_sizes_that_a_user_chose_can_be_typed():
    others = [case for case in CASES if case not in TYPED]
    chosen = [case for case in others if case.bucket or case.held or case.shared_words]
    assert all(isinstance(case.model, Mlp) for case in others if case not in chosen)
    assert {case.strategy for case in TYPED} == {case.strategy for case in CASES}
    strategies = {case.strategy for case in CASES if not isinstance(case.model, Configured)}
    assert {case.strategy for case in shown()} == strategies


WAITING = [case for case in CASES if not case.each and case.ranks < 5]


@pytest.mark.parametrize("case", WAITING, ids=lambda case: case.name)
def test_gradients_that_wait_are_of_the_plain_strategy_by_a_name(case):
    profile = planned(case).profile
    plain = replace(profile, product=product_of(replace(case, each=True)))
    assert figures_of(profile.fullest) == figures_of(plain.fullest)


def test_traffic_that_was_recorded_and_that_nobody_derives_fails():
    (row, *_) = rows_of(FEW[0])
    nothing = ((0, 0),) * 4
    stray = replace(
        row,
        figure=Figure("broadcast", "batch"),
        recorded=((1, 4),) * 4,
        textbook=nothing,
        profile=nothing,
    )
    assert stray.verdict is Verdict.FAILS
