"""What `psem check` finds of a file or of a strategy."""

from __future__ import annotations

from dataclasses import replace

from psem_model.check.steps import Checked, check_product
from psem_model.predict.asked import Asked
from psem_model.predict.cuts import copied, require_cut, require_experts, require_placed
from psem_model.reading import words
from psem_model.reading.meshes import mesh_of
from psem_model.reading.products import Expression, is_file, parse
from psem_model.reading.shapes import is_shape, kind_of, small, transformer
from psem_model.text.errors import BadInput
from spec.models.states import BytePolicy


def verdict(
    file: str,
    devices: str | None,
    accumulate: str | None,
    policy: str | None,
    **shape: str | bool | None,
) -> Checked:
    """The verdict on a step in a file, or on a strategy. Raises BadInput."""
    asked = Asked("check", file, devices=devices, model=shape)
    steps = None if accumulate is None else words.count("--accumulate", accumulate, "micro-steps")
    kind = None if policy is None else words.policy(policy)
    if not is_file(file):
        return _check_strategy(asked, file, steps, kind)
    from psem_model.check.files import check_file

    asked.refuse(shape, "with a file", "it with a strategy, such as tp(8)")
    of_axes = None if devices is None else lambda axes: words.mesh(devices, axes)
    return check_file(file, of_axes, steps, kind)


def _check_strategy(
    asked: Asked,
    text: str,
    micro_steps: int | None,
    policy: BytePolicy | None,
) -> Checked:
    """Check a product of strategies: programs, stages and the schedule of every weight.

    Raises BadInput.
    """
    found = _parsed(text)
    sizes = mesh_of(found, asked.devices) if asked.devices is not None or found.sizes else None
    kind, known = kind_of(asked.shape), is_shape(asked.shape)
    if known:
        model = transformer({"sequence": "1", **asked.shape})  # places to learn: any number
        if sizes is not None:
            found, sizes = copied(found, sizes, model)
            require_cut(found, sizes, model)
    else:
        model = small(kind, any("e" in axis.weights for axis in found.product.cuts))
    require_experts(found, model.experts)
    checked = check_product(found.text, found.product, model, sizes, micro_steps, policy)
    require_placed(found, checked.step)
    return replace(checked, layers=kind, experts=bool(model.experts), of_a_kind=not known)


def _parsed(text: str) -> Expression:
    try:
        return parse(text)
    except BadInput as error:
        or_a_file = "; or a file, but there is none of this name" if text.isidentifier() else ""
        raise BadInput(f"{error}{or_a_file}") from None
