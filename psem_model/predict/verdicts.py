"""What `psem check` finds of a file or of a strategy."""

from __future__ import annotations

from dataclasses import replace

from psem_model.check.steps import Checked, check_product
from psem_model.predict.asked import Asked
from psem_model.predict.cuts import (
    copied,
    require_cut,
    require_cut_there,
    require_experts,
    require_placed,
)
from psem_model.predict.model_plans import fitted, require_derived, require_owned, require_textbook
from psem_model.predict.realised import ANY, realises, unrealised
from psem_model.reading import words
from psem_model.reading.meshes import mesh_of
from psem_model.reading.products import Expression, is_file, parse
from psem_model.reading.profiles import require_held
from psem_model.reading.shapes import is_own, is_shape, kind_of, model_of, small
from psem_model.text.errors import BadInput, quoted
from spec.models.states import BytePolicy
from spec.plans.model_strategies import EXPERTS


def verdict(
    file: str,
    devices: str | None,
    accumulate: str | None,
    policy: str | None,
    profile: str | None = None,
    **shape: str | bool | None,
) -> Checked:
    """The verdict on a step in a file, or on a strategy. Raises BadInput.

    Without --bytes it is for the optimizer that the profile has, or for every kind.
    """
    asked = Asked("check", file, devices=devices, policy=policy, profile=profile, model=shape)
    steps = None if accumulate is None else words.count("--accumulate", accumulate, "micro-steps")
    realises, types = asked.realises, asked.bytes
    kind = types if policy is not None or realises.policy else None
    if is_file(file):
        asked.refuse(shape, "with a file", "it with a strategy, such as tp(8)")
        found = _check_file(asked, file, steps, kind, types)
    else:
        found = _check_strategy(asked, file, steps, kind)
    return found if profile is None else replace(found, profile=realises.name)


def _check_file(
    asked: Asked, path: str, steps: int | None, policy: BytePolicy | None, types: BytePolicy
) -> Checked:
    """Check a step that a file says: of a profile the types of its states count."""
    from psem_model.check.files import check_file

    devices, profile = asked.devices, asked.realises
    of_axes = None if devices is None else lambda axes: words.mesh(devices, axes)
    found = check_file(path, of_axes, steps, policy, types)
    if not found.step.is_opaque:
        require_textbook(asked)
    if profile.differs and not profile.says_types:
        expected = "a profile with types of the states, such as fsdp2"
        asked.refuse(["profile"], f"{quoted(asked.profile)} with a schedule", expected)
    return found


def _check_strategy(
    asked: Asked,
    text: str,
    micro_steps: int | None,
    policy: BytePolicy | None,
) -> Checked:
    """Check a product of strategies: programs, stages and the schedule of every weight.

    Raises BadInput.
    """
    found, types = _parsed(text), asked.bytes
    profile = fitted(asked.realises, found.product)
    sizes = mesh_of(found, asked.devices) if asked.devices is not None or found.sizes else None
    if not realises(profile, found.product, sizes or ANY):
        raise unrealised(profile, found.product, sizes or ANY, text)
    kind, known = kind_of(asked.shape), is_shape(asked.shape)
    if is_own(asked.shape):
        require_textbook(asked, "a model of one's own")
    if known:
        model = model_of({"sequence": "1", **asked.shape})  # places to learn: any number
        if sizes is not None:
            found, sizes = copied(found, sizes, model, profile)
            require_cut(found, sizes, model, profile)
        require_held(profile, model)
    else:
        model = small(kind, any("e" in axis.weight_indices for axis in found.product.cuts))
    experts = model.sizes(1, 1).get(EXPERTS, 0)
    require_experts(found, experts)
    require_cut_there(found, model)
    with require_derived(text, profile, asked.shape):
        checked = check_product(
            found.text, found.product, model, sizes, micro_steps, policy, profile, types
        )
    require_owned(profile, checked.step)
    require_placed(found, checked.step)
    return replace(checked, layers=kind, experts=bool(experts), of_a_kind=not known)


def _parsed(text: str) -> Expression:
    try:
        return parse(text)
    except BadInput as error:
        or_a_file = "; or a file, but there is none of this name" if text.isidentifier() else ""
        raise BadInput(f"{error}{or_a_file}") from None
