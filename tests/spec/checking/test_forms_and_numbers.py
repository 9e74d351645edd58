"""Values that have the same normal form are the same numbers, however they were made."""

from itertools import product
from math import prod
from random import Random

import pytest

from spec.checking.algebra import Algebra
from spec.language.schedule import Buffer as B
from spec.language.schedule import Kind, Op, Phase, Rest, Schedule
from spec.meaning.reference import Reference
from spec.models.states import MIXED_ADAM, State
from tests.support.examples import slow_but

PRIME = 2**61 - 1
MESHES = [({"batch": 3}, 5), ({"batch": 4}, 4), ({"dp": 2, "cp": 3}, 4)]


class Numbers(Reference):
    """Each device's values of elements, two owned by each device, in numbers modulo a prime."""

    def clip(self, gradient, square_norm):
        return {at: x * pow(square_norm[at] + 12345, 3, PRIME) % PRIME for at, x in gradient.items()}


def modulo(values):
    return {at: x % PRIME for at, x in values.items()}


def ways(axes):
    """What may be done to a value: moves, and clips by a norm of slices of a gradient, or of it."""
    for axis in axes:
        yield lambda of, value, _, axis=axis: of.sum(value, axis)
        for shift in (0, 1):
            yield lambda of, value, _, axis=axis, shift=shift: of.owners(value, axis, shift)

            def by_part(of, value, gradient, axis=axis, shift=shift):
                part = of.square_norm(of.replace(of.zero, gradient, (axis,), shift))
                return of.clip(value, part)

            def by_sum(of, value, gradient, axis=axis, shift=shift):
                part = of.square_norm(of.replace(of.zero, gradient, (axis,), shift))
                return of.clip(value, of.sum(part, axis))

            yield from (by_part, by_sum)
    yield lambda of, value, _: of.clip(value, of.square_norm(value))


@pytest.mark.parametrize(("sizes", "most"), slow_but(MESHES[:2], MESHES))
def test_whatever_is_done_to_a_gradient_the_same_form_is_the_same_numbers(sizes, most):
    axes = tuple(sizes)
    shifted = Op(Kind.KEEP, Phase.UPDATE, B.FRESH, B.GRADIENTS, within=axes, shift=1)
    schedule = Schedule(axes, tuple((state, Rest()) for state in State), (), (shifted,))
    forms = Algebra(schedule, sizes, 1, MIXED_ADAM, None, dict.fromkeys(axes, 0), True)
    numbers, random = Numbers(schedule, sizes, 1, 2 * prod(sizes.values()), None, True, True), Random(7)
    own = forms.symbol("gradient", 0), {at: random.randrange(PRIME) for at in numbers.zero}
    found, compared = {}, 0
    for whole in (False, True):
        first = own
        for axis in axes if whole else ():
            first = forms.sum(first[0], axis), numbers.sum(first[1], axis)
        now = [first]
        for _ in range(most):
            then = []
            for way, (form, value) in product(ways(axes), now):
                made = way(forms, form, first[0]), modulo(way(numbers, value, first[1]))
                seen = tuple(frozenset(forms.at(made[0], p).items()) for p in forms.device_kinds())
                same = found.setdefault(seen, made[1])
                assert same == made[1]
                compared += same is not made[1]
                then += [made] if same is made[1] else []
            now = then[:150]
    assert compared > 100
