"""Where a plan is otherwise than by the textbook, by which differences of its profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import zip_longest

from psem_model.predict.asked import USUAL_POLICY
from psem_model.predict.fields import OF_STEPS
from psem_model.predict.model_plans import typed, uneven
from psem_model.predict.plan import Plan
from psem_model.predict.rounding import rounded
from psem_model.reading.profiles import leaving_out
from spec.derivation.steps import step_of
from spec.devices.layouts import LayoutError
from spec.models.differences import Difference
from spec.models.profiles import Profile
from spec.models.states import POLICIES, BytePolicy

OF_STATES = frozenset(  # fields of a profile that count for an opaque model
    (
        "policy",
        "gathered",
        "reduced",
        "quantised",
        "each",
        "copies",
        "sums_whole",
        "pinned",
        "starts_whole",
    )
)
NAMED = frozenset(("differs", "names", "like", "name", "title"))
NOT_APPLIED = "not applied without a model's shape and --sequence"


def differing(plan: Plan) -> tuple[Difference, ...]:
    """The differences of the profile without which a figure of the plan is another, or none can be."""
    return tuple(each for each in plan.profile.differs if is_applied(plan, each))


def is_applied(plan: Plan, difference: Difference) -> bool:
    """Whether without a difference of its profile a figure of the plan is another, or none can be."""
    number = plan.profile.differs.index(difference)
    if number not in plan.applied:
        plan.applied[number] = _is_applied(plan, difference)
    return plan.applied[number]


def _is_applied(plan: Plan, difference: Difference) -> bool:
    other = without(plan, difference)
    try:
        return not alike(plan, other) and any(
            a != b for a, b in zip_longest(figures(plan), figures(other))
        )
    except LayoutError:  # what is inside a kernel would be sent
        return True


def alike(plan: Plan, other: Plan) -> bool:
    """Whether two plans have the same figures, as they have the same step, and what their profiles
    have otherwise is read for the step alone. Others may have the same figures, too.
    """
    one, two = plan.in_plan, other.in_plan
    rest = (field.name for field in fields(Profile) if field.name not in OF_STEPS | NAMED)
    same = plan.types == other.types and all(getattr(one, n) == getattr(two, n) for n in rest)
    return same and plan.policy == other.policy and plan.derived == other.derived


def beyond(plan: Plan, applied: Sequence[Difference]) -> tuple[Difference, ...]:
    """Those that are not applied, as more would need to be known of an opaque model."""
    known = OF_STATES - ({"each"} if plan.written else set())
    others = (d for d in plan.profile.differs if plan.opaque and not d.changes & known)
    return tuple(d for d in others if d not in applied)


def realised_by(plan: Plan, profile: Profile, policy: BytePolicy) -> Plan:
    """The plan by another profile, with states of other types."""
    found = replace(plan, profile=profile, policy=profile.types(policy), beside=plan)
    if plan.written is None or plan.opaque:
        return found
    # of states, as it was given: a model's step has the textbook's values
    given = min((group.schedule for group in plan.written.groups), key=lambda s: s == s.held_whole)
    return replace(found, written=typed(step_of(given, found.parts, profile)))


def without(plan: Plan, difference: Difference) -> Plan:
    """The plan by its profile without one of its differences from the textbook.

    Types of states that are the profile's are then the usual ones.
    """
    before, policy = plan.profile, plan.policy
    profile = leaving_out(before, difference)
    own = POLICIES.get(before.policy)
    if own and not profile.policy and before.types(own) == policy:
        policy = POLICIES[USUAL_POLICY]
    return realised_by(plan, profile, policy)


def figures(plan: Plan) -> Iterator[object]:
    """What is rounded, what its parts keep and compute with, and what its stages hold and send.

    And what is cut unevenly, if it may not be. Those that take least time come first.
    """
    yield rounded(plan)
    yield () if plan.profile.uneven else uneven(plan)
    for costs in plan.costs.values():
        yield costs.activations, costs.computing
    for stage in plan.stages:
        yield stage.resting, stage.activations, stage.placeholders, stage.buckets, stage.step_counts
        yield (
            stage.waiting,
            stage.transient,
            stage.host,
            stage.host_pinned,
            stage.host_at_start,
            stage.moved,
        )
