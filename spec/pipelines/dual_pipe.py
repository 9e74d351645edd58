"""DualPipeV's rounds: a stage has two chunks, which take turns.

A micro-batch passes the p stages up, and back down through their second chunks: a V. Each chunk runs
forwards and backwards in turn, as a stage of 1F1B with 2p stages does. DualPipe runs two such
pipelines, fed from both ends, on twice as many devices. (DeepSeek-V3, arXiv 2412.19437, section 3.2.1;
github.com/deepseek-ai/DualPipe)

In a round a stage runs a forward of its first chunk, a backward and a forward of its second, and a
backward of its first, as far as there are any: the first chunk's cotangents come back over the stages
after, a round for each. Rounds before 0 are the warm-up.
"""

from __future__ import annotations

from spec.numbers.arithmetic import Number


def rounds_before(stages: Number, stage: Number) -> Number:
    """Rounds of the warm-up: a forward of the first chunk each, as many as chunks come after it."""
    return 2 * stages - 1 - stage


def rounds_without(stages: Number, stage: Number) -> Number:
    """Rounds, from 0 on, in which the first chunk waits for its first cotangent: the stages after."""
    return stages - 1 - stage


def first_in_warm_up(stages: Number, stage: Number, number: Number) -> Number:
    """The micro-batch of the first chunk's forward in a round before 0."""
    return number + rounds_before(stages, stage)


def forward_of_first(stages: Number, stage: Number, number: Number) -> Number:
    """That in a round in which the first chunk does not wait."""
    return first_in_warm_up(stages, stage, number) - rounds_without(stages, stage)


def backward_of_second(number: Number) -> Number:
    """The micro-batch of the second chunk's backward."""
    return number


def forward_of_second(stage: Number, number: Number) -> Number:
    """That of its forward: one more than the chunks after it, ahead of the backward."""
    return number + stage + 1


def backward_of_first(stages: Number, stage: Number, number: Number) -> Number:
    """That of the first chunk's backward."""
    return number - rounds_without(stages, stage)


def works_of_round(stages: int, stage: int, number: int) -> list[tuple[bool, int, int]]:
    """Whether each work is a forward, of which chunk, and of which micro-batch, if there is one."""
    found = [
        (False, 1, backward_of_second(number)),
        (True, 1, forward_of_second(stage, number)),
        (False, 0, backward_of_first(stages, stage, number)),
    ]
    if number < 0:
        found.insert(0, (True, 0, first_in_warm_up(stages, stage, number)))
    elif number >= rounds_without(stages, stage):
        found.insert(0, (True, 0, forward_of_first(stages, stage, number)))
    return found
