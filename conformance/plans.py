"""A case as psem plans it: as a user types it, by the textbook, and under PyTorch's profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import prod

from conformance.case import Case
from conformance.figures import (
    BUCKETS,
    COUNTS,
    GRADIENTS,
    KEPT,
    MOMENTS,
    ON_HOST,
    PINNED,
    Figure,
    master,
)
from conformance.logs import log_of
from conformance.profiles import SHARDED, by_name, profile_of
from conformance.shapes import Configured, Decoder, Mlp
from psem_model.predict.parts import Moved
from psem_model.predict.plan import Plan, StageCosts
from psem_model.reading.configurations import shape as shaped
from psem_model.reading.families import FAMILIES
from psem_model.reading.fields import Fields
from psem_model.reading.products import parse
from spec.costs.memory import MODEL_STATES
from spec.derivation.programs import EVERYTHING, NOTHING
from spec.devices.mesh import HOST
from spec.models.opaque import Opaque
from spec.models.profiles import Profile
from spec.models.states import POLICIES, State
from spec.models.transformer import Transformer, with_masks
from spec.numbers.arithmetic import Number
from spec.pipelines.pipeline import Order, Pipeline
from spec.plans.compose import Product
from spec.plans.modes import O, R
from spec.plans.placement import place_states

PRODUCTS = {
    "ddp": "dp",
    "zero redundancy": "zero1",
    "fsdp2": "fsdp",
    "eager": "dp",
    "hsdp": "hsdp",
    "fsdp2 x tp": "fsdp * tp",
    "fsdp2 x tp+sp": "fsdp * tp+sp",
    "ddp x pp": "pp * dp",
    "zero redundancy x pp": "pp * zero1",
    "fsdp2 x pp": "pp * fsdp",
    "fsdp2 x tp x pp": "pp * fsdp * tp",
    "fsdp2 x tp+sp x pp": "pp * fsdp * tp+sp",
    "fsdp2 x cp": "fsdp+all * cp",
    "hsdp x cp": "cp * fsdp",
}
PRECISIONS = {"adam": "fp32-adam", "momentum": "fp32-momentum", "sgd": "fp32-sgd"}
MIXED = "mixed-adam-fp32-gradients"
HOPS = {"ring_gather": "permute", "ring_reduce": "permute"}  # a ring's turns, as PyTorch calls them
STATES = (State.PARAMETERS.value, State.GRADIENTS.value)
ROOT = ""  # what has the weights of no layer
Shapes = Mapping[str, tuple[int, ...]]
Sent = dict[Figure, tuple[Number, Number]]  # elements and bytes, by kind and axis


def transformer(shape: Decoder | Configured) -> Transformer:
    """psem's model of the same shape."""
    if isinstance(shape, Configured):
        return shaped(Fields(shape.family, shape.content), FAMILIES[shape.family])
    gpt = shape.gpt
    return Transformer(
        shape.layers,
        shape.hidden,
        shape.heads,
        shape.kv_heads,
        shape.hidden // shape.heads,
        shape.feed_forward,
        shape.vocabulary,
        gated=not gpt,
        function="gelu" if gpt else "silu",
        norm="layer_norm" if gpt else "rms_norm",
        biases=frozenset({"qkv", "output", "mlp"} if gpt else ()),
        positions=shape.sequence if gpt else 0,
        tied=gpt,
    )


def product_of(case: Case) -> Product:
    """The strategies of a case; with no_sync, or weights that are held, as a placement."""
    product = parse(PRODUCTS.get(case.strategy, case.strategy)).product
    if case.strategy not in SHARDED:
        return product
    (factor,) = (factor for factor in product.factors if factor.holds is not None)
    if factor.states is None:
        raise TypeError(f"{factor.name}: places no states")
    modes = {state: dict(found) for state, found in factor.states.modes}
    if not case.each:  # gradients are whole until the last micro-step
        modes[State.GRADIENTS] = dict.fromkeys(factor.axes, R)
    for state in MODEL_STATES if case.offload else ():
        modes[state][HOST] = O
    states = place_states(factor.axes, modes, hold=case.reshard is False)
    placed = replace(factor, states=states)
    return Product(tuple(placed if each is factor else each for each in product.factors))


