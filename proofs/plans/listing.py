"""A schedule as a list of lines that repeats, and what the checker finds of places before each line.

Lines of a micro-step, then those after the last one; places are the same in every micro-step and step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Set
from dataclasses import dataclass, replace
from itertools import compress, product
from typing import Any

from proofs.checking.lines import BACKWARD, FACTOR, MOVES, UPDATE
from proofs.checking.operation_lines import COUNT, NORM, NOWHERE, LineAt, NotCovered, Places
from proofs.plans.reads_and_writes import Live, numbered_anew, shortened, written
from proofs.trusted.kernel import KernelError
from spec.checking.algebra import split
from spec.checking.forms import Forms, Need
from spec.checking.symbols import EACH, EVERY, Offsets, Symbol
from spec.devices.mesh import Axes
from spec.devices.operators import NormalForm, Word, add, scale
from spec.language.schedule import MICRO_STEPS, RESTING, STATE_OF, Buffer, Op, Schedule
from spec.meaning.semantics import CONTENT, MOMENT, OWN_SLICE_ONLY, BufferPart, execute, initial
from spec.models.states import MIXED_ADAM, BytePolicy, State
from spec.models.training import Loss
from spec.numbers.any_size import any_size
from spec.numbers.arithmetic import Number

WHOLE_NORM = "whole norm"
EARLIER = "earlier"  # of micro-steps: those before this one
RESTS = {
    (Buffer.PARAMETERS, CONTENT): "weight",
    (Buffer.OPTIMIZER, CONTENT): "weight",
    (Buffer.OPTIMIZER, MOMENT): "moment",
    (Buffer.GRADIENTS, CONTENT): "zero",
}
# places in which something rests, or is left, have these numbers; others what is free from there on
PLACES = tuple(product(Buffer, (CONTENT, MOMENT)))
# whether the optimizer's state has weights, and moments
_STATE_HAS: dict[str, Callable[[BytePolicy], bool]] = {
    CONTENT: lambda policy: policy.master,
    MOMENT: lambda policy: policy.k > 0,
}
Held = Mapping[int, NormalForm]  # place -> what is there


@dataclass(frozen=True)
class Finding:
    """What the checker finds in a place, on devices that are owners along some axes, or that are not.

    `where` are their positions. Of other devices nothing is said: something is not known, or wrong.
    """

    where: tuple[Offsets, ...]
    terms: tuple[tuple[tuple[Symbol, Word], Number], ...] = ()

    @property
    def owned(self) -> tuple[int, ...]:
        """The axes along which all of them are owners, as numbers."""
        axes = range(len(self.where[0]))
        return tuple(x for x in axes if all(position[x] == 0 for position in self.where))

    @property
    def others(self) -> tuple[Offsets, ...]:
        """Their positions, if they are not all devices that own an element along these axes."""
        axes = range(len(self.where[0]))
        free = [x for x in axes if x not in self.owned]
        return self.where if len(self.where) < 2 ** len(free) else ()

    def is_along(self, axis: int) -> bool:
        """Whether it depends on where a device is along an axis."""
        there = {(*p[:axis], *p[axis + 1 :]) for p in self.where}
        return 2 * len(there) != len(self.where)


@dataclass(frozen=True)
class Listing:
    """A schedule's lines: `body` of them in each micro-step, the others after the last one.

    Places that rest are the first: `starts` says what they hold, by `lines.STARTS`, `slices` along
    which axes they are cut. `before`: what the checker finds in places before each line, of those that
    a later line reads, or that rest. The axes of an update are those along which it is of slices, of a
    norm those of whose slices it is. `clips`: whether updates read a norm; `counts`: a count;
    `moments`: whether they may read a moment. `tied`: whether a micro-step contributes twice; the
    backward of the second use is that of as many more.
    """

    axes: Axes
    lines: tuple[LineAt, ...]
    body: int
    starts: Mapping[int, str]
    slices: Mapping[int, Axes]
    before: tuple[Mapping[int, Finding], ...]
    clips: bool = False
    counts: bool = False
    tied: bool = False
    moments: bool = True

    @property
    def sliced(self) -> set[int]:
        """The axes along which a place, or an update, is of slices, as numbers."""
        cut = (*self.slices.values(), *(line.axes for line in self.lines if line.kind != NORM))
        return {self.axes.index(axis) for axes in cut for axis in axes}


class _Places(Places):
    """Where each device has all samples of an axis, its gradient is a sum over devices, each of which
    has its own: views are alike wherever T2 concludes anything. So are activations, whoever has them.
    """

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.gathered: dict[int, Axes] = {}  # by place of activations, beside those that forward leaves

    def of_group(self, activations: int, axes: Axes) -> int:
        gathered = self._copy(activations)
        self.gathered[gathered] = (*self.gathered.get(activations, ()), *axes)
        return gathered

    def gradient(
        self, view: int, activations: int, micro_step: int, axes: Axes, tied: bool = False
    ) -> int:
        alone = self.schedule.rest(State.ACTIVATIONS).sharded
        if any(a in alone and a not in self.gathered.get(activations, ()) for a in axes):
            raise NotCovered("backwards of samples whose activations a device does not have")
        found = super().gradient(view, activations, micro_step, (), tied)
        for axis in axes:
            found = self.sum(found, axis)
        return found


@dataclass(frozen=True)
class Lines:
    """Lines, and what rests, before they are checked: as of a `Listing`."""

    lines: tuple[LineAt, ...]
    body: int
    starts: Mapping[int, str]
    slices: Mapping[int, Axes]

    @property
    def identity(self) -> Hashable:
        """By which they are told apart."""
        return self.lines, self.body, tuple(self.starts.items()), tuple(self.slices.items())


def listing(schedule: Schedule, policy: BytePolicy = MIXED_ADAM) -> Listing:
    """The lines of a schedule, of an optimizer whose state has what a policy says, checked.

    Raises KernelError for one that does not repeat, or goes wrong; NotCovered.
    """
    written_out = lines_of(schedule, policy)
    body, starts, slices = written_out.body, written_out.starts, written_out.slices
    resting = {p: (starts[p], slices[p]) for p in starts}
    found = _Checked(schedule, written_out.lines, body, resting, policy)
    about = schedule.axes, found.lines, body, starts, slices, found.before
    training = schedule.training
    counts = training.loss is Loss.TOKEN_MEAN
    return Listing(*about, training.clip, counts, training.tied, policy.k > 0)


def lines_of(schedule: Schedule, policy: BytePolicy) -> Lines:
    """The lines of a schedule, and what rests. Raises KernelError for one that updates nothing."""
    slots, starts, slices = _resting(schedule, policy)
    slots = _left(schedule, slots, policy)
    places, stays = _places(schedule, policy), {*map(PLACES.index, slots)}
    places.places = len(PLACES)
    store = {slot: (host, PLACES.index(slot)) for slot, host in slots.items()}
    body, finish = (
        shortened(_once(ops, schedule, places, store, slots), stays)
        for ops in (schedule.micro_step, schedule.finish)
    )
    kept = {p for p, start in starts.items() if "Zero" not in start}
    needed = Live((*body, *finish), len(body), kept, stays).needed
    body, finish = [*compress(body, needed)], [*compress(finish, needed[len(body) :])]
    if not (finish if schedule.finish else body):
        raise KernelError("no line at the end of a step makes what is kept")
    lines = numbered_anew(Live((*body, *finish), len(body), kept, stays), len(PLACES))
    return Lines(lines, len(body), starts, slices)


def _places(schedule: Schedule, policy: BytePolicy) -> _Places:
    """Its places, for any sizes."""
    micro_steps: Any = any_size(MICRO_STEPS) if schedule.finish else 1
    return _Places(schedule, {a: any_size(a) for a in schedule.axes}, micro_steps, policy)


def _resting(
    schedule: Schedule, policy: BytePolicy
) -> tuple[dict[BufferPart, bool], dict[int, str], dict[int, Axes]]:
    """Where the store has something before the first step, and on which side; what, cut along what."""
    slots, starts, slices = {}, {}, {}
    begun = initial(schedule, _places(schedule, policy), 0, 0)
    nothing = {(Buffer.OPTIMIZER, part) for part, there in _STATE_HAS.items() if not there(policy)}
    for slot, (host, _) in begun.items():
        place = PLACES.index(slot)
        if slot not in RESTS and slot[0] not in schedule.sums:
            raise NotCovered(f"{slot[0].value} that is there before the first step")
        axes = schedule.rest(STATE_OF[slot[0]]).sharded if slot[0] in RESTING else ()
        slots[slot] = host
        if slot in nothing:
            continue
        slices[place] = axes
        starts[place] = f"{RESTS.get(slot, 'zero').capitalize()}{'_slices' if axes else 's'}"
    return slots, starts, slices


def _left(
    schedule: Schedule, slots: Mapping[BufferPart, bool], policy: BytePolicy
) -> dict[BufferPart, bool]:
    """Beside these, what micro-steps, or a step, leave: nothing is known of it at first."""
    places, left = _places(schedule, policy), {**slots}
    store = {slot: (host, 0) for slot, host in slots.items()}
    for ops in (schedule.micro_step, schedule.finish):
        for op in ops:
            execute(op, schedule, places, store, 0)
        for slot, (host, _) in store.items():
            if left.setdefault(slot, host) is not host:
                raise NotCovered(f"{slot[0].value} that change sides of the host link")
    return left


def _once(
    ops: tuple[Op, ...],
    schedule: Schedule,
    places: Places,
    store: dict[BufferPart, tuple[bool, int]],
    slots: Mapping[BufferPart, bool],
) -> list[LineAt]:
    """The lines of some operations, and copies of what they leave to where it was before."""
    places.lines = []
    for op in ops:
        places.said = " ".join(str(op).split())
        execute(op, schedule, places, store, 0)
    for slot in slots:
        place = PLACES.index(slot)
        host, found = store.get(slot, (slots[slot], place))
        if place != found < len(PLACES):  # what is there now may be written before it is read
            store[slot] = host, places._copy(found)
    for slot in slots:
        place = PLACES.index(slot)
        if slot not in store:
            places._write("release", target=place)
        host, found = store.setdefault(slot, (slots[slot], place))
        if found in places.norms or found in places.applied:  # no line makes these
            places._write("release", target=place)
            store[slot] = host, place
        elif found != place:
            places._write("copy", found, place)
            store[slot] = host, place
    return places.lines


# ----------------------------------------------------------------- the checker's run
class _Checked:
    """The checker's run of lines, in a micro-step of any index and after the last one."""

    def __init__(
        self,
        schedule: Schedule,
        lines: tuple[LineAt, ...],
        body: int,
        resting: Mapping[int, tuple[str, Axes]],
        policy: BytePolicy,
    ) -> None:
        repeats = body < len(lines)
        self.mesh = {a: any_size(a) for a in schedule.axes}
        micro_steps = any_size(MICRO_STEPS) if repeats else 1
        self.axes = schedule.axes
        # an update reads the sum over all samples: a mean is scaled before; it divides, clips by itself
        training = replace(schedule.training, loss=Loss.SUM, clip=False)
        summed = replace(schedule, training=training)
        self.forms = Forms(summed, self.mesh, micro_steps, policy, None, {}, not repeats)
        self.forms.micro_step = EACH if repeats else 0
        begun = {p: self._begun(*each) for p, each in resting.items()}
        sums = [p for p, (start, _) in resting.items() if "Zero" in start]
        found = self._step(lines, body, begun, sums)
        unknown = self.forms.unknown("it is not zero again at the end of a step")
        lost = {p: unknown for p in sums if self._finding(found[-1][p]) != self._finding(begun[p])}
        if lost:
            found = self._step(lines, body, begun | lost, [p for p in sums if p not in lost])
        kept = {p for p, (start, _) in resting.items() if "Zero" not in start}
        live = Live(lines, body, kept, {*resting}).before
        self.before = tuple(self._findings(found[r], live[r]) for r in range(len(lines)))
        self.lines = tuple(
            replace(line, axes=self._updated(found[r + 1][line.target]))
            if line.kind == UPDATE.name
            else line
            for r, line in enumerate(lines)
        )

    def _step(
        self, lines: tuple[LineAt, ...], body: int, begun: Held, sums: list[int]
    ) -> list[dict[int, NormalForm]]:
        """What the checker finds before each line of a step, and after the last; `sums` of all
        micro-steps are in some places.
        """
        if body == len(lines):
            return self._run(lines, begun)
        added = self._run(lines[:body], begun)[-1]
        earlier = {**begun} | {p: _of(EARLIER, added[p]) for p in sums}
        found = self._run(lines[:body], earlier)
        every = found[-1] | {p: _of(EVERY, added[p]) for p in sums}
        return [*found[:-1], *self._run(lines[body:], every)]

    def _begun(self, start: str, axes: Axes) -> NormalForm:
        """What a resting place holds before a step."""
        forms = self.forms
        kind = start.split("_")[0].removesuffix("s").lower()
        whole = forms.zero if kind == "zero" else forms.symbol(kind, 0)
        return forms.replace(forms.unknown(OWN_SLICE_ONLY), whole, axes) if axes else whole

    def _run(self, lines: tuple[LineAt, ...], begun: Held) -> list[dict[int, NormalForm]]:
        """What the checker finds before each of some lines, and after the last."""
        found = [{**begun}]
        for line in lines:
            after = {**found[-1]}
            after |= zip(written(line), self._made(line, after), strict=True)
            found.append(after)
        return found

    def _made(self, line: LineAt, found: Held) -> tuple[NormalForm, ...]:
        """What the checker makes of what is in the places that a line reads."""
        forms = self.forms

        def at(place: int) -> NormalForm:
            return found.get(place, forms.unknown("it is never written"))

        if line.kind == BACKWARD.name:
            again = line.micro_step != 0
            made = forms.gradient(at(line.source), at(line.second), forms.micro_step, (), again)
            return made, forms.unknown("it is dropped")
        if line.kind == NORM:
            return (self._norm(line, at(line.source)),)
        if line.kind == COUNT:
            return (forms.tokens(forms.micro_step),)
        if line.kind == UPDATE.name:
            if line.fourth != NOWHERE and forms.simplified(at(line.fourth)) != self._whole_norm:
                raise NotCovered("updates that read another norm than that of the whole gradient")
            if line.fifth != NOWHERE and forms.simplified(at(line.fifth)) != forms.whole_count():
                raise NotCovered("updates that read another count than that of all samples")
            return forms.update(at(line.source), at(line.second), at(line.third))
        if line.kind == "broadcast":
            self._require_alike(at(line.source), line.axis)
            return (at(line.source),)
        move = next(move for move in MOVES if move.name == line.kind)
        forms.mesh = {**self.mesh, FACTOR: line.factor}
        return (move.of(forms, at(line.source), at(line.target), axis=line.axis),)

    @property
    def _whole_norm(self) -> NormalForm:
        """The norm of the step's gradient, a value that all devices have alike."""
        return self.forms.symbol(WHOLE_NORM, 0)

    def _norm(self, line: LineAt, slices: NormalForm) -> NormalForm:
        """The norm of slices, if they make up the whole gradient; else it is not known."""
        forms = self.forms
        unmet = forms.unmet(Need("whole", slices, forms.unclipped(), ""))
        own = [x for x, axis in enumerate(self.axes) if axis in line.axes]
        owners = [p for p in forms.device_kinds() if all(p[x] == 0 for x in own)]
        missing = any(forms.at(difference, p) for _, difference in unmet for p in owners)
        return forms.unknown("it is the norm of something else") if missing else self._whole_norm

    def _require_alike(self, form: NormalForm, axis: str) -> None:
        """Refuse a broadcast of values that devices along an axis do not have alike."""
        forms = self.forms
        differs = add(forms.owners(form, axis), scale(form, -1))
        if any(forms.at(differs, position) for position in forms.device_kinds()):
            raise NotCovered(f"broadcasts of values that devices along {axis} do not have alike")

    def _findings(self, found: Held, live: Set[int]) -> dict[int, Finding]:
        """What is found in places that are live, and known and right on any device."""
        here = {p: self._finding(found[p]) for p in sorted(live) if p in found}
        return {p: finding for p, finding in here.items() if finding.where}

    def _finding(self, form: NormalForm) -> Finding:
        return Finding(self._where(form), self._right(form))

    def _right(self, form: NormalForm) -> tuple[tuple[tuple[Symbol, Word], Number], ...]:
        """The terms of a form that are known and right."""
        terms = self.forms.simplified(form).items()
        right = [each for each in terms if each[0][0].known and each[0][0].kind != "fault"]
        return tuple(sorted(right, key=repr))

    def _where(self, form: NormalForm) -> tuple[Offsets, ...]:
        """The positions of devices on which all is known and right."""
        return tuple(
            position
            for position in self.forms.device_kinds()
            if all(
                symbol.known and symbol.kind != "fault" for symbol, _ in self.forms.at(form, position)
            )
        )

    def _updated(self, form: NormalForm) -> Axes:
        """The axes along which devices own what an update leaves right. Raises KernelError."""
        where = self._where(form)
        if not where or Finding(where).others:
            raise NotCovered("updates that are right on other devices than the owners along some axes")
        return tuple(self.axes[x] for x in Finding(where).owned)


def _of(which: str, form: NormalForm) -> NormalForm:
    """What micro-steps add up to, of what one of any index adds."""
    known, unknown = split(form)
    return {
        (s if s.kind == "fault" else s._replace(which=which), word): c for (s, word), c in known.items()
    } | unknown
