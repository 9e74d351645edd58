"""PyTorch's strategies, applied to a model as a user would."""

from __future__ import annotations

import contextlib

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

from conformance.case import Case
from conformance.record.rings import context_parallel, in_context
from conformance.shapes import Configured

MEGABYTE = 2**20
EVERYONE = "everyone"  # an axis of all ranks
OPTIMIZERS = {
    "adam": (torch.optim.AdamW, {"lr": 0.01, "eps": 1e-3}),
    "momentum": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "sgd": (torch.optim.SGD, {"lr": 0.05}),
}


class Trained:
    """A model on its ranks, its optimizer, and how a micro-step's gradients are summed or not."""

    def __init__(self, case: Case, model, mesh):
        self.case, self.mesh = case, mesh
        self.model = STRATEGIES[case.strategy](case, model, mesh)
        self.optimizer = optimizer_of(case, self.model.parameters(), mesh)

    def micro_step(self, last):
        """A context in which gradients are summed, or kept as they are till the last micro-step."""
        wait = not (last or self.case.each)
        if isinstance(self.model, DistributedDataParallel):
            return self.model.no_sync() if wait else contextlib.nullcontext()
        if hasattr(self.model, "set_requires_gradient_sync"):
            self.model.set_requires_gradient_sync(not wait)
        return loss_parallel() if self.case.cut_loss else contextlib.nullcontext()


def optimizer_of(case, parameters, mesh=None):
    """The optimizer of a case; without a mesh, that of one process."""
    kind, options = OPTIMIZERS[case.optimizer]
    if mesh is None or not case.strategy.startswith("zero redundancy"):
        return kind(parameters, foreach=False, **options)
    views = {"parameters_as_bucket_view": case.views, "process_group": of_samples(mesh)}
    return ZeroRedundancyOptimizer(parameters, optimizer_class=kind, **views, **options)


def of_samples(mesh):
    """The ranks that have samples of their own, of the same layers."""
    return mesh["batch"].get_group() if mesh.ndim > 1 else None


def options_of(case, mesh):
    """Of DDP. Models of transformers have buffers, of rotary angles, which psem does not count."""
    size = {"bucket_cap_mb": case.bucket / MEGABYTE} if case.bucket else {}
    size |= {"broadcast_buffers": False} if isinstance(case.model, Configured) else {}
    return {**size, "process_group": of_samples(mesh)}


def ddp(case, model, mesh):
    model = DistributedDataParallel(model, gradient_as_bucket_view=case.views, **options_of(case, mesh))
    if case.mixed:
        model.compressed = {}
        model.register_comm_hook(model.compressed, compressed)
    return model


def compressed(found, bucket):
    """Sums a copy of a bucket in 2 bytes, and notes where the bucket is: of how many bytes."""
    at = bucket.buffer().untyped_storage()
    found[at.data_ptr()] = at.nbytes()
    return fp16_compress_hook(None, bucket)


def zero_redundancy(case, model, mesh):
    return DistributedDataParallel(model, **options_of(case, mesh))


def sharded(case, model, mesh):
    return sharded_over(case, model, mesh["batch"] if "batch" in case.sizes else mesh)


def sharded_over(case, model, mesh):
    """Slices along the last axis of a mesh, and copies of these along the other."""
    options = {"mesh": mesh, "reshard_after_forward": case.reshard}
    if case.mixed:
        options["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    if case.offload:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=case.is_beside)
    layers = model.layers.values() if isinstance(model.layers, nn.ModuleDict) else model.layers
    for number, layer in enumerate(layers):
        is_held = {number, number - len(layers)} & {*case.held}
        fully_shard(layer, **options | ({"reshard_after_forward": False} if is_held else {}))
    for unit in ends_of(model) if case.shared_words else ():
        fully_shard(unit, **options)
    return fully_shard(model, **options)


def ends_of(model):
    """The embedding and the head in units: their words, which they share, and all else of each."""
    return [model.embedding, model.head], model.places, model.norm


def tensor_parallel(case, model, mesh, sequence=False):
    mesh = mesh["tensor"] if len(case.mesh) > 1 else mesh
    stream = Shard(1) if sequence else Replicate()
    logits = Shard(-1) if case.cut_loss else Replicate()
    local = not case.is_uneven  # a local tensor does not tell of uneven slices
    ends = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=stream),
        "head": ColwiseParallel(
            input_layouts=stream, output_layouts=logits, use_local_output=not case.cut_loss
        ),
    }
    layer = {
        "attention.wq": ColwiseParallel(),
        "attention.wk": ColwiseParallel(),
        "attention.wv": ColwiseParallel(),
        "attention.wo": RowwiseParallel(output_layouts=stream),
        "mlp.w1": ColwiseParallel(use_local_output=local),
        "mlp.w2": RowwiseParallel(output_layouts=stream),
        "mlp.w3": ColwiseParallel(use_local_output=local),
    }
    if sequence:
        ends["norm"] = SequenceParallel()
        layer |= {
            "attention_norm": SequenceParallel(),
            "attention": PrepareModuleInput(
                input_layouts=(Shard(1), None, None), desired_input_layouts=(Replicate(), None, None)
            ),
            "mlp_norm": SequenceParallel(),
            "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        }
    for each in model.layers.values():
        parallelize_module(each, mesh, layer)
    return model if case.whole_words else parallelize_module(model, mesh, ends)


def sequence_parallel(case, model, mesh):
    return tensor_parallel(case, model, mesh, sequence=True)


def sharded_and_tensor(case, model, mesh):
    return sharded(case, tensor_parallel(case, model, mesh), mesh)


def sharded_and_sequence(case, model, mesh):
    return sharded(case, sequence_parallel(case, model, mesh), mesh)


def sharded_in_context(case, model, mesh):
    """States in slices over all ranks, whether these have other samples or other tokens."""
    every = mesh._flatten(EVERYONE)
    return sharded_over(case, in_context(case, model, mesh["context"]), every)


def copied_in_context(case, model, mesh):
    """Copies of slices, on ranks that have other tokens."""
    return sharded_over(case, in_context(case, model, mesh["context"]), mesh)


def plain(case, model, mesh):
    return model


STRATEGIES = {
    "one": plain,
    "eager": plain,
    "ddp": ddp,
    "zero redundancy": zero_redundancy,
    "fsdp2": sharded,
    "hsdp": sharded,
    "tp": tensor_parallel,
    "tp+sp": sequence_parallel,
    "fsdp2 x tp": sharded_and_tensor,
    "fsdp2 x tp+sp": sharded_and_sequence,
    "cp": context_parallel,
    "fsdp2 x cp": sharded_in_context,
    "hsdp x cp": copied_in_context,
}
