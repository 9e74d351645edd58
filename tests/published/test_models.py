"""Published sizes and volumes of the model axes, reproduced through `psem predict`."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy

from psem_model.published.entries import form, gpt, same
from spec.checkpoints import kept
from spec.pipeline import Kind, Pipeline, in_flight
from tests.support.command import exact
from tests.support.published import entries


def test_megatrons_volumes_are_derived(published):
    value = published["ptdp.formula.tp_comm"].split(" per ")[0]
    for strategy, more in (("tp", []), ("tp+sp", []), ("tp+sp", ["hold"])):
        found = gpt(strategy, 8, **dict.fromkeys(more))
        forms = {phase: form(text) for phase, text in found["formulas"]["layer"].items()}
        assert same(forms["forward"] + forms["backward"], form(value))
        again = {"tp": "0", "tp+sp": "2*b*s*h*(t-1)/t"}[strategy] if not more else "0"
        assert same(forms["again"], form(again))


def test_megatrons_volume_of_a_stage_is_that_of_its_layers(published):
    assert published["ptdp.formula.tp_comm_stage"] == "l_stage*8*b*s*h*(t-1)/t"
    found = gpt("tp*pp", "2x2", L=6, accumulate=5)
    stage = found["stages"][0]
    layer = [o for o in found["communication"]["operations"] if o["axes"] == ["tensor"]]
    per_step = stage["layers"] * 8 * 1024 * 1024 * Fraction(1, 2) * 5
    assert sum(exact(o["elements"]) for o in layer) == per_step


def test_megatrons_sends_are_derived(published):
    value = published["ptdp.formula.p2p"].split(" per ")[0]
    assert same(form(gpt("pp", 4)["formulas"]["pipeline"]["sent"]), form(value))
    assert same(form(gpt("tp*pp", "2x4")["formulas"]["pipeline"]["sent"]), form(value))
    # cut along the sequence, as with its scatter/gather optimisation
    value = published["ptdp.formula.p2p.scatter_gather"]
    assert same(form(gpt("tp+sp*pp", "2x4")["formulas"]["pipeline"]["sent"]), form(value))


@pytest.mark.parametrize("chunks", [1, 2])
def test_megatrons_bubble_is_derived(chunks, published):
    value = published["ptdp.formula.bubble" + (".interleaved" if chunks > 1 else "")]
    found = gpt("pp", 4, L=8, accumulate=12, chunks=chunks)
    assert same(form(found["formulas"]["pipeline"]["bubble_of_ideal"]), form(value))
    assert exact(found["pipeline"]["bubble_of_ideal"]) == Fraction(3, 12 * chunks)
    assert exact(found["pipeline"]["bubble_of_total"]) == Fraction(3, 12 * chunks + 3)


def test_1f1b_keeps_at_most_p_micro_batches_and_gpipe_all(published):
    assert published["ptdp.formula.inflight"] == "1F1B stashes <= p microbatches, GPipe m"
    for p, m in ((4, 12), (4, 2), (8, 9)):
        assert in_flight(Pipeline(Kind.ONE_F_ONE_B, p, m), 0) == min(p, m)
        shown = gpt("pp", p, L=8, accumulate=m, order="gpipe")["stages"]
        assert {stage["in_flight"] for stage in shown} == {m}


def test_as_many_checkpoints_are_kept_as_is_published():
    shape: dict = {"L": 48, "h": 6144, "a": 64, "s": 2048}
    size_in, size_mid = (
        int(exact(gpt("tp", 8, recompute=again, **shape)["parts"]["layer"]["activations"]))
        for again in ("all", "none")
    )
    ratio = sympy.Rational(10) + 3 + sympy.Rational(5 * 64 * 2048, 6144 * 8)
    assert Fraction(size_mid, size_in) == Fraction(int(ratio.p), 2 * int(ratio.q))
    best = min(range(1, 49), key=lambda count: kept(count, 48, size_in, size_mid))
    assert abs(best - sympy.sqrt(48 * ratio / 2)) < 1


@entries("ptdp.params")
def test_gpts_parameters_are_those_of_narayanans_equation_2_and_the_final_norms(entry, predicted):
    i = entry.inputs
    shape = {"layers": i["l"], "hidden": i["h"], "heads": 1, "vocabulary": i["V"], "sequence": i["s"]}
    psi = predicted("dp", devices=1, **shape)["inputs"]["psi"]
    l, h, V, s = (i[name] for name in "lhVs")
    assert psi == 12 * l * h * h + 13 * l * h + (V + s) * h + 2 * h  # and the final norm's 2h


def test_recomputation_sends_what_the_zero_paper_says(published):
    passes = Fraction(1024 * 1024 * 7, 8)  # of sequence x hidden, less what stays
    sent = [gpt("tp", 8, recompute=again)["parts"]["layer"]["elements"] for again in ("all", "sliced")]
    whole, sliced = (
        exact(elements["forward_and_backward"]) + exact(elements["again"]) for elements in sent
    )
    assert whole == published["zero.comm.mp_block"] * passes
    assert sliced - whole == published["zero.comm.Pa_block"] * passes


def test_all_to_all_sends_what_ulysses_says_and_megatron_sends_p_times_as_much(published):
    P, N, h = 64, 2**16, 4096
    shape: dict = {"s": N, "h": h, "a": 64}
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
