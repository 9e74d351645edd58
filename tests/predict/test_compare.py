"""Plans side by side: equal plans line up, a rejected one is shown as that, and units are said."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from psem_model.text.figures import GB, UNITS, unit_of
from tests.support.command import exact
from tests.support.examples import examples

SHAPE = ["--layers", 8, "--hidden", 64, "--heads", 8, "--sequence", 32]
PSI = ["--psi", "1e9"]
WRONG = ["fused-update(dp=4)", "zero1(4)", "--accumulate", 4]


@pytest.mark.parametrize(
    "args",
    [
        [*WRONG, *PSI],
        [*WRONG, *SHAPE],
        ["fused-update(dp=4) * tp(2)", "zero1(4) * tp(2)", "--accumulate", 4, *SHAPE],
        ["zero-offload(4)", "zero1(4)", "--bytes", "fp32-adam", *PSI],
    ],
)
def test_a_rejected_plan_is_shown_with_its_reason_and_exit_code_1(args, psem):
    code, out, err = psem("compare", *args)
    assert (code, err) == (1, "")
    (verdict,) = [line.split("  ") for line in out.splitlines() if line.startswith("  verdict")]
    _, said, right = filter(None, (cell.strip() for cell in verdict))
    without_copy = "zero-offload(4)" in args  # a step may be written by hand
    assert (said, right) == ("not derived" if without_copy else "rejected", "accepted")
    (reason,) = [line for line in out.splitlines() if line.startswith(f"  {said}")]
    assert args[0] in reason
    code, out, _ = psem("compare", *args, "--json")
    wrong, right = json.loads(out)["plans"]
    assert (code, wrong["accepted"], right["accepted"]) == (1, False, True)
    assert wrong["reason"] in reason
    assert right["reason"] is None


def test_predict_and_compare_reject_the_same(psem):
    for shape in (PSI, SHAPE):
        assert psem("predict", WRONG[0], *WRONG[2:], *shape)[0] == 1
        assert psem("compare", *WRONG, *shape)[0] == 1


@pytest.mark.parametrize("shape", [PSI, SHAPE])
def test_devices_are_of_the_plans_that_do_not_say_their_sizes(shape, psem):
    typed = psem("compare", "zero1(2)", "dp(4)", *shape)
    assert typed[0] == 0
    mixed = psem("compare", "zero1(2)", "dp", "--devices", 4, *shape)
    rows = [
        [line.split()[-2:] for line in out.splitlines() if "zero1(2)" not in line][-9:]
        for out in (mixed[1], typed[1])
    ]
    assert rows[0] == rows[1]
    code, _, err = psem("compare", "zero1(2)", "dp", *shape)
    assert code == 2
    assert "given 'dp' without sizes beside 'zero1(2)'; expected dp(8), say, or --devices" in err
    code, _, err = psem("compare", "zero1(2)", "dp(2)", "--devices", 2, *shape)
    assert (code, "which says its sizes" in err) == (2, True)


FACTORS = ["zero3(a=2)", "zero1(b=3)", "dp(c=4)", "zero2(d=2)", "fsdp(e=3)"]


@settings(examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(FACTORS), min_size=2, max_size=3))
def test_the_order_of_factors_changes_nothing_that_is_compared(psem, factors):
    plans = [" * ".join(some) for some in permutations(sorted(factors))]
    for shape in (["--psi", 720], [*SHAPE, "--vocabulary", 48]):
        code, out, _ = psem("compare", *plans, *shape, "--json")
        first, *others = json.loads(out)["plans"]
        assert code == 0
        for other in others:
            assert {**other, "strategy": ""} == {**first, "strategy": ""}


@pytest.mark.parametrize(
    "args",
    [
        ["zero-offload(4)", "dp(4)", *PSI],
        ["zero-offload(4)", "dp(4)", *PSI, "--bytes", "fp32-adam"],
        ["zero3(a=2) * zero3(b=2)", "zero1(4)", *PSI],
        ["zero-offload(2) * tp(2)", "zero1(2) * pp(2)", *SHAPE, "--offload-activations"],
    ],
)
def test_text_and_json_have_the_same_figures(args, psem):
    lines = [line.split("  ") for line in psem("compare", *args)[1].splitlines()]
    rows = {words[1]: [w.strip() for w in words[2:] if w.strip()] for words in lines[1:]}
    plans = json.loads(psem("compare", *args, "--json")[1])["plans"]

    unit = next(u for u in UNITS if rows["sent, all"][0].endswith(f" {u.name}"))
    figures = {}
    for plan in plans:
        for name, size in plan["memory"].items():
            figures.setdefault(name.replace("_", " "), []).append(size)
        for axes in {axes for p in plans for axes in p["sent"]}:
            figures.setdefault(f"sent over {axes}", []).append(plan["sent"].get(axes))
        figures.setdefault("sent, all", []).append(plan["sent_all"])
        figures.setdefault("over the host link", []).append(plan["host_bytes"])
    for name, sizes in figures.items():
        some = [exact(size) for size in sizes if size and exact(size)]
        assert rows.get(name, []) == [unit.texts(size)[0] for size in some]


def test_a_total_is_the_sum_of_what_it_is_of(psem):
    args = ["zero-offload(4)", "zero3(a=2) * dp(b=2)", *PSI, "--json"]
    for plan in json.loads(psem("compare", *args)[1])["plans"]:
        states = sum(exact(plan["memory"][s]) for s in ("parameters", "optimizer", "gradients"))
        assert exact(plan["memory"]["resting"]) == states
        assert exact(plan["sent_all"]) == sum(map(exact, plan["sent"].values()))
        _, out, _ = psem("predict", plan["strategy"], *PSI, "--json")
        costs = json.loads(out)
        assert exact(plan["memory"]["resting"]) == exact(costs["memory"]["resting"]["total"])
        assert exact(plan["sent_all"]) == exact(costs["communication"]["bytes"])
        assert exact(plan["host_bytes"]) == exact(costs["communication"]["host_bytes"])


def test_differences_that_are_not_applied_without_a_shape_are_said_as_by_predict(psem):
    profile = (*PSI, "--profile", "zero-offload", "--json")
    plans = ("zero-offload(4)", "zero-offload(2)")
    plan, _ = json.loads(psem("compare", *plans, *profile)[1])["plans"]
    told = json.loads(psem("predict", "zero-offload(4)", *profile)[1])["profile"]["not_applied"]
    words = [f"not applied without a model's shape and --sequence: {each['what']}" for each in told]
    assert words and words == [note for note in plan["notes"] if note.startswith("not applied")]
    assert any("brought back" in note for note in words)
    assert not any("summed whole" in note for note in words)
    shape = (*SHAPE, "--profile", "zero-offload", "--json")
    plan, _ = json.loads(psem("compare", *plans, *shape)[1])["plans"]
    assert not [note for note in plan["notes"] if note.startswith("not applied")]


PASSES = ("placeholders", "buckets", "step_counts", "gathered_or_fresh", "computing", "offloaded")


def test_what_rests_is_kept_and_passes_is_the_peak(psem):
    args = ["zero3(4)", "zero1(2) * tp+sp(2)", *SHAPE, "--json"]
    for plan in json.loads(psem("compare", *args)[1])["plans"]:
        of = ("resting", "activations", *PASSES, "more_placeholders")
        memory = plan["memory"]
        assert exact(memory["peak"]) == sum(exact(memory[name]) for name in of)


def test_an_unknown_model_is_the_first_of_what_is_wrong(psem):
    for command in (["predict", "zero3"], ["compare", "zero3", "dp"]):
        code, out, err = psem(*command, "--model", "llama3-70b")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("psem: llama3-70b: neither a file nor a packaged model")
        assert err.endswith("nearest: llama-3-70b\n")


def test_a_plan_fits_in_a_devices_memory_or_is_too_much_for_it(psem):
    args = ["zero1(4)", "zero3(4)", *PSI, "--unit", "1e8", "--memory", "5GB"]
    one, three = json.loads(psem("compare", *args, "--json")[1])["plans"]
    assert exact(one["memory"]["peak"]) - exact(one["memory"]["over_by"]) == 5 * 10**9
    assert exact(three["memory"]["peak"]) + exact(three["memory"]["left"]) == 5 * 10**9
    assert {*one["memory"]} & {"left"} == {*three["memory"]} & {"over_by"} == set()
    _, out, _ = psem("compare", *args)
    assert "left of 5GB" in out
    assert "over 5GB by" in out
    for size, bytes_ in (("5GiB", 5 * 2**30), ("5000 mb", 5 * 10**9), ("5e9B", 5 * 10**9)):
        _, out, _ = psem("predict", "zero3(4)", *PSI, "--unit", "1e8", "--memory", size, "--json")
        memory = json.loads(out)["memory"]
        assert exact(memory["peak"]) + exact(memory["left"]) == bytes_
    for wrong in ("80", "80G", "GB", "0GB", "-1GB", "1e40GB"):
        code, out, err = psem("predict", "zero3(4)", *PSI, "--memory", wrong)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert repr(wrong) in err or "1e40" in err


def test_a_comparison_says_its_model_its_samples_and_its_bytes(psem):
    _, out, _ = psem("compare", "zero1(4)", "zero1(2) * tp+sp(2)", *SHAPE, "--bytes", "fp32-adam")
    head = out.partition("devices")[0]
    assert "parameters: 8 layers of 64 features, 8 heads" in head
    assert "micro-batches of 1 sample of 32 tokens" in head
    assert "bytes: weight 4 (fp32 weight)" in head
    assert "zero1(4): nothing is made again for backward\n" in head
    assert "zero1(2) * tp+sp(2): nothing is made again for backward; what is gathered is" in head


def test_what_is_compared_says_what_it_is_of(psem):
    _, out, _ = psem("compare", "dp(4)", "zero1(4)", *PSI)
    assert "memory per device; sent per device and step\n" in out
    _, out, _ = psem("compare", "dp(4)", "zero1(2) * pp(2)", *SHAPE)
    assert "memory per device, of the fullest stage; sent per device and step, of the busiest\n" in out
    assert "peak is an upper bound" in out
    _, out, _ = psem("compare", "zero3(a=2)", "zero3(a=2) * zero3(b=2)", *PSI)
    assert "sent over a x b" in out
    assert "a x b: one group; axis by axis as much in all" in out


@given(st.lists(st.fractions(0, 10**15, max_denominator=9)))
def test_the_unit_suits_the_largest_size(sizes):
    unit, largest = unit_of(sizes), max(sizes, default=0)
    assert largest >= unit.size or unit.size == 1 or largest == 0
    assert unit == GB or 0 < largest < 1000 * unit.size
    for size in sizes:
        decimal, binary = (text.replace(",", "").split() for text in unit.texts(size))
        assert float(decimal[0]) * unit.size == pytest.approx(size, rel=1e-5)
        assert float(binary[0]) * unit.other_size == pytest.approx(size, rel=1e-5)


def test_units_are_the_powers_that_they_are_said_to_be():
    assert [unit.words for unit in UNITS] == [
        "GB = 1e9 bytes, GiB = 2^30 bytes",
        "MB = 1e6 bytes, MiB = 2^20 bytes",
        "kB = 1e3 bytes, KiB = 2^10 bytes",
        "B = bytes",
    ]


@pytest.mark.parametrize(("psi", "unit"), [(3, "B"), (1000, "kB"), ("1e6", "MB"), ("1e9", "GB")])
def test_small_models_are_shown_in_small_units(psi, unit, psem):
    for command in (["predict", "dp(2)"], ["compare", "dp(2)", "zero3(2)"]):
        _, out, _ = psem(*command, "--psi", psi)
        assert f" {unit}" in out
        assert all(f" {other.name} " not in out for other in UNITS if other.name != unit)


def test_a_file_is_compared_with_the_plan_that_it_varies(psem, tmp_path):
    """A schedule of states, and a model's step, beside the strategies that they are derived from."""
    shape = ["--layers", 2, "--hidden", 16, "--heads", 4, "--vocabulary", 8, "--sequence", 8]
    for strategy, devices, of in (
        ("zero3", "4", ["--psi", 1000]),
        ("zero3", "4", shape),
        ("zero1 * tp", "2x2", [*shape, "--profile", "textbook"]),
    ):
        file = tmp_path / "step.toml"
        file.write_text(psem("derive", strategy)[1])
        args = [strategy, file, "--devices", devices, "--global-batch", 8, *of, "--json"]
        code, out, err = psem("compare", *args)
        assert code == 0, err
        one, other = json.loads(out)["plans"]
        assert one | {"strategy": ""} == other | {"strategy": ""}
    code, _, err = psem("compare", file, file, "--devices", "2x2", *shape)
    assert (code, "twice" in err) == (2, True)
    code, _, err = psem("compare", "zero3(4)", file, *shape)
    assert (code, "--devices: missing" in err) == (2, True)


