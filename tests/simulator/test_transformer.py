"""Transformers on meshes beside one device, and what they hold and send beside what is predicted."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psem_model.simulator.distributed import ONE_STAGE
from psem_model.simulator.functions import Real, Residues
from spec.checking.programs import check_program
from spec.costs.model_costs import elements, elements_moved, fullest_moment, kept_bytes, weight_elements
from spec.devices.layouts import LayoutError
from spec.language.moves import Axis, Move
from spec.models.parts import WORD_WEIGHT
from spec.models.transformer import Transformer, is_layer, layer_name
from spec.pipelines import idle_and_held, pipeline, stages
from spec.pipelines.pipeline import Half, Order, Pipeline
from spec.plans.model_strategies import MODEL_AXES
from tests.support.examples import examples
from tests.support.pipes import IN_ONE_PART, boundary_sends, chunks_of
from tests.support.transformers import AGAIN, Plan, differing, plans, replicated
from tests.support.variations import DROPOUTS

PHASES = ("forward", "backward")


# ------------------------------------------------------------------- beside one device
@pytest.mark.slow
@settings(max_examples=60)
@given(plans(), st.sampled_from([Residues(), Real(), Real(adam=False)]), st.integers(1, 2))
def test_a_transformer_on_a_mesh_trains_as_on_one_device(plan, numbers, micro_batches):
    pipe = replace(ONE_STAGE, micro_batches=micro_batches)
    found = plan.run(numbers=numbers, pipe=pipe, steps=2)
    assert not differing(found)
    assert {key for placed in found.placed for key in placed.slices} == found.single.weights.keys()


@pytest.mark.parametrize("name", [None, *MODEL_AXES])
@examples(6)
@given(st.data())
def test_each_axis_alone_trains_as_on_one_device(name, data):
    experts = True if name == "ep" else None
    plan = data.draw(plans([name] if name else [], 2, 4, experts))
    assert plan.differing() == set()


@pytest.mark.parametrize("name", ["tp", "tp+sp", "cp"])
def test_what_is_gathered_twice_without_a_norm_between_has_its_own_cotangent(name):
    model = Transformer(1, 2, 2, 2, 2, 2, 2, norms=frozenset())
    assert not Plan(model, (MODEL_AXES[name],), {MODEL_AXES[name].name: 2}, "none", 1, 2).differing()


CUT_ALONE = st.lists(st.sampled_from("gfve"), unique=True).map(tuple)
BY_HEADS = (("scores", "g"), ("context", "g"))


@examples(40)
@given(CUT_ALONE, st.sampled_from(["", "b", "s"]), st.booleans(), st.booleans(), st.data())
def test_an_axis_that_cuts_anything_trains_as_one_device(cut, stream, by_heads, experts, data):
    axis = Axis("any", cut, stream, BY_HEADS if by_heads else ())
    other = data.draw(st.sampled_from([(), (MODEL_AXES["dp"],), (MODEL_AXES["cp"],)]))
    model = Transformer(1, 3, 4, 4, 2, 4, 5, experts=2 * experts, chosen=int(experts))
    mesh = {each.name: 2 for each in (axis, *other)}
    again = data.draw(st.sampled_from(AGAIN))
    assert Plan(model, (axis, *other), mesh, again, 4, 8).differing() == set()


# -------------------------------------------------------------- beside what is predicted
def times_of(plan, part, micro_batches):
    """How often one of a part's lines is executed in a step, on one stage."""
    return micro_batches * count(plan, part.name)


def count(plan, name):
    """How many parts of a name a model has."""
    return plan.model.layers_of(0, plan.model.layers)[name] if is_layer(name) else 1


