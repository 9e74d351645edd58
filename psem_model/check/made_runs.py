"""The run that is made for a rejected schedule, of what its verdict found wrong (theorem T4).

One original value that a device has too often or too seldom is 1, all others are 0; losses are linear.
Where a backward reads something wrong, the loss of the samples for which it does is a square, least at
the single device's weights: so their gradient is what it reads wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from spec.checking.forms import Forms, Unmet
from spec.checking.symbols import SAME, MicroStep, Symbol
from spec.checking.verdict import Verdict
from spec.devices.operators import NormalForm, Offset, Source
from spec.language.schedule import Kind, Schedule
from spec.meaning.reference import UNKNOWN, Coordinate, Losses, OfAll, Reference
from spec.models.training import Loss

FIRST_STATES = {"weight": "start", "moment": "moment"}  # data of a reference, by the symbol of step 0
LEAST = "least at the single device's weights"
CONTRIBUTED = {"gradient": "sample", "tied": "tied", "statistic": "statistic"}


@dataclass(frozen=True)
class Value:
    """Data of a reference: what a device's samples of a micro-step contribute, or a state at first.

    `element`: that of which alone it is, if it is not of all.
    """

    what: str
    step: int = 0
    micro_step: int = 0
    device: Coordinate = ()
    element: int | None = None

    @property
    def at_first(self) -> bool:
        """Whether it is a state before the first step."""
        return self.what in FIRST_STATES.values()

    def is_at(self, what: str, *index: Any) -> bool:
        """Whether data of a reference are this value."""
        these = () if self.at_first else (self.step, self.micro_step, self.device)
        of_all = self.element is None or self.what in ("tokens", "statistic")
        return (what, *index[: len(these)]) == (self.what, *these) and (
            of_all or index[-1] == self.element
        )

    def __str__(self) -> str:
        if self.at_first:
            return f"{self._of}the first {'weights' if self.what == 'start' else 'moments'}"
        return f"{self._of}{self._contributed} in {self.when}"

    @property
    def _of(self) -> str:
        return "" if self.element is None else f"element {self.element} of "

    @property
    def _contributed(self) -> str:
        if self.what == "statistic":
            return f"what {self.samples} add to the statistics"
        return f"the gradient of {self.samples}" + " by the second use" * (self.what == "tied")

    @property
    def samples(self) -> str:
        """Those that contribute it."""
        return f"device ({','.join(map(str, self.device))})'s samples"

    @property
    def when(self) -> str:
        """The micro-step, and its step."""
        return f"micro-step {self.micro_step + 1} of step {self.step + 1}"

    def json(self) -> dict[str, Any]:
        """For a program."""
        found: dict[str, Any] = {"what": self.what, "element": self.element}
        if self.at_first:
            return found
        when = {"step": self.step + 1, "micro_step": self.micro_step + 1}
        return found | when | {"device": list(self.device)}


@dataclass(frozen=True)
class Square:
    """A contribution whose loss is a square: of what is kept of its samples' forward, or is read."""

    of: Value
    of_activations: bool


