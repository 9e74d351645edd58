"""Profiles whose systems have states where a plan has them, and what of them changes nothing of it."""

from __future__ import annotations

import json

import pytest

from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.realised import realises, without_effect
from psem_model.reading.products import parse
from psem_model.reading.profiles import packaged
from psem_model.reading.profiles import read as profiled
from spec.plans.strategies import STRATEGIES
from tests.support.examples import few
from tests.support.profiled_plans import MODEL

SHAPE = [word for key, value in MODEL.items() for word in (f"--{key.replace('_', '-')}", value)]


def plan(strategy, profile, **options):
    return read(Asked("predict", strategy, model=MODEL, profile=profile, **options))


@pytest.mark.parametrize(
    ("profile", "strategy", "nearest"),
    [
        ("ddp", "fsdp(2)", "fully-shard"),
        ("ddp", "zero1(2)", "zero-redundancy"),
        ("zero-redundancy", "dp(2)", "ddp"),
        ("fully-shard-offload", "zero3(2)", "fully-shard"),
        ("fsdp2", "hsdp-offload(2, 2)", "fully-shard-offload"),
        ("zero-plus-plus", "dp(2)", "common"),
        ("fully-shard", "zero1(2) * tp(2)", "zero-redundancy"),
        ("fully-shard", "fsdp(2) * zero1(context) * cp(2)", "pytorch"),
    ],
)
def test_a_system_that_has_states_elsewhere_is_refused_with_one_that_can(
    profile, strategy, nearest, psem
):
    for command in (["predict", strategy, *SHAPE], ["check", strategy, *SHAPE[:-2]]):
        code, _, err = psem(*command, "--profile", profile)
        assert (code, err.count("\n")) == (2, 1)
        assert err.endswith(f"; nearest: {nearest}\n")
        assert psem(*command, "--profile", nearest)[0] == 0


@pytest.mark.parametrize(
    ("strategy", "profile", "on_host"),
    [
        ("zero3(1)", "fully-shard-offload", "fsdp-offload(1)"),
        ("tp(2)", "fully-shard-offload", "zero3-offload(1)"),
        ("dp(1)", "zero-offload", "zero-offload(1)"),
    ],
)
def test_on_one_device_too_states_are_on_the_host_if_the_system_has_them_there(
    strategy, profile, on_host, psem
):
    shape = ["--model", "qwen2-0.5b", "--sequence", 64, "--profile", profile]
    code, out, err = psem("predict", strategy, *shape)
    assert (code, out) == (2, "")
    assert f"{strategy}': nothing on the host, where it has" in err
    assert psem("predict", on_host, *shape)[0] == 0


def test_a_placement_is_refused_as_a_strategy_is(psem):
    given = "parameters=S*,optimizer=S,gradients=S,activations=S"
    for size in (SHAPE, ["--psi", "1000"]):
        asked = ("predict", "--placement", given, "--devices", "2", *size, "--profile")
        assert psem(*asked, "fsdp2")[0] == 0
        code, _, err = psem(*asked, "zero-offload")
        assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize("name", packaged())
def test_each_packaged_profile_realises_some_strategy(name):
    profile = profiled(name)
    able = {of for of in STRATEGIES if realises(profile, parse(of).product)}
    assert able or name == "fully-shard-offload"
    assert profile.places or able == {*STRATEGIES}
    for of in able:
        assert realises(profile, parse(f"{of} * tp * pp").product)


@pytest.mark.parametrize("unit", [(), ("--unit", "9")])
@pytest.mark.parametrize("model", [SHAPE, ["--psi", "70"]])
def test_who_owns_weights_is_no_matter_where_nothing_is_cut(model, unit, tmp_path, psem):
    difference = '[[differs]]\nwhat = "{}"\nwhy = "y"\nsource = "z"\n{}\n'
    of = difference.format("owners", 'padding = "weight"') + difference.format("type", "gathered = 4")
    file = tmp_path / "mine.toml"
    file.write_text(f'title = "t"\n{of}')
    code, out, _ = psem("predict", "dp(2)", *model, *unit, "--profile", file)
    assert code == 0
    assert "changes nothing of this plan: owners" in out or model != SHAPE
    assert psem("predict", "zero1(2)", *SHAPE, "--unit", "9", "--profile", file)[0] == 2


