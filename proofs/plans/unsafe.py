"""K6's compositions: what devices have after each, and what they should have.

On two axes of two devices, in fractions or in terms, by the specification's definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from proofs.meaning.sharpness import choose, every, holds, nonzero
from proofs.trusted.terms import Term, ToReal
from spec.devices.operators import PerDevice, owners, sliced, summed
from spec.meaning import conditions
from spec.models.training import clip_by_norm

A, B = AXES = ("a", "b")
SIZE = 2  # of each of the two axes
DEVICES = tuple(product(range(SIZE), repeat=len(AXES)))
OWNER = 0  # along each axis, of the element in question


def _named(letter: str) -> str:
    """An unknown of each device."""
    return " ".join(f"{letter}{i}{j}" for i, j in DEVICES)


def _each(values: tuple[Any, ...]) -> PerDevice:
    """What each device has."""
    table = dict(zip(DEVICES, values, strict=True))
    return lambda device: table[device[A], device[B]]


def _total(n: Any, terms: Callable[[Any], Any]) -> Any:
    return sum(terms(i) for i in range(n))


def _over(value: PerDevice, *axes: str) -> PerDevice:
    """Summed along one axis after the other: the specification's all-reduce."""
    for axis in axes:
        value = summed(value, axis, SIZE, _total)
    return value


def _plus(one: PerDevice, other: PerDevice) -> PerDevice:
    return lambda device: one(device) + other(device)


def _everyone(value: PerDevice, expected: Any) -> Any:
    """Every device has what is expected."""
    devices = (dict(zip(AXES, d, strict=True)) for d in DEVICES)
    return every(*(holds(conditions.gradient_integrity(True, value(d), expected)) for d in devices))


Claimed = tuple[Any, Any]  # that the first implies the second


def wrong_group(*g: Any) -> Claimed:
    """Summed along one axis of two."""
    return True, _everyone(_over(_each(g), A), sum(g))


def double_reduction(*g: Any) -> Claimed:
    """Summed along one axis, then along both."""
    return every(*nonzero(sum(g))), _everyone(_over(_each(g), A, A, B), sum(g))


def superset_of_the_group(*g: Any) -> Claimed:
    """Each device has the gradient of its whole group along one axis; summed along both."""
    groups = _over(_each(g), B)
    return every(*nonzero(sum(g))), _everyone(_over(groups, A, B), sum(g))


def accumulated_after_reduction(*gh: Any) -> Claimed:
    """Two micro-steps, what is added up so far summed along one axis after each."""
    g, h = _each(gh[:4]), _each(gh[4:])
    return True, _everyone(_over(_plus(_over(g, B), h), B, A), sum(gh))


def tied_after_reduction(*gh: Any) -> Claimed:
    """The second use's gradient added when the first's is summed along one axis."""
    g, h = _each(gh[:4]), _each(gh[4:])
    return True, _everyone(_over(_plus(_over(g, B), h), A), sum(gh))


def mean_along_one_axis(*g: Any) -> Claimed:
    """A mean along one axis, a sum along the other, where the loss is a mean over both."""
    mean = _over(_each(tuple(x / SIZE for x in g)), A, B)
    return every(*nonzero(sum(g))), _everyone(mean, sum(g) / len(DEVICES))


def counts_along_one_axis(*gc: Any) -> Claimed:
    """Gradients summed along both axes, over counts of tokens summed along one."""
    g, c = _each(gc[:4]), _each(gc[4:])
    counted = every(*nonzero(sum(gc[:4])), *(count >= 1 for count in gc[4:]))
    divided: PerDevice = lambda d: _over(g, A, B)(d) / _over(c, A)(d)  # noqa: E731
    return counted, _everyone(divided, sum(gc[:4]) / sum(gc[4:]))


def norm_along_one_axis(g00: Any, g11: Any, norm: Any) -> Claimed:
    """Each device has one element, two of them 0; the square norm is summed along one axis only.

    So the norm by which a device clips, at 1, is the size of its own or the other's element there.
    """
    g = (g00, 0 * g00, 0 * g11, g11)
    squares = _each(tuple(x * x for x in g))
    along, over_both = _over(squares, A), _over(squares, A, B)({})
    small = [x for v in (g00, g11, norm) for x in (v > 0, v < 6)]
    roots = [along({B: 0}) == g00 * g00, along({B: 1}) == g11 * g11, over_both == norm * norm]
    pairs = [(_real(x), _real(norm)) for x in (g00, g11)]
    alike = (clip_by_norm(x, x, 1, choose) == clip_by_norm(x, whole, 1, choose) for x, whole in pairs)
    return every(*small, *roots), every(*alike)


def gathered_along_the_other_axis(old: Any, new: Any) -> Claimed:
    """Updated where the owner along one axis is, taken from the owner along the other."""
    moved = sliced(lambda _: new, B, OWNER, choose, lambda _: old)
    return every(*nonzero(old - new)), _everyone(owners(moved, A, OWNER), new)


def shard_offset_of_the_other_axis(old: Any, new: Any) -> Claimed:
    """Updated where the owner along the other axis is, taken from the owner along its own."""
    updated = sliced(lambda _: new, A, OWNER, choose, lambda _: old)
    return every(*nonzero(old - new)), _everyone(owners(updated, B, OWNER), new)


def _real(number: Any) -> Any:
    return ToReal(number) if isinstance(number, Term) else number


UNSAFE: dict[str, tuple[Callable[..., Claimed], str]] = {
    "wrong_group": (wrong_group, _named("g")),
    "double_reduction": (double_reduction, _named("g")),
    "superset_of_the_group": (superset_of_the_group, _named("g")),
    "accumulated_after_reduction": (accumulated_after_reduction, f"{_named('g')} {_named('h')}"),
    "tied_after_reduction": (tied_after_reduction, f"{_named('g')} {_named('h')}"),
    "mean_along_one_axis": (mean_along_one_axis, _named("g")),
    "counts_along_one_axis": (counts_along_one_axis, f"{_named('g')} {_named('c')}"),
    "norm_along_one_axis": (norm_along_one_axis, "g00 g11 norm"),
    "gathered_along_the_other_axis": (gathered_along_the_other_axis, "old new"),
    "shard_offset_of_the_other_axis": (shard_offset_of_the_other_axis, "old new"),
}
WHOLE_NUMBERS = ("norm_along_one_axis",)  # whose counterexample needs exact roots
