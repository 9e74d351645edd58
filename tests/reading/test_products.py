"""Products of strategies as they are read: every error points at what is wrong."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proofs.registry import ROOT
from psem_model.reading.fully_sharded import FULLY_SHARDED, factor
from psem_model.reading.placements import placement
from psem_model.reading.products import NAMES, parse
from psem_model.reading.profiles import packaged
from psem_model.text.errors import BadInput
from spec.plans.compose import HoldError, OverAllError, OverlapError, Product

CONFIGURATIONS = ROOT / "examples" / "configurations"
DENSE = ["--config", CONFIGURATIONS / "llama-3.1-405b.json", "--sequence", 8192]
SPARSE = ["--config", CONFIGURATIONS / "mixtral-8x7b-v0.1.json"]
AXES = ["a", "b", "batch", "tensor", "replica", "shard", "a2"]


def refused(text):
    """Why it is, if it is."""
    try:
        parse(text)
    except BadInput as error:
        return str(error)
    return ""


@st.composite
def written(draw):
    """Factors as they may be written, with a name, a size, both or neither for each axis."""
    sized = draw(st.booleans())
    factors = []
    for name in draw(st.lists(st.sampled_from(sorted(NAMES)), min_size=1, max_size=4)):
        axes = []
        for _ in factor(name).axes:
            size, axis = draw(st.integers(1, 99)), draw(st.sampled_from(AXES))
            axes.append(draw(st.sampled_from([str(size), f"{axis}={size}"])) if sized else axis)
        with_axes = sized or draw(st.booleans())
        factors.append(f"{name}({', '.join(axes)})" if with_axes else name)
    return draw(st.sampled_from(["*", " * ", "*  "])).join(factors)


@given(written(), st.sampled_from(["", " ", "\t  "]))
def test_factors_and_sizes_are_where_they_are_written(text, space):
    assume(not refused(text))
    found = parse(space + text + space)
    for place, part in zip(found.starts, found.product.factors, strict=True):
        assert found.text[place:].startswith(part.name)
    assert set(found.places) == set(found.sizes)
    for axis, place in found.places.items():
        assert found.text[place:].startswith(str(found.sizes[axis]))


@given(written())
def test_what_is_suggested_for_an_axis_that_is_taken_is_free(text):
    factors = text.split("*")
    starts = ("*".join(factors[: number + 1]) for number in range(len(factors)))
    number = next((number for number, start in enumerate(starts) if refused(start)), 0)
    error = refused("*".join(factors[: number + 1]))
    assume("another axis" in error)
    again = refused("*".join([*factors[:number], error.split("as in ")[1]]))
    assert not again or "gathers" in again or "over every axis" in again


@given(st.lists(st.sampled_from(sorted(NAMES)), min_size=1, max_size=4))
def test_what_the_specification_does_not_multiply_is_refused_at_the_factor(names):
    for number in range(len(names)):
        with suppress(OverlapError, HoldError, OverAllError):
            Product(tuple(map(factor, names[: number + 1])))
            continue
        place = len("*".join([*names[:number], ""])) + 1
        assert f"character {place}: given '{names[number]}'" in refused("*".join(names))
        return
    assert not refused("*".join(names))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hsdp(r=8,r=2)", "character 10: given 'r'; expected another axis than r"),
        ("tp(a=2) * cp(a=2)", "character 14: given 'a'; expected another axis than a"),
        ("hsdp(2,2)*hsdp(2,2)", "as in hsdp(replica2=2, shard2=2)"),
        ("dp*zero3*tp", "as in zero3(batch2)"),
        ("   tq(2)", "'tq(2)', character 1: given 'tq'"),
        ("fsdp-hold(a=2) * zero3(b=4)", "character 18: given 'zero3'; expected one that holds"),
    ],
)
def test_an_axis_that_is_taken_is_pointed_at(text, words):
    assert words in refused(text)


def test_a_profile_is_no_strategy_and_told_to_be_one():
    for name in packaged():
        assert refused(name).endswith(f"; {name} is a profile") == (name not in NAMES), name
    assert "profile" not in refused("tpp")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["predict", "zero1(dp=16)*tp(7)", *DENSE],
            "character 17: given 7 along tensor; expected a di",
        ),
        (["compare", "dp(8)", "dp(2) * tp(7)", *DENSE], "'dp(2) * tp(7)', character 12: given 7"),
        (["compare", "dp", "tp", *DENSE, "--devices", 7], "--devices: given 7 along tensor, for 'tp'"),
        (["compare", "dp(4)", "tp(2)", *DENSE, "--devices", 7], "--devices: given with 'dp(4)'"),
        (["predict", "dp(2) * pp(200)", *DENSE], "character 12: given 200 stages"),
        (["predict", "dp(2) * pp(p=200)", *DENSE], "character 14: given 200 stages"),
        (
            ["predict", "pp", *DENSE, "--devices", 200],
            "--devices: given 200 stages, of 1 chunk each, ",
        ),
        (["predict", "dp(2)*ep(2)", *DENSE], "character 7: given 'ep'; expected a model with experts"),
        (["check", "cp(2) * tp(3)", *SPARSE], "character 12: given 3 along tensor"),
        (
            ["check", "tp(2) * cp-all-to-all(3)", *SPARSE],
            "character 23: given 6 along tensor x context",
        ),
        (["check", "tp(2)*pp", *SPARSE], "character 7: given 'pp' without a size for pipe"),
        (
            ["predict", "zero1(2) * tp(2) * zero1(tensr)", *DENSE],
            "'tensr'; expected an axis of the plan, or a name unlike those; nearest: tensor",
        ),
        (["derive", "zero1 * tp * zero1(tensr)"], "character 20: given 'tensr'"),
        (["derive", "cp * ep"], "character 6: given 'ep'; expected it with --experts"),
        (
            ["compare", "dp(2)", "pp(3)", *DENSE, "--accumulate", 4, "--chunks", 2],
            "multiple of the 3 stages of 'pp(3)'",
        ),
    ],
)
def test_a_size_that_does_not_fit_the_model_is_pointed_at(args, words, psem):
    code, out, err = psem(*args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_as_many_sizes_are_asked_for_as_are_taken(psem):
    args = ["check", "hsdp * tp+sp * cp * ep * pp", *SPARSE]
    code, _, err = psem(*args)
    assert code == 2
    sizes = err.split("such as ")[1].split()[0]
    assert psem(*args, "--devices", sizes, "--accumulate", 1)[0] == 0


def test_fully_sharded_strategies_have_the_options_of_their_systems():
    held, on_host = parse("hsdp-hold").product.states, parse("fsdp-offload").product.states
    assert replace(held, hold=False) == parse("hsdp").product.states and held.hold
    given = "parameters=S*+O,optimizer=S+O,gradients=S+O,activations=S"
    assert on_host == placement(given, False)
    assert parse("fsdp-hold-offload").product.states == placement(given, True)
    assert parse("zero3-offload").product.states == on_host
    given = "parameters=replica:R/shard:S*+O,optimizer=replica:R/shard:S+O"
    given += ",gradients=replica:R/shard:S+O,activations=replica:S/shard:S"
    assert parse("hsdp-offload").product.states == placement(given, False)
    assert parse("hsdp-hold-offload").product.states == placement(given, True)


@pytest.mark.parametrize("name", FULLY_SHARDED)
def test_fully_sharded_strategies_are_right_whatever_their_options(name, psem):
    assert psem("check", f"{name} * tp", "--bytes", "mixed-adam")[0] == 0
    mesh = "2x2" if name.startswith("hsdp") else "2"
    assert psem("simulate", name, "--psi", "30", "--devices", mesh)[0] == 0
