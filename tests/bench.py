"""`make bench`: medians of several runs, on this machine. Nothing here passes or fails."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import tracemalloc

import numpy as np

from proofs.registry import claims, prove
from psem_model.predict.states import predict, predict_many
from psem_model.simulator import simulate
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.plans.strategies import STRATEGIES


def seconds(action, runs=5):
    """Median wall seconds of an action."""
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def command(*args, runs=5):
    """Median wall seconds of a whole process, start-up included."""
    words = [sys.executable, "-m", "psem_model", *args]
    return seconds(lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL), runs)


def of_processors():
    """Seconds that processors have worked for the commands that have ended."""
    used = os.times()
    return used.children_user + used.children_system


def allocated(action):
    """Bytes allocated at the fullest moment of an action."""
    tracemalloc.start()
    action()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def main():
    print(f"psem --help                         {command('--help'):8.3f} s")
    words = ("predict", "zero3", "--psi", "7.5e9", "--devices", "64")
    print(f"psem predict zero3                  {command(*words):8.3f} s")
    shape = ("--layers", "126", "--hidden", "16384", "--heads", "128", "--sequence", "8192")
    for dp in (1, 64, 2**17):  # 8, 512 and 2^20 devices
        plan = f"zero1(dp={dp}) * tp+sp(2) * cp(2) * pp(2)"
        print(f"psem predict, 4D on {8 * dp:>9,}      {command('predict', plan, *shape):8.3f} s")
        print(f"psem check, 4D on {8 * dp:>9,}        {command('check', plan):8.3f} s")
    before, runs = of_processors(), 3
    print(f"psem prove --no-cache, all claims   {command('prove', '--no-cache', runs=runs):8.3f} s")
    print(f"  of processors, mean               {(of_processors() - before) / runs:8.3f} s")
    print(f"psem prove, unchanged               {command('prove'):8.3f} s")

    obligations = [o for claim in claims() for o in prove(claim).obligations]
    times = sorted(o.seconds for o in obligations)
    print(f"obligations                         {len(times):8d}")
    print(f"median obligation                   {1e3 * statistics.median(times):8.2f} ms")
    print(f"slowest obligation                  {1e3 * times[-1]:8.2f} ms")

    def some_predictions():
        for psi in range(10**9, 10**9 + 1000):
            predict("zero3", psi, 64)

    print(f"exact predictions of zero3          {1000 / seconds(some_predictions):8.0f} a second")
    rng = np.random.default_rng(0)
    size = 1_000_000
    psi, n, k = (rng.integers(1, top, size) for top in (10**12, 10**5, 32))
    for name in ("dp", "zero1", "zero2", "zero3"):
        rate = size / seconds(lambda name=name: predict_many(name, psi, n, k)) / 1e6
        print(f"array predictions of {name:<15}{rate:8.1f} million a second")

    schedules = [schedule_of(p) for p in STRATEGIES.values()]

    def some_checks():
        for schedule in schedules:
            for _ in range(50):
                check(schedule, dict.fromkeys(schedule.axes, 8))

    rate = 50 * len(schedules) / seconds(some_checks)
    print(f"verdicts of named strategies        {rate:8.0f} a second")

    zero3 = schedule_of(STRATEGIES["zero3"])

    def simulated(devices, psi, unit):
        return lambda: simulate(zero3, {"batch": devices}, psi, unit=unit, arithmetic="float64")

    step = simulated(64, 1_000_000, 15_625)
    print(f"simulated ZeRO-3 step, 64 devices   {seconds(step, 3):8.3f} s  Psi = 1e6, float64")
    # parameters, gradients, master weights and two moments, of 8 bytes each
    print(f"  its memory / bytes of the states  {allocated(step) / (5 * 8 * 1_000_000):8.2f}")
    many = simulated(1024, 100_000, 4_096)
    print(f"simulated ZeRO-3 step, 1,024        {seconds(many, 1):8.3f} s  Psi = 1e5, float64")


if __name__ == "__main__":
    main()
