"""E5 and E6: optimizers and data that hide a fault, and a norm that is not the whole gradient's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from proofs.meaning.sharpness import choose
from psem_model.audit.refutations.noted import Noted, Rows, root
from psem_model.audit.refutations.registry import Shown, Values, refutes
from psem_model.audit.refutations.two_devices import (
    ADAM,
    APPLIES,
    DIVERGES,
    MATCHES,
    READS,
    REJECTED,
    TWIN,
    ZERO2,
    before_update,
    early_view,
    fault,
    is_right,
    moved_first,
    run,
    sample,
    scaled,
)
from psem_model.simulator.arithmetic import Array
from spec.language.schedule import Buffer, Kind, Op, Phase, Schedule
from spec.models import training
from spec.plans.placement import BATCH

Rule = Callable[[Any, Any], Any]


def adam(weight: Any, gradient: Any, first: Any = 0, second: Any = 0, step: int = 0) -> Any:
    """Adam with epsilon = 0 and the proof's betas; step by step, with the bias corrections."""
    half = Fraction(1, 2)
    first, second = training.adam_moments(first, second, gradient, half, half)
    known = 1 - half ** (step + 1)
    return training.adam_weight(weight, first / known, root(second / known), 1, 0), first, second


class Adam(Noted):
    """Adam with its moments in buffers. Notes the weights, too."""

    moments, starts_at_zero = 2, True

    def __init__(self, start: Any) -> None:
        super().__init__(start)
        self.weights: list[Rows] = []

    def next(self, weight: Array, moments: Array, gradient: Array, step: int) -> tuple[Array, Array]:
        weight, *after = np.frompyfunc(adam, 5, 3)(weight, gradient, *moments, step)
        self.weights.append(weight.tolist())
        return weight, np.stack(after)


HIDES = "adam_without_epsilon_hides_a_scale"


@refutes(
    "E5",
    "sign_sgd_hides_the_size_of_a_gradient",
    lambda w, g: w - training.sign(g, choose),
)
@refutes(
    "E5",
    "clipping_hides_what_is_above_the_bound",
    lambda w, g: w - training.clip_value(g, 1, choose),
)
@refutes("E5", HIDES, lambda w, g: adam(w, g)[0])
def an_optimizer_hides_a_wrong_sum_that_gradient_descent_shows(values: Values, rule: Rule) -> Shown:
    wrong, steps = scaled(values["applied"] / values["whole"]), [sample(offset0=values["whole"])]
    notes, shows = Noted(values["weight"], rule=rule), Noted(values["weight"])
    ran = run(wrong, steps, notes)
    hidden = notes.applied, notes.whole
    return Shown(
        ran.messages,
        {
            MATCHES: ran.matches,
            REJECTED: fault(wrong) == "whole",
            APPLIES: hidden == ([[[values["applied"]]] * 2], [[[values["whole"]]]]),
            "the sum is wrong": wrong != scaled(1),
            "with gradient descent it diverges": not run(wrong, steps, shows).matches,
            TWIN: is_right(scaled(1), steps, Noted(values["weight"], rule=rule)),
        },
    )


@refutes("E5", HIDES)
def adam_hides_a_scale_at_every_step_though_its_moments_differ(values: Values) -> Shown:
    wrong, steps = scaled(values["applied"] / values["whole"]), [sample(offset0=values["whole"])] * 4
    notes = Adam(values["weight"])
    ran = run(wrong, steps, notes, policy=ADAM)
    devices, single = notes.weights[::2], notes.weights[1::2]
    return Shown(
        ran.messages,
        {
            "every step's weights are the single device's": devices == [rows * 2 for rows in single]
            and len(single) == len(steps),
            "the moments differ": ran.divergence is not None
            and ran.divergence.state == "optimizer state",
            REJECTED: fault(wrong, ADAM) == "whole",
            TWIN: is_right(scaled(1), steps, Adam(values["weight"]), policy=ADAM),
        },
    )


@refutes("E5", "a_constant_gradient_hides_stale_reads")
def a_constant_gradient_hides_a_stale_read_that_another_shows(values: Values) -> Shown:
    notes, steps, stale = Noted(values["seen"]), moved_first(values), early_view(BATCH)
    ran, sloped = run(stale, steps, notes), moved_first(values, slope1=1)
    return Shown(
        ran.messages,
        {
            MATCHES: ran.matches,
            REJECTED: fault(stale) == "fresh",
            READS: notes.seen[1] == [[values["start"]], [values["seen"]]],
            "what is read is stale": values["start"] != values["seen"],
            APPLIES: notes.applied[1] == [[values["applied"]]] * 2,
            "a gradient with a slope shows it": not run(stale, sloped, Noted(values["seen"])).matches,
            TWIN: is_right(early_view(), sloped, Noted(values["seen"])),
        },
    )


def clipped(*between: Op) -> Schedule:
    """ZeRO-2 that clips by a norm, with operations between the shards' norms and clipping."""
    gradients, norm, update = Buffer.GRADIENTS, Buffer.NORM, Phase.UPDATE
    square = Op(Kind.SQUARE_NORM, update, gradients, norm, within=(BATCH,))
    clip = Op(Kind.CLIP, update, gradients, by=norm, within=(BATCH,))
    return replace(before_update(ZERO2, square, *between, clip), training=training.Training(clip=True))


@refutes("E6", "local_norms_clip_differently")
def clipping_by_the_norm_of_the_own_shard(values: Values) -> Shown:
    g, norm, zeros = [values["g0"], values["g1"]], values["norm"], [[0, 0], [0, 0]]
    steps, notes, right = [[(zeros, [g, [0, 0]])]], Noted(Fraction(0)), Noted(Fraction(0))
    summed = clipped(Op(Kind.ALL_REDUCE, Phase.UPDATE, Buffer.NORM, axes=(BATCH,)))
    ran = run(clipped(), steps, notes, psi=2)
    twin = is_right(summed, steps, right, psi=2)
    by_own = [[[training.clip_by_norm(x, x, 1, choose)] for x in g]]
    by_whole = [[[training.clip_by_norm(x, norm, 1, choose)] for x in g]]
    return Shown(
        ran.messages,
        {
            DIVERGES: not ran.matches,
            REJECTED: fault(clipped()) == "whole",
            TWIN: twin,
            APPLIES: notes.applied == by_own,
            "the twin clips by the whole norm": right.applied == by_whole,
        },
    )
