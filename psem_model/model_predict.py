"""Predictions for a transformer on the model axes: what each device holds, and what it sends.

Everything is evaluated by the specification's own functions on the derived programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from psem_model.configurations import parameters
from psem_model.figures import counted
from psem_model.predict import Costs, predict_schedule
from spec import checkpoints
from spec.arithmetic import EXACT, Number
from spec.compose import Product
from spec.derive import derive
from spec.distribute import ALL, NOTHING, distribute
from spec.memory import Sizes
from spec.mesh import group_size
from spec.model_costs import Indices, elements, elements_sent, kept_bytes, weights
from spec.pipeline import Kind, Phase, Pipeline, in_flight, order
from spec.programs import Axis, Move, Program
from spec.stages import Piece, pieces, sends, to_sum
from spec.states import MIXED_ADAM, BytePolicy, State
from spec.transformer import EMBEDDING, HEAD, LAYER, Transformer, parts
from spec.values import Value

FORWARD, BACKWARD, AGAIN = "forward", "backward", "again"
PHASES = (FORWARD, BACKWARD, AGAIN)
STATES = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)


@dataclass(frozen=True)
class ModelPlan:
    """A model, strategies on the axes of a mesh, and a step of `pipe.micro_batches` micro-batches.

    `micro_batch`: samples of a micro-batch, on each device of the axes that cut samples.
    `unit`: elements gathered and reduced at a time; those of a layer, if it is not given.
    """

    model: Transformer
    product: Product
    mesh: Mapping[str, Number]
    micro_batch: Number
    sequence: Number
    pipe: Pipeline = field(default_factory=lambda: Pipeline(Kind.ONE_F_ONE_B, 1, 1))
    policy: BytePolicy = MIXED_ADAM
    again: str = NOTHING
    unit: Number | None = None

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """What the model is cut along."""
        return self.product.cuts

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

    @cached_property
    def shared(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """Weights that several stages use, and which."""
        return to_sum(self.placed)

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
        """Every move of a micro-batch that sends anything."""
        program = self.program
        made = {line.makes for line in program.forward} | {program.part.takes}
        found = []
        for phase, lines in ((FORWARD, program.forward), (BACKWARD, program.backward)):
            for line in lines:
                if isinstance(line, Move) and line.collective != "slice":
                    again = phase == BACKWARD and line.makes in made
                    sent = elements_sent(line, program, self.plan.indices, self.plan.mesh)
                    width = line.value.width
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

    what: str  # the value, or the training state
    collective: str
    axes: tuple[str, ...]
    when: str
    of: str  # which part, or which weights
    times: Number
    elements: Number  # in all
    bytes: Number
    to_host: bool = False


@dataclass(frozen=True)
class Group:
    """Weights of a stage whose gradients come out partial along the same axes: one schedule."""

    summed: tuple[str, ...]
    weights: tuple[str, ...]
    costs: Costs


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

    # --------------------------------------------------------------------- training states
    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The stage's weights by the axes along which their gradients are summed."""
        sizes: dict[tuple[str, ...], dict[tuple[str, int], Number]] = {}
        for piece in self.pieces:
            costs = self.plan.costs[piece.part.name]
            for weight in piece.part.weights:
                summed = costs.program.summed(weight)
                if piece.owns(weight) in self.plan.shared and self.plan.product.pipe:
                    summed += (self.plan.product.pipe,)
                found = sizes.setdefault(summed, {})
                found[piece.owns(weight)] = costs.parameters[weight.name]
        return tuple(self._group(summed, found) for summed, found in sizes.items())

    def _group(self, summed: tuple[str, ...], found: dict[tuple[str, int], Number]) -> Group:
        plan, psi = self.plan, sum(found.values())
        of_layers = Counter[int]()
        for (_, layer), size in found.items():
            of_layers[layer] += size
        unit = min(psi, max(of_layers.values()) if plan.unit is None else plan.unit)
        mesh = {axis: plan.mesh[axis] for axis in plan.product.states.axes + summed}
        if plan.product.pipe in summed:  # only some stages have these words
            (stages,) = {*plan.shared.values()}
            mesh[plan.product.pipe] = len(stages)
        schedule = derive(plan.product.states_of(summed))
        sizes = Sizes(psi, mesh, plan.policy, unit)
        costs = predict_schedule(schedule, sizes, plan.pipe.micro_batches)
        return Group(summed, tuple(dict.fromkeys(name for name, _ in found)), costs)

    @cached_property
    def parameters(self) -> Number:
        """Elements that a device computes with; where they rest, the states say."""
        return sum(group.costs.sizes.psi for group in self.groups)

    @cached_property
    def resting(self) -> dict[State, Number]:
        """Bytes of each model state between steps."""
        return {state: sum(g.costs.resting[state] for g in self.groups) for state in STATES}

    @property
    def host(self) -> Number:
        """Bytes in the host's memory."""
        return sum(group.costs.host for group in self.groups)

    @property
    def transient(self) -> Number:
        """Bytes of states that pass, at the fullest moment of each group."""
        return sum(group.costs.peak - group.costs.total for group in self.groups)

    # ------------------------------------------------------------------------- activations
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
        """Bytes of states between steps, and of activations at their fullest."""
        return sum(self.resting.values()) + self.activations

    @property
    def peak(self) -> Number:
        """And of what passes: an upper bound, as if all were there at once."""
        return self.total + self.transient

    # ----------------------------------------------------------------------- communication
    @cached_property
    def moved(self) -> tuple[Moved, ...]:
        """Everything its devices send in a step."""
        return (*self._of_model(), *self._between_stages(), *self._of_states())

    def _of_model(self) -> Iterator[Moved]:
        """Activations and cotangents, where they lie otherwise than they are needed."""
        for name, count in Counter(piece.part.name for piece in self.pieces).items():
            times = count * self.plan.pipe.micro_batches
            for t in self.plan.costs[name].traffic:
                what, axes = plain_name(t.move.value), (t.move.axis,)
                sent = times * t.elements, times * t.bytes
                yield Moved(what, t.move.collective, axes, t.phase, name, times, *sent)

    def _between_stages(self) -> Iterator[Moved]:
        """Activations to the next virtual stage, cotangents to the one before."""
        plan = self.plan
        if plan.product.pipe is None:
            return
        crossings = sends(plan.placed)
        forward = [a for a, _ in crossings if a.stage == self.number]
        backward = [a for a, b in crossings if b.stage == self.number]
        for phase, given in ((FORWARD, forward), (BACKWARD, backward)):
            for name, count in Counter(piece.part.name for piece in given).items():
                value = plan.costs[name].program.gives
                times = count * plan.pipe.micro_batches
                sent = times * plan.costs[name].handed_on
                what = plain_name(value) if phase == FORWARD else f"d {plain_name(value)}"
                axes = (plan.product.pipe,)
                yield Moved(what, "send", axes, phase, name, times, sent, sent * value.width)

    def _of_states(self) -> Iterator[Moved]:
        """Parameters and gradients, as the schedule of each group of weights moves them."""
        for group in self.groups:
            for move in group.costs.moves:
                if move.op.state in STATES and move.elements:
                    yield Moved(
                        move.op.state.value,
                        move.op.kind.value,
                        move.op.axes,
                        move.op.phase.value,
                        counted(len(group.weights), "weight"),
                        move.times,
                        move.elements,
                        move.bytes,
                        move.to_host,
                    )

    @property
    def elements(self) -> Number:
        """Elements that a device sends to others."""
        return sum((m.elements for m in self.moved if not m.to_host), 0)

    @property
    def bytes(self) -> Number:
        """Bytes that a device sends to others."""
        return sum((m.bytes for m in self.moved if not m.to_host), 0)

    @property
    def host_bytes(self) -> Number:
        """Bytes over the host link, both ways."""
        return sum((m.bytes for m in self.moved if m.to_host), 0)


def plain_name(value: Value) -> str:
    """A value's name, without how it lies and which use it comes from."""
    return value.name.split("|")[0].split(" of ")[0]
