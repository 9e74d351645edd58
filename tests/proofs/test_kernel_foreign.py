"""Forgeries through objects of others: names, keys, sorts, numbers and terms that lie or change."""

import copy
import numbers
import pickle
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import pytest
import z3

from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.sorts import sort_of
from proofs.trusted.terms import (
    FALSE,
    TRUE,
    And,
    ArraySort,
    BoolSort,
    BoolVal,
    Const,
    DeclareSort,
    Distinct,
    EnumSort,
    Float64,
    FPBits,
    FPVal,
    Function,
    If,
    Int,
    IntSort,
    IntVal,
    Not,
    Or,
    RealSort,
    RealVal,
    Sort,
    Store,
    Sum,
    Symbol,
    Term,
    applied,
    is_term,
    symbol_of,
    term_of,
)
from spec.assumptions import DETERMINISM, EXPONENTIAL, LINEARITY

INT, REAL, BOOL, FLOAT = IntSort(), RealSort(), BoolSort(), Float64()
HALF = RealVal("1/2")
term_class: Any = Term
sort_class: Any = Sort
new: Any = tuple.__new__
refused = pytest.raises(KernelError)


def constants(k, names, sort):
    return [k.constant(name, sort) for name in names]


class Lying(str):
    """A text that is said to be another, to Python and in what is written."""

    said = "Int"

    def __eq__(self, other):
        return other == self.said

    def __hash__(self):
        return hash(self.said)

    def __format__(self, _):
        return "Int) (assert false"


class Everything:
    """Equal to all there is."""

    def __eq__(self, _):
        return True

    def __hash__(self):
        return 0


# ------------------------------------------------------------------ terms that look like others
def alike(term):
    return {
        "new": lambda: new(Term, tuple(FALSE)),
        "same": lambda: new(Term, tuple(term)),
        "fields": lambda: tuple(term),
        "none": lambda: None,
        "not implemented": lambda: NotImplemented,
        "true": lambda: True,
        "one": lambda: 1,
        "everything": Everything,
        "solver's": lambda: z3.BoolVal(False),
        "ellipsis": lambda: ...,
        "text": lambda: "false",
    }


@pytest.mark.parametrize("kind", alike(TRUE))
def test_what_looks_like_a_term_is_refused_by_every_rule(k, kind):
    x = k.integers("x")
    b = k.constant("b", BOOL)
    fake = alike(x <= 0)[kind]()
    assert not is_term(fake)
    theorem = k.prove("t", Or(b, Not(b), x < 0))
    attacks = [
        lambda: term_of(fake),
        lambda: k.prove("no", fake),
        lambda: k.prove("no", FALSE, given=[fake]),
        lambda: k.induct("no", x, fake),
        lambda: k.induct("no", fake, TRUE),
        lambda: k.define("f", [], fake),
        lambda: k.define("f", [fake], TRUE),
        lambda: k.recursion("f", [], x, fake, lambda _: fake),
        lambda: k.recursion("f", [], x, TRUE, lambda _: fake),
        lambda: k.choose("c", [], x, fake),
        lambda: k.suppose("h", [], fake),
        lambda: k.suppose("h", [fake], TRUE),
        lambda: k.refute("no", fake, [], lambda: False),
        lambda: k.extend("no", theorem, fake),
        lambda: theorem.at(b=fake),
        lambda: applied("not", (fake,)),
        lambda: applied("and", (b, fake)),
        lambda: Distinct(b, fake),
    ]
    for attack in attacks:
        with refused:
            attack()
    assert k.theorems == [theorem]


def test_a_look_alike_within_a_term_is_refused(k):
    x = k.integers("x")
    fake = new(Term, ("number", (), INT, 0))
    for made in (lambda: fake + x, lambda: x + fake, lambda: x == fake, lambda: -fake, lambda: fake[0]):
        with pytest.raises((KernelError, TypeError)):
            if made() is False:  # what Python says of things that cannot be compared
                raise TypeError
    for made in (lambda: If(x < 0, x, fake), lambda: Function("g", INT, INT)(fake), lambda: And(fake)):
        with refused:
            made()
    with pytest.raises((KernelError, TypeError)):
        Sum(x, fake)


