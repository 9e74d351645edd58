"""Steps of models: what clips, and which parts are made again."""

from dataclasses import replace

import pytest

from proofs.language.programs import GPT
from spec.derivation.programs import EVERYTHING, NOTHING, PAIRS
from spec.derivation.schedules import schedule_of
from spec.derivation.steps import derive, step_of
from spec.models.opaque import Opaque
from spec.models.parts import parts
from spec.models.training import PLAIN
from spec.models.transformer import is_layer
from spec.plans.compose import Product, factor
from spec.plans.strategies import STRATEGIES

PRODUCT = Product((factor("zero1"), factor("tp")))


def test_a_step_clips_if_any_weights_gradients_are_clipped():
    step = derive(PRODUCT, parts(GPT), clip=True)
    assert step.clips and len(step.groups) > 1
    plain = [replace(g, schedule=replace(g.schedule, training=PLAIN)) for g in step.groups]
    assert not replace(step, groups=tuple(plain)).clips
    for i, group in enumerate(step.groups):
        assert replace(step, groups=(*plain[:i], group, *plain[i + 1 :])).clips


@pytest.mark.parametrize("again", [PAIRS, EVERYTHING])
def test_layers_are_made_again_and_what_is_around_them_is_not(again):
    kept, less = (derive(PRODUCT, parts(GPT), how).programs for how in (NOTHING, again))
    for before, after in zip(kept, less, strict=True):
        assert (before == after) is not is_layer(before.part.name)
        assert len(after.kept) <= len(before.kept)


def test_a_schedule_of_an_opaque_model_is_that_of_all_its_weights():
    schedule = schedule_of(STRATEGIES["hsdp"])
    step = step_of(schedule, parts(Opaque(8)))
    (group,) = step.groups
    assert group.schedule == schedule and {*step.summed_over()} == {*group.weights}
    assert {*step.summed_over().values()} == {schedule.axes}
