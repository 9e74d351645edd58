"""Published values of model axes, pipelines and checkpoints: what predicts each."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy

from psem_model.predict.closed_models import in_flight
from psem_model.predict.model_symbolic import symbol
from psem_model.predict.symbolic import Closed
from psem_model.published.entries import (
    GIB,
    SYMBOLS,
    Entry,
    Reproduced,
    exact,
    form,
    gpt,
    predicted,
    same,
)
from psem_model.published.states import one_all_to_all
from spec.checkpoints import kept
from spec.pipeline import Kind as Order
from spec.pipeline import Pipeline

# ------------------------------------------------------------------------------ a layer's memory
T, C = SYMBOLS["t"], SYMBOLS["c"]
# of Korthikanti et al.: strategy, and what is made again
OF_TABLE_2 = {
    "none": ("tp", 1, "none"),
    "tp": ("tp", 8, "none"),
    "tpsp": ("tp+sp", 8, "none"),
    "tpsel": ("tp", 8, "attention"),
    "tpspsel": ("tp+sp", 8, "attention"),
    "full": ("tp", 8, "all"),
}
LAYERS_OF_STAGE = sympy.Symbol("l_stage", positive=True)
OF_FIGURE_1 = {"none": ("tp", "none"), "seqsel": ("tp+sp", "attention")}


def _shape(entry: Entry, names: str) -> dict[str, Any]:
    return {name: entry.inputs[name] for name in names}


def _of_a_layer(entry: Entry) -> Reproduced:
    _, _, name, *model = entry.id.split(".")
    strategy, devices, again = OF_TABLE_2[name]
    if model:
        found = gpt(strategy, devices, recompute=again, **_shape(entry, "bshaL"))
        size = exact(found["parts"]["layer"]["activations"]) / GIB
        return Reproduced(size, size == Fraction(entry.value))
    derived = form(gpt(strategy, devices, recompute=again)["formulas"]["layer"]["activations"])
    derived = derived.subs(T, 1) if devices == 1 else derived
    return Reproduced(derived, same(derived, form(entry.value)))


def _of_all_layers(entry: Entry) -> Reproduced:
    strategy, again = OF_FIGURE_1[entry.id.split(".")[-1]]
    p, shape = entry.inputs["p"], _shape(entry, "bshaL")
    if p == 1:
        found = gpt(strategy, 8, recompute=again, **shape)
    else:
        pipe = {"chunks": entry.inputs["m"], "accumulate": 8 * p}
        found = gpt(f"{strategy}*pp", f"8x{p}", recompute=again, **shape, **pipe)
    size = exact(found["memory"]["activations_of_layers"]) / GIB
    return Reproduced(size, size == Fraction(entry.value) and found["memory"]["stage"] == 0)


def _of_model_states(entry: Entry) -> Reproduced:
    # of each weight of a product; the source leaves offsets, norms and words out
    p, t, layers = (entry.inputs[name] for name in "ptL")
    strategy, devices = ("tp", t) if p == 1 else ("tp*pp", f"{t}x{p}")
    shape = _shape(entry, "bhaL")
    found = gpt(strategy, devices, s=2048, bytes="mixed-adam-fp32-gradients", **shape)
    of_stage = found["stages"][0]
    products = sum(size for name, size in found["parameters"].items() if name.endswith("_weight"))
    per_parameter = exact(of_stage["resting"]) / of_stage["parameters"]
    size = per_parameter * Fraction(products * of_stage["layers"], layers * t) / GIB
    return Reproduced(size, size == Fraction(entry.value))


# ------------------------------------------------------------------- a layer's communication
def _sent(strategy: str, devices: Any, *phases: str, **more: Any) -> Any:
    """The closed form of what a layer sends in some phases."""
    found = gpt(strategy, devices, **more)["formulas"]["layer"]
    return sum(form(found[phase]) for phase in phases)


def _compared(entry: Entry, derived: Any) -> Reproduced:
    """A formula beside the published one, which words may follow."""
    published = form(entry.value.split(" per ")[0], l_stage=LAYERS_OF_STAGE)
    return Reproduced(derived, same(derived, published))


def _of_tensor_parallelism(entry: Entry) -> Reproduced:
    return _compared(entry, _sent("tp", 8, "forward", "backward"))


def _of_a_stage(entry: Entry) -> Reproduced:
    return _compared(entry, LAYERS_OF_STAGE * _sent("tp", 8, "forward", "backward"))


def _of_pipeline(name: str, strategy: str = "pp", devices: Any = 4, **more: Any) -> Any:
    return form(gpt(strategy, devices, **more)["formulas"]["pipeline"][name])


def _handed_on(entry: Entry) -> Reproduced:
    return _compared(entry, _of_pipeline("sent"))


def _handed_on_in_slices(entry: Entry) -> Reproduced:
    return _compared(entry, _of_pipeline("sent", "tp+sp*pp", "2x4"))


def _with_recomputation(entry: Entry) -> Reproduced:
    again = [_sent("tp", 8, "forward", "backward", "again", recompute=r) for r in ("all", "sliced")]
    found = again[0] if entry.id.endswith("mp_block") else again[1] - again[0]
    passes = sympy.simplify(found / form("b*s*h*(t-1)/t"))
    return Reproduced(passes, same(passes, entry.value))


def _over_links(strategy: str, axis: Any) -> Any:
    """What a layer sends forward, of one sample, as if it went to the device itself as well."""
    sent = _sent(strategy, 64, "forward", s=2**16, h=4096, a=64).subs(SYMBOLS["b"], 1)
    return sympy.simplify(sent * axis / (axis - 1)).subs(axis, SYMBOLS["P"])


def _of_ulysses(entry: Entry, derived: Any) -> Reproduced:
    tokens = derived.subs(SYMBOLS["s"], SYMBOLS["N"])  # as the source calls them
    return Reproduced(tokens, same(tokens, form(entry.value)))


def _by_all_to_all(entry: Entry) -> Reproduced:
    return _of_ulysses(entry, _over_links("cp-all-to-all", C))


def _by_gathering(entry: Entry) -> Reproduced:
    return _of_ulysses(entry, _over_links("tp+sp", T))


def _one_all_to_all(entry: Entry) -> Reproduced:
    P, M = SYMBOLS["P"], SYMBOLS["M"]
    sent, own = (found.subs(C, P) for found in one_all_to_all())
    return _of_ulysses(entry, sympy.simplify(sent / (own * P) * M * P / (P - 1)))


def _of_both(entry: Entry) -> Reproduced:
    ratio = sympy.simplify(_over_links("tp+sp", T) / _over_links("cp-all-to-all", C))
    return Reproduced(ratio, same(ratio.subs(SYMBOLS["P"], entry.inputs["P"]), entry.value))


# ------------------------------------------------------------------ pipelines, checkpoints, models
def _idle(entry: Entry) -> Reproduced:
    chunks = 2 if entry.id.endswith("interleaved") else 1
    return _compared(entry, _of_pipeline("bubble_of_ideal", L=8, accumulate=12, chunks=chunks))


def _idle_of_replicas(entry: Entry) -> Reproduced:
    n, d, samples = sympy.symbols("n d b_prime", positive=True)
    idle = _of_pipeline("bubble_of_ideal", L=8, accumulate=12)
    derived = sympy.cancel(idle.subs({SYMBOLS["p"]: n / d, SYMBOLS["m"]: samples / d}))
    return Reproduced(derived, same(derived, form(entry.value, n=n, d=d, b_prime=samples)))


def _kept_in_flight(entry: Entry) -> Reproduced:
    p, m = SYMBOLS["p"], SYMBOLS["m"]
    orders = (Order.ONE_F_ONE_B, Order.GPIPE)
    one_f_one_b, gpipe = forms = [in_flight(Pipeline(order, p, m), 0) for order in orders]
    shown = all(
        _of_first_stage(order, *numbers)["in_flight"] == rule.subs({p: numbers[0], m: numbers[1]})
        for order, rule in zip(orders, forms, strict=True)
        for numbers in ((4, 12), (4, 2))
    )
    stated = entry.value == "1F1B stashes <= p microbatches, GPipe m"
    bounded = sympy.Min(one_f_one_b, p) == one_f_one_b and same(gpipe, m)
    return Reproduced((one_f_one_b, gpipe), stated and bounded and shown)


def _of_first_stage(order: Order, stages: int, micro_batches: int) -> dict[str, Any]:
    found = gpt("pp", stages, accumulate=micro_batches, order=order.value)
    return dict(found["stages"][0])


def _with_checkpoints(entry: Entry) -> Reproduced:
    names = {name: symbol(name) for name in ("l", "c", "A_in", "A_mid")}
    rule = kept(names["c"], names["l"], names["A_in"], names["A_mid"], Closed(padded=False))
    (least,) = sympy.solve(sympy.diff(rule, names["c"]), names["c"])
    value, best = (form(text, **names) for text in entry.value.split(", min at c="))
    agrees = same(rule, value) and same(least, best) and _predicted_with_checkpoints(rule, names)
    return Reproduced((rule, least), agrees)


def _predicted_with_checkpoints(rule: Any, names: dict[str, Any]) -> bool:
    """Whether so much is predicted for the best number of a model's checkpoints."""
    sizes = [
        exact(gpt("tp", 8, L=48, recompute=again)["parts"]["layer"]["activations"])
        for again in ("all", "none")
    ]
    shown = gpt("tp", 8, L=48)["checkpoints"]
    numbers = zip(("l", "c", "A_in", "A_mid"), (48, shown["best"], *sizes), strict=True)
    found = rule.subs({names[name]: sympy.Rational(number) for name, number in numbers})
    return bool(found == exact(shown["activations"]))


