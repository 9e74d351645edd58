"""What else may differ between the layers of two families of models."""

from __future__ import annotations

from hypothesis import strategies as st

from spec.models.transformer import CAPPED, DROPPED, NORMS, USUAL_NORMS

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
    },
)
