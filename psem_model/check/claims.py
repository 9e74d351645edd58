"""Claims proved one after the other, and how far that is."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from proofs.registry import Claim, Result, prove
from proofs.trusted.kernel import Kernel
from proofs.trusted.theorem import Theorem
from psem_model.text import places

REPORT = "report.json"
POLL = 0.2  # seconds after which it is looked how much is proved
Tell = Callable[[int], None]  # to be told how much is done


@dataclass(frozen=True)
class Size:
    """How much is to be done of a claim: its obligations, and how long they took, in milliseconds."""

    obligations: int = 1
    milliseconds: int = 100

    def done(self, obligations: int) -> int:
        """The milliseconds of so many of them."""
        return self.milliseconds * min(obligations, self.obligations) // self.obligations


def sizes(selected: Sequence[Claim]) -> dict[str, Size]:
    """By claim, what it was when all were last proved here; of those that were not, one size."""
    try:
        document = json.loads((places.BUILD / REPORT).read_text(encoding="utf-8"))
        known = {
            entry["id"]: Size(max(1, entry["obligations"]), 1 + round(1000 * entry["seconds"]))
            for entry in document["claims"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        known = {}
    return {claim.id: known.get(claim.id, Size()) for claim in selected}


def total(selected: Sequence[Claim]) -> int:
    """How much is to be done of claims, in milliseconds."""
    return sum(size.milliseconds for size in sizes(selected).values())


def watched(claim: Claim, tell: Tell) -> Result:
    """Prove one claim; meanwhile `tell` is told, by a thread, how many obligations are decided."""

    def proof(kernel: Kernel) -> tuple[Theorem, ...]:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(POLL):
                tell(sum(len(theorem.obligations) for theorem in [*kernel.theorems]))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            return claim.function()(kernel)
        finally:
            ended.set()
            watcher.join()

    return prove(claim, proof)


def results(selected: Sequence[Claim], tell: Tell) -> Iterator[Result]:
    """Prove claims in their order; `tell` is told how much is done, of their `total`."""
    before = 0

    def tell_all(size: Size, start: float, obligations: int) -> None:
        # of a claim that mostly computes few obligations are told: then as long as it took before
        passed = min(round(1000 * (time.monotonic() - start)), 9 * size.milliseconds // 10)
        tell(before + max(size.done(obligations), passed))

    for claim, size in zip(selected, sizes(selected).values(), strict=True):
        tell(before)
        yield watched(claim, partial(tell_all, size, time.monotonic()))
        before += size.milliseconds


@contextmanager
def uncollected() -> Iterator[None]:
    """Python's collector is off: theorems stay to the end, and there is little to collect."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # not when the process ends, either
        if was_on:
            gc.enable()
