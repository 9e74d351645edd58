"""Reading a product of strategies, such as "zero1(dp=16) * tp(8) * pp(4)"."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from itertools import count as count_from
from string import digits

from psem_model.reading.fully_sharded import FULLY_SHARDED, factor
from psem_model.reading.words import LARGEST, count, is_axis
from psem_model.text.errors import BadInput, nearest, or_nearest, quoted, shortened
from spec.plans.compose import (
    OVER_ALL,
    PIPELINE,
    HoldError,
    OverAllError,
    OverlapError,
    Product,
)
from spec.plans.model_strategies import MODEL_MEANING
from spec.plans.strategies import STRATEGY_MEANING

EVERYWHERE = {
    name: f"{STRATEGY_MEANING[one]}; over every axis that gradients are summed over"
    for name, one in OVER_ALL.items()
}
NAMES = {**MODEL_MEANING, **STRATEGY_MEANING, **FULLY_SHARDED, **EVERYWHERE}
MOST_FACTORS = 64
TOKEN = re.compile(r"[A-Za-z_][\w+\-]*|[0-9][\w.+]*|\S")


def is_file(text: str) -> bool:
    """Whether it names a file, rather than a strategy or a product of strategies."""
    of_a_file = os.path.exists(text) or os.sep in text or text.endswith(".toml")
    return of_a_file and text not in NAMES


@dataclass(frozen=True)
class Expression:
    """A product of strategies, and the sizes of its axes as far as they are given.

    Where each factor begins, and each axis's size, in characters from 0.
    """

    text: str
    product: Product
    sizes: dict[str, int]
    starts: tuple[int, ...]
    places: dict[str, int]

    @property
    def is_of_states(self) -> bool:
        """Whether it only places the training states, and cuts nothing of the model."""
        return not self.product.cuts and self.product.pipe is None

    @property
    def meanings(self) -> list[str]:
        """What each factor is."""
        return meant_by(self.product)

    def wrong_factor(self, number: int, expected: str, without: str = "") -> BadInput:
        """What is wrong with one of its factors, counted from 0."""
        given = f"{quoted(self.product.factors[number].name)}{without}"
        return wrong_at(self.text, self.starts[number], given, expected)

    def wrong_size(self, axis: str, given: str, expected: str) -> BadInput:
        """What is wrong with an axis's size, here or in --devices."""
        if axis in self.places:
            return wrong_at(self.text, self.places[axis], given, expected)
        return BadInput(f"--devices: given {given}, for {quoted(self.text)}; expected {expected}")


def meant_by(product: Product) -> list[str]:
    """What each factor is that has a name of its own, but for copies within another."""
    named = (f for f in product.factors if not (f.cuts and f.cuts.copies_of))
    return [NAMES[f.name] for f in named if f.name in NAMES]


def wrong_at(text: str, place: int, given: str, expected: str) -> BadInput:
    """What is wrong at a character of an expression, counted from 0; nowhere, if that is all of it."""
    where = "" if given == quoted(text) else f"{quoted(text)}, character {place + 1:,}: "
    return BadInput(f"strategy: {where}given {given}; expected {expected}")


def parse(text: str) -> Expression:
    """A product of strategies. Raises BadInput with the character where it goes wrong."""
    return _Reader(text.strip()).expression()


@dataclass(frozen=True)
class _Axis:
    """An axis of a factor: where it begins, and its size with its place, if it is given."""

    name: str
    place: int
    size: int | None = None
    place_of_size: int = 0


@dataclass(frozen=True)
class _Factor:
    """A factor as it is written, from character `place` on."""

    name: str
    place: int
    axes: tuple[_Axis, ...]


