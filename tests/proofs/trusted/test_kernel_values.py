"""Forgeries through operators, numbers, bits and sorts that are not what they say."""

import numbers
from fractions import Fraction
from typing import Any

import pytest
import z3

from proofs.trusted.kernel import KernelError
from proofs.trusted.sorts import sort_of
from proofs.trusted.terms import (
    TRUE,
    ArraySort,
    BoolSort,
    BoolVal,
    DeclareSort,
    Distinct,
    EnumSort,
    Float64,
    FPBits,
    FPVal,
    If,
    IntSort,
    IntVal,
    Or,
    RealSort,
    RealVal,
    Sort,
    Term,
    applied,
)
from tests.support.lies import Everything, Lying, constants, mutable

INT, REAL, BOOL, FLOAT = IntSort(), RealSort(), BoolSort(), Float64()
HALF = RealVal("1/2")
term_class: Any = Term
sort_class: Any = Sort
new: Any = tuple.__new__
refused = pytest.raises(KernelError)


# ------------------------------------------------------------------ operators, numbers, bits
INJECTED = "+ 0 0) 0)))(assert false)(assert (not (<= (+"


@pytest.mark.parametrize(
    "op", [INJECTED, "apply", "select", "number", "bool", "value", "abs", "", None, 0]
)
def test_an_operator_is_one_of_those_that_there_are(k, op):
    x, y = k.integers("x y")
    for args in ((x, y), (x,), ()):
        with refused:
            k.prove("no", applied(op, args) <= x)


def test_an_operator_that_is_written_otherwise_is_refused(k):
    class Plus(Lying):
        said = "+"

    x, y = k.integers("x y")
    with refused:
        applied(Plus(INJECTED), (x, y))
    assert type((x + y).op) is str


class Fickle(numbers.Rational):
    """A number that may be a different one whenever it is read."""

    def __init__(self, numerator, denominator=1):
        self.parts = numerator, denominator

    numerator = property(lambda self: self.parts[0])
    denominator = property(lambda self: self.parts[1])


Ratio: Any = type("Ratio", (Fickle,), dict.fromkeys(Fickle.__abstractmethods__, lambda *_: 0))


class Digits(int):
    def __abs__(self):
        return Lying("0.0) (assert false")

    def __str__(self):
        return "5"

    __repr__ = __str__


def test_a_number_is_a_plain_number_whatever_it_was_made_of(k):
    changing = Ratio(1, 3)
    third = RealVal(changing)
    c, equation = k.define("c", [], third)
    assert k.prove("third", c() * 3 == 1, uses=[equation])
    changing.parts = 2, 3
    with refused:
        k.prove("no", c() * 3 == 2, uses=[equation])
    assert RealVal(Ratio(2, 4)) is HALF
    assert RealVal(Ratio(-1, -2)) is HALF
    assert RealVal(Ratio(Digits(1), Digits(2))) is HALF
    assert str(RealVal(Digits(3))) == str(IntVal(Digits(3))) == "3"


def test_the_fraction_that_a_number_was_made_of_changes_nothing():
    given: Any = Fraction(1, 3)
    third = RealVal(given)
    given._numerator = 2
    assert third is RealVal(Fraction(1, 3))
    assert third is not RealVal(Fraction(2, 3))


def test_numbers_of_two_kinds_are_two_terms():
    ones = [IntVal(1), RealVal(1), TRUE, FPBits(1), FPVal(1.0)]
    assert len({*map(id, ones)}) == len(ones)
    assert IntVal(True) is IntVal(1.0) is IntVal(Fraction(1)) is IntVal("1") is ones[0]
    assert RealVal(True) is RealVal(1.0) is RealVal(Fraction(1)) is RealVal("1") is ones[1]
    for made, kind in (
        (IntVal(True), int),
        (RealVal(1), str),
        (BoolVal(3 > 2), bool),
        (FPBits(1), int),
    ):
        assert type(made.of) is kind


@pytest.mark.parametrize("bits", [-1, 2**64, True, 1.0, "1", None, Digits(1), Fraction(1)])
def test_bits_are_a_plain_number_of_64_bits(bits):
    with refused:
        FPBits(bits)


