"""Published values are rows in groups, each with the fields that an entry has."""

import tomllib

import pytest

from psem_model.published.entries import Entry, published, rows_in

GROUP = """
[[group]]
source = "a paper"
quantity = "memory"
unit = "bytes"
rounding = "exact"
rule = "bytes_at_rest"
inputs = { N = 4, K = 12 }
rows = [
  { id = "one", strategy = "DP", value = 120 },
  { strategy = "ZeRO", inputs = { N = 8 }, rows = [
    { id = "two", value = 1.50, inputs = { psi = 3 } },
    { id = "three", value = "m", second = "p", sentence = "{value} of {second}", rounding = "none" },
  ] },
]
"""


def entries(text):
    return [Entry(**row) for row in rows_in(tomllib.loads(text))]


def test_each_entry_has_a_name_of_its_own():
    assert len({entry.id for entry in published()}) == len(published()) == 133


def test_a_row_has_what_its_groups_share_unless_it_says_otherwise():
    one, two, three = entries(GROUP)
    assert {entry.source for entry in (one, two, three)} == {"a paper"}
    assert [entry.strategy for entry in (one, two, three)] == ["DP", "ZeRO", "ZeRO"]
    assert [entry.rounding for entry in (one, two, three)] == ["exact", "exact", "none"]
    assert one.inputs == {"N": 4, "K": 12}
    assert two.inputs == {"N": 8, "K": 12, "psi": 3}
    assert three.inputs == {"N": 8, "K": 12}
    assert [str(entry.printed) for entry in (one, two, three)] == ["120", "1.5", "m of p"]


@pytest.mark.parametrize(
    ("line", "other", "said"),
    [
        ('unit = "bytes"', "", "unit"),
        ('unit = "bytes"', 'unit = "bytes"\nunits = "bytes"', "units"),
    ],
)
def test_a_field_that_is_missing_or_unknown_is_an_error(line, other, said):
    with pytest.raises(TypeError, match=f"'{said}'"):
        entries(GROUP.replace(line, other))
