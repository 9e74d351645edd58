"""Steps that clip by the norm of all gradients, run on buffers beside one device."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from psem_model.check.files import check_file
from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.plan import Plan
from psem_model.predict.read import read
from spec.devices.mesh import ALL_WEIGHTS
from tests.support.examples import examples, few
from tests.support.steps import text_of

SHAPE = {"layers": "2", "hidden": "12", "heads": "6", "vocabulary": "6", "sequence": "8"}
MESHES = {
    "tp": "2",
    "zero1 * tp+sp": "2x2",
    "zero1+all * tp * cp": "2x2x2",
    "zero3 * ep": "2x2",
    "zero-offload * tp": "2x2",
    "dp * tp * pp": "2x2x2",
    "zero1 * pp": "2x4",
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """The plan of a file of a text."""
    path = tmp_path_factory.mktemp("norms") / "step.toml"

    def of(text, devices, **shape) -> Plan:
        path.write_text(text)
        experts = {"experts": "2", "chosen": "1"} if "router" in text else {}
        model = {**SHAPE, "block": "gpt", **experts, **shape}
        return read(Asked("simulate", schedule=str(path), devices=devices, accumulate="2", model=model))

    return of


@pytest.mark.parametrize(
    ("strategy", "devices", "arithmetic"),
    few((*mesh, arithmetic) for arithmetic in ("modular", "float64") for mesh in MESHES.items()),
)
def test_a_derived_step_that_clips_trains_as_one_device_and_sends_what_is_predicted(
    strategy, devices, arithmetic, planned
):
    plan = planned(text_of(strategy, "gpt", clip=True), devices, layers="4")
    found = measured(plan, Run(2, arithmetic, 0))
    assert found.as_predicted, (found.unequal, found.divergence, found.no)


@pytest.mark.parametrize("strategy", ["tp", "zero1 * tp+sp", "zero1 * pp"])
def test_without_the_clip_it_is_another_run(strategy, planned):
    """The norm is large enough to matter: a run that does not clip diverges from one that does."""
    lines = text_of(strategy, "gpt", clip=True).splitlines()
    text = "\n".join(line for line in lines if 'op = "clip"' not in line)
    found = measured(planned(text, MESHES[strategy], layers="4"), Run(1, "float64", 0))
    assert not found.matches
    assert found.no


@pytest.mark.parametrize(
    ("strategy", "axis"), [("zero1 * tp+sp", "tensor"), ("zero1+all * tp * cp", "context")]
)
def test_a_norm_is_one_number_along_each_axis_that_cuts_something(strategy, axis, planned):
    sent = {
        clip: planned(text_of(strategy, "gpt", clip=clip), MESHES[strategy]).busiest.elements
        for clip in (False, True)
    }
    clipping = planned(text_of(strategy, "gpt", clip=True), MESHES[strategy]).busiest
    numbers = [moved for moved in clipping.moved if moved.what == "norm"]
    assert sent[True] - sent[False] == sum(moved.elements for moved in numbers)
    assert any(axis in moved.axes for moved in numbers)
    for moved in numbers:
        devices = 2 ** len(moved.axes)
        assert (moved.elements, moved.bytes) == (2 * (devices - 1), 8 * (devices - 1))


NORMS = re.compile(r'(source = "norm", axes = )\[[^]]*\]')
AXES = ["batch", "tensor", ALL_WEIGHTS]


ORDERS = [tuple(some) for n in range(4) for some in permutations(AXES, n)]


@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    axes=st.tuples(*[st.sampled_from(ORDERS)] * 2),
    strategy=st.sampled_from(["zero1 * tp", "zero1 * tp+sp"]),
)
def test_a_norm_over_any_axes_is_accepted_only_if_it_trains_as_one_device(axes, strategy, planned):
    of_groups = iter(axes)
    text = NORMS.sub(
        lambda found: f"{found[1]}{[*next(of_groups)]}".replace("'", '"'),
        text_of(strategy, "gpt", clip=True),
    )
    plan = planned(text, "2x2")
    checked = check_file(plan.text, None, None, None)
    found = measured(plan, Run(1, "modular", 0))
    in_order = all(ALL_WEIGHTS not in of[:-1] for of in axes)
    assert checked.accepted == (found.matches and in_order)


def test_a_norm_that_is_a_mean_over_devices_is_another_run(planned):
    text = NORMS.sub(r'\1["batch"], mean = true', text_of("zero1", "gpt", clip=True))
    found = measured(planned(text, "2"), Run(1, "modular", 0))
    assert not found.matches
    assert found.no
