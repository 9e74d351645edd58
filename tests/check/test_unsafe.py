"""Compositions of two axes: each unsafe one beside its safe twin, one line apart.

And the counterexamples of the claims that refute them, K6 and C7, executed by the simulator.
"""

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proofs.unsafe as proved
from proofs.compose import composition_of_any_groups_is_safe
from proofs.hierarchy import order_of_levels_does_not_matter_to_a_link
from proofs.kernel import Kernel, KernelError
from proofs.registry import ROOT
from proofs.sharpness import choose
from psem_model.reading.schedules import read
from psem_model.simulator import Arithmetic, simulate
from psem_model.simulator.models import Data
from psem_model.simulator.store import Store
from spec import programs, training
from spec.communication import moves
from spec.hierarchy import HIERARCHICAL, INNER, OUTER, OUTER_FIRST
from spec.layouts import LayoutError
from spec.memory import Sizes
from spec.reference import first_divergence
from spec.schedule import Phase
from spec.states import MIXED_ADAM, POLICIES
from spec.verdict import check
from tests.proofs.test_compose_proofs import in_stages
from tests.support.crosscheck import agree_on_costs
from tests.support.transformers import plans

GALLERY = ROOT / "examples"
UNSAFE = {
    # unsafe_NAME: (the rule that rejects it, the axis along which it goes wrong, its twin: safe_NAME)
    "wrong_group": ("whole", "sequence", "two_reductions"),
    "double_reduction": ("whole", "batch", "two_reductions"),
    "accumulate_after_reduce": ("whole", "sequence", "two_reductions"),
    "overlapping_axes": ("whole", "shard", "replicas_first"),
    "superset_of_the_group": ("whole", "expert", "expert_copies"),
    "shard_offset_of_the_other_axis": ("agreed", "replica", "reduce_once"),
    "mean_twice": ("whole", "sequence", "means_along_both_axes"),
    "context_loss_scale": ("whole", "sequence", "means_along_both_axes"),
    "local_token_counts": ("whole", "sequence", "tokens_of_both_axes"),
    "norm_of_one_axis": ("whole", "sequence", "sharded_along_both_axes"),
    "expert_scale": ("whole", "expert", "experts"),
    "tied_after_reduce": ("whole", "sequence", "tied_along_both_axes"),
    "stale_gather": ("agreed", "sequence", "sharded_along_both_axes"),
    "unpublished_parameters": ("agreed", "sequence", "sharded_along_both_axes"),
    "gathered_along_the_other_axis": ("agreed", "shard", "reduce_once"),
    "statistics_of_one_axis": ("agreed", "sequence", "statistics_of_both_axes"),
}
SAFE = sorted({twin for _, _, twin in UNSAFE.values()} | {"reduce_each_micro_batch"})
SIZES, STEPS = (1, 2, 3), 2
DEVICES, PLAIN_SGD = 4, POLICIES["fp32-sgd"]
every_unsafe = pytest.mark.parametrize("name", UNSAFE)


@cache
def schedule(name):
    return read(str(GALLERY / f"{name}.toml"))


def unsafe(name):
    return schedule(f"unsafe_{name}")


def twin(name):
    return schedule(f"safe_{UNSAFE[name][2]}")


def runs(name):
    """Every small mesh and number of micro-steps, and whether anything can go wrong there."""
    axes = unsafe(name).axes
    for *sizes, micro_steps in product(SIZES, SIZES, (1, 2)):
        mesh = dict(zip(axes, sizes, strict=True))
        added_up = micro_steps > 1 or name != "accumulate_after_reduce"
        yield mesh, micro_steps, mesh[UNSAFE[name][1]] > 1 and added_up


def matches(schedule, mesh, micro_steps):
    """Whether every copy is as on a single device: in the reference, in the simulator."""
    sizes = {"steps": STEPS, "micro_steps": micro_steps}
    simulated = simulate(schedule, mesh, 20, unit=7, stop_at_divergence=True, **sizes)
    return first_divergence(schedule, mesh, **sizes) is None, simulated.matches


def test_the_gallery_has_these_and_no_others():
    names = {path.stem for path in GALLERY.glob("*safe_*.toml")}
    assert names == {f"unsafe_{name}" for name in UNSAFE} | {f"safe_{name}" for name in SAFE}
    assert all(len(schedule(name).axes) == 2 for name in names)


