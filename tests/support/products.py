"""Products of strategies on few devices, with models of sizes that they divide."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod

from hypothesis import strategies as st

from psem_model.predict.plan import Plan
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS
from spec.models.states import POLICIES
from spec.models.transformer import Transformer
from spec.pipelines.pipeline import Order, Pipeline
from spec.plans.compose import OVER_ALL, PIPELINE, Product, factor, with_copies
from spec.plans.strategies import STRATEGIES
from tests.support.pipes import IN_ONE_PART, chunks_of, enough
from tests.support.variations import BIASES, VARIATIONS, experts

OF_TENSOR, OF_CONTEXT = ["tp", "tp+sp"], ["cp", "cp-all-to-all"]
MOST = 12  # devices


@st.composite
def products(draw, states=(*STRATEGIES, *OVER_ALL)):
    """Strategies on 2 to 4 axes: of the training states, of the model, and a pipeline.

    States may lie along what cuts the model, too.
    """
    count = draw(st.integers(2, 4))
    names = [draw(st.sampled_from(states))]
    others = [draw(st.sampled_from(OF_TENSOR)), draw(st.sampled_from(OF_CONTEXT)), "ep", PIPELINE]
    names += draw(st.permutations([*others, draw(st.sampled_from(states))]))
    factors, axes = [], 0
    for number, name in enumerate(names):
        found = factor(name)
        held = {f.holds for f in (*factors, found)} - {None}
        if axes + len(found.axes) > count or len(held) > 1:
            continue
        if found.over_all and any(f.over_all for f in factors):
            continue
        if found.states:
            found = factor(name, *(f"{axis}{number}" for axis in found.axes))
        if {f.holds for f in (*factors, found)} >= {True, False}:
            continue
        factors.append(found)
        axes += len(found.axes)
    for cut in [f for f in factors if f.cuts]:  # states along what cuts the model
        found = factor(draw(st.sampled_from([name for name in states if len(factor(name).axes) == 1])))
        held = {f.holds for f in (*factors, found)} - {None}
        if draw(st.booleans()) and len(held) < 2 and not found.over_all:
            factors.append(factor(found.name, *cut.axes))
    return Product(tuple(draw(st.permutations(factors))))


@st.composite
def listed(draw, layers, virtual_stages):
    """Layers of each virtual stage; nothing, if evenly. The first and the last may have none."""
    if virtual_stages == 1 or draw(st.booleans()):
        return ()
    least = [0, *[1] * (virtual_stages - 2), 0]
    owners = [draw(st.integers(0, virtual_stages - 1)) for _ in range(layers - sum(least))]
    return tuple(low + owners.count(number) for number, low in enumerate(least))


def cuts_experts(product):
    """Whether devices exchange tokens for experts."""
    return any("e" in axis.weight_indices for axis in product.cuts)


@st.composite
def plans(draw, least=1, dropout=True, kinds=tuple(Order), states=(*STRATEGIES, *OVER_ALL), even=True):
    """A product on a mesh of sizes up to 3, and a model and a micro-batch of sizes that it divides.

    `even`: where devices exchange tokens for experts, each is chosen as often; if not, they exchange.
    """
    product = draw(products(states) if even else products(states).filter(cuts_experts))
    mesh = {}
    for axis in product.axes:
        room = MOST // (prod(mesh.values()) * 2 ** (len(product.axes) - len(mesh) - 1))
        mesh[axis] = draw(st.integers(least, max(2, min(3, room))))

    def devices(cut):
        return prod(mesh[axis.name] for axis in product.cuts if cut(axis))

    tensor, cells = devices(lambda a: a.name == "tensor"), devices(lambda a: a.stream == "s")
    by_heads, expert = (
        devices(lambda a: "g" in a.weight_indices or a.brought),
        devices(lambda a: "e" in a.weight_indices),
    )
    again = draw(st.sampled_from([NOTHING, PAIRS, EVERYTHING, FROM_SLICES]))
    sliced = devices(lambda a: not a.stream) if again == FROM_SLICES else 1
    sequence = cells * sliced * draw(st.integers(1, 2))
    micro_batch, count, chosen = draw(st.integers(1, 2)), 0, 0
    if expert > 1 or draw(st.integers(0, 3)) == 0:
        count = expert * draw(st.integers(1, 2))
        chosen = draw(st.integers(1, min(2, count)))
        of_cell = sequence // (cells * sliced)
        if (even and expert > 1) or draw(st.booleans()):
            micro_batch *= count // gcd(count, micro_batch * of_cell * chosen)
    fused = any(f.name == "fused-update" for f in product.factors)
    kind = draw(st.sampled_from(kinds))
    stages = mesh[product.pipe] if product.pipe else 1
    chunks = chunks_of(kind, draw(st.integers(1, 2)))
    micro_batches = 1 if fused else draw(st.integers(1, 3))
    if kind is Order.INTERLEAVED and micro_batches % stages:
        kind, chunks = Order.ONE_F_ONE_B, 1
    if kind not in IN_ONE_PART and fused:
        kind, chunks = Order.ONE_F_ONE_B, 1
    micro_batches = enough(kind, stages, micro_batches)
    kv_heads, each = by_heads * draw(st.integers(1, 2)), draw(st.integers(1, 2))
    is_copied = by_heads == tensor > 1 and draw(st.booleans())
    if is_copied:  # on every device copies of one
        kv_heads, each = 1, tensor * each
        product, mesh = with_copies(product, mesh, kv_heads, each)
    model = Transformer(
        layers=draw(st.integers(stages * chunks, max(4, stages * chunks))),
        hidden=draw(st.integers(4, 8)),
        heads=kv_heads * each,
        kv_heads=kv_heads,
        head_dim=2,
        feed_forward=tensor * draw(st.integers(1, 3)),
        vocabulary=draw(st.integers(3, 9)),
        gated=draw(st.booleans()),
        norm=draw(st.sampled_from(["layer_norm", "rms_norm"])),
        biases=draw(BIASES),
        positions=draw(st.sampled_from([0, sequence, sequence + 1])),
        tied=draw(st.booleans()),
        **draw(experts(count, chosen, tensor)),
        **draw(VARIATIONS) | ({} if dropout else {"dropout": frozenset()}),
    )
    if is_copied:  # of a latent vector each head makes its own keys
        model = replace(model, latent=None)
    offloads = any(f.name.startswith("zero-offload") for f in product.factors)  # from a master copy
    policies = [name for name, p in POLICIES.items() if p.master or not offloads]
    return Plan(
        model,
        product,
        mesh,
        micro_batch,
        sequence,
        Pipeline(
            kind, stages, micro_batches, chunks, layers=draw(listed(model.layers, stages * chunks))
        ),
        POLICIES[draw(st.sampled_from(policies))],
        again,
        draw(st.one_of(st.none(), st.integers(5, 60))),
        offload=kind in IN_ONE_PART and draw(st.booleans()),
    )
