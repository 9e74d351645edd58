"""Every counterexample that a refuted claim carries, executed by the simulator.

Its numbers, read from the proof's own record, are put into a schedule, a model and an optimizer. Two
devices, one sample each in a micro-step, of the gradient slope * p + offset. What the devices read
and apply is noted and must be the counterexample's; the run must do what it says of it.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import isqrt

import numpy as np
import pytest

from proofs.registry import claims, prove, select
from proofs.sharpness import RATE, choose
from psem_model.simulator import Arithmetic, Floating, simulate
from psem_model.simulator.layout import Cluster
from psem_model.simulator.network import Network, all_reduce
from psem_model.simulator.store import Store
from spec import training
from spec.derive import derive
from spec.online_softmax import Reals, merge, of_block
from spec.placement import BATCH
from spec.schedule import Buffer, Factor, Kind, Op, Phase
from spec.states import POLICIES, custom_policy
from spec.strategies import STRATEGIES
from spec.verdict import check
from tests.check import test_unsafe

B, K, UPDATE = Buffer, Kind, Phase.UPDATE
MESH = {BATCH: 2}
SGD, ADAM = POLICIES["fp32-sgd"], POLICIES["fp32-adam"]
DP, ZERO1, ZERO2, ZERO3 = (derive(STRATEGIES[name]) for name in ("dp", "zero1", "zero2", "zero3"))
EXECUTED: set[tuple[str, str]] = set(test_unsafe.EXECUTED)


@cache
def counterexamples(claim):
    """By theorem name, the values that refute a claim."""
    return prove(*select([claim])).counterexamples


def executes(claim, *theorems):
    """The test runs with the values of each counterexample; `psem audit` finds it by its id."""
    cases = [(claim, theorem) for theorem in theorems]
    EXECUTED.update(cases)
    return pytest.mark.parametrize("values", cases, indirect=True, ids=map("-".join, cases))


@pytest.fixture
def values(request):
    """The values of one counterexample; E8's are floating-point numbers."""
    claim, theorem = request.param
    texts = counterexamples(claim)[theorem]
    return {name: (float if claim == "E8" else Fraction)(text) for name, text in texts.items()}


class Noted(Arithmetic):
    """Exact; weights start at a value, and each moves by a rule. Notes what is read and applied."""

    def __init__(self, start, rule=lambda w, g: training.sgd(w, g, RATE)):
        self.start, self.rule = start, np.frompyfunc(rule, 2, 1)
        self.seen, self.applied, self.whole = [], [], []  # the last by the single device

    def of(self, integers):
        return np.full(integers.shape, self.start, self.dtype)

    def clip_factor(self, square):
        return np.vectorize(lambda s: training.clip_by_norm(Fraction(1), root(s), 1, choose))(square)

    def descend(self, weight, gradient):
        (self.applied if len(gradient) == MESH[BATCH] else self.whole).append(gradient.tolist())
        return np.asarray(self.rule(weight, gradient), self.dtype)


class BitForBit(Noted, Floating):
    """In double precision, and no difference is forgiven."""

    differs = Arithmetic.differs


def root(square):
    """The exact square root of a fraction that has one."""
    found = Fraction(isqrt(Fraction(square).numerator), isqrt(Fraction(square).denominator))
    assert found * found == square
    return found


class Samples:
    """A model: for each step and micro-step (slopes, offsets), each with a row for each device."""

    in_layers = False

    def __init__(self, steps, notes):
        self.steps, self.notes = steps, notes

    def start(self, *_): ...

    def gradients(self, row, step, micro_step):
        slopes, offsets = (np.array(x, self.notes.dtype) for x in self.steps[step][micro_step])
        return slopes * row + offsets

    def forward(self, unit, view, step, micro_step):
        return view

    recompute = forward

    def backward(self, unit, view, activations, when, everyones, gathered):
        gradients = self.gradients(view, *when)
        self.notes.seen.append(np.broadcast_to(view, gradients.shape).tolist())
        return [gradients]

    def whole(self, weights, step):
        micro_steps = range(len(self.steps[step]))
        return [sum(self.gradients(weights[0], step, m)[[d]] for d in (0, 1) for m in micro_steps)]


def sample(slope0=0, offset0=0, slope1=0, offset1=0, **_):
    """A step of one micro-step, of one element."""
    return [([[slope0], [slope1]], [[offset0], [offset1]])]


