"""Families whose layers are not like a Llama's: small models of them, from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from tests.support.command import exact
from tests.support.examples import few

CONFIGURATIONS = Path(__file__).parents[2] / "examples" / "configurations"
TINY = {
    "deepseek-v3": {
        **{"hidden_size": 8, "intermediate_size": 8, "moe_intermediate_size": 4, "vocab_size": 9},
        **{"num_attention_heads": 2, "num_key_value_heads": 2, "kv_lora_rank": 3, "q_lora_rank": 5},
        **{"qk_nope_head_dim": 3, "qk_rope_head_dim": 2, "v_head_dim": 3, "n_routed_experts": 4},
        **{"num_experts_per_tok": 2, "n_group": 2, "topk_group": 1},
        **{"num_hidden_layers": 3, "first_k_dense_replace": 1},
    },
    "gpt-oss-20b": {
        **{"hidden_size": 8, "intermediate_size": 4, "num_hidden_layers": 4, "head_dim": 2},
        **{"num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4},
        **{"num_experts_per_tok": 2, "experts_per_token": 2, "vocab_size": 9, "sliding_window": 3},
        "layer_types": None,
    },
    "llama-4-maverick": {
        **{"hidden_size": 8, "intermediate_size": 4, "intermediate_size_mlp": 8, "head_dim": 2},
        **{"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 9},
        **{"num_local_experts": 4, "num_experts_per_tok": 2, "attention_chunk_size": 3},
        **{"no_rope_layers": None, "use_qk_norm": True},
    },
}
PARTLY_TURNED = {
    **{"hidden_size": 32, "intermediate_size": 8, "num_hidden_layers": 4, "vocab_size": 9},
    **{"num_attention_heads": 4, "max_position_embeddings": 8, "rotary_pct": 0.25},
}
TURNED_OTHERWISE = {  # every third layer has no window
    **{
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 8,
        "vocab_size": 9,
        "head_dim": 4,
    },
    **{"num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window": 3},
    "sliding_window_pattern": 3,
}
PLANS = {
    "zero3": 2,
    "tp": 2,
    "cp": 2,
    "cp-all-to-all": 2,
    "zero1 * tp+sp * ep": "2x2x2",
    "cp-all-gather * pp": "2x2",
}


@pytest.fixture
def tiny(tmp_path):
    """tiny("deepseek-v3") -> the path of its configuration, with small sizes."""

    def write(name):
        fields = json.loads((CONFIGURATIONS / f"{name}.json").read_text()) | TINY[name]
        fields |= {"pad_token_id": None}  # few words
        path = tmp_path / "config.json"
        path.write_text(json.dumps(fields))
        return path

    return write


@pytest.mark.parametrize(
    ("name", "plan", "profile"),
    few(
        (name, *realised)
        for name in TINY
        for realised in (
            *((plan, "common") for plan in PLANS),
            *(("zero1 * tp+sp * ep", "textbook"), ("cp", "eager")),
        )
    ),
)
def test_a_small_model_of_the_family_trains_as_one_device_and_takes_what_is_predicted(
    name, plan, profile, tiny, psem
):
    model = ("--model", tiny(name), "--devices", PLANS[plan])
    sizes = ("--sequence", 8, "--accumulate", 2, "--profile", profile)
    code, out, err = psem("simulate", plan, *model, *sizes, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["matches"]
    assert [key for stage in found["stages"] for key, f in stage.items() if not f["equal"]] == []


@pytest.mark.parametrize("arithmetic", ["modular", "float64"])
@pytest.mark.parametrize("plan", ["zero3(2)", "tp(2)", "cp(2)"])
def test_features_of_a_head_that_are_not_turned_stay_as_they_are(plan, arithmetic, tmp_path, psem):
    path = tmp_path / "config.json"
    fields = json.loads((CONFIGURATIONS / "pythia-160m.json").read_text())
    path.write_text(json.dumps(fields | PARTLY_TURNED))
    run = ("--sequence", 8, "--profile", "pytorch", "--arithmetic", arithmetic)
    assert psem("simulate", plan, "--model", path, *run)[0] == 0


@pytest.mark.parametrize("plan", few(["pp(4)", "dp(1)", "pp(8)", "tp(2) * pp(3)"]))
def test_layers_without_a_window_have_cosines_and_sines_of_their_own(plan, tmp_path, psem):
    path = tmp_path / "config.json"
    fields = json.loads((CONFIGURATIONS / "gemma-3-1b-pt.json").read_text())
    path.write_text(json.dumps(fields | TURNED_OTHERWISE))
    run = ("--sequence", 8, "--accumulate", 4, "--profile", "eager")
    assert psem("simulate", plan, "--model", path, *run)[0] == 0


FEW_HEADS = {"hidden_size": 8, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 9}
GIVEN = {  # layers with windows or without, distances, learned places, and masks of all heads
    "mistral-7b-v0.1": FEW_HEADS | {"intermediate_size": 8, "num_key_value_heads": 2},
    "gemma-3-1b-pt": TURNED_OTHERWISE,
    "bloom-560m": {"n_embed": 8, "n_layer": 4, "num_attention_heads": 4, "vocab_size": 9},
    "opt-125m": FEW_HEADS | {"ffn_dim": 8, "word_embed_proj_dim": 8, "max_position_embeddings": 32},
    "falcon-rw-1b": FEW_HEADS | {"ffn_hidden_size": 8},
    "falcon-7b": FEW_HEADS | {"ffn_hidden_size": 8},
    "llama-4-maverick": TINY["llama-4-maverick"],
}
WINDOWS = {"mistral-7b-v0.1": {"sliding_window": 3, "head_dim": 2}}


@pytest.mark.parametrize(
    ("name", "profile", "plan"),
    few(product(GIVEN, ("eager", "eager+fused"), ("dp(2)", "pp(2)", "tp(2)"))),
)
def test_what_layers_are_given_is_kept_where_they_are_made_again(name, profile, plan, tmp_path):
    path = tmp_path / "config.json"
    fields = json.loads((CONFIGURATIONS / f"{name}.json").read_text())
    fields = {key: value for key, value in fields.items() if name != "bloom-560m" or key != "n_inner"}
    path.write_text(json.dumps(fields | GIVEN[name] | WINDOWS.get(name, {}) | {"pad_token_id": None}))

    def planned(again, **more):
        sizes = {"sequence": "8", "micro_batch": "2", "recompute": again}
        model = {"config": str(path), **sizes}
        return read(Asked("simulate", plan, model=model, profile=profile, **more))

    found = {again: planned(again, accumulate="2") for again in ("all", "attention", "none")}
    assert not any(measured(each, Run()).unequal for each in found.values())
    kept = found["all"].fullest.activations
    textbook = replace(found["all"].profile, keeps_given=False)
    assert replace(found["all"], profile=textbook).fullest.activations < kept


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", TINY)
def test_every_plan_of_the_family_is_accepted(name, plan, tiny, psem):
    code, out, _ = psem("check", plan, "--model", tiny(name), "--devices", PLANS[plan])
    assert (code, "accepted" in out.splitlines()[0]) == (0, True)


B, S, PAIRS = 1, 1280, 1280 * 1280


@pytest.mark.parametrize("profile", ["textbook", "common"])
def test_a_layer_of_deepseek_v3_keeps_what_its_paper_names(profile, predicted):
    """Of a token: streams and norms, both latent vectors, queries, keys, values, what attention gives.

    Of an expert's MLP four values of its features. (arXiv 2412.19437, sections 2.1.1 and 2.1.2)
    """
    found = predicted("tp", devices=1, model="deepseek-v3", sequence=S, profile=profile)
    h, heads, few, turned, straight, values = 7168, 128, 1536 + 512, 64, 128, 128
    attention = 8 * h + 4 * few + 4 * heads * (turned + straight) + 4 * heads * values
    pairs = 2 * heads * PAIRS if profile == "textbook" else 4 * heads * S
    kept = {name: exact(part["activations"]) for name, part in found["parts"].items()}
    assert kept["dense_layer"] == S * (attention + 8 * 18432) + pairs
    experts, chosen, inside = 256, 8, 2048
    routed = 4 * experts + 4 * chosen + 4 * chosen * h + 8 * chosen * inside
    assert kept["layer"] == S * (attention + routed + 8 * inside) + pairs


@pytest.mark.parametrize("profile", ["textbook", "common"])
def test_a_layer_of_gpt_oss_keeps_what_its_parts_read(profile, predicted):
    """Its sinks need the log-sum-exp, which a kernel keeps anyway, and what keys give without them.

    The share that is left to keys is a sigmoid, whose derivative is known from it.
    """
    found = predicted("tp", devices=1, model="gpt-oss-20b", sequence=S, profile=profile)
    h, heads, kv_heads, d, experts, chosen = 2880, 64, 8, 64, 32, 4
    attention = 8 * h + 4 * heads * d + 4 * kv_heads * d
    log_total = 0 if profile == "textbook" else 4 * heads  # else shares are known
    eager = 2 * heads * d + 4 * heads  # what keys give, and the share that is left to them
    pairs = 2 * heads * PAIRS + S * eager if profile == "textbook" else 0
    routed = 4 * experts + 4 * chosen + 4 * chosen * h + 10 * chosen * h  # the MLP is h wide
    assert exact(found["parts"]["layer"]["activations"]) == S * (attention + log_total + routed) + pairs
