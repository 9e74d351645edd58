"""Devices on axes: they have coordinates, and so have owners of elements (claim K1)."""

from __future__ import annotations

from typing import Any

from proofs.checking.groups import Groups, Mesh
from proofs.checking.symbols import BOOL, INT, Element
from proofs.trusted.kernel import Bool
from proofs.trusted.terms import And, If, Implies, Or, ToReal


class Coordinates(Mesh):
    """Devices on any number of axes. Each line is along one of them: a group is the devices that differ
    along it; a norm is along any of them.

    along(d, a): the coordinate of device d on axis a. moved(d, a, c): the device that has coordinate c
    there, and the others as d. owner_along(a, j): the coordinate of the owners of element j. adds(t,
    a): whether norm t adds up slices of a weight along axis a.
    """

    def __init__(self, l: Any) -> None:
        k, n, t, d, i, c, j = l.k, l.n, l.t, l.d, l.i, l.c, l.j
        self.k, self.n, self.d, self.i, self.j = k, n, d, i, j
        self.a, self.x = k.integers("a x")
        a, x = self.a, self.x
        self.axes = k.fixed("axes", INT)
        self.axis, self.devices = (k.function(name, INT, INT) for name in ("axis", "devices_along"))
        self.along = k.function("along", INT, INT, INT)
        self.moved = k.function("moved", INT, INT, INT, INT)
        self.owner_along = k.function("owner_along", INT, Element, INT)
        self.apart = k.function("apart", INT, INT, INT)
        owner = self.owner_along(a, j)
        self.on_axes = k.suppose(
            "devices_and_owners_are_on_axes",
            [t, d, a, j],
            And(
                n >= 1,
                And(self.axis(t) >= 0, self.axis(t) < self.axes),
                And(owner >= 0, owner < self.devices(a)),
                Implies(self.is_device(d), self.is_coordinate(self.along(d, a), a)),
            ),
        )
        there = self.moved(d, a, c)
        self.moves = k.suppose(
            "devices_of_a_group_differ_along_its_axis",
            [d, a, c, x],
            Implies(
                And(self.is_device(d), self.is_axis(a), self.is_coordinate(c, a)),
                And(self.is_device(there), self.along(there, x) == If(x == a, c, self.along(d, x))),
            ),
        )
        where = self.apart(d, i)
        self.apart_is = k.suppose(
            "devices_differ_along_an_axis",
            [d, i],
            Implies(
                And(self.is_device(d), self.is_device(i)),
                Or(d == i, And(self.is_axis(where), self.along(d, where) != self.along(i, where))),
            ),
        )
        self._groups(t, c)
        self._groups_of_norms(l.of_weight, t, c)

    def is_device(self, d: Any) -> Bool:
        return And(d >= 0, d < self.n)

    def is_axis(self, a: Any) -> Bool:
        return And(a >= 0, a < self.axes)

    def is_coordinate(self, c: Any, a: Any) -> Bool:
        return And(c >= 0, c < self.devices(a))

    def size_of(self, a: Any) -> Any:
        """How many devices there are along an axis, as a real number."""
        return ToReal(self.devices(a))

    def _groups(self, t: Any, c: Any) -> None:
        """What T2 says of groups of devices."""
        k, n, d, j = self.k, self.n, self.d, self.j
        axis = self.axis(t)
        self.size, self.size_is = k.define("group_size", [t], self.devices(axis))
        self.member, self.member_is = k.define("member", [t, d, c], self.moved(d, axis, c))
        self.coordinate, coordinate_is = k.define("coordinate", [t, d], self.along(d, axis))
        self.owner, self.owner_is = k.define("owner_in_group", [t, d, j], self.owner_along(axis, j))
        self.places_of = [coordinate_is, self.owner_is]
        facts = [self.on_axes.at(a=axis), self.moves.at(a=axis), self.size_is, self.member_is]
        self.inside = k.prove(
            "groups_are_of_devices", self.are_devices(n, t, d, c, j), (), [*facts, self.owner_is]
        )

    def _groups_of_norms(self, of_weight: Any, t: Any, c: Any) -> None:
        """What T2 says of groups whose slices a norm adds up, which may differ along several axes."""
        k, d, j, x = self.k, self.d, self.j, self.x
        self.adds = of_weight("adds_along", INT, INT, BOOL)
        norms = self.of_norms = Groups(k, of_weight, self.n, t, d, c, j, "norm_")
        owner = self.along(norms.with_element(t, d, j), x)
        self.owners_in_norms = k.suppose(
            "slices_of_norms_are_owners",
            [t, d, j, x],
            Implies(And(self.is_device(d), self.adds(t, x)), owner == self.owner_along(x, j)),
        )
