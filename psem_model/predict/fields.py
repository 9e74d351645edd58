"""What of a profile a plan's step depends on, and what the states of its weights do.

A step is derived, and states are counted, by these fields alone: where profiles have them alike, so are
the steps, and the states.
"""

from __future__ import annotations

from spec.models.profiles import TEXTBOOK, Profile

# fields that are read where a step is derived, and nowhere else
OF_STEPS = frozenset(
    (
        *("again", "stores", "widths", "in_full", "scales_in_full", "repeats", "rows"),
        *("rows_as_computed", "as_computed", "views", "maximum", "merged", "overwritten", "apart"),
        *("held", "gathers_again", "holds", "at_once", "rings_in_full", "held_units"),
        *("each", "waits_staged", "uses", "sums_first", "stays"),
    )
)
READ_FOR_STEPS = OF_STEPS | {
    *("inside", "whole", "composes", "masks", "heads_alike", "routes", "weighs_within"),
    *("waits_whole", "sums_whole", "units", "padding"),
}
READ_FOR_WEIGHTS = frozenset(
    (
        *("units", "padding", "prefetch", "buckets", "copies", "unpadded", "uneven", "fills"),
        *("whole_gradients", "like_gradients", "waits_whole", "adds_alone", "step_counts"),
        *("elements_a_device", "placeholders"),
    )
)


def for_steps(profile: Profile) -> Profile:
    """What steps are derived by: the textbook, otherwise where these read it."""
    return _only(profile, READ_FOR_STEPS)


def for_weights(profile: Profile) -> Profile:
    """What the states of weights are counted by: the textbook, otherwise where these read it."""
    return _only(profile, READ_FOR_WEIGHTS)


def _only(profile: Profile, names: frozenset[str]) -> Profile:
    given = vars(profile)
    return Profile(**{**vars(TEXTBOOK), **{name: given[name] for name in names}})
