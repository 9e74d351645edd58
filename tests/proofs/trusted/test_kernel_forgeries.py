"""Forgeries that go through terms, names and containers rather than through theorems."""

import pytest

from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.terms import (
    ArraySort,
    BoolSort,
    BoolVal,
    DeclareSort,
    EnumSort,
    IntSort,
    IntVal,
    Real,
    RealSort,
    Store,
)
from spec.assumptions import DETERMINISM

INT, REAL, BOOL, FALSE = IntSort(), RealSort(), BoolSort(), BoolVal(False)


def false_is_not_provable(k, *facts):
    with pytest.raises(KernelError):
        k.prove("no", FALSE, uses=facts)


def test_an_instance_of_a_counterexample_is_not_a_fact(k):
    x = k.integers("x")
    found = k.refute("r", x == 0, [x], lambda x: x == 0)
    with pytest.raises(KernelError):
        k.prove("no", FALSE, uses=[found.at(x=0)])


def test_the_step_of_a_recursion_does_not_define_its_way_round(k):
    n, m = k.integers("n m")
    equations = []

    def step(previous):
        f = previous().of
        g, equation = k.define("g", [m], f(m + 1))
        equations.append(equation)
        return g(n) + 1

    with pytest.raises(KernelError):
        _, _, following = k.recursion("f", [], n, IntVal(0), step)
        k.prove("no", FALSE, uses=[following.at(n=0), equations[0].at(m=0)])


def test_the_step_of_a_recursion_does_not_change_its_parameters(k):
    n, x, y = k.integers("n x y")
    params = [x]

    def step(previous):
        params[0] = y
        return IntVal(0)

    with pytest.raises(KernelError):
        _, start, _ = k.recursion("f", params, n, x, step)
        k.prove("no", FALSE, uses=[start.at(x=0), start.at(x=1)])


def test_a_witness_of_the_name_and_not_the_sort_of_a_variable_is_refused(k):
    x = k.integers("x")
    with pytest.raises(KernelError):
        _, _, shown, found = k.choose("h", [], Real("x"), x == 0)
        k.prove("no", FALSE, uses=[shown.at(x=0), found.at(x=1)])


def test_a_value_with_the_name_of_a_variable_is_no_parameter(k):
    with pytest.raises(KernelError):
        x = k.constant("true", BOOL)
        _, equation = k.define("f", [BoolVal(True)], x)
        k.prove("no", FALSE, uses=[equation.at(true=FALSE), equation.at(true=BoolVal(True))])


def test_a_value_of_an_enumeration_is_no_parameter(k):
    colour, (red, _) = EnumSort("Colour", ["Red", "Blue"])
    k.constant("red", colour)
    with pytest.raises(KernelError, match="not a variable"):
        k.define("f", [red], red)


def test_a_value_of_an_enumeration_is_no_index(k):
    colour, (green, grey) = EnumSort("Paint", ["Green", "Grey"])
    k.constant("green", colour)
    a, x = k.constant("a", ArraySort(colour, INT)), k.integers("x")
    here = k.prove("here", a[green] == Store(a, grey, x)[green])
    with pytest.raises(KernelError, match="not a variable"):
        k.extend("equal", here, green)


def test_agreement_in_one_column_does_not_make_tables_equal(k):
    a, (i, v) = k.constant("a", ArraySort(INT, ArraySort(INT, INT))), k.integers("i v")
    changed = Store(a, 0, Store(a[0], 1, v))
    column = k.prove("column", a[i][0] == changed[i][0])
    with pytest.raises(KernelError, match="not an equation"):
        k.extend("equal", column, i)


def test_a_mapping_that_hides_its_keys_does_not_hide_the_index(k):
    class Hiding(dict):
        def __contains__(self, key):
            return False

    n = k.integers("n")
    with pytest.raises(KernelError):
        k.induct("no", n, n == 0, at=[Hiding(n=n + 1)])


def test_a_sequence_that_changes_between_readings_is_read_once(k):
    x, y = k.integers("x y")

    class Changing(list):
        reads = 0

        def __iter__(self):
            self.reads += 1
            return iter([x] if self.reads <= 2 else [y])

    try:
        _, equation = k.define("f", Changing(), x)
    except KernelError:
        return
    false_is_not_provable(k, equation.at(x=0), equation.at(x=1))


def test_a_defined_constant_has_no_counterexample(k):
    c, equation = k.define("c", [], IntVal(5))
    k.prove("five", c() == 5, uses=[equation])
    with pytest.raises(KernelError):
        k.refute("no", c() == 5, [c()], lambda **v: v["c"] == 5)


def test_a_function_application_is_no_unknown_of_a_counterexample(k):
    x = k.integers("x")
    f, _ = k.define("f", [x], IntVal(5))
    with pytest.raises(KernelError):
        k.refute("no", f(x) == 5, [f(x)], lambda **v: v["f(x)"] == 5)


def test_the_names_of_a_kernel_are_its_own():
    variables = set()
    try:
        k = Kernel("attack", [], {}, variables)  # type: ignore[call-arg]
    except TypeError:
        return
    _, equation = k.define("c", [], IntVal(5))
    variables.add("c")
    with pytest.raises(KernelError):
        k.prove("no", FALSE, uses=[equation.at(c=6)])


def test_an_axiom_is_not_about_a_function_that_a_definition_speaks_of(k):
    d, x = k.integers("d x")
    f = k.function("f", INT, INT, INT)
    g, _ = k.define("g", [x], f(0, x) + 1)
    with pytest.raises(KernelError):
        k.axiom("no", DETERMINISM, f, g, d, x)


def test_an_axiom_is_not_about_a_function_that_a_recursion_or_a_choice_speaks_of(k):
    d, x, n = k.integers("d x n")
    f, h = k.function("f", INT, INT, INT), k.function("h", INT, INT, INT)
    g, _, _ = k.recursion("g", [x], n, IntVal(0), lambda before: f(0, x) + before(x))
    _, found, _, _ = k.choose("some", [x], n, h(0, x) + 1 == n)
    with pytest.raises(KernelError):
        k.axiom("no", DETERMINISM, f, g, d, x)
    with pytest.raises(KernelError):
        k.axiom("nor", DETERMINISM, h, found, d, x)


@pytest.mark.parametrize("name", ["and", "or", "not", "ite", "let", "true", "distinct", "exp", "mod"])
def test_a_symbol_is_not_a_word_of_the_language_it_is_written_in(k, name):
    x = k.integers("x")
    with pytest.raises(KernelError, match="plain name"):
        k.define(name, [x], x + 1)


@pytest.mark.parametrize("name", ["Int", "Bool", "RNE", "a sort", "Pair) (declare-fun x () Int"])
def test_a_sort_is_not_a_word_of_the_language_it_is_written_in(name):
    with pytest.raises(KernelError, match="plain name"):
        DeclareSort(name)


def test_a_value_of_an_enumeration_is_not_a_word_of_the_language_it_is_written_in():
    with pytest.raises(KernelError, match="plain name"):
        EnumSort("Rounding", ["RNE", "Other"])
