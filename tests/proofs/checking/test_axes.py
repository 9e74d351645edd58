"""T4's mesh exists: what is supposed of devices on axes is so of 2 x 3 devices, and of one."""

from itertools import product
from math import prod

import pytest

from proofs.checking.comparisons import Comparisons
from proofs.checking.representation import Represented
from proofs.checking.symbolic_checker import CheckedLanguage
from proofs.trusted.kernel import Kernel
from tests.support.mesh_values import Devices


@pytest.mark.parametrize("sizes", [(1,), (3,), (2, 3), (1, 2, 2)])
def test_what_is_supposed_of_a_mesh_is_so_of_a_mesh(sizes):
    mesh, devices = CheckedLanguage(Kernel("axes")).mesh, Devices(*sizes)
    numbers = range(-1, prod(sizes) + 1)
    supposed = {
        mesh.on_axes: "tdaj",
        mesh.moves: "dacx",
        mesh.apart_is: "di",
        mesh.firsts_are: "jx",
        mesh.of_norms.inside: "tdcj",
        mesh.owners_in_norms: "tdjx",
    }
    for theorem, names in supposed.items():
        for weight, *values in product((0, 1), *(numbers for _ in names)):
            variables = {"weight": weight, **dict(zip(names, values, strict=True))}
            assert devices.value(theorem.goal, variables), (str(theorem.goal), variables)
    for alike, d, i, j, x in product((False, True), *[range(prod(sizes))] * 3, range(-1, 3)):
        variables = {"alike": alike, "d": d, "i": i, "j": j, "x": x}
        assert devices.value(mesh.sources_are.goal, variables), variables


@pytest.mark.slow
def test_comparisons_are_at_places_that_there_are():
    k = Kernel("places")
    language = Represented(k)
    language.follows()
    Comparisons(language)
    there_is = next(theorem for theorem in k.theorems if theorem.name == "there_is")
    for f, p, size in product(range(-1, 4), range(-1, 4), range(1, 5)):
        variables = {"at_f": f, "at_p": p, "size": size}
        named = {0: [0], 1: [0, 1]}.get(f if size > 1 or f == 0 else -1)
        expected = named is not None and (p in named or (p == 2 and size > len(named)))
        assert Devices(size).value(there_is.goal.args[1], variables) == expected, variables
