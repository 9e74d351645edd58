"""Published values are rows; each is reproduced by the rule that it names, and no other value is."""

from dataclasses import replace

import pytest

from psem_model.published import models, states
from psem_model.published.entries import entries, published
from psem_model.published.reproduce import by_name, reproduce

BUT_FOR_THE_FINAL_NORM = "ptdp.formula.params"  # its 2h weights, which the source leaves out
EVERY = published()
NUMBERS = [entry for entry in EVERY if not isinstance(entry.value, str)]
FORMULAS = [entry for entry in EVERY if isinstance(entry.value, str)]
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


def each(some):
    return pytest.mark.parametrize("entry", some, ids=[entry.id for entry in some])


@each(EVERY)
def test_every_published_value_is_reproduced(entry):
    found = reproduce(entry)
    assert found.agrees is (entry.id != BUT_FOR_THE_FINAL_NORM), found
    assert bool(found.note) is not found.agrees


@each(NUMBERS)
def test_another_number_than_the_published_one_is_not(entry):
    assert not reproduce(replace(entry, value=2 * entry.value + 0.1)).agrees


@each(FORMULAS)
def test_another_formula_than_the_published_one_is_not(entry):
    assert not reproduce(replace(entry, value=f"2*{entry.value}")).agrees


@each([entry for entry in FORMULAS if entry.second])
def test_another_second_formula_than_the_published_one_is_not(entry):
    assert not reproduce(replace(entry, second=f"2*{entry.second}")).agrees


def test_each_entry_has_a_name_of_its_own():
    assert len({entry.id for entry in EVERY}) == len(EVERY) == 131


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
        list(entries(GROUP.replace(line, other)))


def test_an_unknown_rule_is_an_error():
    odd = replace(EVERY[0], rule="bytes_at_work")
    with pytest.raises(
        ValueError, match=rf"{EVERY[0].id}: given rule 'bytes_at_work'; expected one of "
    ):
        by_name(states.RULES, [odd])
    with pytest.raises(KeyError, match="bytes_at_work"):
        reproduce(odd)


def test_a_rule_that_no_entry_names_is_an_error():
    others = [entry for entry in EVERY if entry.rule != "handed_on"]
    with pytest.raises(ValueError, match="rule 'handed_on': no published value names it"):
        by_name((*states.RULES, *models.RULES), others)
