"""Each published value is reproduced by the rule that it names, and no other value is."""

from dataclasses import replace

import pytest

from psem_model.published.entries import published
from psem_model.published.reproduce import RULES, reproduce, require_named

BUT_FOR_THE_FINAL_NORM = "ptdp.formula.params"  # its 2h weights, which the source leaves out
EVERY = published()
NUMBERS = [entry for entry in EVERY if not isinstance(entry.value, str)]
FORMULAS = [entry for entry in EVERY if isinstance(entry.value, str)]


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


def test_an_unknown_rule_is_an_error():
    odd = replace(EVERY[0], rule="bytes_at_work")
    with pytest.raises(
        ValueError, match=rf"{EVERY[0].id}: given rule 'bytes_at_work'; expected one of "
    ):
        require_named(RULES, [odd])
    with pytest.raises(KeyError, match="bytes_at_work"):
        reproduce(odd)


def test_a_rule_that_no_entry_names_is_an_error():
    others = [entry for entry in EVERY if entry.rule != "handed_on"]
    with pytest.raises(ValueError, match="rule 'handed_on': no published value names it"):
        require_named(RULES, others)
