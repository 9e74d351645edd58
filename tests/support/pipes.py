"""Orders of pipelines, and how many micro-batches they are made of."""

from __future__ import annotations

from spec.pipelines.pipeline import STRETCH, Order, Pipeline, least_micro_batches

IN_ONE_PART = [kind for kind in Order if kind not in STRETCH]  # of backward


def enough(kind, stages, micro_batches):
    """So many micro-batches, or as many as the order needs."""
    return max(micro_batches, least_micro_batches(Pipeline(kind, stages, micro_batches)))
