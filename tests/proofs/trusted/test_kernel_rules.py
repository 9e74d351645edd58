"""Attacks on the kernel's rules: induction, instances, axioms, counterexamples, arrays."""

import copy
import dataclasses

import pytest

from proofs.trusted import kernel
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import (
    And,
    ArraySort,
    BoolSort,
    BoolVal,
    Const,
    Function,
    Int,
    IntSort,
    IntVal,
    Real,
    RealSort,
    RealVal,
    Store,
)
from spec.assumptions import DETERMINISM, INDUCTION, LINEARITY, Assumption

INT, REAL, BOOL = IntSort(), RealSort(), BoolSort()
FALSE = BoolVal(False)
refused = pytest.raises(KernelError)


def forged():
    return object.__new__(Theorem)  # type: ignore[arg-type]


# ------------------------------------------------------------------ induction
def test_induction_needs_its_base(k, x):
    with pytest.raises(KernelError, match="no_base"):
        k.induct("no", x, x >= 1)
    assert k.theorems == []


def test_induction_needs_its_step(k, x):
    with pytest.raises(KernelError, match="no_step"):
        k.induct("no", x, x <= 3)
    assert k.theorems == []


def test_induction_says_nothing_about_negative_numbers(k, x):
    theorem = k.induct("natural", x, x >= 0)
    with refused:
        k.prove("no", FALSE, uses=[theorem.at(x=-1)])


def test_induction_may_not_assume_its_own_next_case(k, x):
    with refused:
        k.induct("no", x, x == 0, at=[{"x": x + 1}])
    with refused:
        k.induct("no", x, x == 0, at=[{}, {"x": x}])
    assert k.theorems == []


def test_the_hypothesis_is_at_the_index_before_alone(k):
    n, m = k.integers("n m")
    with refused:
        k.induct("no", n, n == 0, at=[{"m": n + 1}])
    with refused:
        k.induct("no", n, n <= m, given=[m >= 0], at=[{"m": m + 5}])
    assert k.theorems == []


def test_induction_is_about_a_variable(k, x):
    constant, _ = k.define("c", [], IntVal(1))
    for index in (constant(), k.fixed("d", INT), Int("zz"), x + 1):
        with pytest.raises(KernelError, match="not a variable"):
            k.induct("no", index, index >= 0)


@pytest.mark.parametrize("sort", [REAL, BOOL, ArraySort(INT, INT)])
def test_induction_is_over_the_integers(k, sort):
    y = k.constant("y", sort)
    with refused:
        k.induct("no", y, y == y)
    assert k.theorems == []


def test_a_base_does_not_use_its_own_conclusion(k, x):
    other = Kernel("other")
    y = other.integers("x")
    conclusion = other.suppose("wanted", [y], y >= 1)
    for base in (forged(), conclusion):
        with refused:
            k.induct("no", x, x >= 1, base=[base])
    assert k.theorems == []


# ------------------------------------------------------------------ instances
def test_an_instance_of_a_variable_of_a_hypothesis_is_granted_and_the_hypothesis_is_kept(k, x):
    c = k.fixed("c", INT)
    theorem = k.suppose("below", [x], x <= c).at(x=7)
    assert theorem.hypotheses == {"below"}
    consequence = k.prove("seven_is_below", c >= 7, uses=[theorem])
    assert consequence.hypotheses == {"below"}
    with pytest.raises(KernelError, match="not a variable"):
        consequence.at(c=0)


def test_a_hypothesis_leaves_no_variable_open(k, x):
    y = k.integers("y")
    for variables in ([], [y]):
        with pytest.raises(KernelError, match="open: x"):
            k.suppose("no", variables, x == 0)
    with pytest.raises(KernelError, match="open: y"):
        k.suppose("no", [x], x <= y)
    assert k.theorems == []


def test_a_hypothesis_is_about_variables(k, x):
    for stray in (x + 1, Int("zz"), k.fixed("c", INT)):
        with pytest.raises(KernelError, match="not a variable"):
            k.suppose("no", [stray], x == 0)


def test_instances_are_of_the_right_sort(k, theorem):
    for term in (RealVal(1), BoolVal(True), Real("r"), Const("a", ArraySort(INT, INT))):
        with pytest.raises(KernelError, match="sort"):
            theorem.at(x=term)


