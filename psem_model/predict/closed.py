"""Closed forms: the specification evaluated on SymPy symbols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import sympy

from psem_model.predict.factors import factored
from psem_model.predict.model_plans import uneven
from psem_model.predict.parts import PHASES
from psem_model.predict.plan import Plan
from psem_model.predict.states import Prediction, predict_schedule
from psem_model.text.report import Formula, Prose, in_words
from spec.costs.memory import Sizes, transient
from spec.devices.mesh import Axes
from spec.language.schedule import Schedule
from spec.models.custom import Custom
from spec.models.states import BytePolicy
from spec.models.transformer import Latent, Transformer
from spec.numbers.arithmetic import Number
from spec.pipelines import idle_and_held
from spec.pipelines.pipeline import Order


def symbol(name: str) -> Any:
    """A positive number."""
    return sympy.Symbol(name, positive=True)


PSI, UNIT, K, MICRO = map(symbol, ("Psi", "U", "K", "m"))
SHARD = sympy.Function("shard", positive=True)
SHARDS = "shard(a, u, n)"
LEGEND = {
    "Psi": "parameters",
    "N": "devices",
    "K": "bytes of optimizer state per parameter",
    "U": "elements of a unit",
    "b": "samples of a micro-batch on a device",
    "s": "tokens of a sample",
    "h": "hidden features",
    "a": "heads",
    "q": "key-value heads",
    "d": "features of a head",
    "f": "features inside the MLP",
    "V": "words",
    "h_w": "features of words",
    "L": "layers",
    "P": "learned positions",
    "E": "experts",
    "k": "experts that a token is sent to",
    "f_s": "features inside the MLP that all tokens share",
    "f_d": "features inside the MLP of layers without experts",
    "l": "features that keys and values are made from",
    "l_q": "features that queries are made from",
    "d_t": "features of a head that are turned",
    "d_s": "features of a head that are not turned",
    "d_v": "features of a head's values",
    "m": "micro-steps of a step",
    "v": "chunks of layers in a stage",
    SHARDS: Prose("on each of n devices, of a = u w + r, in w units: w ceil(u/n) + ceil(r/n)"),
}
AXIS_SYMBOLS = {"tensor": "t", "context": "c", "expert": "e", "batch": "n", "pipe": "p"}
AXIS_SYMBOLS["tensor_copies"] = "g"
PADDED = {"v": "V", "f": "f", "i": "f_d", "t": "f_s"}  # what an index's size is called


class Closed:
    """Symbolic arithmetic: shards as quotients, or padded by ceilings."""

    def __init__(self, padded: bool) -> None:
        self.padded = padded

    def shard(self, elements: Any, unit: Any, devices: Any) -> Any:
        if not self.padded:
            return elements / devices
        if unit == elements:
            return sympy.ceiling(elements / devices)
        return SHARD(elements, unit, devices)

    def maximum(self, first: Any, *others: Any) -> Any:
        kept: list[Any] = []
        for term in dict.fromkeys((first, *others)):
            if not any((other - term).expand().is_nonnegative for other in kept):
                kept = [o for o in kept if not (term - o).expand().is_nonnegative]
                kept.append(term)
        return kept[0] if len(kept) == 1 else sympy.Max(*kept, evaluate=False)


# ------------------------------------------------------------------------------ training states
def mesh_symbols(axes: Axes) -> dict[str, Any]:
    """N for one axis; N_axis for several."""
    return {axis: symbol("N" if len(axes) == 1 else f"N_{axis}") for axis in axes}


def closed_form(
    schedule: Schedule,
    policy: BytePolicy,
    padded: bool,
    with_unit: bool = False,
    micro_steps: Number = MICRO,
) -> Prediction:
    """A schedule's prediction in Psi, N and K: the policy gives w and g, K stays a symbol.

    `padded`: with ceilings; otherwise as if N divided Psi. `with_unit`: with a unit U of its own.
    """
    unit = UNIT if with_unit else None
    w, g = sympy.sympify(policy.w), sympy.sympify(policy.g)
    symbolic = replace(policy, w=w, g=g, k=K)
    sizes = Sizes(PSI, mesh_symbols(schedule.axes), symbolic, unit, Closed(padded))
    return predict_schedule(schedule, sizes, micro_steps)


def peak_formula(prediction: Prediction) -> Any:
    """The peak as what rests plus the largest transient (theorem M9)."""
    return prediction.total + passing(prediction)


def passing(prediction: Prediction) -> Any:
    """The largest transient."""
    return transient(prediction.schedule, prediction.sizes)


# ------------------------------------------------------------------------------ transformers
def axis_symbol(axis: str) -> str:
    """What the number of devices along an axis is called."""
    return AXIS_SYMBOLS.get(axis, f"N_{axis}".replace(" ", "_"))


def _latent(latent: Latent) -> Latent:
    queries = symbol("l_q") if latent.queries else 0
    return Latent(symbol("l"), queries, symbol("d_s"), symbol("d_v"))


def symbolic(plan: Plan) -> Plan:
    """The same plan with symbols for its sizes; what is a multiple of another by design stays one."""
    mesh = {axis: symbol(name) for axis, name in axis_symbols(plan).items()}
    # a sum that goes round a ring of one device has no hop to its home
    mesh |= {axis.name: 1 for axis in plan.axes if axis.ring and plan.mesh[axis.name] == 1}
    pipe = replace(
        plan.pipe,
        stages=mesh[plan.step.pipe] if plan.step.pipe else 1,
        micro_batches=MICRO,
        chunks=symbol("v") if plan.pipe.order is Order.INTERLEAVED else plan.pipe.chunks,
    )
    shape = _custom(plan.model) if isinstance(plan.model, Custom) else _transformer(plan)
    return replace(
        plan, model=shape, mesh=mesh, micro_batch=symbol("b"), sequence=symbol("s"), pipe=pipe
    )


def axis_symbols(plan: Plan) -> dict[str, str]:
    """What the number of devices along each axis is called; one's own indices may have any letter."""
    if isinstance(plan.model, Custom):
        return {axis: f"N_{axis}" for axis in plan.mesh}
    return {axis: axis_symbol(axis) for axis in plan.mesh}


