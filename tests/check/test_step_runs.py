"""Steps of several groups of weights that are rejected: each comes with a run, or says why not."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proofs.plans.norms import every_slice_counts_once
from psem_model.check.step_runs import small_step_run
from psem_model.reading.schedules import opened
from psem_model.reading.step_reader import read_step
from psem_model.text.errors import BadInput
from psem_model.text.figures import divergence_text
from spec.checking.steps import check_step
from spec.devices.layouts import LayoutError
from tests.support.damaged_steps import changed_lines, is_of_norm, with_another_norm
from tests.support.examples import examples, few
from tests.support.schemas import validator
from tests.support.steps import text_of

STRATEGIES = (
    "zero1 * tp",
    "zero1 * tp+sp",
    "zero1+all * tp * cp",
    "zero3 * ep",
    "dp * tp * pp",
    "zero-offload * pp",
    "fsdp * cp * ep",
)
TEXTS = {
    (strategy, block): text_of(strategy, block, clip=True)
    for strategy in STRATEGIES
    for block in ("gpt", "llama")
}
CLIPPED = TEXTS["zero1 * tp", "gpt"]
WRONG = CLIPPED.replace('"active", "d down', '"up", "d down')
OF_ALL = '"batch", "tensor", "weights"'
# rejected though they match: a sum over groups of what is no norm, which nothing reads, and a norm in
# each micro-step, of all that is added by the last
KINDS = ("other weights' norms are summed over weights", "the norm is of the whole step's gradients")


def step_of(text):
    return read_step(opened(text, "step.toml"))[0]


STEPS = {plan: step_of(text) for plan, text in TEXTS.items()}


def why_not(step):
    """Why a step is rejected, but for what the verdict says of its schedules; None if it is not."""
    try:
        check_step(step)
    except LayoutError as error:
        return str(error)
    return None


@pytest.mark.parametrize("plan", few(STEPS))
def test_a_step_that_is_accepted_matches_in_the_small_run(plan):
    check_step(STEPS[plan])
    run = small_step_run(STEPS[plan])
    assert (run.divergence, run.why_not) == (None, "")


@examples(100)
@given(data=st.data(), plan=st.sampled_from([*STEPS]))
def test_a_step_that_is_rejected_for_its_norm_diverges_unless_each_slice_counts_once(data, plan):
    step = data.draw(with_another_norm(STEPS[plan]))
    run, why = small_step_run(step), why_not(step)
    assume(why is not None)
    assert not run.why_not
    if run.divergence is None:
        assert every_slice_counts_once(step) or any(kind in why for kind in KINDS)
    elif not any(is_of_norm(op) for group in step.groups for op in group.schedule.micro_step):
        forgets = any(op.kind.value in ("release", "reset", "broadcast") for op in norms_of(step))
        assert forgets or not every_slice_counts_once(step)


def norms_of(step):
    return [op for group in step.groups for op in group.schedule.finish if is_of_norm(op)]


@pytest.mark.slow
@examples(100)
@given(data=st.data(), plan=st.sampled_from([*STEPS]))
def test_a_file_with_a_line_that_is_wrong_diverges_or_has_slices_that_do_not_fit(data, plan):
    """The bias of keys has no gradient: a softmax does not see what all of its terms have."""
    try:
        step = step_of(data.draw(changed_lines(TEXTS[plan])))
    except BadInput:
        assume(False)
    run, why = small_step_run(step), why_not(step)
    if why is None:
        assert not run.why_not
    else:
        assert run.divergence or run.why_not or "key_bias" in why


def of_changed(tmp_path, old, new, text=CLIPPED):
    """The path of a file of a step that is changed."""
    assert old in text
    path = tmp_path / "step.toml"
    path.write_text(text.replace(old, new))
    return path


def test_psem_check_shows_where_a_step_that_is_rejected_diverges(tmp_path, psem):
    path = of_changed(tmp_path, OF_ALL, '"batch", "weights"')
    code, out, _ = psem("check", path)
    run = small_step_run(step_of(path.read_text()))
    on = "a run that diverges, on 4 devices, batch 2 x tensor 2, 2 micro-steps, in the simulator, "
    where = divergence_text(run.divergence).replace(" of stage 0", "")  # the step has one
    assert code == 1
    assert f"{on}modulo a prime: {where}" in out
    found = json.loads(psem("check", path, "--json")[1])
    validator("check").validate(found)
    assert found["divergence"]["mesh"] == {"batch": 2, "tensor": 2}
    assert (found["divergence"]["micro_steps"], found["no_run"]) == (2, None)
    assert found["divergence"]["has"] != found["divergence"]["single_device"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (OF_ALL, '"tensor", "weights", "batch"', "in the simulator matches a single device"),
        ('by = "gelu"', 'by = "gelu_of_mine"', "apply by gelu_of_mine: expected one of gelu"),
    ],
)
def test_without_a_run_that_diverges_it_says_so(old, new, words, tmp_path, psem):
    path = of_changed(tmp_path, old, new, CLIPPED if old == OF_ALL else WRONG)
    assert words in psem("check", path)[1]
    found = json.loads(psem("check", path, "--json")[1])
    validator("check").validate(found)
    assert found["divergence"] is None
    assert words in found["no_run"]


def test_slices_that_do_not_fit_have_no_run(tmp_path, psem):
    old = '["logits", "next_words(batch b, tensor v)"]'
    new = old.replace(", tensor v", "")
    path = of_changed(tmp_path, old, new, TEXTS["zero1 * tp+sp", "gpt"])
    out = psem("check", path)[1]
    assert "no run, as devices cannot execute it: " in out
    assert "its operands have different positions of v" in out


def test_a_prediction_that_is_refused_shows_the_run_too(tmp_path, psem):
    path = of_changed(tmp_path, OF_ALL, '"batch", "weights"')
    shape = ("--layers", 2, "--hidden", 8, "--heads", 4, "--vocabulary", 6, "--sequence", 4)
    code, _, err = psem("predict", path, "--devices", "2x2", *shape)
    run = small_step_run(step_of(path.read_text()))
    assert code == 1
    assert run.words in err
    assert "matches" not in err


def test_an_accepted_step_has_no_run(tmp_path, psem):
    path = tmp_path / "step.toml"
    path.write_text(CLIPPED)
    found = json.loads(psem("check", path, "--json")[1])
    assert (found["accepted"], found["divergence"], found["no_run"]) == (True, None, None)
