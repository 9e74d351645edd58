"""What goes wrong after a few steps, in many micro-steps, or along another axis, is rejected."""

import pytest

from psem_model.audit.schedules import proof_of
from psem_model.reading.schedules import loads
from spec.checking.verdict import check
from spec.numbers.any_size import any_size

# what each backward gets wrong is kept, and taken off again a step later: from the third on it is not
WRONG_FROM_THE_THIRD_STEP = """
axes = ["batch"]
[rest]
activations = { sharded = [] }
[step]
micro_step = [
  { op = "scale", source = "gradients", by = "-1" },
  { op = "accumulate", source = "fresh gradients", into = "gradients" },
  { op = "scale", source = "gradients", by = "-1" },
  { op = "recompute", source = "parameters", into = "view" },
  { op = "forward", source = "view", into = "activations" },
  { op = "backward", source = "view", into = "gradients", axes = ["batch"] },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "scale", source = "gradients", by = "-1" },
  { op = "forward", source = "view", into = "activations" },
  { op = "backward", source = "view", into = "gradients", axes = ["batch"] },
  { op = "scale", source = "gradients", by = "-1" },
  { op = "accumulate", source = "fresh gradients", into = "gradients" },
  { op = "zero", source = "view" },
  { op = "forward", source = "view", into = "activations" },
  { op = "backward", source = "view", into = "fresh gradients", axes = ["batch"] },
  { op = "release", source = "view" },
  { op = "accumulate", source = "fresh gradients", into = "gradients" },
]
finish = []
"""
# backwards of what is not known, of which one takes off the other
UNKNOWN_TAKEN_OFF = """
axes = ["batch"]
[rest]
activations = { sharded = [] }
[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "gradients", axes = ["batch"] },
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "view", into = "fresh gradients", axes = ["batch"] },
  { op = "accumulate", source = "fresh gradients", into = "gradients" },
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "view", into = "fresh gradients", axes = ["batch"] },
  { op = "scale", source = "fresh gradients", by = "-1" },
  { op = "accumulate", source = "fresh gradients", into = "gradients" },
  { op = "release", source = "fresh gradients" },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
]
finish = []
"""
# each micro-step adds the gradient of the one before: that of the last is lost
THE_LAST_IS_LOST = """
axes = ["batch"]
[rest]
activations = { sharded = ["batch"] }
[step]
micro_step = [
  { op = "accumulate", source = "fresh gradients", into = "gradients" },
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "fresh gradients" },
]
finish = [
  { op = "all_reduce", source = "gradients", axes = ["batch"] },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
  { op = "reset", source = "fresh gradients" },
]
"""
# right: a mean over two axes at once
MEAN_OVER_TWO_AXES = """
axes = ["x", "y"]
[training]
loss = "mean"
[rest]
activations = { sharded = ["x", "y"] }
[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "gradients" },
  { op = "all_reduce", source = "gradients", axes = ["x", "y"], mean = true },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
]
finish = []
"""
# each device has its own slice along x, but where it owns one along y: no slices of zeros
SLICES_OF_SLICES = """
axes = ["x", "y"]
[training]
clip = true
[rest]
activations = { sharded = ["x", "y"] }
[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "gradients" },
]
finish = [
  { op = "all_reduce", source = "gradients", axes = ["x", "y"] },
  { op = "zero", source = "fresh gradients" },
  { op = "keep", source = "gradients", into = "fresh gradients", within = ["x"] },
  { op = "keep", source = "gradients", into = "fresh gradients", within = ["y"] },
  { op = "square_norm", source = "fresh gradients", into = "norm" },
  { op = "all_reduce", source = "norm", axes = ["y"] },
  { op = "clip", source = "gradients", by = "norm" },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
  { op = "release", source = "fresh gradients" },
  { op = "release", source = "norm" },
]
"""


def schedule(text):
    return loads(text, "text")


@pytest.mark.parametrize("devices", [2, None])
@pytest.mark.parametrize("text", [WRONG_FROM_THE_THIRD_STEP, UNKNOWN_TAKEN_OFF])
def test_what_is_wrong_after_the_steps_that_are_looked_at_is_rejected(text, devices):
    assert not check(schedule(text), {"batch": devices or any_size("batch")}, 1).accepted


@pytest.mark.slow
def test_what_is_wrong_from_the_third_step_on_is_shown_by_a_run(psem, tmp_path):
    file = tmp_path / "later.toml"
    file.write_text(WRONG_FROM_THE_THIRD_STEP)
    code, out, _ = psem("check", file, "--accumulate", "1")
    assert code == 1
    assert "a run that diverges" in out
    assert "after step 3" in out


@pytest.mark.parametrize("micro_steps", [2, 3, 20, 2000, None])
def test_what_a_micro_step_leaves_to_the_next_one_is_followed(micro_steps):
    number = micro_steps or any_size("micro_steps")
    assert not check(schedule(THE_LAST_IS_LOST), {"batch": 2}, number).accepted


def test_a_mean_over_two_axes_divides_by_both():
    assert check(schedule(MEAN_OVER_TWO_AXES), {"x": any_size("x"), "y": any_size("y")}, 1).accepted


def test_a_norm_of_slices_that_are_not_zero_elsewhere_has_no_proof():
    assert not check(schedule(SLICES_OF_SLICES), {"x": 1, "y": 2}, 1).accepted
    assert proof_of([schedule(SLICES_OF_SLICES)]).why_not
