"""Pipelines of PyTorch: stages of consecutive layers, in three orders."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

from conformance.cases import Case
from conformance.record.models import Transformer, build, loss_of, samples
from conformance.record.strategies import OPTIMIZERS

ORDERS = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}


class Pipelined:
    """One rank's stages of a model, and the schedule that all ranks follow."""

    def __init__(self, case: Case, model, mesh):
        rank, stages = mesh.get_local_rank(), mesh.size()
        self.case, self.mesh, count = case, mesh, stages * case.chunks
        self.parts = []
        for number in range(rank, count, stages):
            first, last = number == 0, number == count - 1
            layers = even(case.model.layers, count)[number]
            part = Transformer(case.model, layers, first, last).to(next(model.parameters()).dtype)
            part.load_state_dict(model.state_dict(), strict=False)
            self.parts.append((number, part))
        built = [PipelineStage(part, n, count, torch.device("cpu")) for n, part in self.parts]
        kind = ORDERS[case.order]
        given = built if case.order == "interleaved" else built[0]
        self.schedule = kind(given, case.micro_steps, loss_fn=loss_of)
        self.parameters = [p for _, part in self.parts for p in part.parameters()]
        self.names = [name for _, part in self.parts for name, _ in part.named_parameters()]
        optimizer, options = OPTIMIZERS[case.optimizer]
        self.optimizer = optimizer(self.parameters, foreach=False, **options)
        self.first, self.last = rank == 0, rank == stages - 1

    def step(self, dtype, step):
        """All micro-batches of a step: the same as those of one process."""
        pairs = [samples(self.case, dtype, step, m, 1) for m in range(self.case.micro_steps)]
        x, y = (torch.cat(each) for each in zip(*pairs, strict=True))
        self.schedule.step(*((x,) if self.first else ()), **({"target": y} if self.last else {}))


def even(layers, stages):
    """Consecutive layers for each stage, as evenly as they go."""
    before = [-(-number * layers // stages) for number in range(stages + 1)]
    return [range(*each) for each in pairwise(before)]


def alone(case: Case, dtype, steps, sources):
    """One process: the whole model after some steps."""
    model = build(case.model, dtype)
    optimizer, options = OPTIMIZERS[case.optimizer]
    optimizer = optimizer(model.parameters(), foreach=False, **options)
    for step in range(steps):
        for m in range(case.micro_steps):
            x, y = samples(case, dtype, step, m, sources)
            (loss_of(model(x), y) / case.micro_steps).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model