def test_gradients_that_wait_whole_may_be_placed_so(psem):
    given = "parameters=S*,optimizer=S,gradients=R,activations=S"
    for profile, code in (("fully-shard+no-sync", 0), ("fully-shard", 2)):
        asked = ("predict", "--placement", given, "--devices", "2", *SHAPE, "--profile", profile)
        assert psem(*asked)[0] == code


@pytest.mark.parametrize(
    ("strategy", "profile", "words"),
    few(
        [
            ("dp(2)", "ddp+whole-words", "whole-words changes nothing of this plan: all words"),
            ("tp(2)", "parallelize+whole-words", ""),
            ("zero3(2)", "fully-shard+all-to-all-rotate", "all-to-all-rotate changes nothing"),
            ("zero3(2) * cp(2)", "fully-shard+all-to-all-rotate", ""),
            ("zero1(2)", "zero-redundancy+parameters-as-bucket-view", "as-bucket-view changes nothing"),
            ("fsdp(2)", "fully-shard+bf16+cpu", "cpu changes nothing of this plan: layer_norm"),
            ("tp(2)", "fully-shard", "fully-shard changes nothing of this plan beyond what it is like"),
            ("tp(2)", "common", ""),
        ]
    ),
)
def test_a_name_that_changes_nothing_of_a_plan_is_said(strategy, profile, words, psem):
    found = without_effect(plan(strategy, profile))
    assert len(found) == bool(words)
    assert all(words in each for each in found)
    for command in ("predict", "simulate"):
        code, out, _ = psem(command, strategy, *SHAPE, "--profile", profile)
        assert code == 0
        assert ("changes nothing" in out) is bool(words)
        document = json.loads(psem(command, strategy, *SHAPE, "--profile", profile, "--json")[1])
        assert document.get("profile", document)["without_effect"] == found


def test_an_addition_that_nothing_is_known_of_is_named_as_not_applied(psem):
    _, out, _ = psem("predict", "dp", "--devices", 2, "--psi", 1000, "--profile", "ddp+fused")
    assert "changes nothing" not in out
    assert "not applied without a model's shape and --sequence\n" in out


def test_of_a_file_each_difference_that_changes_nothing_is_said(tmp_path):
    path = tmp_path / "mine.toml"
    head = '[[differs]]\nwhy = "b"\nsource = "c"\n'
    keys = (
        'what = "first"\ninside = ["scores", "seen", "shares"]',
        'what = "second"\nrows = ["layer_norm"]',
    )
    path.write_text('title = "t"\nlike = "pytorch"\n' + "\n".join(head + key for key in keys[:1]))
    assert without_effect(plan("dp(2)", str(path))) == []
    path.write_text('title = "t"\nlike = "textbook"\n' + "\n".join(head + key for key in keys))
    expected = "a difference of mine changes nothing of this plan: second"
    assert without_effect(plan("dp(2)", str(path))) == [expected]


def test_plans_are_compared_if_a_profile_realises_one_of_them(psem):
    _, out, _ = psem("compare", "dp(2)", "fsdp(2)", "tp(2)", *SHAPE, "--profile", "ddp+fused")
    assert "(!) not as ddp+fused has states, fsdp(2): parameters S*, optimizer S" in out
    assert out.count("(!) not as") == 1
    code, _, err = psem("compare", "zero1(2)", "fsdp(2)", *SHAPE, "--profile", "ddp")
    assert (code, err.count("\n")) == (2, 1)
    _, out, _ = psem("compare", "dp(2)", "tp(2)", *SHAPE, "--profile", "pytorch+whole-words")
    assert "dp(2): whole-words changes nothing of this plan" in out
    assert "tp(2): whole-words" not in out