@dataclass(frozen=True)
class Planned:
    """A case, planned by psem; `shapes`: of its weights."""

    case: Case
    shapes: Shapes

    @cached_property
    def textbook(self) -> Plan:
        """As a user types it: a model's shape, or as many parameters, in units of its largest layer."""
        case, model = self.case, self.case.model
        pipe = Pipeline(
            Order(case.order or "1f1b"), case.sizes.get("pipe", 1), case.micro_steps, case.chunks
        )
        policy = POLICIES[MIXED if self.in_bf16 else PRECISIONS[case.optimizer]]
        if not isinstance(model, Mlp):
            of = transformer(model), product_of(case), case.sizes, case.samples, model.sequence
            return Plan(*of, pipe, policy, EVERYTHING if case.again else NOTHING)
        psi = sum(map(prod, self.shapes.values()))
        largest = max(sum(map(prod, shapes)) for shapes in self.layers)
        return Plan(
            Opaque(psi, self.layers),
            product_of(case),
            case.sizes,
            pipe=pipe,
            policy=policy,
            unit=largest,
        )

    @cached_property
    def profile(self) -> Plan:
        """Under PyTorch's profile."""
        return self.under(profile_of(self.case))

    @cached_property
    def named(self) -> Plan:
        """Under what a name says of it alone."""
        return self.under(by_name(self.case))

    def under(self, profile: Profile) -> Plan:
        """Under some profile."""
        in_bf16 = self.in_bf16 and not profile.says_types  # of `eager` weights are, too
        name = "mixed-adam" if in_bf16 else PRECISIONS[self.case.optimizer]
        policy = profile.types(POLICIES[name])
        model, tokens = self.textbook.model, self.textbook.sequence
        if profile.gives_masks and isinstance(model, Transformer):
            model = with_masks(model, tokens)
        return replace(self.textbook, model=model, profile=profile, policy=policy, unit=None)

    @property
    def layers(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The shapes of the weights of each layer; those of no layer are the root's."""
        names = {name: layer_of(name) for name in self.shapes}
        return tuple(
            tuple(self.shapes[name] for name, of in names.items() if of == layer)
            for layer in dict.fromkeys(names.values())
        )

    def stage(self, plan: Plan, rank: int) -> StageCosts:
        """What a rank holds and sends, on its stage and at its place."""
        place = self.place(rank)
        return plan.stage(place.get("pipe", 0), place)

    def place(self, rank: int) -> dict[str, int]:
        """Where a rank is along each axis; the last axis is the innermost."""
        found = {}
        for axis, size in reversed(self.case.mesh):
            rank, found[axis] = divmod(rank, size)
        return found

    @property
    def in_bf16(self) -> bool:
        """Whether it is computed in bf16."""
        return self.case.mixed and self.case.strategy in (*SHARDED, "eager")


@cache
def planned(case: Case) -> Planned:
    """A case that was recorded. KeyError if it was not."""
    return Planned(case, log_of(case).shapes)


def layer_of(name: str) -> str:
    """The layer that has a weight; ROOT if none has."""
    first, _, rest = name.partition(".")
    return rest.partition(".")[0] if first == "layers" else ROOT


def figures_of(stage: StageCosts) -> dict[Figure, Number]:
    """What psem says of a stage: bytes that rest and are kept, and what is sent.

    What rests does so on the device or on the host; of what is on the host, how much is page-locked.
    """
    on_host = {s: sum(group.costs.hosted[s] for group in stage.groups) for s in MODEL_STATES}
    parameters, optimizer, gradients = (stage.resting[s] + on_host[s] for s in MODEL_STATES)
    copy = master(stage.plan.policy) * optimizer
    memory = {
        Figure("parameters"): parameters + copy,
        GRADIENTS: gradients,
        MOMENTS: optimizer - copy,
        ON_HOST: sum(on_host.values()),
        PINNED: stage.host_pinned,
        COUNTS: stage.step_counts,
        BUCKETS: stage.buckets,
    }
    memory |= {} if stage.plan.opaque else {KEPT: stage.activations}
    return memory | sent_of(stage.moved)


def sent_of(moved: Iterable[Moved]) -> Sent:
    """Elements and bytes, by kind and axis; the link to the host is one."""
    found: Sent = {}
    for each in moved:
        if each.elements:
            along = HOST if each.to_host else " x ".join(each.axes)
            figure = Figure(HOPS.get(each.collective, each.collective), along)
            elements, size = found.get(figure, (0, 0))
            found[figure] = elements + each.elements, size + each.bytes
    return found