def test_instances_are_of_variables_only(k, theorem):
    c = k.fixed("c", INT)
    about = k.prove("about_c", c == c)
    k.define("d", [], IntVal(1))
    for wrong in (lambda: theorem.at(zz=1), lambda: about.at(c=1), lambda: about.at(d=1)):
        with pytest.raises(KernelError, match="not a variable"):
            wrong()


def test_instances_put_terms_in_place_of_variables_all_at_once(k, x):
    y = k.integers("y")
    theorem = k.prove("t", x <= y, given=[x < y])
    swapped = theorem.at(x=y, y=x)
    assert swapped.goal is (y <= x)
    with refused:
        k.prove("no", FALSE, uses=[theorem, swapped])


def test_an_instance_may_not_bring_in_undeclared_symbols(k, x, theorem):
    with refused:
        k.prove("no", x == x, uses=[theorem.at(x=Int("zz"))])


# ------------------------------------------------------------------ axioms
@pytest.mark.parametrize(
    "assumption",
    [
        Assumption("everything", "why not", lambda: FALSE),
        Assumption("linearity", "an impostor", lambda: FALSE),
        dataclasses.replace(LINEARITY, formula=lambda: FALSE),
        copy.copy(DETERMINISM),
        INDUCTION,
    ],
    ids=["unknown", "same name", "replaced", "copied", "without formula"],
)
def test_axioms_are_those_of_the_specification(k, assumption):
    with pytest.raises(KernelError, match=r"spec/assumptions\.py"):
        k.axiom("no", assumption, [])
    assert k.theorems == []


def test_an_axiom_is_carried_along_by_name(k):
    d, x = k.integers("d x")
    here, anywhere = k.function("here", INT, INT, INT), k.function("anywhere", INT, INT)
    axiom = k.axiom("same", DETERMINISM, here, anywhere, d, x)
    theorem = k.prove("t", here(1, x) == here(2, x), uses=[axiom.at(d=1), axiom.at(d=2)])
    again = k.prove("u", here(2, x) == here(1, x), uses=[theorem])
    assert again.axioms == {"determinism"}


def test_an_axiom_is_about_a_function_that_nothing_is_said_of(k):
    d, x = k.integers("d x")
    here, anywhere = k.function("here", INT, INT, INT), k.function("anywhere", INT, INT)
    defined, _ = k.define("defined", [d, x], d + x)
    for function in (defined, Function("stranger", INT, INT, INT), lambda d, x: x):
        with pytest.raises(KernelError):
            k.axiom("no", DETERMINISM, function, anywhere, d, x)
    k.suppose("said", [d, x], here(d, x) != 0)
    with pytest.raises(KernelError, match="nothing is said of"):
        k.axiom("no", DETERMINISM, here, anywhere, d, x)


def test_induction_is_carried_along_by_name(k, x):
    theorem = k.prove("t", x >= 0, given=[x >= 0], uses=[k.induct("i", x, x >= 0)])
    assert theorem.axioms == {"induction"}


# ------------------------------------------------------------------ counterexamples
def test_a_counterexample_is_not_a_fact(k, x):
    found = k.refute("r", x == 0, [x], lambda x: x == 0)
    with pytest.raises(KernelError, match="counterexample"):
        k.prove("no", FALSE, uses=[found])
    with pytest.raises(KernelError, match="counterexample"):
        k.induct("no", x, FALSE, base=[found])
    with pytest.raises(KernelError, match="counterexample"):
        k.induct("no", x, FALSE, step=[found])
    with pytest.raises(KernelError, match="counterexample"):
        k.extend("no", found, x)
    assert k.theorems == [found]


@pytest.mark.parametrize("said", [True, None, 1, 0, "", [], "False"])
def test_a_counterexample_is_confirmed_by_exactly_false(k, x, said):
    with refused:
        k.refute("no", x == 0, [x], lambda x: said)
    assert k.theorems == []


def test_what_holds_has_no_counterexample(k, x):
    with pytest.raises(KernelError, match="no counterexample"):
        k.refute("no", x * x >= 0, [x], lambda x: False)
    with pytest.raises(KernelError, match="no counterexample"):
        k.refute("no", x > 0, [x], lambda x: False, given=[x > 3])
    assert k.theorems == []