def _parameters(entry: Entry) -> Reproduced:
    found = gpt("dp", 1, vocabulary=512)
    by_part = {name: form(part["parameters"]) for name, part in found["formulas"].items()}
    L, V, h = (SYMBOLS[name] for name in "LVh")
    # the head's words are the embedding's
    derived = by_part["embedding"] + L * by_part["layer"] + by_part["head"] - V * h
    layers, s = symbol("l"), SYMBOLS["s"]  # as the source calls them
    derived = sympy.expand(derived).subs({L: layers, SYMBOLS["P"]: s})
    more = sympy.expand(derived - form(entry.value, l=layers))
    agrees = more == 0 and derived.subs({layers: 4, V: 512, h: 1024, s: 1024}) == found["inputs"]["psi"]
    return Reproduced(derived, agrees, "" if more == 0 else f"{more} more are predicted")


def _number_of_parameters(entry: Entry) -> Reproduced:
    i = entry.inputs
    shape = {"layers": i["l"], "hidden": i["h"], "heads": 1, "vocabulary": i["V"], "sequence": i["s"]}
    psi = Fraction(predicted("dp", devices=1, **shape)["inputs"]["psi"], 10**9)
    return Reproduced(psi, entry.rounds_to(psi))


RULES = {  # by how an entry's name begins
    "korth.table2": _of_a_layer,
    "korth.fig1.22B.act": _of_all_layers,
    "korth.fig1.530B.act": _of_all_layers,
    "korth.fig1.22B.params": _of_model_states,
    "korth.fig1.530B.params": _of_model_states,
    "ptdp.formula.tp_comm": _of_tensor_parallelism,
    "ptdp.formula.tp_comm_stage": _of_a_stage,
    "ptdp.formula.p2p": _handed_on,
    "ptdp.formula.p2p.scatter_gather": _handed_on_in_slices,
    "zero.comm.mp_block": _with_recomputation,
    "zero.comm.Pa_block": _with_recomputation,
    "seq.ulysses": _by_all_to_all,
    "seq.megatron_sp": _by_gathering,
    "seq.a2a": _one_all_to_all,
    "seq.ratio": _of_both,
    "ptdp.formula.bubble": _idle,
    "ptdp.formula.bubble.interleaved": _idle,
    "ptdp.formula.bubble.d": _idle_of_replicas,
    "ptdp.formula.inflight": _kept_in_flight,
    "ptdp.formula.ckpt_opt": _with_checkpoints,
    "ptdp.formula.params": _parameters,
    "ptdp.params": _number_of_parameters,
}
