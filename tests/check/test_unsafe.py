"""Compositions of two axes: each unsafe one beside its safe twin, one line apart."""

import json
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import proofs.plans.unsafe as proved
from proofs.plans.compose import composition_of_any_groups_is_safe
from proofs.trusted.kernel import Kernel, KernelError
from psem_model.audit.refutations.compositions import TWINS, example
from psem_model.simulator import Arithmetic, simulate
from psem_model.text.places import EXAMPLES
from spec.checking.programs import check_program
from spec.checking.verdict import check
from spec.costs.communication import transfers
from spec.costs.memory import Sizes
from spec.language.schedule import Phase
from spec.meaning.reference import first_divergence
from spec.models.states import MIXED_ADAM, POLICIES
from tests.support.crosscheck import agree_on_costs
from tests.support.examples import examples, few
from tests.support.transformers import plans, replicated

UNSAFE = {
    # unsafe_NAME: (the rule that rejects it, the axis along which it goes wrong)
    "wrong_group": ("whole", "sequence"),
    "double_reduction": ("whole", "batch"),
    "accumulate_after_reduce": ("whole", "sequence"),
    "overlapping_axes": ("whole", "shard"),
    "superset_of_the_group": ("whole", "expert"),
    "shard_offset_of_the_other_axis": ("agreed", "replica"),
    "mean_twice": ("whole", "sequence"),
    "context_loss_scale": ("whole", "sequence"),
    "local_token_counts": ("whole", "sequence"),
    "norm_of_one_axis": ("whole", "sequence"),
    "expert_scale": ("whole", "expert"),
    "tied_after_reduce": ("whole", "sequence"),
    "stale_gather": ("agreed", "sequence"),
    "unpublished_parameters": ("agreed", "sequence"),
    "gathered_along_the_other_axis": ("agreed", "shard"),
    "statistics_of_one_axis": ("agreed", "sequence"),
}
SAFE = sorted({*TWINS.values(), "reduce_each_micro_batch"})
SIZES, STEPS = (1, 2, 3), 2
DEVICES, PLAIN_SGD = 4, POLICIES["fp32-sgd"]
every_unsafe = pytest.mark.parametrize("name", UNSAFE)


schedule = cache(example)


def unsafe(name):
    return schedule(f"unsafe_{name}")


def twin(name):
    return schedule(f"safe_{TWINS[name]}")


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
    names = {path.stem for path in EXAMPLES.glob("*safe_*.toml")}
    assert UNSAFE.keys() == TWINS.keys()
    assert names == {f"unsafe_{name}" for name in UNSAFE} | {f"safe_{name}" for name in SAFE}
    assert all(len(schedule(name).axes) == 2 for name in names)


@every_unsafe
def test_an_unsafe_composition_is_rejected_by_its_rule_with_a_run_that_diverges(name, psem):
    code, out, err = psem("check", EXAMPLES / f"unsafe_{name}.toml", "--json")
    found = json.loads(out)
    assert (code, err, found["rejection"]["rule"]) == (1, "", UNSAFE[name][0])
    assert found["divergence"] is not None
    assert found["simulated"] is not None


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_composition_is_accepted(name, psem):
    code, out, err = psem("check", EXAMPLES / f"safe_{name}.toml")
    assert (code, err) == (0, ""), out


@pytest.mark.parametrize("name", few(UNSAFE))
def test_an_unsafe_composition_diverges_wherever_its_axis_has_devices_and_nowhere_else(name):
    for mesh, micro_steps, wrong in runs(name):
        assert check(unsafe(name), mesh, micro_steps).accepted is not wrong, (mesh, micro_steps)
        assert matches(unsafe(name), mesh, micro_steps) == (not wrong, not wrong), (mesh, micro_steps)


@pytest.mark.parametrize("name", few(UNSAFE))
def test_its_safe_twin_matches_everywhere(name):
    for mesh, micro_steps, _ in runs(name):
        assert check(twin(name), mesh, micro_steps).accepted
        assert matches(twin(name), mesh, micro_steps) == (True, True), (mesh, micro_steps)


def lines(schedule):
    """Its operations in order, whatever part of the step they serve; and where finish begins."""
    parts = [[replace(op, phase=Phase.FORWARD) for op in part] for part in schedule.bodies]
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
    text = (EXAMPLES / f"unsafe_{name}.toml").read_text().splitlines()
    comment = " ".join(line.removeprefix("# ") for line in text if line.startswith("# "))
    assert changed[0].kind.value in comment
    assert f"Right: safe_{TWINS[name]}.toml." in comment
    assert sum(line.endswith("  # wrong") for line in text) == (said[0] is not None)
    assert sum(line.startswith("  # right: ") for line in text) == (said[1] is not None)


# ------------------------------------------------ what a schedule's operations do not say
@pytest.mark.parametrize("axes", [(), ("batch",), ("sequence",), ("batch", "sequence")])
def test_initial_parameters_not_broadcast_along_each_axis_diverge_whatever_the_schedule(
    axes,
):
    """Each device draws its own and takes the first's along some axes; the schedule is right."""
    of, mesh = schedule("safe_two_reductions"), {"batch": 2, "sequence": 2}
    places = np.indices(tuple(mesh.values())).reshape(len(mesh), DEVICES, 1)
    drawn = sum(place for axis, place in zip(mesh, places, strict=True) if axis not in axes)
    assert check(of, mesh, 1, PLAIN_SGD).accepted
    how: dict = {"policy": PLAIN_SGD, "arithmetic": Arithmetic(), "begin": lambda row: row + drawn}
    run = simulate(of, mesh, 20, steps=STEPS, **how)
    assert run.matches == (axes == tuple(mesh))


@pytest.mark.parametrize("norm", ["attention_norm", "mlp_norm"])
@examples(5)
@given(st.data())
def test_norm_gradients_not_summed_along_tensor_under_dp_times_tp_sp_are_rejected_and_diverge(
    norm, data
):
    plan = data.draw(plans(["dp", "tp+sp"], 2, experts=False)).usual
    latent = plan.model.latent
    assume(latent is None or latent.keys > 1)  # a norm leaves of one feature its sign: no gradient
    _, program, _ = plan.programs
    weight = f"{norm}_scale"
    check_program(program)
    assert "tensor" in program.summed_over(next(w for w in program.part.weights if w.name == weight))
    assert plan.differing() == set()
    differ = plan.differing(placings=replicated(plan, forgotten=[weight]))
    assert ("parameters", 0, weight) in differ
    assert {name for *_, name in differ} == {weight}


# ------------------------------------------------------------------------- costs
def sent_along(schedule, axis, mesh, psi, micro_steps):
    """Elements each device sends in its group along one axis."""
    found = transfers(schedule, Sizes(psi, mesh, MIXED_ADAM, cut=schedule.cut), micro_steps)
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


# ------------------------------------------------------------------------- K6
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