@dataclass(frozen=True)
class Made(Losses):
    """Linear losses but for one, and data of which all are 0 but a few, which are 1; of tokens all are
    1 but one, which is 2.
    """

    odd: tuple[Value, ...] = ()
    square: Square | None = None
    tokens: Value | None = None

    def data(self, what: str, *index: Any) -> Any:
        """What a reference starts with, and what samples contribute where weights are 0."""
        if what == "unknown":
            return UNKNOWN
        if what == "tokens":
            return 2 if self.tokens and self.tokens.is_at(what, *index) else 1
        return int(any(value.is_at(what, *index) for value in self.odd))

    def sample(
        self,
        world: Reference,
        micro_step: int,
        d: Coordinate,
        j: int,
        kept: OfAll,
        view: OfAll,
        tied: bool,
    ) -> Any:
        """The gradient, which is the same for each element: of a square, what all are off by."""
        at = ("tied" if tied else "sample"), world.step, micro_step, d, j
        linear = self.data(*at)
        if self.square is None or not self.square.of.is_at(*at):
            return linear
        read, (least, _) = kept if self.square.of_activations else view, world.single(world.step)
        return linear + sum(read(i) - least[i] for i in range(world.elements))

    def __str__(self) -> str:
        are = "are" if len(self.odd) > 1 or any(value.at_first for value in self.odd) else "is"
        odd = " and ".join(map(str, self.odd))
        said = [f"{odd} {are} 1, all else is 0" if self.odd else "all that is known is 0"]
        if self.tokens:
            said.append(f"{self.tokens.samples} in {self.tokens.when} have 2 tokens, all others 1")
        if self.square:
            of = self.square.of
            said.append(f"the loss of {of.samples} in {of.when} is a square, {LEAST}")
        return "; ".join(said)

    def json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "says": str(self),
            "are_1": [value.json() for value in self.odd],
            "is_2": self.tokens and self.tokens.json(),
            "square": self.square and self.square.of.json(),
        }


