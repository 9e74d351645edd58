"""Groups of weights: each weight of each layer is in one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.language.programs import GPT
from spec.checking.steps import check_step
from spec.derivation.steps import derive
from spec.devices.layouts import LayoutError
from spec.models.layers import EVERY_LAYER, ROOT, HeldUnits, Layers
from spec.models.parts import parts
from spec.models.profiles import TEXTBOOK
from spec.models.transformer import is_layer
from spec.plans.compose import Product, factor

NUMBERS = st.frozensets(st.integers(-3, 3), min_size=1)
OUTSIDE = st.sampled_from([(), (ROOT,)]).map(frozenset)


def step_of(units, *names):
    product = Product(tuple(map(factor, names)))
    return derive(product, parts(GPT), profile=replace(TEXTBOOK, held_units=units))


@given(NUMBERS, OUTSIDE, st.sampled_from([("zero3",), ("fsdp", "tp"), ("hsdp", "tp+sp")]))
def test_layers_that_are_held_have_a_schedule_and_the_others_another(numbers, outside, names):
    some = Layers(numbers, others=False)
    step = check_step(step_of(HeldUnits(outside, some), *names))
    assert step.held_layers in (some, some.rest)
    for weight, (part, *_) in step.uses.items():
        groups = [group for group in step.groups if weight in group.weights]
        if is_layer(part):
            assert {group.layers for group in groups} == {some, some.rest}
        else:
            assert len(groups) == 1 and (groups[0].layers == some.rest) is not bool(outside)


@given(NUMBERS, st.sampled_from([("zero1",), ("zero2", "tp"), ("tp",), ("dp", "tp+sp")]))
def test_where_nothing_is_gathered_again_all_layers_have_one_schedule(numbers, names):
    step = step_of(HeldUnits(layers=Layers(numbers, others=False)), *names)
    assert {group.layers for group in step.groups} == {EVERY_LAYER} == {step.held_layers}


@given(NUMBERS, st.data())
def test_a_layer_in_no_group_or_in_two_is_told(numbers, data):
    step = step_of(HeldUnits(layers=Layers(numbers, others=False)), "zero3")
    number = data.draw(st.integers(0, len(step.groups) - 1))
    group = step.groups[number]
    layers = data.draw(st.sampled_from([group.layers.rest, EVERY_LAYER]))
    others = (*step.groups[:number], replace(group, layers=layers), *step.groups[number + 1 :])
    with pytest.raises(LayoutError, match="is in 2 groups of states; needs one, one for each layer"):
        check_step(replace(step, groups=others))
    with pytest.raises(LayoutError, match="groups of states; needs one"):
        check_step(replace(step, groups=(group,)))
