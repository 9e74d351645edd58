"""Profiles of any kind."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from hypothesis import strategies as st

from spec.costs.memory import MODEL_STATES
from spec.models.layers import ROOT, HeldUnits, Layers
from spec.models.profiles import CROSS_ENTROPY, NORM_FUNCTIONS, Padding, Profile, Samples, Units
from spec.models.states import State
from spec.models.transformer import EMBEDDING, HEAD

PAIRS = ("scores", "scores_capped", "seen", "shares", "shares_mask", "shares_dropped")
INSIDE = (*PAIRS, "gate_open", "active", "gated", "raised", "logits", "logits_capped")
NAMED = ("query", "middle", "up", "active", "mlp_norm", "context", "shares", "gated")
HELD = ("attention_norm", "mlp_norm", "sent", "slot_odds", "final_norm")
FULL = (*sorted(NORM_FUNCTIONS), "softmax", CROSS_ENTROPY)
WORDS = ("word_weight", "head_weight")
WHOLE = (("logits", "loss"), ("largest", "total", "lost", "loss"), (), WORDS[:1], ("logits", *WORDS))


HELD_UNITS = st.builds(
    HeldUnits,
    st.sampled_from([(), (ROOT,), (EMBEDDING,), (HEAD,)]).map(frozenset),
    st.frozensets(st.integers(-4, 3)).map(lambda numbers: Layers(numbers, others=False)),
)
WIDTHS = st.sampled_from([None, 1, 2, 4])
HALF_WIDTHS = WIDTHS | st.just(Fraction(1, 2))
WIDTHS_OF_NAMES = st.dictionaries(st.sampled_from(NAMED), st.integers(1, 4))


@cache
def some_of(names):
    """Some of them: one strategy, which Hypothesis looks into once."""
    return st.frozensets(st.sampled_from(names))


@st.composite
def profiles(draw):
    """Any kernels, types, units and padding."""

    def some(names):
        return draw(some_of(names))

    whole = frozenset(draw(st.sampled_from(WHOLE)))
    return Profile(
        "drawn",
        inside=some(INSIDE) - whole,  # what is inside a kernel is not sent
        again=some((*NAMED, *NORM_FUNCTIONS)),
        stores=some(("down", "output", "mlp_norm", "raised")),
        widths=tuple(draw(WIDTHS_OF_NAMES).items()),
        in_full=some(FULL),
        scales_in_full=draw(st.booleans()),
        repeats=draw(st.booleans()),
        rows=some(tuple(NORM_FUNCTIONS)),
        rows_as_computed=some(tuple(NORM_FUNCTIONS)),
        composes=draw(st.booleans()),
        masks=draw(st.booleans()),
        heads_alike=draw(st.booleans()),
        keeps_given=draw(st.booleans()),
        routes=draw(st.booleans()),
        as_computed=some(("slot_odds", "left_by_sinks", "total")),
        views=draw(st.booleans()),
        whole=whole,
        maximum=draw(st.booleans()),
        samples=draw(st.sampled_from(Samples)),
        each=draw(st.booleans()),
        holds=draw(st.booleans()),
        held_units=draw(HELD_UNITS),
        rings_in_full=draw(st.booleans()),
        unpadded=some(tuple(State)),
        whole_gradients=some(WORDS),
        like_gradients=draw(st.booleans()),
        merged=some(("total", "lost", "logits")),
        overwritten=some((*NAMED, *INSIDE)),
        buckets=(draw(st.integers(1, 300)), draw(st.integers(1, 300))),
        copies=draw(st.booleans()),
        apart=draw(st.booleans()),
        sums_first=draw(st.booleans()),
        uses=draw(st.integers(1, 3)),
        step_counts=draw(st.booleans()),
        at_once=draw(st.booleans()),
        weighs_within=draw(st.booleans()),
        held=some(HELD),
        gathers_again=draw(st.booleans()),
        elements_a_device=draw(st.integers(1, 4)),
        words_a_device=draw(st.integers(1, 4)),
        waits_whole=draw(st.booleans()),
        waits_staged=draw(st.booleans()),
        stays=draw(st.booleans()),
        sums_whole=draw(st.booleans()),
        fills=draw(st.booleans()),
        adds_alone=draw(st.booleans()),
        placeholders=draw(st.booleans()),
        uneven=draw(st.booleans()),
        copies_heads=draw(st.booleans()),
        adds_back=draw(st.booleans()),
        pinned=some(MODEL_STATES),
        starts_whole=draw(st.booleans()),
        gathered=draw(WIDTHS),
        reduced=draw(HALF_WIDTHS),
        quantised=draw(HALF_WIDTHS),
        units=draw(st.sampled_from(Units)),
        padding=draw(st.sampled_from(Padding)),
        prefetch=draw(st.integers(0, 3)),
    )
