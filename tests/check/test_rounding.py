"""What a step rounds on its way is told line by line; it is right in exact arithmetic alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.check.rounding import rounded
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from psem_model.predict.realised import realises
from psem_model.predict.verdicts import verdict
from psem_model.reading.products import parse
from psem_model.reading.profiles import packaged
from psem_model.reading.profiles import read as profiled
from psem_model.reading.shapes import small
from psem_model.reading.steps import dumps
from spec.costs.memory import Sizes
from spec.derivation.steps import derive
from spec.language.schedule import REDUCTIONS, Buffer, Kind
from spec.models.parts import parts
from spec.models.profiles import realised_parts
from spec.models.states import POLICIES, State

PROFILES = sorted(packaged())
PLANS = ["dp(2)", "zero1(2)", "zero2(2)", "zero3(2)", "fsdp(2)", "hsdp(2, 2)", "zero3(2) * tp(2)"]


def checked(text, **options):
    return verdict(text, None, None, options.pop("policy", None), **options)


def lines(text, **options):
    """What is rounded in a micro-step or at its end, and to how many bytes."""
    return [(each.part, each.index, each.has, each.to) for each in checked(text, **options).rounds]


def test_what_is_gathered_in_fewer_bytes_is_told_at_its_lines():
    root, layers = [("micro_step", 0, 4, 2)], [("micro_step", 0, 4, 2), ("micro_step", 3, 4, 2)]
    head = [("backward", 6, 4, 2)]  # the cotangent of the copy in fp32; exp is made again first
    assert lines("zero3(8)", profile="fsdp2") == head + root + layers  # the root's weights are held
    found = checked("zero3(8)", profile="fsdp2")
    assert found.accepted
    assert found.headline.startswith("zero3(8), by the profile fsdp2: accepted in exact arithmetic")


def written(tmp_path, keys):
    """A file with a profile that says so much."""
    path = tmp_path / "mine.toml"
    path.write_text(f'title = "t"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\n{keys}\n')
    return str(path)


def test_what_is_read_where_it_rests_is_rounded_where_the_model_computes_with_it(tmp_path):
    mine = written(tmp_path, 'policy = "fp32-adam"\ngathered = 2\nreduced = 4')
    found = checked("dp(8)", profile=mine).rounds
    assert [each.line.kind for each in found] == [Kind.FORWARD, Kind.BACKWARD]


def test_sums_of_gradients_at_rest_are_rounded_from_their_own_bytes(tmp_path):
    mine = written(tmp_path, 'policy = "mixed-adam-fp32-gradients"\ngathered = 2')
    assert lines("dp(8)", profile=mine) == [("finish", 0, 4, 2)]
    assert lines("zero2(8)", profile=mine) == []  # they are fresh, in as many bytes


def test_sums_that_have_more_bytes_than_gradients_at_rest_are_rounded_there():
    every = checked("zero3(8)", profile="fsdp2", policy="4,2,8").rounds
    found = [each for each in every if each.group is not None]  # lines of states
    assert [(each.line.kind, each.has, each.to) for each in found] == [
        (Kind.ALL_GATHER, 4, 2),  # of the root
        (Kind.ACCUMULATE, 4, 2),
        (Kind.ALL_GATHER, 4, 2),
        (Kind.ALL_GATHER, 4, 2),
        (Kind.ACCUMULATE, 4, 2),
    ]


def test_copies_in_another_type_are_lines_of_the_program():
    found = checked("dp(8)", profile="eager", block="llama").rounds
    assert {(each.of, each.part, each.what) for each in found} == {
        (("layer",), "forward", "attention_norm_unit"),
        (("layer",), "forward", "shares"),
        (("layer",), "forward", "mlp_norm_unit"),
        (("head",), "forward", "final_norm_unit"),
        (("layer",), "backward", "d middle"),
        (("layer",), "backward", "d seen"),
        (("layer",), "backward", "d layer_in"),
        (("head",), "backward", "d layers_out"),
    }
    assert not checked("dp(8)", profile="eager", policy="fp32-adam").rounds  # nothing is copied


@pytest.mark.parametrize("profile", [None, "textbook", "common", "megatron", "pytorch"])
def test_nothing_else_is_said_where_nothing_is_rounded(profile):
    found = checked("zero3(8)", profile=profile)
    assert not found.rounds and "exact" not in found.headline


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("plan", PLANS)
def test_every_derived_step_is_accepted_by_every_profile_that_takes_it(plan, profile):
    if realises(profiled(profile), parse(plan).product):
        assert checked(plan, profile=profile).accepted


@pytest.mark.parametrize("profile", PROFILES)
def test_a_plan_is_predicted_and_checked_with_the_same_lines(profile):
    shape = {"config": "llama-3-8b"}
    names = ("zero1", "dp", "zero3", "fsdp-offload")
    able = (name for name in names if realises(profiled(profile), parse(name).product))
    strategy = f"{next(able)}(2)"
    plan = read(Asked("predict", strategy, model={**shape, "sequence": "8"}, profile=profile))
    of_plan = [(each.what, each.line, each.to) for each in rounded(plan.step, plan.policy)]
    found = checked(strategy, profile=profile, **shape).rounds
    assert [(each.what, each.line, each.to) for each in found] == of_plan


BYTES = st.sampled_from([1, 2, 4, 8])


@given(st.sampled_from(PLANS), BYTES, BYTES, BYTES, BYTES, st.sampled_from([*POLICIES.values()]))
def test_whatever_passes_in_fewer_bytes_than_it_rests_in_is_told(plan, g, r, w, q, policy):
    policy = replace(policy, w=w, gathered=g, reduced=r, quantised=min(q, g))
    step = derive(parse(plan).product, parts(small("llama", False)))
    told = {(each.group, each.line) for each in rounded(step, policy)}
    for number, group in enumerate(step.groups):
        for op in group.schedule.ops:
            sizes = Sizes(8, dict.fromkeys(group.schedule.axes, 2), policy)
            sent = sizes.width_sent(op)
            from_rest = op.source in (Buffer.PARAMETERS, Buffer.GRADIENTS)
            moves = op.kind is Kind.ALL_GATHER or op.kind in REDUCTIONS
            if moves and from_rest and op.state in (State.PARAMETERS, State.GRADIENTS):
                has = policy.of(op.state)
                if sent < has:
                    assert (number, op) in told


def test_lines_of_a_file_are_named_by_their_numbers(tmp_path, psem):
    file = tmp_path / "my.toml"
    file.write_text(psem("derive", "zero3")[1])
    code, out, _ = psem("check", file, "--profile", "fsdp2")
    assert (code, out.count("line 21, micro_step 1"), out.count("line 24, micro_step 4")) == (0, 1, 1)
    assert "types of states are the profile's, all else is as the file says" in out
    told = json.loads(psem("check", file, "--profile", "fsdp2", "--json")[1])
    assert [each["line"] for each in told["rounded"]] == [21, 24]


def test_a_models_step_says_itself_what_it_copies_in_fewer_bytes(tmp_path, psem):
    of = realised_parts(small("llama", False), profiled("eager"), 2)
    text = dumps(derive(parse("dp").product, of), "mine")
    file = tmp_path / "my.toml"
    file.write_text(text)
    code, out, _ = psem("check", file)
    assert code == 0 and "accepted in exact arithmetic" in out
    number = next(n for n, line in enumerate(text.splitlines(), 1) if 'into = "shares[' in line)
    assert f"line {number}, forward" in out


@pytest.mark.parametrize(
    ("strategy", "profile", "said"),
    [
        ("zero2", "zero-redundancy", "expected states that it has, such as zero1, or another profile"),
        ("zero2", "fsdp3", "nearest: fsdp2"),
        ("FILE", "common", "expected a profile with types of the states, such as fsdp2"),
        ("STEP", "fsdp2", "expected textbook: the file says what is computed"),
    ],
)
def test_a_profile_that_cannot_be_is_refused_in_a_line(strategy, profile, said, tmp_path, psem):
    for name, given_ in (("FILE", ["zero2"]), ("STEP", ["zero2 * tp"])):
        (tmp_path / name).write_text(psem("derive", *given_)[1])
    of = tmp_path / strategy if strategy.isupper() else strategy
    code, out, err = psem("check", of, "--profile", profile)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_features_that_a_profile_cuts_unevenly_are_checked_as_they_are_predicted(psem):
    shape = ["--block", "llama", "--layers", 1, "--hidden", 8, "--heads", 4, "--feed-forward", 10]
    assert psem("predict", "tp(4)", *shape, "--sequence", 4, "--profile", "parallelize")[0] == 0
    assert psem("check", "tp(4)", *shape, "--profile", "parallelize")[0] == 0
    code, _, err = psem("check", "tp(4)", *shape)
    assert code == 2 and "the features inside the MLP" in err


def test_what_is_rounded_is_told_by_every_command_that_takes_a_profile(psem):
    shape = ["--block", "llama", "--layers", 1, "--hidden", 8, "--heads", 4, "--vocabulary", 8]
    model = [*shape, "--sequence", 4, "--profile", "fsdp2"]

    def told(*typed):
        code, out, _ = psem(*typed, "--json")
        assert code == 0
        return json.loads(out)

    once = told("predict", "zero3(2)", *model)["profile"]["rounded"]
    assert {"what": "parameters, to compute with", "from": 4, "to": 2} in once
    found = told("simulate", "zero3(2)", *model)
    assert (found["inputs"]["profile"], found["rounded"]) == ("fsdp2", once)
    plans = told("compare", "zero3(2)", "tp(2)", *model)["plans"]
    assert [plan["rounded"] for plan in plans] == [once, once]
    (said,) = (
        line
        for line in psem("compare", "zero3(2)", "tp(2)", *model)[1].splitlines()
        if "not exact, zero3(2): rounded from 4 bytes to 2" in line
    )
    assert "parameters, to compute with" in said