@examples(50)
@given(plans(most=4), st.integers(1, 2))
def test_devices_send_what_is_predicted_in_each_move(plan, micro_batches):
    pipe = replace(ONE_STAGE, micro_batches=micro_batches)
    found = plan.run(pipe=pipe)
    sent = found.stages[0].devices.network.sent
    counted = 0
    for program in plan.programs:
        for phase in PHASES:
            for number, line in enumerate(getattr(program, phase)):
                key = (f"{program.part.name} {phase}", number)
                if not isinstance(line, Move):
                    assert key not in sent
                    continue
                each = elements_moved(line, program, plan.indices, plan.mesh)
                times = times_of(plan, program.part, micro_batches)
                has = sent[key].tolist() if key in sent else [0] * found.inner
                assert has == [each * times] * found.inner
                counted += key in sent
    assert counted == len(sent)


@examples(40)
@given(plans())
def test_devices_keep_and_hold_what_is_predicted(plan):
    run = plan.run()
    (stage,) = run.stages
    owned, model = {}, plan.model
    for program in plan.programs:
        name, times = program.part.name, count(plan, program.part.name)
        kept = kept_bytes(program, plan.indices, plan.mesh)
        assert (stage.room.peak.get(name, 0), stage.room.held.get(name, 0)) == (times * kept, 0)
        of_kind = [i for i in range(model.layers) if layer_name(model.layer_kind(i)) == name]
        for weight, has in weight_elements(program, plan.indices, plan.mesh).items():
            owned |= {(i, weight.name): has for i in (of_kind if is_layer(name) else [-1])}
    slices = {key: found for placed in run.placed for key, found in placed.slices.items()}
    assert {key: found.elements for key, found in slices.items()} == owned


OTHER_RING = replace(MODEL_AXES["cp"], name="other")
RINGS = [("cp",), ("cp", "tp"), ("tp+sp", "cp"), ("cp", "other"), ("other", "cp-all-to-all")]


@pytest.mark.parametrize("names", RINGS, ids="_".join)
@examples(8)
@given(st.data())
def test_a_ring_computes_turn_by_turn_and_has_at_once_what_is_predicted(names, data):
    known = {**MODEL_AXES, "other": OTHER_RING}
    axes = tuple(known[name] for name in names)
    mesh = {axis.name: data.draw(st.integers(1, 4 if len(axes) == 1 else 3)) for axis in axes}
    n = prod(mesh.values())
    model = Transformer(1, 3, 2 * n, n, 2, n, 5, dropout=data.draw(DROPOUTS))
    plan = Plan(model, axes, mesh, data.draw(st.sampled_from(AGAIN)), 2, 2 * n)
    found = plan.run(numbers=data.draw(st.sampled_from([Residues(), Real()])))
    assert not differing(found)
    for block in found.stages[0].chunks[0]:
        assert block.fullest == fullest_moment(block.program, plan.indices, plan.mesh)


# ----------------------------------------------------------------------- forgotten moves
def outcome(plan, programs, **options):
    """Whether a run cannot be, or differs from one device."""
    try:
        return "diverges" if plan.differing(programs=programs, **options) else "matches"
    except ValueError:
        return "fails"


def tells(plan):
    """Whether there is a move, and a choice between keys: of one, the share is 1 whatever the query."""
    return plan.sequence > 1 and any(p.moves for p in plan.programs)


@examples(60)
@given(plans(least=2, layers=1).filter(tells), st.data())
def test_a_forgotten_move_is_rejected_and_its_run_fails_or_diverges(plan, data):
    plan = plan.without_dropout
    programs = list(plan.programs)
    number = data.draw(st.sampled_from([i for i, program in enumerate(programs) if program.moves]))
    move = data.draw(st.sampled_from(programs[number].moves))
    programs[number] = programs[number].without(move)
    with pytest.raises(LayoutError):
        check_program(programs[number])
    assert outcome(plan, tuple(programs)) in ("fails", "diverges")


@pytest.mark.parametrize(
    ("name", "phase", "words"),
    [
        ("tp", "forward", "all_reduce over tensor of output"),
        ("tp", "backward", "all_reduce over tensor of d mlp_norm"),
    ],
)
@examples(5)
@given(st.data())
def test_a_forgotten_all_reduce_changes_no_shape_but_the_training(name, phase, words, data):
    plan = data.draw(plans([name], 2, experts=False)).usual
    before, program, after = plan.programs
    move = next(line for line in getattr(program, phase) if words in str(line))
    assert outcome(plan, (before, program.without(move), after)) == "diverges"


