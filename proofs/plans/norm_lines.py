"""K5: lines of a norm along axes that a schedule is not about: short sequences of them, run in numbers.

A step's own lines are run by `norms`; these are any, of which few are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from typing import Any

from proofs.trusted.kernel import KernelError
from spec.checking.norms import check_joined, check_norm
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, Lie
from spec.devices.mesh import ALL_WEIGHTS
from spec.language.schedule import Buffer, Kind, Op, Phase, Schedule

AXES, OWN, NUMBER = ("a", "b"), ("batch",), 3
# along these axes, and over groups of weights: of one group nothing is said of that
LIES = (PARTIAL, PARTIAL, PARTIAL), (PARTIAL, WHOLE, PARTIAL), (PARTIAL, PARTIAL, WHOLE)
Place = tuple[int, ...]  # of a device, and a group of weights
PLACES = tuple(product(range(2), repeat=3))


def _line(kind: Kind, *axes: str, mean: bool = False) -> Op:
    return Op(kind, Phase.REDUCE, Buffer.NORM, axes=axes, mean=mean)


A, B, W = *AXES, ALL_WEIGHTS
SQUARE = Op(Kind.SQUARE_NORM, Phase.REDUCE, Buffer.GRADIENTS, Buffer.NORM)
CLIP = Op(Kind.CLIP, Phase.REDUCE, Buffer.GRADIENTS, by=Buffer.NORM)
SUMS = [_line(Kind.ALL_REDUCE, *over) for over in ((A,), (B,), (W,), (A, B), (A, W), (B, W), (A, B, W))]
UNSUITED = [_line(Kind.ALL_REDUCE, *over) for over in ((W, A), (A, W, B), (W, *OWN))]
GONE = [_line(kind) for kind in (Kind.RELEASE, Kind.RESET)]
OTHERS = [_line(Kind.ALL_REDUCE, A, mean=True)]
OTHERS += [_line(Kind.BROADCAST, *over) for over in ((A,), (B,), (A, B))]
ALONG_OWN = [_line(Kind.ALL_REDUCE, *OWN, mean=True), _line(Kind.BROADCAST, *OWN)]  # the verdict's


def require_norm_lines() -> None:
    """Raise KernelError unless lines of a norm are accepted where they are right.

    They are so where what clips is the sum of all parts, each once, and where of several groups of
    weights each has its own whole when it is added. Means, what is sent, and what is then forgotten,
    are not accepted where that is wrong.
    """
    for lies, lines in product(LIES, _sequences()):
        several, along = lies[-1] == PARTIAL, dict(zip(AXES, lies, strict=False))
        if not several and any(W in op.axes for op in lines):
            continue
        norms = {"weight": {**along, W: PARTIAL} if several else along}
        told = _told(norms, finish := (*lines, CLIP))
        right, alike = _is_right(finish, lies), not {*lines[1:]} & {SQUARE, *OTHERS, *GONE}
        if (told is None) is not right and (alike or told is None):
            raise KernelError(f"a norm that lies so, {lies}: {'right' if right else 'wrong'}: {finish}")
        if told is not None and len(lines) < 3:
            number, part, index = told
            first = _told(norms, finish[: index + 1]) and not _told(norms, finish[:index])
            if (number, part) != (NUMBER, "finish") or not first:
                raise KernelError(f"{finish}: in group {number} of {part} line {index} is told")
    if told := _told({"weight": {}}, (SQUARE, *ALONG_OWN, CLIP)):
        raise KernelError(f"the norm of a weight that no other axis cuts is rejected: {told}")
    for op in (SQUARE, SUMS[0], CLIP, *GONE):
        if _told({}, (op,), in_micro_step=True) != (NUMBER, "micro_step", 0):
            raise KernelError(f"in a micro-step: accepted: {op}")
    _require_alike()
    _require_joined()


def _sequences() -> Iterator[tuple[Op, ...]]:
    lines = [*SUMS, *UNSUITED, *GONE, *OTHERS, *ALONG_OWN]
    yield (SQUARE,)
    yield from ((op,) for op in lines)
    yield from ((SQUARE, op) for op in lines)
    yield from ((SQUARE, *both) for both in product((*SUMS, *GONE, SQUARE), (*lines, SQUARE)))
    yield from ((SQUARE, *both) for both in product(ALONG_OWN, SUMS))
    yield from ((SQUARE, *several) for several in permutations(SUMS[:3]))


def _told(
    norms: Mapping[str, Mapping[str, Lie]], ops: Sequence[Op], in_micro_step: bool = False
) -> Any:
    """Where lines are wrong, as is said; nothing if nowhere."""
    bodies = (tuple(ops), ()) if in_micro_step else ((), tuple(ops))
    return _refused(partial(check_norm, Schedule(OWN, (), *bodies), norms, NUMBER))


def _refused(check: Callable[[], None]) -> Any:
    try:
        check()
    except LayoutError as error:
        return error.at
    return None


def _is_right(lines: Sequence[Op], lies: Sequence[Lie]) -> bool:
    """Whether lines clip by the sum of all parts; each is a number, which tells how often it is there.

    What is not there is summed as nothing, and clips nothing: that the verdict finds.
    """
    cut = [lie == PARTIAL for lie in lies]
    parts = {at: tuple(i * is_cut for i, is_cut in zip(at, cut, strict=True)) for at in PLACES}
    numbers = {part: 100**i for i, part in enumerate(dict.fromkeys(parts.values()))}
    groups = {part[-1]: 0 for part in numbers}
    for part, number in numbers.items():
        groups[part[-1]] += number
    every, has = sum(numbers.values()), dict[Place, Any]()
    for op in lines:
        if op is SQUARE:
            has = {place: numbers[parts[place]] for place in PLACES}
        elif op in GONE:
            has = {}
        elif not has if op.kind is Kind.BROADCAST else op is CLIP and {*has.values()} - {every}:
            return False
        for axis in op.axes if has else ():
            if axis == W and (op.axes[-1] != W or any(has[p] != groups[p[-1]] for p in PLACES)):
                return False
            has = _moved(op, has, (*AXES, W).index(axis)) if axis not in OWN else has
    return True


def _moved(op: Op, has: Mapping[Place, Any], axis: int) -> dict[Place, Any]:
    """What there is after a line, along one of its axes."""

    def at(place: Place, i: int) -> Any:
        return has[(*place[:axis], i, *place[axis + 1 :])]

    if op.kind is Kind.BROADCAST:
        return {place: at(place, 0) for place in has}
    return {place: Fraction(at(place, 0) + at(place, 1), 1 + op.mean) for place in has}


def _require_alike() -> None:
    """Weights of which one's norm lies otherwise, along any axis, have no norm together."""
    every = dict.fromkeys((*AXES, W), PARTIAL)
    for axis, name in product(AXES, "xyz"):
        for norms in ({n: every | {axis: WHOLE} if n == name else every for n in "xyz"}, {}):
            if (_told(norms, (SQUARE,)) is None) is bool(norms):
                raise KernelError(f"a norm of {name}, that lies otherwise along {axis}: {norms}")


def _require_joined() -> None:
    """Groups that add their norms to others' as often as others are accepted; else one is told that
    does so less often than some other.
    """
    for times in product(range(3), repeat=3):
        groups = [Schedule(OWN, (), (), (SUMS[2],) * often) for often in times]
        told = _refused(partial(check_joined, groups))
        if told != (None if len({*times}) == 1 else (times.index(min(times)), "weights")):
            raise KernelError(f"groups add their norms so often, {times}: {told}")
