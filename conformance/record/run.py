"""A case, run: what each rank moved and keeps, and how far it is from one process."""

from __future__ import annotations

import contextlib

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from conformance.case import Case
from conformance.record.beside import DEVICE
from conformance.record.models import build, loss_of, samples
from conformance.record.passing import passing
from conformance.record.pipelines import Pipelined, alone
from conformance.record.strategies import Trained
from conformance.record.watch import (
    Collectives,
    Kept,
    Left,
    bytes_of,
    is_on_host,
    local,
    ranks_of,
    storage,
)

SOURCES = ("batch", "replica", "shard")  # axes whose ranks have samples of their own
STEPS = 3


def mesh_of(case: Case):
    names = tuple(axis for axis, _ in case.mesh)
    device = DEVICE if case.is_beside else "cpu"
    with unset_fake_temporarily(), torch.device("cpu"):  # ranks are numbers, whatever the device
        return init_device_mesh(device, tuple(size for _, size in case.mesh), mesh_dim_names=names)


def axes_of(case, mesh):
    """The axis, or the axes, of each group of ranks."""
    every = tuple(range(case.ranks)), " x ".join(axis for axis, _ in case.mesh)
    return dict([every]) | {ranks_of(mesh.get_group(axis)): axis for axis, _ in case.mesh}


def source_of(case, mesh):
    """Which of those that have samples of their own this rank is, and how many there are."""
    number, count = 0, 1
    for axis, size in case.mesh:
        if axis in SOURCES:
            number, count = number * size + mesh.get_local_rank(axis), count * size
    return number, count


class Running:
    """A case on this rank, step by step."""

    def __init__(self, case: Case, dtype):
        self.case, self.dtype, self.mesh = case, dtype, mesh_of(case)
        self.staged = "pipe" in case.sizes
        attention = "sdpa" if getattr(case.model, "fused", False) else "eager"
        how = {"attention": attention, "again": case.again} if case.strategy == "eager" else {}
        model = build(case.model, dtype, **how)
        self.names = [name for name, _ in model.named_parameters()]
        self.shapes = [[*p.shape] for p in model.parameters()]
        kind = Pipelined if self.staged else Trained
        self.trained = kind(case, model, self.mesh)
        self.mine = getattr(model, "mine", slice(None))
        parameters = self.trained.parameters if self.staged else self.trained.model.parameters()
        self.weights = [*parameters]

    def passes(self, step, hooks=contextlib.nullcontext):
        """Forward and backward of every micro-step; bytes of gradients before the last."""
        waiting = 0
        case, (number, count) = self.case, source_of(self.case, self.mesh)
        own = slice(number * case.samples, (number + 1) * case.samples)
        if self.staged:
            told = [0]
            with hooks():
                tell = lambda: told.append(bytes_of(self.gradients()))  # noqa: E731
                self.trained.step(self.dtype, step, own, count, tell)
            return max(told)
        for micro_step in range(case.micro_steps):
            waiting = bytes_of(self.gradients()) if micro_step else 0
            x, y = samples(case, self.dtype, step, micro_step, count)
            x, y = x[own][:, self.mine].clone(), y[own][:, self.mine].clone()
            with self.trained.micro_step(micro_step == case.micro_steps - 1):
                with hooks():
                    loss = loss_of(self.trained.model(x), y) / case.micro_steps
                loss.backward()
                del loss
        return waiting

    def sharded(self):
        """Weights that FSDP2 has in slices, as it knows them."""
        parts = self.trained.parts if self.staged else [self.trained.model]
        for module in (module for part in parts for module in part.modules()):
            if isinstance(module, FSDPModule) and (group := module._get_fsdp_state()._fsdp_param_group):
                yield from group.fsdp_params

    def weights_now(self):
        """Those that rest, and those that are gathered."""
        gathered = (getattr(each, "_unsharded_param", None) for each in self.sharded())
        return [*self.weights, *(weight for weight in gathered if weight is not None)]

    def buckets(self, watch):
        """Where DDP's buckets are, and of how many bytes, as they are summed; or copies of them."""
        model = self.trained.parts[0] if self.staged else self.trained.model
        if not isinstance(model, DistributedDataParallel):
            return {}
        found = getattr(model, "compressed", watch.operands)
        found.clear()
        return found

    def gradients(self):
        """Those that are there: summed, or of FSDP2 also whole."""
        found = [w.grad for w in self.weights]
        for each in self.sharded():
            found += [each.unsharded_accumulated_grad, each._unsharded_param.grad]
        return [each for each in found if each is not None]

    def step(self, number):
        self.passes(number)
        self.update()

    def update(self):
        self.trained.optimizer.step()
        self.trained.optimizer.zero_grad()


def state_of(optimizer):
    """Tensors of an optimizer's state: as large as weights, and counts of steps."""
    inner = getattr(optimizer, "optim", optimizer)
    found = [v for each in inner.state.values() for v in each.values() if isinstance(v, torch.Tensor)]
    return [t for t in found if t.dim()], [t for t in found if not t.dim()]


@contextlib.contextmanager
def saved(kept, left):
    """While forward runs: what autograd keeps is seen; or what is left, whoever keeps it."""
    with saved_tensors_hooks(kept.pack, kept.unpack), left or contextlib.nullcontext():
        yield


def record(case: Case, locked=None):
    """Of this rank, in the third step: buckets, shards and shapes are settled by then.

    `locked`: of a device beside the host, what is page-locked there.
    """
    in_bf16 = case.strategy == "eager" and case.mixed
    running = Running(case, torch.bfloat16 if in_bf16 else torch.float32)
    for step in range(2):
        running.step(step)
    watch, kept = Collectives(axes_of(case, running.mesh)), Kept(running.weights_now)
    sharded, copies = [*running.sharded()], running.buckets(watch)
    left = Left(running.trained.model) if case.again else None
    with watch, passing(sharded) as passed:
        waiting = running.passes(2, lambda: saved(kept, left))
        gradients = running.gradients()
        running.trained.optimizer.step()
    moments, counts = state_of(running.trained.optimizer)
    inside = {storage(g) for g in gradients}
    on_host = [t for t in (*running.weights, *gradients, *moments) if locked and is_on_host(local(t))]
    apart = {
        "host": bytes_of(on_host),
        "pinned": bytes_of(t for t in on_host if storage(t) in locked.storages),
    }
    return {
        "collectives": sorted([*key, times] for key, times in watch.found.items()),
        "parameters": bytes_of(running.weights),
        "gradients": bytes_of(gradients),
        "waiting": waiting,
        "buckets": sum(size for at, size in copies.items() if at not in inside),
        "moments": bytes_of(moments),
        "counts": bytes_of(counts),
        "kept": left.bytes_beside(kept) if left else kept.most,
        **({"passing": passed.most} if sharded else {}),
        **(apart if locked else {}),
    }


def shapes(case: Case):
    """Each weight of the whole model, in its order: name and shape."""
    return [[name, [*p.shape]] for name, p in build(case.model, torch.float32).named_parameters()]


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def difference(case: Case):
    """The largest difference of a parameter on this rank from one process, after steps in float64."""
    running = Running(case, torch.float64)
    _, count = source_of(case, running.mesh)
    for step in range(STEPS):
        running.step(step)
    expected = dict(alone(case, torch.float64, STEPS, count).named_parameters())
    names = running.trained.names if running.staged else running.names
    pairs = zip(names, running.weights, strict=True)
    return max((whole(p.detach()) - expected[n].detach()).abs().max().item() for n, p in pairs)
