"""The weights of one embedding, layer or head, as axes cut them: what their states depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from spec.costs.memory import Vector
from spec.costs.model_costs import Indices, elements
from spec.devices.layouts import Lies
from spec.devices.mesh import Device
from spec.language.programs import Program
from spec.models.profiles import Padding, Profile, made_by, rows_of
from spec.models.states import State
from spec.models.values import Value
from spec.numbers.arithmetic import Number

NOWHERE: Device = MappingProxyType({})  # no place is asked about: slices are padded


@dataclass(frozen=True)
class CutWeight:
    """A weight, and how it lies. `rows`, `made`: the indices that are its rows, and that it makes."""

    value: Value
    lies: Lies
    rows: tuple[str, ...]
    made: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Its indices that are no rows."""
        return tuple(index for index in self.value.indices if index not in self.rows)


@dataclass(frozen=True)
class PartWeights:
    """Those of a part, in its order. `joined`: names of weights that are one array."""

    cut: tuple[CutWeight, ...]
    joined: tuple[tuple[str, ...], ...]
    indices: Indices
    mesh: Mapping[str, Number]

    @cached_property
    def named(self) -> dict[str, CutWeight]:
        """Each by its name."""
        return {of.value.name: of for of in self.cut}

    @cached_property
    def parameters(self) -> dict[str, Number]:
        """Elements of each weight."""
        return {name: self.elements_of(of, of.value.indices) for name, of in self.named.items()}

    def beside(self, name: str, state: State, profile: Profile, place: Device) -> Number:
        """Elements of a state of a weight that the device at a place has beyond its padded slice.

        Fewer than none, where it has its own alone.
        """
        weight, has = self.named[name], self.parameters[name]
        if name in profile.wholes.get(state, ()):
            return elements(weight.value, {}, self.indices, self.mesh) - has
        is_whole = state is State.GRADIENTS and profile.waits_whole
        if is_whole or state in profile.unpadded:
            return self.elements_of(weight, weight.value.indices, place) - has
        return self.own_columns(weight, place) - has if profile.uneven else 0

    def own_columns(self, weight: CutWeight, place: Device) -> Number:
        """Elements of a weight's padded rows, and of those of its other indices that a device has.

        (DTensor's slices of rows are parts of padded ones; others are copies, unless they are empty.)
        """
        columns = weight.columns
        own = self.elements_of(weight, columns, place) or self.elements_of(weight, columns)
        return self.elements_of(weight, weight.rows) * own

    def vector(self, name: str, padding: Padding, place: Device = NOWHERE) -> Vector:
        """A weight as it is cut: into elements, or into rows, of which a device at a place has its own.

        (DTensor's slices along another axis are not padded, and are cut on.)
        """
        if padding is not Padding.ROW:
            return Vector(self.parameters[name])
        weight = self.named[name]
        row = self.elements_of(weight, weight.columns, place)
        return Vector(self.elements_of(weight, weight.rows, place), row)

    def arrays(self, names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        """Some weights in their order: those that are one array together, with the first of them."""
        some = [*names]
        found = {name: [each for each in of if each in some] for of in self.joined for name in of}
        return tuple(dict.fromkeys(tuple(found.get(name, [name])) for name in some))

    def array(self, names: Iterable[str], padding: Padding, place: Device = NOWHERE) -> Vector:
        """Weights that are one array, as it is cut: beside each other along what they make."""
        first, *others = names
        vectors = [self.vector(name, padding, place) for name in (first, *others)]
        if not others:
            return vectors[0]
        weight = self.named[first]
        if padding is not Padding.ROW or weight.rows == weight.made:
            return replace(vectors[0], rows=sum(vector.rows for vector in vectors))
        return replace(vectors[0], row=sum(vector.row for vector in vectors))

    def elements_of(
        self, weight: CutWeight, indices: tuple[str, ...], place: Device = NOWHERE
    ) -> Number:
        """How many elements a device has of some of a weight's indices; at a `place`, of its own."""
        value = weight.value
        some = value if indices == value.indices else replace(value, indices=indices)
        return elements(some, weight.lies, self.indices, self.mesh, place)


def weights_of(program: Program, indices: Indices, mesh: Mapping[str, Number]) -> PartWeights:
    """Those of a program's part."""
    part = program.part
    cut = (
        CutWeight(weight, program.lies[weight], rows_of(weight, part), made_by(weight, part))
        for weight in part.weights
    )
    return PartWeights(tuple(cut), part.arrays, indices, mesh)
