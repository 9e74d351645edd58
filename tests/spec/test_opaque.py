"""The opaque model: its derived step is the schedule of its placement."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spec.derivation.derive import derive
from spec.derivation.steps import check_step, derive_step, step_of
from spec.devices.mesh import HOST
from spec.models.opaque import Opaque
from spec.models.parts import parts
from spec.models.states import State
from spec.plans.compose import Factor, Product
from spec.plans.modes import Mode
from spec.plans.placement import place
from spec.plans.strategies import STRATEGIES

AXES = ("x", "y", "z")
ON_AN_AXIS = [mode for mode in Mode if mode is not Mode.OFFLOADED]


@st.composite
def placements(draw):
    axes = AXES[: draw(st.integers(1, 3))]
    modes = {s: {axis: draw(st.sampled_from(ON_AN_AXIS)) for axis in axes} for s in State}
    for state in State:
        if draw(st.integers(0, 5)) == 0:
            modes[state][HOST] = Mode.OFFLOADED
    return place(axes, modes, draw(st.booleans()))


def of(placement):
    return Product((Factor("placement", placement.axes, placement),))


@settings(max_examples=1000)
@given(placements(), st.integers(1, 100))
def test_the_step_of_an_opaque_model_is_its_placements_schedule(placement, psi):
    """As that of a model is: its parts' programs, and what is to be summed along which axes."""
    step = derive_step(of(placement), parts(Opaque(psi)))
    assert [group.schedule for group in step.groups] == [derive(placement)]
    assert step == step_of(derive(placement), parts(Opaque(psi)))
    (program,) = step.programs
    assert [program.summed(weight) for weight in program.part.weights] == [placement.axes]
    assert (program.moves, program.kept) == ((), ())


def test_named_strategies_of_an_opaque_model_are_steps_like_any_other():
    for placement in STRATEGIES.values():
        check_step(derive_step(of(placement), parts(Opaque(8))))
