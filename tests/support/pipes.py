"""Orders of pipelines, and how many micro-batches they are made of."""

from __future__ import annotations

from spec.pipelines.pipeline import Order, Pipeline, least_micro_batches

IN_ONE_PART = [kind for kind in Order if not Pipeline(kind, 1, 1).in_two_parts]  # of backward


def enough(kind, stages, micro_batches):
    """So many micro-batches, or as many as the order needs."""
    return max(micro_batches, least_micro_batches(Pipeline(kind, stages, micro_batches)))


def chunks_of(kind, some):
    """So many chunks of a stage, if its order may have several; or as many as it has."""
    return {Order.INTERLEAVED: some, Order.DUALPIPE_V: 2}.get(kind, 1)


def of_stages(stages):
    """A pipeline of so many stages, where nothing else matters."""
    return Pipeline(Order.ONE_F_ONE_B, stages, 1)


def boundary_sends(pipe, stage):
    """Boundary activations, and their cotangents, that a stage sends in a step.

    All but the last virtual stage send forward, all but the first backward; one stage alone sends
    nothing, nor does the last of a V to itself. The busiest stage sends 2 m v when p > 2.
    """
    if pipe.stages == 1:
        return 0
    ends = (stage == 0) + (stage == pipe.stages - 1)
    return int(pipe.micro_batches * (2 * pipe.chunks - ends * (2 if pipe.is_folded else 1)))
