"""K1: coordinates and device numbers correspond one to one, and groups partition the mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proofs.claim import claim
from proofs.tools.sums import products
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, BoolSort, If, Implies, IntSort, IntVal, Or
from spec.devices.hierarchy import device_number, next_stride
from spec.devices.mesh import first_element

INT, BOOL = IntSort(), BoolSort()
Coordinate = Callable[[Any], Any]  # of one device, along the axis of that index


class _Mesh:
    """Axes 0, 1, ... from the innermost, of any sizes, and their strides."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.a, self.b = k.integers("a b")
        size = self.size = k.function("size", INT, INT)
        self.some = k.suppose("axes_have_devices", [self.a], size(self.a) >= 1)
        self.stride, self.first, self.then = k.recursion(
            "stride", [], self.a, IntVal(1), lambda before: next_stride(before(), size(self.a))
        )
        self.products = products(k)
        times, product = self.products.times, self.products.rule
        here, a = self.stride(self.a), self.a
        self.wider = k.prove(
            "strides_are_products",
            self.stride(a + 1) == times(size(a), here),
            given=[a >= 0],
            uses=[self.then, product.at(multiple=size(a), unit=here)],
        )

    def numbered(self, name: str, at: Coordinate, on_mesh: Theorem, *params: Any) -> _Numbered:
        """The numbers of a device on its first so many axes: each is one of as many devices."""
        k, a = self.k, self.a
        symbol, start, then = k.recursion(
            name,
            params,
            a,
            IntVal(0),
            lambda before: device_number(before(*params), at(a), self.stride(a)),
        )
        laws, stride = self.products, self.stride(a)
        places = k.prove(
            f"{name}_is_places_of_a_stride",
            symbol(*params, a + 1) == laws.times(at(a), stride) + symbol(*params, a),
            given=[a >= 0],
            uses=[then, laws.rule.at(multiple=at(a), unit=stride)],
        )
        inside = k.induct(
            f"{name}_is_among_the_devices",
            a,
            And(symbol(*params, a) >= 0, symbol(*params, a) < stride),
            base=[start, self.first],
            step=[
                *(places, self.wider, on_mesh, laws.none.at(unit=stride)),
                laws.in_order.at(multiple=at(a), larger=self.size(a), unit=stride),
                laws.in_order.at(multiple=0, larger=at(a), unit=stride),
            ],
        )
        return _Numbered(lambda axes: symbol(*params, axes), start, then, places, inside)

    def device(self, name: str) -> tuple[Coordinate, Theorem]:
        """Any device: a coordinate on each axis."""
        at = self.k.function(name, INT, INT)
        inside = And(at(self.a) >= 0, at(self.a) < self.size(self.a))
        return at, self.k.suppose(f"{name}_is_on_the_mesh", [self.a], inside)


class _Numbered:
    """A device's number on its first so many axes."""

    def __init__(
        self, upto: Callable[[Any], Any], start: Any, then: Any, places: Any, inside: Any
    ) -> None:
        self.upto, self.start, self.then, self.places, self.inside = upto, start, then, places, inside


@claim("K1")
def device_numbers_are_a_bijection(k: Kernel) -> tuple[Theorem, ...]:
    """Coordinates and device numbers correspond one to one, on any number of axes of any sizes.

    And devices have the same first device along some axes, the one whose coordinates are 0 there,
    exactly if they differ on those axes only. So the groups along any set of axes are the classes of
    a function: they partition the mesh. (Claim K1; design 2.1)
    """
    return (
        *_one_to_one(k.part("one_to_one"), None),
        _onto(k.part("onto")),
        *_one_to_one(k.part("groups"), "along"),
    )


def _one_to_one(k: Kernel, along: str | None) -> tuple[Theorem, ...]:
    """Equal numbers have equal coordinates. With a set of axes: those of the first devices along it."""
    mesh = _Mesh(k)
    a, b = mesh.a, mesh.b
    group = k.function(along, INT, BOOL) if along else None

    def at_first(device: Coordinate) -> Coordinate:
        if group is None:
            return device
        return lambda axis: If(group(axis), IntVal(0), device(axis))

    (here, on_mesh), (there, also) = mesh.device("here"), mesh.device("there")
    one = mesh.numbered("number_here", at_first(here), on_mesh)
    two = mesh.numbered("number_there", at_first(there), also)
    here_is, there_is = at_first(here), at_first(there)
    in_order = mesh.products.in_order.at(unit=mesh.stride(a))
    last = k.prove(
        "equal_numbers_have_equal_last_coordinates",
        here_is(a) == there_is(a),
        given=[a >= 0, one.upto(a + 1) == two.upto(a + 1)],
        uses=[
            *(one.places, two.places, one.inside, two.inside),
            in_order.at(multiple=here_is(a), larger=there_is(a)),
            in_order.at(multiple=there_is(a), larger=here_is(a)),
        ],
    )
    same = k.induct(
        "equal_numbers_have_equal_coordinates",
        a,
        Implies(b < a, here_is(b) == there_is(b)),
        given=[b >= 0, one.upto(a) == two.upto(a)],
        step=[last, one.then, two.then],
    )
    if group is None:
        return one.inside, same
    differ = k.suppose("they_differ_along_these_axes_only", [a], Or(group(a), here(a) == there(a)))
    alike = k.induct(
        "devices_that_differ_only_there_have_one_first_device",
        a,
        one.upto(a) == two.upto(a),
        base=[one.start, two.start],
        step=[one.then, two.then, differ],
    )
    only = k.prove(
        "devices_of_one_first_device_differ_only_there",
        Or(group(b), here(b) == there(b)),
        given=[b >= 0, b < a, one.upto(a) == two.upto(a)],
        uses=[same],
    )
    return alike, only


def _onto(k: Kernel) -> Theorem:
    """Every number below the number of devices is some device's: that of its digits."""
    mesh = _Mesh(k)
    a, size, stride = mesh.a, mesh.size, mesh.stride
    d = k.integers("d")
    rest, rest0, rest1 = k.recursion("rest", [d], a, d, lambda before: before(d) / size(a))

    def digit(axis: Any) -> Any:
        return rest(d, axis) - first_element(rest(d, axis + 1), size(axis))

    in_range = k.prove(
        "digits_are_coordinates",
        And(digit(a) >= 0, digit(a) < size(a)),
        given=[a >= 0],
        uses=[rest1, mesh.some],
    )
    made = mesh.numbered("number_of_digits", digit, in_range, d)
    so_far = k.induct(
        "digits_and_the_rest_make_the_number",
        a,
        device_number(made.upto(a), rest(d, a), stride(a)) == d,
        base=[made.start, rest0, mesh.first],
        step=[made.then, mesh.then],
    )
    return k.prove(
        "every_number_is_that_of_its_digits",
        made.upto(a) == d,
        given=[a >= 0, d >= 0, d < stride(a)],
        uses=[so_far, made.inside],
    )
