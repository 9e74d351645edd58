"""T3: the numbers of its runs: data, what is not known, and what updates make of weights."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

from proofs.trusted.kernel import Kernel, KernelError
from spec.language.schedule import Schedule
from spec.meaning.reference import Reference, primes
from spec.numbers.any_size import any_size
from spec.plans.placement import BATCH


def unknowns_differ(k: Kernel) -> None:
    """Raise KernelError unless in runs what is not known is another number at each call, and like no
    number where it has none; and what there is at first is as the data say, which are all different.
    """
    named: Any = lambda *name: name  # noqa: E731
    of_a_run = Reference(Schedule((BATCH,), (), (), ()), {BATCH: 2}, 1, 1, named, True, True)
    if of_a_run.single(0) != ([named("start", 0)], [named("moment", 0)]):
        raise KernelError(f"{k.claim}: a run begins with {of_a_run.single(0)}")
    forwards = [of_a_run.forward(of_a_run.zero, ()) for _ in range(2)]
    of_samples = [value for each in forwards for has in each.values() for value in has.values()]
    unknown = [value for _ in range(2) for value in of_a_run.unknown("").values()]
    unknown += [value for value in of_samples if value != 0]  # a device's own are zero
    if len({*unknown}) < len(unknown):
        raise KernelError(f"{k.claim}: what is not known is twice the same: {unknown}")
    nothing, kinds = primes("unknown", 1), ("start", "moment", "sample", "tied", "tokens", "statistic")
    if any(nothing == other for other in (nothing, nothing + 1, 0)):
        raise KernelError(f"{k.claim}: what is not known is like {nothing}, or like 0")
    some = [primes(kind, u, m, (d,), j) for kind in kinds for u, m, d, j in product(range(3), repeat=4)]
    if len({*some}) < len(some):
        raise KernelError(f"{k.claim}: of {len(some)} numbers of the data {len({*some})} differ")


def updates_differ(k: Kernel) -> None:
    """Raise KernelError unless in runs weights are others after each number of updates.

    An update is linear: each change of the weights is the trace times the one before, less the
    determinant times the one before that. With a trace of 3 or more, and a determinant of 1 or less,
    what is once twice the change before, or more, stays so: more than all changes before it.
    """
    w, m = map(any_size, ("w", "m"))
    units: tuple[tuple[Any, Any], ...] = (1, 0), (0, 1), (w, m)
    for stateful in (False, True):
        of_a_run = Reference(Schedule((BATCH,), (), (), ()), {BATCH: 2}, 1, 1, primes, stateful, True)
        (a, c), (b, d), made = (of_a_run.next(x, y, 0) for x, y in units)
        linear = all(has == x * w + y * m for has, x, y in zip(made, (a, c), (b, d), strict=True))
        (weight,), (moment,) = of_a_run.single(0)
        weights = [weight]
        for _ in range(2):
            weight, moment = of_a_run.next(weight, moment, 1)
            weights.append(weight)
        one, next_one = (abs(then - now) for now, then in pairwise(weights))
        if not linear or abs(a + d) < 3 or abs(a * d - b * c) > 1 or not 0 < 2 * one <= next_one:
            raise KernelError(
                f"{k.claim}: weights may be alike after some numbers of updates: {weights}"
            )
