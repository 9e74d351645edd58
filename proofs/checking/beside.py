"""T4's lines beside the checker: the same schedules run both ways, on few devices.

After each operation T4's forms are those that the checker has, on every kind of device; at the end of
each step the checker is content if and only if T4's comparisons come out equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any

from proofs.checking.axis_tables import Form
from proofs.checking.line_run import Firsts, LineRun, merged
from proofs.checking.lines import OPERATORS
from proofs.checking.operation_lines import NotCovered
from proofs.checking.whole_runs import At, PlacesOfARun, stepped
from proofs.trusted.terms import KernelError
from spec.checking.forms import LACKING, Forms, OtherElements, Rejected
from spec.checking.symbols import Offsets, Symbol
from spec.checking.verdict import SETTLED_WITHIN, Verdict, check, require_agreed
from spec.devices.operators import NormalForm
from spec.language.schedule import Schedule
from spec.meaning.semantics import Store, initial
from spec.models.states import BytePolicy

BEGUN: At = (-1, 0)
LOOKS = 20  # at elements of all owners, more than any schedule needs
Sizes = Mapping[str, int]
Sight = Mapping[Offsets, tuple[Mapping[Any, Any], bool]]


class Observed(Forms):
    """The checker, whose faults are remembered, by the operation that made them."""

    def __init__(self, *args: Any, **others: Any) -> None:
        super().__init__(*args, **others)
        self.faults: dict[tuple[Any, ...], Symbol] = {}

    def _fault(self, reason: Rejected, what: str, identity: Any, made_of: Any) -> NormalForm:
        form = super()._fault(reason, what, identity, made_of)
        ((symbol, _),) = form
        self.faults[self.step, self.op_index, what] = symbol
        return form


@dataclass
class Checked:
    """The checker's run where the first device is in one place: stores, and whether it was content."""

    forms: Observed
    stores: dict[At, Store]
    content: list[bool]


def checked(
    schedule: Schedule,
    mesh: Sizes,
    micro_steps: int,
    policy: BytePolicy,
    firsts: Iterable[Firsts],
    steps: int,
) -> dict[Firsts, Checked]:
    """By where the first device is, the checker's run of some steps. Raises Rejected; KernelError where
    each look at elements of all owners finds something new.
    """
    others, every = OtherElements(), dict[Firsts, Checked]()
    for _ in range(LOOKS):
        others.news = False
        for first in firsts:
            roots = dict(zip(schedule.axes, first, strict=True))
            forms = Observed(schedule, mesh, micro_steps, policy, None, roots, True, others=others)
            store = initial(schedule, forms, forms.symbol("weight", 0), forms.symbol("moment", 0))
            every[first] = run = Checked(forms, {BEGUN: dict(store)}, [])
            for step in range(steps):
                for at in stepped(schedule, forms, store, micro_steps, step):
                    run.stores[at] = dict(store)
                try:
                    require_agreed(forms, store, schedule)
                    run.content.append(True)
                except Rejected:
                    run.content.append(False)
        if not others.news or len(every) == 1:
            return every
    raise KernelError("each look at elements of all owners finds something new")