def _custom(model: Custom) -> Custom:
    lengths = ((index, n if isinstance(n, str) else symbol(index)) for index, n in model.lengths)
    return replace(model, layers=symbol("L"), lengths=tuple(lengths))


def _transformer(plan: Plan) -> Transformer:
    model = plan.transformer
    h, a, d = symbol("h"), symbol("a"), symbol("d")
    whole = model.heads * model.head_dim == model.hidden and not model.latent
    return replace(
        model,
        layers=symbol("L"),
        hidden=h,
        heads=a,
        kv_heads=a if model.kv_heads == model.heads else symbol("q"),
        head_dim=h / a if whole else symbol("d_t") if model.latent else d,
        feed_forward=4 * h
        if model.feed_forward == 4 * model.hidden and not uneven(plan)
        else symbol("f"),
        vocabulary=symbol("V") if model.vocabulary else 0,
        word_features=symbol("h_w") if model.word_features else 0,
        positions=symbol("P") if model.positions else 0,
        experts=symbol("E") if model.experts else 0,
        chosen=symbol("k") if model.chosen else 0,
        shared=symbol("f_s") if model.shared else 0,
        dense=symbol("f_d") if model.dense else 0,
        latent=model.latent and _latent(model.latent),
    )


def forms(plan: Plan) -> dict[str, dict[str, Any]]:
    """Closed forms: what the embedding, a layer and the head hold and send; a pipeline's idle time."""
    closed = symbolic(plan)
    found: dict[str, dict[str, Any]] = {
        name: {
            "parameters": sum(costs.parameters.values()),
            "activations": costs.activations,
            **({"waiting": costs.waiting(plan.profile, {})} if plan.pipe.in_two_parts else {}),
            **{phase: costs.sent(phase) for phase in PHASES},
        }
        for name, costs in closed.costs.items()
    }
    if plan.step.pipe:
        found["pipeline"] = {
            "bubble_of_ideal": idle_and_held.bubble_of_ideal(closed.pipe),
            "bubble_of_total": idle_and_held.bubble_of_makespan(closed.pipe),
        }
        if plan.pipe.in_two_parts:
            found["pipeline"]["repeated_of_ideal"] = idle_and_held.repeated_of_ideal(closed.pipe)
        if plan.pipe.stages > 1:
            found["pipeline"]["sent"] = closed.layer.handed_on
    return found


# ------------------------------------------------------------------------------ as text
def text(formula: Any) -> str:
    """A formula as one line of plain text."""
    return in_words(sympy.sympify(formula))


def written(formula: Any) -> Formula:
    """A formula for a report."""
    expression = sympy.sympify(formula)
    return Formula(text(expression), expression)


def shortest(formula: Any) -> Any:
    """A formula expanded or factored, whichever is shorter."""
    expanded = sympy.expand(sympy.sympify(formula))
    return min((factored(expanded), expanded), key=lambda f: len(str(f)))


def per_token(formula: Any) -> Formula:
    """A formula by the features of a micro-batch's tokens, as activations are published."""
    features = symbol("b") * symbol("s") * symbol("h")
    each = sympy.expand(formula / features)
    if not each.is_Add:
        return written(sympy.expand(formula))
    return Formula(f"b*s*h*({each})", sympy.Mul(*features.args, each, evaluate=False))


def legend(
    formulas: Iterable[Any], axes: Axes, padded: Iterable[str] = (), own: Iterable[str] = ()
) -> dict[str, str]:
    """What the symbols of some formulas mean. `padded`: indices that are cut unevenly. `own`: those of
    a model of one's own.
    """
    known = {**LEGEND, **{axis_symbol(a): f"devices along {a}" for a in axes}}
    known |= {index: f"values of the index {index}" for index in own if index not in ("b", "s")}
    known |= {f"N_{axis}": f"devices along {axis}" for axis in axes}
    for name in (PADDED[index] for index in padded):
        known[name] = f"{LEGEND[name]}, padded to the devices where they cut them"
    used: set[str] = set()
    for formula in map(sympy.sympify, formulas):
        used |= {str(name) for name in formula.free_symbols}
        used |= {SHARDS} if formula.has(SHARD) else set()
    return {name: words for name, words in known.items() if name in used}
