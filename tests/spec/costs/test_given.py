"""What layers are given beside what they take, as arrays that transformers was seen to make."""

from dataclasses import replace

import numpy as np
import pytest

from spec.costs.model_costs import given_bytes
from spec.derivation.programs import program_of
from spec.models.parts import layer
from spec.models.transformer import Transformer

PAIRS_OF_FIVE = (np.zeros((3, 1, 5, 5), "f2"), np.zeros((1, 1, 5, 5), bool))
PLACES = np.arange(5).nbytes  # one number for all samples


@pytest.mark.parametrize(
    ("kind", "windows", "eager", "fused"),  # arrays seen of transformers 5.23
    [
        ({}, {0}, 1, 0),
        ({}, {1}, 1, 1),
        ({}, {5}, 1, 1),
        ({}, {6}, 1, 0),
        ({}, {0, 5}, 2, 1),
        ({"masked": True}, {0}, 1, 1),  # Falcon of groups, or of one head of keys
        ({"numbered_heads": True}, {0}, 1, 1),
    ],
)
def test_layers_are_given_a_mask_for_each_of_their_windows(kind, windows, eager, fused):
    of = replace(Transformer(3, 6, 4, 2, 4, 8, 9), **kind)
    program, indices = program_of(layer(of), ()), of.sizes(3, 5)
    for in_kernel, count in enumerate((eager, fused)):
        found = given_bytes(program, of, indices, {}, 2, windows, bool(in_kernel))
        assert found == count * PAIRS_OF_FIVE[in_kernel].nbytes + PLACES


def test_what_else_layers_are_given_is_counted_and_nothing_twice():
    of = Transformer(3, 6, 4, 2, 4, 8, 9)

    def given(in_kernel=True, **kind):
        model = replace(of, **kind)
        program = program_of(layer(model), ())
        return given_bytes(program, model, model.sizes(3, 5), {}, 2, {0}, in_kernel)

    mask, falling = PAIRS_OF_FIVE[0], np.zeros((3, 4, 1, 5), "f2")
    turns = np.zeros((2, 1, 5, 4), "f2")
    of_all_heads = np.zeros((3, 4, 5, 5), "f2")
    assert given(positions=9) == 0  # they are kept anyway
    assert given(positions=9, spare=2) == np.zeros((3, 5), "i8").nbytes
    assert given(angles=False, distances=True) == mask.nbytes + falling.nbytes
    falcon = {"angles": False, "distances": True, "unread_angles": True}
    beside = PLACES + turns.nbytes + falling.nbytes
    assert given(**falcon) == beside + of_all_heads.nbytes
    assert given(**falcon, shares_mask=True) == beside
    chunks = given_bytes(
        program_of(layer(of), ()), replace(of, chunked=True), of.sizes(3, 5), {}, 2, {4}, True
    )
    assert chunks == np.zeros((3, 1, 5, 5), bool).nbytes + PLACES
