"""Predictions for a transformer on the model axes: what each device holds, and what it sends.

Everything is evaluated by the specification's own functions on the derived programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from psem_model.configurations import parameters
from spec import checkpoints
from spec.arithmetic import EXACT, Number, quotient
from spec.collectives import ALL_REDUCE
from spec.distribute import ALL, NOTHING, distribute
from spec.mesh import group_size
from spec.model_costs import Indices, elements, elements_sent, kept_bytes, weights
from spec.pipeline import Kind, Phase, Pipeline, in_flight, order
from spec.programs import Axis, Line, Move, Program
from spec.stages import Piece, pieces, sends, to_sum
from spec.states import MIXED_ADAM, BytePolicy, State
from spec.transformer import EMBEDDING, HEAD, LAYER, Transformer, parts
from spec.values import Value

PIPE = "pipe"  # the axis along which layers are cut
FORWARD, BACKWARD, AGAIN, FINISH = "forward", "backward", "again", "finish"
PHASES = (FORWARD, BACKWARD, AGAIN, FINISH)


@dataclass(frozen=True)
class ModelPlan:
    """A model, what each axis of a mesh cuts, and a step of `pipe.micro_batches` micro-batches.

    `micro_batch`: samples of a micro-batch, on each slice of the axes that cut samples.
    """

    model: Transformer
    axes: tuple[Axis, ...]
    mesh: Mapping[str, Number]
    micro_batch: Number
    sequence: Number
    pipe: Pipeline = field(default_factory=lambda: Pipeline(Kind.ONE_F_ONE_B, 1, 1))
    policy: BytePolicy = MIXED_ADAM
    again: str = NOTHING

    @cached_property
    def indices(self) -> Indices:
        """How many values each index has in all."""
        samples = group_size(self.mesh, [axis.name for axis in self.axes if axis.stream == "b"])
        return self.model.sizes(self.micro_batch * samples, self.sequence)

    @cached_property
    def costs(self) -> dict[str, PartCosts]:
        """Of the embedding, a layer and the head."""
        found = {}
        for part in parts(self.model):
            again = self.again if part.name == LAYER else NOTHING
            found[part.name] = PartCosts(distribute(part, self.axes, again), self)
        return found

    def checkpoints(self, layers: int) -> tuple[int, Number]:
        """How many layers should keep their input, the rest made again, and the bytes kept then."""
        size_in, size_mid = (
            replace(self, again=again).costs[LAYER].activations for again in (ALL, NOTHING)
        )
        count = checkpoints.best(layers, size_in, size_mid)
        return count, checkpoints.kept(count, layers, size_in, size_mid, EXACT)

    @cached_property
    def parameters(self) -> dict[str, Number]:
        """Elements of each weight of the whole model."""
        return parameters(self.model)

    @cached_property
    def psi(self) -> Number:
        """Parameters of the whole model."""
        return sum(self.parameters.values())

    @cached_property
    def placed(self) -> tuple[Piece, ...]:
        return pieces(self.model, self.pipe.stages, self.pipe.chunks)

    def stage(self, number: int) -> StageCosts:
        """What the devices of one stage hold and send. Whole numbers only."""
        return StageCosts(self, number)


@dataclass(frozen=True)
class Traffic:
    """What one line sends, per device, each time it runs."""

    move: Move
    phase: str
    elements: Number
    bytes: Number


@dataclass(frozen=True)
class PartCosts:
    """One embedding, layer or head, on one device."""

    program: Program
    plan: ModelPlan

    @cached_property
    def parameters(self) -> dict[str, Number]:
        """Elements of each weight."""
        found = weights(self.program, self.plan.indices, self.plan.mesh)
        return {weight.name: size for weight, size in found.items()}

    @cached_property
    def activations(self) -> Number:
        """Bytes kept from forward to backward, of one micro-batch."""
        return kept_bytes(self.program, self.plan.indices, self.plan.mesh)

    @cached_property
    def traffic(self) -> tuple[Traffic, ...]:
        """Every move that sends anything; those of gradients once a step."""
        program = self.program
        made = {line.makes for line in program.forward} | {program.part.takes}
        phases: list[tuple[str, tuple[Line, ...]]] = [
            (FORWARD, program.forward),
            (BACKWARD, program.backward),
            (FINISH, program.finish),
        ]
        found = []
        for phase, lines in phases:
            for line in lines:
                if isinstance(line, Move) and line.collective != "slice":
                    again = phase == BACKWARD and line.makes in made
                    sent = elements_sent(line, program, self.plan.indices, self.plan.mesh)
                    width = self.plan.policy.g if phase == FINISH else line.value.width
                    found.append(Traffic(line, AGAIN if again else phase, sent, sent * width))
        return tuple(found)

    def sent(self, *phases: str) -> Number:
        """Elements sent in some phases."""
        return sum((t.elements for t in self.traffic if t.phase in phases), 0)

    @property
    def handed_on(self) -> Number:
        """Elements a device has of what the part gives."""
        program = self.program
        lies = program.lies[program.gives]
        return elements(program.gives, lies, self.plan.indices, self.plan.mesh)


@dataclass(frozen=True)
class Moved:
    """What a stage's devices send in a step, for one reason."""

    what: str  # the value, or the weight whose gradient it is
    collective: str
    axis: str
    phase: str
    part: str
    times: Number
    elements: Number  # in all
    bytes: Number


