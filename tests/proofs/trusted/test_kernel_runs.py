"""The kernel without assertions, its exported text, and its theorems against plain Python."""

import operator
import random
import subprocess
import sys
import textwrap

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofs.registry import ROOT
from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.oracle import reading
from proofs.trusted.terms import (
    And,
    BoolSort,
    BoolVal,
    Implies,
    IntSort,
    IntVal,
    Not,
    Or,
    RealSort,
    RealVal,
)
from psem_model.audit.obligations import exported
from tests.support.examples import examples

INT, REAL, BOOL = IntSort(), RealSort(), BoolSort()
FALSE = BoolVal(False)
refused = pytest.raises(KernelError)


# ------------------------------------------------------------------ without assertions
def test_the_refusals_do_not_depend_on_python_assertions():
    script = """
        import copy, pickle, sys
        from proofs.trusted.kernel import Kernel, KernelError, Theorem
        from proofs.trusted.terms import (
            ArraySort, BoolVal, Function, Int, IntSort, IntVal, RealVal, Store, Term, applied
        )
        from spec.assumptions import Assumption

        if __debug__:
            sys.exit("assertions are on")
        INT, FALSE = IntSort(), BoolVal(False)
        k = Kernel("attack")
        x, y = k.integers("x y")
        t = k.prove("t", x <= 5, given=[x < 5])
        r = k.refute("r", x == 0, [x], lambda x: x == 0)
        a = k.constant("a", ArraySort(INT, INT))
        p = k.prove("p", Store(a, 1, 5)[x] == a[x], given=[x == 0])
        f = Function("f", INT, INT)
        other = Kernel("other")
        before = len(k.theorems)
        attacks = [
            lambda: Theorem(),
            lambda: copy.copy(t),
            lambda: copy.deepcopy(t),
            lambda: pickle.dumps(t),
            lambda: type("Mine", (Theorem,), {}),
            lambda: k.prove("no", FALSE),
            lambda: k.prove("no", FALSE, uses=[object.__new__(Theorem)]),
            lambda: k.prove("no", FALSE, uses=[r]),
            lambda: other.prove("no", FALSE, uses=[t]),
            lambda: k.prove("no", Int("zz") == Int("zz")),
            lambda: k.prove("t", x == x),
            lambda: k.induct("no", x, x >= 1),
            lambda: k.induct("no", x, x <= 3),
            lambda: k.induct("no", x, x == 0, at=[{"x": x + 1}]),
            lambda: k.suppose("no", [], y == 0),
            lambda: k.suppose("no", [x], x == y),
            lambda: t.at(x=RealVal(1)),
            lambda: t.at(zz=1),
            lambda: k.extend("no", p, x),
            lambda: k.define("f", [x], f(x) + 1),
            lambda: k.define("g", [x], x + y),
            lambda: k.recursion("f", [], x, IntVal(0), lambda previous: f(x + 1) + 1),
            lambda: k.constant("x", INT),
            lambda: k.constant("needs quotes", INT),
            lambda: k.axiom("no", Assumption("linearity", "", lambda: FALSE), []),
            lambda: k.refute("no", x == 0, [x], lambda x: 0),
            lambda: k.refute("no", x == x, [x], lambda x: False),
            lambda: k.prove("no", tuple.__new__(Term, x == x)),
            lambda: applied("no) (assert false", (x, x)),
        ]
        for number, attack in enumerate(attacks):
            try:
                attack()
            except KernelError:
                continue
            sys.exit(f"attack {number} was not refused")
        if len(k.theorems) != before:
            sys.exit("an attack left a theorem")
        print("refused", len(attacks))
    """
    done = subprocess.run(
        [sys.executable, "-O", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused", "29"]


# ------------------------------------------------------------------ exported text
def test_exported_text_stands_alone_and_gives_its_expected_answer(k):
    n, m = k.integers("n m")
    q = k.reals("q")
    f = k.function("f", INT, REAL)
    total, start, following = k.recursion("total", [], n, RealVal(0), lambda p: p() + f(n))
    k.prove("t", total(1) == f(0), uses=[start, following.at(n=0)])
    k.prove("squares", q * q >= 0)
    k.induct("i", n, total(n) == total(n), base=[start], step=[following])
    k.refute("r", n < m, [n, m], lambda n, m: n < m, given=[n <= m])
    obligations = [(t, o) for t in k.theorems for o in t.obligations]
    assert [o.expected for _, o in obligations] == ["unsat"] * 4 + ["sat"]
    for theorem, obligation in obligations:
        text = exported(theorem, obligation)
        assert text.startswith("(set-logic ")
        assert reading(text) == obligation.expected


# ------------------------------------------------------------------ against plain Python
NAMES = ("a", "b", "c")
NUMBERS = st.integers(-4, 4)
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
}
CONNECTIVES = {
    "and": (And, lambda p, q: p and q),
    "or": (Or, lambda p, q: p or q),
    "implies": (Implies, lambda p, q: not p or q),
}

terms = st.recursive(
    st.sampled_from(NAMES) | NUMBERS,
    lambda t: (
        st.tuples(st.sampled_from(sorted(OPERATIONS)), t, t)
        | st.tuples(st.sampled_from(["div", "mod"]), t, st.sampled_from([-3, -2, 1, 2, 3]))
    ),
    max_leaves=5,
)
atoms = st.tuples(st.sampled_from(sorted(RELATIONS)), terms, terms)
formulas = st.recursive(
    atoms,
    lambda f: st.tuples(st.sampled_from(sorted(CONNECTIVES)), f, f) | st.tuples(st.just("not"), f),
    max_leaves=5,
)


def value(term, at):
    """A term in plain Python; division rounds so that the remainder is not negative."""
    if isinstance(term, str):
        return at[term]
    if isinstance(term, int):
        return term
    operation, left, right = term
    left, right = value(left, at), value(right, at)
    if operation in OPERATIONS:
        return OPERATIONS[operation](left, right)
    remainder = left % abs(right)
    return remainder if operation == "mod" else (left - remainder) // right


def truth(formula, at):
    head, *rest = formula
    if head == "not":
        return not truth(rest[0], at)
    if head in CONNECTIVES:
        return bool(CONNECTIVES[head][1](truth(rest[0], at), truth(rest[1], at)))
    return RELATIONS[head](value(rest[0], at), value(rest[1], at))


def term_of(term, at):
    if isinstance(term, str):
        return at[term]
    if isinstance(term, int):
        return IntVal(term)
    operation, left, right = term
    left, right = term_of(left, at), term_of(right, at)
    if operation in OPERATIONS:
        return OPERATIONS[operation](left, right)
    return left % right if operation == "mod" else left / right


def formula_of(formula, at):
    head, *rest = formula
    if head == "not":
        return Not(formula_of(rest[0], at))
    if head in CONNECTIVES:
        return CONNECTIVES[head][0](formula_of(rest[0], at), formula_of(rest[1], at))
    return RELATIONS[head](term_of(rest[0], at), term_of(rest[1], at))


def points(formula, count=200):
    """Integers to try: small ones, and a few large."""
    chance = random.Random(repr(formula))
    for i in range(count):
        reach = 6 if i % 4 else 1000
        yield {name: chance.randint(-reach, reach) for name in NAMES}


drawn = settings(examples(150), suppress_health_check=[HealthCheck.too_slow])


def attempt(rule):
    try:
        return rule()
    except KernelError:
        return None


@drawn
@given(formulas)
def test_what_is_proved_is_true_in_plain_python(formula):
    k = Kernel("random")
    at = dict(zip(NAMES, k.integers(" ".join(NAMES)), strict=True))
    if attempt(lambda: k.prove("t", formula_of(formula, at))):
        assert all(truth(formula, point) for point in points(formula))


@pytest.mark.slow
@drawn
@given(atoms, formulas)
def test_what_is_proved_from_a_premise_is_true_wherever_the_premise_is(premise, formula):
    k = Kernel("random")
    at = dict(zip(NAMES, k.integers(" ".join(NAMES)), strict=True))
    # a premise that already holds the conclusion often enough to be provable
    goal = ("or", formula, premise)
    proved = attempt(lambda: k.prove("t", formula_of(goal, at), given=[formula_of(premise, at)]))
    assert proved is not None
    shifted = proved.at(a=at["b"] + 1, b=at["a"] - at["c"])
    for point in points(goal):
        moved = {**point, "a": point["b"] + 1, "b": point["a"] - point["c"]}
        assert not truth(premise, moved) or truth(goal, moved)
    again = attempt(lambda: k.prove("u", formula_of(formula, at), uses=[shifted]))
    if again:
        assert all(truth(formula, point) for point in points(formula))


@drawn
@given(formulas)
def test_what_is_proved_by_induction_is_true_of_natural_numbers(formula):
    k = Kernel("random")
    at = dict(zip(NAMES, k.integers(" ".join(NAMES)), strict=True))
    if attempt(lambda: k.induct("t", at["a"], formula_of(formula, at))):
        assert all(truth(formula, {**p, "a": abs(p["a"])}) for p in points(formula))


@pytest.mark.slow
@drawn
@given(formulas)
def test_what_is_refuted_is_false_in_plain_python(formula):
    k = Kernel("random")
    variables = k.integers(" ".join(NAMES))
    claim = formula_of(formula, dict(zip(NAMES, variables, strict=True)))

    def replay(**values):
        return truth(formula, {name: int(v) for name, v in values.items()})

    # one of the two must succeed, unless the solver gives up; both never do
    proved = attempt(lambda: k.prove("t", claim))
    found = attempt(lambda: k.refute("r", claim, variables, replay))
    assert not (proved and found)
    if found:
        assert not truth(formula, {name: int(v) for name, v in found.counterexample.items()})
