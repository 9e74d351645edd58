"""What normal forms are called: another value by another name, and sums as they are taken."""

from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.check.words import Words
from spec.checking.forms import Forms
from spec.checking.symbols import EACH, EVERY, LAST, OWN, Multiplier, SquareNorm, Symbol, frozen
from spec.derivation.schedules import schedule_of
from spec.devices.operators import (
    ALL,
    IDENTITY,
    OTHER,
    OWNER,
    SLICE,
    SUM_ALL,
    SUM_SLICE,
    Operator,
)
from spec.models.states import MIXED_ADAM
from spec.numbers.any_size import any_size
from spec.plans.strategies import STRATEGIES

STEP = 1
OPERATORS = [
    IDENTITY,
    SUM_ALL,
    OWNER,
    SLICE,
    SUM_SLICE,
    Operator(ALL, 1),
    Operator(1, 1),
    Operator(0, 1),
]
WORDS = st.tuples(st.sampled_from(OPERATORS), st.sampled_from(OPERATORS))
ZERO1, N = schedule_of(STRATEGIES["zero1"]), any_size("n")


def words(axes=("batch",), cut=("batch",), roots=(), micro_steps=2, updated=False):
    """Words for one step of a schedule on some axes."""
    return Words(axes, cut, dict(roots), micro_steps, STEP, updated)


def of(kind="gradient", *word, step=STEP, **more):
    return Symbol(kind, step, **more), word or (IDENTITY,)


def number(*word):
    """A count of tokens, as devices have it."""
    return Multiplier("over", frozen({of("tokens", *word): 1}))


def norm(*word, varies, place=0):
    whole = frozen({of("gradient", SUM_ALL): 1})
    return of("norm", *word, made_of=SquareNorm(whole, (varies,), (place,)))


KINDS = st.sampled_from(["weight", "moment", "gradient", "tied", "tokens"])
FACTORS = st.sampled_from([(), (number(SUM_ALL, SUM_ALL),), (number(IDENTITY, SUM_ALL),)])
SYMBOLS = st.builds(
    Symbol, KINDS, st.integers(0, STEP), st.integers(0, 1), made_of=st.none(), multipliers=FACTORS
)
TIMES = st.sampled_from([-2, -1, 0, 1, 2, Fraction(1, 2), N, N - 1])
FORMS = st.dictionaries(st.tuples(SYMBOLS, WORDS), TIMES, max_size=3)


def told(form):
    """A form without what is not told: zeros, and micro-steps of what has none."""
    found = {}
    for (symbol, word), times in form.items():
        one = symbol._replace(which=0) if symbol.kind in ("weight", "moment") else symbol
        found[one, word] = found.get((one, word), 0) + times
    return {term: times for term, times in found.items() if times != 0}


@given(FORMS, FORMS)
def test_what_is_called_alike_is_alike(one, other):
    both = words(("batch", "tensor"), ("batch", "tensor"))
    for term in (*one, *other):  # pairs that differ in a term alone
        single = {term: 1}
        assert (both.describe(one) == both.describe(single)) <= (told(one) == told(single))
    assert (both.describe(one) == both.describe(other)) <= (told(one) == told(other))


A, TIED = "the device's own gradients of micro-step 1", "the tied gradients of micro-step 1 summed over"
SAID = [
    ({}, "zero"),
    ({of(): 0}, "zero"),
    ({of(): 0, of("tied", SUM_ALL): 1}, f"{TIED} batch"),
    ({of(): 1, of("tied", SUM_ALL): -1}, f"{A} - {TIED} batch"),
    ({of(): 2, of("tied", SUM_ALL): 2}, f"2 x ({A} + {TIED} batch)"),
    ({of(): N - 1}, f"(n - 1) x {A}"),
    ({of(which=EVERY): 1}, "the device's own gradients of all micro-steps"),
    ({of(which=EACH): 1}, "the device's own gradients of one micro-step"),
    ({of(which=OWN): 1}, "the device's own gradients"),
    ({of(which=LAST): 1}, "the device's own gradients of the last micro-step"),
    ({of("weight", step=STEP - 1): 1}, "last step's weights"),
    ({of("weight", step=STEP + 1): 1}, "the updated weights"),
    ({of("weight"): 1}, "the current weights"),
    (
        {of("gradient", SUM_ALL, multipliers=(number(SUM_ALL),)): 1},
        "(the gradients of micro-step 1 summed over batch) / "
        "(the tokens of micro-step 1 summed over batch)",
    ),
    (
        {of("gradient", SUM_ALL, multipliers=(number(IDENTITY),)): 1},
        "(the gradients of micro-step 1 / the device's own tokens of micro-step 1) summed over batch",
    ),
    (
        {norm(IDENTITY, varies=True): 1},
        "the square norm of (the gradients of micro-step 1 summed over batch)",
    ),
    (
        {norm(IDENTITY, varies=False): 1},
        "the square norm of a device's own slice of (the gradients of micro-step 1 summed over batch) "
        "along batch",
    ),
    (
        {norm(IDENTITY, varies=False, place=1): 1},
        "the square norm of the slice of (the gradients of micro-step 1 summed over batch) along batch "
        "that the device before owns",
    ),
]


@pytest.mark.parametrize(("form", "said"), SAID)
def test_a_form_in_words(form, said):
    assert words().describe(form) == said


def test_of_one_micro_step_it_is_not_said_which():
    assert words(micro_steps=1).describe({of(): 1}) == "the device's own gradients"


def test_what_is_summed_along_one_axis_of_two_is_in_brackets():
    form = {of("gradient", SUM_ALL, IDENTITY, multipliers=(number(IDENTITY, IDENTITY),)): 1}
    said = words(("batch", "tensor")).describe(form)
    assert said.startswith("(") and said.endswith(") summed over batch")


@pytest.mark.parametrize(
    ("cut", "place", "said"),
    [
        (True, OTHER, "outside a device's own slice along batch, "),
        (True, 0, "in a device's own slice along batch, "),
        (True, 1, "in the slice along batch that the device before owns, "),
        (False, 0, "on the first device along batch, "),
        (False, OTHER, "on all but the first device along batch, "),
    ],
)
def test_where_a_device_is_in_words(cut, place, said):
    assert words(cut=("batch",) * cut).describe_position({"batch": place}) == said


def forms(size):
    """Normal forms along an axis on which two devices have names."""
    found = Forms(ZERO1, {"batch": size}, 1, MIXED_ADAM, None, {"batch": 1}, True)
    found.step = STEP
    return found


ONE_AXIS = st.dictionaries(
    st.tuples(SYMBOLS, st.tuples(st.sampled_from(OPERATORS))), st.integers(-2, 2), max_size=4
)


@given(ONE_AXIS, st.integers(2, 5))
def test_what_a_device_has_is_what_it_would_have_if_all_had_it(form, size):
    on = forms(size)
    in_words = Words(on.axes, on.cut, on.roots, on.micro_steps, STEP)
    for position in on.device_kinds():
        alone = in_words.on(form, position)
        assert on.at(alone, position) == on.at(form, position)
        assert all(alone.values())


@given(ONE_AXIS)
def test_a_form_in_a_symbol_has_no_order(form):
    terms = [*form.items()]
    assert frozen(dict(terms)) == frozen(dict(reversed(terms)))


def test_more_than_four_terms_are_counted():
    many = {of(which=i): i + 1 for i in range(5)}
    assert words().describe(many).endswith("2 more terms")
    assert "more terms" not in words().describe(dict(islice(many.items(), 4)))
