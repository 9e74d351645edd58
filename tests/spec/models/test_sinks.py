"""Sinks of attention: a weight that all-to-all attention cuts among heads, on its own."""

import pytest

from spec.checking.steps import check_step
from spec.derivation.steps import derive
from spec.models.parts import parts
from spec.models.transformer import Transformer
from spec.plans.compose import Product, factor

MODEL = Transformer(
    1, 4, 2, 2, 2, 1, 3, norm="layer_norm", biases=frozenset(), sinks=True, experts=1, chosen=1
)
CUTS = (
    *("tp", "tp+sp", "cp", "cp-all-gather", "cp-all-to-all", "ep"),
    *("tp*cp-all-to-all", "cp-all-to-all*ep", "tp+sp*cp-all-to-all*ep"),
)


@pytest.mark.parametrize("cuts", CUTS)
def test_gradients_of_sinks_are_summed_over_samples_with_the_states(cuts):
    names = ("dp", *cuts.split("*"))
    step = derive(Product(tuple(map(factor, names))), parts(MODEL))
    check_step(step)
    assert "batch" in step.summed_over()["sink_weight"]
