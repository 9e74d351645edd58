"""Each schema is valid, whatever the sorts of its letters."""

from itertools import product

import pytest

from psem_check.schemas import INTEGERS, LETTERS, SCHEMAS
from psem_check.terms import BOOL, INT, REAL, Rejected, Symbol, Terms
from tests.support.certificates import Solver

THING = ("Sort", "Thing")
SORTS = (BOOL, INT, REAL, THING, ("Array", INT, REAL), ("Array", THING, THING))
NAMED = [(name, n) for name, several in SCHEMAS.items() for n in range(len(several))]


def letters_of(pattern):
    if isinstance(pattern, tuple):
        return {letter for part in pattern[1:] for letter in letters_of(part)}
    return {pattern} & LETTERS


def built(terms, pattern, letters, numbers):
    """The terms of a pattern with numerals of a sort; Rejected if there are none."""
    if isinstance(pattern, tuple):
        parts = [built(terms, part, letters, numbers) for part in pattern[1:]]
        return terms.make(pattern[0], *parts)
    if pattern in letters:
        return letters[pattern]
    if pattern in ("true", "false"):
        return terms.true if pattern == "true" else terms.false
    return terms.number(int(pattern), numbers)


def instances(premises, conclusion):
    """The schema over constants of all sorts that it can be over."""
    names = sorted({letter for part in (*premises, conclusion) for letter in letters_of(part)})
    for *sorts, numbers in product(SORTS, repeat=len(names) + 1):
        chosen = dict(zip(names, sorts, strict=True))
        if numbers not in (INT, REAL) or any(chosen[n] != INT for n in INTEGERS & chosen.keys()):
            continue
        terms = Terms()
        terms.symbols = [Symbol(name, (), sort) for name, sort in chosen.items()]
        letters = {name: terms.apply(i) for i, name in enumerate(chosen)}
        try:
            made = [built(terms, part, letters, numbers) for part in (*premises, conclusion)]
        except Rejected:
            continue
        if all(terms.sorts[each] == BOOL for each in made):
            yield terms, made


@pytest.mark.parametrize(("name", "number"), NAMED, ids=lambda given: str(given))
def test_every_instance_of_a_schema_is_valid(name, number):
    found = 0
    for terms, (*premises, conclusion) in instances(*SCHEMAS[name][number]):
        assert Solver(terms).follows(premises, conclusion)
        found += 1
    assert found
