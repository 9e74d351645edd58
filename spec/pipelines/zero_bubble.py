"""Start times of pipelines whose backwards are in two parts: closed forms that keep all orders.

Backward is cut in two: b, the time of the cotangent of what a chunk took, which the stage before waits
for, and w, that of the gradients of its weights, for which nobody waits. ZB-H1 and ZB-H2 run forwards
and first parts in turn as 1F1B does, ZB-H2 after twice as long a warm-up, and second parts where a
stage would wait: later on later stages. (Qi et al., arXiv 2401.10241, section 2)
"""

from __future__ import annotations

from spec.numbers.arithmetic import EXACT, Arithmetic, Number
from spec.pipelines.pipeline import STRETCH, Pipeline, delay, warm_up


def behind(pipe: Pipeline, arithmetic: Arithmetic = EXACT) -> Number:
    """By how much later than the stage after a stage starts its first backward."""
    b, _ = pipe.backward_times
    return arithmetic.maximum(b, (STRETCH[pipe.order] - 1) * pipe.forward)


def first_backward(pipe: Pipeline, stage: Number, arithmetic: Arithmetic = EXACT) -> Number:
    """When a stage's first backward can start: its cotangent is there, and its warm-up is over."""
    return pipe.stages * pipe.forward + (pipe.stages - 1 - stage) * behind(pipe, arithmetic)


def last_paired(pipe: Pipeline, stage: Number) -> Number:
    """The number of the backward that follows a stage's last forward."""
    return pipe.micro_batches - 1 - warm_up(pipe, stage)


def unpaired(pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT) -> Number:
    """Backwards of a stage, up to number `unit`, that follow none of its forwards."""
    return arithmetic.maximum(0, unit - last_paired(pipe, stage))


def followed(pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT) -> Number:
    """Backwards of a stage before number `unit` that a second part and a forward follow."""
    paired = unit - unpaired(pipe, stage, unit, arithmetic)
    return arithmetic.maximum(0, paired - delay(pipe, stage))


def between_backwards(pipe: Pipeline, arithmetic: Arithmetic = EXACT) -> Number:
    """Time after each of the last backwards: of second parts, or until the next cotangent is there."""
    b, w = pipe.backward_times
    longer = behind(pipe, arithmetic) - b
    return arithmetic.maximum(w, pipe.forward - longer / STRETCH[pipe.order])


def first_part_start(
    pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """When a stage starts the first part of backward number `unit`.

    After the warm-up without a pause: with a forward each, and from the delay on with a second part
    each. Then, without forwards, as soon as the later stages let it.
    """
    b, w = pipe.backward_times
    after = unpaired(pipe, stage, unit, arithmetic)
    paired = unit - after
    waited = followed(pipe, stage, unit, arithmetic)
    return (
        first_backward(pipe, stage, arithmetic)
        + paired * (pipe.forward + b)
        + waited * w
        + after * (b + between_backwards(pipe, arithmetic))
    )


def paired_forward_start(
    pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """When a stage starts forward number `unit` after its warm-up: just before the backward it meets.

    Those of the warm-up start at `warm_up_start`.
    """
    return first_part_start(pipe, stage, unit - warm_up(pipe, stage), arithmetic) - pipe.forward


def after_the_last(
    pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """Second parts of a stage, up to number `unit`, that its last first part is not enough for."""
    return arithmetic.maximum(0, unit + delay(pipe, stage) - (pipe.micro_batches - 1))


def second_part_start(
    pipe: Pipeline, stage: Number, unit: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """When a stage starts the second part of backward number `unit`.

    As soon as as many first parts as the delay have followed its own; after the last, without a pause.
    """
    b, w = pipe.backward_times
    follows = unit + delay(pipe, stage)
    beyond = after_the_last(pipe, stage, unit, arithmetic)
    return first_part_start(pipe, stage, follows - beyond, arithmetic) + b + beyond * w