def test_what_is_left_of_a_devices_memory_says_where_activations_are_not_counted(psem):
    words = "without activations, which need --sequence"
    model = ("--model", "llama-3-8b", "--memory", "80GB")
    for command in (("predict", "zero3(8)"), ("compare", "zero1(8)", "zero3(8)")):
        assert words in " ".join(psem(*command, *model)[1].split())
        assert words not in " ".join(psem(*command, *model, "--sequence", "1024")[1].split())


@pytest.mark.parametrize("other", ["zero1(8)", "zero1(dp=8)"])
def test_a_plan_whose_size_is_given_by_devices_is_not_compared_with_itself(other, psem):
    code, out, err = psem("compare", "zero1", other, "--devices", 8, "--psi", "1e9")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "twice; expected plans that differ" in err
    assert psem("compare", "zero1(8)", "zero1(4)", "--psi", "1e9")[0] == 0


def test_the_first_line_names_a_profile_that_differs_of_bare_parameters_too(psem):
    args = ["zero1(2)", "zero3(2)", "--psi", 1000]
    assert psem("compare", *args)[1].splitlines()[0] == "plans side by side"
    assert psem("compare", *args, "--profile", "textbook")[1].splitlines()[0] == "plans side by side"
    _, out, _ = psem("compare", *args, "--profile", "fsdp2")
    assert out.splitlines()[0] == "plans side by side, by the profile fsdp2"


