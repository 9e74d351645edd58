"""Forgeries that go through terms, names and containers rather than through theorems."""

import pytest
import z3

from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.terms import (
    And,
    ArraySort,
    BoolSort,
    BoolVal,
    DeclareSort,
    EnumSort,
    Function,
    Int,
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


def reassign(term, other):
    """Make a wrapper stand for another term, with the solver's reference counts kept right."""
    z3.Z3_inc_ref(other.ctx.ref(), other.as_ast())
    z3.Z3_dec_ref(term.ctx.ref(), term.as_ast())
    term.ast = other.as_ast()


@pytest.mark.parametrize("reach", ["goal", "given", "obligation", "argument"])
def test_reassigning_a_term_changes_no_theorem(k, reach):
    x = k.integers("x")
    goal = x <= 5
    t = k.prove("t", goal, given=[x < 5])
    if reach == "given":
        reassign(t.given[0], BoolVal(True))
        return false_is_not_provable(k, t.at(x=9))
    term = {"goal": t.goal, "obligation": t.obligations[0].goal, "argument": goal}[reach]
    reassign(term, FALSE)
    false_is_not_provable(k, t.at(x=0))


def test_the_step_of_a_recursion_does_not_define_its_way_round(k):
    n, m = k.integers("n m")
    equations = []

    def step(previous):
        f = previous().decl()
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


def enumeration(name, *values):
    made = z3.Datatype(name)
    for value in values:
        made.declare(value)
    return made.create()


def test_a_constructor_with_the_name_of_a_variable_is_no_parameter(k):
    colour = enumeration("Colour", "red", "blue")
    red = k.constant("red", colour)
    with pytest.raises(KernelError):
        _, equation = k.define("f", [colour.red], red)
        k.prove("no", FALSE, uses=[equation.at(red=colour.red), equation.at(red=colour.blue)])


def test_a_constructor_with_the_name_of_a_variable_is_no_index(k):
    colour = enumeration("Paint", "green", "grey")
    k.constant("green", colour)
    a, x = k.constant("a", ArraySort(colour, INT)), k.integers("x")
    with pytest.raises(KernelError):
        here = k.prove("here", a[colour.green] == Store(a, colour.grey, x)[colour.green])
        equal = k.extend("equal", here, colour.green)
        k.prove("no", FALSE, uses=[equal.at(x=a[colour.grey] + 1)])


def test_a_function_with_the_name_of_an_accessor_is_not_the_accessor(k):
    box = z3.Datatype("Box")
    box.declare("box", ("inside", INT))
    box = box.create()
    v = k.constant("v", box)
    with pytest.raises(KernelError):
        _, equation = k.define("inside", [v], box.inside(v) + 1)
        k.prove("no", FALSE, uses=[equation])


def test_a_datatype_declared_again_does_not_extend_the_first(k):
    one = enumeration("Twice", "First")
    x = k.constant("x", one)
    only = k.prove("only", x == one.First)
    two = enumeration("Twice", "First", "Second")
    with pytest.raises(KernelError):
        k.prove("no", FALSE, uses=[only.at(x=two.Second)])


def test_agreement_in_one_column_does_not_make_tables_equal(k):
    a, (i, v) = k.constant("a", ArraySort(INT, INT, INT)), k.integers("i v")
    column = k.prove("column", z3.Select(a, i, 0) == z3.Select(Store(a, 0, 1, v), i, 0))
    with pytest.raises(KernelError):
        equal = k.extend("equal", column, i)
        k.prove("no", FALSE, uses=[equal.at(v=z3.Select(a, 0, 1) + 1)])


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


def test_a_term_that_lies_about_its_parts_is_read_as_it_is(k):
    class Lying(z3.ArithRef):
        def children(self):
            return []

        def decl(self):
            return IntVal(0).decl()

        def get_id(self):
            return -7

    n = k.integers("n")
    body = Function("g", INT, INT)(n) + 1
    with pytest.raises(KernelError):
        _, equation = k.define("g", [n], Lying(body.as_ast(), body.ctx))
        k.prove("no", FALSE, uses=[equation.at(n=0)])


def test_a_recursive_function_of_the_solver_is_refused(k):
    colour = enumeration("Shade", "dark", "light")  # so that the logic admits it
    x, y = k.integers("x y")
    d = k.constant("d", colour)
    f = z3.RecFunction("hidden", INT, INT)
    z3.RecAddDefinition(f, [y], x)
    with pytest.raises((KernelError, ValueError)):
        g, equation = k.define("g", [], f(IntVal(0)))
        t = k.prove("t", And(g() == x, d == d), uses=[equation])
        k.prove("no", FALSE, uses=[t.at(x=0), t.at(x=1)])


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


def test_a_term_of_another_context_is_refused(k):
    k.integers("x")
    with pytest.raises(KernelError):
        k.prove("no", Int("x", z3.Context()) == 0)


@pytest.mark.parametrize("name", ["and", "or", "not", "ite", "let", "true", "distinct", "exp", "mod"])
def test_a_symbol_is_not_a_word_of_the_language_it_is_written_in(k, name):
    x = k.integers("x")
    with pytest.raises(KernelError, match="plain name"):
        k.define(name, [x], x + 1)


@pytest.mark.parametrize("name", ["Int", "Bool", "RNE", "a sort", "Pair) (declare-fun x () Int"])
def test_a_sort_is_not_a_word_of_the_language_it_is_written_in(k, name):
    thing = k.constant("thing", DeclareSort(name))
    with pytest.raises(KernelError, match="plain name"):
        k.prove("no", thing == thing)


def test_a_value_of_an_enumeration_is_not_a_word_of_the_language_it_is_written_in(k):
    _, (value, _) = EnumSort("Rounding", ["RNE", "Other"])
    with pytest.raises(KernelError):
        k.prove("no", value == value)