class _Reader:
    """Reads from left to right; `next` is the number of the next word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [(found[0], found.start()) for found in TOKEN.finditer(text)]
        self.next = 0

    @property
    def word(self) -> str:
        return self.words[self.next][0] if self.next < len(self.words) else ""

    @property
    def place(self) -> int:
        return self.words[self.next][1] if self.next < len(self.words) else len(self.text)

    def wrong(self, expected: str, back: int = 0) -> BadInput:
        """What is wrong with this word, or one before it."""
        self.next -= back
        return wrong_at(self.text, self.place, quoted(self.word) if self.word else "the end", expected)

    def wrong_from(self, place: int, expected: str) -> BadInput:
        """What is wrong with the word at this character."""
        word = next(word for word, at in self.words if at == place)
        return wrong_at(self.text, place, quoted(word), expected)

    def take(self) -> str:
        word = self.word
        self.next += 1
        return word

    def expression(self) -> Expression:
        read: list[_Factor] = []
        while True:
            read.append(self.factor())
            product = self.product(read)
            if self.next == len(self.words):
                break
            if len(read) == MOST_FACTORS:
                raise self.wrong(f"the end: at most {MOST_FACTORS} strategies")
            if self.take() != "*":
                raise self.wrong("* and another strategy", back=1)
        self.require_spelled(read)
        sized = [(axis, axis.size) for f in read for axis in f.axes if axis.size is not None]
        sizes: dict[str, int] = {}
        for axis, size in sized:
            if sizes.setdefault(axis.name, size) != size:
                words = f"{sizes[axis.name]}, as {axis.name} has above, or no size"
                raise wrong_at(self.text, axis.place_of_size, str(size), words)
        return Expression(
            self.text,
            product,
            sizes,
            tuple(f.place for f in read),
            {axis.name: axis.place_of_size for axis, _ in sized},
        )

    def require_spelled(self, read: Sequence[_Factor]) -> None:
        """Raise BadInput for an axis without a size whose name is nearly that of another factor's."""
        for factor_ in read:
            others = {axis.name for f in read if f is not factor_ for axis in f.axes}
            for axis in factor_.axes:
                near = "" if axis.name in others else nearest(axis.name, others)
                named = axis.place != factor_.place and axis.size is None
                if named and near and axis.name.rstrip(digits) != near.rstrip(digits):
                    words = f"an axis of the plan, or a name unlike those; nearest: {near}"
                    raise self.wrong_from(axis.place, words)

    def product(self, read: Sequence[_Factor]) -> Product:
        """What is read so far."""
        *others, last = read
        if last.name == PIPELINE and PIPELINE in {f.name for f in others}:
            raise self.wrong_from(last.place, "one pipeline: pp is taken")
        try:
            return Product(tuple(factor(f.name, *(axis.name for axis in f.axes)) for f in read))
        except OverlapError as error:
            place = [axis.place for axis in last.axes if axis.name == error.axis][-1]
            free = _renamed(last, {axis.name for f in others for axis in f.axes})
            taken = shortened(error.axis)
            stages = any(f.name == PIPELINE and error.axis in {a.name for a in f.axes} for f in read)
            why = "whose stages have states of their own" if stages else "which is taken"
            words = f"another axis than {taken}, {why}: name one, as in {shortened(free)}"
            raise self.wrong_from(place, words) from None
        except (HoldError, OverAllError) as error:
            raise self.wrong_from(read[error.factor].place, error.expected) from None

    def factor(self) -> _Factor:
        place, name = self.place, self.take()
        if name not in NAMES:
            from psem_model.reading.profiles import packaged

            other = f"; {name} is a profile" if name in packaged() else ""
            raise self.wrong(f"one of {', '.join(NAMES)}{or_nearest(name, NAMES)}{other}", back=1)
        usual = factor(name).axes
        if self.word != "(":
            return _Factor(name, place, tuple(_Axis(axis, place) for axis in usual))
        self.take()
        axes = []
        for number, axis in enumerate(usual):
            if number and self.take() != ",":
                raise self.wrong(f", and the size of {axis}: {name} has {len(usual)} axes", back=1)
            axes.append(self.axis(axis, place))
        if self.take() != ")":
            raise self.wrong(f"): {name} has {_axes(usual)}", back=1)
        return _Factor(name, place, tuple(axes))

    def axis(self, usual: str, place: int) -> _Axis:
        """[AXIS =] SIZE, or AXIS alone. What has its usual name begins where its factor does."""
        name = usual
        if self.word.isidentifier():
            place, name = self.place, self.take()
            if not is_axis(name):
                raise self.wrong("a name such as batch", back=1)
            if self.word != "=":
                return _Axis(name, place)
            self.take()
        place_of_size, given = self.place, self.take()
        try:
            return _Axis(name, place, count("size", given, "devices"), place_of_size)
        except BadInput:
            words = f"a whole number of devices, at least 1, below 1e{LARGEST}"
            raise self.wrong(words, back=1) from None


def require_different(plans: Sequence[Expression]) -> None:
    """Raise BadInput for a plan that is given twice, however it is written."""
    for number, plan in enumerate(plans):
        if any(_shape(plan) == _shape(other) for other in plans[:number]):
            raise BadInput(f"strategies: given {quoted(plan.text)} twice; expected plans that differ")


def _shape(plan: Expression) -> list[tuple[str, tuple[int | None, ...]]]:
    """Its factors and their sizes, whatever the axes are called."""
    return [(f.name, tuple(plan.sizes.get(axis) for axis in f.axes)) for f in plan.product.factors]


def _renamed(read: _Factor, taken: set[str]) -> str:
    """The same factor on axes that are free."""
    named: list[str] = []
    sizes = []
    for axis in read.axes:
        others = (f"{axis.name}{number}" for number in count_from(2))
        free = chain([axis.name], others)
        named.append(next(name for name in free if name not in taken | {*named}))
        sizes.append("" if axis.size is None else f"={axis.size}")
    return f"{read.name}({', '.join(map(str.__add__, named, sizes))})"


def _axes(axes: tuple[str, ...]) -> str:
    return "one axis" if len(axes) == 1 else f"{len(axes)} axes"
