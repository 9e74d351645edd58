"""Weights that the reference implementations have as one array are one array here."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from conformance.counts import configurations, recorded_rows
from psem_model.predict.asked import Asked
from psem_model.predict.read import read
from spec.models.profiles import Padding
from tests.support.examples import few


@pytest.mark.parametrize("name", few(configurations()))
def test_rows_of_a_models_weights_are_those_that_the_reference_implementation_has(name, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(configurations()[name]))
    model = {"config": str(file), "sequence": "8"}
    stage = read(Asked("predict", "dp(1)", model=model, profile="fully-shard")).stage(0)
    found: Counter[tuple[int, int]] = Counter()
    for part, times in stage.counts.items():
        weights = stage.plan.weights[part]
        tied = {"word_weight"} if part == "head" else set()  # the embedding's
        for names in weights.arrays(name for name in weights.parameters if name not in tied):
            vector = weights.array(names, Padding.ROW)
            found[int(vector.rows), int(vector.row)] += times
    assert found == recorded_rows()[name]
