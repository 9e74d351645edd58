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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from typing import Any

from spec.arithmetic import Number
from spec.operators import (
    KEEP,
    OWNER,
    READS,
    SLICE,
    SUM,
    NormalForm,
    Operator,
    Source,
    Word,
    add,
    apply,
    exists,
    scale,
)
from spec.schedule import Buffer, Op, Schedule
from spec.semantics import CONTENT, MOMENT, Axes, Store, execute, initial
from spec.states import MIXED_ADAM, BytePolicy, State

SETTLED_WITHIN = 4  # steps after which an accepted schedule's state must have repeated

Position = tuple[bool, ...]  # for each axis: is this device the element's owner?
Symbol = tuple[str, int, int]  # (weight | moment | gradient | fault, step, micro-step or operation)
Need = tuple[str, NormalForm, NormalForm, str]  # (rule, what there is, what is needed, in words)


class Rejected(Exception):
    """A requirement that a schedule does not meet."""

    def __init__(self, rule: str, has: str, needs: str, op: Op | None) -> None:
        super().__init__(f"{has}; needs {needs}")
        self.rule, self.has, self.needs, self.op = rule, has, needs, op


@dataclass(frozen=True)
class Verdict:
    """Accepted, or the operation that is wrong, what it has and what it needs."""

    accepted: bool
    rule: str = ""
    step: int = 0
    op: Op | None = None
    has: str = ""
    needs: str = ""

    @property
    def reason(self) -> str:
        """The rejection in words."""
        where = f"{self.op.kind.value} {self.op.source.value}" if self.op else "end of the step"
        return f"{where}: {self.has}; needs {self.needs}"


