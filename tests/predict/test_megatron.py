"""What Megatron-LM pads, keeps and gathers beside tensor parallelism."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from psem_model.measure.measured import Run
from psem_model.measure.simulated import measured
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from tests.support.examples import examples

SHAPE = {
    **{"block": "llama", "layers": "2", "hidden": "16", "heads": "8", "vocabulary": "100"},
    **{"sequence": "8", "feed_forward": "16"},
}


def plan(strategy, profile="megatron", **options):
    return read(Asked("predict", strategy, model={**SHAPE, **options}, profile=profile))


@given(st.integers(1, 300_000), st.sampled_from([1, 2, 4, 8]))
def test_words_are_padded_to_the_next_multiple_of_128_for_each_device(words, devices):
    found = plan(f"tp({devices})", vocabulary=str(words)).indices["v"]
    assert found % (128 * devices) == 0
    assert 0 <= found - words < 128 * devices


def gathers(found, name):
    """How often a layer gathers a value, by phase."""
    traffic = found.layer.traffic
    return Counter(
        t.phase for t in traffic if (t.collective, t.move.value.plain_name) == ("all_gather", name)
    )


@examples(20)
@given(st.sampled_from(["attention_norm", "mlp_norm"]), st.sampled_from(["none", "all"]))
def test_what_products_read_is_gathered_for_backward_also_where_all_is_made_again(name, again):
    times = {"none": 1, "all": 2}[again]
    assert gathers(plan("tp+sp(2)", recompute=again), name) == {"forward": 1, "again": times}
    assert gathers(plan("tp+sp(2)", "common", recompute=again), name)["again"] == 1


def test_gathered_tokens_of_experts_and_their_odds_are_kept():
    strategy, experts = "tp+sp(2) * ep(2)", {"experts": "4", "chosen": "2"}
    for name in ("sent", "slot_odds"):
        found = plan(strategy, **experts)
        assert gathers(found, name) == {"forward": 1}
        (kept,) = (v for v in found.layer.program.kept if v.plain_name == name)
        assert not found.layer.program.lies[kept]["tensor"].index
        assert gathers(plan(strategy, **experts, recompute="all"), name) == {"forward": 1, "again": 1}
        assert gathers(plan(strategy, "common", **experts), "sent") == {"forward": 1, "again": 1}


@examples(10)
@given(
    st.sampled_from(["tp+sp(2) * ep(2)", "tp+sp(2) * zero1(2)", "tp(2) * pp(2)", "tp+sp(2) * cp(2)"]),
    st.sampled_from(["none", "all", "sliced"]),
)
def test_the_simulator_counts_the_same(strategy, again):
    experts = {"experts": "4", "chosen": "2"} if "ep" in strategy else {}
    found = measured(plan(strategy, recompute=again, **experts), Run())
    assert found.divergence is None
    assert not found.unequal
