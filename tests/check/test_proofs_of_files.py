"""`psem check --prove`: of what is accepted there is a theorem, or it is said why not."""

import json
import re

import pytest

from proofs.checking.operation_lines import NotCovered
from proofs.plans.listed_runs import ListedRuns
from proofs.plans.listing import listing
from proofs.trusted.kernel import Kernel, KernelError
from psem_model.audit.schedules import proof_of
from psem_model.reading.schedules import read
from psem_model.text.places import EXAMPLES
from spec.derivation.schedules import schedule_of
from spec.plans.strategies import STRATEGIES
from tests.support.examples import few, slow_but


def of(name):
    return proof_of([read(str(EXAMPLES / f"{name}.toml"))])


@pytest.mark.parametrize(
    "name",
    slow_but(
        ["token_mean", "safe_experts"],
        [
            *("clip_by_global_norm", "ddp_mean", "loss_scale", "tied_embeddings", "token_mean"),
            *("safe_means_along_both_axes", "safe_tied_along_both_axes", "safe_tokens_of_both_axes"),
            *("safe_experts", "safe_expert_copies"),
        ],
    ),
)
def test_real_training_that_is_accepted_is_proved(name):
    proof = of(name)
    assert not proof.why_not
    assert proof.lines > 5
    assert proof.obligations > 200


def test_what_has_no_proof_yet_is_named():
    assert "no proofs of statistics" in of("synchronised_statistics").why_not


@pytest.mark.parametrize(
    "name",
    [
        "mean_twice",
        "stale_gather",
        "forgotten_reset",
        "updated_twice",
        "clip_by_local_norm",
        "tied_after_reduce",
        "token_mean_local_counts",
    ],
)
def test_what_is_rejected_would_have_no_proof(name):
    assert of(name).why_not


TOTAL = '  { op = "all_reduce", source = "total tokens", axes = ["batch"] },\n'
SHARED = '{ op = "all_gather", source = "activations", axes = ["expert"] },'
OF_ALL = 'into = "fresh gradients", axes = ["expert"]'


@pytest.mark.parametrize(
    ("name", "rule", "broken"),
    [
        ("token_mean", TOTAL, ""),
        ("token_mean", TOTAL, TOTAL * 2),
        ("token_mean", '  { op = "reset", source = "total tokens" },\n', ""),
        ("token_mean", 'by = "total tokens"', 'by = "tokens"'),
        ("token_mean", '{ op = "divide", source = "gradients", by = "total tokens" },', ""),
        ("safe_experts", SHARED, ""),
        ("safe_experts", SHARED, SHARED.replace("expert", "batch")),
        ("safe_experts", OF_ALL, 'into = "fresh gradients"'),
        ("safe_experts", OF_ALL, OF_ALL.replace("expert", "batch")),
    ],
)
def test_of_other_counts_or_samples_nothing_is_proved(name, rule, broken, tmp_path):
    text = (EXAMPLES / f"{name}.toml").read_text()
    assert text.count(rule) == 1
    file = tmp_path / f"{name}.toml"
    file.write_text(text.replace(rule, broken))
    with pytest.raises((KernelError, NotCovered)):
        theorem_of(read(str(file)))


DDP = (EXAMPLES / "ddp_mean.toml").read_text()
LAST = '  { op = "reset", source = "gradients" },\n'
REDUCED = '  { op = "all_reduce", source = "gradients", axes = ["batch"], mean = true },\n'
ONE_MICRO_STEP = """axes = ["batch"]
[rest]
activations = { sharded = ["batch"] }
[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "gradients" },
  { op = "all_reduce", source = "gradients", axes = ["batch"] },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
]
"""
UNWRITTEN = '  { op = "all_reduce", source = "tokens", axes = ["batch"] },\n'
FORWARD = '{ op = "forward", source = "parameters", into = "activations" },'
AGAIN = f"\n  {FORWARD}"
RELEASE = '{ op = "release", source = "fresh gradients" },'
NORM_UNUSED = DDP.replace(
    RELEASE, '{ op = "square_norm", source = "gradients", into = "norm" },\n  ' + RELEASE
)
BACKWARD_UNUSED = DDP.replace(
    FORWARD, '{ op = "backward", source = "parameters", into = "fresh gradients" },\n  ' + FORWARD
)


