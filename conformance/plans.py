"""What cuts a model's layers: psem's plan of a case, and what a stage of it keeps and sends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from conformance.cases import Case, Decoder
from conformance.figures import Figure
from conformance.states import MIXED, PRECISIONS
from psem_model.predict.cuts import held
from psem_model.predict.moved import Moved
from psem_model.predict.plan import Plan, StageCosts
from psem_model.reading.products import parse
from spec.derivation.distribute import NOTHING, PAIRS
from spec.models.states import POLICIES, State
from spec.models.transformer import Transformer
from spec.numbers.arithmetic import Number, ceil_div
from spec.pipelines.pipeline import Order, Pipeline

PRODUCTS = {
    "ddp": "dp",
    "zero redundancy": "zero1",
    "fsdp2": "zero3",
    "hsdp": "hsdp",
    "fsdp2 x tp": "zero3 * tp",
    "fsdp2 x tp+sp": "zero3 * tp+sp",
}
HOPS = {"ring_gather": "permute", "ring_reduce": "permute"}  # a ring's turns, as PyTorch calls them
LOSS = ("total", "lost", "d loss", "d total")  # what the head sends for a loss over cut words
STATES = (State.PARAMETERS.value, State.GRADIENTS.value)
Sent = dict[Figure, tuple[Number, Number]]  # elements and bytes, by kind and axis


def transformer(shape: Decoder) -> Transformer:
    """psem's model of the same shape."""
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


@dataclass(frozen=True)
class Cut:
    """A case of a transformer, planned by psem."""

    case: Case
    shape: Decoder

    @cached_property
    def textbook(self) -> Plan:
        """As a user types it."""
        case = self.case
        order = Order(case.order or "1f1b")
        return Plan(
            transformer(self.shape),
            parse(PRODUCTS.get(case.strategy, case.strategy)).product,
            case.sizes,
            case.samples,
            self.shape.sequence,
            Pipeline(order, case.sizes.get("pipe", 1), case.micro_steps, case.chunks),
            POLICIES[MIXED if self.in_bf16 else PRECISIONS[case.optimizer]],
        )

    @cached_property
    def profile(self) -> Plan:
        """Under PyTorch's profile; what is gathered in forward is kept."""
        plan, profile = self.textbook, profile_of(self.case)
        policy = profile.types(plan.policy)
        return replace(plan, product=held(plan.product, True), profile=profile, policy=policy)

    def stage(self, plan: Plan, rank: int) -> StageCosts:
        """The stage of a rank."""
        return plan.stage(rank if "pipe" in self.case.sizes else 0)

    @property
    def in_bf16(self) -> bool:
        """Whether it is computed in bf16."""
        return self.case.mixed and self.case.strategy in ("fsdp2", "hsdp")

    def words(self, rank: int) -> int:
        """Words of a rank: those of the last one may be fewer. Ranks along tensor are the innermost."""
        t = self.case.sizes.get("tensor", 1)
        most = int(ceil_div(self.shape.vocabulary, t))
        return min(most, max(0, self.shape.vocabulary - rank % t * most))

    @property
    def tokens(self) -> int:
        """Of a micro-batch, on a rank: cut by context alone."""
        return self.case.samples * self.shape.sequence // self.case.sizes.get("context", 1)


def book_of(stage: StageCosts) -> dict[Figure, Number]:
    """What psem says of a stage: bytes that rest and are kept, and what is sent."""
    memory = {
        Figure("parameters"): stage.resting[State.PARAMETERS],
        Figure("gradients"): stage.resting[State.GRADIENTS],
        Figure("moments"): stage.resting[State.OPTIMIZER],
        Figure("kept"): stage.activations,
    }
    return memory | sent_of(stage.moved)


def sent_of(
    moved: Iterable[Moved],
    factor: Callable[[Moved], Number] = lambda _: 1,
    kinds: Mapping[str, str] = MappingProxyType({}),
) -> Sent:
    """Elements and bytes, by kind and axis, each as often as a factor says; some by other names."""
    found: Sent = {}
    for each in moved:
        if each.elements and factor(each):
            kind = {**HOPS, **kinds}.get(each.collective, each.collective)
            figure = Figure(kind, " x ".join(each.axes))
            elements, size = found.get(figure, (0, 0))
            times = factor(each)
            found[figure] = elements + times * each.elements, size + times * each.bytes
    return found


def add(*parts: Sent) -> Sent:
    """What is sent in all."""
    found: Sent = defaultdict(lambda: (0, 0))
    for part in parts:
        for figure, (elements, size) in part.items():
            before = found[figure]
            found[figure] = before[0] + elements, before[1] + size
    return dict(found)


ATTENTION = ["scores", "seen", "shares"]


def profile_of(case):
    from psem_model.reading.profiles import changed, read
    found = {}
    if case.strategy == "cp" or getattr(case.model, "fused", False):
        found["inside"] = ATTENTION
    if case.strategy == "pp":
        found["samples"] = "step"
    if case.mixed and case.strategy in ("fsdp2", "hsdp"):
        found["gathered"]=2
    profile = changed(read("pytorch"), found)
    if case.cut_loss:
        profile = replace(profile, whole=frozenset({"total","lost","loss","largest"}), maximum=True, inside=profile.inside-{"total"})
    return profile