class Forms:
    """The domain of normal forms."""

    def __init__(
        self,
        mesh: Mapping[str, Number],
        axes: Axes,
        micro_steps: int,
        policy: BytePolicy,
        same: Callable[[Number, Number], bool],
    ) -> None:
        self.nothing: NormalForm = {}
        # along an axis of one device every operator is the identity
        self.axes = tuple(a for a in axes if not _is_one(mesh[a]))
        self.sizes = tuple(mesh[a] for a in self.axes)
        self.micro_steps, self.policy, self.same = micro_steps, policy, same
        self.master = policy.master
        self.step, self.op_index = 0, 0
        self.op: Op | None = None
        self.faults: dict[Symbol, Rejected] = {}

    def symbol(self, kind: str, step: int, micro_step: int = 0) -> NormalForm:
        """A value in its original form."""
        return {((kind, step, micro_step), (KEEP,) * len(self.axes)): 1}

    def _apply(self, operator_: Operator, axis: str, form: NormalForm) -> NormalForm:
        if axis not in self.axes:
            return form
        i = self.axes.index(axis)
        return apply(operator_, i, form, self.sizes[i])

    # ------------------------------------------------------------ operations
    def sum(self, value: NormalForm, axis: str) -> NormalForm:
        return self._apply(SUM, axis, value)

    def owners(self, value: NormalForm, axis: str) -> NormalForm:
        return self._apply(OWNER, axis, value)

    def replace(self, old: NormalForm, new: NormalForm, axes: Axes) -> NormalForm:
        change: NormalForm = add(new, scale(old, -1))
        for axis in axes:
            change = self._apply(SLICE, axis, change)
        return add(old, change)

    def add(self, value: NormalForm, other: NormalForm) -> NormalForm:
        return add(value, other)

    def forward(self, view: NormalForm) -> NormalForm:
        return view

    def gradient(self, view: NormalForm, activations: NormalForm, micro_step: int) -> NormalForm:
        current = self.symbol("weight", self.step)
        needs = (
            ("fresh", view, current, "the parameters it reads are"),
            ("fresh", activations, current, "the parameters its activations come from are"),
        )
        return self._where_met(needs, self.symbol("gradient", self.step, micro_step))[0]

    def update(
        self, weight: NormalForm, moment: NormalForm, gradient: NormalForm, axes: Axes
    ) -> tuple[NormalForm, NormalForm]:
        word: Word = (SUM,) * len(self.axes)
        whole = {(("gradient", self.step, m), word): 1 for m in range(self.micro_steps)}
        state = (("current", moment, self.symbol("moment", self.step), "the optimizer state is"),)
        needs = (
            ("current", weight, self.symbol("weight", self.step), "the weights it updates are"),
            *(state if self.policy.k > 0 else ()),
            ("whole", gradient, whole, "the gradient it applies is"),
        )
        after = (self.symbol(kind, self.step + 1) for kind in ("weight", "moment"))
        weight, moment = self._where_met(needs, *after, owned=axes)
        return weight, moment

    def _where_met(
        self, needs: Sequence[Need], *results: NormalForm, owned: Axes = ()
    ) -> list[NormalForm]:
        """The results on devices where the needs are met; elsewhere a fault, which says why not.

        A fault is a value like any other: it does no harm where nothing is made of it.
        """
        faults = [(p, self._fault(p, needs)) for p in self.positions(owned)]
        if not any(fault for _, fault in faults):
            return list(results)
        found = []
        for result in results:
            form: NormalForm = {}
            for position, fault in faults:
                here: NormalForm = {(fault, (KEEP,) * len(self.axes)): 1} if fault else result
                form = add(form, self._only_at(here, position))
            found.append(form)
        return found

    def _only_at(self, form: NormalForm, position: Position) -> NormalForm:
        """The value on devices of one kind, nothing elsewhere."""
        for axis, owner in zip(self.axes, position, strict=True):
            on_owner = self._apply(SLICE, axis, form)
            form = on_owner if owner else add(form, scale(on_owner, -1))
        return form

    def _fault(self, position: Position, needs: Sequence[Need]) -> Symbol | None:
        """The first need that is not met on such a device, as a symbol."""
        for rule, has, expected, words in needs:
            difference = self.at(add(has, scale(expected, -1)), position)
            if difference:
                inherited = next((s for s, _ in difference if s[0] == "fault"), None)
                symbol = inherited or ("fault", self.step, self.op_index)
                if inherited is None:
                    on = self.describe_position(position)
                    self.faults.setdefault(
                        symbol,
                        Rejected(
                            rule,
                            f"{words} {self.describe(has)}{on}",
                            self.describe(expected),
                            self.op,
                        ),
                    )
                return symbol
        return None

    # ---------------------------------------------------------- requirements
    def positions(self, owned: Axes = ()) -> Iterator[Position]:
        """The kinds of device there are; along the axes in `owned`, owners only."""
        choices = [(True,) if a in owned else (True, False) for a in self.axes]
        return combinations(*choices)

    def at(self, form: NormalForm, position: Position) -> dict[Any, Number]:
        """What a value comes to on a device: its coefficient on each original value it sees."""
        seen: dict[Any, Number] = {}
        for (symbol, word), coefficient in form.items():
            per_axis = [
                [s for s in READS[owner][op] if exists(owner, s, n)]
                for owner, op, n in zip(position, word, self.sizes, strict=True)
            ]
            for sources in combinations(*per_axis):
                key: Any = (symbol, sources)
                factor: Number = 1
                if symbol[0] in ("weight", "moment"):  # the same on every device
                    key, factor = (symbol, ()), self._devices(position, sources)
                seen[key] = seen.get(key, 0) + factor * coefficient
        return {key: c for key, c in seen.items() if not self.same(c, 0)}

    def _devices(self, position: Position, sources: tuple[Source, ...]) -> Number:
        count: Number = 1
        for owner, source, n in zip(position, sources, self.sizes, strict=True):
            if source is Source.REST:
                count = count * (n - (1 if owner else 2))
        return count

    def require_agreed(self, store: Store, schedule: Schedule) -> None:
        """Every resting copy is the updated one, on every device that keeps it."""
        kept = [(State.PARAMETERS, Buffer.PARAMETERS, CONTENT, "weight")]
        if self.master:
            kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, CONTENT, "weight"))
        if self.policy.k > 0:
            kept.append((State.OPTIMIZER, Buffer.OPTIMIZER, MOMENT, "moment"))
        if not any(schedule.rest(s).stored for s, _, _, kind in kept if kind == "weight"):
            raise Rejected("agreed", "no copy of the parameters is kept", "one to continue from", None)
        for state, buffer, part, kind in kept:
            rest = schedule.rest(state)
            if not rest.stored:
                continue
            host, value = store.get((buffer, part), (rest.host, self.nothing))
            value = value if host is rest.host else self.nothing
            for position in self.positions(rest.sharded):
                words = f"what rests as {buffer.value} is"
                updated = self.symbol(kind, self.step + 1)
                fault = self._fault(position, [("agreed", value, updated, words)])
                if fault:
                    raise self.faults[fault]

    # --------------------------------------------------------------- in words
    def describe_position(self, position: Position) -> str:
        """Which devices."""
        if all(position) or not position:
            return ""
        axes = " and ".join(a for a, own in zip(self.axes, position, strict=True) if not own)
        return f" on devices that do not own the element along {axes}"

    def describe(self, form: NormalForm) -> str:
        """A normal form in words."""
        terms = [self._term(term, c) for term, c in form.items() if not self.same(c, 0)]
        if len(terms) > 4:
            terms = [*terms[:3], f"{len(terms) - 3} more terms"]
        return " + ".join(terms) or "nothing"

    def _term(self, term: tuple[Symbol, Word], coefficient: Number) -> str:
        (kind, step, micro_step), word = term
        age = self.step - step
        when = {0: "current", -1: "updated"}.get(age, f"stale (by {age} steps)")
        if kind == "gradient":
            old = "" if age == 0 else f" of {age} steps ago"
            name = f"micro-step {micro_step}'s gradient{old}"
            if all(op is KEEP for op in word):
                name = f"the device's own {name}"
        elif kind == "fault":
            name = "what an earlier operation got wrong"
        else:
            name = f"the {when} {kind}"
        verbs = {
            "S": "summed over {}",
            "E": "taken from the owner along {}",
            "F": "only on the owner along {}",
            "FS": "summed over {0}, only on its owner",
        }
        for axis, op in zip(self.axes, word, strict=True):
            if op is not KEEP:
                name += " " + verbs[op.value].format(axis)
        return name if self.same(coefficient, 1) else f"{coefficient} x {name}"


