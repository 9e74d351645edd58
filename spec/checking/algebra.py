"""Values as combinations of original values, each with one operator for each axis: their normal forms.

Operators combine on normal forms as they do on the devices' values (theorem T1), and forms that differ
do different things (T3); which operators an operation is, is tested against the simulator. What the
model and the optimizer make of them is said in `forms`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, combinations
from itertools import product as choices_of
from typing import Any

from spec.checking.symbols import (
    SAME,
    Frozen,
    MicroStep,
    Multiplier,
    Offsets,
    Scaled,
    SquareNorm,
    Symbol,
    frozen,
)
from spec.devices.mesh import Axes
from spec.devices.operators import (
    ALL,
    IDENTITY,
    OTHER,
    SUM_ALL,
    NormalForm,
    Offset,
    Operator,
    Source,
    Word,
    add,
    apply_operator,
    scale,
    sources_of,
    unnamed,
)
from spec.language.schedule import SLICING, Monomial, Op, Schedule
from spec.models.states import BytePolicy
from spec.numbers.any_size import Comparison, Polynomial
from spec.numbers.arithmetic import Number, power
from spec.numbers.roots import divisors


class Algebra:
    """Normal forms under what moves values, adds them and multiplies them by numbers.

    `roots`: how many places after the element's owner the first device is, along each axis.
    `one_by_one`: micro-steps are told apart by their numbers.
    """

    def __init__(
        self,
        schedule: Schedule,
        mesh: Mapping[str, Number],
        micro_steps: Number,
        policy: BytePolicy,
        comparison: Comparison | None,
        roots: Mapping[str, int],
        one_by_one: bool,
    ) -> None:
        self.zero: NormalForm = {}
        # along an axis of one device every operator is the identity
        self.axes = tuple(a for a in schedule.axes if not _is_one(mesh[a]))
        self.sizes = tuple(mesh[a] for a in self.axes)
        self.named = tuple(
            tuple(dict.fromkeys((*takers(schedule, a, mesh[a]), roots.get(a, 0)))) for a in self.axes
        )
        self.mesh, self.micro_steps, self.policy = mesh, micro_steps, policy
        self.comparison, self.one_by_one = comparison, one_by_one
        self.same: Callable[[Number, Number], bool] = comparison.same if comparison else operator.eq
        self.roots, self.training, self.cut = roots, schedule.training, schedule.cut
        self.master = policy.master
        self.step, self.op_index = 0, 0
        self.updated = False  # whether the step's update has run
        self.micro_step: MicroStep = 0
        self.op: Op | None = None
        self._unknown: dict[str, NormalForm] = {}  # by the reason
        self._read: dict[tuple[Word, Offsets], list[tuple[int | Source, ...]]] = {}  # who is read
        self._coefficients: set[Number] = {0}  # in symbols
        for axis, named in zip(self.axes, self.named, strict=True):
            self._tell_apart(schedule, axis, named)

    def _tell_apart(self, schedule: Schedule, axis: str, named: tuple[int, ...]) -> None:
        """Sizes with which there are none but the devices that have names, and one that looks; and with
        which two names are of one device, as places are counted around the group.
        """
        n = self.mesh[axis]
        if self.comparison and isinstance(n, Polynomial):
            for few in range(1, len(named) + 2):
                self.same(n, few)
            if len({*takers(schedule, axis, n)}) > 1:
                around = (divisors(a - b) for a, b in combinations(named, 2))
                self.comparison.set_apart(n, chain.from_iterable(around))

    def symbol(self, kind: str, step: int, micro_step: MicroStep = 0) -> NormalForm:
        """A value in its original form."""
        return {(Symbol(kind, step, micro_step), (IDENTITY,) * len(self.axes)): 1}

    def unknown(self, why: str) -> NormalForm:
        """What is not known, as a term: how often does not matter, and it never cancels, as nothing
        scales it.
        """
        form = self._unknown.get(why)
        if form is None:
            form = {(Symbol("unknown", 0, made_of=why), (IDENTITY,) * len(self.axes)): 1}
            self._unknown[why] = form
        return form

    def _apply(self, operator_: Operator, axis: str, form: NormalForm) -> NormalForm:
        if axis not in self.axes:
            return form
        i = self.axes.index(axis)
        return apply_operator(operator_, i, form, self.sizes[i])

    # ------------------------------------------------------------ operations
    def sum(self, value: NormalForm, axis: str) -> NormalForm:
        return self._forget_places(self._apply(SUM_ALL, axis, self._mixed(value, axis)))

    def _mixed(self, value: NormalForm, axis: str) -> NormalForm:
        """A value that is to be summed: why nothing is known of the sum, if it is of slices."""
        known, unknown = split(value)
        i = self.axes.index(axis) if axis in self.axes else None
        if i is None or all(word[i] == IDENTITY for _, word in unknown):
            return value
        why = f"a sum over {axis} of slices along {axis} mixes different elements"
        for (symbol, word), amount in unknown.items():
            known = add(known, {(symbol._replace(made_of=why), word): amount})
        return known

    def _forget_places(self, form: NormalForm) -> NormalForm:
        """What is made of parts of a norm adds up to the same, whichever slices devices took."""
        found: dict[Any, Number] = {}
        for (symbol, word), coefficient in form.items():
            for i, op in enumerate(word):
                places = _places_of_parts(symbol, i) if op.of == ALL else {None}
                if len(places) == 1 and None not in places:
                    symbol = _at_the_owner(symbol, i)
            found[symbol, word] = found.get((symbol, word), 0) + coefficient
        return found

    def owners(self, value: NormalForm, axis: str, shift: int = 0) -> NormalForm:
        return self._apply(Operator(ALL, taker(self.mesh[axis], shift)), axis, value)

    def first(self, value: NormalForm, axis: str) -> NormalForm:
        if axis not in self.axes:
            return value
        return self._apply(Operator(ALL, self.roots[axis]), axis, value)

    def replace(self, old: NormalForm, new: NormalForm, axes: Axes, shift: int = 0) -> NormalForm:
        change: NormalForm = add(new, scale(old, -1))
        for axis in axes:
            place = taker(self.mesh[axis], shift)
            change = self._apply(Operator(place, place), axis, change)
        return add(old, change)

    def add(self, value: NormalForm, other: NormalForm) -> NormalForm:
        return add(value, other)

    def scale(self, value: NormalForm, factor: Monomial) -> NormalForm:
        if not factor.number:
            return {}
        known, unknown = split(value)
        return add(scale(known, factor.at(self.mesh, self.micro_steps)), unknown)

    def divide(self, value: NormalForm, count: NormalForm) -> NormalForm:
        count, unknown = split(self.simplified(count))
        if not count and not unknown:
            return self.unknown("it is divided by zero")
        multiple, count = _normalised(count) if count else (1, count)
        divided = scale(self._times("over", split(value)[0], count), power(multiple, -1))
        return add(divided, self._spoiled(value, unknown))

    def clip(self, gradient: NormalForm, square_norm: NormalForm) -> NormalForm:
        square_norm, unknown = split(self.simplified(square_norm))
        known = split(gradient)[0]
        clipped = self._times("clip", known, square_norm) if square_norm else known
        return add(clipped, self._spoiled(gradient, unknown))

    def _spoiled(self, value: NormalForm, number: NormalForm) -> NormalForm:
        """What is not known of a value times a number, of which `number` is not known: zero times
        anything is zero. A number is known on every device, or on none.
        """
        form: NormalForm = split(value)[1]
        for symbol, _ in [*number][:1]:
            why, places = self.unknown(symbol.made_of), [*self.device_kinds()]
            spoiled = [position for position in places if self.at(value, position)]
            if spoiled == places:
                return add(form, why)
            for position in spoiled:
                form = add(form, self._only_at(why, position))
        return form

    def square_norm(self, gradient: NormalForm) -> NormalForm:
        """A symbol that stands for what each device's slice adds; all have the sum where all are.

        Where devices have the same, each has the whole norm; where each has its own slice, a part.
        """
        gradient, unknown = split(self.simplified(gradient))
        for position in self.device_kinds() if unknown else ():
            for symbol, _ in self.at(unknown, position):  # each device has elements of each kind
                return self.unknown(symbol.made_of)
        whole, norm, varies, places = dict(gradient), [], [], []
        for i in range(len(self.axes)):
            to = {word[i].to for _, word in gradient}
            place = next(iter(to)) if len(to) == 1 and to.isdisjoint((ALL, IDENTITY.to)) else None
            norm.append(SUM_ALL if to == {ALL} else IDENTITY)
            varies.append(place is None and to != {ALL})
            places.append(place or 0)
            if place is not None:
                whole = {(s, _with(w, i, Operator(ALL, w[i].of))): c for (s, w), c in whole.items()}
        if not gradient:
            return {}
        multiple, whole = _normalised(whole)
        symbol = Symbol(
            "norm", self.step, 0, SquareNorm(self._frozen(whole), tuple(varies), tuple(places))
        )
        return {(symbol, tuple(norm)): multiple * multiple}

    def _times(self, function: str, value: NormalForm, number: NormalForm) -> NormalForm:
        """A value times a function of a number on each device.

        Along axes where the number is the same on all, that commutes with every operator. Along
        others it is part of the symbol, with all that happened before but for what is a slice.
        """
        factor = Multiplier(function, self._frozen(number))
        varies = [any(word[i] == IDENTITY for _, word in number) for i in range(len(self.axes))]
        result: NormalForm = {}
        for (symbol, word), coefficient in self.simplified(value).items():
            inner, outer = list(word), list(word)
            for i, (op, varying) in enumerate(zip(word, varies, strict=True)):
                if not varying:
                    inner[i] = IDENTITY
                elif op == IDENTITY or op.to == ALL:
                    outer[i] = IDENTITY
                else:
                    inner[i] = IDENTITY if op.of == op.to else Operator(ALL, op.of)
                    outer[i] = Operator(op.to, op.to)
            if all(op == IDENTITY for op in inner):
                multipliers = tuple(sorted((*symbol.multipliers, factor), key=repr))
                after = symbol._replace(multipliers=multipliers)
            else:
                after = Symbol("scaled", symbol.step, 0, Scaled(symbol, tuple(inner), factor))
            result = add(result, {(after, tuple(outer)): coefficient})
        return result

    def simplified(self, form: NormalForm) -> dict[Any, Number]:
        """The form without its terms that cancel."""
        return {t: c for t, c in form.items() if (c if type(c) is int else not self.same(c, 0))}

    def _frozen(self, form: NormalForm) -> Frozen:
        """A form in a symbol: two such may be the same where two of their coefficients are."""
        found = frozen(form)
        for number in {c for _, c in found} - self._coefficients if self.comparison else ():
            for other in self._coefficients:
                self.same(number, other)
            self._coefficients.add(number)
        return found

    # ------------------------------------------- what they come to on a device
    def device_kinds(self, owned: Axes = ()) -> Iterator[Offsets]:
        """The kinds of device there are; along the axes in `owned`, owners only."""
        choices = []
        for axis, named, n in zip(self.axes, self.named, self.sizes, strict=True):
            others = [OTHER] if not isinstance(n, int) or n > len(named) else []
            choices.append([0] if axis in owned else [*named, *others])
        return choices_of(*choices)

    def at(self, form: NormalForm, position: Offsets) -> dict[Any, Number]:
        """What a value comes to on a device: its coefficient on each original value it sees."""
        seen: dict[Any, Number] = {}
        for (symbol, word), coefficient in form.items():
            for sources in self._sources(word, position):
                key: Any = (symbol, sources)
                factor: Number = 1
                if symbol.kind in SAME:
                    key, factor = (symbol, ()), self._devices(position, sources)
                seen[key] = seen.get(key, 0) + factor * coefficient
        return self.simplified(seen)

    def _sources(self, word: Word, position: Offsets) -> list[tuple[int | Source, ...]]:
        """The devices whose values a device gets the sum of, where there are any."""
        found = self._read.get((word, position))
        if found is None:
            per_axis = [
                [
                    s
                    for s in sources_of(op, place, named)
                    if s is not Source.REST or self._some(i, place)
                ]
                for i, (op, place, named) in enumerate(zip(word, position, self.named, strict=True))
            ]
            found = self._read[word, position] = [*choices_of(*per_axis)]
        return found

    def _some(self, axis: int, place: Offset) -> bool:
        """Whether the rest of a group is anyone. A symbolic size is large enough."""
        others = unnamed(place, self.named[axis], self.sizes[axis])
        return not isinstance(others, int) or others > 0

    def _devices(self, position: Offsets, sources: tuple[int | Source, ...]) -> Number:
        count: Number = 1
        for i, (place, source) in enumerate(zip(position, sources, strict=True)):
            if source is Source.REST:
                count = count * unnamed(place, self.named[i], self.sizes[i])
        return count

    def with_at(self, value: NormalForm, new: NormalForm, position: Offsets) -> NormalForm:
        """A value, with another on devices of one kind."""
        return add(value, self._only_at(add(new, scale(value, -1)), position))

    def _only_at(self, form: NormalForm, position: Offsets) -> NormalForm:
        """The value on devices of one kind, nothing elsewhere."""
        for axis, named, place in zip(self.axes, self.named, position, strict=True):
            if place is not None:
                form = self._apply(Operator(place, place), axis, form)
                continue
            elsewhere = form
            for other in named:
                there = self._apply(Operator(other, other), axis, form)
                elsewhere = add(elsewhere, scale(there, -1))
            form = elsewhere
        return form


def _places_of_parts(symbol: Symbol, axis: int) -> set[int | None]:
    """The places of the norms' parts by which a value differs between devices; None for all else."""
    if symbol.kind != "scaled":
        return {_place_of_part(symbol, axis)}
    if symbol.made_of.word[axis].to != ALL:
        return {None}
    numbers = [factor.number for factor in (symbol.made_of.multiplier, *symbol.multipliers)]
    return {_place_of_part(s, axis) for form in numbers for (s, word), _ in form if _varies(word, axis)}


