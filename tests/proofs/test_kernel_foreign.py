"""Forgeries through objects of others: names, keys, sorts, functions and terms that lie or change."""

import pytest
import z3

from proofs.trusted import smtlib
from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.terms import (
    And,
    ArraySort,
    BoolSort,
    BoolVal,
    DeclareSort,
    Function,
    Int,
    IntSort,
    IntVal,
    Or,
    RealSort,
    RealVal,
    Sort,
    Symbol,
    Term,
)
from spec.assumptions import DETERMINISM, EXPONENTIAL, LINEARITY

INT, REAL, BOOL = IntSort(), RealSort(), BoolSort()
TRUE, FALSE = BoolVal(True), BoolVal(False)
HALF = RealVal("1/2")
refused = pytest.raises(KernelError)


def enumeration(name, *values):
    made = z3.Datatype(name)
    for value in values:
        made.declare(value)
    return made.create()


def constants(k, names, sort):
    return [k.constant(name, sort) for name in names]


def some_two_are_equal(k, x, y, z):
    return k.prove("two", Or(x == y, y == z, x == z))


# ------------------------------------------------------------------ enumerations declared again
def test_values_that_are_declared_later_are_no_instances(k):
    sort = enumeration("Pig", "First", "Second")
    theorem = some_two_are_equal(k, *constants(k, "xyz", sort))
    sort = enumeration("Pig", "First", "Second", "Third")
    with refused:
        k.prove("no", FALSE, uses=[theorem.at(x=sort.First, y=sort.Second, z=sort.Third)])


def test_values_that_are_declared_no_more_are_no_instances(k):
    sort = enumeration("Boar", "First", "Second", "Third")
    values = sort.First, sort.Second, sort.Third
    x, y, z = constants(k, "xyz", sort)
    k.prove("known", And(x == x, y == y, z == z, sort.First == sort.First))
    enumeration("Boar", "First", "Second")
    with refused:
        theorem = some_two_are_equal(k, x, y, z)
        enumeration("Boar", "First", "Second", "Third")
        k.prove("no", FALSE, uses=[theorem.at(**dict(zip("xyz", values, strict=True)))])


def test_a_value_that_is_declared_no_more_is_not_read_as_one_of_another_enumeration(k):
    old = enumeration("Former", "Third", "Fourth", "Fifth")
    values = old.Third, old.Fourth, old.Fifth
    theorem = some_two_are_equal(k, *constants(k, "xyz", enumeration("Former", "First", "Second")))
    w = k.constant("w", enumeration("Latter", "Third", "Fourth", "Fifth"))
    with refused:
        instance = theorem.at(**dict(zip("xyz", values, strict=True)))
        k.prove("no", And(FALSE, w == w), uses=[instance])


ARRAYS = {
    "values": lambda unit: ArraySort(unit, BOOL),
    "tables": lambda unit: ArraySort(unit, unit, BOOL),
    "arrays": lambda unit: ArraySort(unit, ArraySort(unit, BOOL)),
    "later": lambda unit: ArraySort(unit, ArraySort(BOOL, unit)),
}


@pytest.mark.parametrize("shape", ARRAYS)
def test_an_enumeration_within_an_array_is_not_declared_again(k, shape):
    name = f"Unit{shape.title()}"
    a = k.constant("a", ARRAYS[shape](enumeration(name, "Only")))
    k.prove("known", a == a)
    enumeration(name, "Only", "Second")
    with refused:
        k.prove("again", a == a)


def test_an_enumeration_that_a_function_takes_is_not_declared_again(k):
    f = k.function("f", INT, enumeration("Taken", "Only"))
    k.prove("same", f(0) == f(1))
    enumeration("Taken", "Only", "Second")
    with refused:
        k.prove("no", f(0) == f(0))


def test_a_datatype_with_fields_is_refused(k):
    box = z3.Datatype("Boxed")
    box.declare("Mk", ("inside", enumeration("Inside", "One")))
    x, y = constants(k, "xy", box.create())
    with refused:
        k.prove("no", x == y)


@pytest.mark.parametrize("value", ["RNE", "lower", "Two words", "A?x1", "B) (C"])
def test_the_values_of_an_enumeration_have_plain_names_even_where_none_occurs(k, value):
    x = k.constant("x", enumeration(f"Named{len(value)}", "Plain", value))
    with refused:
        k.prove("no", x == x)