@every_unsafe
def test_an_unsafe_composition_is_rejected_by_its_rule_with_a_run_that_diverges(name, psem):
    code, out, err = psem("check", GALLERY / f"unsafe_{name}.toml", "--json")
    found = json.loads(out)
    assert (code, err, found["rejection"]["rule"]) == (1, "", UNSAFE[name][0])
    assert found["divergence"] is not None
    assert found["simulated"] is not None


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_composition_is_accepted(name, psem):
    code, out, err = psem("check", GALLERY / f"safe_{name}.toml")
    assert (code, err) == (0, ""), out


@every_unsafe
def test_an_unsafe_composition_diverges_wherever_its_axis_has_devices_and_nowhere_else(name):
    for mesh, micro_steps, wrong in runs(name):
        assert check(unsafe(name), mesh, micro_steps).accepted is not wrong, (mesh, micro_steps)
        assert matches(unsafe(name), mesh, micro_steps) == (not wrong, not wrong), (mesh, micro_steps)


@every_unsafe
def test_its_safe_twin_matches_everywhere(name):
    for mesh, micro_steps, _ in runs(name):
        assert check(twin(name), mesh, micro_steps).accepted
        assert matches(twin(name), mesh, micro_steps) == (True, True), (mesh, micro_steps)


def lines(schedule):
    """Its operations in order, whatever part of the step they serve; and where finish begins."""
    parts = [
        [replace(op, phase=Phase.FORWARD) for op in part]
        for part in (schedule.micro_step, schedule.finish)
    ]
    return [*parts[0], "finish", *parts[1]]


def without_one(ops):
    """The operations, and what is left of them without any one."""
    yield None, ops
    for i, op in enumerate(ops):
        yield op, ops[:i] + ops[i + 1 :]


@every_unsafe
def test_twins_are_one_line_apart_and_the_comment_names_its_operation(name):
    has, right = unsafe(name), twin(name)
    assert (has.axes, has.rests, has.training) == (right.axes, right.rests, right.training)
    pairs = product(without_one(lines(has)), without_one(lines(right)))
    said = next((one, other) for (one, rest), (other, left) in pairs if rest == left)
    changed = [op for op in said if op is not None]
    assert changed
    text = (GALLERY / f"unsafe_{name}.toml").read_text().splitlines()
    comment = " ".join(line.removeprefix("# ") for line in text if line.startswith("# "))
    assert changed[0].kind.value in comment
    assert f"Right: safe_{UNSAFE[name][2]}.toml." in comment
    assert sum(line.endswith("  # wrong") for line in text) == (said[0] is not None)
    assert sum(line.startswith("  # right: ") for line in text) == (said[1] is not None)


# ------------------------------------------------ what a schedule's operations do not say
@pytest.mark.parametrize("axes", [(), ("batch",), ("sequence",), ("batch", "sequence")])
def test_initial_parameters_not_broadcast_along_each_axis_diverge_whatever_the_schedule(
    axes, monkeypatch
):
    """Each device draws its own and takes the first's along some axes; the schedule is right."""
    of, mesh, begin = schedule("safe_two_reductions"), {"batch": 2, "sequence": 2}, Store.start
    places = np.indices(tuple(mesh.values())).reshape(len(mesh), DEVICES, 1)
    drawn = sum(place for axis, place in zip(mesh, places, strict=True) if axis not in axes)

    def start(store, weights, moments):
        begin(store, [row + drawn for row in weights], moments)

    assert check(of, mesh, 1, PLAIN_SGD).accepted
    monkeypatch.setattr(Store, "start", start)
    run = simulate(of, mesh, 20, steps=STEPS, policy=PLAIN_SGD, arithmetic=Arithmetic())
    assert run.matches == (axes == tuple(mesh))


@pytest.mark.parametrize("norm", ["attention_norm", "mlp_norm"])
@settings(max_examples=5)
@given(st.data())
def test_norm_gradients_not_summed_along_tensor_under_dp_times_tp_sp_are_rejected_and_diverge(
    norm, data
):
    plan = data.draw(plans(["dp", "tp+sp"], 2, experts=False)).without_dropout
    before, program, after = plan.programs
    weight = f"{norm}_scale"
    words = f"all_reduce over tensor of d {weight}"
    (last,) = (line for line in program.finish if words in str(line))
    forgetful = program.without(last)
    with pytest.raises(LayoutError, match=f"d {weight} of {norm}.* is P along tensor; needs R"):
        programs.check(forgetful)
    programs.check(program)
    assert plan.differing() == set()
    differ = plan.differing(programs=(before, forgetful, after))
    assert ("gradients", 0, weight) in differ
    assert {name for *_, name in differ} == {weight}


