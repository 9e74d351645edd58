"""What one embedding, layer or head holds and sends, on one device, for one micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from psem_model.predict.part_weights import PartWeights, weights_of
from psem_model.text.figures import counted
from spec.costs.communication import Transfer
from spec.costs.model_costs import (
    Indices,
    elements,
    elements_moved,
    fullest_moment,
    is_at_most,
    kept_bytes,
    messages,
    waiting_bytes,
)
from spec.derivation.programs import EVERYTHING, program_of
from spec.devices.layouts import LayoutError
from spec.devices.mesh import Device, along_devices, group_size
from spec.language.moves import VOCABULARY, Axis, Move
from spec.language.programs import Program
from spec.language.schedule import Kind, Op
from spec.models.layers import EVERY_LAYER, Layers
from spec.models.parts import Model
from spec.models.profiles import Profile
from spec.models.states import State
from spec.models.transformer import Transformer
from spec.models.values import Value
from spec.numbers.arithmetic import EXACT, Number, ceil_div, quotient
from spec.pipelines import checkpoints
from spec.pipelines.pipeline import Pipeline

FORWARD, BACKWARD, AGAIN = "forward", "backward", "again"
PHASES = (FORWARD, BACKWARD, AGAIN)


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
    at_most: bool  # by choices of experts, as even as they are


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
    at_most: bool = False


@dataclass(frozen=True)
class PartCosts:
    """A part's program, on a mesh, with as many values of each index."""

    program: Program
    indices: Indices
    mesh: Mapping[str, Number]

    @cached_property
    def weights(self) -> PartWeights:
        """Its weights, as axes cut them."""
        return weights_of(self.program, self.indices, self.mesh)

    @property
    def parameters(self) -> dict[str, Number]:
        """Elements of each weight."""
        return self.weights.parameters

    def kept(self, profile: Profile, place: Device) -> Number:
        """Bytes kept from forward to backward by the device at a place."""
        if State.ACTIVATIONS not in profile.unpadded:
            return self.activations
        return kept_bytes(self.program, self.indices, self.mesh, place)

    def waiting(self, profile: Profile, place: Device) -> Number:
        """Bytes kept between the two parts of backward by the device at a place."""
        is_own = State.ACTIVATIONS in profile.unpadded
        return waiting_bytes(self.program, self.indices, self.mesh, place if is_own else None)

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

        And the layers of a segment, and the bytes kept of a micro-batch; None where that keeps no less,
        or nothing is kept.
        """
        size_in, size_mid = self.made_again, self.activations
        if not (size_in and size_mid):
            return None
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
                    of = line, program.axes_of(line), phase_of, count, sent, sent * width
                    at_most = is_at_most(line, program, self.indices, self.mesh)
                    found.append(Traffic(*of, program.sent_by(line), at_most))
        return tuple(found)

    def sent(self, *phases: str) -> Number:
        """Elements sent in some phases."""
        return sum((t.elements for t in self.traffic if t.phase in phases), 0)

    def moved(self, times: Number) -> Iterator[Moved]:
        """Activations and cotangents, where they lie otherwise than they are needed, so many times."""
        name = self.program.part.name
        for t in (t for t in self.traffic if t.elements):
            what, sent = t.move.value.plain_name, (times * t.elements, times * t.bytes)
            of = what, t.collective, t.axes, t.phase, name, times
            yield Moved(*of, *sent, at_most=t.at_most)

    def to_host(self, times: Number) -> Iterator[Moved]:
        """What is kept for backward, to the host after forward, and back before backward."""
        sent = times * self.kept_elements, times * self.activations
        for kind, phase in ((Kind.OFFLOAD, FORWARD), (Kind.FETCH, BACKWARD)):
            if self.kept_elements:
                of = State.ACTIVATIONS.value, kind.value, (), phase, self.program.part.name, times
                yield Moved(*of, *sent, to_host=True)

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


def between_stages(
    pipe: Pipeline, number: int, axis: str | None, layers: Mapping[str, PartCosts]
) -> Iterator[Moved]:
    """Activations to the next virtual stage, cotangents to the one before. `axis`: of stages."""
    if axis is None or pipe.stages == 1:
        return
    layer = next(iter(layers.values()))  # what they hand on is alike
    value, name = layer.program.gives, layer.program.part.name
    forward, backward = value.plain_name, f"d {value.plain_name}"
    ends = {(FORWARD, forward): pipe.stages - 1, (BACKWARD, backward): 0}
    for (phase, what), end in ends.items():
        # each chunk, but the one at which the model ends, or a V turns
        stays = number in (0, pipe.stages - 1) if pipe.is_folded else number == end
        times = (pipe.chunks - stays) * pipe.micro_batches
        sent = times * layer.handed_on
        if times:
            yield Moved(what, "send", (axis,), phase, name, times, sent, sent * value.width)


def listed(
    found: Iterable[Transfer], weights: tuple[str, ...], layers: Layers, is_opaque: bool
) -> Iterator[Moved]:
    """What a schedule of weights moves, but for what sends nothing, in a model with parts."""
    named = weights[0] if len(weights) == 1 else counted(len(weights), "weight")
    named += "" if layers == EVERY_LAYER else f" (of layers, {layers.said})"
    for move in found:
        op, what = move.op, move.op.state or move.op.target
        if move.elements or is_opaque:
            sent = move.elements, move.bytes, move.to_host, op
            axes, phase = along_devices(op.axes), op.phase.value
            yield Moved(what.value, move.collective, axes, phase, named, move.times, *sent)