MIXTRAL = ["--model", "mixtral-8x7b-v0.1", "--sequence", 1001]


def test_each_plan_has_the_notes_on_its_figures(psem):
    _, out, _ = psem("compare", "tp(16)", "ep(8)", *MIXTRAL, "--profile", "megatron", "--json")
    tensor, expert = (plan["notes"] for plan in json.loads(out)["plans"])
    assert [note.split(":")[0] for note in tensor[1:]] == ["not as the system"]
    assert "key-value heads is on 2 devices" in tensor[0]
    assert ["2,002 choices of 8 experts" in note for note in expert] == [True]
    _, out, _ = psem("compare", "tp(16)", "ep(8)", *MIXTRAL, "--profile", "megatron")
    assert "  ep(8): 2,002 choices of 8 experts on each device" in out
    assert out.count("not as the system") == 1


@pytest.mark.parametrize(("tokens", "has_formulas"), [(1001, False), (1000, True)])
def test_a_formula_of_even_choices_is_printed_beside_no_figure_of_uneven_ones(
    psem, tokens, has_formulas
):
    given = ("predict", "ep(8)", "--model", "mixtral-8x7b-v0.1", "--sequence", tokens)
    _, out, _ = psem(*given)
    assert ("no formulas but of parameters" in out) != has_formulas
    _, out, _ = psem(*given, "--json")
    formulas = json.loads(out)["formulas"]
    assert ("activations" in formulas["layer"]) == ("forward" in formulas["layer"]) == has_formulas
    assert "parameters" in formulas["layer"]
    assert "activations" in formulas["head"]
