"""Which of the values that are kept are views, beside numpy's own views of arrays that lie alike."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.reading.profiles import read as profiled
from spec.costs.model_costs import elements, kept_bytes, numbers_of, waiting_bytes
from spec.costs.views import is_repeated, with_views
from spec.derivation.programs import program_of
from spec.derivation.two_parts import gradients_last
from spec.models.parts import head, layer
from spec.models.profiles import realised_parts
from spec.models.transformer import Transformer, is_layer, with_masks
from spec.models.values import Does, Operation, Role, Value
from spec.plans.model_strategies import MODEL_AXES

few = st.integers(1, 3)
WIDTH = 4
OF_ATTENTION = ("query", "key", "value")


def model(heads, joined):
    """One layer; queries and keys are not turned, so that all three may be parts of one array."""
    groups, each, features = heads
    sizes = (1, 5, groups * each, groups, features, 7, 11)
    return Transformer(*sizes, angles=False, joined=frozenset({joined} - {""}))


def kept(of, samples, tokens, devices=1, profile="eager"):
    """Bytes of what attention keeps of queries, keys and values, on each of some devices."""
    (part,) = (part for part in realised_parts(of, profiled(profile), WIDTH) if is_layer(part.name))
    tensor, indices = MODEL_AXES["tp"], of.sizes(samples, tokens)
    mesh = {tensor.name: devices}
    program = with_views(program_of(part, (tensor,)), indices, mesh)
    mine = tuple(value for value in program.stored if value.name.startswith(OF_ATTENTION))
    return kept_bytes(replace(program, kept=mine), indices, mesh)


def laid(samples, tokens, heads, joined):
    """Queries, keys and values as arrays of one row for each token, and the arrays."""
    groups, each, features = heads
    counts = (groups * each, groups, groups)
    if joined == "heads":
        array = np.zeros((samples, tokens, groups, each + 2, features), np.float32)
        return (array[..., :-2, :], array[..., -2:-1, :], array[..., -1:, :]), [array]
    rows = [np.zeros((samples, tokens, count * features), np.float32) for count in counts]
    arrays = rows
    if joined == "qkv":
        arrays = [np.concatenate(rows, -1)]
        ends = np.cumsum([count * features for count in counts])
        rows = [arrays[0][..., end - n * features : end] for n, end in zip(counts, ends, strict=True)]
    shape = (samples, tokens, groups, -1, features)
    return [row.reshape(shape) if row.base is None else _split(row, shape) for row in rows], arrays


def _split(row, shape):
    """A view, with its features in groups, heads and features of a head."""
    found = row.view()
    found.shape = (*shape[:3], row.shape[-1] // shape[2] // shape[4], shape[4])
    return found


@given(few, few, st.tuples(few, few, few), st.sampled_from(["", "qkv", "heads"]))
def test_what_numpy_need_not_copy_to_take_batches_as_one_is_a_view(samples, tokens, heads, joined):
    groups, each, features = heads
    views, arrays = laid(samples, tokens, heads, joined)
    found = {}
    for view in views:
        all_heads = np.broadcast_to(view, (samples, tokens, groups, each, features))
        batches = all_heads.transpose(0, 2, 3, 1, 4).reshape(-1, tokens, features)
        within = [array for array in arrays if np.shares_memory(array, batches)]
        (of,) = within or [batches]
        found[id(of)] = of
    assert kept(model(heads, joined), samples, tokens) == sum(of.nbytes for of in found.values())


@given(few, few, st.tuples(few, few, few), st.sampled_from(["", "qkv", "heads"]))
def test_the_heads_that_a_device_has_tell_which_are_views(samples, tokens, heads, joined):
    groups, *others = heads
    cut = kept(model((3 * groups, *others), joined), samples, tokens, 3)
    assert cut == kept(model(heads, joined), samples, tokens)


@given(few, few, st.tuples(few, few, few), st.sampled_from(["", "qkv", "heads"]))
def test_a_kernel_reads_views_of_arrays_as_they_are(samples, tokens, heads, joined):
    _, arrays = laid(samples, tokens, heads, joined)
    found = kept(model(heads, joined), samples, tokens, profile="eager+fused")
    assert found == sum(array.nbytes for array in arrays)


@given(few, few, st.tuples(few, few, few), st.sampled_from(["", "qkv", "heads"]))
def test_a_kernel_with_a_mask_has_copies_of_keys_that_heads_of_several_groups_repeat(
    samples, tokens, heads, joined
):
    """As transformers repeats them, unless all queries are of one token."""
    (query, key, value), arrays = laid(samples, tokens, heads, joined)
    groups, each, features = heads
    masked = with_masks(replace(model(heads, joined), windows=(1,)), tokens)
    found = [array for array in arrays if np.shares_memory(array, query)]
    for x in (key, value):
        repeated = np.broadcast_to(x, (samples, tokens, groups, each, features))
        repeated = repeated.transpose(0, 2, 3, 1, 4).reshape(samples, -1, tokens, features)
        is_view = tokens == 1 or each == 1 or np.shares_memory(repeated, x)
        owners = [array for array in arrays if np.shares_memory(array, x)] if is_view else [repeated]
        found += [array for array in owners if not any(array is other for other in found)]
    assert kept(masked, samples, tokens, profile="eager+fused") == sum(a.nbytes for a in found)


@given(few, few, st.tuples(few, few, few), st.sampled_from(["", "heads"]), st.booleans())
def test_heads_of_groups_are_put_together_as_numpy_does(samples, tokens, heads, joined, masked):
    """Queries, keys and values before a kernel takes them, of one token too."""
    groups, each, features = heads
    views, arrays = laid(samples, tokens, heads, joined)
    found = []
    for x in views:
        all_heads = np.broadcast_to(x, (samples, tokens, groups, each, features))
        together = all_heads.reshape(samples, tokens, -1, features)
        owners = [array for array in arrays if np.shares_memory(array, together)] or [together]
        found += [array for array in owners if not any(array is other for other in found)]
    of = replace(model(heads, joined), spread_keys=True, windows=(1,) * masked)
    has = kept(with_masks(of, tokens), samples, tokens, profile="eager+fused")
    assert has == sum(array.nbytes for array in found)


def test_a_mask_that_layers_share_is_of_all_heads_and_pairs_of_tokens_once():
    of = replace(model((1, 3, 2), ""), layers=3, shares_mask=True)
    program, sizes = program_of(layer(of, frozenset()), ()), {"b": 2, "s": 5}
    assert numbers_of((program,), of, sizes, {}, 2).places == np.zeros((2, 3, 5, 5), "f2").nbytes
    assert numbers_of((program_of(head(of), ()),), of, sizes, {}, 2).places == 4


def test_a_mask_that_a_kernel_is_given_is_kept_once_for_all_heads():
    masked = with_masks(replace(model((1, 2, 2), ""), windows=(2,)), 3)
    (part,) = (p for p in realised_parts(masked, profiled("eager+fused"), 2) if is_layer(p.name))
    (mask,) = (v for v in program_of(part, ()).stored if v.role is Role.CONSTANT)
    sizes = {"b": 2, "g": 1, "r": 2, "s": 3, "u": 3}
    assert mask.width * elements(mask, {}, sizes, {}) == np.zeros((2, 1, 3, 3), "f2").nbytes


@pytest.mark.parametrize("name", MODEL_AXES)
def test_a_mask_is_cut_by_what_cuts_samples_or_the_tokens_of_queries(name):
    axis, masked = MODEL_AXES[name], with_masks(replace(model((2, 1, 2), ""), windows=(2,)), 4)
    program = program_of(layer(masked, *masked.kinds), (axis,))
    (mask,) = (v for line in program.forward for v in line.reads if v.plain_name == "mask_of_pairs")
    sizes, mesh = dict.fromkeys("bgrsu", 4), {axis.name: 2, axis.turns: 2}
    cuts = {"cp": 4, "dp": 2, "ep": 2, "cp-all-gather": 2}.get(name, 1)  # a ring, in each turn
    assert elements(mask, program.lies[mask], sizes, mesh) == 4**3 / cuts


def test_repeated_is_what_is_multiplied_by_ones_that_are_in_no_memory():
    value, more = Value("value", ("b", "s")), ("b", "s", "h")
    for width, repeated in ((0, True), (WIDTH, False)):
        other = Value("other", ("h",), Role.CONSTANT, width)
        assert is_repeated(Operation(Does.CONTRACT, (value, other), Value("made", more))) is repeated
    ones = Value("ones", ("s",), Role.CONSTANT, 0)
    assert not is_repeated(Operation(Does.CONTRACT, (value, ones), Value("made", ("b", "s"))))


def test_without_views_in_its_profile_a_program_stays_as_it_is():
    for part in realised_parts(model((1, 2, 4), "qkv"), profiled("pytorch"), WIDTH):
        program = program_of(part, ())
        assert with_views(program, {}, {}) is program


def merged(of, samples, tokens, profile):
    """Names of what takes no room beside what it is a view of, on one device."""
    (part,) = (part for part in realised_parts(of, profiled(profile), WIDTH) if part.name == "layer")
    return with_views(program_of(part, ()), of.sizes(samples, tokens), {}).part.merged


@given(few, few, few)
def test_odds_of_all_experts_are_a_view_where_their_transpose_is_one_row_of_the_same_numbers(b, s, j):
    of = replace(model((1, 1, 4), ""), experts=j, chosen=1, weighed_first=True, plain_odds=True)
    odds = np.zeros((b * s, j), np.float32)
    is_view = np.shares_memory(odds, odds.T.reshape(-1))
    assert ("slot_odds" in merged(replace(of, odds="sigmoid"), b, s, "eager")) == is_view


@given(few, few, few, few)
def test_what_attention_gives_head_by_head_is_copied_token_by_token_unless_it_lies_so(b, s, g, r):
    of = replace(model((g, r, 4), ""), put_together=True)
    gives = np.zeros((b, g * r, s, 4), np.float32)
    is_view = np.shares_memory(gives, np.ascontiguousarray(gives.transpose(0, 2, 1, 3)))
    has_copy = g * r > 1  # else no copy is written down
    found = "context_by_token" in merged(of, b, s, "eager+fused")
    assert found == (is_view and has_copy)


def test_what_attention_gives_of_one_head_lies_token_by_token_on_each_device():
    of, tensor = replace(model((2, 1, 4), ""), put_together=True), MODEL_AXES["tp"]
    (part,) = (p for p in realised_parts(of, profiled("eager+fused"), WIDTH) if is_layer(p.name))
    gives = np.zeros((2, 1, 3, 4), np.float32)
    assert np.shares_memory(gives, np.ascontiguousarray(gives.transpose(0, 2, 1, 3)))
    program = with_views(program_of(part, (tensor,)), of.sizes(2, 3), {tensor.name: 2})
    assert "context_by_token" in program.part.merged


def test_what_waits_for_the_second_part_of_backward_in_an_array_is_counted_with_it():
    of, tensor = replace(model((2, 1, 4), ""), put_together=True), MODEL_AXES["tp"]
    (part,) = (p for p in realised_parts(of, profiled("eager+fused"), WIDTH) if is_layer(p.name))
    program, sizes, mesh = gradients_last(program_of(part, (tensor,))), of.sizes(2, 3), {tensor.name: 2}
    assert "context_by_token" in {value.plain_name for value in program.held_between}
    found = with_views(program, sizes, mesh)
    assert waiting_bytes(found, sizes, mesh) == waiting_bytes(program, sizes, mesh)
