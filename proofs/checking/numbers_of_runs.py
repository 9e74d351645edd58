"""T3: the numbers of its runs: data, what is not known, and what updates make of weights."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product
from typing import Any

from proofs.checking.matching_schedules import along
from proofs.checking.witnesses import around, operation
from proofs.trusted.kernel import Kernel, KernelError
from spec.derivation.schedules import schedule_of
from spec.language.schedule import STATE_OF, Buffer, Kind, Rest, Schedule
from spec.meaning.match import Copies, Place, first_difference
from spec.meaning.reference import Losses, Reference, Unknown, divided, primes, run
from spec.meaning.semantics import MOMENT, execute, initial
from spec.models.states import State
from spec.numbers.any_size import any_size
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES


def unknowns_differ(k: Kernel) -> None:
    """Raise KernelError unless in runs what is not known is another number at each call, and like no
    number where it has none; and what there is at first is as the data say, which are all different.
    """
    named: Any = lambda *name: name  # noqa: E731
    of_a_run = Reference(Schedule((BATCH,), (), (), ()), {BATCH: 3}, 1, 2, named, True, True)
    if of_a_run.single(0) != tuple([named(what, j) for j in range(2)] for what in ("start", "moment")):
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


def moments_made_again_are_unknown(k: Kernel) -> None:
    """Raise KernelError unless of an optimizer state that is made again no moment is known."""
    schedule = schedule_of(on_batch("R", "M", "R", "S"))
    world = Reference(schedule, {BATCH: 2}, 1, 2, primes, True, True)
    store = initial(schedule, world, world.zero, world.zero)
    execute(operation(Kind.RECOMPUTE, Buffer.OPTIMIZER), schedule, world, store, 0)
    _, moments = store[Buffer.OPTIMIZER, MOMENT]
    if not all(isinstance(moment, Unknown) for moment in moments.values()):
        raise KernelError(f"{k.claim}: moments that are made again are {moments}")


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


def groups_share_samples(k: Kernel) -> None:
    """Raise KernelError unless in runs on three axes groups are of those that differ along some alone,
    and own what the owner has there; and a backward is of all their samples, of what each one's forward
    left, at a device's own view. And unless each sample has a gradient of its own, of the losses that
    are given.
    """
    sizes = dict.fromkeys(("one", "two", "three"), 2)
    world = Reference(Schedule((*sizes,), (), (), ()), sizes, 1, 3, primes, True, True)
    view = {(j, d): primes("start", d, j) for j, d in world.zero}
    alone = world.forward(view, ())

    def sample(e: Any, j: int, d: Any) -> Any:
        kept, read = (lambda i: view[i, e]), (lambda i: view[i, d])
        return world.losses.sample(world, 0, e, j, kept, read, False)

    for cut in product((False, True), repeat=3):
        axes = tuple(axis for axis, is_cut in zip(sizes, cut, strict=True) if is_cut)
        gathered = world.of_group(alone, axes)
        gradients = world.gradient(view, gathered, 0, axes)
        for j, d in view:
            places = {e: [*zip(cut, d, e, strict=True)] for e in world.devices}
            group = [e for e in places if all(c or here == there for c, here, there in places[e])]
            ends = all(here != there for c, here, there in places[world.owner[j]] if c)
            if [*world.group(d, axes)] != group or world.owns(j, d, axes, 1) is not ends:
                raise KernelError(
                    f"{k.claim}: along {axes} {d} is of another group, or takes another's"
                )
            as_left = all(gathered[j, d][e] == view[j, e] for e in group)
            if not as_left or gradients[j, d] != sum(sample(e, j, d) for e in group):
                raise KernelError(f"{k.claim}: along {axes} {d} has other samples' gradients")
    _samples_differ(k, world)
    _losses_are_as_given(k)


def _samples_differ(k: Kernel, world: Reference) -> None:
    """Raise KernelError unless a sample's gradient of an element sums what is kept of it, by a factor
    of its device's own; another element's parameter; and a number of the data of its own.
    """
    world.data = lambda *name: any_size(f"data {name}")
    kept, read = ((lambda i, w=what: any_size(f"{w} {i}")) for what in ("kept", "read"))
    every, factors, reads = set[str](), set[tuple[Any, Any]](), set[tuple[int, str]]()
    cases = product((False, True), world.zero, range(2), range(2))
    for tied, (j, d), micro_step, step in cases:
        world.step = step
        gradient = world.losses.sample(world, micro_step, d, j, kept, read, tied)
        (given, _), (own, factor), (other, _) = ((f[0][0], times) for f, times in gradient.terms)
        if own != f"kept {j}" or other == f"read {j}":
            raise KernelError(f"{k.claim}: the gradient of {j} is {gradient}")
        every.add(given)
        reads.add((j, other))
        factors |= set() if tied else {(d, factor)}
    differ = len(factors) == len({factor for _, factor in factors}) == len(world.devices)
    once = len(reads) == len({other for _, other in reads}) == world.elements
    if not (differ and once and len(every) == 2 * len(world.zero) * 2 * 2):
        raise KernelError(f"{k.claim}: samples have factors {factors}, and read {reads}")


class _Flat(Losses):
    """Losses that no weight changes."""

    def sample(self, *_: Any) -> Any:
        return 0


def _losses_are_as_given(k: Kernel) -> None:
    """Raise KernelError unless with losses that no weight changes each run's gradients are zero."""
    dp, sizes = schedule_of(STRATEGIES["dp"]), {BATCH: 2}
    world = Reference(dp, sizes, 1, 2, primes, True, True)
    weights = {world.next(*of_one, 0)[0] for of_one in zip(*world.single(0), strict=True)}
    found = next(row for row in run(dp, sizes, steps=1, losses=_Flat()) if row.state == "parameters")
    if {*found.has} != weights or any(has != single for has, single in found.pairs()):
        raise KernelError(f"{k.claim}: with losses that no weight changes weights are {found.has}")


