"""Plans for a model: which stages are looked at, what passes, what is on the host, what is told."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from psem_model.measure.placings import devices_of
from psem_model.predict.asked import Asked
from psem_model.predict.parts import BACKWARD, FORWARD
from psem_model.predict.read import read
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS
from spec.models.transformer import EMBEDDING, LAYER
from spec.pipelines.idle_and_held import fullest
from spec.pipelines.pipeline import Half, works_of_stage
from spec.pipelines.stages import pieces, sends
from spec.plans.compose import combined, factor
from spec.plans.strategies import STRATEGIES
from tests.support.command import exact
from tests.support.examples import examples
from tests.support.pipes import IN_ONE_PART, boundary_sends
from tests.support.plans import SHAPE, pipelines, plans
from tests.support.products import plans as small_plans
from tests.support.profiled_plans import anywhere


# ------------------------------------------------------------------- which stages are looked at
@examples(60)
@given(plans())
def test_no_stage_needs_or_sends_more_than_those_that_are_looked_at(plan):
    every = [plan.stage(number) for number in range(plan.pipe.stages)]
    figures = ("peak", "total", "host", "activations", "bytes", "elements", "host_bytes")
    for stage in every:
        alike = [s for s in plan.stages if s.counts == stage.counts]
        assert all(max(getattr(s, f) for s in alike) >= getattr(stage, f) for f in figures)
    assert plan.fullest.peak == max(stage.peak for stage in every)
    assert plan.busiest.bytes == max(stage.bytes for stage in every)
    assert sum(stage.alike for stage in plan.stages) == len(every)


@examples(400)
@given(pipelines(most=6, chunks=5, kinds=IN_ONE_PART), st.data())
def test_a_stage_is_fullest_when_its_order_of_work_says(pipe, data):
    sizes = [data.draw(st.integers(0, 99)) for _ in range(pipe.chunks)]
    stage = data.draw(st.integers(0, pipe.stages - 1))
    work = works_of_stage(pipe, stage)
    held = accumulate((1 if w.half is Half.FORWARD else -1) * sizes[w.chunk] for w in work)
    assert fullest(pipe, stage, sizes) == max(held)


@examples(40)
@given(plans())
def test_stages_have_and_send_what_their_listed_pieces_do(plan):
    pipe = plan.pipe
    placed, weights = pieces(plan.model, pipe), {}
    for piece in placed:
        for weight in piece.part.weights:
            size = plan.costs[piece.part.name].parameters[weight.name]
            weights.setdefault(piece.stage, {})[piece.identity_of(weight)] = size
    crossings = sends(placed)
    for stage in map(plan.stage, range(pipe.stages)):
        assert stage.parameters == sum(weights[stage.number].values())
        assert Counter(stage.counts) == Counter(piece.part.name for piece in stage.pieces)
        sent = {m.when: m.times for m in stage.moved if m.collective == "send"}
        assert sum(sent.values()) == boundary_sends(pipe, stage.number)
        forward = sum(a.stage == stage.number for a, _ in crossings) * pipe.micro_batches
        backward = sum(b.stage == stage.number for _, b in crossings) * pipe.micro_batches
        assert (sent.get(FORWARD, 0), sent.get(BACKWARD, 0)) == (forward, backward)


@pytest.mark.parametrize(
    "sizes",
    [
        {"devices": 4, "layers": "1e15", "accumulate": "1e9"},
        {"devices": "1e5", "layers": "1e9", "accumulate": "1e6"},
        {"devices": 4, "layers": "1e9", "accumulate": "1e6", "chunks": "1e4"},
        {"devices": 4, "layers": "1e9", "accumulate": "1e9", "order": "gpipe"},
    ],
)
def test_any_number_of_layers_and_micro_batches_is_answered(sizes, predicted):
    found = predicted("pp", **{**SHAPE, **sizes})
    assert sum(stage["alike"] for stage in found["stages"]) == int(float(sizes["devices"]))


def test_plans_of_any_number_of_layers_are_compared(psem):
    shape = [x for name, value in (SHAPE | {"layers": "1e12"}).items() for x in (f"--{name}", value)]
    code, out, _ = psem("compare", "pp(4)", "tp(4)", *shape)
    assert (code, out.count("accepted")) == (0, 2)


def test_more_chunks_than_can_be_told_apart_are_refused(psem):
    shape = ["--layers", "1e9", "--hidden", 8, "--heads", 2, "--sequence", 4, "--accumulate", "1e6"]
    code, out, err = psem("predict", "pp", *shape, "--devices", "1e6")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "given 1,000,000 stages of 1 chunk; expected at most 100,000 chunks in all" in err


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("common", "101 words padded to 102, to be cut evenly"),
        ("parallelize", "101 words are cut as 102 would be: the last device has fewer"),
    ],
)
def test_words_that_do_not_divide_are_padded_or_cut_as_the_system_does(profile, said, psem):
    shape = ["--layers", 1, "--hidden", 8, "--heads", 2, "--vocabulary", 101, "--sequence", 4]
    code, out, _ = psem("predict", "tp(2)", *shape, "--profile", profile)
    assert (code, said in out) == (0, True)


def test_the_busiest_stage_is_found_in_the_middle(psem, predicted):
    """Of 10 layers 4 stages have 3, 2, 3 and 2; of those with 3 only the third sends both ways."""
    shape = {**SHAPE, "layers": 10}
    found = predicted("tp(2)*pp(4)", **shape)
    assert [(s["stage"], s["layers"], s["alike"]) for s in found["stages"]] == [
        *((0, 3, 1), (1, 2, 1), (2, 3, 1), (3, 2, 1))
    ]
    assert (found["communication"]["stage"], found["memory"]["stage"]) == (2, 0)
    options = [x for name, value in shape.items() for x in (f"--{name}", value)]
    _, out, _ = psem("compare", "tp(2)*pp(4)", "tp(8)", *options, "--json")
    sent = json.loads(out)["plans"][0]["sent"]
    assert sum(map(exact, sent.values())) == exact(found["communication"]["bytes"])


def test_each_stage_is_told_that_is_asked_for(predicted):
    shape = {**SHAPE, "layers": 12, "accumulate": 9, "profile": "megatron"}
    usual = predicted("zero1(2) * tp(2) * pp(4)", **shape)
    shown = {stage["stage"]: stage for stage in usual["stages"]}
    seen = []
    for number in range(4):
        found = predicted("zero1(2) * tp(2) * pp(4)", **shape, stage=number)
        memory, sent = found["memory"], found["communication"]
        assert (memory["stage"], sent["stage"]) == (number, number)
        figures = memory["resting"]["total"], memory["activations"], memory["total"], memory["peak"]
        seen.append((*map(exact, figures), exact(sent["bytes"])))
        of = shown.get(number)
        names = ("resting", "activations", "total", "peak", "bytes")
        assert of is None or seen[-1] == tuple(exact(of[name]) for name in names)
        assert found["stages"] == usual["stages"]
    assert sorted(shown) == [0, 1, 3]
    assert seen[1] != seen[2]  # alike, with fewer in flight


@pytest.mark.parametrize(
    ("plan", "stage", "expected"),
    [
        ("tp(2)", "0", "--stage: given without pp; expected a pipeline"),
        ("zero3", "0", "--stage: given without pp; expected a pipeline"),
        ("pp(4)", "4", "--stage: given 4; expected one of the 4 stages, from 0 to 3"),
        ("pp(4)", "-1", "--stage: given '-1'; expected a whole number of a stage, at least 0"),
    ],
)
def test_a_stage_that_is_not_there_is_refused(plan, stage, expected, psem):
    shape = (
        ["--psi", 9, "--devices", 2]
        if plan == "zero3"
        else [x for name, value in SHAPE.items() for x in (f"--{name}", value)]
    )
    code, out, err = psem("predict", plan, *shape, "--stage", stage)
    assert (code, out) == (2, "")
    assert expected in err


# ------------------------------------------------------------------------------ on the host
@given(plans(offload=True))
def test_offloaded_activations_are_on_the_host_and_not_on_the_device(plan):
    here = replace(plan, offload=False)
    for stage in map(plan.stage, range(plan.pipe.stages)):
        on_device = here.stage(stage.number)
        assert (stage.activations, stage.activations_of(LAYER)) == (0, 0)
        assert stage.host == on_device.host + on_device.activations
        assert stage.resting == on_device.resting
        assert stage.elements == on_device.elements
        moved = sum(
            count * plan.pipe.micro_batches * plan.costs[name].activations
            for name, count in stage.counts.items()
        )
        assert stage.host_bytes == on_device.host_bytes + 2 * moved
        in_use = max(plan.costs[name].activations for name in stage.counts)
        assert stage.transient == on_device.transient | {"offloaded": in_use}


@examples(25)
@given(small_plans(kinds=IN_ONE_PART))
def test_the_host_link_carries_what_is_predicted_and_the_training_is_the_same(plan):
    plan = replace(plan, offload=True)
    run = devices_of(plan)
    run.step()
    assert run.divergence is None
    for stage in run.stages:
        costs, network = plan.stage(stage.number), stage.devices.network
        carried = network.host_bytes
        of_states = replace(plan, offload=False).stage(stage.number)
        assert carried == costs.host_bytes - of_states.host_bytes
        assert stage.host.fullest == costs.held.kept() == costs.host - of_states.host
        assert stage.room.fullest == costs.transient["offloaded"]


def test_offloaded_activations_are_told(psem, predicted):
    found = predicted("tp", devices=4, **SHAPE, **{"offload-activations": None})
    operations = [o for o in found["communication"]["operations"] if o["axes"] == ["host"]]
    assert [(o["operation"], o["value"], o["times"]) for o in operations] == [
        ("offload", "activations", 8),
        ("fetch", "activations", 8),
    ]
    layer = exact(found["parts"]["layer"]["activations"])
    assert exact(found["communication"]["host_bytes"]) == 2 * 8 * layer
    assert exact(found["memory"]["host"]) == 8 * layer
    assert exact(found["memory"]["transient"]["offloaded"]) == layer
    assert exact(found["memory"]["activations"]) == 0
    assert found["checkpoints"] is None
    options = [x for name, value in SHAPE.items() for x in (f"--{name}", value)]
    _, out, _ = psem("predict", "tp", "--devices", 4, "--offload-activations", *options)
    for words in ("kept on the host", "over the host link", "a layer or the head at a time"):
        assert words in out


# ------------------------------------------------------------------------ held for backward
@given(st.lists(st.sampled_from(sorted(STRATEGIES)), max_size=3))
def test_what_is_merged_is_held_if_any_of_it_is(names):
    numbered = [
        (name, [f"{axis}{i}" for axis in STRATEGIES[name].axes]) for i, name in enumerate(names)
    ]
    placements = [factor(name, *axes).states for name, axes in numbered]
    assert combined(placements).hold is any(placement.hold for placement in placements)


@pytest.mark.parametrize("others", ["cp(2)", "tp(2)", "pp(2)", "dp(b=2)"])
def test_parameters_that_are_held_are_gathered_once_on_any_axes(others, predicted):
    def gathered(name):
        found = predicted(f"{name}(f=4)*{others}", vocabulary=64, **SHAPE)
        operations = found["communication"]["operations"]
        return [o for o in operations if (o["operation"], o["axes"]) == ("all_gather", ["f"])]

    once, twice = gathered("fsdp-hold"), gathered("fsdp")
    assert 2 * len(once) == len(twice) > 0
    assert 2 * sum(exact(o["bytes"]) for o in once) == sum(exact(o["bytes"]) for o in twice)


# ------------------------------------------------------------------------------- as it is told
STEPS = st.sampled_from(["tp", "pp", "zero1*tp+sp*pp", "cp", "zero3*tp", "dp*cp*pp"])


@settings(examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.sampled_from([1, 2]), st.sampled_from([1, 3]), st.sampled_from([0, 3, 65]))
def test_one_of_a_thing_is_told_without_an_s(psem, strategy, size, accumulate, vocabulary):
    shape = {**SHAPE, "accumulate": accumulate, "vocabulary": vocabulary or None}
    sizes = "x".join(str(size) for _ in strategy.split("*"))
    options = [x for name, value in shape.items() if value for x in (f"--{name}", value)]
    code, out, _ = psem("predict", strategy, "--devices", sizes, *options)
    assert code == 0
    for words in ("1 micro-batches", "1 samples", "1 times", "1 layers", "1 weights", "e-0"):
        assert words not in out.replace("11 weights", "")
    assert ("words padded to" in out) is (vocabulary > 0 and "tp" in strategy and size == 2)
    assert ("if all stages take equally long" in out) is ("pp" in strategy)


@pytest.mark.parametrize("vocabulary", [16, 17])
def test_words_are_told_to_be_padded_where_they_are(vocabulary, psem):
    options = [x for name, value in SHAPE.items() for x in (f"--{name}", value)]
    _, out, _ = psem("predict", "tp", "--devices", 2, "--vocabulary", vocabulary, *options)
    assert ("words, padded to the devices where they cut them" in out) is bool(vocabulary % 2)
    assert "  V  words" in out


@pytest.mark.parametrize("stages", [1, 2])
def test_a_pipeline_of_one_stage_has_no_boundary(stages, psem, predicted):
    found = predicted("pp", devices=stages, **SHAPE)
    assert ("sent_per_boundary" in found["pipeline"]) is (stages > 1)
    assert ("sent" in found["formulas"]["pipeline"]) is (stages > 1)
    options = [x for name, value in SHAPE.items() for x in (f"--{name}", value)]
    _, out, _ = psem("predict", "pp", "--devices", stages, *options)
    assert ("sent at a boundary" in out) is (stages > 1)


@pytest.mark.parametrize("chunks", [1, 2])
def test_chunks_in_flight_are_told_to_be_chunks(chunks, psem):
    shape = {**SHAPE, "accumulate": 4, "chunks": chunks}
    options = [x for name, value in shape.items() for x in (f"--{name}", value)]
    _, out, _ = psem("predict", "pp", "--devices", 2, *options)
    assert ("in flight, chunks" in out) is (chunks > 1)


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("tp(2)*pp(2)", "1 sample of 32 tokens"),
        ("cp(2)", "1 sample of 32 tokens"),
        ("zero1(2)*tp(2)", "1 sample of 32 tokens on each device along batch"),
        ("hsdp(r=2,s=2)*tp(2)", "1 sample of 32 tokens on each device along r x s"),
        ("zero1(2)*ep(2)", "1 sample of 32 tokens on each device along batch x expert"),
    ],
)
def test_a_step_is_told_by_the_axes_whose_devices_have_samples_of_their_own(strategy, words, psem):
    shape = SHAPE | ({"experts": 4, "chosen": 2} if "ep" in strategy else {})
    options = [x for name, value in shape.items() for x in (f"--{name}", value)]
    _, out, _ = psem("predict", strategy, *options)
    assert f"  a step of 1 micro-batch of {words}" in out.splitlines()


def test_idle_time_is_told_with_its_condition(psem, predicted):
    found = predicted("pp", devices=2, **SHAPE)
    assert found["pipeline"]["bubble_if"] == "all stages take equally long"
    options = [x for name, value in SHAPE.items() for x in (f"--{name}", value)]
    _, out, _ = psem("compare", "pp(2)", "tp(2)", *options)
    assert "as if all stages of a pipeline took equally long" in out


@pytest.mark.parametrize("recompute", [NOTHING, PAIRS, EVERYTHING, FROM_SLICES])
@pytest.mark.parametrize("layers", [1, 2, 8])
def test_checkpoints_are_told_where_they_keep_less(recompute, layers, psem, predicted):
    shape = {**SHAPE, "layers": layers, "recompute": recompute}
    found = predicted("tp", devices=4, **shape)
    helps = recompute == NOTHING and layers > 1
    assert (found["checkpoints"] is not None) is helps
    options = [x for name, value in shape.items() for x in (f"--{name}", value)]
    _, out, _ = psem("predict", "tp", "--devices", 4, *options)
    assert ("layers keep, with the segment at work, " in out) is helps
    if helps:
        told = found["checkpoints"]
        assert ("by --recompute all: with" in out) is (told["segment"] == 1)
        assert exact(told["activations"]) < exact(found["memory"]["activations"])
        assert told["segment"] == -(-layers // told["best"])


@pytest.mark.parametrize(
    ("strategy", "recompute", "offload", "mode"),
    [
        ("tp", NOTHING, False, "R, S"),
        ("tp+sp", NOTHING, False, "S"),
        ("pp", NOTHING, False, "S"),
        ("tp+sp", PAIRS, False, "S, M"),
        ("tp", EVERYTHING, False, "M"),
        ("tp", NOTHING, True, "R+O, S+O"),
        ("tp+sp", PAIRS, True, "S+O, M"),
        ("tp", FROM_SLICES, True, "M+O"),
    ],
)
def test_the_modes_of_activations_are_told(strategy, recompute, offload, mode, psem, predicted):
    shape = {**SHAPE, "devices": 4, "recompute": recompute}
    shape |= {"offload-activations": None} if offload else {}
    assert predicted(strategy, **shape)["inputs"]["activations_mode"] == mode
    options = [x for n, value in shape.items() for x in (f"--{n}", value) if x is not None]
    assert f"(activations: {mode})" in psem("predict", strategy, *options)[1]


@pytest.mark.parametrize("size", [3, 10**6, 10**20, 12_345_678])
def test_words_are_padded_to_as_many_on_each_device(size, predicted):
    found = predicted("tp", devices=8, **SHAPE, vocabulary=size)
    padded = found["inputs"]["padded_vocabulary"]
    assert padded % 8 == 0 <= padded - size < 8
    embedding = found["parts"][EMBEDDING]["parameters"]
    assert embedding == padded // 8 * 64 + 32 * 64  # and the places


def test_copies_to_compute_with_of_parameters_that_rest_whole_are_told_not_to_be_counted(
    psem, tmp_path
):
    shape = ["--block", "llama", "--layers", 1, "--hidden", 8, "--heads", 4, "--sequence", 8]
    words = "not counted: copies in 2 bytes, to compute with, of parameters that rest whole"

    def told(strategy, profile="fsdp2"):
        return words in psem("predict", strategy, *shape, "--profile", anywhere(profile, tmp_path))[1]

    assert told("dp(2)") and told("zero1(2)")
    assert not told("fsdp(2)") and not told("dp(2)", "fully-shard")


def test_what_sends_nothing_is_not_listed(psem, predicted):
    shape = ["--block", "llama", "--layers", 1, "--hidden", 8, "--heads", 4, "--sequence", 8]
    for profile in ("textbook", "parallelize"):
        _, out, _ = psem("predict", "tp(1) * dp(2)", *shape, "--profile", profile)
        assert " 0 elements" not in out and "2 times" not in out


@pytest.mark.parametrize(
    ("heads", "words"), [(1, "the one key-value head is on 2 devices"), (2, "each of")]
)
def test_copies_of_one_head_are_told_of_one(heads, words, psem):
    shape = ["--block", "llama", "--layers", 1, "--hidden", 8, "--heads", 4, "--sequence", 8]
    _, out, _ = psem("predict", f"tp({2 * heads})", *shape, "--kv-heads", heads)
    assert words in out


def test_beside_bare_parameters_the_textbook_has_no_activations(psem):
    _, out, _ = psem("predict", "zero3", "--psi", "1e9", "--devices", 8, "--profile", "fsdp2")
    assert "the textbook's resting" in out and "activations  0" not in out
    assert "of the profile fsdp2, not applied without a model's shape and --sequence" in out


@pytest.mark.parametrize("profile", ["textbook", "megatron"])
def test_a_turned_key_that_all_heads_share_is_gathered_before_it_is_placed_in_each(profile):
    """As Megatron-LM gathers it, whose backward reduces and scatters.

    (core/transformer/multi_latent_attention.py: gather_from_sequence_parallel_region of k_pos_emb)
    """
    model = {"config": "deepseek-v3", "sequence": "1024"}  # 64 features of a key are turned
    plan = read(Asked("predict", "tp+sp(4)", model=model, profile=profile))
    for costs in plan.layers.values():
        sent = [(t.collective, t.move.value.plain_name, t.phase, t.elements) for t in costs.traffic]
        of_keys = [row for row in sent if row[1] in ("key_turned", "d key_turned")]
        size = 3 * 1024 // 4 * 64
        assert of_keys == [
            ("all_gather", "key_turned", "forward", size),
            ("reduce_scatter", "d key_turned", "backward", size),
        ]
        assert "all_to_all" not in {collective for collective, *_ in sent}


def test_a_stage_without_layers_has_no_best_number_of_checkpoints(predicted):
    of_gpt2 = {"config": "gpt2", "sequence": 1024, "accumulate": 8, "stage-layers": "0,4,4,4"}
    found = predicted("dp(2) * pp(4)", **of_gpt2, stage=0)
    assert found["checkpoints"] is None
