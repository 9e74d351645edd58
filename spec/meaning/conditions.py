"""What it means to match a single device, and the two conditions that decide it.

A run is described per step t, device d, element j and sample x:

    copy(t, d)[j], state(t, d)[j]   the parameter and optimizer value that d stores, if it does
    seen(t, x)                      the parameters that the device working on sample x read
    applied(t, d)[j]                the gradient that d applies, if it updates j
    left(t, d)[j]                   what d's update of j leaves, if it updates j
    theta(t)[j], omega(t)[j]        the single device's parameter and optimizer value
    current(t)[j]                   the run's own parameter: the copy on the device that owns j

Each condition is a pair (when, then): it holds if `when` implies `then`. None mentions another:
gradient integrity is about what is summed, state consistency about what is read and kept.
"""

from __future__ import annotations

from typing import Any

Condition = tuple[Any, Any]


def match(stored: Any, ours: Any, single: Any) -> Condition:
    """Match: a stored copy of an element equals the single device's, at every step.

    Init is the same before the first step, of initial values.
    """
    return stored, ours == single


def agreement(stored: Any, other_stored: Any, ours: Any, other: Any) -> Condition:
    """State consistency, of what is kept: two stored copies of an element are equal."""
    return [stored, other_stored], ours == other


def freshness(read: Any, seen: Any, current: Any) -> Condition:
    """State consistency, of what is read: it is the run's current parameters, all of them."""
    return read, seen == current


def progress(updated: Any, current: Any, left: Any) -> Condition:
    """State consistency, from step to step: what is current next is what an update of the step left."""
    return updated, current == left


def gradient_integrity(updates: Any, applied: Any, every_sample_once: Any) -> Condition:
    """Gradient integrity: what is applied is every sample's gradient once, with its weight.

    `every_sample_once` is the weighted sum over the batch of the gradients as they were computed,
    each at the parameters its device had read.
    """
    return updates, applied == every_sample_once
