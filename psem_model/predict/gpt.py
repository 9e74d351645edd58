"""A GPT cut by a strategy, and a pipeline's stages, in symbols."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy

from psem_model.predict.model_plans import held as as_held
from psem_model.predict.models import ModelPlan
from psem_model.predict.models_closed import symbolic
from psem_model.predict.states_closed import Closed
from psem_model.reading.products import parse
from psem_model.reading.shapes import transformer
from spec import pipeline
from spec.distribute import NOTHING
from spec.pipeline import Kind, Pipeline
from spec.transformer import Transformer

# symbols take the place of these numbers
SHAPE = {"layers": "2", "hidden": "8", "heads": "4", "vocabulary": "16"}
EXPERTS = {"experts": "4", "chosen": "2"}
TOKENS = 8


def gpt(with_experts: bool = False) -> Transformer:
    """A small GPT, with one MLP or with experts."""
    experts = EXPERTS if with_experts else {}
    return transformer({**SHAPE, **experts, "sequence": str(TOKENS)})


@cache
def plan(strategy: str, again: str = NOTHING, held: bool = False) -> ModelPlan:
    """A GPT cut by a strategy. `again`: what backward makes again; `held`: what is gathered stays."""
    product = as_held(parse(strategy).product, held)
    mesh = dict.fromkeys(product.axes, 2)
    pipe = Pipeline(Kind.ONE_F_ONE_B, 2 if product.pipe else 1, 4)
    model = gpt(with_experts="ep" in strategy.split("*"))
    return symbolic(ModelPlan(model, product, mesh, 1, TOKENS, pipe, again=again))


def in_flight(pipe: Pipeline, stage: Any) -> Any:
    """Micro-batches, each of one chunk, whose activations a stage keeps at the fullest moment."""
    found = sympy.sympify(pipeline.in_flight(pipe, stage, Closed(padded=False)))
    # a minimum is given as the negative of the largest negative
    return sympy.simplify(found.replace(sympy.Max, lambda *of: -sympy.Min(*(-x for x in of))))
