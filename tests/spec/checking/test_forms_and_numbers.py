"""Values that have the same normal form are the same numbers, however they were made."""

from itertools import product
from random import Random

import pytest

from spec.checking.algebra import Algebra
from spec.language.schedule import Buffer as B
from spec.language.schedule import Kind, Op, Phase, Rest, Schedule
from spec.models.states import MIXED_ADAM, State

PRIME = 2**61 - 1
MESHES = [({"batch": 3}, 5), ({"batch": 4}, 4), ({"dp": 2, "cp": 3}, 4)]


class Numbers:
    """Each device's values of elements, two owned by each device, in numbers modulo a prime."""

    def __init__(self, sizes):
        self.axes, self.sizes = tuple(sizes), tuple(sizes.values())
        self.devices = [*product(*map(range, self.sizes))]
        self.owner = [device for device in self.devices for _ in range(2)]
        self.zero = self.each(lambda j, d: 0)

    def each(self, value):
        return {(j, d): value(j, d) % PRIME for j in range(len(self.owner)) for d in self.devices}

    def group(self, d, a):
        return [(*d[:a], i, *d[a + 1 :]) for i in range(self.sizes[a])]

    def taker(self, j, a, shift):
        return (self.owner[j][a] - shift) % self.sizes[a]

    def sum(self, value, axis):
        a = self.axes.index(axis)
        return self.each(lambda j, d: sum(value[j, e] for e in self.group(d, a)))

    def owners(self, value, axis, shift=0):
        a = self.axes.index(axis)
        return self.each(lambda j, d: value[j, self.group(d, a)[self.taker(j, a, shift)]])

    def replace(self, old, new, axes, shift=0):
        along = [self.axes.index(axis) for axis in axes]

        def owns(j, d):
            return all(d[a] == self.taker(j, a, shift) for a in along)

        return self.each(lambda j, d: (new if owns(j, d) else old)[j, d])

    def square_norm(self, value):
        return self.each(lambda _, d: sum(value[j, d] ** 2 for j in range(len(self.owner))))

    def clip(self, value, norm):
        return self.each(lambda j, d: value[j, d] * pow(norm[j, d] + 12345, 3, PRIME))


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


@pytest.mark.parametrize(("sizes", "most"), MESHES)
def test_whatever_is_done_to_a_gradient_the_same_form_is_the_same_numbers(sizes, most):
    axes = tuple(sizes)
    shifted = Op(Kind.KEEP, Phase.UPDATE, B.FRESH, B.GRADIENTS, within=axes, shift=1)
    schedule = Schedule(axes, tuple((state, Rest()) for state in State), (), (shifted,))
    forms = Algebra(schedule, sizes, 1, MIXED_ADAM, None, dict.fromkeys(axes, 0), True)
    numbers, random = Numbers(sizes), Random(7)
    own = forms.symbol("gradient", 0), numbers.each(lambda *_: random.randrange(PRIME))
    found, compared = {}, 0
    for whole in (False, True):
        first = own
        for axis in axes if whole else ():
            first = forms.sum(first[0], axis), numbers.sum(first[1], axis)
        now = [first]
        for _ in range(most):
            then = []
            for way, (form, value) in product(ways(axes), now):
                made = way(forms, form, first[0]), way(numbers, value, first[1])
                seen = tuple(frozenset(forms.at(made[0], p).items()) for p in forms.device_kinds())
                same = found.setdefault(seen, made[1])
                assert same == made[1]
                compared += same is not made[1]
                then += [made] if same is made[1] else []
            now = then[:150]
    assert compared > 100
