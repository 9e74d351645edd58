"""Record every case again: python -m conformance.record [part of a name]."""

from __future__ import annotations

import os
import sys
import tempfile

import torch
import torch.multiprocessing as processes

from conformance.cases import cases
from conformance.logs import recorded, write
from conformance.record.worlds import faked, in_processes


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [case for case in cases() if part in case.name]
    logs = {case.name: faked(case) for case in chosen if case.fake}
    with tempfile.TemporaryDirectory() as folder:
        for ranks in sorted({case.ranks for case in chosen if not case.fake}):
            some = [case for case in chosen if case.ranks == ranks and not case.fake]
            print(f"{len(some)} cases of {ranks} processes", flush=True)
            processes.spawn(in_processes, (ranks, some, folder), ranks)
            logs |= torch.load(os.path.join(folder, f"{ranks}.pt"))
    for strategy in sorted({case.strategy for case in chosen}):
        before = recorded(strategy)["cases"] if part else {}
        of = {case.name: logs[case.name] for case in chosen if case.strategy == strategy}
        write(strategy, torch.__version__, before | of)


if __name__ == "__main__":
    main()
