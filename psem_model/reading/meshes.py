"""Sizes of a mesh: in a product of strategies, or in --devices."""

from __future__ import annotations

from collections.abc import Sequence

from psem_model.reading import words
from psem_model.reading.products import Expression
from psem_model.text.errors import BadInput, or_nearest, quoted

OF_DEVICES = "Devices, such as 64; 8x8 for two axes."


def required(devices: str | None) -> str:
    """The number of devices, if it is given. Raises BadInput."""
    if devices is None:
        raise BadInput(f"--devices: missing; expected: {OF_DEVICES}")
    return devices


def mesh_of(found: Expression, devices: str | None) -> dict[str, int]:
    """Sizes of a product's axes: from the expression, or else from --devices, in the axes' order."""
    axes = found.product.axes
    missing = [axis for axis in axes if axis not in found.sizes]
    if not missing:
        if devices is not None:
            raise BadInput(
                f"--devices: given with {quoted(found.text)}, which says its sizes; expected one of "
                "the two"
            )
        return {axis: found.sizes[axis] for axis in axes}
    if found.sizes:
        number = next(n for n, f in enumerate(found.product.factors) if missing[0] in f.axes)
        expected = "one for each axis, such as tp(8), or none and --devices"
        expected += or_nearest(missing[0], found.sizes)
        raise found.wrong_factor(number, expected, f" without a size for {missing[0]}")
    return words.mesh(required(devices), axes, found.text)


def devices_of(plans: Sequence[Expression | None], devices: str | None) -> list[str | None]:
    """What --devices says of each of several plans: of those that do not say their sizes, as files."""
    sized = next((plan for plan in plans if plan and plan.sizes), None)
    unsized = next((plan for plan in plans if plan and not plan.sizes), None)
    if devices is None and sized and unsized:
        given = f"{quoted(unsized.text)} without sizes beside {quoted(sized.text)}"
        raise BadInput(f"strategy: given {given}; expected dp(8), say, or --devices for it")
    others = unsized or None in plans
    return [None if plan and plan.sizes and others else devices for plan in plans]