@dataclass(frozen=True)
class StageCosts:
    """What a device of one stage holds, and sends in a step."""

    plan: ModelPlan
    number: int

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(p for p in self.plan.placed if p.stage == self.number)

    @property
    def layers(self) -> int:
        return sum(p.part.name == LAYER for p in self.pieces)

    @cached_property
    def parameters(self) -> Number:
        """Elements, words that the stage uses twice once."""
        found: dict[tuple[str, str, int], Number] = {}
        for piece in self.pieces:
            for name, size in self.plan.costs[piece.part.name].parameters.items():
                shared = self.plan.model.tied and piece.part.name != LAYER
                found[(name, "" if shared else piece.part.name, piece.number)] = size
        return sum(found.values())

    @cached_property
    def resting(self) -> dict[State, Number]:
        """Bytes of each model state between steps."""
        states = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)
        return {state: self.parameters * self.plan.policy.of(state) for state in states}

    @cached_property
    def in_flight(self) -> Number:
        """Micro-batches, each of one chunk, whose activations it keeps at the fullest moment."""
        return in_flight(self.plan.pipe, self.number)

    @cached_property
    def activations(self) -> Number:
        """Bytes of kept activations at the fullest moment of a step."""
        return self.activations_of(EMBEDDING, LAYER, HEAD)

    def activations_of(self, *names: str) -> Number:
        """Those of some parts alone, at their own fullest moment."""
        per_chunk: Counter[int] = Counter()
        for piece in self.pieces:
            if piece.part.name in names:
                per_chunk[piece.chunk] += self.plan.costs[piece.part.name].activations
        pipe = self.plan.pipe
        if pipe.kind is Kind.GPIPE:
            return pipe.micro_batches * sum(per_chunk.values())
        # what is in flight repeats from group to group: three show its most
        few = min(pipe.micro_batches, 3 * pipe.stages)
        work = order(Pipeline(pipe.kind, pipe.stages, few, pipe.chunks), self.number)
        signs = ((1 if w.phase is Phase.FORWARD else -1) * per_chunk[w.chunk] for w in work)
        return max(accumulate(signs))

    @property
    def total(self) -> Number:
        return sum(self.resting.values()) + self.activations

    @cached_property
    def moved(self) -> tuple[Moved, ...]:
        """Everything its devices send in a step."""
        plan, micro_batches = self.plan, self.plan.pipe.micro_batches
        found = []
        for name, count in Counter(piece.part.name for piece in self.pieces).items():
            for t in plan.costs[name].traffic:
                times = count * (1 if t.phase == FINISH else micro_batches)
                found.append(
                    Moved(
                        plain_name(t.move.value),
                        t.move.collective,
                        t.move.axis,
                        t.phase,
                        name,
                        times,
                        times * t.elements,
                        times * t.bytes,
                    )
                )
        return (*found, *self._sends(), *self._shared())

    def _sends(self) -> list[Moved]:
        """Activations to the next virtual stage, cotangents to the one before."""
        plan, found = self.plan, []
        crossings = sends(plan.placed)
        forward = [a for a, _ in crossings if a.stage == self.number]
        backward = [a for a, b in crossings if b.stage == self.number]
        for phase, given in ((FORWARD, forward), (BACKWARD, backward)):
            for name, count in Counter(piece.part.name for piece in given).items():
                value = plan.costs[name].program.gives
                times = count * plan.pipe.micro_batches
                sent = times * plan.costs[name].handed_on
                what = plain_name(value) if phase == FORWARD else f"d {plain_name(value)}"
                found.append(Moved(what, "send", PIPE, phase, name, times, sent, sent * value.width))
        return found

    def _shared(self) -> list[Moved]:
        """Gradients of weights that other stages use as well."""
        plan, found = self.plan, []
        for (name, _), stages in to_sum(plan.placed).items():
            if self.number in stages:
                size = plan.costs[EMBEDDING].parameters[name]
                sent = ALL_REDUCE.volume(len(stages), quotient(size, len(stages)))
                found.append(
                    Moved(
                        f"d {name}",
                        ALL_REDUCE.name,
                        PIPE,
                        FINISH,
                        HEAD,
                        1,
                        sent,
                        sent * plan.policy.g,
                    )
                )
        return found

    @property
    def elements(self) -> Number:
        return sum((m.elements for m in self.moved), 0)

    @property
    def bytes(self) -> Number:
        return sum((m.bytes for m in self.moved), 0)


def plain_name(value: Value) -> str:
    """A value's name, without how it lies and which use it comes from."""
    return value.name.split("|")[0].split(" of ")[0]
