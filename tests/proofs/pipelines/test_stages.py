"""E11 is proved, and is not with a rule of stages that is wrong."""

import pytest

from proofs import registry
from proofs.pipelines import listed_pipelines, stage_placing, stage_runs, stages
from proofs.trusted.kernel import Kernel, KernelError
from spec.devices.layouts import PARTIAL, WHOLE
from spec.pipelines.stages import has_layer, sends, to_sum


def test_the_claim_is_proved():
    kernel = Kernel("E11")
    found = stages.pipelines_compute_what_one_device_does(kernel)
    assert all(theorem.rule not in registry.NOT_PROVED for theorem in found)
    refuted = [t.name for t in kernel.theorems if t.counterexample is not None]
    assert refuted == ["copies_agree_without_the_sum"]
    assert found[0].counterexample is None


MUTANTS = {
    "a layer is on two virtual stages": (
        "has_layer",
        lambda s, i, layers, n: (s * layers <= i * n, i * n <= (s + 1) * layers),
    ),
    "a layer is on none": (
        "has_layer",
        lambda s, i, layers, n: (s * layers < i * n, i * n < (s + 1) * layers),
    ),
    "layers begin on the second virtual stage": (
        "has_layer",
        lambda s, i, layers, n: has_layer(s - 1, i, layers, n),
    ),
    "chunks overlap": ("virtual_stage", lambda pipe, stage, chunk: chunk * (pipe.stages - 1) + stage),
    "a stage has its chunks in a row": (
        "virtual_stage",
        lambda pipe, stage, chunk: stage * pipe.stages + chunk,
    ),
    "nothing is sent": ("is_sent", lambda before, after: False),
    "one stage sends to itself": ("is_sent", lambda before, after: before.stage == before.stage),
    "only later stages are sent to": (
        "is_sent",
        lambda before, after: before.stage < after.stage,
    ),
    "updates wait for half the work": ("may_update", lambda done, works: 2 * done >= works),
    "updates miss the last backward": ("may_update", lambda done, works: done >= works - 1),
    "backwards of a chunk share a number": (
        "backward_unit",
        lambda pipe, group, chunk, place: group * pipe.virtual_stages + chunk * pipe.stages,
    ),
    "a boundary too many": ("boundaries", lambda pipe: pipe.virtual_stages),
}


@pytest.mark.parametrize(("name", "wrong"), MUTANTS.values(), ids=MUTANTS.keys())
def test_wrong_rules_are_not_proved(monkeypatch, name, wrong):
    for module in (stages, stage_runs, stage_placing):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, wrong)
    with pytest.raises(KernelError, match="the solver says sat"):
        stages.pipelines_compute_what_one_device_does(Kernel("E11"))


@pytest.mark.parametrize("lie", [WHOLE, PARTIAL])
def test_other_rules_of_which_gradients_are_summed_are_not_proved(monkeypatch, lie):
    monkeypatch.setattr(stages, "gradient_lie", lambda used_on: lie)
    with pytest.raises(KernelError, match="other gradients are summed"):
        stages.pipelines_compute_what_one_device_does(Kernel("E11"))


DAMAGED = {
    "a stage is sent nothing": ("sends", lambda placed: sends(placed)[1:]),
    "what a stage keeps is sent": ("sends", lambda placed: [*zip(placed, placed, strict=True)]),
    "no gradient is summed": ("to_sum", lambda placed: {}),
    "a gradient is summed without the last stage's": (
        "to_sum",
        lambda placed: {weight: over[:-1] for weight, over in to_sum(placed).items()},
    ),
}


@pytest.mark.parametrize(("name", "wrong"), DAMAGED.values(), ids=DAMAGED.keys())
def test_pieces_are_not_accepted_without_what_is_sent_and_summed(monkeypatch, name, wrong):
    monkeypatch.setattr(listed_pipelines, "check_stages", lambda *_: None)
    monkeypatch.setattr(listed_pipelines, name, wrong)
    with pytest.raises(KernelError, match=r"piece_._of_.* the solver says sat"):
        stages.pipelines_compute_what_one_device_does(Kernel("E11"))