@pytest.mark.parametrize(
    "sort",
    [z3.SeqSort(INT), z3.DeclareTypeVar("Any"), z3.FiniteDomainSort("Int", 2), z3.BitVecSort(1)],
    ids=str,
)
@pytest.mark.parametrize("within", [lambda s: s, lambda s: ArraySort(INT, s)], ids=["itself", "array"])
def test_only_the_sorts_of_obligations_occur_in_them(k, sort, within):
    with refused:
        x = k.constant("x", within(sort))
        k.prove("no", x == x)


def test_an_instance_says_nothing_that_no_obligation_may_say(k):
    b, n = k.constant("b", BOOL), k.integers("n")
    theorem = k.prove("t", b == b)
    with refused:
        theorem.at(b=z3.ForAll([n], n == n))


# ------------------------------------------------------------------ names
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
    "name", ["acos", "atan2", "ln", "log", "sinh", "rem", "implies", "iff", "union"]
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
    assert negated.arg(0).arg(0).decl().eq(f)


# ------------------------------------------------------------------ sorts and functions
def test_a_sort_that_declares_its_own_symbol_meanwhile_is_refused(k):
    equations = []

    class Busy(z3.ArithSortRef):
        armed = False

        def __getattribute__(self, name):
            if name == "ctx" and Busy.armed:
                Busy.armed = False
                equations.append(k.define("c", [], IntVal(0))[1])
            return super().__getattribute__(name)

    sort = Busy(INT.ast)
    Busy.armed = True
    with refused:
        k.constant("c", sort)
        k.prove("no", FALSE, uses=[equations[0].at(c=1)])


@pytest.mark.parametrize("sort", [int, "Int", [INT, INT], IntVal(0), IntSort(z3.Context())])
def test_a_sort_is_a_sort_of_this_context(k, sort):
    with refused:
        k.constant("x", sort)
    with refused:
        k.fixed("x", sort)
    with refused:
        k.function("x", INT, sort)


def test_a_function_given_out_is_not_the_one_that_is_kept(k):
    f, _ = k.define("f", [], IntVal(0))
    other = Function("f", BOOL, INT)
    f.ast = other.ast
    with refused:
        k.define("g", [], other(TRUE))
    f.ast = None


def test_an_axiom_is_about_the_functions_of_the_kernel_and_not_what_they_answer(k):
    d, x = k.integers("d x")
    here = k.function("here", INT, INT, INT)
    anywhere = k.function("anywhere", INT, INT)

    class Lying(Symbol):
        def __call__(self, *_):
            return here(d, x) + 1

    axiom = k.axiom("a", DETERMINISM, here, Lying(anywhere.ast, anywhere.ctx), d, x)
    assert axiom.goal.eq(here(d, x) == anywhere(x))
    with refused:
        k.prove("no", FALSE, uses=[axiom])


def test_an_axiom_is_not_about_a_function_that_calls_itself_another(k):
    d, x = k.integers("d x")
    here = k.function("here", INT, INT, INT)
    k.function("other", INT, INT)

    class Masked(Symbol):
        def name(self):
            return "other"

        def eq(self, _):
            return True

        def __eq__(self, _):
            return False

        def __hash__(self):
            return 0

    with refused:
        k.axiom("no", DETERMINISM, here, Masked(here.ast, here.ctx), d, x)


@pytest.mark.parametrize(("result", "value"), [(INT, HALF), (BOOL, IntVal(5))], ids=["half", "five"])
def test_an_axiom_does_not_equate_values_of_two_sorts(k, result, value):
    d, x, y = k.integers("d x y")
    here, rows = k.function("here", INT, INT, result), k.function("rows", INT, INT)
    there = k.function("there", INT, INT, ArraySort(INT, result))
    one, _ = k.define("one", [x], value)
    four, _ = k.define("four", [d, x, y, k.integers("z")], value)
    with refused:
        k.prove("no", FALSE, uses=[k.axiom("a", DETERMINISM, here, one, d, x), *k.theorems])
    with refused:
        k.prove("no", FALSE, uses=[k.axiom("b", LINEARITY, there, four, rows, d, x, y), *k.theorems])


def test_an_axiom_does_not_convert_its_arguments(k):
    a, b = constants(k, "ab", BOOL)
    with refused:
        k.axiom("no", EXPONENTIAL, k.function("power", INT, INT), a, b)


