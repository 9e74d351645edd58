"""The opaque model: its steps are those that strategies are defined by, and meet each need once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.reading.schedules import loads
from psem_model.reading.shapes import small
from spec.checking.steps import check_step
from spec.checking.verdict import check
from spec.costs.communication import transfers
from spec.costs.memory import MODEL_STATES, Sizes
from spec.derivation.programs import program_of
from spec.derivation.steps import derive, step_of
from spec.devices.layouts import LayoutError
from spec.devices.mesh import HOST
from spec.language.moves import Axis
from spec.language.schedule import Buffer
from spec.language.steps import Step
from spec.models.opaque import Opaque, opaque
from spec.models.parts import parts
from spec.models.states import MIXED_ADAM, State
from spec.numbers.arithmetic import DIVISIBLE
from spec.plans.compose import Factor, Product
from spec.plans.modes import Mode
from spec.plans.placement import place_states
from spec.plans.strategies import STRATEGIES
from tests.support.examples import examples
from tests.support.needs_and_held import UnmetError, sent_by_state

AXES = ("x", "y", "z")
ON_AN_AXIS = [mode for mode in Mode if mode is not Mode.OFFLOADED]

# arXiv 1910.02054, sections 5 and 7; 2101.06840, section 4; 2304.11277, section 3
REPLICATED = """
    forward parameters -> activations
    backward parameters -> gradients
"""
SLICES_OF_GRADIENTS = """
    reduce_scatter fresh gradients over batch
    accumulate fresh gradients -> gradients within batch
    release fresh gradients
"""
GATHERED = """
    all_gather parameters -> view over batch
    forward view -> activations
    release view
    all_gather parameters -> view over batch
    backward view -> fresh gradients
    release view
"""
ONCE_GATHERED = """
    all_gather parameters -> view over batch
    forward view -> activations
    backward view -> fresh gradients
    release view
"""
UPDATED_SLICES = """
    update gradients -> optimizer within batch
    all_gather parameters over batch
    reset gradients
"""
UPDATED_IN_PLACE = """
    update gradients -> optimizer within batch
    reset gradients
"""
STEPS = {  # what is done for each micro-batch, and to finish
    "dp": (
        REPLICATED,
        """
    all_reduce gradients over batch
    update gradients -> optimizer
    reset gradients
""",
    ),
    "zero1": (REPLICATED, "reduce_scatter gradients over batch" + UPDATED_SLICES),
    "zero2": (
        """
    forward parameters -> activations
    backward parameters -> fresh gradients
"""
        + SLICES_OF_GRADIENTS,
        UPDATED_SLICES,
    ),
    "zero3": (GATHERED + SLICES_OF_GRADIENTS, UPDATED_IN_PLACE),
    "fsdp": (GATHERED + SLICES_OF_GRADIENTS, UPDATED_IN_PLACE),
    "fsdp-hold": (ONCE_GATHERED + SLICES_OF_GRADIENTS, UPDATED_IN_PLACE),
    "hsdp": (
        (GATHERED + SLICES_OF_GRADIENTS).replace("batch", "shard"),
        "all_reduce gradients over replica within shard" + UPDATED_IN_PLACE.replace("batch", "shard"),
    ),
    "zero-offload": (
        """
    forward parameters -> activations
    backward parameters -> fresh gradients
    reduce_scatter fresh gradients over batch
    offload fresh gradients within batch
    accumulate fresh gradients -> gradients within batch
    release fresh gradients
""",
        """
    update gradients -> optimizer within batch
    fetch optimizer -> parameters within batch
    all_gather parameters over batch
    reset gradients
""",
    ),
    "fused-update": (
        """
    forward parameters -> activations
    backward parameters -> fresh gradients
    all_reduce fresh gradients over batch
    update fresh gradients -> optimizer
    release fresh gradients
