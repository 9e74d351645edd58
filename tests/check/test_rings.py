"""Steps with rings, and softmaxes turn by turn, as files: a wrong line is rejected."""

from __future__ import annotations

import re

import pytest

from psem_model.text.errors import BadInput
from tests.support.steps import text_of

SEEN = 'source = ["d shares", "shares"], backward = true, into = "d seen[b g r s u]"'


def with_a_line(text, into, line):
    """The text, with a line after the one that makes a value."""
    lines = text.splitlines()
    (at,) = (i for i, found in enumerate(lines) if f'into = "{into}"' in found)
    return "\n".join([*lines[: at + 1], line, *lines[at + 1 :]])


@pytest.mark.parametrize(("rows", "right"), [("b s g r d", True), ("b s r d", False)])
def test_a_softmaxs_rows_are_not_those_of_a_result_that_sums_them(rows, right, checked):
    """Backward may take <cotangent, result> of each row as a value: not of all heads at once."""
    text = text_of("cp-all-gather", "gpt")
    contracted = '{ op = "contract", source = ["shares_dropped", "values 2"], into = "again[%s]" },'
    product_ = '{ op = "contract", source = ["d context", "again"], into = "product[b g r s]" },'
    text = with_a_line(text, "context[b s g r d]", contracted % rows)
    text = with_a_line(text, "d context[b s g r d]", product_)
    assert SEEN in text
    text = text.replace(SEEN, SEEN.replace('"shares"]', '"shares", "product"]'))
    found = checked(text)
    assert found.accepted is right
    assert right or "the chain rule gives no such term" in found.wrong


RING = text_of("cp").splitlines()
IN_TURNS = [i for i, line in enumerate(RING) if re.search(r'op = "(ring_|merge|accum)', line)]


@pytest.mark.parametrize("number", IN_TURNS)
def test_a_forgotten_move_of_a_ring_is_rejected(number, checked):
    line = RING[number]
    before = re.search(r'source = \[?("[^"]*")', line)[1]
    after = re.search(r'into = ("[^"]*")', line)[1]
    rest = [other.replace(after, before) for other in RING if other != line]
    found = checked("\n".join(rest))
    assert not found.accepted
    assert found.at


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'op = "merge", source = "shares_log_total 1"',
            'op = "accumulate", source = "shares_log_total 1"',
            "is not summed so",
        ),
        ('"context 1", "shares_log_total 1"', '"context 1", "context 1"', "is not summed so"),
        ('op = "accumulate"', 'op = "merge"', "is not summed so"),
        ('op = "ring_reduce"', 'op = "reduce_scatter"', "devices along context have other slices"),
        ('op = "ring_gather"', 'op = "all_gather"', "is cut"),
        (', ring = "u"', "", "expected one of context"),
        ('"seen 2", "shares_log_total 2"', '"seen 2"', "not merged"),
        (
            'by = "log_sum_exp", over = "u"',
            'by = "softmax", over = "u"',
            "values with the same indices",
        ),
    ],
)
def test_a_wrong_line_of_a_ring_is_rejected_in_words(old, new, words, checked):
    text = "\n".join(RING)
    assert old in text
    try:
        found = checked(text.replace(old, new, 1))
    except BadInput as error:
        said = str(error)
    else:
        assert not found.accepted
        said = str(found.wrong)
    assert words in said