def _is_one(size: Number) -> bool:
    return isinstance(size, int) and size == 1


def check(
    schedule: Schedule,
    mesh: Mapping[str, Number],
    micro_steps: int = 1,
    policy: BytePolicy = MIXED_ADAM,
    same: Callable[[Number, Number], bool] = operator.eq,
) -> Verdict:
    """Accept a schedule, or say which operation is wrong and why.

    A symbolic mesh size stands for every size from 3 on; `same` compares coefficients. Raises
    nothing: a schedule that reads what is not there is rejected.
    """
    forms = Forms(mesh, schedule.axes, micro_steps, policy, same)
    store = initial(schedule, forms, forms.symbol("weight", 0), forms.symbol("moment", 0))
    before = None
    for step in range(SETTLED_WITHIN):
        forms.step = step
        for forms.op_index, (m, forms.op) in enumerate(schedule.flat(micro_steps)):
            execute(forms.op, schedule, forms, store, m)
        forms.op_index, forms.op = -1, None
        try:
            forms.require_agreed(store, schedule)
        except Rejected as no:
            return Verdict(False, no.rule, step, no.op, no.has, no.needs)
        after = _relative(store, step + 1, same)
        if after == before:
            return Verdict(True)
        before = after
    return Verdict(False, "agreed", step, None, "the state differs after every step", "a repeat")


def _relative(store: Store, step: int, same: Callable[[Number, Number], bool]) -> Any:
    """A store with steps counted back from `step`, to compare one step's end with the next's."""
    return {
        place: (
            host,
            {
                ((kind, step - t, m), word): str(c)
                for ((kind, t, m), word), c in form.items()
                if not same(c, 0)
            },
        )
        for place, (host, form) in store.items()
    }
