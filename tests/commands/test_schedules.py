"""The commands for schedules: derive writes one, check judges one."""

import json
from itertools import product

import pytest

from proofs.checking.further_schedules import of_two_neighbours
from proofs.checking.matching_schedules import along
from proofs.checking.witnesses import around
from proofs.registry import ROOT
from psem_model.check.replay import replay
from psem_model.check.sizes import exceptions
from psem_model.reading.schedules import dumps, loads, read
from psem_model.reading.toml_lines import locate
from spec.checking.everywhere import everywhere
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, Monomial, Op, Phase
from spec.meaning.reference import first_divergence
from spec.models.states import POLICIES
from spec.plans.placement import on_batch
from spec.plans.strategies import STRATEGIES
from tests.support.command import PLACED, without
from tests.support.crosscheck import REGRESSIONS
from tests.support.damage import with_one_fault
from tests.support.examples import few, slow_but
from tests.support.polynomials import with_roots
from tests.support.schedules import PIECES


# ---------------------------------------------------------------------- derive
@pytest.mark.parametrize("name", STRATEGIES)
def test_derive_prints_the_schedule_of_a_strategy(name, psem):
    code, out, err = psem("derive", name)
    assert (code, err) == (0, "")
    assert out.startswith(f"# {name}: ")
    assert loads(out, "x") == schedule_of(STRATEGIES[name])


def test_derive_prints_the_schedule_of_a_placement(psem):
    code, out, _ = psem("derive", "--hold", "--placement", PLACED.format("S*"))
    assert code == 0
    assert out.startswith(f"# placement {PLACED.format('S*')} --hold\n")
    assert loads(out, "x") == schedule_of(on_batch("S*", "S", "S", "S", hold=True))


def test_schedules_that_cannot_be_right_are_derived_too_to_look_at(psem):
    code, out, _ = psem("derive", "--placement", PLACED.format("S"))
    assert code == 0
    assert loads(out, "x") == schedule_of(on_batch("S", "S", "S", "S"))


# ----------------------------------------------------------------------- check
LONG = (  # which line is wrong is looked for long
    "parts_of_norms_inside_what_is_gathered",
    "gradients_of_what_is_another_elsewhere",
    "gradients_of_what_is_not_known_elsewhere",
    "norm_min",
)
SOON_FOUND = [path for path in REGRESSIONS if path.stem not in LONG]


@pytest.mark.parametrize("path", slow_but(few(SOON_FOUND), REGRESSIONS), ids=lambda path: path.stem)
def test_check_says_what_is_right_of_every_step_that_once_was_judged_wrongly(path, psem):
    code, out, err = psem("check", path, "--json")
    assert err == ""
    assert code == (0 if json.loads(out)["accepted"] else 1)


LACKING = ("accumulate", "update")  # the line that lacks a reduction, and the one that needs it
REDUCTION = 'op = "reduce_scatter", source = "fresh gradients", axes = ['


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "fused-update"])
def test_check_accepts_what_is_derived_from_a_strategy(name, psem, written):
    code, out, err = psem("check", written(name))
    assert (code, err) == (0, "")
    assert "accepted" in out
    assert "for every number of devices along " in out
    assert "every number of micro-steps\n" in out


def test_check_accepts_fused_updates_with_one_micro_step_only(psem, written):
    path = written("fused-update")
    assert psem("check", path, "--accumulate", 1)[0] == 0
    code, out, _ = psem("check", path)
    assert code == 1
    assert "batch 1, 2 micro-steps" in out


