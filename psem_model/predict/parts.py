"""What one embedding, layer or head holds and sends, on one device, for one micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from spec.costs.memory import Vector
from spec.costs.model_costs import (
    Indices,
    elements,
    elements_moved,
    fullest_moment,
    kept_bytes,
    messages,
    waiting_bytes,
    weight_elements,
)
from spec.derivation.programs import EVERYTHING, program_of
from spec.devices.layouts import LayoutError
from spec.devices.mesh import Device, group_size
from spec.language.moves import VOCABULARY, Axis, Move
from spec.language.programs import Program
from spec.language.schedule import Op
from spec.models.parts import Model
from spec.models.profiles import Padding, Profile, made_by, rows_of
from spec.models.states import State
from spec.models.transformer import Transformer
from spec.models.values import Value
from spec.numbers.arithmetic import EXACT, Number, ceil_div, quotient
from spec.pipelines import checkpoints

FORWARD, BACKWARD, AGAIN = "forward", "backward", "again"
PHASES = (FORWARD, BACKWARD, AGAIN)
NOWHERE: Device = MappingProxyType({})  # no place is asked about: slices are padded


@dataclass(frozen=True)
class Traffic:
    """What one line sends over some axes, per device, each time it runs."""

    move: Move
    axes: tuple[str, ...]
    phase: str
    messages: Number
    elements: Number
    bytes: Number
    collective: str


@dataclass(frozen=True)
class Moved:
    """What a stage's devices send in a step, for one reason."""

    what: str  # the value, or the training state
    collective: str
    axes: tuple[str, ...]
    when: str
    of: str  # which part, or which weights
    times: Number
    elements: Number  # in all
    bytes: Number
    to_host: bool = False
    op: Op | None = None  # of the states' schedule


