"""How many parameters a model has: published sizes of GPTs, and what is counted once."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from spec.costs.model_costs import parameters
from spec.models.transformer import Transformer

# Narayanan et al., arXiv 2104.04473, Table 1: layers, hidden size, billions of parameters;
# 51,200 words and 2,048 positions throughout
GPT_TABLE = [
    (24, 2304, "1.7"),
    (40, 6144, "18.4"),
    (48, 8192, "39.1"),
    (80, 12288, "145.6"),
    (128, 25600, "1008.0"),
]


def count(model):
    return sum(parameters(model).values())


def gpt(layers, hidden, heads, words, places):
    return Transformer(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden / heads,
        feed_forward=4 * hidden,
        vocabulary=words,
        positions=places,
        tied=True,
    )


def test_a_gpt_has_the_parameters_of_equation_2_and_the_final_norm():
    # Narayanan et al., arXiv 2104.04473, equation 2, which leaves the final norm out
    l, h, a, v, s = sympy.symbols("l h a V s", positive=True)
    equation = 12 * l * h**2 * (1 + sympy.Rational(13) / (12 * h) + (v + s) / (12 * l * h))
    assert sympy.expand(count(gpt(l, h, a, v, s)) - equation) == 2 * h


@pytest.mark.parametrize(("layers", "hidden", "billions"), GPT_TABLE)
def test_the_ptdp_papers_sizes_of_gpts_are_reproduced(layers, hidden, billions):
    exact = count(gpt(layers, hidden, sympy.Integer(1), 51200, 2048))
    assert round(Decimal(int(exact)) / 10**9, 1) == Decimal(billions)


@given(st.integers(1, 50), *[st.integers(1, 40)] * 6, st.booleans(), st.booleans())
def test_words_are_counted_once_if_tied_and_twice_if_not(l, g, r, d, h, f, v, gated, biased):
    def model(tied):
        biases = frozenset({"qkv", "output", "mlp"} if biased else ())
        return Transformer(l, h, g * r, g, d, f, v, gated, biases=biases, tied=tied)

    tied, untied = parameters(model(True)), parameters(model(False))
    assert untied.pop("head.head_weight") == v * h
    assert untied == tied


def test_a_layers_weights_are_those_of_all_layers():
    one, four = (parameters(gpt(n, 8, 2, 20, 6)) for n in (1, 4))
    assert four == {k: v * (4 if k.startswith("layers.") else 1) for k, v in one.items()}
