"""What the checker takes for granted of operators is what a solver says of them."""

from itertools import product

import pytest

from psem_check.proofs import LAWS, check_proof
from psem_check.reader import Graph
from psem_check.terms import BOOL, INT, REAL, Rejected, Symbol, Terms
from tests.support.certificates import Solver

THING = ("Sort", "Thing")
MODE = ("Values", "Mode", ("R", "S", "M"))
SORTS = (BOOL, INT, REAL, THING, MODE, ("Array", INT, REAL), ("Array", THING, THING))


def instances(name, count):
    """A law of so many constants, of all sorts that it can be of."""
    for sorts in product(SORTS, repeat=count):
        terms = Terms()
        terms.symbols = [Symbol(f"s{i}", (), sort) for i, sort in enumerate(sorts)]
        try:
            yield terms, LAWS[name](terms, *(terms.make(i) for i in range(count)))
        except (Rejected, TypeError, ValueError):
            continue


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_valid_of_all_sorts_that_it_can_be_of(name):
    found = [
        Solver(terms).follows([], said) for count in (1, 2, 4) for terms, said in instances(name, count)
    ]
    assert found
    assert all(found)


@pytest.mark.parametrize("name", ["truth", "value", "division", ["value"]])
def test_what_is_not_there_or_of_other_terms_is_rejected(name):
    terms = Terms()
    terms.symbols = [Symbol("x", (), REAL)]
    graph = Graph(terms, numbers=[terms.make(0)])
    for of in ([], [0], [0, 0]):
        with pytest.raises(Rejected, match="step 0"):
            check_proof(graph, [], [["law", name, of]])
