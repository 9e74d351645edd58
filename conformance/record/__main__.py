"""Record every case again: python -m conformance.record [part of a name].

With --new: the cases that are not recorded.
"""

from __future__ import annotations

import os
import sys
import tempfile

import torch
import torch.multiprocessing as processes

from conformance.cases import cases
from conformance.logs import file_of, recorded, write
from conformance.record.run import shapes
from conformance.record.worlds import alike, faked, in_processes


def by_ranks(chosen):
    """Cases by how many ranks they have."""
    return [(n, [c for c in chosen if c.ranks == n]) for n in sorted({c.ranks for c in chosen})]


def by_gloo(chosen, folder):
    """In as many processes as ranks."""
    logs = {}
    for ranks, some in by_ranks(chosen):
        print(f"{len(some)} cases of {ranks} processes", flush=True)
        processes.spawn(in_processes, (ranks, some, folder), ranks)
        logs |= torch.load(os.path.join(folder, f"{ranks}.pt"))
    return logs


def by_fake(chosen, folder):
    """The first and the last of so many ranks."""
    logs = {}
    for ranks, some in by_ranks(chosen):
        print(f"{len(some)} cases of {ranks} ranks, faked", flush=True)
        found = {}
        for rank in (0, ranks - 1):
            processes.spawn(faked, (rank, ranks, some, folder), 1)
            found[rank] = torch.load(os.path.join(folder, f"fake{rank}.pt"))
        for case in some:
            told = alike({rank: found[rank][case.name] for rank in found})
            logs[case.name] = {"shapes": shapes(case), "ranks": told, "difference": None}
    return logs


def is_new(case):
    """Whether nothing was recorded of a case."""
    found = recorded(case.strategy)["cases"] if file_of(case.strategy).exists() else ()
    return case.name not in found


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    is_chosen = is_new if part == "--new" else lambda case: part in case.name
    chosen = [case for case in cases() if is_chosen(case)]
    with tempfile.TemporaryDirectory() as folder:
        logs = by_fake([case for case in chosen if case.fake and not case.is_beside], folder)
        logs |= by_fake([case for case in chosen if case.is_beside], folder)
        logs |= by_gloo([case for case in chosen if not case.fake], folder)
    for strategy in sorted({case.strategy for case in chosen}):
        before = recorded(strategy)["cases"] if part and file_of(strategy).exists() else {}
        of = {case.name: logs[case.name] for case in chosen if case.strategy == strategy}
        write(strategy, torch.__version__, before | of)


if __name__ == "__main__":
    main()