def test_no_number_of_binary64_equals_itself_if_it_is_none(k):
    none, other = FPBits(0x7FF8000000000000), FPBits(0x7FF8000000000001)
    f = k.constant("f", FLOAT)
    assert k.prove("same", Or(none == other, f != f))  # SMT-LIB has one of them
    with refused:
        k.prove("no", none != other)


class Number(int):
    def __str__(self):
        return "1/2"


@pytest.mark.parametrize("number", [Number(0), True, 0.5, "0", None, Ratio(0)])
def test_a_number_in_place_of_a_variable_is_a_plain_integer(k, number):
    n, m = k.integers("n m")
    theorem = k.prove("t", Or(n <= m, m <= n))
    with refused:
        theorem.at(n=number)


# ------------------------------------------------------------------ sorts
@pytest.mark.parametrize("sort", [int, "Int", [INT, INT], None, IntVal(0), z3.IntSort(), tuple(INT)])
@pytest.mark.parametrize("within", [lambda s: s, lambda s: Sort("Array", "", (INT, s))])
def test_a_sort_is_a_sort_of_obligations(k, sort, within):
    for declare in (k.constant, k.fixed, lambda name, given: k.function(name, INT, given)):
        with refused:
            declare("x", within(sort))


@pytest.mark.parametrize(
    "sort",
    [
        Sort("Zork"),
        Sort("Int) (assert false"),
        Sort("Sort", "Two words"),
        Sort("Sort", "Name", ("First",)),
        Sort("Array", "", (INT,)),
        sort_class("Array", "", [INT, INT]),
        sort_class("Values", "Name", ["First"]),
        Sort("Values", "Name", ()),
        Sort("Values", "Name", ("First", "First")),
        Sort(Lying("Int")),
        sort_class(Everything()),
        Sort("Sort", Lying("Name")),
    ],
)
def test_a_sort_made_by_hand_is_refused_unless_it_is_plain(k, sort):
    with refused:
        k.prove("no", k.constant("of_no_sort", sort) != 0)
    with refused:
        k.constant("y", ArraySort(INT, sort))


def test_a_sort_made_by_hand_is_the_sort_it_says():
    class Mine(Sort):
        pass

    with refused:
        sort_of(Mine("Int"))
    found = sort_of(sort_class("Int", Lying("Int"), Everything()))
    assert found is INT
    nested = sort_of(Sort("Array", Lying("A"), (Sort("Int"), Sort("Sort", "Thing", ()))))
    assert mutable(nested) == []
    assert nested == ArraySort(INT, DeclareSort("Thing"))


def some_two_are_equal(k, x, y, z):
    return k.prove("two", Or(x == y, y == z, x == z))


def test_enumerations_of_one_name_and_other_values_are_two_sorts(k):
    two, _ = EnumSort("Pig", ["First", "Second"])
    theorem = some_two_are_equal(k, *constants(k, "xyz", two))
    three, values = EnumSort("Pig", ["First", "Second", "Third"])
    assert two != three
    with refused:
        theorem.at(**dict(zip("xyz", values, strict=True)))
    with refused:
        Distinct(k.constant("w", three), k.constant("v", two))


def test_the_values_given_for_an_enumeration_are_read_once(k):
    listed = ["First", "Second"]
    sort, _ = EnumSort("Boar", listed)
    theorem = some_two_are_equal(k, *constants(k, "xyz", sort))
    listed.append("Third")
    assert k.prove("again", theorem.goal, uses=[theorem])
    assert sort.parts == ("First", "Second")


@pytest.mark.parametrize("value", ["lower", "Two words", "A?x1", "B) (C", "", "RNE", Lying("Plain")])
def test_the_values_of_an_enumeration_have_plain_names(value):
    with refused:
        EnumSort("Named", ["Plain", value])


def test_the_values_of_an_enumeration_are_different():
    with refused:
        EnumSort("Twice", ["Same", "Same"])
    with refused:
        EnumSort("Never", [])


def test_the_values_of_two_enumerations_are_not_compared(k):
    _, (one, _) = EnumSort("Sow", ["First", "Second"])
    _, (other, _) = EnumSort("Hog", ["First", "Second"])
    with refused:
        Distinct(one, other)
    with refused:
        If(TRUE, one, other)