def ending_with(kind, source):
    return DDP.replace(LAST, LAST + f'  {{ op = "{kind}", source = "{source}", axes = ["batch"] }},\n')


def schedule_in(text, tmp_path):
    file = tmp_path / "given.toml"
    file.write_text(text)
    return read(str(file))


@pytest.mark.parametrize(
    "text",
    few(
        [
            pytest.param(ending_with("broadcast", "parameters"), id="a broadcast of equal values"),
            pytest.param(ending_with("all_reduce", "fresh gradients"), id="a sum of released values"),
            pytest.param(
                ending_with("all_gather", "fresh gradients"), id="a gather of released values"
            ),
            pytest.param(ONE_MICRO_STEP, id="one micro-step whose gradients rest"),
            pytest.param(NORM_UNUSED, id="each micro-step's norm, of which nothing is made: undecided"),
            pytest.param(BACKWARD_UNUSED, id="a backward of nothing, of which nothing is made"),
            pytest.param(DDP.replace(REDUCED, UNWRITTEN + REDUCED), id="a sum that begins as zeros"),
            pytest.param(DDP.replace("\n]\nfinish", AGAIN + "\n]\nfinish"), id="views that are left"),
        ]
    ),
)
def test_what_is_accepted_besides_strategies_is_proved(text, tmp_path):
    assert not proof_of([schedule_in(text, tmp_path)]).why_not


def test_a_broadcast_of_values_that_differ_is_not_proved(tmp_path):
    text = DDP.replace(REDUCED, REDUCED.replace("all_reduce", "broadcast").replace(", mean = true", ""))
    with pytest.raises(NotCovered, match="broadcasts of values that devices along batch do not have"):
        theorem_of(schedule_in(text, tmp_path))


def test_a_reason_names_what_has_no_proof():
    assert "sums of gradients that devices have alike" in of("accumulate_after_mean").why_not


def theorem_of(schedule):
    """What is proved of its runs, whatever the checker says of it."""
    runs = ListedRuns(Kernel("schedule"), {"schedule": listing(schedule)})
    return runs.at_the_end(runs.always())


@pytest.mark.slow
def test_schedules_of_several_weights_are_proved_together():
    schedules = [schedule_of(STRATEGIES[name]) for name in ("zero1", "hsdp", "zero1")]
    proof = proof_of(schedules)
    assert not proof.why_not
    assert proof.axes == ("batch", "replica", "shard")


@pytest.mark.slow
def test_the_report_says_for_what_it_is_proved(psem):
    code, out, _ = psem("check", EXAMPLES / "ddp_mean.toml", "--prove")
    text = " ".join(out.split())
    assert code == 0
    assert "proved, by z3" in text
    assert "any number of devices along batch, of micro-steps and of steps" in text
    _, clips, _ = psem("check", EXAMPLES / "clip_by_global_norm.toml", "--prove")
    assert "elementwise optimizer that may clip by the norm" in " ".join(clips.split())
    document = json.loads(psem("check", "zero1", "--prove", "--json")[1])
    assert document["proof"]["proved"]
    assert "proof" not in json.loads(psem("check", "zero1", "--json")[1])


@pytest.mark.slow
def test_weights_of_a_model_that_share_a_norm_are_proved_together(psem, tmp_path):
    file = tmp_path / "model.toml"
    file.write_text(psem("derive", "zero1 * tp+sp", "--clip")[1])
    code, out, _ = psem("check", file, "--prove")
    assert code == 0
    (proved,) = re.findall(r"schedules of weights: (.*?) \(", " ".join(out.split()))
    assert proved.startswith("proved, by z3")
    assert "any number of devices along batch and tensor, of micro-steps and of steps" in proved
    assert "may clip by the norm of all gradients" in proved


def test_the_report_says_of_what_is_accepted_that_it_has_no_proof_yet(psem):
    code, out, _ = psem("check", EXAMPLES / "synchronised_statistics.toml", "--prove")
    text = " ".join(out.split())
    assert code == 1
    assert "not proved: there are no proofs of statistics yet" in text
    assert "proved, by z3" not in text
