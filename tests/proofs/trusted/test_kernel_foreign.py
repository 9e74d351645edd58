"""Forgeries through objects of others: symbols, names, keys and what is called meanwhile."""

import copy
from typing import Any

import pytest
import z3

from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.parts import substitute
from proofs.trusted.terms import (
    FALSE,
    TRUE,
    ArraySort,
    BoolSort,
    Float64,
    Function,
    Int,
    IntSort,
    IntVal,
    RealSort,
    RealVal,
    Sort,
    Symbol,
    Term,
    symbol_of,
)
from psem_model.audit.obligations import exported
from spec.assumptions import DETERMINISM, EXPONENTIAL, LINEARITY
from tests.support.lies import Everything, constants

INT, REAL, BOOL, FLOAT = IntSort(), RealSort(), BoolSort(), Float64()
HALF = RealVal("1/2")
term_class: Any = Term
sort_class: Any = Sort
new: Any = tuple.__new__
refused = pytest.raises(KernelError)


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
    (negated,) = z3.parse_smt2_string(exported(theorem, *theorem.obligations))
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


@pytest.mark.parametrize("turn", range(1, 5))
def test_a_pair_is_what_it_gives_when_it_is_first_read(k, turn):
    n = k.integers("n")

    class Pair(tuple):
        read = 0

        def __iter__(self):
            self.read += 1
            return iter((n, IntVal(0)) if self.read == turn else (n, n + 1))

    substitute(n == 0, Pair((n, n + 1)))
    substitute(n, Pair((n, n + 1)))
    with refused:
        k.induct("all_are_zero", n, n == 0)
    assert substitute(n, (n, n + 1)) is n + 1


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

    with pytest.raises(KernelError, match="open: y"):
        k.suppose("h", Changing([x]), x <= y)


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
