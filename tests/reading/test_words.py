"""Numbers, meshes and names as they are typed: what is taken, and what is said of the rest."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.reading import words
from psem_model.text.errors import BadInput


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("70B", 70 * 10**9),
        ("7b", 7 * 10**9),
        ("1.5T", 15 * 10**11),
        ("350M", 350 * 10**6),
        ("2k", 2000),
        ("7.5e9", 75 * 10**8),
        ("0.001k", 1),
        ("42", 42),
    ],
)
def test_parameters_are_counted_in_thousands_too(text, value):
    assert words.parameters("--psi", text) == value


@pytest.mark.parametrize("text", ["B", "70BB", "70 B", "1.5k5", "0B", "-1B", "1e29k", "0.0001k", "70G"])
def test_what_counts_no_parameters_is_repeated_whole(text):
    with pytest.raises(BadInput) as error:
        words.parameters("--psi", text)
    assert f"given {text!r}" in str(error.value)


def test_only_parameters_are_counted_in_thousands():
    with pytest.raises(BadInput):
        words.count("--devices", "8k", "devices")


@given(st.integers(1, 10**27))
def test_every_whole_number_below_the_largest_is_read(value):
    assert words.count("--psi", str(value), "") == value
    assert words.number("--psi", str(value)) == Fraction(value)


@pytest.mark.parametrize("text", ["1e30", "1" + "0" * 30, "9e30", "1000000e24"])
def test_a_number_is_below_the_largest(text):
    with pytest.raises(BadInput, match="below 1e30"):
        words.count("--psi", text, "parameters")


def test_the_largest_number_is_the_last_below():
    assert words.count("--psi", "9" * 30, "") == 10**30 - 1


@pytest.mark.parametrize("given", ["8x", "x8", "0x10", "x", "8x8", "", "0", "1.5", "8 x"])
def test_devices_are_repeated_whole(given):
    with pytest.raises(BadInput) as error:
        words.mesh(given, ["batch"])
    assert f"given {given!r}; expected a whole number for batch, at least 1" in str(error.value)


def test_whose_devices_are_wrong_is_said(psem):
    code, _, err = psem("compare", "hsdp", "zero1", "--devices", "4x4", "--psi", 100)
    assert code == 2
    assert "--devices: given '4x4' for 'zero1'; expected a whole number for batch" in err


@pytest.mark.parametrize("given", ["1/0", "1/", "/2", "1/2/3", "a/2"])
def test_a_ratio_is_repeated_whole(given):
    with pytest.raises(BadInput, match=f"given '{given}'; expected a number such as 2 or 1/2"):
        words.ratio("--bytes", given)


@pytest.mark.parametrize("axis", ["__class__", "_", "_x", "host", "micro_steps", "é", "a b", "2a", ""])
def test_an_axis_has_a_plain_name_of_its_own(axis, psem):
    assert not words.is_axis(axis)
    for command in (["predict", f"zero1({axis}=2)"], ["check", f"zero1({axis}=2) * tp(2)"]):
        code, out, err = psem(*command, "--psi", 9) if command[0] == "predict" else psem(*command)
        assert (code, out, err.count("\n")) == (2, "", 1)
    placed = ",".join(f"{s}={axis}:R" for s in ("parameters", "optimizer", "gradients", "activations"))
    assert psem("predict", "--placement", placed, "--psi", 9, "--devices", 2)[0] == 2


@pytest.mark.parametrize("second", ["zero1(2)", " zero1( 2 ) ", "zero1(batch=2)"])
def test_a_plan_is_compared_with_others(second, psem):
    code, out, err = psem("compare", "zero1(2)", second, "--psi", 9)
    assert (code, out) == (2, "")
    assert "twice; expected plans that differ" in err


def test_what_takes_too_much_memory_is_blamed(psem):
    size = ["--psi", 9, "--devices", 2]
    for args, blamed in (
        ([*size, "--accumulate", "1e7"], "--accumulate"),
        (["--psi", "1e10", "--devices", 2], "--devices, --psi"),
        (["--psi", 9, "--devices", "1e6"], "--devices"),
        (["--psi", "1e8", "--devices", 2, "--unit", 1], "--psi, --unit"),
        (["--mlp", "90000x900", "--devices", 2], "--devices, --mlp"),
    ):
        code, _, err = psem("simulate", "dp", *args)
        assert code == 2
        assert err.startswith(f"psem: {blamed}: given ")


@pytest.mark.parametrize("text", ["8k", "128K", "0.5k"])
def test_a_count_in_thousands_is_refused_as_it_may_be_1_024_times(text):
    with pytest.raises(BadInput, match=r"1,000 or 1,024.*expected a whole number of tokens"):
        words.count("--sequence", text, "tokens")
    with pytest.raises(BadInput, match=r"expected a whole number, such as 8192"):
        words.count("--seed", text, "", least=0)
