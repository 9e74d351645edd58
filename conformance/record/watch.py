"""What a rank does while a step runs: collectives, and tensors kept for backward."""

from __future__ import annotations

import weakref
from collections import Counter

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed import distributed_c10d
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

KINDS = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "all_reduce": "all_reduce",
    "all_reduce_": "all_reduce",
    "_allgather_base_": "all_gather",
    "allgather_": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "alltoall_base_": "all_to_all",
    "broadcast_": "broadcast",
    "send": "send",
    "recv_": "recv",
}
SECOND = {"_allgather_base_", "alltoall_base_", "allgather_"}  # operations that take results first
QUIET = {"wait_tensor", "barrier", "monitored_barrier_", "_wrap_tensor_autograd"}


class Collectives(TorchDispatchMode):
    """Counts collectives: kind, axis, elements that a rank gives (of a reduce_scatter: gets), type.

    And copies between a device and its host, as along an axis of that name.
    """

    def __init__(self, axes):
        super().__init__()
        self.axes, self.found, self.operands = axes, Counter(), {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(kind is DTensor for kind in types):
            return NotImplemented  # of its ranks' parts, what they are made of is seen
        name = func._schema.name
        space, _, op = name.partition("::")
        result = func(*args, **(kwargs or {}))
        if space in ("c10d", "_c10d_functional") and op not in QUIET:
            self.note(op, args, result)
        elif func is torch.ops.aten._to_copy.default and crosses(args[0], result):
            kind = "offload" if is_on_host(result) else "fetch"
            self.found[kind, "host", result.numel(), type_of(result)] += 1
        return result

    def note(self, op, args, result):
        kind = KINDS[op]  # an unknown one is an error
        given = args[1] if op in SECOND else result if op == "reduce_scatter_tensor" else args[0]
        if kind == "all_to_all" and sum(map(bool, args[1])) == 1:
            kind = "permute"  # all of it, to one rank
        ranks = group_of(args)
        if kind == "broadcast" and ends_chain(ranks, args):
            kind = "recv"
        axis = self.axes[ranks]
        for tensor in flat(given):
            where = local(tensor).untyped_storage()
            if kind == "all_reduce":
                self.operands[where.data_ptr()] = where.nbytes()
            self.found[kind, axis, tensor.numel(), type_of(tensor)] += 1


def type_of(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def is_on_host(tensor):
    """Whether a tensor is in the host's memory, where that is not the device's."""
    return tensor.device.type == "cpu"


def crosses(one, other):
    """Whether a copy is between a device and its host."""
    return one.device.type != other.device.type


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for each in value for t in flat(each)]


def group_of(args):
    """The ranks of the process group among an operation's arguments, which has it, or its name."""
    for each in args:
        if isinstance(each, torch.ScriptObject):
            try:
                return ranks_of(dist.ProcessGroup.unbox(each))
            except RuntimeError:
                continue
    name = [each for each in args if isinstance(each, str)][-1]
    return ranks_of(distributed_c10d._resolve_process_group(name))


def ends_chain(ranks, args):
    """Whether a broadcast, from its root round the ranks, ends at this one, which sends it no more."""
    root = next(each for each in args if isinstance(each, int))
    return ranks.index(dist.get_rank()) == (root - 1) % len(ranks)


def ranks_of(group):
    return tuple(dist.get_process_group_ranks(group))


class Kept:
    """Bytes of what autograd keeps for backward, but for weights: now, and at most.

    One storage counts once, as long as anything of it is kept. `weights`: a function, that gives those
    that are there now. `seen`: where all that was kept is.
    """

    def __init__(self, weights):
        self.weights = weights
        self.uses, self.now, self.most, self.seen = Counter(), 0, 0, set()

    def pack(self, tensor):
        data = local(tensor)
        where = storage(tensor)
        if data.numel() == 0 or where in {storage(weight) for weight in self.weights()}:
            return tensor
        size = data.untyped_storage().nbytes()
        self.seen.add(where)
        if not self.uses[where]:
            self.now += size
            self.most = max(self.most, self.now)
        self.uses[where] += 1
        holder = Holder(tensor)
        weakref.finalize(holder, self.drop, where, size)
        return holder

    def drop(self, where, size):
        self.uses[where] -= 1
        if not self.uses[where]:
            self.now -= size

    @staticmethod
    def unpack(kept):
        return kept.tensor if isinstance(kept, Holder) else kept


class Left(TorchDispatchMode):
    """Bytes that forward leaves for backward, whoever keeps them: checkpoints keep what is given.

    All storages of what operations read and gave that are there when forward ends, but for weights,
    buffers that autograd does not keep, and the loss, which is what was given last.
    """

    def __init__(self, model):
        super().__init__()
        self.model, self.found, self.last, self.left = model, {}, None, {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for each in tree_leaves((args, kwargs, result)):
            if isinstance(each, torch.Tensor):
                where = local(each).untyped_storage()
                self.found[where._cdata] = weakref.ref(where)
        self.last = result
        return result

    def __exit__(self, *of):
        others = {
            local(each).untyped_storage()._cdata for each in (*self.model.parameters(), self.last)
        }
        there = {at: where() for at, where in self.found.items() if at not in others}
        self.left = {where.data_ptr(): where.nbytes() for where in there.values() if where is not None}
        self.found = {}
        return super().__exit__(*of)

    def bytes_beside(self, kept):
        """And of buffers, those that autograd keeps."""
        buffers = {storage(each) for each in self.model.buffers()} - kept.seen
        return sum(size for at, size in self.left.items() if at not in buffers)


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor


def local(tensor):
    """A rank's own part of a tensor."""
    while hasattr(tensor, "_local_tensor") or hasattr(tensor, "elem"):
        tensor = tensor._local_tensor if hasattr(tensor, "_local_tensor") else tensor.elem
    return tensor


def storage(tensor):
    """Where a tensor's numbers are; of one that has a shape alone, what would have them."""
    data = local(tensor)
    where = data.untyped_storage()
    return where._cdata if isinstance(data, FakeTensor) else where.data_ptr()


def bytes_of(tensors):
    """Bytes of the storages of some tensors, each once, on this rank."""
    found = {}
    for tensor in tensors:
        found[storage(tensor)] = local(tensor).untyped_storage().nbytes()
    return sum(found.values())
