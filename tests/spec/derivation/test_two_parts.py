"""Backward in two parts: which lines wait, what is held for them; a part has the types that it had."""

import pytest
import sympy
from hypothesis import given

from proofs.costs.two_parts import three_matrices
from proofs.language.small_parts import product_of_weights
from psem_model.predict.closed import symbolic
from psem_model.predict.gpt import gpt
from spec.checking.programs import check_program
from spec.costs.model_costs import fullest_moment, kept_bytes, waiting_bytes
from spec.derivation.programs import program_of
from spec.derivation.two_parts import gradients_last, multiplied
from spec.devices.layouts import LayoutError
from spec.language.moves import Move
from spec.models.transformer import EMBEDDING, HEAD, LAYER
from spec.models.values import Builder, Role, Value
from tests.support.examples import examples
from tests.support.transformers import plans


def costs(strategy):
    """Of a GPT in symbols, its backward in two parts."""
    plan = symbolic(gpt(strategy, V=16, s=8, h=8, a=4, L=2, m=4))
    return {
        name: (gradients_last(each.program), each.indices, each.mesh)
        for name, each in plan.costs.items()
    }


@examples(60)
@given(plans())
def test_both_parts_together_are_the_lines_of_backward_and_have_their_types(plan):
    for program in plan.programs:
        split = gradients_last(program)
        assert sorted(map(str, split.backward)) == sorted(map(str, program.backward))
        found, before = check_program(split).lies, check_program(program).lies
        assert {value: found[value] for value in before} == before
        assert split.gradients == program.gradients
        assert split.returns == program.returns


@examples(60)
@given(plans())
def test_the_first_part_needs_nothing_of_the_second_and_makes_what_goes_on(plan):
    for program in map(gradients_last, plan.programs):
        first, second = program.parts_of_backward
        later = {line.makes for line in second}
        assert not later & {value for line in first for value in line.reads}
        assert program.returns not in later


@examples(60)
@given(plans())
def test_the_second_part_reads_inputs_and_cotangents_and_no_weight(plan):
    for program in map(gradients_last, plan.programs):
        _, second = program.parts_of_backward
        assert not any(value.role is Role.WEIGHT for line in second for value in line.reads)
        made = {line.makes for line in program.backward} | {program.seed}
        assert all(value in program.kept or value in made for value in program.held_between)


@examples(60)
@given(plans())
def test_gradients_of_matrices_wait_and_those_of_vectors_do_not(plan):
    """In turns of a ring is no matrix: all of them wait."""
    for program in map(gradients_last, plan.programs):
        _, second = program.parts_of_backward
        later = {line.makes for line in second}
        waiting = {weight for weight, gradient in program.gradients.items() if gradient in later}
        assert waiting == {*multiplied(program.part)}
        # a matrix is summed over: the words, features, heads or experts that it is applied to
        assert all("bias" not in w.name and "scale" not in w.name for w in waiting)


def test_a_gpt_layer_holds_the_published_bytes_between_the_two_parts():
    """32sbh: inputs of its matrices, 14sbh, and their results' cotangents, 18sbh (2401.10241, table 1).

    Beside the sbh(34 + 5as/h) that it keeps from forward to the first part.
    """
    b, s, h, a = (sympy.Symbol(name, positive=True) for name in "bsha")
    layer = costs("dp")[LAYER]
    assert sympy.simplify(waiting_bytes(*layer) - 32 * s * b * h) == 0
    assert sympy.simplify(kept_bytes(*layer) - s * b * h * (34 + 5 * a * s / h)) == 0


def test_words_wait_too_for_their_table_and_the_logits_cotangents_are_held():
    b, s, h, words = (sympy.Symbol(name, positive=True) for name in "bshV")
    found = costs("dp")
    assert sympy.simplify(waiting_bytes(*found[EMBEDDING]) - 2 * s * b * h) == 0
    assert sympy.simplify(waiting_bytes(*found[HEAD]) - s * b * (4 * words + 2 * h)) == 0