@pytest.mark.parametrize("name", ["zero2", "zero3", "hsdp"])
def test_check_rejects_a_schedule_without_its_reduction_with_line_repair_need_and_run(
    name, psem, written
):
    path = written(name, without('"reduce_scatter"'))
    lines = path.read_text().split("\n")
    line, last = (next(n for n, x in enumerate(lines, 1) if f'op = "{op}"' in x) for op in LACKING)
    code, out, err = psem("check", path)
    assert (code, err) == (1, "")
    assert out.startswith(f"{path}, line {line}: rejected: micro_step ")
    assert "repair  nothing sums the fresh gradients over " in out
    assert f"before it; accepted with {{ {REDUCTION}" in out
    assert "rule    whole" in out
    assert f"at      line {last}, finish " in out
    assert ": update gradients -> optimizer" in out
    assert "has     the gradients it applies are the device's own gradients\n" in out
    run = "a run that diverges, on 2 devices, 2 parameters, 1 micro-step, as in the simulator: "
    assert "; on a single device it is " in out.split(run)[1]


def test_a_rejection_as_json_names_the_line_the_operation_whose_need_is_not_met_and_the_runs(
    psem, written
):
    path = written("zero2", without('"reduce_scatter"'))
    text = path.read_text()
    code, out, _ = psem("check", path, "--json")
    found = json.loads(out)
    assert code == 1
    said = {"file", "accepted", "sizes", "optimizers", "rejection", "divergence", "simulated"}
    assert set(found) == said | {"report", "version", "profile", "rounded"}
    assert found["accepted"] is False
    rejection = found["rejection"]
    unmet = rejection["unmet"]
    assert rejection["rule"] == "whole"
    for named, operation, part, index in (
        (rejection, "accumulate fresh gradients -> gradients", "micro_step", 2),
        (unmet, "update gradients -> optimizer", "finish", 0),
    ):
        assert named["operation"].startswith(operation)
        assert (named["part"], named["index"]) == (part, index)
        assert named["line"] == locate(text, ("step", part, index))
    assert REDUCTION in rejection["repair"]
    assert (rejection["step"], rejection["mesh"], rejection["micro_steps"]) == (1, {"batch": 2}, 1)
    assert rejection["has"] != rejection["needs"]
    assert found["sizes"]["right"] == [{"mesh": {"batch": 1}, "micro_steps": "any"}]
    for run in (found["divergence"], found["simulated"]):
        assert run["step"] == 1
        assert run["has"] != run["single_device"]


def test_an_acceptance_as_json_names_the_cases(psem, written):
    code, out, _ = psem("check", written("hsdp"), "--json", "--devices", "2x4", "--accumulate", 5)
    found = json.loads(out)
    assert (code, found["accepted"]) == (0, True)
    assert found["sizes"]["right"] == [{"mesh": {"replica": 2, "shard": 4}, "micro_steps": 5}]
    assert found["optimizers"] == {"accepted": list(POLICIES), "rejected": {}}
    assert found["rejection"] is found["divergence"] is found["simulated"] is None


@pytest.mark.parametrize(
    ("name", "policy"),
    slow_but(
        [("zero3", "fp32-adam")],
        product(["dp", "zero3", "zero-offload", "hsdp"], ["mixed-adam", "fp32-adam", "fp32-sgd"]),
    ),
)
def test_any_fault_is_replayed_and_on_one_axis_with_the_same_numbers(name, policy):
    bytes_ = POLICIES[policy]
    for add in PIECES.values():
        for faulty in with_one_fault(add(schedule_of(STRATEGIES[name]))):
            mesh = dict.fromkeys(faulty.axes, 2)
            elements, steps = 2 ** len(mesh), 2
            kept = {"stateful": bytes_.k > 0, "master": bytes_.master}
            has = first_divergence(faulty, mesh, steps=steps, micro_steps=2, **kept)
            if has is not None:
                again = replay(faulty, mesh, 2, elements, bytes_, steps, has)
                assert again is not None
                assert len(mesh) > 1 or vars(again) == vars(has)


def test_a_run_that_is_right_is_not_replayed_as_one_that_diverges():
    right, wrong = (read(str(ROOT / "examples" / f"{n}.toml")) for n in ("ddp_mean", "mean_twice"))
    has = first_divergence(wrong, {"batch": 2})
    assert replay(right, {"batch": 2}, 1, 2, POLICIES["mixed-adam"], 3, has) is None


