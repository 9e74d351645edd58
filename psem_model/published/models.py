"""Published values of model axes, pipelines and checkpoints: what predicts each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sympy

from psem_model.predict.closed import Closed, symbol
from psem_model.predict.gpt import gpt, in_flight
from psem_model.predict.gpt import plan as closed
from psem_model.predict.parts import BACKWARD, FORWARD, PHASES, PartCosts
from psem_model.predict.plan import Plan
from psem_model.predict.said_of_model import checkpoints
from psem_model.published.entries import SYMBOLS, Entry, Reproduced, compared, form, same
from psem_model.published.states import N, factor
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING
from spec.models.states import POLICIES
from spec.models.transformer import EMBEDDING, HEAD, LAYER
from spec.pipelines.checkpoints import kept_at_most
from spec.pipelines.idle_and_held import bubble, bubble_of_ideal
from spec.pipelines.pipeline import Order, Pipeline

GIB = 2**30
OF_GPT, OF_MESH = "bshaL", "tp"  # letters of a shape, and of a mesh


def layer(plan: Plan) -> PartCosts:
    """What a layer holds and sends."""
    return plan.costs[LAYER]


def _sizes(entry: Entry) -> dict[str, int]:
    """The sizes of an entry's model and mesh."""
    return {name: entry.inputs[name] for name in (*OF_GPT, *OF_MESH) if name in entry.inputs}


# ------------------------------------------------------------------------------ a layer's memory
def layer_activations(entry: Entry) -> Reproduced:
    """What a layer keeps for backward, of one micro-batch, as a formula."""
    features = form("b*s*h")  # of a micro-batch's tokens
    kept_bytes = layer(closed(entry.plan, entry.recompute)).activations
    return compared(entry, features * sympy.expand(kept_bytes / features))


def layer_activation_bytes(entry: Entry) -> Reproduced:
    """What a layer keeps for backward, of one micro-batch, in GiB."""
    plan = gpt(entry.plan, again=entry.recompute, **_sizes(entry))
    size = Fraction(layer(plan).activations, GIB)
    return Reproduced(size, size == Fraction(entry.value))


def activation_bytes(entry: Entry) -> Reproduced:
    """What the layers of the fullest stage, the first, keep for backward, in GiB."""
    pipe = {"m": 8 * entry.inputs["p"], "v": entry.inputs.get("m", 1)}
    stage = gpt(entry.plan, again=entry.recompute, **pipe, **_sizes(entry)).fullest
    size = Fraction(stage.activations_of(LAYER), GIB)
    return Reproduced(size, size == Fraction(entry.value) and stage.number == 0)


def weight_state_bytes(entry: Entry) -> Reproduced:
    """States of the weights of products, in GiB; the source leaves offsets, norms and words out."""
    plan = gpt(entry.plan, policy=POLICIES[entry.policy], **_sizes(entry))
    stage, sizes = plan.stage(0), layer(plan).parameters
    weights = layer(plan).program.part.weights
    products = sum(sizes[w.name] for w in weights if "h" in w.indices and len(w.indices) > 1)
    per_parameter = Fraction(sum(stage.resting.values()), stage.parameters)
    size = per_parameter * products * stage.layers / GIB
    return Reproduced(size, size == Fraction(entry.value))


# ------------------------------------------------------------------- a layer's communication
def sent_in_layer(entry: Entry) -> Reproduced:
    """Elements that a layer sends of one micro-batch."""
    return compared(entry, sympy.factor(layer(closed(entry.plan)).sent(FORWARD, BACKWARD)))


def sent_in_stage(entry: Entry) -> Reproduced:
    """Elements that the layers of a stage send of one micro-batch."""
    layers = symbol("l_stage")
    sent = layers * sympy.factor(layer(closed(entry.plan)).sent(FORWARD, BACKWARD))
    return compared(entry, sent, l_stage=layers)


def handed_on(entry: Entry) -> Reproduced:
    """Elements that go from a stage to the next, of one micro-batch."""
    return compared(entry, layer(closed(entry.plan)).handed_on)