def test_a_device_holds_between_the_two_parts_what_its_own_features_are():
    """5 features of an MLP on two devices: 3 and 2, in the input of its second matrix, 2 bytes each.

    And in the cotangent of what its first one gives. All else is cut evenly, or not at all.
    """
    b, s, h = 3, 8, 8
    plan = gpt("tp(2)", V=16, s=s, h=h, a=4, L=2, m=4)
    program = gradients_last(plan.costs[LAYER].program)
    indices = plan.model.sizes(b, s) | {"f": 5}
    # inputs: two norms, and half of the heads; cotangents: half of three, and of two sums
    others = s * b * h * (2 * 2 + 1 + 3 + 2 * 2)
    for place, features in ((1, 2), (0, 3)):
        held = waiting_bytes(program, indices, {"tensor": 2}, {"tensor": place})
        assert held == others + 2 * 2 * s * b * features


def test_what_is_held_for_the_second_part_is_not_counted_while_that_computes():
    """Three matrices; the input of the last is whole for it, and each device has its own samples.

    Of 4 samples on two devices. The most is there when the sum of the input's cotangent is cut: the
    terms, of 4 samples and 10 features, the sum's slice, and the cotangent of what the part gives. In
    the second part there is the gathered input alone, and beside it what is held for that part.
    """
    program = three_matrices()
    sizes = {"b": 4, "h": 1, "i": 10, "f": 10, "k": 2}
    terms, their_sum, cotangent = 2 * 4 * 10, 2 * 2 * 10, 2 * 4 * 1
    assert fullest_moment(program, sizes, {"a": 2}) == terms + their_sum + cotangent
    inputs, others = 2 * 2 * (1 + 10 + 10), 2 * 2 * (10 + 10)
    assert waiting_bytes(program, sizes, {"a": 2}) == inputs + others + cotangent


def test_the_gradients_of_a_product_of_weights_read_weights_and_do_not_wait():
    """Held are what the matrices beside it multiply, and the cotangents of what they make."""
    program = gradients_last(program_of(product_of_weights(), ()))
    _, second = program.parts_of_backward
    assert not any(value.role is Role.WEIGHT for line in second for value in line.reads)
    b, s, h, f, g, n = 2, 3, 5, 7, 11, 13
    held = waiting_bytes(program, dict(zip("bshfgn", (b, s, h, f, g, n), strict=True)), {})
    assert held == 2 * b * s * (h + n) + 2 * b * s * (f + h)


def test_samples_that_are_kept_wait_for_the_gradient_of_their_matrix():
    pixels = Value("pixels", ("b", "n"), Role.CONSTANT, width=2)
    part = Builder("patches", None)
    weight = Value("patch_weight", ("n", "h"), Role.WEIGHT)
    patches = part.contract(pixels, weight, Value("patches_out", ("b", "h"), Role.STREAM))
    program = gradients_last(program_of(part.part(patches), ()))
    assert {*program.held_between} == {pixels, program.seed}
    b, n, h = 3, 5, 7
    assert waiting_bytes(program, {"b": b, "n": n, "h": h}, {}) == 2 * b * n + 2 * b * h


def test_what_the_second_part_alone_reads_is_gathered_in_it():
    """With tp+sp inputs are kept in slices, and gathered again for the gradients of their matrices."""
    program, *_ = costs("tp+sp")[LAYER]
    first, second = program.parts_of_backward
    gathered = {line.value.plain_name for line in second if isinstance(line, Move)}
    assert gathered == {"attention_norm_biased", "mlp_norm_biased"}
    assert not any(isinstance(line, Move) and line.value.plain_name in gathered for line in first)


def test_a_second_part_before_the_first_is_refused():
    plan = gpt("dp", V=16, s=8, h=8, a=4, L=2, m=4)
    program = gradients_last(plan.costs[LAYER].program)
    first, second = program.parts_of_backward
    wrong = type(program)(
        *(program.part, program.axes, program.forward, (*second, *first), program.gives, program.seed),
        *(program.returns, program.gradients, program.kept, program.lies),
    )
    with pytest.raises(LayoutError, match="is not there"):
        check_program(wrong)
