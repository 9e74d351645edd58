"""The run that is made of what a verdict found wrong: it diverges, and in the simulator too."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.checking.judged_schedules import STEPS
from proofs.checking.operation_lines import NotCovered
from proofs.checking.witnesses import broken_schedules, meant, operation
from proofs.trusted.terms import KernelError
from psem_model.check.made_runs import Made, Square, Value, made_for
from psem_model.check.replay import replay
from psem_model.check.runs import Case, diverging
from psem_model.reading.schedules import read
from psem_model.text.places import EXAMPLES
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Monomial, Span
from spec.meaning.reference import first_divergence
from spec.models.states import MIXED_ADAM, POLICIES
from spec.models.training import Loss
from spec.plans.strategies import STRATEGIES
from tests.support.damage import damaged, with_one_fault
from tests.support.examples import examples, few
from tests.support.fragment import Replayed, sizes_of
from tests.support.schedules import PIECES, placements, rewrite, with_mean

ON_TWO, UNIT = {"batch": 2}, Span.UNIT


def first_made(schedule, sizes, micro_steps=1, policy=MIXED_ADAM):
    """The first run that is made for a rejection and diverges."""
    verdict = check(schedule, sizes, micro_steps, policy)
    assert not verdict.accepted
    found = diverging(schedule, sizes, micro_steps, policy, verdict)
    assert found.made is not None
    return found


def in_the_simulator(schedule, sizes, micro_steps, policy, found):
    parameters, steps = Case(sizes, micro_steps).parameters, found.divergence.step + 1
    run = found.divergence, found.losses, found.data
    return replay(schedule, sizes, micro_steps, parameters, policy, steps, *run)


# ------------------------------------------------------------ it diverges
@st.composite
def damaged_placements(draw):
    """Derived schedules with a few faults, of pieces whose lines T4 has; and micro-steps."""
    named = st.sampled_from([*STRATEGIES.values()])
    placement = draw(st.one_of(placements(), named, placements(2)))
    piece = draw(st.sampled_from(["plain", "mean", "token mean", "loss scale", "clipping"]))
    return draw(damaged(PIECES[piece](schedule_of(placement)))), draw(st.integers(1, 3))


def is_of_the_fragment(schedule, micro_steps):
    try:
        return Replayed(schedule, micro_steps).is_of_the_fragment
    except (NotCovered, KernelError):  # T4 has no such lines, or, of a norm, another verdict
        return False


@examples(200)
@given(damaged_placements())
def test_of_what_is_rejected_in_t4s_fragment_the_run_that_is_made_diverges(drawn):
    """And so it does in the simulator."""
    schedule, micro_steps = drawn
    sizes = sizes_of(schedule)
    verdict = check(schedule, sizes, micro_steps)
    if verdict.accepted or verdict.rule == "room" or verdict.step >= STEPS:
        return
    if is_of_the_fragment(schedule, micro_steps):
        found = first_made(schedule, sizes, micro_steps)
        assert in_the_simulator(schedule, sizes, micro_steps, MIXED_ADAM, found)


@pytest.mark.parametrize("name", few(STRATEGIES))
@pytest.mark.parametrize("piece", PIECES)
def test_of_a_strategy_with_one_fault_a_run_is_made_that_diverges_in_the_simulator_too(name, piece):
    for faulty in with_one_fault(PIECES[piece](schedule_of(STRATEGIES[name]))):
        sizes = dict.fromkeys(faulty.axes, 2)
        verdict = check(faulty, sizes, 2)
        if not verdict.accepted and verdict.rule != "room":
            found = first_made(faulty, sizes, 2)
            assert in_the_simulator(faulty, sizes, 2, MIXED_ADAM, found)


@pytest.mark.parametrize("broken", broken_schedules(), ids=lambda broken: broken.name)
def test_of_t3s_broken_schedules_that_keep_weights_a_run_is_made(broken):
    verdict = check(broken.schedule, ON_TWO, broken.micro_steps)
    found = diverging(broken.schedule, ON_TWO, broken.micro_steps, MIXED_ADAM, verdict)
    assert found.made or found.divergence.has is None


def test_of_what_is_accepted_no_made_run_diverges():
    """Nor of any schedule one that is made for another: what is right is so whatever the model."""
    odd = Value("sample", 0, 0, (1,)), Value("start"), Value("moment"), Value("tied", 0, 0, (0,))
    square = Square(Value("sample", 1, 0, (1,)), of_activations=False)
    for piece in PIECES.values():
        for name in ("dp", "zero1", "zero2", "zero3"):
            schedule = piece(schedule_of(STRATEGIES[name]))
            for made in (Made((value,), square, Value("tokens", 0, 0, (1,))) for value in odd):
                kept = {"data": made.data, "losses": made, "micro_steps": 2}
                assert first_divergence(schedule, ON_TWO, **kept) is None


# ------------------------------------------------------------ which one it is
def without(name, kind):
    return rewrite(schedule_of(STRATEGIES[name]), lambda op: [op] * (op.kind is not kind))


def test_where_a_sum_is_left_out_the_gradient_of_another_device_is_missing():
    """Device 0 applies its own alone: of gradient descent, -1 is then 0."""
    found = first_made(without("dp", Kind.ALL_REDUCE), ON_TWO)
    assert found.made == Made((Value("sample", 0, 0, (1,)),))
    where = found.divergence
    assert (where.place.device, where.has, where.single) == ((0,), 0, -1)


def test_where_a_micro_step_is_left_out_it_is_of_that_one():
    """Each overwrites what the one before left: the last is there, the first is not."""
    dp = schedule_of(STRATEGIES["dp"])
    reset = operation(Kind.RESET, Buffer.GRADIENTS)
    forward, *others = dp.micro_step
    forgets = rewrite(dp, lambda op: [reset, op] if op == forward else [op])
    assert others
    found = first_made(forgets, ON_TWO, 3)
    assert found.made.odd == (Value("sample", 0, 0, found.made.odd[0].device),)
    assert (found.divergence.has, found.divergence.single) == (0, -1)


def test_where_updated_weights_are_not_sent_a_gradient_makes_them_other_weights():
    """On the device that owns an element they are new, on the other they are as at first."""
    found = first_made(without("zero1", Kind.ALL_GATHER), ON_TWO)
    assert found.made == Made((Value("sample", 0, 0, (0,)),))
    assert (found.divergence.has, found.divergence.single) == (0, -1)


def doubled_view():
    """Data parallelism whose backward reads the sum of both devices' parameters: twice each."""
    dp, parameters, view = schedule_of(STRATEGIES["dp"]), Buffer.PARAMETERS, Buffer.VIEW
    summed = operation(Kind.ALL_REDUCE, parameters, view, axes=dp.axes, span=UNIT)
    return rewrite(
        dp,
        lambda op: (
            [summed, operation(Kind.BACKWARD, view, Buffer.GRADIENTS)]
            if op.kind is Kind.BACKWARD
            else [op]
        ),
    )


