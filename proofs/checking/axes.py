"""A mesh of any number of axes: devices have coordinates, and so have owners of elements (claim K1)."""

from __future__ import annotations

from typing import Any

from proofs.checking.axis_tables import EVERYBODY, NAMED_FIRST, OWN, REST, SELF
from proofs.checking.coordinates import Coordinates
from proofs.checking.lines import OWNER
from proofs.checking.symbols import BOOL, INT, Element, first_of, place_of
from proofs.trusted.kernel import Theorem
from proofs.trusted.terms import And, ArraySort, BoolVal, If, Implies, IntVal, Not, Store

BY_AXIS = ArraySort(INT, INT)


def source_of(alike: Any, device: Any, of: Any, owner: Any) -> Any:
    """Whose value it is that a device sees along an axis: that of device `of`, or of all alike."""
    other = If(of == 0, IntVal(NAMED_FIRST), If(of == device, IntVal(SELF), IntVal(REST)))
    return If(alike, IntVal(EVERYBODY), If(of == owner, IntVal(OWN), other))


class Axes(Coordinates):
    """Devices on axes, and where they are from an element's owner.

    is_cut(b, a): whether place b holds slices along axis a, if it holds slices.

    Of an element, and as one of three numbers for each axis: firsts(j) where the first device is, seen
    from the owner, places(d, j) where device d is. sources(alike, d, i, j): whose value d sees.
    """

    def __init__(self, l: Any) -> None:
        super().__init__(l)
        self.alike, self.p = l.alike, l.p
        self._puts(l.word, l.o)
        self.is_cut = self.k.function("is_cut", INT, INT, BOOL)
        self._by_axis()
        self._slices(l.b)
        self._slices_of_norms(l.t)

    def _puts(self, array: Any, o: Any) -> None:
        """put(array, a, o): the array with o for axis a. A function of its own name, and its laws."""
        k, a, x = self.k, self.a, self.x
        self.put, put_is = k.define("put", [array, a, o], Store(array, a, o))
        self.put_read = k.prove(
            "what_is_put_is_there",
            self.put(array, a, o)[x] == If(x == a, o, array[x]),
            (),
            [put_is],
        )
        (r, y), read = k.integers("r other_axis"), self.put_read
        self.r = r
        at_y = {"x": y}

        def same(name: str, one: Any, other: Any, facts: list[Theorem], given: Any = ()) -> Theorem:
            return k.extend(name, k.prove(f"{name}_everywhere", one[y] == other[y], given, facts), y)

        self.put_in_vain = same(
            "what_is_there_is_put_in_vain",
            self.put(array, a, array[a]),
            array,
            [read.at(o=array[a], **at_y)],
        )
        first, then = self.put(array, a, o), self.put(array, x, r)
        self.put_in_any_order = same(
            "two_are_put_in_any_order",
            self.put(first, x, r),
            self.put(then, a, o),
            [
                read.at(word=first, a=x, o=r, **at_y),
                read.at(**at_y),
                read.at(word=then, **at_y),
                read.at(a=x, o=r, **at_y),
            ],
            [Not(a == x)],
        )
        self.put_twice = same(
            "what_is_put_last_stays",
            self.put(first, a, r),
            self.put(array, a, r),
            [read.at(word=first, o=r, **at_y), read.at(**at_y), read.at(o=r, **at_y)],
        )

    def _by_axis(self) -> None:
        k, d, i, j, x, alike = self.k, self.d, self.i, self.j, self.x, self.alike
        self.firsts = k.function("firsts", Element, BY_AXIS)
        self.sources = k.function("sources", BOOL, INT, INT, Element, BY_AXIS)
        owner = self.owner_along(x, j)
        self.firsts_are = k.suppose("firsts_by_axis", [j, x], self.firsts(j)[x] == first_of(owner))
        seen = source_of(alike, self.along(d, x), self.along(i, x), owner)
        self.sources_are = k.suppose(
            "sources_by_axis", [alike, d, i, j, x], self.sources(alike, d, i, j)[x] == seen
        )
        self.nowhere = k.fixed("nowhere", BY_AXIS)
        self.places_upto, self.no_places, self.more_places = k.recursion(
            "places_upto",
            [d, j],
            x,
            self.nowhere,
            lambda before: self.put(
                before(d, j), x, place_of(self.along(d, x), self.owner_along(x, j))
            ),
        )
        a = self.a
        of_place = {
            "word": self.places_upto(d, j, x),
            "o": place_of(self.along(d, x), self.owner_along(x, j)),
            "a": x,
            "x": a,
        }
        there = place_of(self.along(d, a), self.owner_along(a, j))
        placed = k.induct(
            "places_by_axis",
            x,
            Implies(And(a >= 0, a < x), self.places_upto(d, j, x)[a] == there),
            base=[],
            step=[self.more_places, self.put_read.at(**of_place)],
        )
        self.places_are = placed.at(x=self.axes, a=x)

    def places(self, d: Any, j: Any) -> Any:
        return self.places_upto(d, j, self.axes)

    def _of_owners(self, name: str, of: Any, along: Any) -> tuple[Any, Theorem, Theorem]:
        """Whether p is an owner's along those axes before x that a place, or a line, is along."""
        return self.k.recursion(
            name,
            [of, self.p],
            self.x,
            BoolVal(True),
            lambda before: And(before(of, self.p), Implies(along(of, self.x), self.p[self.x] == OWNER)),
        )

    def _slices(self, b: Any) -> None:
        """Where places have elements, if they have slices."""
        k, d, j = self.k, self.d, self.j
        self.owned, *_ = self._of_owners("is_of_owners", b, self.is_cut)
        self.holds, self.holds_is = k.define(
            "holds", [b, d, j], self.owned(b, self.places(d, j), self.axes)
        )

    def _slices_of_norms(self, t: Any) -> None:
        """Where the slices are that a norm adds up: on owners, along its axes."""
        d, i, j, x = self.d, self.i, self.j, self.x
        self.added, none, further = self._of_owners("is_added_up", t, self.adds)
        member = self.of_norms.with_element(t, i, j)
        added = self.k.induct(
            "slices_of_a_norm_are_its_owners",
            x,
            self.added(t, self.places(d, j), x),
            [self.is_device(i), d == member, x <= self.axes],
            base=[none.at(p=self.places(d, j))],
            step=[further.at(p=self.places(d, j)), self.places_are, self.owners_in_norms.at(d=i)],
        )
        self.added_are = added.at(x=self.axes)
