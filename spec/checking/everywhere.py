"""For which numbers of devices, and of micro-steps, a schedule is right.

A verdict on sizes in general is one on all of them but a few (`spec.numbers.any_size`), each of
which is looked at by itself, with the other sizes in general.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import inf, prod

from spec.checking.verdict import Verdict, check
from spec.language.schedule import MICRO_STEPS, Schedule
from spec.models.states import MIXED_ADAM, BytePolicy
from spec.numbers.any_size import Comparison, Polynomial, Undecided, any_size
from spec.numbers.arithmetic import Number

LOOKED_AT = (1, 2, 3)  # of what is not decided, those that are looked at
NEAR, FAR = 6, 64  # sizes up to which a condition on several is looked at; if it has none above

Given = Mapping[str, int]  # of axes, and of MICRO_STEPS


@dataclass(frozen=True)
class Found:
    """The verdict on sizes of which some are numbers, and the others are any but those set apart.

    None if it is not decided; then a few numbers of one size are looked at. `conditions`: polynomials
    of which one would have to be 0 for another verdict.
    """

    sizes: Given
    verdict: Verdict | None
    exempt: Mapping[str, tuple[int, ...]]
    conditions: tuple[Polynomial, ...] = ()
    equal: tuple[Polynomial, ...] = ()  # of these, those that make it right, whatever the sizes
    looked_at: str = ""

    @property
    def accepted(self) -> bool:
        return self.verdict is not None and self.verdict.accepted

    def wider(self, other: Found) -> bool:
        """Whether these are more sizes, as fewer of them are numbers."""
        return self.sizes.items() < other.sizes.items()

    def says(self, sizes: Given) -> bool:
        """Whether this is the verdict on some sizes."""
        these = all(sizes[name] == number for name, number in self.sizes.items())
        apart = any(sizes[name] in numbers for name, numbers in self.exempt.items())
        special = any(condition.at(sizes) == 0 for condition in self.conditions)
        return these and self.verdict is not None and not apart and not special


@dataclass(frozen=True)
class Everywhere:
    """What was found of a schedule on all sizes: the verdict in general, then those of other sizes."""

    names: tuple[str, ...]
    found: tuple[Found, ...]

    @property
    def accepted(self) -> bool:
        """Whether it is right for all sizes; of what is not decided, for those looked at."""
        return all(found.verdict is None or found.accepted for found in self.found)

    @property
    def undecided(self) -> tuple[str, ...]:
        """The sizes of which only a few numbers were looked at."""
        return tuple(dict.fromkeys(f.looked_at for f in self.found if f.verdict is None))

    @property
    def right_for(self) -> tuple[Found, ...]:
        """The sizes for which it is right."""
        return self._widest(True)

    @property
    def wrong_for(self) -> tuple[Found, ...]:
        """The sizes for which it is wrong."""
        return self._widest(False)

    def _widest(self, accepted: bool) -> tuple[Found, ...]:
        """Those with one verdict that are not a part of another such one."""
        decided = [f for f in self.found if f.verdict is not None]

        def between(wide: Found, narrow: Found) -> bool:
            return any(wide.wider(f) and f.wider(narrow) for f in decided if f.accepted is not accepted)

        these = [f for f in decided if f.accepted is accepted]
        return tuple(f for f in these if not any(g.wider(f) and not between(g, f) for g in these))

    def points(self) -> Iterator[Given]:
        """Numbers for which it is rejected, the smallest first: among them some of every verdict."""
        choices = []
        for name in self.names:
            known = {f.sizes[name] for f in self.found if name in f.sizes}
            other = next(n for n in range(1, len(known) + 2) if n not in known)
            choices.append(sorted({*known, *LOOKED_AT, other}))
        points = [dict(zip(self.names, some, strict=True)) for some in product(*choices)]
        for point in sorted(points, key=_size):
            said = next((f for f in self.found if f.says(point)), None)
            if said is not None and not said.accepted:
                yield point


def _size(point: Given) -> tuple[int, ...]:
    """To sort by: few devices first, of few those with the fewest micro-steps."""
    devices = [number for name, number in point.items() if name != MICRO_STEPS]
    most = max(devices, default=1)
    return max(most, LOOKED_AT[-1]), point[MICRO_STEPS], most, prod(devices)


def everywhere(
    schedule: Schedule, sizes: Given, policy: BytePolicy = MIXED_ADAM, exceptions: bool = True
) -> Everywhere:
    """For which sizes a schedule is right. `sizes`: those that are numbers; the others are any.

    `exceptions`: also of what is rejected in general.
    """
    names = (*schedule.axes, MICRO_STEPS)
    found: dict[frozenset[tuple[str, int]], Found] = {}

    def look(given: Given) -> None:
        key = frozenset(given.items())
        if key in found:
            return
        found[key] = one = _look(schedule, given, names, policy)
        rejected = one.verdict is not None and not one.accepted
        for name, numbers in one.exempt.items() if exceptions or not rejected else ():
            for number in numbers:
                look({**given, name: number})
        for point in _points(one) if exceptions else ():
            look({**given, **point})

    look(sizes)
    return Everywhere(names, tuple(found.values()))


def _look(schedule: Schedule, given: Given, names: tuple[str, ...], policy: BytePolicy) -> Found:
    comparison = Comparison()
    at = {name: given.get(name, any_size(name)) for name in names}
    try:
        verdict = check(schedule, at, at[MICRO_STEPS], policy, comparison)
    except Undecided:
        *others, name = [name for name in names if name not in given] or [""]
        few = dict.fromkeys(others, LOOKED_AT[:1]) | ({name: LOOKED_AT} if name else {})
        return Found(given, None, few, looked_at=name)
    apart = comparison.exempt
    if not verdict.accepted:  # what is right in general is right wherever more things are the same
        for name, numbers in comparison.exceptions().items():
            apart[name] = apart.get(name, set()) | numbers
    conditions = () if verdict.accepted else tuple(comparison.conditions())
    equal = tuple(c for c in conditions if _right_where(c, schedule, at, policy))
    apart_ = {n: tuple(sorted(few)) for n, few in apart.items() if few}
    return Found(given, verdict, apart_, conditions, equal)


def _right_where(
    condition: Polynomial, schedule: Schedule, sizes: Mapping[str, Number], policy: BytePolicy
) -> bool:
    """Whether it is right wherever two sizes are equal: small ones are looked at by themselves."""
    one, other = map(str, condition.sides)
    if one not in sizes or other not in sizes:
        return False
    at, comparison = {**sizes, one: any_size(other)}, Comparison()
    try:
        right = check(schedule, at, at[MICRO_STEPS], policy, comparison).accepted
    except Undecided:
        return False
    return bool(right) and all(
        n <= NEAR if name == other else _right_where(condition, schedule, {**sizes, name: n}, policy)
        for name, few in comparison.exempt.items()
        for n in few
    )


def complete(condition: Polynomial) -> bool:
    """Whether a condition on several sizes is met by few, all of which are looked at."""
    return bool(_largest(condition) <= (FAR if len(condition.names) == 2 else NEAR))


def _largest(condition: Polynomial) -> Number:
    """No size that meets a condition is larger; infinity if that is not seen."""
    total = condition.sides[1]
    return inf if isinstance(total, Polynomial) else total


def _points(found: Found) -> Iterator[Given]:
    """Small sizes for which one of the conditions on several is 0."""
    for condition in found.conditions:
        names = condition.names
        largest = int(_largest(condition)) if complete(condition) else NEAR
        for some in product(range(1, largest + 1), repeat=len(names)):
            point = dict(zip(names, some, strict=True))
            if condition.at(point) == 0:
                yield point
