"""Orders of axes that cut an index, in models' steps as files."""

from __future__ import annotations

import re

import pytest

from psem_model.text.errors import BadInput
from tests.support.steps import text_of


def test_an_index_that_two_axes_cut_is_told(checked):
    found = checked(text_of("tp+sp * cp"))
    assert found.accepted
    assert any(fact.startswith("s is cut along context x tensor") for fact in found.report().facts)


ORDER = '[order]\ns = ["context", "tensor"]\n'


@pytest.mark.parametrize("order", ["", '[order]\ns = ["tensor", "context"]\n'])
def test_a_move_along_the_outer_axis_of_two_that_cut_an_index_is_rejected(order, checked):
    text = text_of("tp+sp * cp")
    assert ORDER in text
    found = checked(text.replace(ORDER, order))
    assert not found.accepted
    assert "tensor is outside context in the order of s" in found.wrong
    assert 's = ["context", "tensor"] in [order]' in found.wrong
    assert found.at


def test_an_order_may_leave_out_axes_that_do_not_cut_what_is_renamed(checked):
    text = text_of("zero1 * tp+sp * cp-all-gather(other) * cp")
    said = '[order]\ns = ["context", "other", "tensor"]\nu = ["context", "other"]\n'
    assert said in text
    first, s, u, _ = said.split("\n")
    for order in (said, f"{first}\n{u}\n{s}\n"):
        assert checked(text.replace(said, order)).accepted
    with pytest.raises(BadInput, match="renamed"):
        checked(text.replace(u, 'u = ["other", "context"]'))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ('[order]\nz = ["context"]', "order.z: given 'z'"),
        ('[order]\ns = ["contxt"]', "nearest: context"),
        ('[order]\ns = "context"', "an array"),
        (
            '[order]\ns = ["context", "tensor"]\nu = ["tensor", "context"]',
            "the order of what it is renamed from, or to",
        ),
    ],
)
def test_an_order_that_is_none_is_told(order, words, checked):
    with pytest.raises(BadInput, match=re.escape(words)):
        checked(text_of("tp+sp * cp").replace(ORDER, f"{order}\n"))
