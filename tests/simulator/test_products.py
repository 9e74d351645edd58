"""Products of strategies, simulated: beside one device, beside what is predicted, and with faults."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psem_model.measure.measured import Figure, Run
from psem_model.measure.placings import devices_of, placings
from psem_model.measure.simulated import measured, works
from psem_model.predict.parts import AGAIN, BACKWARD
from psem_model.predict.plan import Plan
from psem_model.predict.said import spread_unevenly, with_experts
from psem_model.reading.products import parse
from psem_model.simulator.distributed import DistributedModel
from psem_model.simulator.functions import Residues
from psem_model.simulator.placed import Halves
from psem_model.text.errors import BadInput
from psem_model.text.figures import divergence_text
from psem_model.text.terminal import text
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.moves import Move
from spec.language.schedule import COLLECTIVE_KINDS
from spec.language.schedule import Kind as OpKind
from spec.models.states import POLICIES
from spec.models.transformer import Transformer
from spec.pipelines.pipeline import Order, Pipeline
from spec.plans.placement import on_batch
from tests.support.damage import with_one_fault
from tests.support.products import plans


def groups(plan):
    return [group for k in range(plan.pipe.stages) for group in plan.stage(k).groups]


def accepted(plan, schedule, group):
    return check(
        schedule, group.costs.sizes.mesh, min(plan.pipe.micro_batches, 3), plan.policy
    ).accepted


def verdicts(plan):
    return all(accepted(plan, group.costs.schedule, group) for group in groups(plan))


# ----------------------------------------------------------- beside one device, as predicted
@pytest.mark.slow
@settings(max_examples=40)
@given(plans(), st.sampled_from(["modular", "float64"]))
def test_a_product_trains_as_one_device_and_holds_and_sends_what_is_predicted(plan, arithmetic):
    assert verdicts(plan)
    run = measured(plan, Run(2, arithmetic, 0))
    assert run.matches
    assert run.unequal == []
    assert run.as_predicted


def of_model(run, plan, number):
    """Elements and bytes that each device of a stage sends in moves of programs, by what they are."""
    stage, found, bytes_ = run.stages[number], Counter(), Counter()
    by_name = {program.part.name: program for program in plan.step.programs}
    for (where, line_number), elements in stage.devices.network.sent.items():
        name, phase = where.split()
        line = getattr(by_name[name], phase)[line_number]
        assert isinstance(line, Move)
        key = name, phase, *by_name[name].axes_of(line), line.collective
        found[key] += each(elements)
        bytes_[key] += each(elements) * stage.devices.network.widths[where, line_number]
    return found, bytes_


def each(elements):
    """What every device sends: they all send the same."""
    assert len(set(elements.tolist())) == 1
    return elements[0]


@pytest.mark.slow
@settings(max_examples=30)
@given(plans())
def test_every_move_and_every_operation_sends_on_each_device_what_is_predicted(plan):
    run = devices_of(plan)
    run.step()
    for number, stage in enumerate(run.stages):
        costs, needs, bytes_, between = plan.stage(number), Counter(), Counter(), Counter()
        for m in costs.moved:
            if m.collective == "send":
                between += Counter(elements=m.elements, bytes=m.bytes)
            elif m.of.endswith(("embedding", "layer", "head")) and not m.to_host:
                phase = BACKWARD if m.when == AGAIN else m.when
                needs[m.of, phase, *m.axes, m.collective] += m.elements
                bytes_[m.of, phase, *m.axes, m.collective] += m.bytes
        assert of_model(run, plan, number) == (+needs, +bytes_)
        own = slice(number * run.inner, (number + 1) * run.inner)
        sends = Counter()
        for key, elements in run.boundary.sent.items():
            width = run.boundary.widths[key]
            sends += Counter(elements=each(elements[own]), bytes=each(elements[own]) * width)
        assert sends == between
        by_names = {frozenset(name for _, name in p.slices): p for p in stage.placed}
        assert len(stage.placed) == len(costs.groups)
        for group in costs.groups:
            placed = by_names[frozenset(group.weights)]
            assert placed.elements == group.costs.sizes.psi
            network, ops = placed.run.network, placed.placing.schedule
            sent, over_link = Counter(), Counter()
            for (where, i), elements in network.sent.items():
                sent[getattr(ops, where)[i]] += each(elements)
            for (where, i), hosted in network.hosted.items():
                over_link[getattr(ops, where)[i]] += each(hosted)
            predicted = {to_host: Counter() for to_host in (False, True)}
            for m in group.costs.moves:
                predicted[m.to_host][m.op] += m.elements
            assert (+sent, +over_link) == (+predicted[False], +predicted[True])


@pytest.mark.parametrize(("policy", "width"), [("mixed-adam", 2), ("fp32-adam", 4)])
def test_layers_hand_on_numbers_as_wide_as_weights_and_losses_are_summed_in_fp32(policy, width):
    """Of 2 micro-batches of 8 tokens of 4 features; all-reducing 8 sums over 2 devices sends 8."""
    plan = replace(plan_of("tp(2) * pp(2)", tied=False), policy=POLICIES[policy])
    ran = measured(plan, Run(1, "modular", 0))
    assert ran.unequal == []
    for stage in ran.stages:
        assert {f.key: f.simulated for f in stage}["bytes along pipe"] == 2 * 8 * 4 * width
    run = devices_of(plan)
    run.step()
    network, counted = run.stages[1].devices.network, []
    for number, line in enumerate(plan.step.programs[2].forward):
        if isinstance(line, Move) and line.value.name in ("total", "lost"):
            key = ("head forward", number)
            counted.append((each(network.sent[key]), network.widths[key]))
    assert counted == [(2 * 8, 4), (2 * 8, 4)]
    predicted = [m.bytes for m in plan.stage(1).moved if m.what in ("total", "lost")]
    assert predicted == [2 * 8 * 4, 2 * 8 * 4]


def test_activations_that_are_offloaded_are_on_the_host_from_forward_to_backward(psem):
    shape = {"layers": 2, "hidden": 4, "heads": 2, "vocabulary": 5, "sequence": 4, "accumulate": 2}
    options = [x for name, value in shape.items() for x in (f"--{name}", value)]
    code, out, _ = psem("simulate", "tp(2)*pp(2)", *options, "--offload-activations", "--json")
    told = json.loads(out)
    assert (code, told["matches"], told["inputs"]["offload_activations"]) == (0, True, True)
    here = json.loads(psem("simulate", "tp(2)*pp(2)", *options, "--json")[1])
    for away, kept in zip(told["stages"], here["stages"], strict=True):
        has = {key: (figure["simulated"]["value"], figure["equal"]) for key, figure in away.items()}
        was = {key: figure["simulated"]["value"] for key, figure in kept.items()}
        assert all(equal for _, equal in has.values())
        assert (has["host"][0], was["host"], was["host_bytes"]) == (was["activations"], 0, 0)
        assert has["host_bytes"][0] >= 2 * was["activations"] > 2 * has["activations"][0] > 0
        assert (has["elements"][0], has["bytes"][0]) == (was["elements"], was["bytes"])


@pytest.mark.slow
@settings(max_examples=25)
@given(plans())
def test_nothing_that_passes_is_left_and_what_is_kept_is_let_go(plan):
    run = devices_of(plan)
    run.step()
    for stage in run.stages:
        assert not any((stage.room.held | stage.host.held).values())
        assert stage.weights == {}
    for placed in run.placed:
        assert not any((placed.views, placed.gradients, placed.done))
        assert not any(placed.passing.values())


# --------------------------------------------------------------------------------- faults
def faults(schedule):
    """With a reduction or a gather dropped, or along fewer axes, or another axis of the schedule."""
    for name in ("micro_step", "finish"):
        ops = getattr(schedule, name)
        for i, op in enumerate(ops):
            if op.kind in COLLECTIVE_KINDS:
                others = [(a,) for a in schedule.axes if a not in (*op.axes, *op.within)]
                fewer = [tuple(a for a in op.axes if a != axis) for axis in op.axes]
                for axes in others + fewer:
                    instead = (replace(op, axes=axes),) if axes else ()
                    yield replace(schedule, **{name: (*ops[:i], *instead, *ops[i + 1 :])})


def read(plan):
    """Groups of weights of which backward reads some: of a bias alone no value is missed there."""
    lines = [line for costs in plan.costs.values() for line in costs.program.backward]
    names = {value.plain_name for line in lines for value in line.reads}
    return [group for group in groups(plan) if names & {*group.weights}]


def with_collectives(plan):
    return [group for group in read(plan) if [*faults(group.costs.schedule)]]


def diverges(plan, group, faulty):
    """Whether a run does, in which the schedule of some weights, on all their stages, is another."""

    def schedule_that_runs(other):
        same = replace(other, largest=group.largest) == group
        return faulty if same else other.costs.schedule

    run = devices_of(plan, to_run=schedule_that_runs)
    return run.run(2, stop_at_divergence=True).divergence is not None


@pytest.mark.slow
@settings(max_examples=40)
@given(plans(least=2, dropout=False).filter(with_collectives), st.data())
def test_a_sum_or_a_gather_dropped_or_along_wrong_axes_is_rejected_and_diverges(plan, data):
    group = data.draw(st.sampled_from(with_collectives(plan)))
    faulty = data.draw(st.sampled_from([*faults(group.costs.schedule)]))
    assert not accepted(plan, faulty, group)
    assert diverges(plan, group, faulty)


def runs(schedule):
    """Whether a schedule has one forward and one backward."""
    kinds = [op.kind for op in schedule.micro_step]
    return kinds.count(OpKind.FORWARD) == kinds.count(OpKind.BACKWARD) == 1


@pytest.mark.slow
@settings(max_examples=40)
@given(plans(dropout=False), st.data())
def test_a_schedule_of_some_weights_with_any_fault_is_accepted_exactly_if_its_run_matches(plan, data):
    plan = replace(plan, unit=None)
    group = data.draw(st.sampled_from(read(plan)))
    faulty = data.draw(st.sampled_from([*filter(runs, with_one_fault(group.costs.schedule))]))
    assert accepted(plan, faulty, group) != diverges(plan, group, faulty)


# ------------------------------------------------------------------------- what is refused
def plan_of(text, **model):
    """A small model on a product that says its sizes."""
    found = parse(text)
    shape = Transformer(**{**SHAPE, **model})
    stages = found.sizes[found.product.pipe] if found.product.pipe else 1
    pipe = Pipeline(Order.ONE_F_ONE_B, stages, 2)
    return Plan(shape, found.product, found.sizes, 2, 4, pipe)


SHAPE = {"layers": 2, "hidden": 4, "heads": 2, "kv_heads": 2, "head_dim": 2, "feed_forward": 4}
SHAPE |= {"vocabulary": 5, "tied": True}


def test_tied_words_are_one_vector_on_the_stages_that_have_them():
    plan = plan_of("zero3(2) * tp(2) * pp(3)", layers=3)
    shared = [p for p in placings(plan, lambda group: group.costs.schedule) if p.pipe]
    assert [(p.weights, p.stages) for p in shared] == [(((-1, "word_weight"),), (0, 2))]
    run = devices_of(plan)
    (words,) = (placed for placed in run.placed if placed.placing.pipe)
    assert [words in stage.placed for stage in run.stages] == [True, False, True]
    assert words.cluster.sizes == {"pipe": 2, "batch": 2, "tensor": 2}


@pytest.mark.parametrize("change", [lambda found: found[1:], lambda found: [*found, found[0]]])
def test_weights_that_are_not_placed_once_are_refused(change):
    plan = plan_of("zero1(2) * tp(2)")
    placed = change(placings(plan, lambda group: group.costs.schedule))
    sizes = {"batch": 2, "tensor": 2}, 4, 4
    with pytest.raises(ValueError, match="not placed once"):
        DistributedModel(plan.model, plan.step.programs, *sizes, Residues(), placed, plan.policy)


@pytest.mark.parametrize("activations", ["S*", "M", "S+O"])
def test_a_schedule_of_more_than_weights_is_refused(activations):
    with pytest.raises(ValueError, match="expected operations on weights"):
        Halves(schedule_of(on_batch("R", "S", "S", activations)))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"vocabulary": 0}, "--vocabulary: missing"),
        ({"positions": 3}, "--sequence: given 4; expected at most 3"),
        ({"hidden": 2**14, "layers": 100}, "expected at most 16 GiB to simulate"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_words(model, words):
    with pytest.raises(BadInput, match=words):
        measured(plan_of("zero1(2) * tp(2)", **model), Run(1, "modular", 0))


# ------------------------------------------------------------ experts that are chosen unevenly
def are_right(found, plan):
    """Whether a run trains as one device, and all is as predicted: what is exchanged, at most."""
    assert found.divergence is None
    assert not found.unequal
    figures = [figure for stage in found.stages for figure in stage]
    at_most = {figure.key for figure in figures if figure.at_most}
    exchanged = {key for key in at_most if key.endswith(" for experts")}
    there = {name for k in range(plan.pipe.stages) for name in plan.stage(k).counts}
    exchanges = spread_unevenly(plan) and bool(there & with_experts(plan))
    assert bool(at_most) is bool(exchanged) is exchanges
    assert at_most - exchanged <= {"elements", "bytes"}
    return [figure for figure in figures if figure.at_most]


@pytest.mark.parametrize(
    "strategy",
    [
        "ep(2)",
        "ep(3)",
        "dp(2) * ep(2)",
        "ep(2) * tp(2)",
        "tp+sp(2) * ep(2)",
        "cp(2) * ep(2)",
        "ep(2) * pp(2)",
    ],
)
@pytest.mark.parametrize(("experts", "chosen"), [(6, 1), (12, 1), (6, 4)])
def test_devices_exchange_no_more_for_unevenly_chosen_experts_than_is_predicted(
    strategy, experts, chosen
):
    plan = plan_of(strategy, experts=experts, chosen=chosen)
    are_right(measured(plan, Run(2, "modular", 1)), plan)


@pytest.mark.parametrize("devices", [2, 4])
def test_choices_are_even_of_a_devices_tokens_whatever_else_is_in_slices(psem, devices):
    """What layers take is kept in slices along `tensor`: routes are still of all that a device has."""
    shape = {"layers": 1, "hidden": 4, "heads": 2, "vocabulary": 4, "sequence": devices}
    shape |= {"experts": devices, "chosen": 1, "recompute": "sliced"}
    given = [x for name, value in shape.items() for x in (f"--{name}", value)]
    code, out, _ = psem("simulate", f"ep({devices}) * tp(2)", *given)
    assert (code, "differs" in out, "no more" in out) == (0, False, False)


@pytest.mark.slow
@settings(max_examples=40)
@given(plans(least=2, even=False).filter(spread_unevenly), st.integers(0, 9))
def test_a_product_exchanges_no_more_for_unevenly_chosen_experts_than_is_predicted(plan, seed):
    are_right(measured(plan, Run(1, "modular", seed)), plan)


def test_a_run_that_exchanges_more_than_is_predicted_is_not_as_predicted():
    found = [Figure("sent", "sent", has, 2, at_most=True) for has in (1, 2, 3)]
    assert [(f.equal, f.as_predicted, f.said) for f in found] == [
        (False, True, "no more"),
        (True, True, "equal"),
        (False, False, "differs"),
    ]
    assert not replace(found[0], at_most=False).as_predicted


def test_what_is_predicted_at_most_is_said_and_told_to_programs(psem):
    shape = {"layers": 1, "hidden": 4, "heads": 2, "vocabulary": 5, "sequence": 1}
    shape |= {"experts": 4, "chosen": 1}
    given = [x for name, value in shape.items() for x in (f"--{name}", value)]
    code, out, _ = psem("simulate", "ep(2)", *given, "--micro-batch", 3, "--json")
    (stage,) = json.loads(out)["stages"]
    at_most = {key for key, figure in stage.items() if figure["at_most"]}
    assert code == 0
    assert at_most == {
        "sent along expert for experts",
        "bytes along expert for experts",
        "elements",
        "bytes",
    }
    for key in at_most:
        assert stage[key]["simulated"]["value"] <= stage[key]["predicted"]["value"]
    code, out, _ = psem("simulate", "ep(2)", *given, "--micro-batch", 3)
    assert code == 0
    assert "what devices exchange for experts is predicted at most" in out
    code, out, _ = psem("simulate", "ep(2)", *given, "--micro-batch", 4)
    assert code == 0
    assert "is predicted at most" not in out


@pytest.mark.parametrize(
    "strategy", ["dp(2)", "zero1(2) * tp(2)", "tp+sp(4)", "cp(2) * tp(2)", "pp(2)"]
)
@pytest.mark.parametrize(("experts", "chosen"), [(3, 1), (5, 2), (16, 1)])
def test_experts_that_are_chosen_unevenly_take_what_is_predicted(strategy, experts, chosen):
    plan = plan_of(strategy, experts=experts, chosen=chosen)
    run = measured(plan, Run(2, "modular", 1))
    assert run.divergence is None
    figures = [figure for stage in run.stages for figure in stage]
    assert [figure.simulated for figure in figures] == [figure.predicted for figure in figures]


# ---------------------------------------------------------------------------- as it is told
def test_a_run_is_told_in_words_and_for_programs():
    plan, told = plan_of("hsdp(1, 2) * pp(2)"), []
    run = measured(plan, Run(2, "float64", 3), told.append)
    assert told == [*range(1, works(plan, Run(2)) + 1)]
    words = text(run.report())
    assert words.startswith("hsdp(replica=1, shard=2) * pp(pipe=2)\n")
    assert "per device of stage 1" in words
    assert "differs" not in words
    assert "the single device after each of 2 steps, to a relative 1e-09" in words
    found = json.loads(json.dumps(run.report().document()))
    assert (found["matches"], found["divergence"], found["inputs"]["seed"]) == (True, None, 3)
    assert len(found["stages"]) == 2
    for figures in found["stages"]:
        assert all(figure["equal"] for figure in figures.values())
        along_axes = [key for key in figures if key.startswith("sent along ")]
        total = sum(figures[key]["simulated"]["value"] for key in along_axes)
        assert total == figures["elements"]["simulated"]["value"] > 0


def test_a_run_that_diverges_says_where():
    plan = plan_of("zero1(2) * tp(2)")
    (group, *_) = (g for g in groups(plan) if "up_weight" in g.weights)
    faulty = next(faults(group.costs.schedule))
    run = devices_of(plan, to_run=lambda g: faulty if g == group else g.costs.schedule)
    run.step()
    first = divergence_text(run.divergence)
    state = run.divergence.state
    assert first.startswith(f"after step 1, an element of the {state} of ")
    figure = Figure("elements", "sent", 1, 2)
    beside = measured(plan, Run())
    told = replace(beside, stages=((figure,),), divergence=run.divergence)
    assert (told.matches, told.as_predicted) == (False, False)
    assert text(told.report()).endswith(f"  the run diverges: {first}\n")
    divergence = json.loads(json.dumps(told.report().document()))["divergence"]
    assert (divergence["step"], divergence["state"]) == (1, state)
    same = replace(told, divergence=None)
    assert text(same.report()).endswith("  but not as predicted: sent\n")
    assert not same.as_predicted