def _place_of_part(symbol: Symbol, axis: int) -> int | None:
    """Whose slice a part of a norm is of; None for all else."""
    return symbol.made_of.places[axis] if symbol.kind == "norm" else None


def _varies(word: Word, axis: int) -> bool:
    return word[axis] == IDENTITY


def _at_the_owner(symbol: Symbol, axis: int) -> Symbol:
    """The same with those parts of norms of the owner's own slices: what was scaled by others stays."""
    if symbol.kind == "norm":
        return _of_owners_slice(symbol, axis)

    def moved(factor: Multiplier) -> Multiplier:
        form = {
            (_of_owners_slice(s, axis) if _varies(word, axis) else s, word): c
            for (s, word), c in factor.number
        }
        return factor._replace(number=frozen(form))

    made_of = symbol.made_of._replace(multiplier=moved(symbol.made_of.multiplier))
    multipliers = tuple(sorted(map(moved, symbol.multipliers), key=repr))
    return symbol._replace(made_of=made_of, multipliers=multipliers)


def _of_owners_slice(norm: Symbol, axis: int) -> Symbol:
    own = _with(norm.made_of.places, axis, 0)
    return norm._replace(made_of=norm.made_of._replace(places=own))


def split(form: NormalForm) -> tuple[dict[Any, Number], dict[Any, Number]]:
    """What is known of a form, and what is not."""
    unknown = {term: c for term, c in form.items() if not term[0].known}
    return {term: c for term, c in form.items() if term not in unknown}, unknown


def _is_one(size: Number) -> bool:
    return isinstance(size, int) and size == 1


def taker(size: Number, shift: int) -> int:
    """How many places after the owner the device is that takes its slice for its own."""
    return -shift % size if isinstance(size, int) else -shift


def takers(schedule: Schedule, axis: str, size: Number) -> Iterator[int]:
    """The places after the owner that operations speak of along an axis: first the owner."""
    yield 0
    for op in schedule.ops:
        if axis in op.within or (axis in op.axes and op.kind in SLICING):
            yield taker(size, op.shift)


def _normalised(form: NormalForm) -> tuple[Number, dict[Any, Number]]:
    """A form as a multiple of one whose first coefficient is 1."""
    first: Number = frozen(form)[0][1]
    return first, scale(form, power(first, -1))


def _with(each: tuple[Any, ...], axis: int, value: Any) -> tuple[Any, ...]:
    return (*each[:axis], value, *each[axis + 1 :])
