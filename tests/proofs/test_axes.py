"""T4's mesh exists: what is supposed of devices on axes is so of 2 x 3 devices, and of one."""

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import pytest

from proofs.checking.symbolic_checker import CheckedLanguage
from proofs.trusted.kernel import Kernel

OPERATORS: dict[str, Callable[..., Any]] = {
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "=>": lambda a, b: not a or b,
    "=": lambda a, b: a == b,
    "distinct": lambda a, b: a != b,
    "and": lambda *all_of: all(all_of),
    "or": lambda *any_of: any(any_of),
    "ite": lambda said, then, otherwise: then if said else otherwise,
    "select": lambda array, index: array(index),
}


class Devices:
    """Devices of a mesh, as their coordinates; along axes that there are not, there is one."""

    def __init__(self, *sizes):
        self.sizes = sizes
        self.all = [*product(*map(range, sizes))]

    def devices_along(self, a):
        return self.sizes[a] if 0 <= a < len(self.sizes) else 1

    def along(self, d, a):
        inside = 0 <= a < len(self.sizes) and 0 <= d < len(self.all)
        return self.all[d][a] if inside else 0

    def moved(self, d, a, c):
        inside = 0 <= d < len(self.all) and 0 <= a < len(self.sizes)
        if not (inside and 0 <= c < self.devices_along(a)):
            return d
        return self.all.index((*self.all[d][:a], c, *self.all[d][a + 1 :]))

    def apart(self, d, i):
        return next((a for a in range(len(self.sizes)) if self.along(d, a) != self.along(i, a)), 0)

    def owner_along(self, a, j):
        return j % self.devices_along(a)

    def firsts(self, j):
        return lambda x: int(self.owner_along(x, j) != 0)

    def sources(self, alike, d, i, j):
        def at(x):
            here = self.along(i, x)
            others = 2 if here == self.along(d, x) else 3
            return 4 if alike else 0 if here == self.owner_along(x, j) else 1 if here == 0 else others

        return at

    def axis(self, t):
        return t % len(self.sizes)

    def value(self, term, variables):
        """What a term is, of these devices."""
        if term.op in ("number", "bool"):
            return int(term.of) if term.op == "number" else term.of
        args = [self.value(each, variables) for each in term.args]
        if term.op != "apply":
            return OPERATORS[term.op](*args)
        fixed = {"n": prod(self.sizes), "axes": len(self.sizes)}
        known = variables | fixed
        return getattr(self, term.of.name)(*args) if args else known[term.of.name]


@pytest.mark.parametrize("sizes", [(1,), (3,), (2, 3), (1, 2, 2)])
def test_what_is_supposed_of_a_mesh_is_so_of_a_mesh(sizes):
    mesh, devices = CheckedLanguage(Kernel("axes")).mesh, Devices(*sizes)
    numbers = range(-1, prod(sizes) + 1)
    supposed = {
        mesh.on_axes: "tdaj",
        mesh.moves: "dacx",
        mesh.apart_is: "di",
        mesh.firsts_are: "jx",
    }
    for theorem, names in supposed.items():
        for values in product(numbers, repeat=len(names)):
            variables = dict(zip(names, values, strict=True))
            assert devices.value(theorem.goal, variables), (str(theorem.goal), variables)
    for alike, d, i, j, x in product((False, True), *[range(prod(sizes))] * 3, range(-1, 3)):
        variables = {"alike": alike, "d": d, "i": i, "j": j, "x": x}
        assert devices.value(mesh.sources_are.goal, variables), variables
