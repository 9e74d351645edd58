"""The verdict: is a schedule right, for every model, optimizer, data and number of steps?

The schedule is executed on normal forms instead of values. Five things are required of it:

    fresh      forward and backward read the current parameters, all of them, on every device
    whole      what a device applies is every micro-step's gradient, summed over every axis, once
    current    the optimizer state it applies it to is the current one
    agreed     after the step, every resting copy is the updated one
    room       a place for slices is not given whole values without saying which slice

What is not known meets no requirement.
It is accepted when all hold in every step, on units with an element for each device. Theorems: T1 how
operators combine and what they read, T2 and T4 that what compares equal matches, and what does not
differs in some run, T4 that few steps and micro-steps decide all, T3 each requirement but room has a
run that breaks it alone and diverges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as numbered
from itertools import product as combinations
from typing import Any

from spec.checking.algebra import takers
from spec.checking.forms import Forms, Need, OtherElements, Rejected, Why
from spec.checking.micro_steps import after_micro_steps
from spec.checking.symbols import LAST, MicroStep, Offsets, Symbol
from spec.devices.operators import add, scale
from spec.language.schedule import Buffer, Kind, Op, Schedule
from spec.meaning.semantics import (
    CONTENT,
    MOMENT,
    BufferPart,
    Domain,
    Store,
    absent,
    execute,
    initial,
    other_side,
)
from spec.models.states import MIXED_ADAM, BytePolicy, State
from spec.models.training import Statistics
from spec.numbers.any_size import Comparison, Undecided
from spec.numbers.arithmetic import Number

FEW, MANY = 10, 1000  # micro-steps that are run one by one, and those that can be
SETTLED_WITHIN = 4  # steps after which what has not repeated may be anything
UNSETTLED = "it is another after every step"
Relative = dict[BufferPart, tuple[bool, Mapping[Any, Number]]]


@dataclass(frozen=True)
class Verdict:
    """Accepted, or the operation that is wrong, and why: what it has and what it needs."""

    accepted: bool
    rule: str = ""
    step: int = 0
    op: Op | None = None
    why: Why = ("", "")
    op_index: int = -1  # of the operation, from the start of the step; -1 for its end. In general: as
    # if there were one micro-step


def check(
    schedule: Schedule,
    mesh: Mapping[str, Number],
    micro_steps: Number = 1,
    policy: BytePolicy = MIXED_ADAM,
    comparison: Comparison | None = None,
) -> Verdict:
    """Accept a schedule, or say which operation is wrong and why.

    A size, and the number of micro-steps, may be `spec.numbers.any_size.any_size`: then the verdict
    is that for sizes in general. `comparison` collects the sizes for which it may be another; what
    is accepted is so for all sizes but those that are set apart. Raises ValueError for a mesh that
    is not one, and if there is no verdict in general (Undecided). A schedule that reads what is not
    there is rejected.
    """
    for axis in schedule.axes:
        size = mesh.get(axis)
        if size is None or isinstance(size, float) or (isinstance(size, int) and size < 1):
            raise ValueError(f"{axis}: given {size} devices; expected a whole number of at least 1")

    def found(one_by_one: bool) -> Verdict:
        others = OtherElements(news=True)
        while others.news:
            others.news = False
            for roots in (every := [*_roots(schedule, mesh)]):
                given = (schedule, mesh, micro_steps, policy, comparison, roots, one_by_one)
                verdict = _check(schedule, Forms(*given, others=others))
                if not verdict.accepted:
                    return verdict
            others.news &= len(every) > 1
        return Verdict(True)

    few, many = (isinstance(micro_steps, int) and micro_steps <= n for n in (FEW, MANY))
    try:
        return found(one_by_one=few)
    except Undecided:
        if not many:
            raise
        return found(one_by_one=True)


def _check(schedule: Schedule, forms: Forms) -> Verdict:
    """Steps are executed until the state repeats. What never does, on some devices, may be anything: if
    the next step is right whatever it is, and leaves the rest as it was, so is every later one.
    """
    store = initial(schedule, forms, forms.symbol("weight", 0), forms.symbol("moment", 0))
    if schedule.training.statistics:
        store[Buffer.STATISTICS, CONTENT] = (False, forms.symbol("statistics", 0))
    before, others = relative(store, 0, forms), forms.others
    loose: set[tuple[BufferPart, Offsets]] = set()
    for step in range(SETTLED_WITHIN + 2 * len(Buffer) * len([*forms.device_kinds()])):
        forms.step, forms.updated = step, False
        for place, position in loose:
            host, value = store[place]
            store[place] = (host, forms.with_at(value, forms.unknown(UNSETTLED), position))
        try:
            store = _run(schedule, forms, store)
            forms.op_index, forms.op, forms.updated = -1, None, True
            require_agreed(forms, store, schedule)
            if schedule.training.statistics:
                _require_statistics(forms, store)
        except Rejected as no:
            return Verdict(False, no.rule, step, no.op, no.why, no.index)
        after = relative(store, step + 1, forms)
        apart = {*differ(before, after, forms)} - loose
        others.steps = max(others.steps, step)
        if not apart and step == others.steps:  # as many as for elements of other owners
            return Verdict(True)
        if step + 1 >= SETTLED_WITHIN:
            loose |= apart
        before = after
    why = "what is kept is another after every step", "the same"
    return Verdict(False, "agreed", step, None, why)


def _run(schedule: Schedule, forms: Forms, store: Store) -> Store:
    """The store after a step."""

    def run(ops: Sequence[Op], store: Store, m: MicroStep, start: int) -> None:
        for forms.op_index, forms.op in enumerate(ops, start):
            forms.micro_step = m
            execute(forms.op, schedule, forms, store, m)

    count, body = forms.micro_steps, schedule.micro_step
    if forms.one_by_one:
        for m in range(count):
            run(body, store, m, m * len(body))
        run(schedule.finish, store, count - 1, count * len(body))
        return store
    each, numbers = len(body) if isinstance(count, int) else 0, numbered()
    store = after_micro_steps(lambda store, m: run(body, store, m, each * next(numbers)), forms, store)
    run(schedule.finish, store, LAST, each * count if each else len(body))
    return store


def _roots(schedule: Schedule, mesh: Mapping[str, Number]) -> Iterator[dict[str, int]]:
    """Where the first device may be: at each place that operations speak of, and at another one."""
    ops = schedule.ops
    of_first = schedule.training.statistics in (Statistics.FIRST, Statistics.COPY)
    spoken_of = {a for op in ops if op.kind is Kind.BROADCAST for a in op.axes}
    axes = tuple(axis for axis in schedule.axes if of_first or axis in spoken_of)
    choices = []
    for axis in axes:
        named = tuple(dict.fromkeys(takers(schedule, axis, mesh[axis])))
        other = next(i for i in range(len(named) + 1) if i not in named)
        enough = not isinstance(mesh[axis], int) or mesh[axis] > len(named)
        choices.append([*named, other] if enough else [*named])
    for places in combinations(*choices):
        yield dict(zip(axes, places, strict=True))


def kept_copies(
    domain: Domain, store: Store, schedule: Schedule, policy: BytePolicy
) -> list[tuple[State, str, Any]]:
    """The resting copies that must be updated: of which state, weights or moments; the values."""
    kept = [(State.PARAMETERS, Buffer.PARAMETERS, CONTENT, "weight")]
    if policy.master:
        kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, CONTENT, "weight"))
    if policy.k > 0:
        kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, MOMENT, "moment"))
    found = []
    for state, buffer, part, kind in kept:
        rest = schedule.rest(state)
        if rest.stored and not rest.working:
            host, value = store.get((buffer, part), (rest.host, domain.unknown(absent(buffer))))
            value = value if host is rest.host else domain.unknown(other_side(buffer))
            found.append((state, kind, value))
    return found


def require_agreed(forms: Forms, store: Store, schedule: Schedule) -> None:
    """Every resting copy is the updated one, on every device that keeps it."""
    kept = kept_copies(forms, store, schedule, forms.policy)
    if not any(kind == "weight" for _, kind, _ in kept):
        why = "no copy of the parameters is kept", "one to continue from"
        raise Rejected("agreed", why, None, -1)
    for state, kind, value in kept:
        words = "the resting parameters are"
        if state is State.OPTIMIZER:
            words = f"the {kind}s in the optimizer state are"
        updated = forms.symbol(kind, forms.step + 1)
        need = Need("agreed", value, updated, words)
        forms.require(need, forms.device_kinds(schedule.rest(state).sharded))


def _require_statistics(forms: Forms, store: Store) -> None:
    """Every device, or the first, has a single device's statistics, of the samples that move them.

    Working copies may be anything when the next step begins.
    """
    _, value = store[Buffer.STATISTICS, CONTENT]
    of_first = forms.training.statistics is Statistics.COPY
    first = tuple(forms.roots[axis] for axis in forms.axes) if of_first else ()
    need = Need("agreed", value, forms.moved_on(), "the statistics are")
    forms.require(need, [first] if of_first else forms.device_kinds())
    begins = forms.symbol("statistics", forms.step + 1)
    if of_first:
        begins = forms.with_at(forms.unknown(UNSETTLED), begins, first)
    store[Buffer.STATISTICS, CONTENT] = (False, begins)


def relative(store: Store, step: int, forms: Forms) -> Relative:
    """A store with steps counted back from `step`, to compare one step's end with the next's: T4."""

    def back(part: Any) -> Any:
        if isinstance(part, Symbol):
            age = step - part.step if part.known else 0  # what is not known is so at any time
            made_of, multipliers = map(back, (part.made_of, part.multipliers))
            return Symbol(part.kind, age, part.which, made_of, multipliers)
        return tuple(map(back, part)) if isinstance(part, tuple) else part

    return {
        place: (host, {(back(symbol), word): c for (symbol, word), c in forms.simplified(form).items()})
        for place, (host, form) in store.items()
    }


def differ(one: Relative, other: Relative, forms: Forms) -> Iterator[tuple[BufferPart, Offsets]]:
    """Where two steps left different things: in which place, and on which devices."""
    for place in one.keys() | other.keys():
        (host, value), (side, found) = (each.get(place, (None, {})) for each in (one, other))
        if host is side and value == found:
            continue
        difference = add(value, scale(found, -1))
        for position in forms.device_kinds():
            if host is not side or forms.at(difference, position):
                yield place, position
