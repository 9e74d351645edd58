"""Pipelines of PyTorch: stages of consecutive layers, in three orders, whose states are placed."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

from conformance.case import Case
from conformance.record.models import Transformer, build, loss_of, samples
from conformance.record.strategies import STRATEGIES, optimizer_of, plain

ORDERS = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}


class Watched(PipelineStage):
    """A stage that tells when it is about to go backward, or to sum gradients."""

    tell = staticmethod(lambda: None)

    def backward_one_chunk(self, *args, **kwargs):
        self.tell()
        super().backward_one_chunk(*args, **kwargs)

    def perform_reduce_grad(self, *args, **kwargs):
        self.tell()
        super().perform_reduce_grad(*args, **kwargs)


class Pipelined:
    """One rank's stages of a model, and the schedule that all ranks follow.

    What a case does beside the pipeline is done to each chunk of layers, over the other axes.
    """

    def __init__(self, case: Case, model, mesh):
        self.case, self.mesh = case, mesh
        pipe = mesh["pipe"] if len(case.mesh) > 1 else mesh
        rank, stages = pipe.get_local_rank(), pipe.size()
        count = stages * case.chunks
        place = STRATEGIES[case.strategy.removesuffix(" x pp")] if " x " in case.strategy else plain
        self.parts, self.names, self.built = [], [], []
        for number in range(rank, count, stages):
            first, last = number == 0, number == count - 1
            layers = even(case.model.layers, count)[number]
            part = Transformer(case.model, layers, first, last).to(next(model.parameters()).dtype)
            part.load_state_dict(model.state_dict(), strict=False)
            self.names += [name for name, _ in part.named_parameters()]
            self.parts.append(place(case, part, mesh))
            stage = self.parts[-1], number, count, torch.device("cpu")
            self.built.append(Watched(*stage, group=pipe.get_group()))
        kind = ORDERS[case.order]
        given = self.built if case.order == "interleaved" else self.built[0]
        self.schedule = kind(given, case.micro_steps, loss_fn=loss_of)
        self.parameters = [p for part in self.parts for p in part.parameters()]
        self.optimizer = optimizer_of(case, self.parameters, mesh)
        self.first, self.last = rank == 0, rank == stages - 1

    def step(self, dtype, step, own, sources, tell):
        """All micro-batches of a step: `own` of the samples of each, the same as those of one process.

        `tell` is called before each backward, and before gradients are summed.
        """
        for stage in self.built:
            stage.tell = tell
        given = range(self.case.micro_steps)
        pairs = [samples(self.case, dtype, step, m, sources) for m in given]
        x, y = (torch.cat([of[own] for of in each]) for each in zip(*pairs, strict=True))
        self.schedule.step(*((x,) if self.first else ()), **({"target": y} if self.last else {}))


def even(layers, stages):
    """Consecutive layers for each stage, as evenly as they go."""
    before = [-(-number * layers // stages) for number in range(stages + 1)]
    return [range(*each) for each in pairwise(before)]


def alone(case: Case, dtype, steps, sources):
    """One process: the whole model after some steps."""
    model = build(case.model, dtype)
    optimizer = optimizer_of(case, model.parameters())
    for step in range(steps):
        for m in range(case.micro_steps):
            x, y = samples(case, dtype, step, m, sources)
            (loss_of(model(x), y) / case.micro_steps).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model
