"""Ring attention of PyTorch, with the attention kernel for CPU, which its dispatcher does not know."""

from __future__ import annotations

import torch
from torch.distributed.tensor.experimental._context_parallel import _attention as ring
from torch.nn.parallel import DistributedDataParallel

FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
ROTATE = {"all-to-all": ring._RotateMethod.ALL_TO_ALL, "all-gather": ring._RotateMethod.ALL_GATHER}


def forward(query, key, value, is_causal):
    return FORWARD(query, key, value, 0.0, is_causal)


def backward(grad_out, query, key, value, out, logsumexp, is_causal):
    return BACKWARD(grad_out, query, key, value, out, logsumexp, 0.0, is_causal)


class Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx, group, query, key, value):
        out, total = ring._templated_ring_attention(group, 2, forward, query, key, value, True)
        ctx.group = group
        ctx.save_for_backward(query, key, value, out, total)
        return out

    @staticmethod
    def backward(ctx, cotangent):
        query, key, value, out, total = ctx.saved_tensors
        found = ring._templated_ring_attention_backward(
            ctx.group, 2, backward, cotangent, "grad_out", query, key, value, out, total, True
        )
        return None, *found


def in_context(case, model, mesh):
    """A model whose tokens are cut in consecutive slices."""
    ring._cp_options.enable_load_balance = False
    ring._cp_options.convert_to_f32 = next(model.parameters()).dtype != torch.float64
    ring._cp_options.rotate_method = ROTATE[case.rotate]
    group, rank, size = mesh.get_group(), mesh.get_local_rank(), mesh.size()
    tokens = case.model.sequence // size
    mine = slice(rank * tokens, (rank + 1) * tokens)
    whole = model.constants

    def constants(like):
        (cos, sin), mask = whole(like)
        return (cos[mine], sin[mine]), mask

    model.constants = constants
    for layer in model.layers.values():
        layer.attention.attend = lambda q, k, v: Ring.apply(group, q, k, v)
    model.mine = mine
    return model


def context_parallel(case, model, mesh):
    """Gradients are averaged over the ranks, as by DDP."""
    of = {"gradient_as_bucket_view": case.views, "process_group": mesh.get_group()}
    return DistributedDataParallel(in_context(case, model, mesh), **of)
