"""The verdict: is a schedule right, for every model, optimizer, data and number of steps?

The schedule is executed on normal forms instead of values. Four things are required of it:

    fresh      forward and backward read the current parameters, all of them, on every device
    whole      what a device applies is every micro-step's gradient, summed over every axis, once
    current    the optimizer state it applies it to is the current one
    agreed     after the step, every resting copy is the updated one

It is accepted when all hold in every step. Theorems: T1 the transfer of every operation, T2 accepted
schedules match the single device, T3 a rejected one has a run that does not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product as combinations
from typing import Any

from spec.arithmetic import Number
from spec.forms import Forms, Rejected, Symbol, takers
from spec.schedule import STATE_OF, Buffer, Kind, Op, Schedule
from spec.semantics import CONTENT, MOMENT, RESTING, Store, execute, initial, updates_on_host
from spec.states import MIXED_ADAM, BytePolicy, State

SETTLED_WITHIN = 4  # steps after which an accepted schedule's state must have repeated


@dataclass(frozen=True)
class Verdict:
    """Accepted, or the operation that is wrong, what it has and what it needs."""

    accepted: bool
    rule: str = ""
    step: int = 0
    op: Op | None = None
    has: str = ""
    needs: str = ""
    index: int = -1  # of the operation, counted from the start of the step; -1 for its end

    @property
    def reason(self) -> str:
        """The rejection in words."""
        where = f"{self.op.kind.value} {self.op.source.value}" if self.op else "end of the step"
        return f"{where}: {self.has}; needs {self.needs}"


def check(
    schedule: Schedule,
    mesh: Mapping[str, Number],
    micro_steps: int = 1,
    policy: BytePolicy = MIXED_ADAM,
    same: Callable[[Number, Number], bool] = operator.eq,
) -> Verdict:
    """Accept a schedule, or say which operation is wrong and why.

    A symbolic mesh size stands for every size that is larger than the number of devices told apart
    (the owner, and those a shift or a broadcast names); `same` compares coefficients. Raises
    nothing: a schedule that reads what is not there is rejected.
    """
    for roots in _roots(schedule, mesh):
        forms = Forms(schedule, mesh, micro_steps, policy, same, roots)
        verdict = _check(schedule, forms)
        if not verdict.accepted:
            return verdict
    return Verdict(True)


def _check(schedule: Schedule, forms: Forms) -> Verdict:
    store = initial(schedule, forms, forms.symbol("weight", 0), forms.symbol("moment", 0))
    before = None
    for step in range(SETTLED_WITHIN):
        forms.step = step
        for index, (m, op) in enumerate(schedule.flat(forms.micro_steps)):
            forms.op_index, forms.op = index, op
            execute(op, schedule, forms, store, m)
        forms.op_index, forms.op = -1, None
        try:
            _require_agreed(forms, store, schedule)
            if schedule.training.statistics:
                _require_same_statistics(forms, store)
        except Rejected as no:
            return Verdict(False, no.rule, step, no.op, no.has, no.needs, no.index)
        kept = {
            place: store[place] for place in store if place[0] in that_matter(schedule, forms.policy)
        }
        after = _relative(kept, step + 1, forms.same)
        if after == before:
            return Verdict(True)
        before = after
    return Verdict(False, "agreed", step, None, "the state differs after every step", "a repeat")


@lru_cache(maxsize=4096)
def that_matter(schedule: Schedule, policy: BytePolicy) -> frozenset[Buffer]:
    """The buffers of which a later step may still read what a step leaves in them.

    Found backwards: what must be right at the end, and what an operation reads to write such a
    buffer, until nothing is added.
    """
    matter = frozenset({Buffer.PARAMETERS, Buffer.STATISTICS})
    matter |= {Buffer.OPTIMIZER} if policy.k > 0 else set()
    while True:
        before = matter
        for op in reversed(schedule.micro_step + schedule.finish):
            written = _written(op, schedule)
            if written & before:
                before = before - _overwritten(op, written, schedule) | _read(op, policy)
        if before <= matter:
            return matter
        matter |= before


def _written(op: Op, schedule: Schedule) -> frozenset[Buffer]:
    theta = schedule.rest(State.PARAMETERS)
    beside = theta.stored and theta.host is updates_on_host(op, schedule)
    others = {
        Kind.UPDATE: {Buffer.PARAMETERS} if beside else set(),
        Kind.BACKWARD: {Buffer.TIED} if schedule.training.tied else set(),
        Kind.FORWARD: {Buffer.STATISTICS} if schedule.training.statistics else set(),
    }
    return frozenset({op.target} | others.get(op.kind, set()))


def _overwritten(op: Op, written: frozenset[Buffer], schedule: Schedule) -> frozenset[Buffer]:
    """The buffers of which nothing is left that they had, but what the operation has read."""
    if op.kind in (Kind.RESET, Kind.RELEASE):
        return written

    def room(buffer: Buffer) -> tuple[str, ...]:  # a resting place has room for its slices only
        return schedule.rest(STATE_OF[buffer]).sharded if buffer in RESTING else ()

    return frozenset(b for b in written if op.shift == 0 and set(op.within) <= set(room(b)))


def _read(op: Op, policy: BytePolicy) -> frozenset[Buffer]:
    if op.kind in (Kind.RESET, Kind.RELEASE):
        return frozenset()
    others = {
        Kind.UPDATE: ({op.target} if policy.k > 0 else set())
        | (set() if policy.master else {Buffer.PARAMETERS}),
        Kind.BACKWARD: {op.target, Buffer.ACTIVATIONS},
        Kind.FORWARD: {Buffer.STATISTICS},
        Kind.RECOMPUTE: {Buffer.PARAMETERS},
        Kind.ACCUMULATE: {op.target},
    }
    by = {op.by} if isinstance(op.by, Buffer) else set()
    return frozenset({op.source} | others.get(op.kind, set()) | by)


def _roots(schedule: Schedule, mesh: Mapping[str, Number]) -> Iterator[dict[str, int]]:
    """Where the first device may be: at each place that operations speak of, and at another one."""
    ops = schedule.micro_step + schedule.finish
    axes = tuple(dict.fromkeys(a for op in ops if op.kind is Kind.BROADCAST for a in op.axes))
    choices = []
    for axis in axes:
        named = tuple(dict.fromkeys(takers(schedule, axis, mesh[axis])))
        other = next(i for i in range(len(named) + 1) if i not in named)
        enough = not isinstance(mesh[axis], int) or mesh[axis] > len(named)
        choices.append([*named, other] if enough else [*named])
    for places in combinations(*choices):
        yield dict(zip(axes, places, strict=True))


def _require_agreed(forms: Forms, store: Store, schedule: Schedule) -> None:
    """Every resting copy is the updated one, on every device that keeps it."""
    kept = [(State.PARAMETERS, Buffer.PARAMETERS, CONTENT, "weight")]
    if forms.master:
        kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, CONTENT, "weight"))
    if forms.policy.k > 0:
        kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, MOMENT, "moment"))
    if not any(schedule.rest(s).stored for s, _, _, kind in kept if kind == "weight"):
        needs = "one to continue from"
        raise Rejected("agreed", "no copy of the parameters is kept", needs, None, -1)
    for state, buffer, part, kind in kept:
        rest = schedule.rest(state)
        if not rest.stored:
            continue
        host, value = store.get((buffer, part), (rest.host, forms.nothing))
        value = value if host is rest.host else forms.nothing
        updated = forms.symbol(kind, forms.step + 1)
        if value == updated:
            continue
        for position in forms.positions(rest.sharded):
            words = f"what rests as {buffer.value} is"
            fault = forms.fault(position, [("agreed", value, updated, words)])
            if fault:
                raise forms.faults[fault]


def _require_same_statistics(forms: Forms, store: Store) -> None:
    """Every device has the same statistics; what they are is the next step's beginning."""
    _, value = store.get((Buffer.STATISTICS, CONTENT), (False, {}))
    for axis in forms.axes:
        needs = [("agreed", value, forms.owners(value, axis), "the statistics are")]
        for position in forms.positions():
            if forms.fault(position, needs):
                words = f"the statistics are {forms.describe(value)}"
                raise Rejected("agreed", words, f"the same on every device of {axis}", None, -1)
    store[Buffer.STATISTICS, CONTENT] = (False, {})


def _relative(store: Store, step: int, same: Callable[[Number, Number], bool]) -> Any:
    """A store with steps counted back from `step`, to compare one step's end with the next's."""

    def back(part: Any) -> Any:
        if isinstance(part, Symbol):
            age = 0 if part.kind == "fault" else step - part.step  # what is wrong stays wrong
            return Symbol(part.kind, age, part.which, back(part.inside), back(part.factors))
        return tuple(map(back, part)) if isinstance(part, tuple) else part

    return {
        place: (host, {back(term): str(c) for term, c in form.items() if not same(c, 0)})
        for place, (host, form) in store.items()
    }
