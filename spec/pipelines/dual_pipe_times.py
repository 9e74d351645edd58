"""Start times of DualPipeV in closed form, where forward takes as long as backward's first part.

By the round of a stage, for rounds of which the first, or the last, works are missing too. They keep
the order and what works need where the second part takes no longer.
"""

from __future__ import annotations

from spec.numbers.arithmetic import EXACT, Arithmetic, Number
from spec.pipelines.pipeline import Pipeline


def together(pipe: Pipeline) -> Number:
    """The time of a forward and a backward that are one work."""
    return pipe.forward + pipe.backward


def warming_start(
    pipe: Pipeline, stage: Number, number: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """When the first chunk's forward of a round before 0 starts.

    At first one after the other; of the last such rounds as many as chunks have come before the second
    chunk's first, one of that in each.
    """
    with_second = arithmetic.maximum(0, number + stage + 1)
    return (2 * pipe.stages - 1 + number + with_second) * pipe.forward


def opening_start(pipe: Pipeline, stage: Number, number: Number) -> Number:
    """When the second chunk's backward starts in a round in which the first chunk waits.

    Its second part and the second chunk's forward follow.
    """
    return (2 * pipe.stages + stage) * pipe.forward + number * together(pipe)


def steady_start(pipe: Pipeline, stage: Number, number: Number) -> Number:
    """When a round of four works, or without the first, starts: two that are one, then the others."""
    rounds = 2 * number - pipe.stages + stage
    return (3 * pipe.stages + 1) * pipe.forward + pipe.of_weights + rounds * together(pipe)


def closing_round(pipe: Pipeline, stage: Number, number: Number) -> Number:
    """A round's number, from 0, among those of two backwards: one more than there are stages before."""
    return number - (pipe.micro_batches - 1 - stage)


def closing_start(
    pipe: Pipeline, stage: Number, number: Number, chunk: Number, arithmetic: Arithmetic = EXACT
) -> Number:
    """When a chunk's backward starts in such a round: the second chunk's, or, after it, the first's.

    Of these backwards half are one work with their second part, the later ones save its time.
    """
    among = closing_round(pipe, stage, number)
    since = among * (together(pipe) + pipe.backward) + (1 - chunk) * pipe.backward
    saved = arithmetic.maximum(0, 2 * among - stage - chunk) * pipe.of_weights
    return steady_start(pipe, stage, number - among) + since - saved


def last_start(pipe: Pipeline, stage: Number, number: Number) -> Number:
    """When the first chunk's backward starts in a round after the second's: after a second part."""
    begun = steady_start(pipe, 0, pipe.micro_batches - 1)
    return begun + (stage + 3 + 2 * (number - pipe.micro_batches)) * pipe.forward + pipe.of_weights


def all_first_parts_ended(pipe: Pipeline, stage: Number) -> Number:
    """When the last first part of a stage ends; second parts follow."""
    begun = steady_start(pipe, 0, pipe.micro_batches - 1)
    return begun + (2 * pipe.stages - stage) * pipe.forward + pipe.of_weights