def _all_sent(plan: str, again: str) -> Any:
    """What a layer sends, of one micro-batch, in b s h (t - 1)/t."""
    return layer(closed(plan, again)).sent(*PHASES) / form("b*s*h*(t-1)/t")


def sent_with_recomputation(entry: Entry) -> Reproduced:
    """What a layer sends that is made again as a whole, without the (t - 1)/t."""
    return compared(entry, sympy.simplify(_all_sent(entry.plan, EVERYTHING)))


def sent_to_gather_slices(entry: Entry) -> Reproduced:
    """And how much more, if what it takes is kept in slices."""
    passes = sympy.simplify(_all_sent(entry.plan, FROM_SLICES) - _all_sent(entry.plan, EVERYTHING))
    return compared(entry, passes)


def _over_links(strategy: str) -> Any:
    """What a layer sends forward, of one sample, as if it went to the device itself as well."""
    plan = closed(strategy)
    (axis,) = plan.mesh.values()
    sent = layer(plan).sent(FORWARD).subs(SYMBOLS["b"], 1) * axis / (axis - 1)
    return sympy.simplify(sent).subs(axis, SYMBOLS["P"])


def sent_per_link(entry: Entry) -> Reproduced:
    """What a layer sends forward, of N tokens, without the (P - 1)/P."""
    return compared(entry, _over_links(entry.plan).subs(SYMBOLS["s"], N))  # as the source calls them


def ratio_per_link(entry: Entry) -> Reproduced:
    """How many times as much as by all-to-all is sent by gathering."""
    ratio = sympy.simplify(_over_links("tp+sp") / _over_links("cp-all-to-all"))
    return Reproduced(ratio, same(ratio.subs(SYMBOLS["P"], entry.inputs["P"]), entry.value))


def _all_to_all() -> Any:
    """What a device sends of its queries, in those that it has; c devices."""
    costs = layer(closed("cp-all-to-all"))
    sent = [t.elements for t in costs.traffic if t.phase == FORWARD]
    return sympy.simplify(sum(sent) / len(sent) / costs.handed_on)


def sent_by_all_to_all(entry: Entry) -> Reproduced:
    """What a device sends of a value."""
    return factor(entry, _all_to_all().subs(SYMBOLS["c"], N))


def message_per_link(entry: Entry) -> Reproduced:
    """What a device sends of a message of M elements in all, without the (P - 1)/P."""
    P, M = SYMBOLS["P"], SYMBOLS["M"]
    return compared(entry, sympy.simplify(_all_to_all().subs(SYMBOLS["c"], P) * M / P * P / (P - 1)))


# ------------------------------------------------------------------ pipelines, checkpoints, models
def idle_share(entry: Entry) -> Reproduced:
    """Idle time of a pipeline, in the time that its work takes."""
    return compared(entry, bubble_of_ideal(closed("pp").pipe))


def idle_share_of_chunks(entry: Entry) -> Reproduced:
    """The same of one whose stages have v chunks."""
    pipe = replace(closed("pp").pipe, order=Order.INTERLEAVED, chunks=SYMBOLS["v"])
    return compared(entry, bubble_of_ideal(pipe))


def idle_share_of_replicas(entry: Entry) -> Reproduced:
    """The same where n devices are d pipelines, and b' samples one micro-batch each."""
    n, d, samples = (symbol(name) for name in ("n", "d", "b_prime"))
    idle = bubble_of_ideal(replace(closed("pp").pipe, stages=n / d, micro_batches=samples / d))
    return compared(entry, sympy.cancel(idle), d=d, b_prime=samples)


