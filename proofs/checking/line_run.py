"""T4's run of lines, on numbers: the forms in places after each line, on axes of a few devices.

A line that moves values does to a word what the tables say that T4 has (`axis_tables`); a line that
computes makes what T4 says, by what compares equal, and where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import prod
from typing import Any

from proofs.checking import lines
from proofs.checking.axis_numbers import LINES, entry, row, sources, spread
from proofs.checking.axis_tables import EVERYBODY, UNKNOWN, Form, Word
from proofs.checking.lines import FIRST, NAMED, OWNER
from proofs.checking.operation_lines import COUNT, NORM, NOWHERE, LineAt, NotCovered
from spec.checking.symbols import Offsets, Symbol
from spec.devices.operators import OTHER
from spec.models.training import PLAIN, Loss, Training

SAME_ON_ALL = ("weight", "moment", NORM)
Firsts = tuple[int, ...]  # the place of the first device along each axis
Sizes = tuple[int, ...]  # devices along each axis
Seen = Mapping[Offsets, tuple[bool, bool]]  # whether it is as needed, and whether it is known


def merged(form: Form) -> dict[Any, Any]:
    """A form of which all that is not known is one symbol, without what cancels."""
    found: dict[Any, Any] = {}
    for (symbol, word), amount in form.items():
        term = symbol if symbol.known else UNKNOWN, word
        found[term] = found.get(term, 0) + amount
    return {term: amount for term, amount in found.items() if amount != 0}


@cache
def who_is_seen(sizes: Sizes, firsts: Firsts, places: Offsets, alike: bool) -> list[tuple[int, ...]]:
    """Whose values devices at a place can see; of what all have alike, everybody's."""
    everybody = [(EVERYBODY,) * len(sizes)]
    return everybody if alike else [*product(*map(sources, firsts, places, sizes))]


@cache
def sights(
    sizes: Sizes, firsts: Firsts, places: Offsets, word: Word, alike: bool
) -> list[tuple[tuple[int, ...], Any]]:
    """By a word, how often devices at a place see the value of each that they can see."""
    found = []
    for of in who_is_seen(sizes, firsts, places, alike):
        found.append((of, prod(map(entry, firsts, places, of, word, sizes))))
    return found


def wrong_one(line: int, what: str) -> Symbol:
    """What a line got wrong."""
    return Symbol("wrong", 0, line, what)


