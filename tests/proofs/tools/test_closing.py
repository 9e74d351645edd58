"""What is said of one run, unwritten, is said of every run; and there are some, or none."""

import pytest

from proofs.tools.closing import Closing
from proofs.tools.existence import some
from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.terms import And, DeclareSort, IntSort, IntVal, Not

INT, Run = IntSort(), DeclareSort("Run")


@pytest.fixture
def closing():
    return Closing(Kernel("closing"))


def test_definitions_and_hypotheses_are_of_every_run(closing):
    run, x = closing.unwritten_constant("run", Run), closing.kernel.integers("x")
    other = closing.kernel.constant("other", Run)
    value = closing.function_of([run], "value", INT, INT)
    twice, twice_is = closing.define("twice", [x], value(x) + value(x))
    grows = closing.suppose("values_grow", [x], value(x + 1) > value(x))
    so = closing.prove(
        "twice_grows", twice(x + 1) > twice(x), (), [grows, twice_is, twice_is.at(x=x + 1)]
    )
    assert so.at(run=other).goal is (twice.symbol(other, x + 1) > twice.symbol(other, x))


def test_what_is_of_no_run_has_no_argument_more(closing):
    closing.unwritten_constant("run", Run)
    x = closing.kernel.integers("x")
    plain, _ = closing.define("plain", [x], x + 1)
    assert plain(x).args == (x,)


def test_recursions_and_choices_have_the_run_as_an_argument(closing):
    run, (x, n) = closing.unwritten_constant("run", Run), closing.kernel.integers("x n")
    value = closing.function_of([run], "value", INT, INT)
    sums, start, then = closing.recursion("sums", [], n, IntVal(0), lambda before: before() + value(n))
    assert sums(n).args == (run, n) and then.at(n=IntVal(0)) and start.goal is (sums(IntVal(0)) == 0)
    found = some(closing.as_kernel, "positive", [], [x], value(x) > 0)
    assert found.holds.args == (run,)


def test_in_a_given_run_what_is_proved_is_of_that_run(closing):
    run, x = closing.unwritten_constant("run", Run), closing.kernel.integers("x")
    value = closing.function_of([run], "value", INT, INT)
    made = closing.kernel.function("made", INT, Run)(x)
    inside = closing.where((run, made))
    inside.suppose("it_is_itself", [x], value(x) == x)
    (said,) = (each for each in closing.kernel.theorems if each.name == "it_is_itself")
    assert said.goal is (value.symbol(made, x) == x)
    assert inside.prove("so", value(x) >= x, (), [said]).goal is (value.symbol(made, x) >= x)
    with pytest.raises(ValueError, match="run has one here"):
        inside.define("twice", [x], value(x) + value(x))


def test_what_has_a_value_keeps_it_where_something_else_gets_one(closing):
    run, x = closing.unwritten_constant("run", Run), closing.kernel.integers("x")
    odd = closing.unwritten_constant("odd", INT)
    value = closing.function_of([run, odd], "value", INT, INT)
    made = closing.kernel.function("made", INT, Run)(x)
    inside = closing.where((run, made)).where((odd, x + 1))
    assert inside.suppose("it_is_odd", [x], value(x) == x).goal is (value.symbol(made, x + 1, x) == x)


def test_some_are_found_where_there_are_any():
    k = Kernel("some")
    x, y, z = k.integers("x y z")
    pair = some(k, "a_pair", [z], [x, y], And(x > 0, y > x, y < z))
    assert k.prove("there_is_one", pair.holds, [z >= 3], [pair.shown.at(x=1, y=2)])
    first, second = pair.found
    assert k.prove("they_are_apart", second > first, [pair.holds], [pair.serves])
    with pytest.raises(KernelError, match="not proved"):
        k.prove("there_is_always_one", pair.holds, (), [pair.shown.at(x=1, y=2)])
    assert k.prove("none_is_too_small", Not(pair.holds), [z <= 2], [pair.serves])