def micro_batches_in_flight(entry: Entry) -> Reproduced:
    """Micro-batches that the first stage keeps: of 1F1B at most so many, and of GPipe."""
    p, m = SYMBOLS["p"], SYMBOLS["m"]
    orders = (Order.ONE_F_ONE_B, Order.GPIPE)
    one_f_one_b, gpipe = forms = [in_flight(Pipeline(order, p, m), 0) for order in orders]
    shown = all(
        gpt("pp", order=order, p=stages, m=steps).stage(0).held.in_flight
        == rule.subs({p: stages, m: steps})
        for order, rule in zip(orders, forms, strict=True)
        for stages, steps in ((4, 12), (4, 2))
    )
    stated = same(one_f_one_b.subs(m, sympy.oo), form(entry.value)) and same(gpipe, form(entry.second))
    return Reproduced((one_f_one_b, gpipe), stated and shown)


def idle_of_v(entry: Entry) -> Reproduced:
    """Idle time of p chunks in a V, a forward and a backward F&B that are one work as long as both."""
    p, m, f, w = (symbol(name) for name in "pmFW")
    idle = bubble(Pipeline(Order.DUALPIPE_V, p / 2, m, 2, f, f + w, of_weights=w))
    stated = form(entry.value, F_B=f + (f + w), B=f + w, W=w)
    return Reproduced(idle, same(idle, stated))


def chunks_in_flight_of_v(entry: Entry) -> Reproduced:
    """Micro-batches, each of one of p chunks, that every stage of a V keeps."""
    p, m = SYMBOLS["p"], SYMBOLS["m"]
    most = in_flight(Pipeline(Order.DUALPIPE_V, p / 2, m, 2), 0).subs(m, sympy.oo)
    stages = gpt("pp", order=Order.DUALPIPE_V, p=4, L=8, m=8, v=2).stages
    shown = all(stage.held.in_flight == most.subs(p, 8) for stage in stages)
    return Reproduced(most, same(most, form(entry.value)) and shown)


def best_checkpoints(entry: Entry) -> Reproduced:
    """Bytes kept with c of l layers' inputs, and for which c they are least."""
    names = {name: symbol(name) for name in ("l", "c", "A_in", "A_mid")}
    rule = kept_at_most(names["c"], names["l"], names["A_in"], names["A_mid"], Closed(padded=False))
    (least,) = sympy.solve(sympy.diff(rule, names["c"]), names["c"])
    value, best = (form(text, **names) for text in (entry.value, entry.second))
    agrees = same(rule, value) and same(least, best) and _is_kept(entry.plan, rule, names)
    return Reproduced((rule, least), agrees)


def _is_kept(strategy: str, rule: Any, names: Mapping[str, Any]) -> bool:
    """Whether so much is predicted for the best number of a model's checkpoints."""
    layers, plans = 48, [gpt(strategy, L=48, t=8, again=again) for again in (EVERYTHING, NOTHING)]
    count, _, size = checkpoints(plans[1], layers) or (0, 0, 0)
    numbers = (layers, count, *(layer(plan).activations for plan in plans))
    of = dict(zip((names[name] for name in ("l", "c", "A_in", "A_mid")), numbers, strict=True))
    return bool(rule.subs(of) == size)


def gpt_parameters(entry: Entry) -> Reproduced:
    """Parameters of a GPT; the head's words are the embedding's."""
    parts = {name: sum(part.parameters.values()) for name, part in closed("dp").costs.items()}
    L, V, h, P = (SYMBOLS[name] for name in "LVhP")
    derived = parts[EMBEDDING] + L * parts[LAYER] + parts[HEAD] - V * h
    layers, s = symbol("l"), SYMBOLS["s"]  # as the source calls them
    derived = sympy.expand(derived.subs({L: layers, P: s}))
    more = sympy.expand(derived - form(entry.value, l=layers))
    numbers = {layers: 4, V: 512, h: 1024, s: 1024}
    agrees = more == 0 and derived.subs(numbers) == gpt("dp", V=512).psi
    return Reproduced(derived, agrees, "" if more == 0 else f"{more} more are predicted")


def gpt_parameter_count(entry: Entry) -> Reproduced:
    """Parameters of a GPT, in 1e9."""
    i = entry.inputs
    psi = Fraction(gpt("dp", L=i["l"], h=i["h"], a=1, V=i["V"], s=i["s"]).psi, 10**9)
    return Reproduced(psi, entry.rounds_to(psi))
