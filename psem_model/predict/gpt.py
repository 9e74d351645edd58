"""A GPT cut by a strategy, in numbers and in symbols, and a pipeline's stages."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import sympy

from psem_model.predict.closed import Closed, axis_symbol, symbolic
from psem_model.predict.model_plans import held as as_held
from psem_model.predict.plan import Plan
from psem_model.reading.products import parse
from psem_model.reading.shapes import transformer
from spec.derivation.programs import NOTHING
from spec.models.states import MIXED_ADAM, BytePolicy
from spec.pipelines import idle_and_held
from spec.pipelines.pipeline import Order, Pipeline

EXPERTS = {"experts": "4", "chosen": "2"}


@cache
def gpt(
    strategy: str,
    b: int = 1,
    s: int = 1024,
    h: int = 1024,
    a: int = 16,
    L: int = 4,
    V: int = 0,
    m: int = 1,
    v: int = 1,
    order: Order | None = None,
    again: str = NOTHING,
    policy: BytePolicy = MIXED_ADAM,
    **devices: int,
) -> Plan:
    """A GPT cut by a strategy, with experts for ep.

    Its sizes, and those of its axes, by the letters of the closed forms.
    """
    shape = {"layers": str(L), "hidden": str(h), "heads": str(a), "sequence": str(s)}
    words, product = {"vocabulary": str(V)} if V else {}, parse(strategy).product
    experts = EXPERTS if any(factor.name == "ep" for factor in product.factors) else {}
    model = transformer({**shape, **words, **experts})
    mesh = {axis: devices.get(axis_symbol(axis), 1) for axis in product.axes}
    order = order or (Order.INTERLEAVED if v > 1 else Order.ONE_F_ONE_B)
    pipe = Pipeline(order, mesh[product.pipe] if product.pipe else 1, m, v)
    return Plan(model, product, mesh, b, s, pipe, policy, again)


@cache
def plan(strategy: str, again: str = NOTHING, held: bool = False) -> Plan:
    """A GPT in symbols. `again`: what backward makes again; `held`: what is gathered stays."""
    small = gpt(strategy, s=8, h=8, a=4, L=2, V=16, m=4, c=2, again=again)
    return symbolic(replace(small, product=as_held(small.product, held)))


def in_flight(pipe: Pipeline, stage: Any) -> Any:
    """Micro-batches, each of one chunk, whose activations a stage keeps at the fullest moment."""
    found = sympy.sympify(idle_and_held.in_flight(pipe, stage, Closed(padded=False)))
    # a minimum is given as the negative of the largest negative
    return sympy.simplify(found.replace(sympy.Max, lambda *of: -sympy.Min(*(-x for x in of))))
