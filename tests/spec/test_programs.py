"""Derived programs: accepted as they are and no otherwise; broken rules are noticed by E10 and F1."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.language.program_lines import BOTH, SUMMED, P, R, Rule, S, proved
from proofs.language.programs import AXES, GPT, LLAMA, MODELS, accepted_rules, checked, rules_in
from proofs.trusted.kernel import Kernel, KernelError
from spec.derivation.distribute import ALL, FROM_SLICES, NOTHING, PAIRS, distribute
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, along
from spec.language.programs import Move, check_program
from spec.meaning.terms import Terms, computed
from spec.models.parts import layer, parts
from spec.models.transformer import Transformer
from spec.models.values import Builder, Role, Value
from spec.plans.model_strategies import MODEL_AXES
from tests.support.broken import broken_copy, copied, notices
from tests.support.variations import VARIATIONS, experts

OTHER_RING = replace(MODEL_AXES["cp"], name="other")
PAIRS_OF_AXES = [
    (a, b) for a, b in combinations((*MODEL_AXES.values(), OTHER_RING), 2) if a.name != b.name
]
RECOMPUTED = [NOTHING, PAIRS, ALL, FROM_SLICES]
MESHES = [(axis,) for axis in AXES] + PAIRS_OF_AXES


@st.composite
def models(draw):
    """Any shape of a model, as far as it decides which operations there are."""
    biases = st.frozensets(st.sampled_from(["qkv", "output", "mlp"]))
    return Transformer(
        *(1, 8, 4, 2, 2, 32, 16),
        gated=draw(st.booleans()),
        norm=draw(st.sampled_from(["layer_norm", "rms_norm"])),
        biases=draw(biases),
        positions=draw(st.sampled_from([0, 4])),
        tied=draw(st.booleans()),
        **draw(experts(draw(st.sampled_from([0, 4])), 2)) | draw(VARIATIONS),
    )


@st.composite
def programs(draw):
    part = draw(st.sampled_from(parts(draw(models()))))
    again = draw(st.sampled_from(RECOMPUTED))
    return distribute(part, draw(st.sampled_from(MESHES)), again)


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


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("again", RECOMPUTED)
def test_every_move_of_every_strategy_is_needed(model, again):
    for part in parts(model):
        for axis in AXES:
            program = distribute(part, (axis,), again)
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
    terms = Terms()
    assert computed(program, terms) != computed(wrong, terms)


# ----------------------------------------------------------------- collectives of a layer
SCATTERED = {"all_gather": 2, "reduce_scatter": 2}


def collectives(strategy, model=GPT, held=False):
    axis = replace(MODEL_AXES[strategy], held=held)
    program = distribute(layer(model), (axis,))
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
    program = distribute(layer(GPT), (MODEL_AXES["tp"],))
    assert not any(map(program.summed, program.part.weights))


def test_experts_gradients_stay_where_the_experts_are():
    program = distribute(layer(MODELS[2]), (MODEL_AXES["ep"],))
    whole = {weight for weight in program.part.weights if not program.summed(weight)}
    assert whole == {weight for weight in program.part.weights if "e" in weight.indices}


# ---------------------------------------------------------------------------------- rules
@pytest.mark.parametrize(
    "rule",
    [
        Rule("contract", SUMMED, (S, S), S),  # summed over, and yet slices
        Rule("contract", SUMMED, (S, S), R),  # a term taken for the sum
        Rule("contract", BOTH, (S, S), P),
        Rule("contract", BOTH, (S, S), R),
        Rule("contract", "", (P, P), P),  # a product of terms
        Rule("contract", "", (P, R), R),
        Rule("contract", BOTH, (P, S), P),
        Rule("add", "", (P, R), P),
        Rule("add", "", (P, P), R),
        Rule("function", "", (P,), P),
        Rule("function", "rows", (S,), S),
        Rule("function", BOTH, (S,), R),
        Rule("rename", "named", (S,), R),
        Rule("all_gather", "", (P,), R),
    ],
    ids=str,
)
def test_a_wrong_rule_has_no_theorem(rule):
    if rule.does == "all_gather":  # summed, not gathered: right, but no move that there is
        assert rule not in accepted_rules()
        return
    with pytest.raises(KernelError):
        proved(Kernel("twin"), rule)


# -------------------------------------------------------------------------------- mutants
MUTANTS = [
    # (what is wrong, file, the rule, the broken rule, claims that must notice)
    (
        "partial results merge by what is not their log-sum-exp",
        "distribute.py",
        "            return value\n        merged = ",
        "            return value\n        return value\n        merged = ",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a slice that went round is there in every turn",
        "programs.py",
        "    return {rings[0]: back}",
        "    return {}",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the derivative of a softmax knows its turn alone",
        "distribute.py",
        "there = (cotangent, self.restored(known), *product)",
        "there = (cotangent, self.restored(known))",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the product of another with the cotangent will do",
        "distribute.py",
        "Operation(Does.CONTRACT, (cotangent, output), makes)",
        "Operation(Does.CONTRACT, (cotangent, cotangent), makes)",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a contracted index leaves slices",
        "layouts.py",
        "return along(index) if index in contraction.out else PARTIAL",
        "return along(index)",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a product of two terms is a term",
        "layouts.py",
        "if WHOLE not in (left, right):",
        "if False:",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a product with a term is whole",
        "layouts.py",
        "        return PARTIAL\n    cut",
        "        return WHOLE\n    cut",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a function of a term is a term of it",
        "layouts.py",
        '    if PARTIAL in lies:\n        raise LayoutError("a function that is not linear',
        '    if False:\n        raise LayoutError("a function that is not linear',
        "derived_programs_do_what_one_device_does",
    ),
    (
        "sums of what lies otherwise",
        "layouts.py",
        "if len(set(lies)) > 1:",
        "if False:",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a norm of a slice of the features",
        "layouts.py",
        "if lie == along(index):",
        "if False:",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a norm's gradient from a slice of the features",
        "programs.py",
        "if operation.over and along(operation.over) in lies:",
        "if False:",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the cotangent of a partial sum is partial",
        "programs.py",
        "WHOLE if lie.layout is P else lie.plain for",
        "lie.plain for",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "slots lie along the first name of their tokens",
        "programs.py",
        "return along(axis.stream if len(to) > 1 else to[0])",
        "return along(to[0])",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "of the terms of a cotangent that lie alike only the first counts",
        "distribute.py",
        'self.total(value, terms, f"{i}" if i else "")',
        "terms[0]",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "partial results are used as they are",
        "distribute.py",
        "self.now[makes] = self.bring(makes, whole)",
        "self.now[makes] = makes",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a sum of cotangents forgets its second term",
        "distribute.py",
        "for number, term in enumerate(terms[1:], 1):",
        "for number, term in enumerate(terms[2:], 1):",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "renaming back is renaming on",
        "distribute.py",
        "back = tuple((new, old) for old, new in line.renamed)",
        "back = line.renamed",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a derivative is known from the result",
        "distribute.py",
        'known = line.makes if line.function == "softmax" else value',
        "known = line.makes",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the backward contraction keeps what is summed",
        "layouts.py",
        "            Contraction(self.out, self.right, self.left),\n",
        "            Contraction(self.out, self.right, self.out),\n",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "operands of what is made again are not",
        "distribute.py",
        "            for read in reads:\n                self.restored(read)\n",
        "",
        "derived_programs_do_what_one_device_does recomputed_values_are_the_values",
    ),
    (
        "recomputation forgets its first line",
        "distribute.py",
        "self.backward += forward",
        "self.backward += forward[1:]",
        "recomputed_values_are_the_values",
    ),
    (
        "recomputation by another line",
        "distribute.py",
        "self.backward += forward",
        'self.backward += [replace(x, function="f") if x.makes.name == "active" else x '
        "for x in forward]",
        "recomputed_values_are_the_values",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "file", "rule", "broken", "claims"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_a_broken_rule_is_noticed(wrong, file, rule, broken, claims, tmp_path):
    broken_copy(tmp_path, file, rule, broken)
    for function in claims.split():
        assert notices(tmp_path, "proofs.language.programs", function), function


def test_the_unbroken_copy_is_proved(tmp_path):
    assert not notices(copied(tmp_path), "proofs.language.programs", "recomputed_values_are_the_values")


def test_a_cotangent_that_is_returned_as_terms_is_rejected():
    """Two products, no norm before them: what goes back is summed by nothing but its last move."""
    takes = Value("takes", ("b", "s", "h"), Role.STREAM)
    part = Builder("projection", takes)
    up, down = (Value(n, i, Role.WEIGHT) for n, i in (("up", ("h", "f")), ("down", ("f", "h"))))
    wide = part.contract(takes, up, Value("wide", ("b", "s", "f")))
    gives = part.contract(wide, down, Value("gives", ("b", "s", "h"), Role.STREAM))
    program = distribute(part.part(gives), (MODEL_AXES["tp"],))
    check_program(program)
    (last,) = (line for line in program.backward if isinstance(line, Move))
    assert (last.makes, last.collective) == (program.returns, "all_reduce")
    with pytest.raises(
        LayoutError, match="d takes of wide is in terms along tensor; needs to be whole"
    ):
        check_program(program.without(last))
