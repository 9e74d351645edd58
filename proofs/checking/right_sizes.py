"""T3: for which sizes a schedule is right is found, and said: of errors that vanish for some sizes.

Gradients are taken some more times, as often as a polynomial in devices and micro-steps says. So the
schedule is right where that is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations, product

from proofs.checking.further_schedules import of_the_firsts_slices, of_two_neighbours
from proofs.checking.matching_schedules import after, along, tied_parameters
from proofs.checking.witnesses import around, meant, operation
from proofs.trusted.kernel import Kernel, KernelError
from spec.checking.algebra import taker
from spec.checking.everywhere import NEAR, Everywhere, Found, complete, everywhere
from spec.checking.forms import Unmet
from spec.checking.verdict import check
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, Monomial, Op, Rest, Schedule, Span
from spec.models.states import POLICIES, BytePolicy, State
from spec.numbers.any_size import any_size
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

Terms = dict[tuple[int, int], int]  # by the exponents of devices and micro-steps, how often
FRESH, GRADIENTS = Buffer.FRESH, Buffer.GRADIENTS
# what the error is in devices and micro-steps, and whether it is 0 for so many
ERRORS: dict[str, tuple[Terms, Callable[[int, int], bool]]] = {
    "four devices": ({(1, 0): 1, (0, 0): -4}, lambda n, _: n == 4),
    "two or seven devices": ({(2, 0): 1, (1, 0): -9, (0, 0): 14}, lambda n, _: n in (2, 7)),
    "up to three devices": (
        {(3, 0): 1, (2, 0): -6, (1, 0): 11, (0, 0): -6},
        lambda n, _: n in (1, 2, 3),
    ),
    "five micro-steps": ({(0, 1): 1, (0, 0): -5}, lambda _, m: m == 5),
    "twenty-one samples": ({(1, 1): 1, (0, 0): -21}, lambda n, m: n * m == 21),
    "four samples, less than the number": ({(0, 0): 4, (1, 1): -1}, lambda n, m: n * m == 4),
    "as many micro-steps": ({(1, 0): 1, (0, 1): -1}, lambda n, m: n == m),
    "six of five": ({(1, 0): 5, (0, 1): -6}, lambda n, m: 5 * n == 6 * m),
}
SHIFT = 5  # devices further on: whose slices these are
FEW: dict[int, Callable[[int, int], bool]] = {2: lambda n, _: n <= 2, 3: lambda n, _: n <= 3}
# that more sizes fulfil than are looked at: of larger ones nothing need be said
CURVES = "as many micro-steps", "six of five"
SIZES = range(1, 13)
MANY = 11  # micro-steps, more than are run one by one where all at once are decided
LOOKED_AT = 6  # points


def sizes_are_found(k: Kernel) -> None:
    """Raise KernelError unless what is said to be right, and wrong, is so, and is all of it."""
    for name, (schedule, vanishes) in _errors().items():
        found = everywhere(schedule, {})
        (general, *_) = found.found
        for n, m in product(SIZES, repeat=2):
            said = {one.accepted for one in found.found if one.says({BATCH: n, MICRO_STEPS: m})}
            at = {BATCH: n, MICRO_STEPS: m}
            far = name in CURVES and max(n, m) > NEAR
            silent = far and any(c.at(at) == 0 for c in general.conditions)
            if said != {vanishes(n, m)} and not (silent and not said):
                raise KernelError(f"{k.claim}: {name}: of {n} devices and {m} micro-steps: {said}")
        if all(map(complete, general.conditions)) is (name in CURVES):
            raise KernelError(f"{k.claim}: {name}: whether all sizes are looked at is not so")
        _require_points(k, name, schedule, found)
        _require_mentioned(k, name, found)
        alone = everywhere(schedule, {}, exceptions=False)
        if not general.accepted and len(alone.found) > 1:
            raise KernelError(f"{k.claim}: {name}: exceptions are looked at, and are not asked for")
    _require_mentioned(k, "one within another", _one_within_another())
    _require_undecided(k)
    _require_told(k)
    _require_equal(k)
    _require_along_each(k)
    a, b, c = map(any_size, "abc")
    if complete(a * b * c - 12) or not complete(a * b - 12):  # of three sizes fewer are looked at
        raise KernelError(f"{k.claim}: whether all sizes are looked at is not so, of two or three")
    for shift, size in product(range(-5, 6), range(2, 8)):  # who takes the slice of device 0
        takers = {(taker(of, shift) + shift) % size for of in (size, any_size(BATCH))}
        if takers != {0}:
            raise KernelError(f"{k.claim}: with a shift of {shift}, of {size} devices: {takers}")


def _require_equal(k: Kernel) -> None:
    """It is said that all is right on as many of two sizes, where it is of any number, or of few.

    Not of what is wrong besides, as many or as many squared; nor where two neighbours' slices are one,
    on more devices than are looked at, or along another axis.
    """
    dp, both = schedule_of(STRATEGIES["dp"]), schedule_of(along(("outer", "inner"), "dp"))
    lost, on_shards = replace(dp, finish=dp.finish[1:]), schedule_of(along(both.axes))
    for schedule, one, other, places, power, right in (
        (on_shards, "outer", "inner", 0, 1, True),
        (dp, MICRO_STEPS, BATCH, 2, 1, True),
        (dp, BATCH, MICRO_STEPS, 4, 1, False),
        (dp, MICRO_STEPS, BATCH, 3, 1, True),
        (both, "outer", MICRO_STEPS, 1, 1, False),
        (lost, BATCH, MICRO_STEPS, 0, 1, False),
        (lost, BATCH, MICRO_STEPS, 0, 2, False),
    ):
        over = operation(Kind.SCALE, GRADIENTS, by=Monomial(powers=((one, power), (other, -1))))
        neighbours = of_two_neighbours(schedule, places) if places else schedule
        (general, *_) = everywhere(around(neighbours, before=(over,)), {}, exceptions=False).found
        if not general.conditions or general.equal != general.conditions[:right]:
            of = [str(condition) for condition in general.equal]
            raise KernelError(f"{k.claim}: {places} places on, of as many along {one} it is said: {of}")


def _errors() -> dict[str, tuple[Schedule, Callable[[int, int], bool]]]:
    """Schedules with errors, by what these are, and whether it is 0 for so many."""
    errors = {name: (_with_error(terms), vanishes) for name, (terms, vanishes) in ERRORS.items()}
    errors["four devices, of a norm"] = _clipped_by_another_norm(4), lambda n, _: n == 4
    errors["as many devices as a shift"] = _of_a_device_further_on(SHIFT), lambda n, _: n in (1, SHIFT)
    both_sides = of_two_neighbours(schedule_of(STRATEGIES["dp"]), 4)  # of eight devices one
    errors["all but eight devices, or a part of them"] = both_sides, lambda n, _: 8 % n > 0
    for few, fits in FEW.items():
        errors[f"up to {few} devices"] = _without_the_rest(few - 1), fits
    twelve, dp = _with_error({(1, 1): 1, (0, 0): -12}), schedule_of(STRATEGIES["dp"])
    six = Monomial(Fraction(-1, 6), ((BATCH, 1), (MICRO_STEPS, 1)))
    as_many = Monomial(Fraction(-1), ((BATCH, 1), (MICRO_STEPS, -1)))
    unread = "of what nothing reads"
    errors[f"twelve samples, and six {unread}"] = _and_of_a_copy(twelve, six), lambda n, m: n * m == 12
    errors[f"as many micro-steps {unread}"] = _and_of_a_copy(dp, as_many), lambda *_: True
    return errors


def _require_points(k: Kernel, name: str, schedule: Schedule, found: Everywhere) -> None:
    """Points at which it is wrong: rejected, few devices first, of few those with few micro-steps."""
    points = [*found.points()]
    keys = [(max(point[BATCH], 3), point[MICRO_STEPS]) for point in points]
    if any(later < earlier for earlier, later in pairwise(keys)):
        raise KernelError(f"{k.claim}: {name}: points are {points}")
    for wrong in (one for one in found.found if not one.accepted):
        if not any(map(wrong.says, points)):
            raise KernelError(f"{k.claim}: {name}: of {wrong.sizes} there is no point")
    for point in points[:LOOKED_AT]:
        if check(schedule, {BATCH: point[BATCH]}, point[MICRO_STEPS]).accepted:
            raise KernelError(f"{k.claim}: {name}: right with {point}")
    if not all(any(one.says(point) for one in found.found) for point in points):
        raise KernelError(f"{k.claim}: {name}: of some of {points} there is no verdict")


def _require_mentioned(k: Kernel, name: str, found: Everywhere) -> None:
    """What is said of the fewest of some sizes is the verdict on them; nothing can be left out."""
    said = [*found.right_for, *found.wrong_for]
    for left_out in (None, *said):
        others = [one for one in said if one is not left_out]
        told = [_told(others, one) == {one.accepted} for one in found.found if one.verdict]
        if all(told) is not (left_out is None):
            raise KernelError(f"{k.claim}: {name}: of what is said {left_out} is left out: {told}")


def _told(said: Sequence[Found], of: Found) -> set[bool]:
    """The verdicts on some sizes: what is said of the fewest sizes of which they are some."""
    wider = [one for one in said if one.sizes.items() <= of.sizes.items()]
    return {one.accepted for one in wider if not any(one.wider(other) for other in wider)}


def _one_within_another() -> Everywhere:
    """As if it were right, and wrong with one micro-step, but on one device; with two, as any."""
    dp = schedule_of(STRATEGIES["dp"])
    right, wrong = (check(schedule, {BATCH: 2}) for schedule in (dp, replace(dp, finish=dp.finish[1:])))
    one, two = {MICRO_STEPS: 1}, {MICRO_STEPS: 2}
    found = Found(one, wrong, {}), Found(one | {BATCH: 1}, right, {}), Found(two, right, {})
    return Everywhere((BATCH, MICRO_STEPS), (Found({}, right, {}), *found))


def _require_undecided(k: Kernel) -> None:
    """What grows in every micro-step is not decided, but for few of them; it is right for one."""
    twice = operation(Kind.SCALE, GRADIENTS, by=Monomial(Fraction(2)))
    grows = around(schedule_of(STRATEGIES["dp"]), first=(twice,))
    found = everywhere(grows, {})
    right = [one.sizes for one in found.right_for]
    looked_at = sorted({one.sizes[MICRO_STEPS] for one in found.found if MICRO_STEPS in one.sizes})
    if found.accepted or found.undecided != (MICRO_STEPS,) or right != [{MICRO_STEPS: 1}]:
        raise KernelError(f"{k.claim}: undecided: {found.undecided}, right with {right}")
    not_decided = [one for one in found.found if one.verdict is None]
    if any(one.accepted or one.says({BATCH: MANY, MICRO_STEPS: MANY}) for one in not_decided):
        raise KernelError(f"{k.claim}: of what is not decided a verdict is told")
    aside = operation(Kind.ACCUMULATE, GRADIENTS, Buffer.TIED), replace(twice, source=Buffer.TIED)
    found = everywhere(around(schedule_of(STRATEGIES["dp"]), first=aside), {})
    few = everywhere(grows, {}, exceptions=False).found
    if not found.accepted or not found.undecided or not found.right_for or len(few) == 1:
        raise KernelError(f"{k.claim}: what grows, and is not read, is rejected, or decided")
    if looked_at != [1, 2, 3] or {BATCH: 1} not in [one.sizes for one in found.found]:
        raise KernelError(f"{k.claim}: of what is not decided {looked_at} is looked at")
    if check(grows, {BATCH: 2}, MANY).accepted:
        raise KernelError(f"{k.claim}: what grows is accepted, of {MANY} micro-steps")


def _require_found_where_it_is(k: Kernel) -> None:
    """The operation that is wrong is told, and which one of the step it is, of many micro-steps; and
    whether what it reads is not known.
    """
    dp = schedule_of(STRATEGIES["dp"])
    not_summed = replace(dp, finish=dp.finish[1:])
    taken = replace(dp, micro_step=(*dp.micro_step, operation(Kind.OFFLOAD, Buffer.PARAMETERS)))
    for schedule, micro_steps in product((not_summed, taken), (2, MANY)):
        verdict, ops = check(schedule, {BATCH: 2}, micro_steps), [*schedule.flat(micro_steps)]
        in_micro_step, op = ops[verdict.op_index]
        kind, at = (Kind.BACKWARD, 1) if schedule is taken else (Kind.UPDATE, micro_steps - 1)
        if op is not verdict.op or op.kind is not kind or in_micro_step != at:
            raise KernelError(f"{k.claim}: {verdict.op} is wrong, and {op} of {in_micro_step} is told")
        is_known = isinstance(verdict.why, Unmet) and verdict.why.not_known is None
        if is_known is (schedule is taken):  # from the device
            raise KernelError(f"{k.claim}: {verdict.why} is not known, or is")


def _require_told(k: Kernel) -> None:
    """What is wrong is told, of few bytes, sizes and devices too."""
    _require_found_where_it_is(k)
    dp = schedule_of(STRATEGIES["dp"])
    forgets = schedule_of(on_batch("R", "M", "R", "S"))
    if everywhere(forgets, {}).accepted or not everywhere(forgets, {}, POLICIES["fp32-sgd"]).accepted:
        raise KernelError(f"{k.claim}: no moments are kept, and of all sizes another verdict is told")
    for few in (Fraction(1, 2), 1, 2):  # bytes of moments: they are to be kept
        if check(forgets, {BATCH: 2}, 1, BytePolicy(2, 2, few)).accepted:
            raise KernelError(f"{k.claim}: moments of {few} bytes need not be kept")
    two = schedule_of(along(("other", BATCH), "dp"))
    for size, axis in product((0, -1, 1.5, None), two.axes):
        sizes = {**dict.fromkeys(two.axes, 2), axis: size}
        try:
            check(two, {name: n for name, n in sizes.items() if n is not None})
        except ValueError:
            continue
        raise KernelError(f"{k.claim}: there is a verdict on {size} devices along {axis}")
    for schedule, right in zip(of_the_firsts_slices(), ((), (2,)), strict=True):
        for devices in (1, 2, 3, 4, any_size(BATCH)):
            if check(schedule, {BATCH: devices}).accepted is not (devices in right):
                raise KernelError(f"{k.claim}: slices of the first device, of {devices}, are told")
    _, backward = dp.micro_step  # of one device there is nothing to gather: backward reads what is lost
    gather = operation(Kind.ALL_GATHER, Buffer.ACTIVATIONS, axes=(BATCH,))
    if check(replace(dp, micro_step=(gather, backward)), {BATCH: 1}).op is not backward:
        raise KernelError(f"{k.claim}: on one device {gather} is told to be wrong")


def _and_of_a_copy(schedule: Schedule, by: Monomial) -> Schedule:
    """With so many times what there is more in a copy, at the start of each micro-step."""
    copy = operation(Kind.KEEP, GRADIENTS, Buffer.TIED, span=Span.ALL_UNITS)
    more = operation(Kind.ACCUMULATE, GRADIENTS, Buffer.TIED)
    return around(schedule, first=(copy, operation(Kind.SCALE, Buffer.TIED, by=by), more))


def _with_error(terms: Terms) -> Schedule:
    """Data parallelism that adds its gradients so many times more, before they are summed."""
    dp = schedule_of(STRATEGIES["dp"])
    keep = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS)
    return around(dp, before=(keep, *_added(terms), operation(Kind.RELEASE, FRESH)))


def _clipped_by_another_norm(devices: int) -> Schedule:
    """Tied gradients are taken too often, or too seldom, but for so many devices; all are clipped."""
    scale = operation(Kind.SCALE, Buffer.TIED, by=Monomial(Fraction(1, devices), ((BATCH, 1),)))
    tied = after(tied_parameters(schedule_of(STRATEGIES["dp"])), Kind.BACKWARD, lambda _: (scale,))
    return meant(clipped(tied), tied=True, clip=True)


def _of_a_device_further_on(shift: int) -> Schedule:
    """Sums of the slices that devices some places further on own are gathered as one's own."""
    dp = schedule_of(STRATEGIES["dp"])
    reduce, *rest = dp.finish
    scatter = replace(reduce, kind=Kind.REDUCE_SCATTER, shift=shift)
    return replace(dp, finish=(scatter, replace(reduce, kind=Kind.ALL_GATHER), *rest))


