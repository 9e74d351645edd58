"""Attacks on the trusted kernel: every way to get a theorem without a proof must fail."""

import copy
import dataclasses
import pickle

import pytest
import z3

from proofs.trusted import kernel, oracle
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.oracle import Answer
from proofs.trusted.smtlib import ForAll
from proofs.trusted.terms import (
    And,
    BoolSort,
    BoolVal,
    Function,
    Int,
    IntSort,
    IntVal,
    Not,
    Real,
    RealSort,
)

INT, REAL, BOOL = IntSort(), RealSort(), BoolSort()
FALSE = BoolVal(False)
refused = pytest.raises(KernelError)


def forged():
    return object.__new__(Theorem)  # type: ignore[arg-type]


def unproved(k):
    """The kernel made nothing: neither listed, nor is False provable."""
    return all(t.rule == "definition" for t in k.theorems)


# ------------------------------------------------------------------ making a theorem by hand
def test_a_theorem_cannot_be_constructed():
    with refused:
        Theorem()
    with refused:
        Theorem(FALSE)


def test_an_object_made_behind_the_constructor_is_no_theorem(k, x, theorem):
    fake = forged()
    for read in ("name", "rule", "given", "goal", "statement", "parts", "obligations"):
        with refused:
            getattr(fake, read)
    with refused:
        fake.at(x=0)
    with refused:
        k.prove("no", FALSE, uses=[fake])
    with refused:
        k.induct("no", x, FALSE, base=[fake])
    with refused:
        k.induct("no", x, FALSE, step=[fake])
    with refused:
        k.extend("no", fake, x)
    assert k.theorems == [theorem]


def test_what_looks_like_a_theorem_is_none(k):
    class Alike:
        name, rule, given, goal, statement = "alike", "smt", (), FALSE, FALSE
        parts, obligations, counterexample = (), (), None
        __class__ = Theorem  # type: ignore[assignment]

    assert isinstance(Alike(), Theorem)
    with refused:
        k.prove("no", FALSE, uses=[Alike()])
    assert k.theorems == []


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, pickle.dumps, lambda t: pickle.dumps(t, 0)],
    ids=["copy", "deepcopy", "pickle", "old pickle"],
)
def test_a_theorem_cannot_be_duplicated(theorem, duplicate):
    with refused:
        duplicate(theorem)


def test_a_theorem_cannot_be_replaced(theorem):
    with pytest.raises(TypeError):
        dataclasses.replace(theorem, goal=FALSE)


def test_a_theorem_has_no_subclass():
    with refused:
        type("Mine", (Theorem,), {})


@pytest.mark.parametrize("attribute", ["goal", "given", "parts", "rule", "anything"])
def test_a_theorem_has_no_settable_attribute(theorem, attribute):
    with pytest.raises((AttributeError, TypeError)):
        setattr(theorem, attribute, FALSE)
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(theorem, attribute, FALSE)
    with pytest.raises((AttributeError, TypeError)):
        object.__delattr__(theorem, attribute)


def test_a_theorem_does_not_change_its_class(k, theorem):
    class Other:
        __slots__ = ()
        goal = statement = FALSE

    try:
        theorem.__class__ = Other
    except (TypeError, KernelError):
        return
    with refused:
        k.prove("no", FALSE, uses=[theorem])


@pytest.mark.parametrize("read", ["given", "parts", "obligations", "hypotheses", "axioms"])
def test_what_a_theorem_returns_is_immutable(theorem, read):
    assert isinstance(getattr(theorem, read), (tuple, frozenset))


def test_obligations_and_records_cannot_be_assigned_to(theorem):
    with pytest.raises(dataclasses.FrozenInstanceError):
        theorem.obligations[0].goal = FALSE


def test_changing_the_lists_given_to_a_rule_changes_no_theorem(k, x):
    premises = [x < 5]
    theorem = k.prove("t", x <= 5, given=premises)
    premises.clear()
    assert len(theorem.given) == 1
    with refused:
        k.prove("no", FALSE, uses=[theorem.at(x=9)])


# ------------------------------------------------------------------ proving what is false
def test_false_is_not_provable(k):
    with refused:
        k.prove("no", FALSE)
    assert k.theorems == []


def test_a_false_goal_makes_no_theorem(k, x):
    with refused:
        k.prove("no", x * x > 0)
    assert k.theorems == []


def test_the_name_of_a_failed_theorem_stays_free(k, x):
    with refused:
        k.prove("t", x > x)
    assert k.prove("t", x >= x).name == "t"


def test_an_unknown_answer_is_no_proof(k, x, monkeypatch):
    for question in ("ask", "glance"):
        monkeypatch.setattr(oracle, question, lambda *_, **_options: Answer("unknown", {}, 0))
    with pytest.raises(KernelError, match="unknown"):
        k.prove("no", x == x)
    with pytest.raises(KernelError, match="unknown"):
        k.induct("no", x, x == x)
    assert k.theorems == []