@dataclass
class LineRun:
    """The forms of places after lines. A word is of numbers of operators.

    mesh: devices along each axis. starts: what places hold at first, by `lines.STARTS`. met, lost: of
    lines that compute, as in `symbolic_checker`, by line, where the first device is, and place; the
    comparisons of a backward and of a norm are of all.
    """

    mesh: Mapping[str, int]
    micro_steps: int
    contributions: int  # of a device to a gradient
    starts: Mapping[int, str]
    training: Training = PLAIN
    moments: bool = True  # whether the optimizer reads any
    forms: dict[tuple[int, Firsts], Form] = field(default_factory=dict)
    met: dict[tuple[Any, ...], bool] = field(default_factory=dict)
    lost: dict[tuple[Any, ...], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.axes, self.sizes = tuple(self.mesh), tuple(self.mesh.values())
        every = product(*((OWNER, FIRST) if n > 1 else (OWNER,) for n in self.sizes))
        self.firsts: list[Firsts] = [*every]
        self.alone: Word = (0,) * len(self.axes)  # the word of what each device has itself
        self.not_known: dict[Any, Any] = {(UNKNOWN, self.alone): 1}
        kinds = {"Weights": "weight", "Moments": "moment"}
        self.begun: dict[int, Form] = {
            place: {(Symbol(kinds[start], lines.NOW), self.alone): 1}
            for place, start in self.starts.items()
        }

    def right(self, line: int) -> bool:
        """Whether the comparisons of a line come out equal everywhere, if it computes."""
        return all(met for (number, *_), met in self.met.items() if number == line)

    def form(self, place: int, firsts: Firsts) -> Form:
        """What is in a place."""
        return self.forms.get((place, firsts), self.begun.get(place, self.not_known))

    def run(self, number: int, line: LineAt) -> None:
        """Run a line of some number. Raises NotCovered."""
        if line.shift:
            raise NotCovered("shifts")
        if line.kind in LINES:
            for firsts in self.firsts:
                self.forms[line.target, firsts] = merged(self._moved(line, firsts))
        elif line.kind == lines.BACKWARD.name:
            self._backward(number, line)
        elif line.kind == NORM:
            self._norm(number, line)
        elif line.kind == COUNT:
            self._make(line.target, Symbol("tokens", line.step, line.micro_step))
        else:
            self._update(number, line)

    def _make(self, place: int, symbol: Symbol, lost: bool = False) -> None:
        """Each device has a value of its own in a place; also what is not known, if it is lost."""
        made: Form = {(symbol, self.alone): 1} | (self.not_known if lost else {})
        self.forms |= {(place, firsts): made for firsts in self.firsts}

    def _moved(self, line: LineAt, firsts: Firsts) -> Form:
        """What a line makes of what is in its source and its target."""
        if line.kind == "release":
            return self.not_known
        a = self.axes.index(line.axis) if line.axis else 0
        found: dict[Any, Any] = {}
        for of_target, place in ((False, line.source), (True, line.target)):
            before = self.form(place, firsts) if place >= 0 else {}
            for (symbol, word), amount in before.items():
                factor = line.factor if symbol.known else 1
                made = row(line.kind, firsts[a], of_target, self.sizes[a], factor)
                for operator, times in made.get(word[a], ()):
                    term = symbol, (*word[:a], operator, *word[a + 1 :])
                    found[term] = found.get(term, 0) + times * amount
        return found

    # ------------------------------------------------------------------- comparisons
    def there_are(self, firsts: Firsts) -> Iterator[Offsets]:
        """The places where there are devices."""
        return product(
            *(
                (*NAMED[first], *([OTHER] if n > len(NAMED[first]) else []))
                for first, n in zip(firsts, self.sizes, strict=True)
            )
        )

    def seen(self, form: Form, firsts: Firsts, places: Offsets) -> dict[Any, Any]:
        """How often a device sees each value of each source; of what all have alike, of everybody."""
        found: dict[Any, Any] = {}
        for (symbol, word), amount in form.items():
            for of, times in sights(self.sizes, firsts, places, word, symbol.kind in SAME_ON_ALL):
                found[symbol, of] = found.get((symbol, of), 0) + times * amount
        return {value: amount for value, amount in found.items() if amount != 0}

    def passes(self, place: int, firsts: Firsts, needed: Sequence[Symbol]) -> Seen:
        """By place, whether what is there compares equal with what is needed, and is known."""
        form, found = self.form(place, firsts), {}
        for places in self.there_are(firsts):
            seen = self.seen(form, firsts, places)
            known = not any(symbol == UNKNOWN for symbol, _ in seen)
            who = {alike: who_is_seen(self.sizes, firsts, places, alike) for alike in (False, True)}
            needs = {(s, of): 1 for s in needed for of in who[s.kind in SAME_ON_ALL]}
            found[places] = seen == needs, known
        return found

    def _is_unknown(self, form: Form) -> bool:
        """Whether anything is not known of a form, on any device."""
        few = [i for i, n in enumerate(self.sizes) if n > 1]  # of one device all operators are one
        found: dict[Word, Any] = {}
        for (symbol, word), amount in form.items():
            if not symbol.known:
                of = tuple(word[i] for i in few)
                found[of] = found.get(of, 0) + amount
        return any(found.values())

    def _is_zero(self, place: int, firsts: Firsts, places: Offsets) -> bool:
        """Whether a device at a place has nothing there, not even what is not known."""
        return not self.seen(self.form(place, firsts), firsts, places)

    # ------------------------------------------------------------ what lines compute
    def _backward(self, number: int, line: LineAt) -> None:
        needed, wrong, lost = [Symbol("weight", line.step)], False, False
        reads = line.source, line.second
        for firsts in self.firsts:
            found = [self.passes(place, firsts, needed) for place in reads]
            if not wrong and not all(equal for each in found for equal, _ in each.values()):
                wrong = True
                lost = any(self._is_unknown(self.form(place, firsts)) for place in reads)
        self.met[number,] = not wrong
        self.lost |= {(number, firsts): lost for firsts in self.firsts}
        symbol = Symbol("gradient", line.step, line.micro_step)
        if wrong:
            of_second_use = line.micro_step >= self.micro_steps
            symbol = wrong_one(number, "tied" if of_second_use else "gradient")
        self.forms |= {(line.second, firsts): self.not_known for firsts in self.firsts}
        self._make(line.target, symbol, lost)

    def _whole(self, line: LineAt) -> list[Symbol]:
        """The contributions to a whole gradient."""
        return [Symbol("gradient", line.step, m) for m in range(self.contributions)]

    def _norm(self, number: int, line: LineAt) -> None:
        """A norm is right if on the owners of its slices all compares equal. It is not known if any of
        them is not, or if they are otherwise where the first device is elsewhere.
        """
        along = [self.axes.index(axis) for axis in line.axes]
        right, lost = True, False
        for firsts in self.firsts:
            for places, (equal, known) in self.passes(line.source, firsts, self._whole(line)).items():
                right &= equal or any(places[x] != OWNER for x in along)
                lost |= not known
        slices = [self.form(line.source, firsts) for firsts in self.firsts]
        lost |= any(form != slices[0] for form in slices)
        self.met[number,] = right
        self._make(line.target, Symbol(NORM, line.step) if right else wrong_one(number, NORM), lost)

    def _reads(self, line: LineAt) -> list[tuple[int, list[Symbol]]]:
        """What an update reads and needs: weight, moment and gradient, and the numbers beside it."""
        counts = [Symbol("tokens", line.step, m) for m in range(self.micro_steps)]
        counted = self.training.loss is Loss.TOKEN_MEAN
        return [
            (line.source, [Symbol("weight", line.step)]),
            *([(line.second, [Symbol("moment", line.step)])] if self.moments else []),
            (line.third, self._whole(line)),
            *([(line.fourth, [Symbol(NORM, line.step)])] if self.training.clip else []),
            *([(line.fifth, counts)] if counted else []),
        ]

    def _update(self, number: int, line: LineAt) -> None:
        """By place: right where all compares equal, not known where something that counts is not."""
        reads, after = self._reads(line), {}
        for firsts in self.firsts:
            found = [self.passes(place, firsts, needed) for place, needed in reads]
            there = [each for each, (place, _) in zip(found, reads, strict=True) if place != NOWHERE]
            nothing = line.fifth != NOWHERE and not self.form(line.fifth, firsts)  # a zero count
            for places in product(*((*NAMED[first], OTHER) for first in firsts)):
                met = all(each[places][0] for each in found if places in each)
                some = 2 + self.moments if self._is_zero(line.third, firsts, places) else len(there)
                known = all(each[places][1] for each in there[:some] if places in each)
                self.met[number, firsts, places] = met
                self.lost[number, firsts, places] = nothing or not known
            for target, kind in ((line.target, "weight"), (line.second, "moment")):
                after[target, firsts] = self._updated(number, line, firsts, kind)
        self.forms |= after

    def _updated(self, number: int, line: LineAt, firsts: Firsts, kind: str) -> Form:
        """What an update leaves, as a form: that of what devices have by their places."""
        right, wrong = Symbol(kind, line.step + 1), wrong_one(number, kind)
        form: dict[Any, Any] = {}
        for places in product(*((*NAMED[first], OTHER) for first in firsts)):
            at = number, firsts, places
            made = [right if self.met[at] else wrong, *([UNKNOWN] if self.lost[at] else [])]
            for (word, amount), symbol in product(spread(firsts, places).items(), made):
                form[symbol, word] = form.get((symbol, word), 0) + amount
        return merged(form)

    def kept(
        self, kept_as: Mapping[int, str], kept_axes: Mapping[int, Iterable[str]], step: int
    ) -> bool:
        """Whether every kept copy compares equal at the end of a step, where it is kept."""
        return all(
            equal
            for place, start in kept_as.items()
            for firsts in self.firsts
            for places, (equal, _) in self.passes(
                place, firsts, [Symbol("moment" if "Moment" in start else "weight", step + 1)]
            ).items()
            if all(places[self.axes.index(axis)] == OWNER for axis in kept_axes[place])
        )
