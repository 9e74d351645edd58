"""A plan: a model, how it is placed on a mesh, and what devices hold and send in a step of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from psem_model.check.rounding import Rounded, rounded
from psem_model.predict.activations import Activations, keeps_given
from psem_model.predict.chunks import copied_at_once, fullest, held_by, states_that_pass
from psem_model.predict.fields import for_steps, for_weights
from psem_model.predict.part_weights import PartWeights
from psem_model.predict.parts import Moved, PartCosts, between_stages, indices_of, listed
from psem_model.predict.stages import candidates, parts_of_chunks
from psem_model.predict.weights import Group, Placeholders, StageWeights, placeholders
from spec.costs.communication import transfers
from spec.costs.memory import MODEL_STATES, Sizes
from spec.costs.model_costs import Indices, parameters
from spec.costs.views import with_views
from spec.derivation.programs import NOTHING
from spec.derivation.steps import derive
from spec.derivation.two_parts import gradients_last
from spec.devices.mesh import group_size
from spec.language.moves import Axis
from spec.language.schedule import SCALARS
from spec.language.schedule import Kind as Does
from spec.language.steps import Step
from spec.models.opaque import Opaque
from spec.models.parts import Model
from spec.models.profiles import TEXTBOOK, Profile, Samples, realised_parts
from spec.models.states import MIXED_ADAM, BytePolicy, State
from spec.models.transformer import Transformer, is_layer
from spec.models.values import FULL, Part
from spec.numbers.arithmetic import Number
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.stages import Piece, ends, pieces, to_sum
from spec.plans.compose import Product
from spec.plans.model_strategies import SAMPLES


@dataclass(frozen=True)
class Plan:
    """A model, strategies on the axes of a mesh, and a step of `pipe.micro_batches` micro-batches.

    `micro_batch`: samples of a micro-batch, on each device of the axes that cut samples.
    `unit`: elements gathered and reduced at a time; if it is not given, those of the largest of a
    layer, the embedding and the head (an opaque model is one unit), and states are padded as if all
    units were as large. `again`: what layers make again for backward. `offload`: what they keep is on
    the host. `text`: the product as typed. `written`: the step of a file. `padded`: sizes as they are,
    not as if all divided. `perceptron`: layers and width of an opaque model. `profile`: how a system
    realises it. `stored`, `attention`: the type of weights, and how attention is computed, by a
    configuration. `beside`: a plan whose parts' costs it has if alike. `told`: the stage told of.
    """

    model: Model
    product: Product
    mesh: Mapping[str, Number]
    micro_batch: Number = 1
    sequence: Number = 1
    pipe: Pipeline = field(default_factory=lambda: Pipeline(Order.ONE_F_ONE_B, 1, 1))
    policy: BytePolicy = MIXED_ADAM
    again: str = NOTHING
    unit: Number | None = None
    offload: bool = False
    text: str = ""
    written: Step | None = None
    padded: bool = True
    perceptron: tuple[int, int] | None = None
    profile: Profile = TEXTBOOK
    stored: str | None = None
    attention: str | None = None
    beside: Plan | None = field(default=None, compare=False, repr=False)
    told: int | None = None
    # which differences of the profile change a figure, by number, as far as that was asked
    applied: dict[int, bool] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def derived(self) -> Step:
        """Programs of the model's parts, of any sizes, and the schedules of their weights."""
        if self.written:
            return self.written
        known = self.beside
        if known and self._derived_from == known._derived_from:
            return known.derived
        found = derive(self.product, self.parts, self.again, profile=for_steps(self.in_plan))
        return known.derived if known and known.derived == found else found

    @cached_property
    def _derived_from(self) -> tuple[object, ...]:
        of = self.model, self.product, self.again, self.policy.computed
        return *of, for_steps(self.in_plan)

    @cached_property
    def step(self) -> Step:
        """The same of its sizes, which tell views from copies, and with backward in two parts."""
        known, of = self.beside, (self.indices, self.mesh, self.pipe)
        if known and known.derived is self.derived and (known.indices, known.mesh, known.pipe) == of:
            return known.step
        found = (with_views(p, self.indices, self.mesh) for p in self.derived.programs)
        in_two = map(gradients_last, found) if self.pipe.in_two_parts else found
        return replace(self.derived, programs=tuple(in_two))

    @cached_property
    def in_plan(self) -> Profile:
        """The profile, with what follows from the optimizer and from stages."""
        return self.profile.in_plan(self.policy, self.product.pipe is not None)

    @cached_property
    def types(self) -> BytePolicy:
        """The types of states, and of terms of gradients."""
        return self.profile.in_terms(self.policy, self.product.cuts_weights)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What the model is cut along."""
        return self.derived.programs[0].axes

    @cached_property
    def indices(self) -> Indices:
        """How many values each index has in all."""
        model, multiple = self.profile.computed(self.model), self.profile.words_a_device
        sizes = model, self.micro_batch, self.sequence
        return indices_of(*sizes, multiple, self.axes, self.sample_axes, self.mesh)

    @property
    def sample_axes(self) -> tuple[str, ...]:
        """The axes whose devices have samples of their own, and not those of the whole group."""
        ops = (op for group in self.derived.groups for op in group.schedule.micro_step)
        alike = {axis for op in ops if op.kind is Does.BACKWARD for axis in op.axes}
        return tuple(a.name for a in self.axes if a.stream == SAMPLES and a.name not in alike)

    @property
    def has_units(self) -> bool:
        """Whether units are of their own sizes, as the profile says, and not all as large."""
        return self.unit is None and self.profile.has_units

    @property
    def opaque(self) -> bool:
        """Whether nothing is known of what the model computes."""
        return isinstance(self.model, Opaque)

    @property
    def transformer(self) -> Transformer:
        """The model, of a plan that is of one. Raises TypeError."""
        if not isinstance(self.model, Transformer):
            raise TypeError(f"{self.text}: not of a transformer")
        return self.model

    @property
    def devices(self) -> int:
        return int(group_size(self.mesh, self.mesh))

    @property
    def micro_steps(self) -> Number:
        """Micro-batches of a step."""
        return self.pipe.micro_batches

    @property
    def samples_of_step(self) -> Number:
        """On all devices."""
        return self.micro_batch * self.pipe.micro_batches * group_size(self.mesh, self.sample_axes)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the model is made of, computed as the profile says."""
        return realised_parts(self.model, for_steps(self.profile), self.policy.computed)

    @cached_property
    def costs(self) -> dict[str, PartCosts]:
        """Of each part."""
        known = self.beside.costs if self.beside else {}
        named = {p.part.name: PartCosts(p, self.indices, self.mesh) for p in self.step.programs}
        return {name: known[name] if known.get(name) == of else of for name, of in named.items()}

    @cached_property
    def weights(self) -> dict[str, PartWeights]:
        """Of each part."""
        known = self.beside.weights if self.beside else {}
        of = {name: costs.weights for name, costs in self.costs.items()}
        return known if known == of else of

    @cached_property
    def rounding(self) -> tuple[Rounded, ...]:
        """Every line that rounds."""
        known = self.beside
        if known and known.step is self.step and known.types == self.types:
            return known.rounding
        return rounded(self.step, self.types)

    @property
    def layers(self) -> dict[str, PartCosts]:
        """Of a layer of each kind; what they hand on is alike."""
        return {name: costs for name, costs in self.costs.items() if is_layer(name)}

    @property
    def layer(self) -> PartCosts:
        """Of one of them."""
        return next(iter(self.layers.values()))

    @cached_property
    def parameters(self) -> dict[str, Number]:
        """Elements of each weight of the whole model."""
        return parameters(self.model, self.sequence)

    @cached_property
    def psi(self) -> Number:
        """Parameters of the whole model."""
        return sum(self.parameters.values())

    @cached_property
    def shared(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """Weights that several stages use, and which."""
        return to_sum(ends(self.model, self.pipe))

    def stage(self, number: int, place: Mapping[str, int] | None = None) -> StageCosts:
        """What the device of one stage at a place holds and sends. Whole numbers only."""
        return StageCosts(self, number, place=place or {})

    @cached_property
    def stages(self) -> tuple[StageCosts, ...]:
        """One stage of each kind: no other holds more, or sends more."""
        by_windows, held = keeps_given(self.profile, self.again), self.derived.held_layers
        kinds = candidates(self.model, self.pipe, by_windows, held)
        found = ([StageCosts(self, number, alike) for number in kind] for kind, alike in kinds)
        return tuple(max(kind, key=lambda stage: stage.activations) for kind in found)

    @cached_property
    def _told_of(self) -> tuple[StageCosts, ...]:
        return self.stages if self.told is None else (self.stage(self.told),)

    @cached_property
    def fullest(self) -> StageCosts:
        """The stage that needs most memory."""
        return max(self._told_of, key=lambda stage: stage.peak)

    @cached_property
    def busiest(self) -> StageCosts:
        """The stage that sends most bytes."""
        return max(self._told_of, key=lambda stage: stage.bytes)


@dataclass(frozen=True)
class StageCosts:
    """What a device of one stage holds, and sends in a step. `place`: along each axis, or the first."""

    plan: Plan
    number: int
    alike: int = 1  # stages of its kind
    place: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All that it has, listed."""
        return tuple(p for p in pieces(self.plan.model, self.plan.pipe) if p.stage == self.number)

    @cached_property
    def chunks(self) -> list[Counter[str]]:
        """How many of each part, chunk by chunk."""
        return parts_of_chunks(self.plan.model, self.number, self.plan.pipe)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many of each part, in the order of the model."""
        found = {name: sum(chunk[name] for chunk in self.chunks) for name in self.plan.costs}
        return {name: count for name, count in found.items() if count}

    @property
    def layers(self) -> int:
        return sum(self.counts.get(name, 0) for name in self.plan.layers)

    # --------------------------------------------------------------------- training states
    @cached_property
    def weights(self) -> StageWeights:
        """What there is of them, and their schedules: those of a plan beside, if it has the same."""
        plan, layers = self.plan, {group.layers for group in self.plan.step.groups}
        of = self.number, plan.costs, plan.has_units and plan.in_plan.sums_by_chunk
        found = StageWeights(
            *(plan.weights, {some: held_by(plan.model, plan.pipe, *of, some) for some in layers}),
            plan.model.shapes if isinstance(plan.model, Opaque) else (),
            *(for_weights(plan.in_plan), plan.types),
            unit=plan.unit,
            padded=plan.padded,
            micro_steps=plan.micro_steps,
            place=self.place,
            scheduled=plan.step.groups,
            mesh={axis.name: plan.mesh[axis.name] for axis in plan.axes} | dict(plan.mesh),
            # only some stages have the words that several use
            shared={str(plan.step.pipe): max(map(len, plan.shared.values()), default=1)},
        )
        known = (stage.weights for stage in (plan.beside.stages if plan.beside else ()))
        return next((of for of in known if of == found), found)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The stage's weights by the schedule of their states."""
        return self.weights.groups

    @cached_property
    def parameters(self) -> Number:
        """Elements that a device computes with; where they rest, the states say."""
        return sum(group.costs.sizes.psi for group in self.groups)

    @cached_property
    def resting(self) -> dict[State, Number]:
        """Bytes of each model state between steps."""
        return {state: sum(g.costs.resting[state] for g in self.groups) for state in MODEL_STATES}

    @property
    def host(self) -> Number:
        """Bytes in the host's memory: of states, and of activations at their fullest."""
        offloaded = self.held.kept() if self.plan.offload else 0
        return sum(group.costs.host for group in self.groups) + offloaded

    @property
    def host_pinned(self) -> Number:
        """Bytes there that are page-locked, of states that are there between steps."""
        pinned = self.plan.profile.pinned
        return sum(group.costs.hosted.get(state, 0) for group in self.groups for state in pinned)

    @property
    def host_at_start(self) -> Number:
        """Bytes there of the model that each process makes before anything is placed."""
        return FULL * self.parameters if self.plan.profile.starts_whole else 0

    # ------------------------------------------------------------------------- activations
    @cached_property
    def held(self) -> Activations:
        """What it keeps for backward, here or on the host."""
        plan, at = self.plan, (self.number, self.plan.in_plan, self.place)
        return Activations(plan.costs, self.chunks, plan.model, plan.pipe, *at, plan.again)

    @cached_property
    def activations(self) -> Number:
        """Bytes that the device keeps for backward, at the fullest moment of a step."""
        plan = self.plan
        if plan.profile.samples is Samples.NONE or not isinstance(plan.model, Transformer):
            return self.activations_of()
        return self.held.with_numbers(plan.model, plan.policy.computed, plan.offload)

    def activations_of(self, *names: str) -> Number:
        """Those of some parts alone, or of all, at their own fullest moment."""
        return 0 if self.plan.offload else self.held.kept(*names)

    @cached_property
    def placeholders(self) -> Placeholders:
        """Bytes of arrays in place of gradients that are added up elsewhere."""
        plan = self.plan
        return placeholders(self.counts, plan.costs, plan.profile, plan.policy, plan.pipe.chunks)

    @property
    def buckets(self) -> Number:
        """Bytes of copies of gradients, in which they are reduced."""
        return sum(group.buckets for group in self.groups)

    @cached_property
    def waiting(self) -> Number:
        """Bytes of gradients that wait whole for the last micro-step, beyond the slices they leave."""
        return fullest(self.groups, self.plan.pipe, self.number, lambda g: g.held, lambda g: 0)

    @property
    def before_the_last(self) -> Number:
        """Bytes of gradients before the last micro-step of a chunk: those that wait, and slices."""
        of = self.groups, self.plan.pipe, self.number
        return fullest(*of, lambda g: g.waiting, lambda g: g.slices)

    @property
    def step_counts(self) -> Number:
        """Bytes in which the optimizer counts the steps of each weight."""
        return sum(group.step_counts for group in self.groups)

    # ------------------------------------------------------------------------- all together
    @property
    def total(self) -> Number:
        """Bytes of states between steps, of activations at their fullest, and of what stays beside."""
        beside = self.placeholders.staying + self.step_counts + self.buckets + self.waiting
        return sum(self.resting.values()) + self.activations + beside

    @cached_property
    def transient(self) -> dict[str, Number]:
        """Bytes of what passes, at its own fullest moment, by what it is: states, unit by unit; what a
        part computes with, and keeps on its way to the host or from it; placeholders; copied gradients.
        """
        plan, here = self.plan, [self.plan.costs[name] for name in self.counts]
        return {
            "states": states_that_pass(self.groups),
            "computing": max(costs.computing for costs in here),
            "offloaded": max(costs.activations for costs in here) if plan.offload else 0,
            "placeholders": self.placeholders.passing,
            "copied": copied_at_once(self.groups),
        }

    @property
    def unit(self) -> str:
        """The part whose states take most room as they pass, gathered or fresh."""
        return max(self.groups, key=lambda group: group.passing).largest

    @property
    def computing(self) -> str:
        """The part that takes most room while it is computed."""
        return max(self.counts, key=lambda name: self.plan.costs[name].computing)

    @property
    def peak(self) -> Number:
        """And of what passes: an upper bound, each value freed after its last use."""
        return self.total + sum(self.transient.values())

    # ----------------------------------------------------------------------- communication
    @cached_property
    def moved(self) -> tuple[Moved, ...]:
        """Everything its devices send in a step."""
        costs, m = self.plan.costs, self.plan.pipe.micro_batches
        times = {name: count * m for name, count in self.counts.items()}
        found = [moved for name, count in times.items() for moved in costs[name].moved(count)]
        found += between_stages(self.plan.pipe, self.number, self.plan.step.pipe, self.plan.layers)
        for name, count in times.items() if self.plan.offload else ():
            found += costs[name].to_host(count)
        return *found, *self._of_states(), *self._of_numbers()

    def _of_states(self) -> Iterator[Moved]:
        """Parameters and gradients, as the schedule of each group of weights moves them."""
        for group in self.groups:
            found = (move for move in group.costs.moves if move.op.state in MODEL_STATES)
            yield from listed(found, group.weights, group.layers, self.plan.opaque)

    def _of_numbers(self) -> Iterator[Moved]:
        """Norms and counts: of each group of weights, on all stages, whatever weights these have."""
        plan, pipe = self.plan, (self.plan.step.pipe,)
        for group in plan.step.groups:
            found = transfers(group.schedule, Sizes(plan.psi, plan.mesh, plan.policy), plan.micro_steps)
            numbers = (move for move in found if move.op.target in SCALARS)
            if self.number == plan.pipe.stages - 1:  # it ends the chain of a broadcast over stages
                numbers = (m for m in numbers if (m.op.kind, m.op.axes) != (Does.BROADCAST, pipe))
            yield from listed(numbers, group.weights, group.layers, plan.opaque)

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
