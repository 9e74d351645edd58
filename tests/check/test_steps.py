"""Models' steps as files: a wrong line is rejected by its line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.text.errors import BadInput
from tests.support.steps import text_of

TEXT = text_of("zero1 * tp+sp")
LINES = TEXT.splitlines()
END = LINES.index("[[states]]")
MOVES = [i for i in range(END) if re.search(r'op = "(all_|reduce_s|slice)', LINES[i])]


@pytest.mark.parametrize("number", MOVES)
def test_a_forgotten_move_is_rejected_at_a_line_after_it(number, checked):
    """What reads what the move makes reads what it moves."""
    line = LINES[number]
    before, after = (re.search(rf'{key} = ("[^"]*")', line)[1] for key in ("source", "into"))
    rest = [other.replace(after, before) for other in LINES if other != line]
    found = checked("\n".join(rest))
    assert not found.accepted
    assert found.at


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('["d gated", "up"]', '["d gated", "gate"]', "the chain rule gives no such term"),
        (
            '"d attention_norm 1", "d attention_norm 2"',
            '"d attention_norm 1", "d attention_norm 1"',
            "no such",
        ),
        (
            'axes = ["tensor"], along = "s", into = "output 2"',
            'axes = ["tensor"], along = "h", into = "output 2"',
            "a sum of",
        ),
        (
            'mlp_norm_scale = "d mlp_norm_scale"',
            'mlp_norm_scale = "d attention_norm_scale"',
            "is not the sum",
        ),
        (
            'returns = "d layer_in 2"',
            'returns = "d layer_in 1"',
            "the gradient of layer_in is not the sum",
        ),
        ('"gate_open", "up"]', '"gate_open", "gate"]', "nothing that layer gives depends on up_weight"),
        (
            'axes = ["batch"]\n\n[states.rest]',
            'axes = ["batch", "tensor"]\n\n[states.rest]',
            "word_weight is to be summed over batch;",
        ),
    ],
)
def test_a_wrong_line_is_told(old, new, words, checked):
    assert TEXT.count(old) == 1
    wrong = TEXT.replace(old, new)
    found = checked(wrong)
    assert not found.accepted
    assert words in found.wrong
    changed = {i + 1 for i, (a, b) in enumerate(zip(LINES, wrong.splitlines(), strict=True)) if a != b}
    assert min(changed) - 1 <= found.at
    assert found.data()["programs"]["line"] == found.at


def test_a_weight_in_no_group_of_states_is_told_with_the_line_where_groups_begin(checked):
    found = checked(
        TEXT.replace('"attention_norm_scale", "mlp_norm_scale", ', '"attention_norm_scale", ')
    )
    assert "mlp_norm_scale is in 0 groups" in found.wrong
    assert LINES[found.at - 1] == "[[states]]"


def test_parts_in_another_order_are_told_with_the_line_of_what_takes_another_value(checked):
    wrong = TEXT.replace('["embedding", "layer", "head"]', '["layer", "head", "embedding"]')
    found = checked(wrong)
    assert "embedding does not take what head gives" in found.wrong
    assert LINES[found.at - 1].startswith("parts = ")


def test_a_ring_along_an_index_that_no_value_has_is_refused_where_it_is_said(checked):
    with pytest.raises(BadInput, match=r"line \d+, cuts.context.ring: given 'q'; expected one of"):
        checked(text_of("zero1 * cp").replace('ring = "u"', 'ring = "q"'))


def test_a_line_of_forward_that_backward_has_otherwise_is_told_beside_it(checked):
    gathers = [n for n, line in enumerate(LINES) if 'op = "all_gather"' in line]
    number = next(n for n in gathers if LINES.count(LINES[n]) > 1)
    changed = LINES[number].replace('along = "s"', 'along = "h"')
    expected = f"line {number + 1} makes it; or line {number + 1} again"
    with pytest.raises(BadInput, match=expected):
        checked("\n".join([*LINES[:number], changed, *LINES[number + 1 :]]))


def test_a_sum_over_tensor_that_the_states_forget_is_rejected_in_its_group(checked):
    found = checked("\n".join(line for line in LINES if 'op = "all_reduce"' not in line))
    assert not found.accepted
    assert not found.wrong
    (wrong,) = (group for group in found.groups if not group.accepted)
    assert wrong.schedule.axes == ("batch", "tensor")
    assert "over tensor" in wrong.repair
    assert wrong.line > END


WHOLE = text_of("zero1 * tp * zero2(tensor)")
BACKWARD = '{ op = "backward", source = "parameters", into = "fresh gradients"'
OF_ALL = f'{BACKWARD}, axes = ["tensor"] }}'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            OF_ALL,
            f"{BACKWARD} }}",
            "schedule is over batch x tensor; along tensor it is whole, which backward says by axes",
        ),
        (
            OF_ALL,
            f'{BACKWARD}, axes = ["batch", "tensor"] }}',
            "to be summed over batch; its states' schedule is over no axis",
        ),
    ],
)
def test_whose_gradients_each_device_has_is_as_the_program_says(old, new, words, checked):
    """Those of norms are whole along tensor, where nothing else cuts them, and terms along batch."""
    assert checked(WHOLE).accepted
    assert WHOLE.count(old) == 1
    found = checked(WHOLE.replace(old, new))
    assert not found.accepted
    assert words in found.wrong


def test_backward_that_has_all_samples_once_and_its_own_another_time_is_rejected(checked):
    """The first is not used: what is summed over both axes is the second, whole along one."""
    forward = '{ op = "forward", source = "parameters", into = "activations" },'
    backward = '{ op = "backward", source = "parameters", into = "fresh gradients"'
    wrong = WHOLE.replace(OF_ALL, f"{OF_ALL},\n  {forward}\n  {backward} }}")
    assert wrong != WHOLE
    found = checked(wrong)
    assert not found.accepted
    assert "one backward has all samples along tensor, and one along no axis" in found.wrong


def test_a_gradient_of_slices_that_backward_leaves_whole_is_rejected(checked):
    """That of queries, which tensor cuts, beside those of norms."""
    wrong = WHOLE.replace('"query_weight", ', "", 1)
    wrong = wrong.replace(
        'weights = ["attention_norm_scale"', 'weights = ["query_weight", "attention_norm_scale"'
    )
    found = checked(wrong)
    assert not found.accepted
    assert (
        "query_weight is to be summed over batch; its states' schedule is over batch, and has it whole"
        in found.wrong
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"gate_open", "up"]', '"gate_opn", "up"]', "nearest: gate_open"),
        ('into = "up[b s f]"', 'into = "up[b s]"', "expected every index that only one of the two has"),
        ('into = "up[b s f]"', 'into = "gate[b s f]"', "expected a name of its own: line"),
        ('into = "up[b s f]"', 'into = "up"', "expected a name and its indices"),
        ('op = "apply"', 'op = "aply"', "nearest: apply"),
        ('over = "h", ', "", "no over"),
        ('names = ["s -> u"]', 'names = ["s"]', "an index and its new name"),
        ('parts = ["embedding", ', 'parts = ["embeding", ', "nearest: embeding"),
        ("tensor = { weights", "tenser = { weights", "nearest: tensor"),
        ('weights = ["g", "f"', 'weights = ["gg", "f"', "cuts.tensor.weights: given 'gg'; expected"),
        ('stream = "s" }', 'stream = "q" }', "cuts.tensor.stream: given 'q'; expected one of b, d"),
        ('batch = { stream = "b"', 'batch = { stream = "z"', "cuts.batch.stream: given 'z'; expected"),
        ('cotangent = "d layer_out', 'cotangnt = "d layer_out', "nearest: cotangent"),
        ('along = "s", into = "output 2"', 'along = ["s", "h"], into = "output 2"', "one index"),
        ('gives = "loss"', 'gives = "los"', "nearest: loss"),
        ('"causal(batch b, tensor g', '"causal(batch b, tenser g', "nearest: tensor"),
        ('"causal(batch b, tensor g', '"causal(batch b, tensor x', "expected one of b, g"),
        ('"causal(batch b, tensor g', '"causal(batch', "each with the index it cuts"),
    ],
)
def test_bad_input_is_one_line(old, new, words, checked):
    with pytest.raises(BadInput) as error:
        checked(TEXT.replace(old, new, 1))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


MLP = """
axes = ["batch"]
parts = ["mlp"]
[cuts]
batch = { stream = "b" }
[mlp]
takes = "x[b h]"
weights = ["up[h f]", "down[f h]"]
constants = ["mask[b f]"]
forward = [
  { op = "contract", source = ["x", "up"], into = "u[b f]" },
  { op = "apply", by = "gelu", source = "u", into = "a[b f]" },
  { op = "contract", source = ["a", "mask(batch b)"], into = "m[b f]" },
  { op = "contract", source = ["m", "down"], into = "y[b h]" },
]
gives = "y"
cotangent = "dy"
backward = [
  { op = "contract", source = ["dy", "down"], into = "dm[b f]" },
  { op = "contract", source = ["m", "dy"], into = "ddown[f h]" },
  { op = "contract", source = ["dm", "mask(batch b)"], into = "da[b f]" },
  { op = "apply", by = "gelu", source = ["da", "u"], backward = true, into = "du[b f]" },
  { op = "contract", source = ["x", "du"], into = "dup[h f]" },
  { op = "contract", source = ["du", "up"], into = "dx[b h]" },
]
returns = "dx"
[mlp.gradients]
up = "dup"
down = "ddown"
[[states]]
weights = ["up", "down"]
axes = ["batch"]
[states.step]
micro_step = [
  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "gradients" },
]
finish = [
  { op = "all_reduce", source = "gradients", axes = ["batch"] },
  { op = "update", source = "gradients", into = "optimizer" },
  { op = "reset", source = "gradients" },
]
"""
SLICED = """forward = [
  { op = "slice", source = "mask", axes = ["batch"], along = "b", into = "own mask" },"""


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {'["x", "up"]': '["up", "x"]'},
        {'["du", "up"], into': '["up", "du"], into'},
        {'into = "ddown[f h]"': 'into = "ddown[h f]"'},
        {"forward = [": SLICED, '"mask(batch b)"': '"own mask"'},
        {'["a", "mask(batch b)"], into = "m[b f]"': '["mask(batch b)", "a"], into = "m[f b]"'},
    ],
)
def test_a_model_of_ones_own_is_accepted_however_products_are_written(changes, checked):
    text = MLP
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    assert checked(text).accepted, checked(text).wrong


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('["dm", "mask(batch b)"], into = "da[b f]"', '["dm", "dm"], into = "da[b f]"', "no such term"),
        ('up = "dup"', 'up = "ddown"', "the gradient of up is not the sum"),
        (
            'by = "gelu", source = "u"',
            'by = "gelu", source = ["u", "u"], backward = true',
            "in forward",
        ),
        ("backward = true, into", "into", "expected 1 value, for apply"),
        ("[cuts]", 'training = { loss = "mean" }\n[cuts]', "a sum over all samples"),
        ("[cuts]", 'stages = "batch"\n[cuts]', "one of the two"),
        ('"down[f h]"]', '"down[f h]", "w[h]"]', "expected weights that it reads"),
        ('"down[f h]"]', '"down[f h]", "mask[f h]"]', "expected each name once"),
        ('gives = "y"', 'gives = "x"', "a value that forward makes"),
        ('by = "gelu", source = "u"', 'by = "ge lu", source = "u"', "a function's name"),
        ('["m", "down"]', '["a", "down"]', "no such term"),
    ],
)
def test_what_a_model_of_ones_own_lacks_is_told(old, new, words, checked):
    assert old in MLP
    try:
        found = checked(MLP.replace(old, new, 1))
        said = "" if found.accepted else found.wrong
    except BadInput as error:
        said = str(error)
    assert words in said


def two_parts(second):
    """The model twice, one part after the other, and the second changed."""
    start, end = MLP.index("[mlp]"), MLP.index("[[states]]")
    part = MLP[start:end].replace("mlp", "two")
    for old, new in second.items():
        assert old in part
        part = part.replace(old, new)
    return MLP[:end].replace('["mlp"]', '["mlp", "two"]') + part + MLP[end:]


def test_two_parts_may_share_weights_that_they_have_alike(checked):
    assert checked(two_parts({})).accepted
    transposed = {'"down[f h]"': '"down[h f]"'}
    assert "not alike" in checked(two_parts(transposed)).wrong


def test_a_layer_does_not_share_weights_with_another_part(checked):
    """A layer may be there many times: of which one it is, is not said."""
    with pytest.raises(BadInput) as error:
        checked(two_parts({}).replace('"two"', '"layer"').replace("[two", "[layer"))
    assert "layer.weights: given 'up'; expected a name of its own: mlp has up" in str(error.value)


def test_an_equal_line_of_the_second_part_is_told_by_its_own_place(checked):
    text = two_parts({'["dm", "mask(batch b)"]': '["dm", "m"]', '"u"], backward': '"u"], backward'})
    found = checked(text)
    assert "no such term" in found.wrong
    assert text.splitlines()[found.at - 1].count('["dm", "m"]')


def test_two_masks_are_not_one_mask(checked):
    masks = {'"mask[b f]"': '"mask 1[b f]", "mask 2[b f]"', '"mask(batch b)"': '"mask 1(batch b)"'}
    text = MLP
    for old, new in masks.items():
        text = text.replace(old, new)
    assert checked(text).accepted
    other = text.replace('["dm", "mask 1', '["dm", "mask 2')
    assert "no such term" in checked(other).wrong


@pytest.mark.parametrize(
    "lines",
    [
        """  { op = "forward", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "gradients", axes = ["batch"] },""",
        """  { op = "forward", source = "parameters", into = "activations" },
  { op = "all_gather", source = "activations", axes = ["batch"] },
  { op = "backward", source = "parameters", into = "gradients", axes = ["batch"] },""",
        """  { op = "forward", source = "parameters", into = "activations" },
  { op = "release", source = "activations" },
  { op = "recompute", source = "parameters", into = "activations" },
  { op = "backward", source = "parameters", into = "gradients" },""",
    ],
)
def test_what_devices_compute_with_is_said_by_programs_alone(lines, checked):
    start, end = MLP.index('  { op = "forward"'), MLP.index("]\nfinish")
    text = MLP[:start] + lines + "\n" + MLP[end:]
    text = text.replace('  { op = "all_reduce", source = "gradients", axes = ["batch"] },\n', "")
    found = checked(text.replace("[states.step]", "[states.rest]\nactivations = {}\n[states.step]"))
    told = ("weights and gradients alone", "over no axis, and has it whole along batch")
    assert any(words in found.wrong for words in told)


@pytest.mark.parametrize("finish", ["finish = []", ""])
def test_a_step_that_finishes_nothing_is_rejected(finish, checked):
    text = MLP[: MLP.index("finish = [")] + finish
    assert not checked(text).accepted
    assert not checked('axes = ["batch"]\n[step]\n' + text[text.index("micro_step") :]).accepted


def test_sums_of_sums_take_no_longer(checked):
    """Each of forty lines doubles what the one before made."""
    chain = [
        f'  {{ op = "add", source = ["y{i}", "y{i}"], into = "y{i + 1}[b h]" }},' for i in range(40)
    ]
    back = [
        f'  {{ op = "add", source = ["e{i}", "e{i}"], into = "e{i + 1}[b h]" }},' for i in range(40)
    ]
    text = MLP.replace('into = "y[b h]" },', 'into = "y0[b h]" },\n' + "\n".join(chain))
    text = text.replace('gives = "y"', 'gives = "y40"').replace('cotangent = "dy"', 'cotangent = "e0"')
    text = text.replace("backward = [\n", "backward = [\n" + "\n".join(back) + "\n").replace(
        '"dy"', '"e40"'
    )
    assert checked(text).accepted, checked(text).wrong


WORDS = sorted({*re.findall(r'"[^"]*"', TEXT), "true", "[]", "1"})


@given(data=st.data())
def test_whatever_a_file_says_it_is_judged_or_refused_in_one_line(data, checked):
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "twice", "swap", "word"]))
        if change == "drop":
            del lines[number]
        elif change == "twice":
            lines.insert(number, lines[number])
        elif change == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[number], lines[other] = lines[other], lines[number]
        else:
            word = data.draw(st.sampled_from(WORDS))
            parts = re.split(r'"[^"]*"', lines[number], maxsplit=1)
            lines[number] = word.join(parts)
    try:
        checked("\n".join(lines))
        said = ""
    except BadInput as error:
        said = str(error)
    assert "\n" not in said