def run(schedule, steps, notes, psi=1, policy=SGD):
    how = {"policy": policy, "arithmetic": notes, "model": Samples(steps, notes)}
    return simulate(schedule, MESH, psi, steps=len(steps), micro_steps=len(steps[0]), **how)


def fault(schedule, policy=SGD):
    """The rule by which the verdict rejects a schedule; nothing if it accepts it."""
    return check(schedule, MESH, policy=policy).rule


def assert_right(schedule, steps, notes, psi=1, policy=SGD):
    """The twin without the fault matches, and is accepted."""
    assert run(schedule, steps, notes, psi, policy).matches and not fault(schedule, policy)


def before_update(schedule, *ops):
    at = [o.kind for o in schedule.finish].index(K.UPDATE)
    return replace(schedule, finish=(*schedule.finish[:at], *ops, *schedule.finish[at:]))


def scaled(factor):
    """Data parallelism that multiplies the sum by a number before it is applied."""
    return before_update(DP, Op(K.SCALE, UPDATE, B.GRADIENTS, by=Factor(Fraction(factor))))


def early_view(*within):
    """Data parallelism that reads a view of the parameters, taken before the update, then again, but
    only `within` the own slice: of one element, the second device reads what was before the update.
    """
    ops = (replace(o, source=B.VIEW) if o.source is B.PARAMETERS else o for o in DP.micro_step)
    again, early = (Op(K.KEEP, UPDATE, B.PARAMETERS, B.VIEW, within=axes) for axes in (within, ()))
    return replace(before_update(DP, early), micro_step=(again, *ops))


def moved_first(v, **others):
    """The step described, after one that moves the weight from `seen` to `start`, whatever is read."""
    return sample(offset0=(v["seen"] - v["start"]) / RATE), sample(**v, **others)


def clipped(*between):
    """ZeRO-2 that clips by a norm, with operations between the shards' norms and clipping."""
    norm = Op(K.SQUARE_NORM, UPDATE, B.GRADIENTS, B.NORM, within=(BATCH,))
    clip = Op(K.CLIP, UPDATE, B.GRADIENTS, by=B.NORM, within=(BATCH,))
    return replace(before_update(ZERO2, norm, *between, clip), training=training.Training(clip=True))


@executes("M8", "not_eight_times_less")
def test_zero3_on_that_many_devices_does_not_rest_in_an_eighth(values):
    def resting(schedule, n):
        psi = values["psi"] * values["psi"].denominator * n  # so that it is divisible
        policy = custom_policy(Fraction(2), Fraction(2), values["k"])
        return sum(simulate(schedule, {BATCH: n}, int(psi), policy=policy).resting.values())

    n = int(values["n"])
    assert n == values["n"] and resting(DP, n) != 8 * resting(ZERO3, n)
    assert resting(DP, 8) == 8 * resting(ZERO3, 8)


@executes("E4", "whole_sums_of_stale_gradients")
def test_whole_sums_of_gradients_at_stale_parameters_diverge(values):
    exact, steps, stale = Noted(values["seen"]), moved_first(values), early_view(BATCH)
    assert run(stale, steps, exact).divergence.step == 1 and fault(stale) == "fresh"
    assert exact.seen[1] == [[values["start"]], [values["seen"]]]
    assert exact.applied[1] == [[values["applied"]]] * 2
    assert_right(early_view(), steps, Noted(values["seen"]))


@executes("E4", "whole_sums_applied_on_one_device_only")
def test_an_update_on_one_device_that_is_not_published_diverges(values):
    wrong = replace(ZERO1, finish=tuple(o for o in ZERO1.finish if o.kind is not K.ALL_GATHER))
    exact, steps = Noted(values["start"]), [sample(**values)]
    divergence = run(wrong, steps, exact).divergence
    assert divergence.place.device == (1,) and divergence.has == values["start"]
    assert exact.seen == [[[values["start"]]] * 2]
    assert exact.applied[0][0] == exact.whole[0][0] == [values["applied"]] and fault(wrong) == "agreed"
    assert_right(ZERO1, steps, Noted(values["start"]))


