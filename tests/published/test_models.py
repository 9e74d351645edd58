"""What the sources say of the model axes, beside plans that their formulas are not derived for."""

from fractions import Fraction

import pytest
import sympy

from psem_model.predict.gpt import gpt
from psem_model.predict.gpt import plan as closed
from psem_model.predict.parts import AGAIN, BACKWARD, FORWARD
from psem_model.published.entries import SYMBOLS, form, published, same
from psem_model.published.models import layer
from spec.derivation.programs import EVERYTHING, NOTHING
from spec.pipelines.checkpoints import kept_at_most
from spec.pipelines.idle_and_held import bubble_of_ideal, bubble_of_makespan

BY_ID = {entry.id: entry for entry in published()}
LARGE = {"s": 2**16, "h": 4096, "a": 64}


@pytest.mark.parametrize(("strategy", "held"), [("tp", False), ("tp+sp", False), ("tp+sp", True)])
def test_megatrons_volumes_are_derived_whatever_is_gathered_again(strategy, held):
    costs = layer(closed(strategy, held=held))
    assert same(costs.sent(FORWARD, BACKWARD), form(BY_ID["ptdp.formula.tp_comm"].value))
    again = "2*b*s*h*(t-1)/t" if strategy == "tp+sp" and not held else "0"
    assert same(costs.sent(AGAIN), form(again))


def test_megatrons_volume_of_a_stage_is_that_of_its_layers():
    stage = gpt("tp*pp", t=2, p=2, L=6, m=5).busiest
    sent = sum(moved.elements for moved in stage.moved if moved.axes == ("tensor",))
    of_a_layer = form(BY_ID["ptdp.formula.tp_comm"].value)
    sizes = {SYMBOLS[name]: size for name, size in {"b": 1, "s": 1024, "h": 1024, "t": 2}.items()}
    assert sent == stage.layers * of_a_layer.subs(sizes) * 5


def test_megatrons_sends_are_derived_beside_tensor_parallelism():
    assert same(layer(closed("tp*pp")).handed_on, form(BY_ID["ptdp.formula.p2p"].value))


@pytest.mark.parametrize("chunks", [1, 2])
def test_megatrons_bubble_is_relative_to_the_ideal_time(chunks):
    pipe = gpt("pp", p=4, L=8, m=12, v=chunks).pipe
    assert bubble_of_ideal(pipe) == Fraction(3, 12 * chunks)
    assert bubble_of_makespan(pipe) == Fraction(3, 12 * chunks + 3)


def test_as_many_checkpoints_are_kept_as_is_published():
    shape = {"L": 48, "h": 6144, "a": 64, "s": 2048, "t": 8}
    size_in, size_mid = (
        layer(gpt("tp", again=again, **shape)).activations for again in (EVERYTHING, NOTHING)
    )
    ratio = sympy.Rational(10) + 3 + sympy.Rational(5 * 64 * 2048, 6144 * 8)
    assert Fraction(size_mid, size_in) == Fraction(int(ratio.p), 2 * int(ratio.q))
    best = min(range(1, 49), key=lambda count: kept_at_most(count, 48, size_in, size_mid))
    assert abs(best - sympy.sqrt(48 * ratio / 2)) < 1


@pytest.mark.parametrize("name", [name for name in BY_ID if name.startswith("ptdp.params")])
def test_gpts_parameters_are_those_of_narayanans_equation_2_and_the_final_norms(name):
    l, h, V, s = (BY_ID[name].inputs[letter] for letter in "lhVs")
    psi = gpt("dp", L=l, h=h, a=1, V=V, s=s).psi
    assert psi == 12 * l * h * h + 13 * l * h + (V + s) * h + 2 * h  # and the final norm's 2h


def test_recomputation_sends_what_the_zero_paper_says():
    passes = Fraction(1024 * 1024 * 7, 8)  # of sequence x hidden, less what stays
    plans = [gpt("tp", t=8, again=again) for again in ("all", "sliced")]
    whole, sliced = (layer(plan).sent(FORWARD, BACKWARD, AGAIN) for plan in plans)
    assert whole == BY_ID["zero.comm.mp_block"].value * passes
    assert sliced - whole == BY_ID["zero.comm.Pa_block"].value * passes


def test_all_to_all_sends_what_ulysses_says_and_megatron_sends_p_times_as_much():
    P, N, h = 64, LARGE["s"], LARGE["h"]
    by_all_to_all, by_gathering = (
        Fraction(layer(gpt(name, **LARGE, **{axis: P})).sent(FORWARD) * P, P - 1)
        for name, axis in (("cp-all-to-all", "c"), ("tp+sp", "t"))
    )
    assert (by_all_to_all, by_gathering) == (Fraction(4 * N * h, P), Fraction(4 * N * h))
    assert by_gathering / by_all_to_all == BY_ID["seq.ratio"].value
    first = layer(gpt("cp-all-to-all", **LARGE, c=P)).traffic[0]
    assert Fraction(first.elements * P, P - 1) == Fraction(N * h, P)
