"""Any mesh: of each line of a schedule that is a symbol, the groups of devices that meet in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proofs.checking.symbols import BOOL, INT, Element
from proofs.trusted.kernel import Bool, Kernel
from proofs.trusted.terms import And, Implies


class Groups:
    """Any groups of devices: of each line which devices meet, and who of them owns an element.

    size(t): how many there are in a group. member(t, d, c): the device at coordinate c of the group of
    d. owner(t, d, j): where the owner of element j is. `of`: a word for names.
    """

    size: Any
    member: Any
    owner: Any

    def __init__(
        self,
        k: Kernel,
        function: Callable[..., Any],
        n: Any,
        t: Any,
        d: Any,
        c: Any,
        j: Any,
        of: str = "",
    ) -> None:
        self.size = function(f"{of}group_size", INT, INT)
        self.member = function(f"{of}member", INT, INT, INT, INT)
        self.owner = function(f"{of}owner", INT, INT, Element, INT)
        said = self.are_devices(n, t, d, c, j)
        self.inside = k.suppose(f"{of}groups_are_of_devices", [t, d, c, j], said)

    def are_devices(self, n: Any, t: Any, d: Any, c: Any, j: Any) -> Bool:
        """That groups are of devices, and that an owner is in each."""
        member, owner, size = self.member(t, d, c), self.owner(t, d, j), self.size(t)
        one = And(d >= 0, d < n, c >= 0, c < size)
        return And(owner >= 0, owner < size, Implies(one, And(member >= 0, member < n)))

    def with_element(self, t: Any, d: Any, j: Any) -> Any:
        """The device of a group that owns an element."""
        return self.member(t, d, self.owner(t, d, j))


class Mesh(Groups):
    """Groups of all lines, and places with slices.

    coordinate(t, d): where device d is in its group. holds(b, d, j): whether a place that has slices
    has element j on device d. of_norms: the groups whose slices of a weight a norm adds up.
    """

    of_norms: Groups

    def __init__(
        self, k: Kernel, of_weight: Callable[..., Any], n: Any, t: Any, b: Any, d: Any, c: Any, j: Any
    ) -> None:
        super().__init__(k, k.function, n, t, d, c, j)
        self.coordinate = k.function("coordinate", INT, INT, INT)
        self.holds = k.function("holds", INT, INT, Element, BOOL)
        self.of_norms = Groups(k, of_weight, n, t, d, c, j, "norm_")

    def are_devices(self, n: Any, t: Any, d: Any, c: Any, j: Any) -> Bool:
        """The same of a mesh that has a device."""
        return And(n >= 1, super().are_devices(n, t, d, c, j))