def test_an_unknown_answer_is_no_counterexample(k, x, monkeypatch):
    monkeypatch.setattr(kernel, "ask", lambda *_, **_options: Answer("unknown", {}, 0))
    with pytest.raises(KernelError, match="unknown"):
        k.refute("no", x == 1, [x], lambda x: x == 1)
    assert k.theorems == []


def test_running_out_of_resources_is_no_proof(k, monkeypatch):
    for limit in ("RESOURCE_LIMIT", "SOON"):
        monkeypatch.setattr(oracle, limit, 100)
    x, y, z = k.integers("x y z")
    with pytest.raises(KernelError, match="unknown"):
        k.prove("no", x * x * x + y * y * y != z * z * z, given=[x > 0, y > 0, z > 0])
    assert k.theorems == []


def test_quantifiers_are_refused(k, x):
    for_all = ForAll((x,), x == x)
    with refused:
        k.prove("no", for_all)
    with refused:
        k.prove("no", x == x, given=[for_all])
    with refused:
        Not(for_all)
    assert k.theorems == []


@pytest.mark.parametrize("formula", [z3.Int("x") == z3.Int("x"), z3.BoolVal(True), True, None, 1])
def test_only_terms_are_formulas(k, x, formula):
    with refused:
        k.prove("no", formula)
    with refused:
        k.prove("no", x == x, given=[formula])
    with refused:
        k.induct("no", x, formula)
    with refused:
        k.suppose("no", [], formula)
    with refused:
        k.refute("no", formula, [x], lambda x: False)
    assert k.theorems == []


# ------------------------------------------------------------------ whose theorems, whose symbols
def test_theorems_of_another_kernel_are_refused(k, x, theorem):
    other = Kernel("other")
    y = other.integers("x")
    with refused:
        other.prove("no", y <= 5, given=[y < 5], uses=[theorem])
    with refused:
        other.induct("no", y, y >= 0, base=[theorem])
    with refused:
        other.induct("no", y, y >= 0, step=[theorem])
    with refused:
        other.extend("no", theorem, y)
    assert other.theorems == []


def test_theorems_of_one_part_are_refused_in_another(k):
    one, two = k.part("one"), k.part("two")
    _, equation = one.define("c", [], IntVal(1))
    two.define("c", [], IntVal(2))
    with refused:
        two.prove("no", FALSE, uses=[equation])
    with refused:
        k.prove("no", FALSE, uses=[equation])


def test_a_replaced_kernel_does_not_own_the_theorems(k):
    c, equation = k.define("c", [], IntVal(1))
    twin = dataclasses.replace(k)
    with refused:
        twin.prove("no", c() == 1, uses=[equation])


def test_undeclared_symbols_are_refused(k, x):
    stranger = Int("zz")
    with pytest.raises(KernelError, match="not declared"):
        k.prove("no", stranger == stranger)
    with pytest.raises(KernelError, match="not declared"):
        k.prove("no", x == x, given=[stranger == 0])
    with pytest.raises(KernelError, match="not declared"):
        k.suppose("no", [], stranger == 0)
    with pytest.raises(KernelError, match="not declared"):
        k.induct("no", x, Function("f", INT, BOOL)(x))
    with pytest.raises(KernelError, match="not a variable"):
        k.refute("no", stranger == 0, [stranger], lambda zz: zz == 0)
    assert k.theorems == []


def test_a_symbol_of_the_same_name_and_another_sort_is_undeclared(k, x):
    with pytest.raises(KernelError, match="not declared"):
        k.prove("no", Real("x") == Real("x"))
    with pytest.raises(KernelError, match="not declared"):
        k.prove("no", Function("x", INT, INT)(x) == x)


@pytest.mark.parametrize(
    "name",
    ["", "X", "_x", "1x", "x y", "x\n", "|x|", "x|", "x!0", "x'", "x)", "é", "x;", '"x"', "a.b"],
)
def test_names_that_need_quoting_are_refused(k, name):
    with refused:
        k.constant(name, INT)
    with refused:
        k.fixed(name, INT)
    with refused:
        k.function(name, INT, INT)
    with refused:
        k.define(name, [], IntVal(0))
    assert unproved(k)


@pytest.mark.parametrize(
    ("name", "sorts", "arguments"),
    [
        ("and", (BOOL, BOOL, BOOL), (True, False)),
        ("not", (BOOL, BOOL), (True,)),
        ("div", (INT, INT, INT), (7, 2)),
        ("mod", (INT, INT, INT), (7, 2)),
        ("abs", (INT, INT), (-3,)),
        ("to_real", (INT, REAL), (3,)),
        ("ite", (BOOL, INT, INT, INT), (True, 1, 2)),
        ("distinct", (INT, INT, BOOL), (1, 2)),
    ],
)
def test_a_symbol_named_like_a_built_in_one_does_not_take_its_meaning(k, name, sorts, arguments):
    results: dict = {INT: [0, 1, 2, 3], REAL: [3], BOOL: [True, False]}
    try:
        applied = k.function(name, *sorts)(*arguments)
    except KernelError:
        return
    for value in results[sorts[-1]]:
        with refused:
            k.prove("no", applied == value)
    assert k.theorems == []


