"""What FSDP2 makes of weights and gradients and does not keep: bytes of it at once, at most."""

from __future__ import annotations

import weakref
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
from torch.distributed.fsdp._fully_shard import _fsdp_collectives
from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
from torch.utils._python_dispatch import TorchDispatchMode

from conformance.record.watch import flat, local


class Passing(TorchDispatchMode):
    """Follows storages from when they are made: what units are gathered in and copied to, gradients as
    backward leaves them, and what they are copied to, to be summed. A released storage has no bytes.

    `shared`: sizes of weights that several modules have, each of which leaves a gradient; their sum is
    another.
    """

    def __init__(self, shared):
        super().__init__()
        self.found, self.most, self.shared = {}, 0, shared

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func._schema.name == "c10d::_allgather_base_":
            self.note(args[0])
        if in_backward() and getattr(result, "shape", None) in self.shared:
            self.note(result)
        self.count()
        return result

    def note(self, *tensors):
        for tensor in tensors:
            where = local(tensor).untyped_storage()
            self.found[where._cdata] = weakref.ref(where)
        self.count()

    def count(self):
        storages = {at: where for at, of in self.found.items() if (where := of()) is not None}
        self.found = {at: self.found[at] for at in storages}
        self.most = max(self.most, sum(where.nbytes() for where in storages.values()))


def in_backward():
    return torch._C._current_graph_task_id() >= 0


@contextmanager
def passing(sharded):
    """While a step runs: what passes of some weights, as FSDP2 knows them."""
    watch = Passing([weight._orig_size for weight in sharded if weight._module_info.shared_modules])
    made, copy_in = FSDPParam.alloc_all_gather_outputs, _fsdp_collectives.foreach_reduce_scatter_copy_in

    def gather(weight):
        made(weight)
        watch.note(*weight.all_gather_outputs)

    def reduce(gradients, copy, world_size):
        watch.note(*gradients, copy)
        copy_in(gradients, copy, world_size)

    with ExitStack() as stack:
        stack.enter_context(patch.object(FSDPParam, "alloc_all_gather_outputs", gather))
        stack.enter_context(patch.object(_fsdp_collectives, "foreach_reduce_scatter_copy_in", reduce))
        for weight in sharded:
            hook = weight._unsharded_param.register_hook(lambda gradient: watch.note(*flat(gradient)))
            stack.callback(hook.remove)
        stack.enter_context(watch)
        yield watch
