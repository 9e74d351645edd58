"""Cases of as many processes as ranks, or of one rank alone with the fake backend."""

from __future__ import annotations

import contextlib
import datetime
import logging
import os

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from conformance.record.beside import beside
from conformance.record.run import difference, record, shapes

logging.getLogger("torch").setLevel(logging.ERROR)  # of what is slow, nothing is asked
LIMIT = datetime.timedelta(seconds=120)


def alike(found):
    """Ranks with the same record, together."""
    groups = []
    for rank, told in found.items():
        same = next((ranks for ranks, other in groups if other == told), None)
        if same is None:
            groups.append(([rank], told))
        else:
            same.append(rank)
    return [[ranks, told] for ranks, told in groups]


def in_processes(rank, ranks, chosen, folder):
    """All cases of so many ranks, one after the other, on one of them."""
    torch.set_num_threads(1)
    file = os.path.join(folder, f"store{ranks}")
    dist.init_process_group("gloo", f"file://{file}", LIMIT, ranks, rank)
    logs = {}
    for case in chosen:
        try:
            found = record(case), difference(case) if case.has_numbers else None
        except Exception as error:
            raise RuntimeError(case.name) from error
        everyone = [None] * ranks
        dist.all_gather_object(everyone, found)
        far = [each for _, each in everyone]
        most = None if not case.has_numbers else float(f"{max(far):.1e}")
        told = {number: told for number, (told, _) in enumerate(everyone)}
        logs[case.name] = {"shapes": shapes(case), "ranks": alike(told), "difference": most}
    if rank == 0:
        torch.save(logs, os.path.join(folder, f"{ranks}.pt"))
    dist.destroy_process_group()


def faked(_, rank, ranks, chosen, folder):
    """All cases of so many ranks on one of them, alone: collectives do nothing.

    With devices beside the host, or without: autograd knows its devices from its first backward on.
    """
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
    with beside() if chosen[0].is_beside else contextlib.nullcontext() as locked:
        logs = {case.name: record(case, locked) for case in chosen}
    torch.save(logs, os.path.join(folder, f"fake{rank}.pt"))
    dist.destroy_process_group()