@pytest.mark.parametrize("declare", ["constant", "fixed", "function", "define", "recursion"])
def test_a_name_is_declared_once(k, x, declare):
    # `x` is a constant, `f` a definition
    k.define("f", [x], x)
    again = {
        "constant": lambda name: k.constant(name, INT),
        "fixed": lambda name: k.fixed(name, INT),
        "function": lambda name: k.function(name, INT, INT),
        "define": lambda name: k.define(name, [x], x + 1),
        "recursion": lambda name: k.recursion(name, [], x, IntVal(0), lambda p: p() + 1),
    }[declare]
    for name in ("x", "f"):
        with pytest.raises(KernelError, match="already"):
            again(name)


def test_a_choice_declares_new_names(k, x):
    k.function("p", INT, BOOL)
    k.constant("q_witness", INT)
    for name in ("p", "q"):
        with pytest.raises(KernelError, match="already"):
            k.choose(name, [], x, x == 0)


def test_two_theorems_have_two_names(k, x, theorem):
    with pytest.raises(KernelError, match="already"):
        k.prove(theorem.name, x == x)
    with pytest.raises(KernelError, match="already"):
        k.suppose(theorem.name, [x], x == 0)
    with pytest.raises(KernelError, match="already"):
        k.induct(theorem.name, x, x >= 0)
    assert k.theorems == [theorem]


# ------------------------------------------------------------------ definitions
def test_a_definition_leaves_no_variable_open(k, x):
    y = k.integers("y")
    with pytest.raises(KernelError, match="open"):
        k.define("f", [x], x + y)
    with pytest.raises(KernelError, match="open"):
        k.define("f", [], x)
    with pytest.raises(KernelError, match="open"):
        k.recursion("g", [], x, y, lambda previous: previous())
    with pytest.raises(KernelError, match="open"):
        k.recursion("h", [], x, x, lambda previous: previous())
    with pytest.raises(KernelError, match="open"):
        k.recursion("i", [], x, IntVal(0), lambda previous: previous() + y)
    with pytest.raises(KernelError, match="open"):
        k.choose("p", [], x, x == y)
    assert k.theorems == []


def test_a_definition_mentions_declared_symbols_only(k, x):
    with pytest.raises(KernelError, match="not declared"):
        k.define("f", [x], Function("other", INT, INT)(x))
    with pytest.raises(KernelError, match="not declared"):
        k.choose("p", [], x, Int("zz") == x)
    with pytest.raises(KernelError, match="not declared"):
        k.recursion("g", [], x, Int("zz"), lambda previous: previous())
    assert k.theorems == []


def test_a_definition_does_not_mention_itself(k, x):
    f = Function("f", INT, INT)
    with pytest.raises(KernelError, match="not declared"):
        k.define("f", [x], f(x) + 1)
    holds = Function("p", BOOL)
    with pytest.raises(KernelError, match="not declared"):
        k.choose("p", [], x, Not(holds()))
    with pytest.raises(KernelError, match="not declared"):
        k.recursion("f", [], x, f(IntVal(0)) + 1, lambda previous: previous())
    assert k.theorems == []


@pytest.mark.parametrize("later", [lambda n: n + 1, lambda n: n + 2, lambda n: 0 * n, lambda n: -n])
def test_a_recursion_uses_the_value_before_it_only(k, x, later):
    f = Function("f", INT, INT)
    with pytest.raises(KernelError, match="before it only"):
        k.recursion("f", [], x, IntVal(0), lambda previous: f(later(x)) + 1)
    assert k.theorems == []


def test_a_recursion_does_not_hide_a_later_value_in_its_arguments(k, x):
    y = k.integers("y")
    f = Function("f", INT, INT, INT)
    with pytest.raises(KernelError, match="before it only"):
        k.recursion("f", [y], x, y, lambda previous: previous(f(y, x + 1)) + 1)
    assert k.theorems == []


def test_parameters_and_witnesses_are_variables(k, x):
    for stray in (x + 1, IntVal(0), Int("zz"), k.fixed("c", INT)):
        with pytest.raises(KernelError, match="not a variable"):
            k.define("f", [stray], IntVal(0))
        with pytest.raises(KernelError, match="not a variable"):
            k.choose("p", [], stray, FALSE)
    assert k.theorems == []


def test_a_chosen_witness_does_not_exist_for_nothing(k, x):
    holds, _, _, _ = k.choose("p", [], x, And(x > 0, x < 0))
    assert k.prove("there_is_none", Not(holds()), uses=[k.theorems[-1]])
    with refused:
        k.prove("no", holds(), uses=k.theorems)
