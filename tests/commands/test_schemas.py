"""docs/schema/ says what `--json` prints: a schema for each command, with the version it is of."""

import json

import pytest
from jsonschema import Draft202012Validator

from proofs.registry import ROOT
from psem_model.commands.cli import psem as program
from psem_model.text.report import VERSION
from tests.support.command import without
from tests.support.examples import few
from tests.support.schemas import SCHEMAS, validator

SHARED = "common"  # what several commands' schemas refer to
STATES = ["--psi", "1001", "--devices", "4"]
MODEL = ["--layers", "4", "--hidden", "64", "--heads", "4", "--sequence", "8", "--vocabulary", "16"]
OWN = ["--model", "examples/models/mlp.toml", "--sequence", "1"]
REFUSED = "parameters=S,optimizer=S,gradients=O,activations=R"
STEP = "tests/regressions/tied_gradients_of_one_micro_step.toml"
SLOW = pytest.mark.slow
CALLS = [
    *(["predict", name, *STATES] for name in ("dp", "zero3", "fsdp-hold", "fused-update")),
    ["predict", "hsdp", "--psi", "1001", "--devices", "2x2"],
    ["predict", "zero-offload", *STATES, "--accumulate", "3", "--unit", "10"],
    ["predict", "fsdp-hold", *STATES, "--divisible", "--profile", "fsdp2"],
    ["predict", "--schedule", "examples/clip_by_global_norm.toml", *STATES],
    ["predict", "--placement", REFUSED, *STATES],
    ["predict", "--schedule", "examples/mean_twice.toml", *STATES],
    ["predict", "zero1(2)*tp+sp(2)*pp(2)", *MODEL, "--accumulate", "4", "--recompute", "full"],
    ["predict", "zero1(2)*ep(2)", *MODEL, "--experts", "4", "--chosen", "2"],
    ["predict", "cp(2)", *MODEL[:-2], "--profile", "textbook", "--offload-activations"],
    ["predict", "zero1(16)*tp(8)", "--config", "llama-3-70b", "--sequence", "8192"],
    ["predict", "fsdp(2)*tp(2)*pp(2)", *OWN],
    ["predict", "zero1(8)*ep(8)", "--model", "deepseek-v2", "--sequence", "8"],
    ["compare", "zero3(4)", "tp(4)", *OWN],
    ["derive", "zero1*tp", *OWN[:2]],
    ["derive", "tp", "--part", "last", *OWN[:2]],
    ["check", "zero1*tp", *OWN[:2]],
    ["simulate", "zero1(2)*tp(2)", *OWN],
    ["compare", "dp", "zero2", "zero3", *STATES],
    ["compare", "zero1(2)*pp(2)", "zero3(4)", "--global-batch", "8", *MODEL],
    ["compare", "zero3(4)", "examples/mean_twice.toml", *STATES],
    *(["derive", name] for name in ("zero3", "hsdp", "zero-offload")),
    ["derive", "zero2", "--clip"],
    ["derive", "zero3*tp+sp*cp*pp"],
    ["derive", "zero1*tp", "--clip"],
    ["derive", "cp*tp", "--moves"],
    ["derive", "tp+sp", "--part", "head"],
    *(["check", name] for name in ("zero3", "hsdp", "fused-update", "zero1(2)*tp(2)", STEP)),
    *(["check", f"examples/{name}.toml"] for name in ("ddp_mean", "mean_twice", "safe_experts")),
    ["check", "examples/mean_twice.toml", "--devices", "4", "--bytes", "fp32-adam"],
    ["check", "examples/ddp_mean.toml", "--prove"],
    ["simulate", "zero3", *STATES],
    ["simulate", "zero3", "--mlp", "3x4", "--devices", "2", "--arithmetic", "exact"],
    ["simulate", "--schedule", "examples/mean_twice.toml", *STATES],
    ["simulate", "zero1(2)*tp(2)*pp(2)", *MODEL],
    ["space", "--devices", "4", "--all"],
    ["space", "--reasons"],
    ["space", "--where", "resting <= 4*Psi/N + 2*Psi, sent <= 4*Psi"],
    ["space", "--where", "sent <= 2*Psi"],
    ["tables"],
    ["tables", "memory", "pipelines", "claims"],
    ["prove", "S1", "M8"],
    ["explain", "S1", "M8"],
    pytest.param(["audit", "S2"], marks=SLOW),
    pytest.param(["audit", "M8"], marks=SLOW),
]


