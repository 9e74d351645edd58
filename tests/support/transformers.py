"""Transformers on meshes of small sizes, trained beside one device."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import NamedTuple

from hypothesis import strategies as st

from psem_model.simulator.distributed import ONE_STAGE, DistributedModel
from psem_model.simulator.functions import Residues
from psem_model.simulator.placed import Placing
from spec.derivation.programs import program_of
from spec.derivation.schedules import schedule_of
from spec.meaning.match import first_difference
from spec.models.parts import parts
from spec.models.states import MIXED_ADAM
from spec.models.transformer import USUAL_NORMS, Transformer
from spec.pipelines.stages import pieces, to_sum
from spec.plans.compose import Product
from spec.plans.model_strategies import MODEL_AXES
from tests.support.variations import BIASES, VARIATIONS
from tests.support.variations import experts as with_experts

AGAIN = ["none", "attention", "all", "sliced"]


class Plan(NamedTuple):
    """A model, the axes of a mesh, and the sizes of both and of a micro-batch."""

    model: Transformer
    axes: tuple
    mesh: dict
    again: str
    micro_batch: int
    sequence: int

    @property
    def programs(self):
        """An embedding takes nothing from which it could be made again: what it needs is kept."""
        return tuple(
            program_of(part, self.axes, self.again if part.takes else "none")
            for part in parts(self.model)
        )

    @property
    def indices(self):
        return self.model.sizes(self.micro_batch, self.sequence)

    @property
    def without_dropout(self):
        """Where a mask may drop all tokens that a device has, nothing of them is missed."""
        return self._replace(model=replace(self.model, dropout=frozenset()))

    @property
    def usual(self):
        """With the layers of a GPT: norms before attention and the MLP, one after the other."""
        model = replace(self.model, dropout=frozenset(), norms=USUAL_NORMS, parallel=False, kinds=())
        return self._replace(model=model)

    def run(self, programs=None, numbers=None, pipe=ONE_STAGE, steps=1, placings=None):
        """The model trained on the mesh beside one device, its states replicated."""
        return DistributedModel(
            self.model,
            programs or self.programs,
            self.mesh,
            self.micro_batch,
            self.sequence,
            numbers or Residues(),
            replicated(self, pipe) if placings is None else placings,
            MIXED_ADAM,
            pipe,
        ).run(steps)

    def differing(self, **options):
        """States and weights, with their layers, that are not as on one device."""
        return differing(self.run(**options))


def replicated(plan, pipe=ONE_STAGE, forgotten=()):
    """Every weight's states on every device; its gradient summed wherever there are terms of it.

    `forgotten`: an axis along which it is not, or a weight of which it is not.
    """
    placed = pieces(plan.model, pipe)
    copies, groups = to_sum(placed), {}
    programs = {program.part.name: program for program in plan.programs}
    for piece in placed:
        for weight in piece.part.weights:
            name, layer = piece.identity_of(weight)
            summed = programs[piece.part.name].summed_over(weight)
            axes = () if name in forgotten else tuple(axis for axis in summed if axis not in forgotten)
            shared = (name, layer) in copies and "pipe" not in forgotten
            stages = copies[name, layer] if shared else (piece.stage,)
            placed_along = (*axes, "pipe") if shared else axes
            groups.setdefault((placed_along, stages), {})[layer, name] = None
    return [
        Placing(schedule_of(Product(()).states_of(axes)), (*keys,), (), at, "pipe" * ("pipe" in axes))
        for (axes, at), keys in groups.items()
    ]


def differing(found):
    """States and weights, with their layers, that are not as on one device."""
    unequal = found.numbers.unequal
    firsts = (first_difference([row], unequal) for row in found.beside())
    return {(d.state, d.place.layer, d.place.weight) for d in firsts if d}


@st.composite
def plans(draw, names=None, least=1, most=3, experts=None, layers=2):
    """Any model on any mesh of up to three axes, of sizes that the axes divide; but for words."""
    if names is None:
        names = draw(
            st.lists(st.sampled_from([*MODEL_AXES]), max_size=3, unique_by=lambda n: MODEL_AXES[n].name)
        )
    axes = tuple(replace(MODEL_AXES[name], held=draw(st.booleans())) for name in names)
    mesh = {axis.name: draw(st.integers(least, most if len(axes) < 3 else 2)) for axis in axes}
    again = draw(st.sampled_from(AGAIN))

    def devices(cut):
        return prod(mesh[axis.name] for axis in axes if cut(axis))

    tensor = devices(lambda axis: axis.name == "tensor")
    by_heads = devices(lambda axis: "g" in axis.weight_indices or axis.brought)
    cells = {i: devices(lambda axis, i=i: axis.stream == i) for i in "bs"}
    cells["s"] *= devices(lambda axis: not axis.stream) if again == "sliced" else 1
    samples, positions = (draw(st.integers(1, 2)) for _ in range(2))
    has_experts, count, chosen = draw(st.booleans()) if experts is None else experts, 0, 0
    if has_experts:
        expert = devices(lambda axis: "e" in axis.weight_indices)
        count = expert * draw(st.integers(1, 2))
        chosen = draw(st.integers(1, min(2, count)))
        samples *= count // gcd(count, samples * positions * chosen)
    kv_heads = by_heads * draw(st.integers(1, 2))
    sequence = cells["s"] * positions
    model = Transformer(
        layers=draw(st.integers(1, layers)),
        hidden=draw(st.integers(2, 4)),
        heads=kv_heads * draw(st.integers(1, 2)),
        kv_heads=kv_heads,
        head_dim=2 * draw(st.integers(1, 2)),
        feed_forward=tensor * draw(st.integers(1, 2)),
        vocabulary=draw(st.integers(2, 9)),
        gated=draw(st.booleans()),
        function=draw(st.sampled_from(["gelu", "gelu_new", "silu", "relu"])),
        norm=draw(st.sampled_from(["layer_norm", "rms_norm"])),
        biases=draw(BIASES),
        positions=draw(st.sampled_from([0, sequence, sequence + 1])),
        tied=draw(st.booleans()),
        **draw(with_experts(count, chosen, tensor)),
        **draw(VARIATIONS),
    )
    model = replace(model, kinds=model.kinds[: model.layers])  # those that there are
    return Plan(model, axes, mesh, again, cells["b"] * samples, sequence)
