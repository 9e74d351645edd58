"""Training on a single device: the model, the batch, and the usual optimizers.

Model and optimizer are any functions. gamma(theta, x)(j) is the gradient of sample x at element j,
with parameters theta. The batch's gradient is the weighted sum over its samples; the next
parameters and optimizer state of an element are a function u of its own three values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from spec.numbers.arithmetic import Number


class Loss(Enum):
    """How the batch's loss is made of its samples' losses, each with its weight."""

    SUM = "sum"
    MEAN = "mean"  # over the devices' micro-batches, each of which is a mean itself
    TOKEN_MEAN = "token mean"  # over all tokens, however many each micro-batch has


class Statistics(Enum):
    """Whose samples move a state that is not trained, such as running means, and whose copy counts."""

    ALL = "all samples"  # the mean over devices of what each one's samples add
    FIRST = "first device"  # its samples only, on every device
    COPY = "first device's copy"  # its samples only, and others have working copies of it


@dataclass(frozen=True)
class Training:
    """What one step does on a single device, beside the optimizer's update.

    `clip`: the gradient is clipped by its norm. `tied`: some parameters are used in two places, and
    backward leaves each place's gradient by itself. `statistics`: forward adds to a state that is not
    trained, of these samples; None: there is none.
    """

    loss: Loss = Loss.SUM
    clip: bool = False
    tied: bool = False
    statistics: Statistics | None = None


PLAIN = Training()


def weighted(weight: Number, gradient: Number) -> Number:
    """What one sample adds to the gradient of its batch."""
    return weight * gradient


def sgd(weight: Number, gradient: Number, rate: Number) -> Number:
    """Gradient descent, without optimizer state."""
    return weight - rate * gradient


def momentum(
    weight: Number, moment: Number, gradient: Number, rate: Number, decay: Number
) -> tuple[Number, Number]:
    """Gradient descent with momentum: the new weight and the new moment."""
    moment = decay * moment + gradient
    return weight - rate * moment, moment


def adam_moments(
    first: Number, second: Number, gradient: Number, beta1: Number, beta2: Number
) -> tuple[Number, Number]:
    """Adam's new first and second moment (Kingma and Ba, arXiv 1412.6980, algorithm 1)."""
    return (
        beta1 * first + (1 - beta1) * gradient,
        beta2 * second + (1 - beta2) * gradient * gradient,
    )


def adam_weight(weight: Number, first: Number, root: Number, rate: Number, epsilon: Number) -> Number:
    """Adam's new weight, from the bias-corrected first moment and root of the second.

    `rate` includes the bias corrections, which are the same for every element.
    """
    return weight - rate * first / (root + epsilon)


def sign(value: Number, select: Any) -> Number:
    """-1, 0 or 1: what signSGD keeps of a gradient."""
    return select(value > 0, 1, select(value < 0, -1, 0))


def clip_value(value: Number, bound: Number, select: Any) -> Number:
    """The value, held between -bound and bound."""
    return select(value > bound, bound, select(value < -bound, -bound, value))


def clip_by_norm(value: Number, norm: Number, bound: Number, select: Any) -> Number:
    """The value, scaled down so that a vector of norm `norm` gets norm at most `bound`."""
    return select(norm > bound, value * bound / norm, value)
