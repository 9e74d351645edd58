"""Forgeries through terms: what looks like one, and one of which a part or the class is changed."""

import copy
import pickle
from contextlib import contextmanager
from typing import Any

import pytest
import z3

from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.terms import (
    FALSE,
    TRUE,
    And,
    ArraySort,
    BoolSort,
    Const,
    Distinct,
    EnumSort,
    Float64,
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
    Term,
    applied,
    is_term,
    term_of,
)
from tests.support.lies import Everything, constants, mutable

INT, REAL, BOOL, FLOAT = IntSort(), RealSort(), BoolSort(), Float64()
HALF = RealVal("1/2")
term_class: Any = Term
sort_class: Any = Sort
new: Any = tuple.__new__
refused = pytest.raises(KernelError)


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
        "hypothesis": lambda: k.prove("no", FALSE, uses=[k.suppose("h", [y], seven + y == y)]),
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