@dataclass(frozen=True)
class PartCosts:
    """A part's program, on a mesh, with as many values of each index."""

    program: Program
    indices: Indices
    mesh: Mapping[str, Number]

    @cached_property
    def parameters(self) -> dict[str, Number]:
        """Elements of each weight."""
        found = weight_elements(self.program, self.indices, self.mesh)
        return {weight.name: size for weight, size in found.items()}

    def beside(self, name: str, state: State, profile: Profile, place: Device) -> Number:
        """Elements of a state of a weight that the device at a place has beyond its padded slice.

        Fewer than none, where it has its own alone.
        """
        weight = next(w for w in self.program.part.weights if w.name == name)
        has, lies = self.parameters[name], self.program.lies[weight]
        if name in profile.wholes.get(state, ()):
            return elements(weight, {}, self.indices, self.mesh) - has
        is_whole = state is State.GRADIENTS and profile.waits_whole
        if is_whole or state in profile.unpadded:
            return elements(weight, lies, self.indices, self.mesh, place) - has
        return self.own_columns(weight, place) - has if profile.uneven else 0

    def own_columns(self, weight: Value, place: Device) -> Number:
        """Elements of a weight's padded rows, and of those of its other indices that a device has.

        (DTensor's slices of rows are parts of padded ones; others are copies, unless they are empty.)
        """
        rows = rows_of(weight, self.program.part)
        columns = tuple(index for index in weight.indices if index not in rows)
        own = self.elements_of(weight, columns, place) or self.elements_of(weight, columns)
        return self.elements_of(weight, rows) * own

    def kept(self, profile: Profile, place: Device) -> Number:
        """Bytes kept from forward to backward by the device at a place."""
        if State.ACTIVATIONS not in profile.unpadded:
            return self.activations
        return kept_bytes(self.program, self.indices, self.mesh, place)

    def waiting(self, profile: Profile, place: Device) -> Number:
        """Bytes kept between the two parts of backward by the device at a place."""
        is_own = State.ACTIVATIONS in profile.unpadded
        return waiting_bytes(self.program, self.indices, self.mesh, place if is_own else None)

    def vector(self, name: str, padding: Padding, place: Device = NOWHERE) -> Vector:
        """A weight as it is cut: into elements, or into rows, of which a device at a place has its own.

        (DTensor's slices along another axis are not padded, and are cut on.)
        """
        size = self.parameters[name]
        if padding is not Padding.ROW:
            return Vector(size)
        weight = next(w for w in self.program.part.weights if w.name == name)
        indices = rows_of(weight, self.program.part)
        columns = tuple(index for index in weight.indices if index not in indices)
        row = self.elements_of(weight, columns, place)
        return Vector(self.elements_of(weight, indices, place), row)

    def arrays(self, names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        """Some weights in their order: those that are one array together, with the first of them."""
        some = [*names]
        found = {
            name: [each for each in of if each in some]
            for of in self.program.part.arrays
            for name in of
        }
        return tuple(dict.fromkeys(tuple(found.get(name, [name])) for name in some))

    def array(self, names: Iterable[str], padding: Padding, place: Device = NOWHERE) -> Vector:
        """Weights that are one array, as it is cut: beside each other along what they make."""
        first, *others = names
        vectors = [self.vector(name, padding, place) for name in (first, *others)]
        if not others:
            return vectors[0]
        weight = next(w for w in self.program.part.weights if w.name == first)
        rows, makes = rows_of(weight, self.program.part), made_by(weight, self.program.part)
        if padding is not Padding.ROW or rows == makes:
            return replace(vectors[0], rows=sum(vector.rows for vector in vectors))
        return replace(vectors[0], row=sum(vector.row for vector in vectors))

    def elements_of(self, weight: Value, indices: tuple[str, ...], place: Device = NOWHERE) -> Number:
        """How many elements a device has of some of a weight's indices; at a `place`, of its own."""
        some = replace(weight, indices=indices)
        return elements(some, self.program.lies[weight], self.indices, self.mesh, place)

    @cached_property
    def activations(self) -> Number:
        """Bytes kept from forward to backward."""
        return kept_bytes(self.program, self.indices, self.mesh)

    @cached_property
    def made_again(self) -> Number:
        """Bytes kept if backward made all of it again; those that are, of a part that it cannot."""
        try:
            again = program_of(self.program.part, self.program.axes, EVERYTHING)
        except LayoutError:  # of a file's own part
            return self.activations
        return kept_bytes(again, self.indices, self.mesh)

    def checkpoints(self, layers: int) -> tuple[int, int, Number] | None:
        """How many of so many like it best keep their input, all else made again, segment by segment.

        And the layers of a segment, and the bytes kept of a micro-batch; None where that keeps no less.
        """
        size_in, size_mid = self.made_again, self.activations
        count = checkpoints.best(layers, size_in, size_mid)
        least = checkpoints.kept_at_most(count, layers, size_in, size_mid, EXACT)
        return (count, ceil_div(layers, count), least) if least < layers * size_mid else None

    @cached_property
    def kept_elements(self) -> Number:
        """Elements kept from forward to backward, of whatever width."""
        return sum(self._elements(value) for value in self.program.stored)

    @cached_property
    def computing(self) -> Number:
        """Bytes of values that are there at once beside what is kept, at the fullest moment."""
        return fullest_moment(self.program, self.indices, self.mesh)

    @cached_property
    def traffic(self) -> tuple[Traffic, ...]:
        """Every move that sends anything."""
        program = self.program
        made = {line.makes for line in program.forward} | {program.part.takes}
        found = []
        for phase, lines in ((FORWARD, program.forward), (BACKWARD, program.backward)):
            for line in lines:
                if isinstance(line, Move) and line.is_sent and program.axes_of(line):
                    again = phase == BACKWARD and line.value in made
                    sent = elements_moved(line, program, self.indices, self.mesh)
                    width = line.value.width
                    phase_of = AGAIN if again else phase
                    count = messages(line, program, self.mesh)
                    by = program.sent_by(line)
                    found.append(
                        Traffic(line, program.axes_of(line), phase_of, count, sent, sent * width, by)
                    )
        return tuple(found)

    def sent(self, *phases: str) -> Number:
        """Elements sent in some phases."""
        return sum((t.elements for t in self.traffic if t.phase in phases), 0)

    @property
    def handed_on(self) -> Number:
        """Elements a device has of what the part gives."""
        return self._elements(self.program.gives)

    def _elements(self, value: Value) -> Number:
        return elements(value, self.program.lies[value], self.indices, self.mesh)


def choices(indices: Indices, model: Model) -> Number:
    """How often tokens of a micro-batch choose an expert, on all devices."""
    return indices["b"] * indices["s"] * model.takes_each if isinstance(model, Transformer) else 0


def indices_of(
    model: Model,
    micro_batch: Number,
    sequence: Number,
    multiple: int,
    axes: Iterable[Axis],
    of_samples: Iterable[str],
    mesh: Mapping[str, Number],
) -> Indices:
    """How many values each index of a model has in all.

    `of_samples`: the axes that cut samples. Words are a multiple of so many for each device that cuts
    them.
    """
    samples = group_size(mesh, of_samples)
    sizes = model.sizes(micro_batch * samples, sequence)
    return with_words(sizes, axes, mesh, multiple)


def with_words(
    indices: Indices, axes: Iterable[Axis], mesh: Mapping[str, Number], multiple: int
) -> Indices:
    """With words padded to a multiple of so many for each device that cuts them."""
    cutting = [axis.name for axis in axes if VOCABULARY in axis.weight_indices]
    if multiple == 1 or not indices.get(VOCABULARY):
        return indices
    unit = multiple * group_size(mesh, cutting)
    return {**indices, VOCABULARY: unit * quotient(indices[VOCABULARY], unit)}
