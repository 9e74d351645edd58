"""Derived programs: accepted as they are and no otherwise."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.language.program_rules import accepted_rules, rules_in
from proofs.language.programs import AXES, GPT, LLAMA, MODELS, checked
from proofs.trusted.kernel import KernelError
from spec.checking.programs import Type, _made, check_program
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS, program_of
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, along
from spec.language.moves import RANKS, Move, move_of
from spec.meaning.terms import Terms
from spec.models.parts import layer, parts
from spec.models.profiles import TEXTBOOK, realised
from spec.models.transformer import DROPPED, Transformer
from spec.models.values import Builder, Role, Value
from spec.plans.model_strategies import MODEL_AXES
from tests.support.examples import few, slow_but
from tests.support.variations import BIASES, VARIATIONS, experts

OTHER_RING = replace(MODEL_AXES["cp"], name="other")
PAIRS_OF_AXES = [
    (a, b) for a, b in combinations((*MODEL_AXES.values(), OTHER_RING), 2) if a.name != b.name
]
RECOMPUTED = [NOTHING, PAIRS, EVERYTHING, FROM_SLICES]
MESHES = [(axis,) for axis in AXES] + PAIRS_OF_AXES


@st.composite
def models(draw):
    """Any shape of a model, as far as it decides which operations there are."""
    return Transformer(
        *(1, 8, 4, 2, 2, 32, 16),
        gated=draw(st.booleans()),
        norm=draw(st.sampled_from(["layer_norm", "rms_norm"])),
        biases=draw(BIASES),
        positions=draw(st.sampled_from([0, 4])),
        tied=draw(st.booleans()),
        **draw(experts(draw(st.sampled_from([0, 4])), 2)) | draw(VARIATIONS),
    )


@st.composite
def programs(draw):
    part = draw(st.sampled_from(parts(draw(models()))))
    again = draw(st.sampled_from(RECOMPUTED))
    return program_of(part, draw(st.sampled_from(MESHES)), again)


@given(models(), st.sampled_from(MESHES))
def test_every_model_on_every_pair_of_axes_needs_proved_rules_only(model, mesh):
    for part in parts(model):
        assert checked(part, [mesh]) <= accepted_rules()


@given(programs())
def test_without_any_one_of_its_moves_a_program_is_rejected(program):
    check_program(program)
    for move in program.moves:
        without_it = program.without(move)
        assert move not in without_it.lines
        with pytest.raises(LayoutError):
            check_program(without_it)


@pytest.mark.parametrize("model", few(MODELS))
@pytest.mark.parametrize("again", slow_but(RECOMPUTED[:1], RECOMPUTED))
def test_every_move_of_every_strategy_is_needed(model, again):
    for part in parts(model):
        for axis in AXES:
            program = program_of(part, (axis,), again)
            for move in program.moves:
                with pytest.raises(LayoutError):
                    check_program(program.without(move))


@given(programs(), st.data())
def test_a_program_that_keeps_one_value_less_is_rejected(program, data):
    kept = [value for value in program.kept if value.role is not Role.CONSTANT]
    if not kept:
        return
    dropped = data.draw(st.sampled_from(kept))
    with pytest.raises(LayoutError, match="is not there"):
        check_program(replace(program, kept=tuple(v for v in program.kept if v != dropped)))


@given(programs(), st.data())
def test_a_program_that_leaves_out_a_gradient_or_a_cotangent_is_rejected(program, data):
    weight = data.draw(st.sampled_from(sorted(program.gradients, key=str)))
    left = {w: g for w, g in program.gradients.items() if w != weight}
    with pytest.raises(LayoutError, match=f"{weight.name} has no gradient"):
        check_program(replace(program, gradients=left))
    if program.part.takes:
        with pytest.raises(LayoutError, match="no cotangent of"):
            check_program(replace(program, returns=None))


@given(programs(), st.data())
def test_a_move_that_no_collective_makes_is_rejected(program, data):
    line = data.draw(st.sampled_from(program.forward))
    axis = data.draw(st.sampled_from(program.axes)).name
    has = program.lies[line.makes][axis]
    # to where it lies, from whole to terms, along an index that it has not
    wrong = [has, along("nothing")] if has.index else [has, PARTIAL, along("nothing")]
    for after in dict.fromkeys(wrong):
        move = Move(axis, line.makes, replace(line.makes, name="moved"), has, after)
        with pytest.raises(LayoutError, match=r"nothing brings|is moved as|already"):
            check_program(replace(program, forward=(*program.forward, move)))


@given(programs(), st.data())
def test_a_program_that_says_otherwise_how_a_value_lies_is_refused(program, data):
    made = [line.makes for line in program.lines if program.lies[line.makes]]
    value = data.draw(st.sampled_from(made))
    axis = data.draw(st.sampled_from(program.axes)).name
    others = [WHOLE, PARTIAL, *map(along, value.indices)]
    lie = data.draw(st.sampled_from([lie for lie in others if lie != program.lies[value][axis]]))
    lies = {**program.lies, value: {**program.lies[value], axis: lie}}
    with pytest.raises((KernelError, LayoutError)):
        rules_in(replace(program, lies=lies))


@given(programs(), st.data())
def test_gradients_that_swap_two_weights_are_noticed(program, data):
    weights = sorted(program.gradients, key=str)
    if len(weights) < 2:
        return
    one, other = data.draw(st.permutations(weights))[:2]
    swapped = {one: program.gradients[other], other: program.gradients[one]}
    wrong = replace(program, gradients={**program.gradients, **swapped})
    with pytest.raises(LayoutError):
        check_program(wrong)


@given(programs())
def test_a_program_without_a_move_has_all_else_and_reads_what_was_moved(program):
    for move in program.moves:
        without_it = program.without(move)
        pairs = zip((line for line in program.lines if line != move), without_it.lines, strict=True)
        for before, after in pairs:
            assert move.makes not in after.reads
            if isinstance(before, Move) and before.by == move.makes:
                assert after.by == move.value
            if move.makes not in before.reads:
                assert before == after


@given(programs())
def test_what_ends_turns_comes_before_any_other_move_and_what_begins_them_after(program):
    for move in program.moves:
        ends = move.in_turns and move.before == PARTIAL
        assert (move.rank < 0) is ends
        assert (move.rank >= len(RANKS)) is (move.in_turns and not ends)


@given(st.sampled_from([WHOLE, along("s"), along("g")]), st.sampled_from(["tensor", "context"]))
def test_a_value_that_is_moved_elsewhere_has_another_name(before, axis):
    value = Value("x", ("s", "g"))
    others = [lie for lie in (WHOLE, along("s"), along("g")) if lie != before]
    made = [move_of(value, a, before, lie).makes for a in (axis, "other") for lie in others]
    assert len({each.name for each in made}) == len(made)
    assert {each.plain_name for each in made} == {"x"}


def test_a_mask_that_is_not_kept_is_not_there():
    model = replace(GPT, dropout=DROPPED)
    for axes in ((), (MODEL_AXES["tp"],)):
        program = program_of(layer(model), axes)
        masks = [value for value in program.kept if value.role is Role.CONSTANT]
        assert masks
        for mask in masks:
            with pytest.raises(LayoutError, match="is not there"):
                check_program(replace(program, kept=tuple(v for v in program.kept if v != mask)))


@given(programs())
def test_what_is_merged_is_kept_in_no_room_of_its_own(program):
    assert program.stored == program.kept
    for value in program.kept:
        merged = replace(program, part=replace(program.part, merged=frozenset({value.plain_name})))
        assert {*program.kept} - {*merged.stored} == {
            other for other in program.kept if other.plain_name == value.plain_name
        }


def test_a_kernel_overwrites_what_it_reads_and_no_more():
    kernel = replace(TEXTBOOK, inside=frozenset({"raised"}))
    names = frozenset({"logits", "final_norm"})  # which a product reads, and no kernel
    program = program_of(realised(parts(LLAMA)[-1], replace(kernel, overwritten=names), 2), ())
    cotangents = {"d logits", "d logits of raised", "d logits of lost"}
    assert {value.name for value in program.overwriting} == cotangents
    assert not program_of(realised(parts(LLAMA)[-1], kernel, 2), ()).overwriting


def test_only_what_is_in_turns_is_sent_home_round_a_ring():
    program = program_of(layer(LLAMA), (MODEL_AXES["cp"],))
    homes = [move for move in program.moves if move.collective == "ring_reduce"]
    assert homes
    for home in homes:
        value = replace(home.value, name="of no turn")
        lies = {**program.lies[home.value], program.turns[0]: WHOLE}
        wrong = replace(program, lies={**program.lies, value: lies})
        with pytest.raises(LayoutError, match="cannot go round a ring"):
            _made(wrong, replace(home, value=value), {value: Type(0, lies)}, Terms())


# ----------------------------------------------------------------- collectives of a layer
SCATTERED = {"all_gather": 2, "reduce_scatter": 2}


def collectives(strategy, model=GPT, held=False):
    axis = replace(MODEL_AXES[strategy], held=held)
    program = program_of(layer(model), (axis,))
    return tuple(
        dict(Counter(line.collective for line in lines if isinstance(line, Move)))
        for lines in (program.forward, program.backward)
    )


@pytest.mark.parametrize("model", [GPT, LLAMA])
@pytest.mark.parametrize(
    ("strategy", "held", "forward", "backward"),
    [
        ("dp", False, {}, {}),
        # Megatron's f and g: two all-reduces each way
        ("tp", False, {"all_reduce": 2}, {"all_reduce": 2}),
        ("tp+sp", True, {"all_gather": 2, "reduce_scatter": 2}, {"all_gather": 2, "reduce_scatter": 2}),
        (
            "tp+sp",
            False,
            {"all_gather": 2, "reduce_scatter": 2},
            {"all_gather": 4, "reduce_scatter": 2},
        ),
        ("cp-all-gather", True, {"all_gather": 2}, {"reduce_scatter": 2}),
        ("cp-all-gather", False, {"all_gather": 2}, {"all_gather": 2, "reduce_scatter": 2}),
        (
            "cp",
            False,
            {"ring_gather": 2, "merge": 2},
            {"ring_gather": 2, "ring_reduce": 2, "accumulate": 1},
        ),
        ("cp-all-to-all", False, {"all_to_all": 4}, {"all_to_all": 4}),
    ],
)
def test_a_layer_has_these_collectives(model, strategy, held, forward, backward):
    assert collectives(strategy, model, held) == (forward, backward)


def test_experts_take_two_all_to_alls_each_way():
    for model in (model for model in MODELS if model.experts):
        assert collectives("ep", model) == ({"all_to_all": 2}, {"all_to_all": 2})


def test_tensor_parallel_gradients_need_no_collective():
    program = program_of(layer(GPT), (MODEL_AXES["tp"],))
    assert not any(map(program.summed_over, program.part.weights))


def test_experts_gradients_stay_where_the_experts_are():
    program = program_of(layer(MODELS[2]), (MODEL_AXES["ep"],))
    whole = {weight for weight in program.part.weights if not program.summed_over(weight)}
    assert whole == {weight for weight in program.part.weights if "e" in weight.indices}


def test_a_cotangent_that_is_returned_as_terms_is_rejected():
    """Two products, no norm before them: what goes back is summed by nothing but its last move."""
    takes = Value("takes", ("b", "s", "h"), Role.STREAM)
    part = Builder("projection", takes)
    up, down = (Value(n, i, Role.WEIGHT) for n, i in (("up", ("h", "f")), ("down", ("f", "h"))))
    wide = part.contract(takes, up, Value("wide", ("b", "s", "f")))
    gives = part.contract(wide, down, Value("gives", ("b", "s", "h"), Role.STREAM))
    program = program_of(part.part(gives), (MODEL_AXES["tp"],))
    check_program(program)
    (last,) = (line for line in program.backward if isinstance(line, Move))
    assert (last.makes, last.collective) == (program.returns, "all_reduce")
    with pytest.raises(
        LayoutError, match="d takes of wide is in terms along tensor; needs to be whole"
    ):
        check_program(program.without(last))
