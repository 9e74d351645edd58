"""The gallery in examples/: right schedules, and what real frameworks have had wrong."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import cycle, product

import pytest

from proofs.registry import ROOT
from psem_model.audit.refutations.compositions import TWINS as UNSAFE_TWINS
from psem_model.check.runs import FEW_ALONG_AN_AXIS
from psem_model.check.schedules import RULES, check_schedule
from psem_model.check.words import has, needs
from psem_model.reading.schedules import dumps, loads, read
from psem_model.simulator import simulate
from spec.checking.everywhere import LOOKED_AT
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Op, Phase, Span
from spec.models.states import POLICIES
from spec.plans.strategies import STRATEGIES
from tests.support.crosscheck import agree_on_costs, agree_on_the_verdict
from tests.support.examples import few
from tests.support.schedules import rewrite, with_clipping

GALLERY = ROOT / "examples"
FILES = sorted(path.name for path in GALLERY.glob("*.toml"))
LINES = {name: (GALLERY / name).read_text().splitlines() for name in FILES}
FIRST = re.compile(rf"# expected: (accepted|rejected, ({'|'.join(RULES)}))")
RULE = {name: FIRST.fullmatch(lines[0])[2] for name, lines in LINES.items()}  # None: accepted
ACCEPTED = [name for name in FILES if RULE[name] is None]
REJECTED = [name for name in FILES if RULE[name] is not None]
WRONG, RIGHT = "  # wrong", "  # right: "  # ends a line to drop; begins one to put in

# what each wrong file is once it is mended: another file, or a strategy of psem's own
TWINS = {
    "accumulate_after_reduce.toml": schedule_of(STRATEGIES["dp"]),
    "clip_by_local_norm.toml": "clip_by_global_norm.toml",
    "clip_scaled_gradients.toml": "loss_scale_and_clip.toml",
    "forgotten_reset.toml": schedule_of(STRATEGIES["dp"]),
    "mean_twice.toml": "ddp_mean.toml",
    "missing_all_gather.toml": schedule_of(STRATEGIES["zero1"]),
    "missing_second_gather.toml": schedule_of(STRATEGIES["zero3"]),
    "norm_counted_twice.toml": with_clipping(schedule_of(STRATEGIES["hsdp"])),
    "all_reduce_of_slices.toml": schedule_of(STRATEGIES["zero2"]),
    "whole_gradients_for_slices.toml": schedule_of(STRATEGIES["zero2"]),
    "shard_offset.toml": schedule_of(STRATEGIES["zero2"]),
    "stale_gather.toml": schedule_of(STRATEGIES["zero2"]),
    "tied_after_reduce.toml": "tied_embeddings.toml",
    "token_mean_local_counts.toml": "token_mean.toml",
    "unsynchronised_statistics.toml": "synchronised_statistics.toml",
    "updated_twice.toml": schedule_of(STRATEGIES["dp"]),
}
TWINS |= {f"unsafe_{name}.toml": f"safe_{twin}.toml" for name, twin in UNSAFE_TWINS.items()}
# where a fault can be seen; with fewer devices or micro-steps some are harmless
DEVICES, FEW_STEPS = 3, 2


def mended(name):
    """The text of a file without the lines that it calls wrong, with those that it calls right."""
    kept = [line for line in LINES[name] if not line.endswith(WRONG)]
    return "\n".join(line.replace(RIGHT, "  ") for line in kept)


def without_phases(schedule):
    """The schedule with nothing said about which part of the step an operation serves."""
    return rewrite(schedule, lambda op: [replace(op, phase=Phase.FORWARD)])


def meshes(schedule):
    sizes = range(1, FEW_ALONG_AN_AXIS)
    for some in product(sizes, repeat=len(schedule.axes)):
        yield dict(zip(schedule.axes, some, strict=True))


@pytest.mark.parametrize("name", FILES)
def test_each_example_says_what_is_expected_and_what_it_is_about(name):
    comments = [line for line in LINES[name] if line.startswith("# ")]
    assert FIRST.fullmatch(comments[0])
    assert LINES[name][: len(comments)] == comments
    assert 3 <= len(comments) <= 6
    assert max(map(len, LINES[name])) <= 104


@pytest.mark.parametrize("name", FILES)
def test_check_gives_the_expected_verdict_and_rule_and_what_is_rejected_diverges_twice(name, psem):
    """By the reference and in the simulator, on one axis with the same numbers."""
    code, out, err = psem("check", GALLERY / name, "--json")
    found = json.loads(out)
    assert (code, err) == (0 if name in ACCEPTED else 1, "")
    assert found["accepted"] is (name in ACCEPTED)
    assert found["accepted"] or found["rejection"]["rule"] == RULE[name]
    no_run = name in ACCEPTED or RULE[name] == "room"  # the shapes differ
    assert (found.get("divergence") is None) is no_run
    assert (found.get("simulated") is None) is no_run
    if not no_run and len(read(str(GALLERY / name)).axes) == 1:
        assert found["simulated"].items() <= found["divergence"].items()


@pytest.mark.parametrize("name", FILES)
def test_an_example_matches_in_exact_arithmetic_if_it_is_right_and_else_diverges(name):
    schedule = read(str(GALLERY / name))
    mesh = dict.fromkeys(schedule.axes, DEVICES)
    run = simulate(schedule, mesh, 20, steps=3, micro_steps=FEW_STEPS, unit=7, arithmetic="modular")
    assert run.matches is (name in ACCEPTED), str(run.divergence)


@pytest.mark.parametrize("name", few(FILES))
def test_verdict_and_simulator_agree_on_every_small_mesh(name):
    schedule = read(str(GALLERY / name))
    found = {
        agree_on_the_verdict(schedule, mesh, micro_steps)
        for mesh, micro_steps in product(meshes(schedule), LOOKED_AT)
    }
    assert found == {True} if name in ACCEPTED else False in found


@pytest.mark.parametrize("name", few(ACCEPTED))
def test_what_a_right_example_holds_and_sends_is_what_is_predicted(name):
    schedule = read(str(GALLERY / name))
    policies = cycle(["mixed-adam", "fp32-adam", "fp32-sgd"])
    for mesh, micro_steps, unit in product(meshes(schedule), LOOKED_AT, (20, 7)):
        policy = POLICIES[next(policies)]
        run, costs = agree_on_costs(schedule, mesh, 20, unit, policy, micro_steps, steps=2)
        assert run.matches, str(run.divergence)
        assert run.peak >= costs.total


@pytest.mark.parametrize("name", FILES)
def test_an_example_that_is_written_again_reads_the_same(name):
    schedule = read(str(GALLERY / name))
    assert loads(dumps(schedule, name), name) == schedule


def test_every_wrong_example_has_a_right_twin_and_every_rule_a_wrong_example():
    assert sorted(TWINS) == REJECTED
    assert {RULE[name] for name in REJECTED} == set(RULES)


@pytest.mark.parametrize("name", REJECTED)
def test_a_wrong_example_names_its_twin(name):
    twin, comment = TWINS[name], " ".join(line for line in LINES[name] if line.startswith("# "))
    named = comment.split("Right: ")[1]
    if isinstance(twin, str):
        assert named == f"{twin}."
    else:
        strategy = re.match(r"[a-z0-9]+", named)[0]
        plain, has = schedule_of(STRATEGIES[strategy]), read(str(GALLERY / name))
        assert (has.axes, has.rests) == (plain.axes, plain.rests)


@pytest.mark.parametrize("name", REJECTED)
def test_a_wrong_example_is_accepted_once_what_it_calls_wrong_is_mended(name, psem, tmp_path):
    path = tmp_path / name
    path.write_text(mended(name))
    code, out, err = psem("check", path)
    assert (code, err) == (0, ""), out


@pytest.mark.parametrize("name", REJECTED)
def test_a_mended_example_is_its_twin(name):
    twin = TWINS[name]
    twin = read(str(GALLERY / twin)) if isinstance(twin, str) else twin
    assert without_phases(loads(mended(name), name)) == without_phases(twin)


@pytest.mark.parametrize("name", ACCEPTED)
def test_nothing_in_a_right_example_is_called_wrong(name):
    assert mended(name) == "\n".join(LINES[name])


def test_a_mean_that_is_taken_again_sends_more_and_changes_nothing():
    once, again = (read(str(GALLERY / f)) for f in ("ddp_mean.toml", "accumulate_after_mean.toml"))
    runs = [simulate(s, {"batch": 2}, 20, micro_steps=3) for s in (once, again)]
    assert [run.matches for run in runs] == [True, True]
    assert Fraction(runs[1].sent_elements, runs[0].sent_elements) == 3


# what an engineer reads: what there is, and what is needed
IT_APPLIES = "the gradients it applies are "
SUMMED, OUTSIDE = "the gradients summed over batch", "outside a device's own slice along batch, "
SAYS = {
    "mean_twice": (f"{IT_APPLIES}1/batch/batch x {SUMMED}", f"1/batch x {SUMMED}"),
    "token_mean_local_counts": (
        f"{IT_APPLIES}1/batch x (the gradients / the device's own tokens) summed over batch",
        f"({SUMMED}) / (the tokens summed over batch)",
    ),
    "clip_by_local_norm": (
        f"{IT_APPLIES}{SUMMED}, clipped by the square norm of a device's own slice of them along batch",
        f"{SUMMED}, clipped by their square norm",
    ),
    "clip_scaled_gradients": (
        f"{IT_APPLIES}the gradients, clipped by 1048576 x their square norm",
        "the gradients, clipped by their square norm",
    ),
    "accumulate_after_reduce": (
        f"{IT_APPLIES}batch x the gradients of micro-step 1 summed over batch "
        "+ the gradients of micro-step 2 summed over batch",
        "the gradients of micro-step 1 summed over batch "
        "+ the gradients of micro-step 2 summed over batch",
    ),
    "tied_after_reduce": (
        f"{IT_APPLIES}{SUMMED} + the device's own tied gradients",
        f"{SUMMED} + the tied gradients summed over batch",
    ),
    "forgotten_reset": (f"{IT_APPLIES}the gradients of last step + the gradients", "the gradients"),
    "shard_offset": (
        f"{IT_APPLIES}not known: each device has only the slice of the next device",
        SUMMED,
    ),
    "missing_all_gather": (
        f"{OUTSIDE}the resting parameters are the weights from before the update",
        "the updated weights",
    ),
    "missing_second_gather": (
        f"{OUTSIDE}the parameters it reads are not known: each device has its own slice only",
        "the current weights",
    ),
    "unsynchronised_statistics": (
        "the statistics are the statistics from before the step + the device's own samples' statistics",
        "the statistics from before the step + 1/batch x the samples' statistics summed over batch",
    ),
    "whole_gradients_for_slices": (
        "the values it writes are whole",
        'slices along batch, as there is room for in gradients: within = ["batch"], or op = "keep"',
    ),
}


def found_in(schedule, **given):
    return check_schedule(schedule, given, None)


@pytest.mark.parametrize("name", SAYS)
def test_a_rejection_says_what_there_is_and_what_is_needed_as_an_engineer_does(name):
    verdict = found_in(read(str(GALLERY / f"{name}.toml"))).verdict
    assert (has(verdict), needs(verdict)) == SAYS[name]


def test_of_the_first_devices_statistics_it_is_said_on_which_devices_they_are_missing():
    text = (GALLERY / "synchronised_statistics.toml").read_text()
    reduction = '  { op = "all_reduce", source = "statistics", axes = ["batch"], mean = true },\n'
    assert reduction in text
    of_first = text.replace("statistics = true", 'statistics = "first device"')
    said = has(found_in(loads(of_first.replace(reduction, ""), "")).verdict)
    own = (
        "the statistics are the statistics from before the step + the device's own samples' statistics"
    )
    assert said == f"on all but the first device along batch, {own}"
    sent = reduction.replace("all_reduce", "broadcast").replace(", mean = true", "")
    first = "the first device's statistics from before the step along batch"
    assert first in has(found_in(loads(text.replace(reduction, sent), "")).verdict)


def test_what_is_taken_away_is_written_with_a_minus():
    dp = schedule_of(STRATEGIES["dp"])
    own, phase = Buffer.FRESH, Phase.REDUCE
    keep = Op(Kind.KEEP, phase, Buffer.GRADIENTS, own, span=Span.ALL_UNITS)
    less = Op(Kind.SCALE, phase, own, by=Monomial(Fraction(-1)))
    take = Op(Kind.ACCUMULATE, phase, own, Buffer.GRADIENTS)
    reduction, *others = dp.finish
    schedule = replace(dp, finish=(keep, less, reduction, take, *others))
    said = has(found_in(schedule, batch=2).verdict)
    assert said == f"{IT_APPLIES}{SUMMED} - the device's own gradients"


def test_a_shifted_slice_is_said_to_be_the_one_it_is():
    schedule = schedule_of(STRATEGIES["zero1"])
    *_, gather, reset = schedule.finish
    shifted = replace(schedule, finish=(*schedule.finish[:-2], replace(gather, shift=1), reset))
    assert "shifted by 1 (the slice of the next device)" in str(shifted.finish[-2])
    said = has(found_in(shifted).verdict)
    assert said.endswith("gathered over batch, each slice from the device before")
