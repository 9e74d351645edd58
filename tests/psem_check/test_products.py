"""Comparisons whose products add up to a negative number; whatever is not so is rejected."""

import pytest

from psem_check.proofs import Steps
from psem_check.reader import Graph
from psem_check.terms import BOOL, INT, REAL, Rejected, Symbol, Terms
from tests.support.certificates import Solver

THING = ("Sort", "Thing")
SYMBOLS = {"x": REAL, "y": REAL, "n": INT, "a": THING, "b": THING, "p": BOOL}


class Products:
    """Comparisons of a few symbols, and what is shown of them."""

    def __init__(self):
        self.terms = Terms()
        self.terms.symbols = [Symbol(name, (), sort) for name, sort in SYMBOLS.items()]
        self.of = {name: self.terms.make(i) for i, name in enumerate(SYMBOLS)}

    def __call__(self, relation, left, right):
        return self.terms.make(relation, *map(self.term, (left, right)))

    def term(self, given):
        """A symbol, a product of two, a whole number beside the symbols of real ones."""
        if isinstance(given, int):
            return self.terms.number(given, REAL)
        factors = [self.of[name] for name in given]
        return self.terms.make("*", *factors) if len(factors) > 1 else factors[0]

    def shown(self, compared, summands):
        """The conclusion, of which a solver says the same."""
        graph = Graph(self.terms, numbers=[*compared])
        written = []
        for multiplier, by in summands:
            written.append([len(graph.numbers), by])
            graph.numbers.append(self.term(multiplier))
        steps = Steps(graph)
        steps.take("products", list(range(len(compared))), written)
        (said,) = steps.conclusions
        assert Solver(self.terms).follows([], said)
        return said


@pytest.fixture
def say():
    return Products()


SQUARES = [(2, [0, 1]), (1, [1, 1]), (1, [2])]  # 2 x (y - x) + (y - x)^2 + x^2 - y^2


def test_of_positive_numbers_the_larger_has_the_larger_square(say):
    compared = [say("<", 0, "x"), say("<", "x", "y"), say(">=", "xx", "yy")]
    assert say.shown(compared, SQUARES) == say.terms.negation(say.terms.conjunction(compared))


def test_what_adds_up_to_zero_shows_nothing_if_all_of_it_may_be_zero(say):
    compared = [say("<=", 0, "x"), say("<=", "x", "y"), say(">=", "xx", "yy")]
    with pytest.raises(Rejected, match="add up"):
        say.shown(compared, SQUARES)


def test_an_equation_may_be_multiplied_by_anything(say):
    compared = [say("=", "x", 1), say("<", "xy", "y")]
    assert say.shown(compared, [(1, [1]), ("y", [0])])


def test_bounds_of_integers_are_rounded_and_of_real_numbers_not(say):
    twice = {name: say.terms.make("+", say.of[name], say.of[name]) for name in ("n", "x")}
    for name, sort in (("n", INT), ("x", REAL)):
        one = say.terms.number(1, sort)
        compared = [say.terms.make(relation, twice[name], one) for relation in (">=", "<=")]
        summands = [(1, [0]), (1, [1])]
        if sort == INT:
            assert say.shown(compared, summands)
        else:
            with pytest.raises(Rejected, match="add up"):
                say.shown(compared, summands)


@pytest.mark.parametrize(
    ("summands", "why"),
    [
        ([(0, [0])], "not positive"),
        ([(-1, [0])], "not positive"),
        ([("y", [0])], "not positive"),
        ([("y", [])], "not positive"),
        ([("a", [0])], "not positive"),
        ([("p", [0])], "not positive"),
        ([(1, [2])], "is none of"),
        ([(1, [-1])], "is none of"),
        ([(1, [True])], "not an integer"),
        ([("y", [1])], "add up"),
        ([("a", [1])], "add up"),
        ([], "add up"),
        ([(1, [0]), ("y", [1])], "add up"),
        ([(1, [0]), (-1, [1, 0])], "add up"),
    ],
)
def test_another_sum_is_rejected(say, summands, why):
    compared = [say("<", "x", 0), say("=", "x", "y")]
    with pytest.raises(Rejected, match=why):
        say.shown(compared, summands)


def test_a_product_of_which_one_factor_is_zero_is_zero_whatever_its_sign(say):
    compared = [say("=", "x", 0), say("=", "xx", 1), say(">", "x", "y")]
    assert say.shown(compared, [(1, [1]), (-1, [0, 0])])
    with pytest.raises(Rejected, match="add up"):
        say.shown(compared, [(1, [1]), (-1, [0, 2])])


def test_an_equation_of_what_are_no_numbers_adds_nothing(say):
    compared = [say("<", "x", 0), say(">", "x", 0), say("=", "a", "b"), say("=", "p", "p")]
    assert say.shown(compared, [(1, [0]), (1, [1])])
    with pytest.raises(Rejected, match="add up"):
        say.shown(compared, [(1, [0]), (1, [1]), ("x", [2])])


def test_what_is_no_comparison_of_numbers_is_rejected(say):
    x_is_less = say("<", "x", 0)
    others = [say.of["p"], say.terms.true, say.terms.negation(say("=", "x", "y"))]
    for other in others:
        with pytest.raises(Rejected, match="not a comparison"):
            say.shown([x_is_less, other], [(1, [0])])