# ------------------------------------------------------------------------------ pipelines
@st.composite
def pipelines(draw):
    """A pipeline, and a model on a mesh in each stage, with a layer at least for each chunk."""
    kind = draw(st.sampled_from(IN_ONE_PART))
    count = draw(st.integers(1, 3))
    chunks = chunks_of(kind, draw(st.integers(1, 2)))
    micro_batches = (
        count * draw(st.integers(1, 2)) if kind is Order.INTERLEAVED else draw(st.integers(1, 4))
    )
    names = draw(st.sampled_from([(), ("tp",), ("tp+sp",), ("dp", "tp"), ("cp",), ("ep",)]))
    plan = draw(plans(names, most=2))
    layers = count * chunks + draw(st.integers(0, 2))
    plan = plan._replace(model=replace(plan.model, layers=layers))
    return plan, Pipeline(kind, count, micro_batches, chunks)


@examples(20)
@given(pipelines(), st.sampled_from([Residues(), Real()]))
def test_a_pipeline_trains_as_one_device(planned, numbers):
    plan, pipe = planned
    assert not differing(plan.run(numbers=numbers, pipe=pipe, steps=2))


@pytest.mark.slow
@settings(max_examples=25)
@given(pipelines())
def test_stages_send_what_is_predicted(planned):
    plan, pipe = planned
    found = plan.run(pipe=pipe)
    placed = stages.pieces(plan.model, pipe)
    layer = plan.programs[1]
    boundary = elements(layer.gives, layer.lies[layer.gives], plan.indices, plan.mesh)
    sent = found.boundary.sent.get(("boundary", 0), [0] * found.boundary.devices)
    for k in range(pipe.stages):
        crossings = sum((a.stage == k) + (b.stage == k) for a, b in stages.sends(placed))
        assert crossings * pipe.micro_batches == boundary_sends(pipe, k)
        own = list(sent[k * found.inner : (k + 1) * found.inner])
        assert own == [boundary_sends(pipe, k) * boundary] * found.inner


@examples(25)
@given(pipelines())
def test_a_stage_holds_at_most_its_units_in_flight(planned):
    plan, pipe = planned
    plan = plan._replace(model=replace(plan.model, layers=2 * pipe.virtual_stages, kinds=()))
    found = plan.run(pipe=pipe)
    kept = [kept_bytes(program, plan.indices, plan.mesh) for program in plan.programs]
    for k, stage in enumerate(found.stages):
        units = idle_and_held.in_flight(pipe, k)
        assert stage.room.peak["layer"] == units * 2 * kept[1]
        assert not any(stage.room.held.values())
        # the parts outside layers are of one chunk only
        for name, at, chunk, has in (("embedding", 0, 0, kept[0]), ("head", -1, -1, kept[2])):
            if stage is found.stages[at]:
                own = chunk % pipe.chunks
                works = [work for work in pipeline.works_of_stage(pipe, k) if work.chunk == own]
                signs = [1 if work.half is Half.FORWARD else -1 for work in works]
                most = max(sum(signs[:i]) for i in range(len(signs) + 1))
                assert stage.room.peak[name] == most * has
                assert pipe.chunks > 1 or most == units


@examples(10)
@given(plans(["tp"]), st.integers(2, 3))
def test_tied_words_that_are_not_summed_over_stages_change_the_training(plan, count):
    plan = plan._replace(model=replace(plan.model, tied=True, layers=count, dropout=frozenset()))
    pipe = Pipeline(Order.ONE_F_ONE_B, count, 2)
    assert not plan.differing(pipe=pipe)
    placed = stages.pieces(plan.model, pipe)
    with pytest.raises(LayoutError, match="gradient of word_weight"):
        stages.check_stages(placed, stages.sends(placed), ())
    differ = plan.differing(pipe=pipe, placings=replicated(plan, pipe, ["pipe"]))
    assert {name for *_, name in differ} == {WORD_WEIGHT}