def all_that_is_kept_is_compared(k: Kernel) -> None:
    """Raise KernelError unless of each state that is kept each copy is compared, but working ones, of
    what is on the other side of the host link as not known; and so is what is divided by nothing.
    """
    dp, rest = schedule_of(STRATEGIES["dp"]), Rest(working=True)
    one, other = ("optimizer state", "stateful"), ("master weights", "master")
    for has in product((False, True), repeat=2):
        options: Any = {"stateful": has[0], "master": has[1], "steps": 1}
        kept = {name for (name, _), there in zip((one, other), has, strict=True) if there}
        for schedule, states in ((dp, kept), (dp.with_rest(State.OPTIMIZER, rest), set[str]())):
            found = {row.state for row in run(schedule, {BATCH: 2}, **options)}
            if found != {"parameters", *states}:
                raise KernelError(f"{k.claim}: of {kept} and parameters {found} are compared")
    two = schedule_of(along(("outer", "inner"), "dp")).with_rest(State.OPTIMIZER, Rest(("outer",)))
    copies = {row.state: len(row.has) for row in run(two, {"outer": 2, "inner": 3}, steps=1)}
    if copies != {"parameters": 6 * 6, one[0]: 6 * 3, other[0]: 6 * 3}:
        raise KernelError(
            f"{k.claim}: of 6 elements on 6 devices so many copies are compared: {copies}"
        )
    for (kind, host), buffer in product(
        ((Kind.OFFLOAD, False), (Kind.FETCH, True)), (Buffer.PARAMETERS, Buffer.OPTIMIZER)
    ):
        moved = around(dp, last=(operation(kind, buffer),)).with_rest(STATE_OF[buffer], Rest(host=host))
        rows = [*run(moved, {BATCH: 2}, steps=1)]
        of_it = [row for row in rows if (row.state == "parameters") is (buffer is Buffer.PARAMETERS)]
        if not all(isinstance(value, Unknown) for row in of_it for value in row.has):
            raise KernelError(f"{k.claim}: after {kind} {buffer.value} are known")
    row = Copies(0, "parameters", [1, 2, 3], [0, 0, 0], lambda index: Place((index,), index))
    for unlike, told_of in (([], []), ([1, 2], [(2, 1)])):  # by a comparison of its own
        told = first_difference([row], partial(lambda found, _: found, unlike))
        if [(each.has, each.place.element) for each in (told,) if each] != told_of:
            raise KernelError(f"{k.claim}: of copies that are unlike at {unlike} {told} is told first")
    unknown = primes("unknown", 1)
    quotients = [divided(x, y) for x, y in ((1, 0), (0, 0), (1, unknown), (unknown, unknown))]
    if not all(isinstance(value, Unknown) for value in quotients) or divided(0, unknown) != 0:
        raise KernelError(f"{k.claim}: what is divided by nothing, or by what is not known, is known")
