"""Numbers by which polynomials add up to zero: those that are found do; z3 finds some, too, or none."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from psem_check.polynomials import Polynomial, plus
from psem_model.certify.products import FEW, Linear

FACTORS = st.one_of(st.integers(-3, 3), st.fractions(-2, 2, max_denominator=3)).filter(bool)
MONOMIALS = st.sampled_from([(), (2,), (3,), (2, 3), (4,)])
POLYNOMIALS = st.lists(
    st.dictionaries(MONOMIALS, FACTORS, min_size=1, max_size=3), min_size=1, max_size=5
)
FIRST = {(): 1}  # as of the empty product


def asked(polynomials):
    linear = Linear()
    return linear, [linear.unknown(polynomial) for polynomial in (FIRST, *polynomials)]


@given(POLYNOMIALS, st.data())
def test_the_only_numbers_are_found_without_a_solver(polynomials, data):
    linear, unknown = asked(polynomials)
    natural = [u for u in unknown if u == 0 or data.draw(st.booleans())]
    positive = [u for u in natural if u == 0 or data.draw(st.booleans())]
    found, by_z3 = linear.solved(natural, positive), linear._by_z3(natural, positive)
    assert (found is None) == (by_z3 is None)
    for numbers in filter(None, (found, by_z3)):
        total: Polynomial = {}
        for u, polynomial in zip(unknown, (FIRST, *polynomials), strict=True):
            total = plus(total, polynomial, numbers.get(u, 0))
        assert total == {}
        assert all(numbers.get(u, 0) >= 0 for u in natural)
        assert sum(numbers.get(u, 0) for u in positive) == 1


def test_of_many_numbers_those_are_found_that_a_solver_finds():
    linear, unknown = asked([{(): -1, (n + 2,): 1} for n in range(FEW)])
    last = linear.unknown({(n + 2,): -1 for n in range(FEW)})
    natural = [*unknown, last]
    assert linear.solved(natural, natural[:1]) == dict.fromkeys(natural[1:], Fraction(1, FEW)) | {0: 1}
