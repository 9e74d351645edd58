"""A device beside the host, as autograd and FSDP2 know devices, whose tensors have shapes alone.

So what crosses the link between a device and its host is seen without any device: PyTorch's own code
copies, and the copies are counted. Nothing is computed.
"""

from __future__ import annotations

import contextlib

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from conformance.record.watch import crosses, is_on_host, storage

DEVICE = "beside"


class Event:
    """Of a stream: everything has happened."""

    def record(self, *_):
        pass

    def wait(self, *_):
        pass

    def synchronize(self):
        pass


class Stream:
    """All work is done when it is given."""

    def __init__(self, **_):
        pass

    def wait_stream(self, _):
        pass

    def wait_event(self, _):
        pass

    def record_event(self, *_):
        return Event()


class Backend:
    """What PyTorch asks of a kind of device."""

    Stream, Event = Stream, Event

    @staticmethod
    def is_available():
        return True

    is_initialized = is_available

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def current_stream(*_):
        return Stream()

    @staticmethod
    def stream(_):
        return contextlib.nullcontext()

    @staticmethod
    def _is_in_bad_fork():
        return False

    @staticmethod
    def manual_seed_all(_):
        pass


class Locked(TorchDispatchMode):
    """Notes what is page-locked on the host.

    A copy to the host that does not block goes to page-locked memory (aten, _to_copy).
    """

    def __init__(self):
        super().__init__()
        self.storages, self.held = set(), []  # held: so that no other storage takes its number

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        is_pinning = func is torch.ops.aten._pin_memory.default
        result = args[0].clone() if is_pinning else func(*args, **kwargs)
        is_copy = func is torch.ops.aten._to_copy.default and crosses(args[0], result)
        if is_pinning or (is_copy and is_on_host(result) and kwargs.get("non_blocking")):
            self.storages.add(storage(result))
            self.held.append(result)
        return result


@contextlib.contextmanager
def beside():
    """With such devices, and tensors of shapes alone; what is page-locked."""
    _setup_privateuseone_for_python_backend(DEVICE, Backend)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device(DEVICE), Locked() as locked:
        yield locked