""",
        "",
    ),
}


def line(op):
    """An operation: its kind, source, target, axes, and the axes along whose slices it is."""
    words = [op.kind.value, op.source.value]
    words += ["->", op.target.value] if op.target is not op.source else []
    words += ["over", " x ".join(op.axes)] if op.axes else []
    words += ["within", " x ".join(op.within)] if op.within else []
    return " ".join(words)


def of(placement):
    return Product((Factor("placement", placement.axes, placement),))


def schedule_of(placement):
    """The schedule of the one weight."""
    (group,) = derive(of(placement), parts(Opaque(8))).groups
    return group.schedule


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_step_of_a_named_strategy_is_that_of_its_definition(name):
    schedule = schedule_of(STRATEGIES[name])
    found = tuple([line(op) for op in ops] for ops in schedule.bodies)
    assert found == tuple(
        [each.strip() for each in text.split("\n") if each.strip()] for text in STEPS[name]
    )


@st.composite
def placements(draw):
    """On up to three axes, of any modes; or of those that meet needs more often."""
    axes = AXES[: draw(st.integers(1, 3))]
    likely = {
        State.PARAMETERS: [Mode.REPLICATED, Mode.GATHERED],
        State.OPTIMIZER: [Mode.REPLICATED, Mode.SHARDED, Mode.GATHERED],
        State.GRADIENTS: [Mode.REPLICATED, Mode.SHARDED, Mode.GATHERED],
        State.ACTIVATIONS: [Mode.SHARDED],
    }
    any_mode = draw(st.integers(0, 3)) == 0
    modes = {}
    for state in State:
        among = st.sampled_from(ON_AN_AXIS if any_mode else likely[state])
        modes[state] = {axis: draw(among) for axis in axes}
        if draw(st.integers(0, 5)) == 0:
            modes[state][HOST] = Mode.OFFLOADED
    return place_states(axes, modes, draw(st.booleans()))


@examples(1000)
@given(placements(), st.integers(1, 3), st.lists(st.integers(2, 4), min_size=3, max_size=3))
def test_a_step_is_right_where_every_need_is_met_and_sends_what_meets_it(placement, micro_steps, sizes):
    mesh, schedule = dict(zip(placement.axes, sizes, strict=False)), schedule_of(placement)
    try:
        sent = sent_by_state(placement, mesh, micro_steps)
    except UnmetError:
        assert not check(schedule, mesh, micro_steps).accepted
        return
    assert check(schedule, mesh, micro_steps).accepted
    found = Counter(dict.fromkeys(MODEL_STATES, 0))
    costs = Sizes(1, mesh, MIXED_ADAM, arithmetic=DIVISIBLE, cut=schedule.cut)
    for move in transfers(schedule, costs, micro_steps):
        if not move.to_host and move.op.source is not Buffer.ACTIVATIONS:
            found[move.op.state] += move.elements
    assert found == sent


@given(placements(), st.integers(1, 100))
def test_the_program_of_an_opaque_model_moves_nothing_and_leaves_terms_along_all_axes(placement, psi):
    (program,) = derive(of(placement), parts(Opaque(psi))).programs
    assert [program.summed_over(weight) for weight in program.part.weights] == [placement.axes]
    assert (program.moves, program.kept) == ((), ())


@pytest.mark.parametrize("name", STRATEGIES)
def test_named_strategies_of_an_opaque_model_are_steps_like_any_other(name):
    check_step(derive(of(STRATEGIES[name]), parts(Opaque(8))))


SAYS_ALL = """
axes = ["batch"]
[training]
clip = true
[rest]
activations = { host = true }
[step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  { op = "offload", source = "activations" },
  { op = "fetch", source = "activations" },
  { op = "backward", source = "parameters", into = "fresh gradients" },
  { op = "all_reduce", source = "fresh gradients", axes = ["batch"] },
  { op = "square_norm", source = "fresh gradients", into = "norm" },
  { op = "clip", source = "fresh gradients", by = "norm" },
  { op = "update", source = "fresh gradients", into = "optimizer" },
]
"""


def test_the_schedule_of_an_opaque_model_says_what_is_kept_of_samples_and_the_verdict_judges_its_norm():
    schedule = loads(SAYS_ALL, "my.toml")
    step = check_step(step_of(schedule, (opaque(),)))
    assert step.is_opaque
    assert check(schedule, {"batch": 2}).accepted
    assert not check(schedule, {"batch": 2}, 2).accepted


@pytest.mark.parametrize("stages", [None, "pipe"])
def test_an_opaque_model_whose_parameters_are_cut_or_in_stages_is_checked_as_others_are(stages):
    program = replace(program_of(opaque(), ()), axes=(Axis("tensor", () if stages else ("p",)),))
    assert not Step((program,), (), stages).is_opaque


def test_of_any_other_model_activations_are_as_its_programs_say():
    step = step_of(loads(SAYS_ALL, "my.toml"), parts(small("gpt", False)))
    assert not step.is_opaque
    with pytest.raises(LayoutError, match="activations and samples are as the programs say"):
        check_step(step)