# ------------------------------------------------------------------ terms
@pytest.mark.parametrize("reach", ["goal", "obligation", "argument", "parameter"])
def test_reassigning_the_address_within_a_term_changes_no_theorem(k, reach):
    x = k.integers("x")
    goal = x <= 5
    t = k.prove("t", goal, given=[x < 5])
    terms = {"goal": t.goal, "obligation": t.obligations[0].goal, "argument": goal, "parameter": x}
    address = terms[reach].ast.value
    terms[reach].ast.value = FALSE.ast.value if reach != "parameter" else IntVal(0).ast.value
    try:
        with refused:
            k.prove("no", FALSE, uses=[t.at(x=0)])
    finally:  # with the solver's reference counts kept right
        terms[reach].ast.value = address


@pytest.mark.parametrize(("base", "value"), [(IntVal(0), HALF), (TRUE, IntVal(5))])
def test_the_step_of_a_recursion_is_of_the_sort_of_its_base(k, base, value):
    n = k.integers("n")
    with refused:
        _, _, following = k.recursion("f", [], n, base, lambda _: value)
        k.prove("no", FALSE, uses=[following.at(n=0)])


@pytest.mark.parametrize("kind", [Symbol, z3.ArithRef])
def test_the_step_of_a_recursion_does_not_reach_what_it_is_given(k, kind):
    n = k.integers("n")
    g, equation = k.define("g", [n], IntVal(1))
    other = {Symbol: g, z3.ArithRef: IntVal(-1)}[kind]

    def step(previous):
        for cell in previous.__closure__:
            if isinstance(cell.cell_contents, kind):
                cell.cell_contents = other
        return IntVal(0)

    f, start, following = k.recursion("f", [], n, IntVal(0), step)
    assert following.goal.eq(f(n + 1) == IntVal(0))
    with refused:
        k.prove("no", FALSE, uses=[start, following.at(n=0), equation.at(n=0), equation.at(n=1)])


@pytest.mark.parametrize("sort", [REAL, BOOL])
def test_a_recursion_is_over_the_integers(k, sort):
    with refused:
        k.recursion("f", [], k.constant("x", sort), IntVal(0), lambda _: IntVal(1))


class Number(int):
    def __str__(self):
        return "1/2"


@pytest.mark.parametrize("number", [Number(0), True, 0.5, "0", None])
def test_a_number_in_place_of_a_variable_is_a_plain_integer(k, number):
    theorem = k.prove("t", Or(k.integers("n") <= 0, k.integers("m") >= 1, True))
    with refused:
        theorem.at(n=number)


def test_a_term_of_another_context_is_not_read_as_one_of_this(k):
    n = k.integers("n")
    other = z3.Context()
    f = Function("f", IntSort(other), IntSort(other))
    body = f(Int("n", other)) + 1
    body.ctx = z3.main_ctx()
    try:
        with refused:
            _, equation = k.define("f", [n], body)
            k.prove("no", FALSE, uses=[equation])
    finally:
        body.ctx = other


def of_another(context):
    """Terms, functions and sorts of every kind, of that context."""
    sort, real = IntSort(context), RealSort(context)
    f, n = Function("f", sort, sort), Int("n", context)
    made = z3.Datatype("Elsewhere", context)
    made.declare("Only")
    terms = [
        n,
        f(n) + 1,
        IntVal(5, context),
        BoolVal(True, context),
        And(n > 0, n < 2, n != 1),
    ]
    sorts = [sort, real, BoolSort(context), z3.FPSort(5, 11, context), ArraySort(sort, real)]
    return [*terms, f, *sorts, DeclareSort("Ours", context), made.create()]


@pytest.mark.parametrize("number", range(len(of_another(z3.Context()))))
def test_what_is_of_another_context_is_refused_whatever_it_says_and_not_remembered(number):
    other = z3.Context()
    kept = of_another(other)
    given = kept[number]
    kind = next(k for k in (Term, Symbol, Sort) if isinstance(given, k))
    given.ctx = z3.main_ctx()
    try:
        with pytest.raises(KernelError, match="of this context"):
            smtlib.own(given, kind)
    finally:
        given.ctx = other
    for known in (smtlib._summaries, smtlib._free, smtlib._theories_of):
        assert given.ast.value not in known


@pytest.mark.parametrize("number", range(len(of_another(z3.Context()))))
def test_what_is_of_this_context_is_taken(number):
    given = of_another(z3.main_ctx())[number]
    kind = next(k for k in (Term, Symbol, Sort) if isinstance(given, k))
    assert smtlib.own(given, kind).eq(given)


def test_a_list_is_what_it_gives_when_it_is_read(k):
    class Empty(list):
        def __iter__(self):
            return iter([])

    with refused:
        k.prove("no", FALSE, uses=Empty([k.suppose("h", [], FALSE)]))


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