def test_a_shift_by_a_multiple_of_every_usual_size_is_rejected(psem, tmp_path):
    path, shift = tmp_path / "my.toml", 6 * 1_000_003
    text = (ROOT / "examples" / "shard_offset.toml").read_text()
    assert "shift = 1" in text
    path.write_text(text.replace("shift = 1", f"shift = {shift}"))
    code, out, _ = psem("check", path)
    assert code == 1
    assert "batch 4, 1 micro-step" in out
    assert "accepted for 1, 2, 3, 6, 1,000,003, 2,000,006, 3,000,009 and 6,000,018 devices only" in out


@pytest.mark.parametrize(
    ("name", "roots", "words"),
    [
        ("batch", [4], "accepted for 4 devices only"),
        pytest.param(
            *("batch", [1, 2, 3, 1_000_003], "accepted for 1, 2, 3 and 1,000,003 devices only"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("micro_steps", [1, 2, 3], "accepted for 1, 2 and 3 micro-steps only"),
            marks=pytest.mark.slow,
        ),
        ("micro_steps", [], "rejected for every number of devices and of micro-steps"),
    ],
)
def test_the_sizes_for_which_a_rejected_schedule_is_right_are_said(name, roots, words, psem, tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(dumps(with_roots(schedule_of(STRATEGIES["dp"]), name, roots), "my"))
    code, out, _ = psem("check", path)
    assert code == 1
    assert f" {words}\n" in out
    assert "a run that diverges, on " in out
    option = "--devices" if name == "batch" else "--accumulate"
    for root in roots:
        assert psem("check", path, option, root)[0] == 0


@pytest.mark.parametrize(
    ("by", "devices", "micro_steps", "words"),
    [
        ("micro_steps/batch", 20, 20, "accepted where micro_steps = batch"),
        ("30/batch/micro_steps", 5, 6, "accepted where batch*micro_steps = 30"),
        (
            "500/batch/micro_steps",
            *(20, 25),
            "accepted where batch*micro_steps = 500 (not decided; looked at: sizes up to 6)",
        ),
    ],
)
def test_where_a_condition_on_several_sizes_makes_it_right_it_is_said_and_how_far_it_is_decided(
    by, devices, micro_steps, words, psem, written
):
    scaled = f'{{ op = "scale", source = "gradients", by = "{by}" }},\n  {{ op = "update"'
    path = written("dp", lambda text: text.replace('{ op = "update"', scaled))
    assert f"  sizes   {words}\n" in psem("check", path)[1]
    assert psem("check", path, "--devices", devices, "--accumulate", micro_steps)[0] == 0


@pytest.mark.slow
def test_a_condition_that_holds_for_one_number_alone_is_not_said_of_all(psem, written):
    scaled = (
        '{ op = "scale", source = "gradients", by = "12/outer/inner/micro_steps" },\n  { op = "update"'
    )

    def both(text):
        return text.replace('"batch"', '"outer", "inner"').replace('{ op = "update"', scaled)

    path = written("dp", both)
    out = psem("check", path)[1]
    (line,) = (line for line in out.splitlines() if line.startswith("  sizes"))
    assert line.split("   ")[1] == (
        "accepted where inner*micro_steps*outer = 12 (not decided; looked at: sizes up to 6)"
    )
    assert psem("check", path, "--devices", "3x4", "--accumulate", 2)[0] == 1


@pytest.mark.slow
def test_a_condition_that_holds_for_one_number_is_told_with_it():
    by = Monomial(powers=(("outer", 1), (MICRO_STEPS, -1)))
    over = Op(Kind.SCALE, Phase.REDUCE, Buffer.GRADIENTS, by=by)
    neighbours = of_two_neighbours(schedule_of(along(("outer", "inner"), "dp")))
    schedule = around(neighbours, before=(over,))
    said = exceptions(everywhere(schedule, {}), {})
    assert "accepted where 2*outer = micro_steps with inner 1 (" in said
    for inner, right in ((1, True), (3, False)):
        assert check(schedule, {"outer": 1, "inner": inner}, 2).accepted is right


TWO_CONDITIONS = """
axes = ["b", "c"]
training = { loss = "sum", tied = true }
rest.activations.sharded = ["b", "c"]

[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "fresh gradients" },
  { op = "scale", source = "fresh gradients", by = "c/b" },
  { op = "scale", source = "tied gradients", by = "b*b/c/c" },
  { op = "accumulate", source = "tied gradients", into = "fresh gradients" },
  { op = "accumulate", source = "fresh gradients", into = "gradients" },
  { op = "release", source = "fresh gradients" },
  { op = "release", source = "tied gradients" },
]
finish = [
  { op = "all_reduce", source = "gradients", axes = ["b", "c"] },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
]
"""


def test_of_two_conditions_with_the_same_sizes_the_one_that_is_decided_is_said(psem, tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(TWO_CONDITIONS)
    assert "  sizes   accepted where c = b\n" in psem("check", path)[1]
    assert psem("check", path, "--devices", "3x3")[0] == 0


@pytest.mark.slow
def test_many_sizes_that_follow_each_other_are_the_first_and_the_last(psem, tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(dumps(with_roots(schedule_of(STRATEGIES["dp"]), "batch", [*range(2, 9), 64]), "my"))
    assert " accepted for 2 to 8 and 64 devices only\n" in psem("check", path)[1]


def test_what_is_not_decided_for_every_number_of_micro_steps_is_said_to_be_looked_at(psem, written):
    scaled = '{ op = "scale", source = "gradients", by = 2 },\n  { op = "forward"'
    path = written("dp", lambda text: text.replace('{ op = "forward"', scaled))
    code, out, _ = psem("check", path)
    assert code == 1
    assert "accepted for 1 micro-step only; looked at: 1, 2 and 3 micro-steps\n" in out


def test_a_rejection_is_of_numbers_of_devices(psem, written):
    path = written("dp", without('op = "all_reduce"'))
    code, out, _ = psem("check", path, "--json")
    assert code == 1
    assert json.loads(out)["rejection"]["mesh"] == {"batch": 2}


def test_on_many_axes_sizes_must_be_given(psem, written):
    names = [f"a{i}" for i in range(12)]
    axes = ", ".join(f'"{name}"' for name in names)
    path = written("dp", lambda text: text.replace('"batch"', axes))
    code, out, err = psem("check", path)
    assert (code, out) == (2, "")
    assert "given nothing for 12 axes; expected sizes such as 2x2x" in err
    assert psem("check", path, "--devices", "x".join("1" for _ in names))[0] == 0
    path.write_text(without('op = "all_reduce"')(path.read_text()))
    assert psem("check", path, "--devices", "x".join(["2", *("1" for _ in names[1:])]))[0] == 1


def test_a_product_of_many_axes_is_refused_before_anything_is_checked(psem, monkeypatch):
    monkeypatch.setattr("psem_model.check.steps.check_schedule", None)
    code, out, err = psem("check", "hsdp * ep * tp+sp * cp * pp", "--block", "llama")
    assert (code, out) == (2, "")
    words = "given nothing for 5 axes that place a weight, of the product's 6; expected sizes such as"
    assert f"{words} 2x2x2x2x2x2 to check more than 4 axes\n" in err


def test_a_check_as_json_says_of_which_layers_it_is(psem):
    mixtral = ROOT / "examples" / "configurations" / "mixtral-8x7b-v0.1.json"
    for args, kind, experts in (
        (["tp"], "gpt", False),
        (["ep", "--block", "llama"], "llama", True),
        (["tp", "--config", mixtral], "mixtral", True),
    ):
        found = json.loads(psem("check", *args, "--json")[1])
        assert found["layers"] == {"kind": kind, "experts": experts}


def test_a_step_that_ends_wrong_is_rejected_at_the_line_after_which_something_is_missing(psem, written):
    path = written("zero2", without('phase = "publish"'))
    code, out, _ = psem("check", path)
    assert code == 1
    line = locate(path.read_text(), ("step", "finish", 0))
    assert out.startswith(f"{path}, line {line}: rejected: finish 1: update gradients -> optimizer")
    assert "repair  nothing gathers the parameters over batch after it; " in out
    assert "rule    agreed" in out
    assert "at      the end of the step" in out
    assert (
        "outside a device's own slice along batch, the resting parameters are the weights from before"
        in out
    )


def test_the_repeated_operation_is_named_where_it_stands(psem, written):
    path = written("zero3", without('phase = "backward"'))
    code, out, _ = psem("check", path, "--accumulate", 3, "--json")
    rejection = json.loads(out)["rejection"]["unmet"]
    assert (code, rejection["part"]) == (1, "micro_step")
    assert rejection["operation"].startswith("backward")
    assert '"backward"' in path.read_text().split("\n")[rejection["line"] - 1]


def test_what_holds_for_one_number_of_devices_only_is_said_so(psem, written):
    scaled = '{ op = "scale", source = "gradients", by = "1/4" },\n  { op = "update"'

    def mean(text):
        return text.replace('loss = "sum"', 'loss = "mean"').replace('{ op = "update"', scaled)

    path = written("dp", mean)
    assert psem("check", path, "--devices", 4, "--accumulate", 1)[0] == 0
    code, out, _ = psem("check", path)
    assert code == 1
    assert "batch 1, 1 micro-step" in out
    path.write_text(path.read_text().replace('"1/4"', '"1/batch/micro_steps"'))
    assert psem("check", path)[0] == 0


def test_without_a_byte_policy_it_is_said_for_which_optimizers_a_schedule_is_right(psem, written):
    path = written("zero-offload")
    code, out, _ = psem("check", path)
    assert code == 0
    copies = "mixed-adam, mixed-adam-fp32-gradients, mixed-adam-fp32-copy"
    assert f"accepted with a copy of the weights in the optimizer state ({copies})\n" in out
    assert "  rejected with fp32-adam, fp32-momentum, fp32-sgd: at the end of the step: " in out
    assert psem("check", path, "--bytes", "fp32-adam")[0] == 1
    assert psem("check", path, "--bytes", "mixed-adam")[1].startswith(f"{path}: accepted\n")
    assert "accepted for every optimizer\n" in psem("check", written("zero3"))[1]


def test_what_is_right_without_a_copy_of_the_weights_only_is_rejected_and_said(psem, written):
    path = written(
        "dp",
        lambda text: text.replace("optimizer = { sharded = [] }", "optimizer = { stored = false }"),
    )
    code, out, _ = psem("check", path)
    assert code == 1
    assert "  but    accepted with nothing in the optimizer state (fp32-sgd)\n" in out
    assert psem("check", path, "--bytes", "fp32-sgd")[0] == 0


def test_what_stages_share_is_placed_on_the_two_that_have_it(psem):
    code, out, _ = psem("check", "zero1(dp=4) * pp(8)", "--json")
    (shared,) = (w for w in json.loads(out)["weights"] if "pipe" in w["axes"])
    assert code == 0
    right = [{"mesh": {"dp": 4, "pipe": 2}, "micro_steps": "any"}]
    assert shared["schedule"]["sizes"]["right"] == right


@pytest.mark.parametrize("command", ["predict", "simulate"])
def test_a_file_is_taken_in_place_of_a_strategy(command, psem, written):
    path, sizes = written("zero2"), ["--psi", "100", "--devices", "4"]
    assert psem(command, path, *sizes) == psem(command, "--schedule", path, *sizes)
    code, _, err = psem(command, path, "--schedule", path, *sizes)
    assert (code, "one of the three" in err) == (2, True)


def test_where_each_device_has_all_samples_there_is_nothing_to_sum(psem, tmp_path):
    placement = "parameters=R, optimizer=S, gradients=R, activations=R"
    _, out, _ = psem("derive", "--placement", placement)
    path = tmp_path / "all.toml"
    summed = '{ op = "reduce_scatter", source = "gradients", axes = ["batch"] },'
    for text, code in ((out, 1), (out.replace(summed, ""), 0)):
        path.write_text(text)
        assert psem("check", path)[0] == code