# ------------------------------------------------------------------------- costs
def sent_along(schedule, axis, mesh, psi, micro_steps):
    """Elements each device sends in its group along one axis."""
    found = moves(schedule, Sizes(psi, mesh, MIXED_ADAM, cut=schedule.cut), micro_steps)
    return sum(m.elements for m in found if m.op.axes == (axis,))


@pytest.mark.parametrize("micro_steps", [1, 2, 5])
def test_reducing_each_micro_batch_costs_a_pass_for_each_and_one_where_reducing_once_costs_two(
    micro_steps,
):
    mesh, psi = {"replica": 2, "shard": 3}, 24
    one_pass = (mesh["shard"] - 1) * psi // mesh["shard"]
    for name, passes in (("reduce_once", 2), ("reduce_each_micro_batch", micro_steps + 1)):
        found = schedule(f"safe_{name}")
        run, costs = agree_on_costs(found, mesh, psi, psi, MIXED_ADAM, micro_steps)
        across = sent_along(found, "replica", mesh, psi, micro_steps)
        assert run.matches
        assert sent_along(found, "shard", mesh, psi, micro_steps) == passes * one_pass
        assert costs.elements == passes * one_pass + across
        assert across == (mesh["replica"] - 1) * psi // mesh["shard"]


def test_replicas_first_sends_whole_gradients_across_groups_where_slices_will_do():
    mesh, psi = {"replica": 2, "shard": 3}, 24
    names = ("safe_replicas_first", "safe_reduce_each_micro_batch")
    first, last = (sent_along(schedule(name), "replica", mesh, psi, 1) for name in names)
    assert first == mesh["shard"] * last


# ------------------------------------------------------------- K6, C7: counterexamples
REFUTED = {
    "K6": composition_of_any_groups_is_safe,
    "C7": order_of_levels_does_not_matter_to_a_link,
}
EXECUTED: set[tuple[str, str]] = set()


def executes(claim, *theorems):
    """The test runs with the values of each counterexample; `psem audit` finds it by its id."""
    cases = [(claim, theorem) for theorem in theorems]
    EXECUTED.update(cases)
    return pytest.mark.parametrize("theorem", theorems, ids=map("-".join, cases))


@cache
def counterexamples(claim):
    """By theorem name, the values that refute a claim."""
    found = REFUTED[claim](Kernel(claim))
    return {t.name: {key: Fraction(v) for key, v in t.counterexample.items()} for t in found}


class Noted(Arithmetic):
    """Exact; weights start at a value, and descend at rate 1. Notes what the devices apply."""

    def __init__(self, start):
        self.start, self.applied = start, []

    def of(self, integers):
        return np.full(integers.shape, self.start, self.dtype)

    def clip_factor(self, square):
        return np.vectorize(lambda s: training.clip_by_norm(Fraction(1), root(s), 1, choose))(square)

    def descend(self, weight, gradient):
        if len(gradient) == DEVICES:
            self.applied.append(gradient[:, 0].reshape(2, 2).copy())
        return weight - gradient


def root(square):
    """The exact square root of a fraction that has one."""
    found = Fraction(isqrt(Fraction(square).numerator), isqrt(Fraction(square).denominator))
    assert found * found == square
    return found


class Contributions:
    """A model: what each device contributes in each micro-step, and by the second use."""

    in_layers = False

    def __init__(self, micro_steps, tied):
        self.micro_steps, self.tied = micro_steps, tied

    def start(self, *_): ...

    def forward(self, unit, view, step, micro_step):
        return view

    recompute = forward

    def backward(self, unit, view, activations, when, everyones, gathered):
        parts = [self.micro_steps[when[1]], *self.tied]
        if everyones:  # samples of the group along the second axis
            parts = [part.reshape(2, 2, -1).sum(1).repeat(2, 0) for part in parts]
        return [part.copy() for part in parts]

    def whole(self, weights, step):
        return [sum(part.sum(0, keepdims=True) for part in (*self.micro_steps, *self.tied))]


def of_all_elements(grid):
    """Each device contributes the same to each of four elements."""
    return np.repeat(grid.reshape(DEVICES, 1), DEVICES, axis=1)


def of_one_device(grid):
    """The first device contributes to each element what is at its owner's place."""
    return np.vstack([grid.reshape(1, DEVICES), np.zeros((DEVICES - 1, DEVICES), int)]) + Fraction(0)


def clipped(g):
    """Each element by the norm of those along the first axis."""
    norms = [root(square) for square in (g * g).sum(0)]
    return g * np.array([training.clip_by_norm(Fraction(1), n, 1, choose) for n in norms], object)