class Beside:
    """A schedule's run by lines, and the checker's beside it. Raises NotCovered, Rejected."""

    def __init__(
        self, schedule: Schedule, mesh: Sizes, micro_steps: int, policy: BytePolicy, steps: int
    ) -> None:
        self.places = PlacesOfARun(schedule, mesh, micro_steps, policy)
        self.store = self.places.initial()
        along = {axis: mesh[axis] for axis in schedule.axes}
        places, training = self.places, schedule.training
        about = places.contributions, places.starts, training, places.moments
        self.run = LineRun(along, micro_steps, *about)
        self.every = checked(schedule, mesh, micro_steps, policy, self.run.firsts, steps)
        for each in self.every.values():
            faults = each.forms.faults.values()
            if len({*faults}) < len(faults):
                raise NotCovered("wrong values that the checker takes for one")
        self.done, self.wrong = 0, dict[int, At]()
        self.compared: dict[Any, tuple[Any, Any]] = {}  # by first device and slot
        ends = zip(*(each.content for each in self.every.values()), strict=True)
        self.content = [all(end) for end in ends]
        self.equal = [*self._steps(schedule, micro_steps, steps)]

    def _steps(self, schedule: Schedule, micro_steps: int, steps: int) -> Iterator[bool]:
        """Whether T4's comparisons come out equal at the end of each step."""
        places, run = self.places, self.run
        self._go_on(BEGUN)
        for step in range(steps):
            for at in stepped(schedule, places, self.store, micro_steps, step):
                self._go_on(at)
            places.end_step(self.store)
            self._run_lines((step, -1))
            yield places.keeps_weights and run.kept(places.kept_as, places.kept_axes, step)

    def _run_lines(self, at: At) -> None:
        """The lines that an operation has written since the last."""
        lines = self.places.lines
        for number, line in enumerate(lines[self.done :], self.done):
            self.run.run(number, line)
            if not self.run.right(number):
                self.wrong[number] = at
        self.done = len(lines)

    def _go_on(self, at: At) -> None:
        """Run the lines of an operation, and compare what is new in both. Raises KernelError."""
        self._run_lines(at)
        places = self.places
        for first, each in self.every.items():
            there = each.stores[at]
            if {p: host for p, (host, _) in there.items()} != {
                p: host for p, (host, _) in self.store.items()
            }:
                raise KernelError(f"after operation {at} the checker has other buffers than lines")
            for slot, (_, form) in there.items():
                place = self.store[slot][1]
                if place in places.norms or place in places.applied:
                    continue  # no line makes these
                both = form, self.run.form(place, first)
                before = self.compared.get((first, slot), (None, None))
                if all(map(is_, both, before)):
                    continue
                self.compared[first, slot] = both
                mine = as_checked(both[1], each.forms, self.run.axes, self.wrong)
                if mine != form and seen(form, each.forms) != seen(mine, each.forms):
                    what = f"the {slot[0].value} of the checker are not those of lines"
                    raise KernelError(f"after operation {at} {what}")


def as_checked(
    form: Form, forms: Observed, axes: tuple[str, ...], wrong: Mapping[int, At]
) -> NormalForm:
    """T4's form with the checker's names for what lines got wrong. Raises KernelError."""
    found: dict[Any, Any] = {}
    for (symbol, axis_word), amount in form.items():
        word = tuple(
            OPERATORS[o] for o, a in zip(axis_word, axes, strict=True) if a in forms.axes
        )  # along an axis of one device every operator is the identity
        if symbol.kind == "wrong":
            fault = (*wrong[symbol.which], symbol.made_of)
            if fault not in forms.faults:
                raise KernelError(f"the checker makes nothing wrong in operation {fault}")
            symbol = forms.faults[fault]
        elif symbol.kind == "gradient" and symbol.which >= forms.micro_steps:
            symbol = Symbol("tied", symbol.step, symbol.which - forms.micro_steps)
        found[symbol, word] = found.get((symbol, word), 0) + amount
    return found


def seen(form: NormalForm, forms: Forms) -> Sight:
    """What a form comes to on each kind of device; of all that is not known, whether there is any."""
    form = merged({term: amount for term, amount in form.items() if term[0].kind != LACKING})
    at = {p: forms.at(form, p) for p in forms.device_kinds()}
    return {
        p: (
            {term: amount for term, amount in found.items() if term[0].known},
            any(not symbol.known for symbol, _ in found),
        )
        for p, found in at.items()
    }


def judged(
    schedule: Schedule,
    mesh: Sizes,
    micro_steps: int,
    policy: BytePolicy,
    steps: int = 6,
    after: bool = True,
) -> Verdict:
    """The verdict, which is what T4's comparisons of a schedule's lines say.

    `after`: steps are run also after the one in which it is rejected. Raises KernelError where lines
    say something else, or forms are others; NotCovered.
    """
    verdict = check(schedule, mesh, micro_steps, policy)
    if not verdict.accepted and not after:
        steps = min(steps, verdict.step + 1)
    try:
        run = Beside(schedule, mesh, micro_steps, policy, steps)
    except Rejected as no:  # before anything is compared
        if verdict.rule != "room":
            raise KernelError("what is refused before it is compared is not refused") from no
        return verdict
    if run.content != run.equal:
        raise KernelError("at the end of a step the checker is content where lines are not, or not so")
    early = not verdict.accepted and verdict.step < SETTLED_WITHIN  # what is given up may be anything
    if verdict.accepted and not all(run.equal):
        raise KernelError("what is accepted compares unequal")
    if early and [*run.equal, False].index(False) != verdict.step:
        raise KernelError("what is rejected compares equal in the step in which it is rejected")
    return verdict