@pytest.mark.parametrize("call", few(CALLS), ids=" ".join)
def test_what_a_command_tells_programs_is_as_its_schema_says(psem, monkeypatch, call):
    monkeypatch.chdir(ROOT)
    _, out, _ = psem(*call, "--json")
    validator(call[0]).validate(json.loads(out))


@pytest.mark.parametrize("accepted", [True, False])
def test_the_verdict_on_a_model_s_step_in_a_file_is_as_the_schema_says(psem, tmp_path, accepted):
    step = psem("derive", "zero1 * tp+sp")[1]
    path = tmp_path / "step.toml"
    path.write_text(step if accepted else without("reset")(step))
    found = json.loads(psem("check", path, "--json")[1])
    assert found["accepted"] is accepted
    validator("check").validate(found)


def test_a_run_of_a_model_that_diverges_is_as_the_schema_says(psem, tmp_path):
    path = tmp_path / "forgotten.toml"
    path.write_text(without("all_reduce")(psem("derive", "zero1 * tp+sp", "--block", "llama")[1]))
    shape = ["--block", "llama", *MODEL]
    code, out, _ = psem("simulate", "--schedule", path, "--devices", "2x2", *shape, "--json")
    found = json.loads(out)
    assert (code, found["divergence"]["weight"]) == (1, "attention_norm_scale")
    validator("simulate").validate(found)


@pytest.mark.parametrize("profile", ["megatron", "ddp", "fully-shard", "zero-offload"])
def test_a_run_by_a_profile_is_as_the_schema_says(profile, psem):
    strategy = {"zero-offload": "zero-offload(2)", "fully-shard": "fsdp(2)"}.get(profile, "dp(2)")
    _, out, _ = psem("simulate", strategy, *MODEL, "--profile", profile, "--json")
    found = json.loads(out)
    validator("simulate").validate(found)
    assert all(figure["equal"] for stage in found["stages"] for figure in stage.values())


def test_each_command_with_json_has_a_schema_of_the_version_that_it_prints():
    asked = {
        name
        for name, command in program.commands.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert SCHEMAS.keys() == asked | {SHARED}
    for name in asked:
        assert SCHEMAS[name]["properties"]["version"] == {"const": VERSION}
        assert SCHEMAS[name]["properties"]["report"] == {"const": name}
        assert {"report", "version"} <= {*SCHEMAS[name]["required"]}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas_and_leave_no_object_open(name):
    Draft202012Validator.check_schema(SCHEMAS[name])
    extended = {f"{SHARED}.json#/$defs/claim"}  # explain adds keys to it, and closes it
    for place, schema in objects(SCHEMAS[name], f"{name}.json#"):
        is_union = "oneOf" in schema
        assert is_union or place in extended or CLOSING & schema.keys(), place


CLOSING = {"additionalProperties", "unevaluatedProperties"}


def objects(schema, place):
    """Every schema of an object, with where it is."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield place, schema
        for key, value in schema.items():
            yield from objects(value, f"{place}/{key}")


def with_another_key(found):
    """A document with a key that nobody knows, at each place where it has keys."""
    yield {**found, "another": {}}
    for key, value in found.items():
        if isinstance(value, dict):
            yield from ({**found, key: other} for other in with_another_key(value))
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from ({**found, key: [other, *value[1:]]} for other in with_another_key(value[0]))


@pytest.mark.parametrize(
    "call",
    [
        ["compare", "dp", "zero3", *STATES],
        ["check", "zero2"],
        ["predict", "zero3", *STATES],
        ["prove", "S1"],
    ],
    ids=" ".join,
)
def test_a_key_more_a_key_less_and_another_version_are_not_as_the_schema_says(psem, call):
    found, known = json.loads(psem(*call, "--json")[1]), validator(call[0])
    assert not any(map(known.is_valid, with_another_key(found)))
    for key in found.keys() - {"placement"}:  # a step in a file has none
        assert not known.is_valid({name: each for name, each in found.items() if name != key})
    assert not known.is_valid(found | {"version": found["version"] + 1})