APPLIED = {
    # what each device applies, from the devices' values: gradients g, h, counts c
    "wrong_group": ("wrong_group", lambda g, h, c: g.sum(0)),
    "double_reduction": ("double_reduction", lambda g, h, c: 2 * g.sum()),
    "superset_of_the_group": ("superset_of_the_group", lambda g, h, c: 2 * g.sum()),
    "accumulated_after_reduction": (
        "accumulate_after_reduce",
        lambda g, h, c: 2 * g.sum() + h.sum(),
    ),
    "tied_after_reduction": ("tied_after_reduce", lambda g, h, c: g.sum() + h.sum(0)),
    "mean_along_one_axis": ("context_loss_scale", lambda g, h, c: g.sum() / 2),
    "counts_along_one_axis": ("local_token_counts", lambda g, h, c: g.sum() / c.sum(0)),
    "norm_along_one_axis": ("norm_of_one_axis", lambda g, h, c: clipped(g)),
}


@executes("K6", *APPLIED)
def test_an_unsafe_composition_applies_what_its_counterexample_says_and_diverges(theorem, monkeypatch):
    values, (name, applied) = counterexamples("K6")[theorem], APPLIED[theorem]
    g, h, c = (
        np.array([[values.get(f"{v}{i}{j}", Fraction(0)) for j in (0, 1)] for i in (0, 1)], object)
        for v in "ghc"
    )
    norm = theorem == "norm_along_one_axis"
    first, second = ((of_one_device if norm else of_all_elements)(grid) for grid in (g, h))
    micro_steps = [first, second] if theorem == "accumulated_after_reduction" else [first]
    tied = [second] if theorem == "tied_after_reduction" else []
    monkeypatch.setattr(Data, "tokens", lambda *_: c.reshape(DEVICES, 1))
    for of, right in ((unsafe(name), False), (twin(name), True)):
        notes = Noted(Fraction(0))
        model = Contributions(micro_steps, tied)
        how = {"policy": PLAIN_SGD, "arithmetic": notes, "model": model}
        run = simulate(of, dict.fromkeys(of.axes, 2), DEVICES, micro_steps=len(micro_steps), **how)
        assert run.matches is right
        assert (notes.applied[0] == applied(g, h, c)).all() != right


NOT_UPDATED = {"gathered_along_the_other_axis": (0, 1), "shard_offset_of_the_other_axis": (1, 0)}


@executes("K6", *NOT_UPDATED)
def test_slices_of_the_other_axis_leave_what_was_there(theorem):
    values = counterexamples("K6")[theorem]
    change = np.full((2, 2), Fraction(0)) + np.array([[values["old"] - values["new"], 0], [0, 0]])
    for of, right in ((unsafe(theorem), True), (twin(theorem), False)):
        model = Contributions([of_all_elements(change)[:, :1]], [])  # the first device's
        how = {"policy": PLAIN_SGD, "arithmetic": Noted(values["old"]), "model": model}
        divergence = simulate(of, dict.fromkeys(of.axes, 2), 1, **how).divergence
        assert (divergence is not None) is right
        if divergence:
            assert divergence.place.device == NOT_UPDATED[theorem]
            assert (divergence.has, divergence.single) == (values["old"], values["new"])


@executes("C7", "outside_first_sends_more_outside")
def test_reduced_outside_first_an_all_reduce_sends_more_outside(theorem):
    values = counterexamples("C7")[theorem]
    n, m, cell = (int(values[v]) for v in ("n", "m", "cell"))
    sent = []
    for stages in (HIERARCHICAL, OUTER_FIRST):
        run = simulate(in_stages(stages), {OUTER: m, INNER: n}, n * m * cell)
        assert run.matches
        outside = [i for i, (level, _) in enumerate(stages) if level == OUTER]
        sent.append(sum(int(run.sent_by_operation["finish", i].max()) for i in outside))
    assert sent[1] == n * sent[0]


@pytest.mark.parametrize(
    ("name", "function", "right"),
    [
        ("superset_of_the_group", "_over", lambda over: lambda value, first, *_: over(value, first)),
        (
            "shard_offset_of_the_other_axis",
            "sliced",
            lambda sliced: lambda value, axis, *others: sliced(value, "b", *others),
        ),
    ],
)
def test_within_its_own_group_there_is_no_counterexample(name, function, right, monkeypatch):
    monkeypatch.setattr(proved, function, right(getattr(proved, function)))
    with pytest.raises(KernelError, match=f"{name}: no counterexample"):
        composition_of_any_groups_is_safe(Kernel("K6"))


def test_every_counterexample_is_executed():
    assert {(claim, name) for claim in REFUTED for name in counterexamples(claim)} == EXECUTED
