"""Errors repeat a little of what was given, and name the nearest name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.text.errors import LONGEST, BadInput, choose, nearest, quoted, shortened


@given(st.text(max_size=200))
def test_what_is_repeated_is_short_and_one_line(text):
    assert len(quoted(text)) <= 12 * LONGEST
    assert "\n" not in quoted(text)
    if len(text) <= LONGEST:
        assert quoted(text) == repr(text)


def test_what_is_cut_says_how_long_it_was():
    assert quoted("a" * 120_000) == f"'{'a' * LONGEST}'... (120,000 characters)"
    assert shortened("a" * 61) == f"{'a' * 60}... (61 characters)"


@pytest.mark.parametrize(
    ("given", "near"), [("zero4", "zero3"), ("ZERO1", "zero1"), ("", ""), ("x", ""), ("fdsp", "fsdp")]
)
def test_the_nearest_name_is_spelled_alike(given, near):
    names = ["zero1", "zero3", "fsdp"]
    assert nearest(given, names) == near
    with pytest.raises(BadInput) as error:
        choose("strategy", given, names)
    ending = f"; nearest: {near}" if near else ""
    assert str(error.value).endswith(f"expected one of zero1, zero3, fsdp{ending}")


@pytest.mark.parametrize(
    ("given", "near"), [("owners", ""), ("row", "rows"), ("brows", "rows"), ("rowing", "rows")]
)
def test_a_name_that_begins_otherwise_has_more_letters_in_common(given, near):
    assert nearest(given, ["rows"]) == near