# --------------------------------------------------------------------- of a verdict
@dataclass(frozen=True)
class Wrong:
    """What a verdict found wrong, at some sizes: its need, and the devices there are."""

    schedule: Schedule
    sizes: Mapping[str, int]
    micro_steps: int
    verdict: Verdict
    why: Unmet

    @property
    def forms(self) -> Forms:
        """The forms in which it was found."""
        return self.why.forms

    @property
    def owner(self) -> Coordinate:
        """The device that owns an element, seen from which the first one is where it was found."""
        roots = self.forms.roots
        return tuple(-roots.get(axis, 0) % self.sizes[axis] for axis in self.schedule.axes)

    @property
    def devices(self) -> list[Coordinate]:
        """All of them."""
        return [*product(*(range(self.sizes[axis]) for axis in self.schedule.axes))]

    @property
    def reader(self) -> Coordinate:
        """A device on which the need is not met."""
        return self._device(self.why.position)

    def _device(
        self, places: Sequence[Offset | Source], reader: Coordinate | None = None
    ) -> Coordinate:
        """The first device of a kind, as the reader sees it."""
        found = []
        for number, (axis, owner) in enumerate(zip(self.schedule.axes, self.owner, strict=True)):
            if axis not in self.forms.axes:  # of one device
                found.append(0)
                continue
            i, n = self.forms.axes.index(axis), self.sizes[axis]
            own = None if reader is None else reader[number]
            named = {own, *((owner + place) % n for place in self.forms.named[i])}
            if places[i] is Source.SELF and own is not None:
                found.append(own)
            elif isinstance(place := places[i], int):
                found.append((owner + place) % n)
            else:
                found.append(next(x for x in range(n) if x not in named))
        return tuple(found)

    @property
    def _micro_step(self) -> int:
        """The one in which it was found."""
        each = len(self.schedule.micro_step)
        return min(max(self.verdict.op_index, 0) // max(each, 1), self.micro_steps - 1)

    def values(self) -> Iterator[tuple[Value, ...]]:
        """Those that may be 1: of the terms of the difference, the latest first, or none; of what is
        needed, or they are made of; others, or two at once, where they are lost or multiplied.
        """
        own = [*dict.fromkeys(self._of_form(self.why.difference))]
        yield from ((value,) if value else () for value in own)
        yield from ((value,) for value in self._of_form(self.why.need.needs) if value)
        contributed = [*self._contributed()]
        yield from ((value,) for value in (Value("start"), Value("moment"), *contributed))
        yield from ((one, other) for one in own if one for other in contributed)
        element = self.devices.index(self.owner)
        yield from ((replace(value, element=element),) for value in own if value)

    def _of_form(self, form: NormalForm) -> Iterator[Value | None]:
        """The values of its terms on the reader, and those inside; none of what is not known."""
        terms = sorted(self.forms.at(form, self.why.position), key=lambda t: (t[0].known, -t[0].step))
        for symbol, sources in terms:
            same = symbol.kind in SAME or not symbol.known
            yield self._value(symbol, None if same else self._device(sources, self.reader))
        for symbol in (inner for term in terms for inner in _symbols(term[0])):
            yield from (self._value(symbol, device) for device in self.devices)

    def _contributed(self) -> Iterator[Value]:
        """Gradients of all samples, of the step in which the need is not met, and of those before."""
        for step in range(self.verdict.step, -1, -1):
            for micro_step, device in product(range(self.micro_steps), self.devices):
                for what in self._uses:
                    yield Value(what, step, micro_step, device)

    @property
    def _is_token_mean(self) -> bool:
        return self.schedule.training.loss is Loss.TOKEN_MEAN

    @property
    def _uses(self) -> tuple[str, ...]:
        return ("sample", "tied") if self.schedule.training.tied else ("sample",)

    def _value(self, symbol: Symbol, device: Coordinate | None) -> Value | None:
        """The original value that a symbol is; of a later state, one that it is the first to show."""
        if symbol.kind in FIRST_STATES and symbol.step == 0:
            return Value(FIRST_STATES[symbol.kind])
        first, last = self.devices[0], self.micro_steps - 1
        if symbol.kind in FIRST_STATES:
            return Value("sample", symbol.step - 1, last, first)
        if symbol.kind == "statistics" and symbol.step:
            return Value("statistic", symbol.step - 1, last, first)
        if symbol.kind in CONTRIBUTED:
            at = _number(symbol.which, self.micro_steps)
            return Value(CONTRIBUTED[symbol.kind], symbol.step, at, device or first)
        return None

    def squares(self) -> Iterator[Square | None]:
        """Contributions that may be made of what is read wrong: first the reader's own."""
        if self.why.need.rule != "fresh":
            yield None
            return
        along = self.why.op.axes if self.why.op else ()
        apart = [i for i, axis in enumerate(self.schedule.axes) if axis not in along]
        alike = (d for d in self.devices if all(d[i] == self.reader[i] for i in apart))
        for device in dict.fromkeys((self.reader, *alike)):
            for what in self._uses:
                of = Value(what, self.why.step, self._micro_step, device)
                yield Square(of, bool(self.why.need.of))

    def other_squares(self) -> Iterator[Square]:
        """All of them: a later backward may read what is made of what is wrong."""
        for of, of_activations in product(self._contributed(), (False, True)):
            yield Square(of, of_activations)

    def tokens(self) -> Iterator[Value | None]:
        """Counts that may be another than all others: none, then each of the step, if any is read."""
        yield None
        if any(op.kind is Kind.DIVIDE for op in self.schedule.ops) or self._is_token_mean:
            for micro_step in range(self.micro_steps):
                for device in self.devices:
                    yield Value("tokens", self.why.step, micro_step, device)


def made_for(
    schedule: Schedule, sizes: Mapping[str, int], micro_steps: int, verdict: Verdict
) -> Iterator[Made]:
    """Models and data of which one shows what a verdict found wrong, the likeliest first."""
    if not isinstance(verdict.why, Unmet):
        return
    wrong = Wrong(schedule, sizes, micro_steps, verdict, verdict.why)
    for odd in (values := [*dict.fromkeys(wrong.values())]):
        for tokens, square in product(wrong.tokens(), wrong.squares()):
            yield Made(odd, square, tokens)
    for odd, square in product(values, wrong.other_squares()):
        yield Made(odd, square)


def _symbols(part: Any) -> Iterator[Symbol]:
    """Those of which a symbol is made."""
    inner = (part.made_of, part.multipliers) if isinstance(part, Symbol) else part
    for each in inner if isinstance(inner, tuple) else ():
        if isinstance(each, Symbol):
            yield each
        yield from _symbols(each)


def _number(which: MicroStep, micro_steps: int) -> int:
    """A micro-step's number, counted from the last where it is named so; of any, the first."""
    if isinstance(which, int):
        return which
    named, _, before = which.partition(" but ")
    return max(micro_steps - 1 - int(before or 0), 0) if named == "last" else 0
