"""Plans for a model on a product of strategies, with pipelines of many stages."""

from __future__ import annotations

from hypothesis import strategies as st

from psem_model.predict.plan import Plan
from psem_model.reading.products import parse
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS
from spec.models.transformer import Transformer
from spec.pipelines.pipeline import Order, Pipeline
from tests.support.pipes import IN_ONE_PART, chunks_of, enough
from tests.support.variations import DROPOUTS

SHAPE = {"layers": 8, "hidden": 64, "heads": 8, "sequence": 32}
AGAIN = st.sampled_from([NOTHING, PAIRS, EVERYTHING, FROM_SLICES])


@st.composite
def pipelines(draw, most=12, chunks=3, kinds=tuple(Order)):
    kind = draw(st.sampled_from(kinds))
    stages = draw(st.integers(1, most))
    interleaved = kind is Order.INTERLEAVED
    micro_batches = stages * draw(st.integers(1, 4)) if interleaved else draw(st.integers(1, 40))
    micro_batches = enough(kind, stages, micro_batches)
    return Pipeline(kind, stages, micro_batches, chunks_of(kind, draw(st.integers(1, chunks))))


@st.composite
def plans(draw, /, strategy="zero1*tp*pp", **given_):
    """A pipeline of up to 12 stages, of up to 3 chunks, with at least a layer for each chunk."""
    pipe = draw(pipelines(kinds=tuple(IN_ONE_PART if given_.get("offload") else Order)))
    layers = draw(st.integers(pipe.virtual_stages, max(40, pipe.virtual_stages)))
    words = {"vocabulary": draw(st.sampled_from([0, 9, 1000])), "tied": draw(st.booleans())}
    model = Transformer(layers, 16, 4, 4, 4, 32, **words, dropout=draw(DROPOUTS))
    product = parse(strategy).product
    mesh = {axis: draw(st.integers(1, 3)) for axis in product.axes} | {"pipe": pipe.stages}
    mesh["tensor"] = draw(st.sampled_from([1, 2, 4]))
    offload = not pipe.in_two_parts and draw(st.booleans())
    options = {"again": draw(AGAIN), "offload": offload, **given_}
    return Plan(model, product, mesh, 1, 8, pipe, **options)