@executes("E4", "fresh_equal_copies_of_a_wrong_sum")
def test_equal_copies_that_apply_a_wrong_sum_diverge(values):
    whole = sum(values[f"slope{d}"] * values["start"] + values[f"offset{d}"] for d in (0, 1))
    wrong, steps, exact = scaled(values["applied"] / whole), [sample(**values)], Noted(values["start"])
    assert not run(wrong, steps, exact).matches and fault(wrong) == "whole"
    assert exact.seen == [[[values["start"]]] * 2]
    assert exact.applied == [[[values["applied"]]] * 2] and exact.whole == [[[whole]]]
    assert_right(scaled(1), steps, Noted(values["start"]))


def adam(weight, gradient, first=0, second=0, step=0):
    """Adam with epsilon = 0 and the proof's betas; step by step, with the bias corrections."""
    half = Fraction(1, 2)
    first, second = training.adam_moments(first, second, gradient, half, half)
    known = 1 - half ** (step + 1)
    return training.adam_weight(weight, first / known, root(second / known), 1, 0), first, second


class Adam(Noted):
    """Adam with its moments in buffers. Notes the weights, too."""

    moments, starts_at_zero, weights = 2, True, ()

    def next(self, weight, moments, gradient, step):
        weight, *moments = np.frompyfunc(adam, 5, 3)(weight, gradient, *moments, step)
        self.weights = [*self.weights, weight.tolist()]
        return weight, np.stack(moments)


RULES = {
    "sign_sgd_hides_the_size_of_a_gradient": lambda w, g: w - training.sign(g, choose),
    "clipping_hides_what_is_above_the_bound": lambda w, g: w - training.clip_value(g, 1, choose),
    "adam_without_epsilon_hides_a_scale": lambda w, g: adam(w, g)[0],
}


@executes("E5", *RULES)
def test_an_optimizer_hides_a_wrong_sum_that_gradient_descent_shows(values, request):
    wrong, steps = scaled(values["applied"] / values["whole"]), [sample(offset0=values["whole"])]
    rule = RULES[request.node.callspec.params["values"][1]]
    exact = Noted(values["weight"], rule)
    assert run(wrong, steps, exact).matches and fault(wrong) == "whole"
    assert exact.applied == [[[values["applied"]]] * 2] and exact.whole == [[[values["whole"]]]]
    assert wrong != scaled(1) and not run(wrong, steps, Noted(values["weight"])).matches
    assert_right(scaled(1), steps, Noted(values["weight"], rule))


@executes("E5", "adam_without_epsilon_hides_a_scale")
def test_adam_hides_a_scale_at_every_step_though_its_moments_differ(values):
    wrong, steps = scaled(values["applied"] / values["whole"]), [sample(offset0=values["whole"])] * 4
    exact = Adam(values["weight"])
    made = run(wrong, steps, exact, policy=ADAM)
    devices, single = exact.weights[::2], exact.weights[1::2]
    assert devices == [rows * 2 for rows in single] and len(single) == len(steps)
    assert made.divergence.state == "optimizer state" and fault(wrong, ADAM) == "whole"
    assert_right(scaled(1), steps, Adam(values["weight"]), policy=ADAM)


@executes("E5", "a_constant_gradient_hides_stale_reads")
def test_a_constant_gradient_hides_a_stale_read_that_another_shows(values):
    exact, steps, stale = Noted(values["seen"]), moved_first(values), early_view(BATCH)
    assert run(stale, steps, exact).matches and fault(stale) == "fresh"
    assert exact.seen[1] == [[values["start"]], [values["seen"]]]
    assert exact.applied[1] == [[values["applied"]]] * 2 and values["start"] != values["seen"]
    assert not run(stale, moved_first(values, slope1=1), Noted(values["seen"])).matches
    assert_right(early_view(), moved_first(values, slope1=1), Noted(values["seen"]))


@executes("E6", "local_norms_clip_differently")
def test_clipping_by_the_norm_of_the_own_shard_diverges(values):
    g, norm, zeros = [values["g0"], values["g1"]], values["norm"], [[0, 0], [0, 0]]
    steps, exact, right = [[(zeros, [g, [0, 0]])]], Noted(Fraction(0)), Noted(Fraction(0))
    local, summed = clipped(), clipped(Op(K.ALL_REDUCE, UPDATE, B.NORM, axes=(BATCH,)))
    assert not run(local, steps, exact, psi=2).matches and fault(local) == "whole"
    assert_right(summed, steps, right, psi=2)
    assert exact.applied == [[[training.clip_by_norm(x, x, 1, choose)] for x in g]]
    assert right.applied == [[[training.clip_by_norm(x, norm, 1, choose)] for x in g]]


