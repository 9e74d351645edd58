"""Distributed parts: a value has one name and one line, a line a use, and what is kept a size."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.language.programs import GPT, LLAMA
from proofs.language.small_parts import product_of_weights, talking_heads, turned
from spec.checking.programs import check_program
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS, program_of
from spec.models.parts import layer, parts
from spec.models.profiles import Profile, realised
from spec.models.transformer import DROPPED, MASKED, Transformer
from spec.plans.model_strategies import MODEL_AXES
from tests.support.examples import examples
from tests.support.profiles import PAIRS as OF_PAIRS
from tests.support.profiles import profiles

AXES = [(), *((axis,) for axis in MODEL_AXES.values() if not axis.ring)]
IN_A_KERNEL = frozenset(OF_PAIRS)


@st.composite
def programs(draw):
    """Parts as profiles realise them, with attention in a kernel or not; those that can be."""
    profile = draw(profiles())
    inside = draw(st.sampled_from([frozenset(), IN_A_KERNEL]))
    model = replace(draw(st.sampled_from([GPT, LLAMA])), dropout=draw(st.sampled_from([DROPPED, ()])))
    stores = profile.stores | {"shares", "scores"}
    profile = replace(profile, inside=inside, stores=stores, whole=frozenset())
    part = realised(draw(st.sampled_from(parts(model))), profile, 2)
    again = draw(st.sampled_from([NOTHING, PAIRS, EVERYTHING, FROM_SLICES]))
    return program_of(part, draw(st.sampled_from(AXES)), again, profile.again)


@examples(60)
@given(programs())
def test_every_value_is_made_by_one_line_but_for_what_is_made_again(program):
    for lines in (program.forward, program.backward):
        made = Counter(line.makes.name for line in lines)
        assert {*made.values()} <= {1}
    again = {line.makes for line in program.backward} & {line.makes for line in program.forward}
    assert {line for line in program.backward if line.makes in again} <= {*program.lines}


@examples(60)
@given(programs())
def test_what_backward_makes_is_read_or_is_what_was_asked_for(program):
    read = {value for line in program.backward for value in line.reads}
    asked = {*program.gradients.values(), program.returns}
    made = [line.makes for line in program.backward if line not in program.forward]
    assert {*made} <= read | asked


@examples(60)
@given(programs())
def test_what_is_kept_takes_room(program):
    assert all(value.width for value in program.kept)


@pytest.mark.parametrize("model", [GPT, LLAMA])
@pytest.mark.parametrize("again", [EVERYTHING, FROM_SLICES])
def test_where_all_is_made_again_what_the_part_takes_is_kept_alone_whatever_a_profile_stores(
    model, again
):
    part = realised(layer(model), Profile(stores=frozenset({"down", "output"})), 2)
    for axes in AXES:
        stored = {value.plain_name for value in program_of(part, axes).kept}
        assert {"down", "output"} <= stored
        assert [value.plain_name for value in program_of(part, axes, again).kept] == [part.takes.name]


@pytest.mark.parametrize("model", [GPT, LLAMA])
@pytest.mark.parametrize("again", [NOTHING, PAIRS])
def test_the_product_of_a_kernels_rows_with_their_cotangent_is_read(model, again):
    part = realised(layer(model), Profile(inside=IN_A_KERNEL), 2)
    for axes in AXES:
        lines = program_of(part, axes, again).backward
        made = {line.makes for line in lines if line.makes.name.startswith("product of")}
        assert made and made <= {value for line in lines for value in line.reads}


@pytest.mark.parametrize("again", [NOTHING, PAIRS])
def test_a_mask_that_a_kernel_is_given_is_kept_where_pairs_are_made_again_but_in_no_ring(again):
    model = replace(LLAMA, kinds=(frozenset({MASKED}),))
    part = realised(layer(model, *model.kinds), Profile(inside=IN_A_KERNEL), 2)
    kept = {
        name: [value.plain_name for value in program_of(part, (axis,), again).kept]
        for name, axis in MODEL_AXES.items()
    }
    assert {name for name in kept if "mask_of_pairs" not in kept[name]} == {"cp"}


@pytest.mark.parametrize("function", ["relu", "gelu"])
def test_of_a_function_whose_result_tells_its_derivative_the_result_is_kept(function):
    model = Transformer(2, 8, 4, 4, 2, 16, 32, function=function, biases=frozenset({"mlp"}))
    names = {value.name for value in program_of(layer(model), ()).kept}
    assert ("up_biased" in names) is (function == "gelu")
    assert "active" in names  # the next product reads it, too


def test_what_is_made_of_constants_alone_has_no_gradient():
    program = program_of(product_of_weights(), (MODEL_AXES["tp"],))
    of = [line.makes.name.partition(" of ")[0] for line in program.backward]
    assert not [name for name in of if "of_ones" in name or "squares" in name]


@pytest.mark.parametrize("name", MODEL_AXES)
@pytest.mark.parametrize(
    "part", [layer(GPT), layer(LLAMA), talking_heads()], ids=lambda part: part.name
)
def test_with_the_operands_of_products_in_the_other_order_a_program_moves_as_much(part, name):
    one, other = (check_program(program_of(each, (MODEL_AXES[name],))) for each in (part, turned(part)))
    assert len(one.moves) == len(other.moves)
