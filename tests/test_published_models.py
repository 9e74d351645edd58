"""Published sizes and volumes of the model axes, reproduced through `psem predict`."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
import sympy

from psem_model import model_symbolic
from psem_model.symbolic import Closed
from spec.checkpoints import kept
from spec.collectives import COLLECTIVES
from spec.pipeline import Kind, Pipeline, bubble_of_ideal, in_flight
from tests.conftest import exact
from tests.test_published import entries, printed

GIB = 2**30
# of Korthikanti et al.: strategy, and what is made again
OF_TABLE_2 = {
    "none": ("tp", 1, "none"),
    "tp": ("tp", 8, "none"),
    "tpsp": ("tp+sp", 8, "none"),
    "tpsel": ("tp", 8, "attention"),
    "tpspsel": ("tp+sp", 8, "attention"),
    "full": ("tp", 8, "all"),
}
S = {name: model_symbolic.symbol(name) for name in "bshatmpvVLP"}


@pytest.fixture
def gpt(predicted):
    """gpt("tp", 8, b=4, s=2048, h=6144, a=64, L=48) -> the prediction for a GPT of that shape."""

    def run(strategy, devices, b=1, s=1024, h=1024, a=16, L=4, recompute="none", **more):
        shape = {"layers": L, "hidden": h, "heads": a, "sequence": s, "micro-batch": b}
        return predicted(strategy, devices=devices, recompute=recompute, **shape, **more)

    return run


def shape_of(entry):
    return {name: entry["inputs"][name] for name in "bshaL"}


def formula(given):
    """A published formula in symbols."""
    return sympy.sympify(
        given.replace("sbh", "s*b*h").replace("5as", "5*a*s").replace("(ht)", "(h*t)"), locals=S
    )


def same(derived, published):
    return sympy.simplify(sympy.sympify(derived, locals=S) - published) == 0


@pytest.mark.parametrize("entry", entries("korth.table2"))
def test_activations_of_a_layer_are_those_of_korthikantis_table_2(entry, gpt):
    _, _, name, *model = entry["id"].split(".")
    strategy, devices, again = OF_TABLE_2[name]
    if model:
        found = gpt(strategy, devices, recompute=again, **shape_of(entry))
        assert exact(found["parts"]["layer"]["activations"]) / GIB == Fraction(entry["value"])
    else:
        derived = gpt(strategy, devices, recompute=again)["formulas"]["layer"]["activations"]
        published = formula(entry["value"])
        if devices == 1:
            derived = str(sympy.sympify(derived, locals=S).subs(S["t"], 1))
        assert same(derived, published)


@pytest.mark.parametrize("entry", entries("korth.fig1.22B.act", "korth.fig1.530B.act"))
def test_activations_of_all_layers_are_those_of_korthikantis_figure_1(entry, gpt):
    inputs, name = entry["inputs"], entry["id"].split(".")[-1]
    strategy, again = {"none": ("tp", "none"), "seqsel": ("tp+sp", "attention")}[name]
    if inputs["p"] == 1:
        found = gpt(strategy, 8, recompute=again, **shape_of(entry))
    else:
        pipe = {"chunks": inputs["m"], "accumulate": 8 * inputs["p"]}
        found = gpt(f"{strategy}*pp", f"8x{inputs['p']}", recompute=again, **shape_of(entry), **pipe)
        assert found["memory"]["stage"] == 0
    layers = exact(found["memory"]["activations_of_layers"])
    assert layers / GIB == Fraction(entry["value"])


@pytest.mark.parametrize("entry", entries("korth.fig1.22B.params", "korth.fig1.530B.params"))
def test_model_states_are_those_of_korthikantis_figure_1(entry, gpt):
    # 18 bytes for each weight of a product; the source leaves offsets, norms and words out
    inputs = entry["inputs"]
    strategy, devices = ("tp", 8) if inputs["p"] == 1 else ("tp*pp", f"8x{inputs['p']}")
    shape = {name: inputs[name] for name in "bhaL"}
    found = gpt(strategy, devices, s=2048, bytes="mixed-adam-fp32-gradients", **shape)
    stage = found["stages"][0]
    products = sum(size for name, size in found["parameters"].items() if name.endswith("_weight"))
    assert stage["layers"] == inputs["L"] // inputs["p"]
    per_device = Fraction(products, inputs["L"]) * stage["layers"] / inputs["t"]
    per_parameter = exact(stage["resting"]) / stage["parameters"]
    assert per_parameter == 18
    assert per_parameter * per_device / GIB == Fraction(entry["value"])


def test_megatrons_volumes_are_derived(gpt, published):
    value = published["ptdp.formula.tp_comm"].split(" per ")[0]
    for strategy, more in (("tp", []), ("tp+sp", []), ("tp+sp", ["hold"])):
        shape = {"strategy": strategy, "devices": 8}
        found = gpt(**shape) if not more else gpt(**shape, hold=None)
        forms = found["formulas"]["layer"]
        assert same(f"{forms['forward']} + {forms['backward']}", formula(value))
        again = {"tp": "0", "tp+sp": "2*b*s*h*(t-1)/t"}[strategy] if not more else "0"
        assert same(forms["again"], formula(again))


def test_megatrons_volume_of_a_stage_is_that_of_its_layers(gpt, published):
    assert published["ptdp.formula.tp_comm_stage"] == "l_stage*8*b*s*h*(t-1)/t"
    found = gpt("tp*pp", "2x2", L=6, accumulate=5)
    stage = found["stages"][0]
    layer = [o for o in found["communication"]["operations"] if o["axes"] == ["tensor"]]
    per_step = stage["layers"] * 8 * 1024 * 1024 * Fraction(1, 2) * 5
    assert sum(exact(o["elements"]) for o in layer) == per_step


def test_megatrons_sends_are_derived(gpt, published):
    value = published["ptdp.formula.p2p"].split(" per ")[0]
    assert same(gpt("pp", 4)["formulas"]["pipeline"]["sent"], formula(value))
    assert same(gpt("tp*pp", "2x4")["formulas"]["pipeline"]["sent"], formula(value))
    # cut along the sequence, as with its scatter/gather optimisation
    value = published["ptdp.formula.p2p.scatter_gather"]
    assert same(gpt("tp+sp*pp", "2x4")["formulas"]["pipeline"]["sent"], formula(value))


@pytest.mark.parametrize("chunks", [1, 2])
def test_megatrons_bubble_is_derived(chunks, gpt, published):
    value = published["ptdp.formula.bubble" + (".interleaved" if chunks > 1 else "")]
    found = gpt("pp", 4, L=8, accumulate=12, chunks=chunks)
    assert same(found["formulas"]["pipeline"]["bubble_of_ideal"], formula(value))
    assert exact(found["pipeline"]["bubble_of_ideal"]) == Fraction(3, 12 * chunks)
    assert exact(found["pipeline"]["bubble_of_total"]) == Fraction(3, 12 * chunks + 3)


def test_megatrons_bubble_with_data_parallelism_is_derived(published):
    n, d, b_prime = sympy.symbols("n d b_prime", positive=True)
    pipe = Pipeline(Kind.ONE_F_ONE_B, n / d, b_prime / d)
    published_ = sympy.sympify(published["ptdp.formula.bubble.d"], locals={"b_prime": b_prime})
    assert sympy.simplify(bubble_of_ideal(pipe) - published_.subs({"n": n, "d": d})) == 0


def test_1f1b_keeps_at_most_p_micro_batches_and_gpipe_all(gpt, published):
    assert published["ptdp.formula.inflight"] == "1F1B stashes <= p microbatches, GPipe m"
    for p, m in ((4, 12), (4, 2), (8, 9)):
        assert in_flight(Pipeline(Kind.ONE_F_ONE_B, p, m), 0) == min(p, m)
        shown = gpt("pp", p, L=8, accumulate=m, schedule="gpipe")["stages"]
        assert {stage["in_flight"] for stage in shown} == {m}


def test_checkpoints_keep_what_is_published(gpt, published):
    l, c, a_in, a_mid = sympy.symbols("l c A_in A_mid", positive=True)
    value, best = published["ptdp.formula.ckpt_opt"].split(", min at c=")
    names = {"l": l, "c": c, "A_in": a_in, "A_mid": a_mid}
    rule = kept(c, l, a_in, a_mid, Closed(padded=False))
    assert sympy.simplify(rule - sympy.sympify(value, locals=names)) == 0
    assert sympy.solve(sympy.diff(rule, c), c) == [sympy.sympify(best, locals=names)]
    shown = gpt("tp", 8, L=48, h=6144, a=64, s=2048)["checkpoints"]  # 2 sbh, and the layer's
    ratio = sympy.Rational(10) + 3 + sympy.Rational(5 * 64 * 2048, 6144 * 8)
    assert abs(shown["best"] - sympy.sqrt(48 * ratio / 2)) < 1


@pytest.mark.parametrize("entry", entries("ptdp.params"))
def test_gpts_parameters_are_those_of_narayanans_table_1(entry, predicted):
    i = entry["inputs"]
    shape = {"layers": i["l"], "hidden": i["h"], "heads": 1, "vocabulary": i["V"], "sequence": i["s"]}
    psi = predicted("dp", devices=1, **shape)["inputs"]["psi"]
    assert printed(Fraction(psi, 10**9), entry["value"], ROUND_HALF_UP) == Decimal(repr(entry["value"]))
    l, h, V, s = (i[name] for name in "lhVs")
    assert psi == 12 * l * h * h + 13 * l * h + (V + s) * h + 2 * h  # and the final norm's 2h


def test_recomputation_sends_what_the_zero_paper_says(gpt, published):
    passes = Fraction(1024 * 1024 * 7, 8)  # of sequence x hidden, less what stays
    sent = [gpt("tp", 8, recompute=again)["parts"]["layer"]["elements"] for again in ("all", "sliced")]
    whole, sliced = (
        exact(elements["forward_and_backward"]) + exact(elements["again"]) for elements in sent
    )
    assert whole == published["zero.comm.mp_block"] * passes
    assert sliced - whole == published["zero.comm.Pa_block"] * passes


def test_all_to_all_sends_what_ulysses_says_and_megatron_sends_p_times_as_much(gpt, published):
    P, N, h = 64, 2**16, 4096
    shape = {"s": N, "h": h, "a": 64}
    found = {
        name: exact(gpt(name, P, **shape)["parts"]["layer"]["elements"]["forward"]) * P / (P - 1)
        for name in ("cp-all-to-all", "tp+sp")
    }
    assert found["cp-all-to-all"] == eval(published["seq.ulysses"], {"N": N, "h": h, "P": P})
    assert found["tp+sp"] == eval(published["seq.megatron_sp"], {"N": N, "h": h})
    assert found["tp+sp"] / found["cp-all-to-all"] == published["seq.ratio"]
    moves = gpt("cp-all-to-all", P, **shape)["parts"]["layer"]["moves"]
    assert published["seq.a2a"] == "M/P"
    assert exact(moves[0]["elements"]) * P / (P - 1) == Fraction(N * h, P)


def test_chains_send_what_nccl_counts_for_broadcasts(published):
    for n in (2, 3, 64):  # an all-to-all: (n - 1)/n of what a device has
        factor = eval(published["nccl.factor.AlltoAll"], {"n": Fraction(n)})
        assert COLLECTIVES["all_to_all"].volume(n, Fraction(1, n)) == factor