@executes("E7", "consistent_from_another_start")
def test_the_same_accepted_schedule_diverges_from_another_start(values, monkeypatch):
    exact, steps, begin = Noted(values["start"]), [sample(**values)], Store.start
    assert_right(DP, steps, Noted(values["start"]))
    copies = [np.array([[values["copy"]]])]
    monkeypatch.setattr(Store, "start", lambda store, _, *moments: begin(store, copies, *moments))
    assert not run(DP, steps, exact).matches
    assert exact.seen == [[[values["copy"]]] * 2] and exact.applied == [[[values["applied"]]] * 2]


@executes("E8", "sums_depend_on_their_order")
def test_floating_point_sums_in_another_order_diverge_in_the_last_bit(values):
    g, zeros, bits = values["g"], [[0.0], [0.0]], BitForBit(0.0)
    order = [[1.0], [g]], [[0.0], [g]]  # the first device's second sample adds exactly nothing
    divergence = run(DP, [[(zeros, offsets) for offsets in order]], bits).divergence
    assert bits.applied == [[[1.0 + (g + g)]] * 2] and bits.whole == [[[1.0 + g + g]]]
    assert abs(divergence.has - divergence.single) == np.spacing(1.0)
    exactly = [[([[0], [0]], [[Fraction(x)] for (x,) in offsets]) for offsets in order]]
    assert_right(DP, exactly, Noted(Fraction(0)))


NONLINEAR = {
    "squares_of_terms": lambda x: x * x,
    "rectified_terms": lambda x: np.maximum(x, 0),
    "products_of_terms": lambda x: x[:, :1] * x[:, 1:],
}


def reduced(terms):
    """Each device's row, after an all-reduce along the ring."""
    network, group = Network(2), Cluster(((BATCH, 2),)).group((BATCH,))
    network.serve(("finish", 0), None)
    padded = np.pad(terms, ((0, 0), (0, terms.shape[1] % 2)))
    chunks = padded.reshape(1, 2, 2, -1)
    return all_reduce(chunks, group, Arithmetic().add, network).reshape(padded.shape)


@executes("R4", *NONLINEAR)
def test_a_function_of_terms_reduces_to_something_else_than_that_of_the_reduced(values, request):
    function = NONLINEAR[request.node.callspec.params["values"][1]]
    rows = [[v for name, v in values.items() if name.endswith(d)] for d in "01"]
    terms = np.array(rows, object)  # each device's
    whole = reduced(terms)[:, : terms.shape[1]]
    assert (whole == terms.sum(0)).all()
    of_terms, of_whole = reduced(function(terms))[:, :1], function(whole)[:, :1]
    assert (of_terms != of_whole).any()


BLOCKS = {
    "sums_without_rescaling": ([0], [1], lambda block: [block.total, block.weighted]),
    "averages_of_outputs": ([0], [0, 0], lambda block: [Fraction(1, 2), block.output / 2]),
}


@executes("F5", *BLOCKS)
def test_blocks_of_keys_reduced_as_they_are_give_another_output_than_merged(values, request):
    first, second, sent = BLOCKS[request.node.callspec.params["values"][1]]
    reals = Reals(lambda power: values["base"] ** power, max)
    blocks = [
        of_block(scores, [values[v]] * len(scores), reals)
        for scores, v in ((first, "v0"), (second, "v1"))
    ]
    whole = merge(*blocks, reals).output
    keys = [values["v0"]] * len(first) + [values["v1"]] * len(second)
    assert whole == of_block([*first, *second], keys, reals).output
    total, weighted = reduced(np.array([sent(block) for block in blocks], object))[0]
    assert weighted / total != whole


def test_every_counterexample_of_every_refuted_claim_is_executed():
    refuted = [claim.id for claim in claims() if claim.expected == "refuted"]
    assert {(claim, theorem) for claim in refuted for theorem in counterexamples(claim)} == EXECUTED
    assert {claim for claim, _ in EXECUTED} == set(refuted)
