"""M9: what passes through a device where units differ, and views are there before their turns.

By hand, from what a step does: forward goes from the first unit to the last, backward from the last to
the first. When a unit has its turn its view is there, and those of the next few; what is held whole is
there of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, product, repeat
from typing import Any

from proofs.tools.encoding import Symbolic
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And, RealVal
from spec.costs.memory import Sizes, Unit, Vector, peak, transient
from spec.derivation.schedules import schedule_of
from spec.models.states import BytePolicy
from spec.numbers.arithmetic import EXACT
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

GATHERED = on_batch("R", "S*", "R", "S")  # optimizer state is gathered for the update
ALIKE = 2  # units of the second kind, one after the other
N = 4  # devices
W, G, K = 2, 3, 12  # bytes of a weight, a gradient, an element's optimizer state


class _Padded(Symbolic):
    """Slices of units that are known, of as many devices as there are."""

    def shard(self, elements: Any, unit: Any, devices: Any) -> Any:
        is_known = unit is elements and devices == N
        return super().shard(elements, unit, devices) if is_known else RealVal(0)


def units_take_turns(k: Kernel) -> tuple[Theorem, ...]:
    """The most that passes, and the peak, of a unit of two vectors and of others, of any size."""
    _require_padded_apart(k)
    other, own = k.reals("other own")  # elements of a unit, and of a device's slice, padded
    rows, own_rows, row, bias, own_bias = 30, 8, 7, 3, 1
    padded = _Padded([(rows, own_rows), (bias, own_bias), (other, own)])
    units = Unit((Vector(rows, row), Vector(bias))), Unit((Vector(other),), ALIKE)
    turns = [rows * row + bias, *[other] * ALIKE]
    cells = [own_rows * row + own_bias, *[own] * ALIKE]
    given = [own > 0]  # so that one more view takes room
    policy, found = BytePolicy(W, G, K), []
    for ahead in range(2):
        for name, (whole, passing) in _passing(turns, [N * cell for cell in cells], ahead).items():
            sizes = Sizes(sum(turns), {BATCH: N}, policy, None, padded, (BATCH,), units, ahead)
            schedule = schedule_of(STRATEGIES.get(name, GATHERED))
            most = Symbolic().maximum(RealVal(0), *passing)
            rests = whole * sum(turns) + (W + G + K - whole) * sum(cells)
            claim = And(transient(schedule, sizes) == most, peak(schedule, sizes) == rests + most)
            words = f"{name.replace('-', '_')}_with_{ahead}_views_there_before_their_turns"
            found.append(k.prove(words, claim, given=given if name == "zero3" else []))
    return tuple(found)


def _passing(
    turns: Sequence[Any], views: Sequence[Any], ahead: int
) -> dict[str, tuple[int, list[Any]]]:
    """Of some strategies, bytes of an element of what rests whole, and what passes in each turn.

    `turns`: the elements of each unit; `views`: those of its view, which is padded.
    """
    numbers = range(len(turns))
    forward = [W * sum(views[i : i + ahead + 1]) for i in numbers]
    backward = [W * sum(views[max(i - ahead, 0) : i + 1]) + G * turns[i] for i in numbers]
    gradients = [G * unit for unit in turns]
    return {
        "zero2": (W, gradients),
        "gathered-optimizer": (W + G, [K * view for view in views]),  # none is before its turn
        "zero3": (0, [*forward, *backward]),
        "fsdp-hold": (0, [W * sum(views) + each for each in gradients]),
    }


def _require_padded_apart(k: Kernel) -> None:
    """Raise KernelError unless each unit, and what is left, is cut by itself."""
    for elements, unit, devices in product(range(1, 9), range(1, 5), range(1, 4)):
        units = (*repeat(unit, elements // unit), elements % unit)
        cells = [next(cell for cell in count() if cell * devices >= each) for each in units]
        has = EXACT.shard(elements, unit, devices)
        if has != sum(cells):
            raise KernelError(f"{k.claim}: {elements} in units of {unit}: {has} on one of {devices}")
