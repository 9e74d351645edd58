"""What else may differ between the layers of two families of models."""

from __future__ import annotations

from hypothesis import strategies as st

from spec.models.transformer import CAPPED, DROPPED, JOINED, LAYER_KINDS, NORMS, USUAL_NORMS, Latent

SMALL = st.integers(1, 3)
BIASES = st.frozensets(st.sampled_from(["qkv", "output", "mlp"]))
KINDS = st.lists(st.frozensets(st.sampled_from(sorted(LAYER_KINDS))), max_size=3).map(tuple)
DROPOUTS = st.just(DROPPED) | st.frozensets(st.sampled_from(sorted(DROPPED)))
VARIATIONS = st.fixed_dictionaries(
    {},
    optional={
        "norms": st.just(USUAL_NORMS) | st.frozensets(st.sampled_from(sorted(NORMS))),
        "parallel": st.booleans(),
        "spare": st.sampled_from([0, 2]),
        "distances": st.booleans(),
        "windows": st.lists(st.integers(0, 4), max_size=2).map(tuple),
        "capped": st.frozensets(st.sampled_from(sorted(CAPPED))),
        "dropout": DROPOUTS,
        "sinks": st.booleans(),
        **dict.fromkeys(("scales_in_full", "angles_in_full", "plain_softmax"), st.booleans()),
        "chunked": st.booleans(),
        "unnormed": st.booleans(),
        "word_features": st.sampled_from([0, 0, 2]),
        **dict.fromkeys(
            ("offset_scales", "scaled_words", "numbered_heads", "shares_mask"), st.booleans()
        ),
        **dict.fromkeys(
            ("normed", "of_groups", "of_chosen", "plain_odds", "chosen_in_full"), st.booleans()
        ),
        "paired_angles": st.booleans(),
        "tempered": st.booleans(),
        "clamped": st.booleans(),
        "joined": st.frozensets(st.sampled_from(sorted(JOINED))),
        "reads_first": st.booleans(),
        "latent": st.builds(Latent, SMALL, st.integers(0, 3), SMALL, SMALL),
    },
)


@st.composite
def experts(draw, most, chosen, tensor=1):
    """So many experts, or none; beside them an MLP that all tokens share, and layers without any."""
    if not most:
        return {}
    return {
        "experts": most,
        "chosen": chosen,
        "odds": draw(st.sampled_from(["softmax", "sigmoid"])),
        "weighed_first": draw(st.booleans()),
        "shared": tensor * draw(st.integers(0, 2)),
        "dense": tensor * draw(st.integers(1, 2)),
        "kinds": draw(KINDS),
    }