def test_a_counterexample_names_all_its_values(k, x):
    y = k.integers("y")
    with pytest.raises(KernelError, match="do not refute"):
        k.refute("no", x == y, [x], lambda x: False)
    assert k.theorems == []


def test_a_counterexample_is_in_rational_numbers(k):
    r = k.reals("r")
    with pytest.raises(KernelError, match="do not refute"):
        k.refute("no", r * r != 2, [r], lambda r: False)
    assert k.theorems == []


def test_a_counterexample_that_is_given_needs_no_solver(k, x, monkeypatch):
    monkeypatch.setattr(kernel, "ask", None)
    y = k.integers("y")
    at = {"x": IntVal(4), "y": IntVal(5)}
    found = k.refute("r", x + 1 < y, [x, y], lambda x, y: x + 1 < y, [x < y], at)
    assert found.counterexample == {"x": "4", "y": "5"}


def test_a_counterexample_that_is_given_is_of_all_its_values_and_of_no_others(k, x):
    for at in ({}, {"X": IntVal(0)}, {"x": IntVal(0), "y": IntVal(0)}):
        with pytest.raises(KernelError, match="values are given of"):
            k.refute("no", x != 0, [x], lambda x: x != 0, [], at)
    assert k.theorems == []


@pytest.mark.parametrize(
    ("value", "error"),
    [(IntVal(0), "do not refute"), (IntVal(7), "holds"), (Int("y"), "no value"), (FALSE, "sort")],
)
def test_a_counterexample_that_is_given_is_of_values_that_refute(k, x, value, error):
    with pytest.raises(KernelError, match=error):
        k.refute("no", x < 5, [x], lambda x: x > 6, [], {"x": value})
    assert k.theorems == []


# ------------------------------------------------------------------ arrays
@pytest.fixture
def arrays(k):
    return [k.constant(name, ArraySort(INT, INT)) for name in "ab"]


def test_agreement_at_an_arbitrary_index_makes_arrays_equal(k, x, arrays):
    a, _ = arrays
    same = k.prove("same", Store(a, 0, a[0])[x] == a[x])
    assert k.extend("equal", same, x).goal is (Store(a, 0, a[0]) == a)


def test_an_index_that_a_premise_mentions_is_not_arbitrary(k, x, arrays):
    a, _ = arrays
    at_zero = k.prove("at_zero", Store(a, 1, 5)[x] == a[x], given=[x == 0])
    with pytest.raises(KernelError, match="not arbitrary"):
        k.extend("no", at_zero, x)
    y = k.integers("y")
    with pytest.raises(KernelError, match="not arbitrary"):
        k.extend("no", at_zero.at(x=y), y)


def test_an_index_in_the_arrays_is_not_arbitrary(k, x, arrays):
    a, _ = arrays
    y = k.integers("y")
    moving = k.prove("moving", Store(a, x + 1, y)[x] == a[x])
    with pytest.raises(KernelError, match="not arbitrary"):
        k.extend("no", moving, x)


def test_an_index_is_a_variable(k, x, arrays):
    a, _ = arrays
    c = k.fixed("c", INT)
    at_zero = k.prove("at_zero", Store(a, 1, 5)[0] == a[0])
    with pytest.raises(KernelError, match="not a variable"):
        k.extend("no", at_zero, IntVal(0))
    fixed = k.prove("fixed", Store(a, c, a[c])[c] == a[c])
    with pytest.raises(KernelError, match="not a variable"):
        k.extend("no", fixed, c)


def test_only_an_equation_of_two_elements_extends(k, x, arrays):
    a, b = arrays
    y = k.integers("y")
    shapes = {
        "inequality": a[x] <= a[x],
        "other_index": a[y] == a[y],
        "sum": a[x] + 1 == a[x] + 1,
        "conjunction": And(a[x] == a[x], b[x] == b[x]),
        "shifted": a[x + 1] == a[x + 1],
        "number": x == x,
    }
    for name, shape in shapes.items():
        theorem = k.prove(name, shape)
        with pytest.raises(KernelError, match="not an equation"):
            k.extend("no", theorem, x)