def test_where_a_backward_reads_wrong_weights_the_loss_of_its_samples_is_a_square():
    """Weights are 1; read twice, each of the two elements is off by 1: a gradient of 2."""
    found = first_made(doubled_view(), ON_TWO)
    square = found.made.square
    assert found.made.odd == (Value("start"),)
    assert (square.of, square.of_activations) == (Value("sample", 0, 0, (0,)), False)
    assert found.divergence.single - found.divergence.has == 2


def test_such_a_square_is_least_at_the_single_devices_weights():
    """What is right of it is 0, at any step: the single device has the weights of a linear loss."""
    dp, gradient = schedule_of(STRATEGIES["dp"]), Value("sample", 0, 0, (1,))
    square = Square(Value("sample", 1, 0, (0,)), of_activations=False)
    for schedule in (dp, with_mean(dp)):
        linear, curved = Made((gradient,)), Made((gradient,), square)
        runs = (kept(schedule, made) for made in (linear, curved))
        assert next(runs) == next(runs)


def kept(schedule, made):
    from spec.meaning.reference import run

    rows = run(schedule, ON_TWO, 3, data=made.data, losses=made)
    return [(row.step, row.state, row.has, row.single) for row in rows]


def test_where_local_counts_are_divided_by_one_device_has_more_tokens():
    """The mean of both devices' means is half of each gradient over its own number of tokens."""
    schedule = read(str(EXAMPLES / "token_mean_local_counts.toml"))
    found = first_made(schedule, ON_TWO)
    (odd,), tokens = found.made.odd, found.made.tokens
    assert (odd.what, odd.device) == ("sample", tokens.device)
    assert schedule.training.loss is Loss.TOKEN_MEAN
    assert (found.divergence.has, found.divergence.single) == (Fraction(-1, 4), Fraction(-1, 3))


