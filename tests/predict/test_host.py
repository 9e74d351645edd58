"""The host's memory, as a profile says, beside DeepSpeed's own estimates of it.

(DeepSpeed, docs/code-docs/source/memory.rst, and the estimators that it documents: those of
stage_1_and_2.py and stage3.py. What they multiply by to be conservative, is left out.)
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.plan import Plan
from psem_model.predict.read import read as plan_of
from psem_model.reading.placements import placement
from psem_model.reading.products import parse
from psem_model.reading.profiles import read
from spec.models.opaque import Opaque
from spec.models.states import POLICIES, State
from spec.plans.compose import Factor, Product
from tests.support.examples import examples
from tests.support.profiled_plans import MODEL

PROFILE = read("zero-offload")
ALL_THERE = "parameters=S*+O,optimizer=S+O,gradients=S+O,activations=S"
STATES_THERE = "parameters=S*,optimizer=S+O,gradients=S+O,activations=S"
CONSERVATIVE = 1.5


def placed(given):
    found = placement(given, False)
    return Product((Factor("placement", found.axes, found),))


def stage(product, psi, devices):
    policy = PROFILE.types(POLICIES[PROFILE.policy])
    return Plan(Opaque(psi), product, {"batch": devices}, policy=policy, profile=PROFILE).stage(0)


@given(st.integers(1, 10**9), st.integers(1, 16))
def test_zero_2_takes_what_deepspeed_estimates_of_a_host_and_of_a_device(each, gpus):
    """Of one node."""
    psi = each * gpus
    found = stage(parse("zero-offload").product, psi, gpus)
    assert sum(found.resting.values()) == 2 * psi
    assert gpus * max(found.host_at_start, found.host) == psi * max(4 * gpus, 16)
    assert gpus * found.host_pinned == 4 * psi


@given(st.integers(1, 10**9), st.integers(1, 8), st.integers(1, 8))
def test_zero_3_takes_what_deepspeed_estimates_of_a_host(each, gpus, nodes):
    psi = each * gpus * nodes
    for given_, on_host, locked in ((ALL_THERE, 18, 6), (STATES_THERE, 16, 4)):
        found = stage(placed(given_), psi, gpus * nodes)
        assert gpus * found.host * nodes == on_host * psi  # with zero.Init
        assert gpus * nodes * found.host_pinned == locked * psi
        without_init = gpus * max(found.host_at_start, found.host)
        assert without_init * nodes == psi * max(4 * gpus * nodes, on_host)


@pytest.mark.parametrize(
    ("given_", "init", "published"),
    [("zero-offload", False, 127.45), (ALL_THERE, True, 71.69), (STATES_THERE, True, 63.72)],
)
def test_the_example_of_deepspeeds_page_comes_out(given_, init, published):
    """2,851 million parameters on a node of 8, in GiB."""
    product = placed(given_) if "=" in given_ else parse(given_).product
    found = stage(product, 2_851_000_000, 8)
    most = found.host if init else max(found.host, found.host_at_start)
    assert round(8 * most * CONSERVATIVE / 2**30, 2) == published


def test_memory_of_the_host_is_told(psem):
    args = ["zero-offload", "--psi", 8000, "--devices", 8, "--profile", "zero-offload"]
    code, out, _ = psem("predict", *args, "--json")
    memory = json.loads(out)["memory"]
    found = [memory[key]["value"] for key in ("host", "host_pinned", "host_at_start")]
    assert (code, found) == (0, [16_000, 4_000, 32_000])
    _, text, _ = psem("predict", *args)
    assert "page-locked" in text and "before anything is placed" in text
    assert "not applied" not in text.partition("gradients on the host are page-locked")[0]


@examples(20)
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from(["", "1000"]))
def test_gradients_on_the_host_are_brought_back_to_be_added_to_but_for_the_first(micro, devices, psi):
    """2 bytes each way, and 4 at last: DeepSpeed's async_accumulate_grad_in_cpu_via_gpu."""
    more = {"psi": psi} if psi else {"model": MODEL}
    more |= {"profile": "zero-offload", "accumulate": str(micro)}
    plan = plan_of(Asked("predict", f"zero-offload({devices})", **more))
    here = plan.stage(0)
    of_gradients = [m for m in here.moved if m.to_host and m.what == "gradients"]
    slices = sum(group.costs.sizes.at_rest(State.GRADIENTS, ("batch",)) for group in here.groups)
    lengths = [] if psi else lengths_of(plan)
    each = met(lengths, devices) if lengths else slices
    there, back = (micro, micro - 1) if micro > 1 else (0, 0)
    assert sum(m.bytes for m in of_gradients) == 2 * (there + back) * each + 4 * slices
    assert sum(m.elements for m in of_gradients) == (there + back) * each + slices
    buffer = 2 * max(lengths, default=0)
    assert here.resting[State.GRADIENTS] == buffer
    hosted = sum(group.costs.hosted[State.GRADIENTS] for group in here.groups)
    assert hosted == 4 * slices + (2 * each if micro > 1 else 0) + buffer
    assert not measured(plan, Run()).unequal


def lengths_of(plan):
    """Elements of each weight, in the order of the model."""
    return [
        size
        for piece in plan.stage(0).pieces
        for size in plan.costs[piece.part.name].parameters.values()
    ]


def met(lengths, devices):
    """Elements of the weights that a device's slice of all has an element of, at most."""
    owner = [number for number, length in enumerate(lengths) for _ in range(length)]
    size = -(-len(owner) // devices)
    slices = (owner[device * size : (device + 1) * size] for device in range(devices))
    return max(sum(lengths[number] for number in {*of}) for of in slices)


def test_a_device_within_the_embedding_brings_all_of_it_back():
    """Llama 3 8B on 64: 525,336,576 of words, and what else the fifth slice has parts of."""
    model = {"config": "llama-3-8b", "sequence": "2048"}
    asked = Asked("predict", "zero-offload(64)", model=model, profile="zero-offload", accumulate="4")
    here = plan_of(asked).stage(0)
    (back,) = (m.elements for m in here.moved if m.collective == "fetch" and m.when == "backward")
    assert back == 3 * (525_336_576 + 2 * 4096 * (1 + 4096 + 1024 + 14_336))
    assert here.resting[State.GRADIENTS] == 2 * 525_336_576


MANY = ("--layers", 10**9, "--hidden", 64, "--heads", 4, "--sequence", 8, "--accumulate", 2)


@pytest.mark.parametrize("devices", [8, 10**8])
def test_layers_that_are_alike_are_counted_where_gradients_are_brought_back(psem, devices):
    code, _, err = psem("predict", f"zero-offload({devices})", *MANY, "--profile", "zero-offload")
    assert (code, err) == (0, "")