def _without_the_rest(named: int) -> Schedule:
    """Devices keep the whole sum of their own slices, and of the next ones', if two are named; of all
    others these devices' gradients, and their own.
    """
    dp = schedule_of(STRATEGIES["dp"])
    reduce, update, *rest = dp.finish
    keep = operation(Kind.KEEP, GRADIENTS, FRESH, span=Span.ALL_UNITS)
    aside, tied = replace(keep, into=Buffer.TIED), Buffer.TIED
    gather = operation(Kind.ALL_GATHER, FRESH, axes=(BATCH,), span=Span.ALL_UNITS)
    add = operation(Kind.ACCUMULATE, FRESH, tied)
    few = [op for n in range(named) for op in (keep, replace(gather, shift=n), add)]
    whole = (replace(aside, within=(BATCH,), shift=n) for n in range(named))
    ops = aside, *few, reduce, *whole, replace(update, source=tied)
    return replace(dp, finish=(*ops, *rest))


def _require_along_each(k: Kernel) -> None:
    """Of the axes of two, the first's and the last's few sizes for which it is right are found."""
    few = _without_the_rest(1)
    total = operation(Kind.ALL_REDUCE, GRADIENTS, axes=("other",))
    for axes in permutations((BATCH, "other")):
        both = replace(few, axes=axes, finish=(total, *few.finish))
        found = everywhere(both.with_rest(State.ACTIVATIONS, Rest(axes)), {"other": 2})
        for n in SIZES[:3]:
            sizes = {BATCH: n, "other": 2, MICRO_STEPS: 1}
            said = {one.accepted for one in found.found if one.says(sizes)}
            if said != {n <= 2}:
                raise KernelError(f"{k.claim}: of {sizes} it is said to be right: {said}")


def _added(terms: Terms) -> Iterator[Op]:
    """A copy is scaled, and added, for each term: from what it was for the one before."""
    last, were = Fraction(1), (0, 0)
    for exponents, number in terms.items():
        changed = zip((BATCH, MICRO_STEPS), exponents, were, strict=True)
        sizes = tuple((name, now - before) for name, now, before in changed if now != before)
        yield operation(Kind.SCALE, FRESH, by=Monomial(number / last, sizes))
        yield operation(Kind.ACCUMULATE, FRESH, GRADIENTS)
        last, were = Fraction(number), exponents
