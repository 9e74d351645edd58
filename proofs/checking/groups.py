"""Any mesh: of each line of a schedule that is a symbol, the groups of devices that meet in it."""

from __future__ import annotations

from typing import Any

from proofs.checking.symbols import BOOL, INT, Element
from proofs.trusted.kernel import Bool, Kernel
from proofs.trusted.terms import And, Implies


class Mesh:
    """Any groups of devices: of each line which devices meet, and who of them owns an element.

    size(t): how many there are in a group. member(t, d, c): the device at coordinate c of the group of
    d. coordinate(t, d): where d is. owner(t, d, j): where the owner of element j is. holds(b, d, j):
    whether a place that has slices has element j on device d.
    """

    def __init__(self, k: Kernel, n: Any, t: Any, b: Any, d: Any, c: Any, j: Any) -> None:
        self.size = k.function("group_size", INT, INT)
        self.member = k.function("member", INT, INT, INT, INT)
        self.coordinate = k.function("coordinate", INT, INT, INT)
        self.owner = k.function("owner", INT, INT, Element, INT)
        self.holds = k.function("holds", INT, INT, Element, BOOL)
        self.inside = k.suppose("groups_are_of_devices", [t, d, c, j], self.are_devices(n, t, d, c, j))

    def are_devices(self, n: Any, t: Any, d: Any, c: Any, j: Any) -> Bool:
        """That groups are of devices, and that an owner is in each."""
        member, owner, size = self.member(t, d, c), self.owner(t, d, j), self.size(t)
        one = And(d >= 0, d < n, c >= 0, c < size)
        return And(n >= 1, owner >= 0, owner < size, Implies(one, And(member >= 0, member < n)))
