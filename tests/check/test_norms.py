"""A model's gradients are clipped by the norm of all: of each weight once, whatever cuts it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from psem_model.check.words import has as has_of
from psem_model.check.words import needs
from psem_model.text.errors import BadInput
from spec.checking.verdict import check
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Op, Phase
from spec.plans.strategies import STRATEGIES
from tests.support.examples import few
from tests.support.steps import text_of

STATES = ["", "zero1", "zero3", "zero1+all"]
CUTS = ["tp", "tp+sp", "cp", "tp * cp", "tp * ep", "tp+sp * pp", "cp * tp * ep * pp"]
OF_BATCH = '{ op = "all_reduce", source = "norm", axes = ["batch", "tensor", "weights"] }'
OF_BOTH = '{ op = "all_reduce", source = "norm", axes = ["batch", "weights"] }'
TEXT = text_of("zero1 * tp+sp", clip=True)
LINES = TEXT.splitlines()


@pytest.mark.parametrize(("states", "cuts"), few(product(STATES, CUTS)))
def test_a_derived_step_that_clips_is_accepted_as_a_file(states, cuts, checked):
    text = text_of(" * ".join(filter(None, [states, cuts])), "gpt", clip=True)
    assert "clip = true" in text
    assert checked(text).accepted, checked(text).wrong


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ('"batch", "weights"', "needs its sum over tensor too"),
        ('"batch", "tensor"', "the norm is of these weights alone; needs its sum over weights"),
        ('"weights", "tensor", "batch"', "needs weights last"),
    ],
)
def test_a_norm_that_forgets_what_cuts_its_weights_or_other_weights_is_rejected(axes, words, checked):
    wrong = TEXT.replace(OF_BATCH, OF_BATCH.replace('"batch", "tensor", "weights"', axes))
    found = checked(wrong)
    assert not found.accepted
    assert words in found.wrong
    number = found.at
    assert '"norm"' in wrong.splitlines()[number - 1]


def test_the_norm_of_all_weights_is_no_mean(checked):
    found = checked(TEXT.replace(OF_BATCH, OF_BATCH.replace(" }", ", mean = true }")))
    assert "a sum, not a mean" in found.wrong


@pytest.mark.parametrize(("axes", "accepted"), [('"batch", "weights"', False), ('"weights"', True)])
def test_of_one_group_of_weights_a_mean_is_over_devices_alone(axes, accepted, checked):
    text = text_of("zero2 * cp", clip=True)
    assert OF_BOTH in text
    mean = OF_BOTH.replace('"batch", "weights"', axes).replace(" }", ", mean = true }")
    found = checked(text.replace(OF_BOTH, mean if not accepted else f"{OF_BOTH},\n  {mean}"))
    assert not found.wrong
    assert found.accepted is accepted


def test_a_broadcast_along_another_axis_than_its_own_leaves_a_schedule_what_it_is():
    """Whether it is right there, the step says; the verdict is of the schedule's own axes."""
    norm = Op(Kind.BROADCAST, Phase.REDUCE, Buffer.NORM, axes=("tensor",))
    schedule = clipped(schedule_of(STRATEGIES["zero1"]))
    at = [op.kind for op in schedule.finish].index(Kind.CLIP)
    finish = (*schedule.finish[:at], norm, *schedule.finish[at:])
    assert check(replace(schedule, finish=finish), {"batch": 2}, 1).accepted


@pytest.mark.parametrize(
    ("old", "axes", "has", "repaired"),
    [
        (OF_BATCH, '"tensor", "weights"', "own slice", '"batch", "tensor", "weights"'),
        (OF_BOTH, '"batch", "tensor", "weights"', "tensor x the square norm", '"batch", "weights"'),
    ],
)
def test_a_norm_summed_otherwise_than_its_gradients_is_repaired(old, axes, has, repaired, checked):
    at = old.index("axes")
    found = checked(TEXT.replace(old, f"{old[:at]}axes = [{axes}] }}"))
    assert not found.accepted
    (wrong,) = (group for group in found.groups if not group.accepted)
    assert has in has_of(wrong.verdict)
    assert wrong.repair == f"accepted with axes = [{repaired}]"
    assert LINES[wrong.wrong.number - 1].strip().rstrip(",") == old


def test_a_weight_that_no_axis_cuts_counts_once(checked):
    """Along tp the gradient of a norm's scale is whole on every device."""
    text = text_of("zero1 * tp", clip=True)
    assert text.count(OF_BOTH) == 1
    found = checked(text.replace(OF_BOTH, OF_BATCH))
    assert "whole along tensor: its sum counts it once for each device" in found.wrong


def test_weights_of_one_group_lie_alike(checked):
    text = text_of("zero1 * tp", clip=True)
    name = '"attention_norm_scale", '
    moved = text.replace(f"weights = [{name}", "weights = [", 2).replace(
        'weights = ["word_weight"', f'weights = [{name}"word_weight"'
    )
    (start, end) = moved.split("[[states]]", 1)
    assert "needs a group of its own" in checked(f"{start}[[states]]{end}").wrong


def test_every_group_adds_its_norm(checked):
    lines = [line for line in LINES if OF_BOTH not in line and 'into = "norm"' not in line]
    found = checked("\n".join(lines))
    assert not found.accepted
    assert "not theirs" in found.wrong
    assert found.at


def test_a_norm_of_one_micro_step_is_not_that_of_the_step(checked):
    line = f"  {OF_BATCH},\n"
    end = TEXT.index("]\nfinish", TEXT.index("[[states]]"))
    found = checked(TEXT[:end] + line + TEXT[end:])
    assert "of the whole step's gradients" in found.wrong


def test_a_step_that_says_it_clips_and_does_not_is_rejected(checked):
    text = text_of("dp * tp")
    found = checked(text.replace("[cuts]", "[training]\nclip = true\n\n[cuts]", 1))
    assert not found.accepted
    assert all("clipped by" in needs(group.verdict) for group in found.groups)


@pytest.mark.parametrize("training", ['loss = "mean"', "tied = true", "statistics = true"])
def test_what_parts_say_already_or_have_no_lines_for_is_refused_by_name(training, checked):
    with pytest.raises(BadInput, match=rf"training\.{training.split()[0]}"):
        checked(TEXT.replace("clip = true", training))


@pytest.mark.parametrize("axes", ['"tensor"', '"weights"'])
def test_a_broadcast_of_a_norm_before_there_is_one_is_rejected(axes, checked):
    line = f'{{ op = "broadcast", source = "norm", axes = [{axes}] }},'
    wrong = text_of("zero1 * tp", clip=True).replace(
        '  { op = "square_norm"', f'  {line}\n  {{ op = "square_norm"'
    )
    found = checked(wrong)
    assert not found.accepted
    assert "there is no norm yet; needs square_norm before" in found.wrong
    assert wrong.splitlines()[found.at - 1].strip() == line