@pytest.mark.parametrize("change", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_term_cannot_be_duplicated(change):
    with refused:
        change(Int("x") + 1)


def test_a_term_is_not_made_of_fields():
    term = Int("x") + 1
    for make in (lambda: term_class._make(tuple(term)), lambda: term._replace(op="-")):
        with pytest.raises((KernelError, TypeError)):
            term_of(make())


def test_a_term_is_neither_constructed_nor_derived():
    with refused:
        Term("bool", (), BOOL, False)
    with refused:
        type("Mine", (Term,), {})


@pytest.mark.parametrize("field", ["op", "args", "sort", "of", "anything"])
def test_a_term_has_no_settable_attribute(field):
    term = Int("x") + 1
    for put in (setattr, object.__setattr__):
        with pytest.raises(AttributeError):
            put(term, field, ())


def mutable(found):
    """Parts of a value that Python may change in place, wherever they are."""
    if isinstance(found, tuple):
        return [part for each in found for part in mutable(each)]
    return [] if type(found) in (str, int, bool, type(None)) else [found]


def test_nothing_within_a_term_can_be_changed():
    colour, (red, _) = EnumSort("Colour", ["Red", "Blue"])
    a, x = Const("a", ArraySort(INT, colour)), Int("x")
    terms = [HALF, RealVal(1), FPVal(0.5), TRUE, red, Store(a, x, red)[x * 2 + 1], Distinct([x, x, x])]
    assert not [part for term in terms for part in mutable(term)]
    listed: Any = [x, IntVal(1)]
    joined = [applied("+", listed), And(listed := [x < 1, x < 2]), Distinct([x, 1 + x, 2 + x])]
    listed.clear()
    assert not [part for term in joined for part in mutable(term)]
    assert joined[0] is x + 1


@contextmanager
def of_class(thing, kind):
    """Meanwhile it is of another class."""
    before = type(thing)
    object.__setattr__(thing, "__class__", kind)
    try:
        yield
    finally:
        object.__setattr__(thing, "__class__", before)


class TwoLines(tuple):
    """Reads as the number 2."""

    __slots__ = ()
    op, args, sort, of = "number", (), INT, 2

    def __iter__(self):
        return iter((self.op, self.args, self.sort, self.of))


@pytest.mark.parametrize("rule", ["prove", "instance", "induct", "define", "refute", "hypothesis"])
def test_a_term_whose_class_changes_is_refused_wherever_it_is(k, rule):
    x, y = k.integers("x y")
    seven = IntVal(7_000_007)
    c, equation = k.define("c", [], seven)
    theorem = k.prove("t", c() + y == seven + y, uses=[equation])
    goal = c() + x == x + seven
    attacks = {
        "prove": lambda: k.prove("no", c() == 2, uses=[equation]),
        "instance": lambda: k.prove("no", c() + 1 == 3, uses=[theorem.at(y=IntVal(1))]),
        "induct": lambda: k.induct("no", x, goal),
        "define": lambda: k.define("d", [x, y], goal),
        "refute": lambda: k.refute("no", goal, [x], lambda **_: False),
        "hypothesis": lambda: k.prove("no", FALSE, uses=[k.suppose("h", [], seven + y == y)]),
    }
    with of_class(seven, TwoLines), refused:
        attacks[rule]()


def test_a_symbol_whose_class_changes_is_refused():
    k = Kernel("changing")
    first, second = k.function("first_of_two", INT, INT), k.function("second_of_two", INT, INT)
    goal = first(0) == second(0)

    class Same(tuple):
        __slots__ = ()
        name, takes, gives = "second_of_two", (INT,), INT

        def __eq__(self, other):
            return True

        def __hash__(self):
            return hash(second)

    with of_class(first, Same), refused:
        k.prove("no", goal)


@pytest.mark.parametrize("within", [lambda sort: sort, lambda sort: ArraySort(INT, sort)])
def test_a_sort_whose_class_changes_has_no_instances_of_another(k, within):
    only, _ = EnumSort("OnlyOne", ["Single"])
    x, y = constants(k, "xy", within(only))
    theorem, known = k.prove("same", x == y), hash(only)

    class Any(Sort):
        __slots__ = ()
        kind, name, parts = "Int", "", ()

        def __eq__(self, _):
            return True

        def __ne__(self, _):
            return False

        def __hash__(self):
            return known

    inner = [v.sort if v.sort.kind == "Values" else v.sort.parts[1] for v in (x, y)]
    with of_class(inner[0], Any), of_class(inner[1], Any), refused:
        k.prove("no", FALSE, uses=[theorem.at(x=IntVal(1), y=IntVal(2))])


def test_an_equation_whose_class_changes_does_not_extend(k):
    a, b = constants(k, "ab", ArraySort(INT, INT))
    x = k.integers("x")
    here = Store(a, 0, a[0])[x]
    same = k.prove("same", here == a[x])

    class Other(tuple):
        __slots__ = ()
        op, args, sort, of = "select", (b, x), INT, None

    with of_class(here, Other), refused:
        k.extend("no", same, x)


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


# ------------------------------------------------------------------ symbols
def test_a_symbol_made_by_hand_is_none(k):
    x = k.integers("x")
    f = k.function("f", INT, INT)
    fakes: list[Any] = [
        Symbol("f", (INT,), INT),
        Symbol(*f),
        f._replace(name="g"),
        tuple(f),
        Everything(),
    ]
    for fake in fakes:
        assert fake is not f
        with refused:
            symbol_of(fake)
        with refused:
            k.axiom("no", DETERMINISM, fake, f, x)
        with pytest.raises((KernelError, TypeError)):
            k.prove("no", fake(x) == fake(x))


def test_a_symbol_of_another_kernel_is_the_same_only_if_it_is_declared_alike(k):
    other = Kernel("other")
    f, x = other.function("f", INT, INT), other.integers("x")
    with pytest.raises(KernelError, match="not declared"):
        k.prove("no", f(0) == f(0))
    k.function("f", INT, REAL)
    with pytest.raises(KernelError, match="not declared"):
        k.prove("no", f(0) == f(0))
    with refused:
        k.define("g", [x], x)


def test_an_axiom_is_not_about_an_object_that_calls_itself_a_function(k):
    d, x = k.integers("d x")
    here, other = k.function("here", INT, INT, INT), k.function("other", INT, INT)

    class Masked(Symbol):
        def __call__(self, *_):
            return here(d, x) + 1

    for given in ((here, Masked(*other)), (Masked(*here), other), (here, lambda _: here(d, x) + 1)):
        with refused:
            k.axiom("no", DETERMINISM, *given, d, x)


@pytest.mark.parametrize(("result", "value"), [(INT, HALF), (BOOL, IntVal(5))], ids=["half", "five"])
def test_an_axiom_does_not_equate_values_of_two_sorts(k, result, value):
    d, x, y = k.integers("d x y")
    here, rows = k.function("here", INT, INT, result), k.function("rows", INT, INT)
    there = k.function("there", INT, INT, ArraySort(INT, result))
    one, _ = k.define("one", [x], value)
    four, _ = k.define("four", [d, x, y, k.integers("z")], value)
    with refused:
        k.axiom("a", DETERMINISM, here, one, d, x)
    with refused:
        k.axiom("b", LINEARITY, there, four, rows, d, x, y)


def test_an_axiom_does_not_convert_its_arguments(k):
    a, b = constants(k, "ab", BOOL)
    with refused:
        k.axiom("no", EXPONENTIAL, k.function("power", INT, INT), a, b)
    m, n = k.integers("m n")
    with refused:
        k.axiom("nor", EXPONENTIAL, k.function("root", REAL, REAL), m, n)


# ------------------------------------------------------------------ names and keys
class Unequal(str):
    def __hash__(self):
        return 12345

    def __eq__(self, other):
        return False


def test_a_name_that_denies_to_be_itself_is_refused(k):
    _, zero = k.define("c", [], IntVal(0))
    with refused:
        _, one = k.define(Unequal("c"), [], IntVal(1))
        k.prove("no", FALSE, uses=[zero, one])
    with refused:
        k.choose(Unequal("c"), [], k.integers("x"), TRUE)


def test_a_key_that_hides_does_not_hide_the_index(k):
    class Late(str):
        asked = 0

        def __hash__(self):
            Late.asked += 1
            return 1 if Late.asked == 1 else str.__hash__(self)

        def __eq__(self, other):
            return str.__eq__(self, other)

    n = k.integers("n")
    with refused:
        k.induct("no", n, n == 0, at=[{Late("n"): n + 1}])
    theorem = k.prove("t", n == n)
    with refused:
        k._instance(theorem, {Late("n"): n + 1})


def test_the_terms_of_an_instance_are_read_once(k):
    n = k.integers("n")
    theorem = k.prove("t", n <= 5, given=[n < 5])

    class Changing(dict):
        reads = 0

        def keys(self):
            self.reads += 1
            return ["n"]

        def __getitem__(self, _):
            return 0 if self.reads <= 1 else 9

        def items(self):
            return [("n", self["n"])]

        def __iter__(self):
            return iter(self.keys())

    with refused:
        k.prove("no", FALSE, uses=[k._instance(theorem, Changing(n=1))])


def test_a_hypothesis_is_not_mistaken_for_another(k):
    class Same(str):
        lies = False

        def __hash__(self):
            return hash("harmless")

        def __eq__(self, other):
            return Same.lies

    harmless = k.suppose("harmless", [], TRUE)
    with refused:
        false = k.suppose(Same("false"), [], FALSE)
        Same.lies = True
        assert k.prove("no", FALSE, uses=[harmless, false]).hypotheses != {"harmless"}


@pytest.mark.parametrize(
    "name", ["acos", "atan2", "ln", "log", "sinh", "rem", "implies", "iff", "union", "bvadd", "seq"]
)
@pytest.mark.parametrize(
    "sorts",
    [(REAL, REAL), (INT, INT), (BOOL, INT), (REAL, REAL, REAL), (INT, INT, REAL), (BOOL, BOOL, INT)],
    ids=str,
)
def test_a_symbol_is_never_read_as_an_operator_of_the_solver(k, name, sorts):
    try:
        f = k.function(name, *sorts)
    except KernelError:
        return
    arguments = [k.constant(f"x{i}", sort) for i, sort in enumerate(sorts[:-1])]
    theorem = k.prove("t", f(*arguments) == f(*arguments))
    (text,) = (asked.text for asked in theorem.obligations)
    (negated,) = z3.parse_smt2_string(text)
    assert negated.arg(0).arg(0).decl().kind() == z3.Z3_OP_UNINTERPRETED


# ------------------------------------------------------------------ what is called meanwhile
@pytest.mark.parametrize(("base", "value"), [(IntVal(0), HALF), (TRUE, IntVal(5))])
def test_the_step_of_a_recursion_is_of_the_sort_of_its_base(k, base, value):
    n = k.integers("n")
    with refused:
        k.recursion("f", [], n, base, lambda _: value)


class Shifty:
    """An index that comes after itself, and that is never negative."""

    def __add__(self, _):
        return IntVal(0)

    def __ge__(self, _):
        return TRUE


@pytest.mark.parametrize("other", [Shifty(), IntVal(-1), Everything(), Function("g", INT, INT)])
@pytest.mark.parametrize("kind", [Symbol, Term])
def test_the_step_of_a_recursion_does_not_reach_what_it_is_given(k, kind, other):
    n = k.integers("n")

    def step(previous):
        for cell in previous.__closure__:
            if isinstance(cell.cell_contents, kind):
                cell.cell_contents = other
        return IntVal(1)

    f, start, following = k.recursion("f", [], n, IntVal(0), step)
    assert following.goal is (f(n + 1) == IntVal(1))
    assert start.goal is (f(0) == 0)
    with refused:
        k.prove("no", FALSE, uses=[start, following.at(n=0)])


MEANWHILE = {
    "function": lambda k, n: k.function("f", INT, INT),
    "define": lambda k, n: k.define("f", [n], IntVal(5)),
    "recursion": lambda k, n: k.recursion("f", [], n, IntVal(1), lambda _: IntVal(2)),
    "choose": lambda k, n: k.choose("f", [], n, n == 5),
}


@pytest.mark.parametrize("rule", MEANWHILE)
def test_the_step_of_a_recursion_does_not_declare_its_function_meanwhile(k, rule):
    n = k.integers("n")

    def step(previous):
        MEANWHILE[rule](k, n)
        return previous() + 1

    with refused:
        k.recursion("f", [], n, IntVal(0), step)
    with refused:
        k.prove("no", FALSE, uses=k.theorems)


def test_the_step_of_a_recursion_does_not_make_an_axiom_of_what_it_uses(k):
    d, n = k.integers("d n")
    here = k.function("here", INT, INT, INT)

    def step(previous):
        return previous() + here(0, n)

    f, _, _ = k.recursion("f", [], n, IntVal(0), step)
    with refused:
        k.axiom("no", DETERMINISM, here, f, d, n)


def test_what_a_replay_makes_meanwhile_is_no_counterexample(k):
    x = k.integers("x")

    def replay(x):
        k.prove("r", Int("x") == Int("x"))
        return False

    with pytest.raises(KernelError, match="already"):
        k.refute("r", x == 0, [x], replay)
    assert [t.rule for t in k.theorems] == ["smt"]


@pytest.mark.parametrize("sort", [REAL, BOOL])
def test_a_recursion_is_over_the_integers(k, sort):
    with refused:
        k.recursion("f", [], k.constant("x", sort), IntVal(0), lambda _: IntVal(1))


def test_a_list_is_what_it_gives_when_it_is_read(k):
    class Empty(list):
        def __iter__(self):
            return iter([])

    with refused:
        k.prove("no", FALSE, uses=Empty([k.suppose("h", [], FALSE)]))


def test_the_variables_of_a_hypothesis_are_read_once(k):
    x, y = k.integers("x y")

    class Changing(list):
        reads = 0

        def __iter__(self):
            self.reads += 1
            return iter([x] if self.reads == 1 else [x, y])

    said = k.suppose("h", Changing([x]), x <= y)
    with pytest.raises(KernelError, match="fixed by the hypothesis"):
        said.at(y=0)


# ------------------------------------------------------------------ the kernel itself
def test_a_kernel_is_not_started_over(k):
    _, zero = k.define("c", [], IntVal(0))
    with refused:
        k.__init__("again")
        _, one = k.define("c", [], IntVal(1))
        k.prove("no", FALSE, uses=[zero, one])
    with refused:
        k.theorems = []
    assert k.part("p").theorems is k.theorems
    assert isinstance(k, Kernel)


def test_a_copy_of_a_kernel_does_not_own_its_theorems(k):
    c, zero = k.define("c", [], IntVal(0))
    twin = copy.copy(k)
    with refused:
        twin.prove("no", c() == 0, uses=[zero])
    with refused:
        copy.deepcopy(k)
