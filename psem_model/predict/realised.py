"""Whether the system that a profile describes has states where a plan has them, and what it changes.

One rule: what is of another system than the plan is refused; what changes nothing of the plan is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from psem_model.predict.asked import Asked
from psem_model.predict.differences import beyond, is_applied
from psem_model.predict.plan import Plan
from psem_model.reading.products import NAMES, parse
from psem_model.reading.profiles import packaged, read
from psem_model.text.errors import BadInput, quoted
from spec.costs.memory import MODEL_STATES
from spec.devices.mesh import HOST
from spec.models.differences import Difference
from spec.models.profiles import Profile
from spec.models.states import State
from spec.numbers.arithmetic import Number
from spec.plans.compose import Product
from spec.plans.modes import O, R

Modes = Mapping[State, str]  # of some states along an axis, as placements write them
ON_HOST = f"+{O.value}"
ANY: Mapping[str, Number] = MappingProxyType({})  # numbers of devices
FEW = 3  # strategies that fit in a line


def modes_along(product: Product, mesh: Mapping[str, Number]) -> Iterator[Modes]:
    """The modes of the model states along each axis that a factor places them on.

    Along an axis of one device all that is on devices is alike.
    """
    for placed in (factor.states for factor in product.factors if factor.states):
        on_host = {state for state in MODEL_STATES if placed.mode(state, HOST) is O}
        for axis in placed.axes:
            modes = {state: placed.mode(state, axis) for state in MODEL_STATES}
            if mesh.get(axis) != 1 or on_host:
                yield {
                    state: f"{mode.value}{ON_HOST if state in on_host else ''}"
                    for state, mode in modes.items()
                    if mode is not None
                }


def realises(profile: Profile, product: Product, mesh: Mapping[str, Number] = ANY) -> bool:
    """Whether states are along each axis as the system has them, or replicated, and so along some.

    Gradients that wait whole for the last micro-step may be said to be so. On one device all is as any
    system has it, but for what that has on the host.
    """
    along = [*modes_along(product, mesh)]
    if not along or not profile.places:
        return not any(mode.endswith(ON_HOST) for _, mode in profile.places)
    as_there = [_is_as(profile, modes) for modes in along]
    others = (modes for modes, is_so in zip(along, as_there, strict=True) if not is_so)
    return any(as_there) and all(map(_is_replicated, others))


def _is_as(profile: Profile, modes: Modes) -> bool:
    waits = {State.GRADIENTS} if profile.waits_whole else set()
    return all(
        modes[state] == mode or (state in waits and modes[state].startswith(R.value))
        for state, mode in profile.places
    )


def _is_replicated(modes: Modes) -> bool:
    return all(mode.removesuffix(ON_HOST) == R.value for mode in modes.values())


def require_realised(asked: Asked, plans: Sequence[Plan]) -> None:
    """Raise BadInput for a profile whose system realises none of some plans."""
    profile = asked.realises
    if plans and not any(realises(profile, plan.product, plan.mesh) for plan in plans):
        raise unrealised(profile, plans[0].product, plans[0].mesh, plans[0].text)


def unrealised(profile: Profile, product: Product, mesh: Mapping[str, Number], text: str) -> BadInput:
    """What a system has otherwise than a product, what it realises, and the nearest that can."""
    able = [name for name in NAMES if _is_of_states(name) and realises(profile, parse(name).product)]
    such = f", such as {', '.join(able[:FEW])}" if able else ""
    return BadInput(
        f"--profile: given {quoted(profile.name)} with {quoted(text)}: "
        f"{otherwise(profile, product, mesh)}; expected states that it has{such}, or another profile; "
        f"nearest: {nearest_that_can(profile, product, mesh)}"
    )


def otherwise(profile: Profile, product: Product, mesh: Mapping[str, Number]) -> str:
    """What states a product has, and a profile's system, where these are not the same."""
    others = (modes for modes in modes_along(product, mesh) if not _is_as(profile, modes))
    along = min(others, key=_is_replicated, default=None)
    names = [state for state, _ in profile.places]
    other = in_words({state: along[state] for state in names}) if along else "nothing on the host"
    return f"{other}, where it has {in_words(dict(profile.places))}"


def _is_of_states(name: str) -> bool:
    found = parse(name)
    return found.is_of_states and not any(factor.over_all for factor in found.product.factors)


def in_words(modes: Modes) -> str:
    """Modes of states as they are typed."""
    return ", ".join(f"{state.value} {mode}" for state, mode in modes.items())


def nearest_that_can(profile: Profile, product: Product, mesh: Mapping[str, Number]) -> str:
    """The packaged profile that realises a placement and has most in common with another.

    Of those that have as much, one that says where it has states, and then what differs least.
    """

    def far(name: str) -> tuple[int, bool, int]:
        other = read(name)
        common = {*profile.differs} & {*other.differs}
        return -len(common), not other.places, len(other.differs) - len(common)

    return min((name for name in packaged() if realises(read(name), product, mesh)), key=far)


def without_effect(plan: Plan) -> list[str]:
    """The names that are typed of a profile without which the plan is the same, each with what it is.

    Of a file, each of its differences.
    """
    profile = plan.profile
    first, *added = profile.names
    found = []
    for name in added:
        of = _of(plan, name)
        if of and not any(_changes(plan, each) for each in of):
            found.append(f"{name} changes nothing of this plan: {of[0].what}")
    own = [each for each in _of(plan, first) if not _changes(plan, each)]
    if first not in packaged():
        found += [
            f"a difference of {profile.name} changes nothing of this plan: {each.what}" for each in own
        ]
    elif not added and profile.like and own and len(own) == len(_of(plan, first)):
        found.append(f"{first} changes nothing of this plan beyond what it is like")
    return found


def _of(plan: Plan, name: str) -> list[Difference]:
    """The differences that a profile, or an addition, of some name says."""
    return [each for each in plan.profile.differs if each.of == name]


def _changes(plan: Plan, difference: Difference) -> bool:
    """Whether the plan is another without a difference, or too little is known of the model."""
    return is_applied(plan, difference) or bool(difference in beyond(plan, ()))