def test_where_nothing_is_known_all_that_is_known_is_0():
    found = first_made(without("zero3", Kind.ALL_GATHER), ON_TWO)
    assert found.made.odd == ()
    assert str(found).startswith("all that is known is 0; ")
    assert found.divergence.single == 0


def test_what_is_off_only_beside_a_norm_is_shown_by_a_gradient_beside_it():
    """A wrong view's norm clips what is right: that is not 0, and neither is what is read wrong."""
    dp, view, fresh = schedule_of(STRATEGIES["dp"]), Buffer.VIEW, Buffer.FRESH
    forward, backward = dp.micro_step
    summed = operation(Kind.ALL_REDUCE, Buffer.PARAMETERS, view, axes=dp.axes, span=UNIT)
    wrong = (
        operation(Kind.FORWARD, view, Buffer.ACTIVATIONS),
        operation(Kind.BACKWARD, view, fresh, span=UNIT),
        operation(Kind.ALL_REDUCE, fresh, axes=dp.axes),
        operation(Kind.SQUARE_NORM, fresh, Buffer.NORM),
        operation(Kind.RELEASE, fresh),
    )
    schedule = meant(
        rewrite(
            dp,
            lambda op: {
                backward: [backward, summed, *wrong],
                dp.finish[0]: [op, operation(Kind.CLIP, Buffer.GRADIENTS, by=Buffer.NORM)],
            }.get(op, [op]),
        ),
        clip=True,
    )
    assert forward in schedule.micro_step
    odd = first_made(schedule, ON_TWO).made.odd
    assert len(odd) == 2 and odd[0] == Value("start") and odd[1].what == "sample"


def test_a_run_is_looked_for_where_what_is_wrong_is_dropped():
    """An update of what is not there leaves parameters that the next micro-step's backward reads."""
    dp = schedule_of(STRATEGIES["dp"])
    off = operation(Kind.SCALE, Buffer.GRADIENTS, by=Monomial(Fraction(-1)))
    turned = rewrite(dp, lambda op: [op, off] if op.kind is Kind.ALL_REDUCE else [op])
    verdict = check(turned, ON_TWO)
    found = diverging(turned, ON_TWO, 1, MIXED_ADAM, verdict, most=0)
    assert found.made is None and "all else is 0" not in str(found)


# ------------------------------------------------------------ in words
def test_a_made_run_says_what_is_1_and_of_which_samples():
    of = Value("sample", 1, 2, (0, 3))
    of_it = "device (0,3)'s samples in micro-step 3 of step 2"
    square, tokens = Square(of, False), Value("tokens", 1, 2, (0, 3))
    of_two, least = "have 2 tokens, all others 1", "least at the single device's weights"
    said = {
        Made(): "all that is known is 0",
        Made((Value("start"),)): "the first weights are 1, all else is 0",
        Made((Value("moment", element=1),)): "element 1 of the first moments are 1, all else is 0",
        Made((of,)): f"the gradient of {of_it} is 1, all else is 0",
        Made((), square): f"all that is known is 0; the loss of {of_it} is a square, {least}",
        Made((of,), None, tokens): f"the gradient of {of_it} is 1, all else is 0; {of_it} {of_two}",
    }
    assert {made: str(made) for made in said} == said


def test_a_made_run_for_a_program_names_step_micro_step_and_device():
    of = Value("tied", 1, 2, (0, 3))
    found = Made((Value("start"), of)).json()
    named = {"what": "tied", "element": None, "step": 2, "micro_step": 3, "device": [0, 3]}
    assert found["are_1"] == [{"what": "start", "element": None}, named]
    assert (found["is_2"], found["square"]) == (None, None)


def test_of_a_verdict_in_words_no_run_is_made():
    """No copy of the weights is kept: there is nothing to compare."""
    from spec.plans.placement import on_batch

    schedule = schedule_of(on_batch("M", "M", "R", "S"))
    verdict = check(schedule, ON_TWO, 1, POLICIES["mixed-adam"])
    assert not [*made_for(schedule, ON_TWO, 1, verdict)]
