"""Reading a product of strategies, such as "zero1(dp=16) * tp(8) * pp(4)"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from psem_model.inputs import LARGEST, BadInput, count, nearest
from spec.compose import PIPELINE, Factor, OverlapError, Product, factor
from spec.mesh import HOST
from spec.model_strategies import MODEL_MEANING
from spec.strategies import MEANING

NAMES = {**MODEL_MEANING, **MEANING}
TOKEN = re.compile(r"\s*(?:([A-Za-z_][\w+\-]*)|([0-9][\w.+]*)|(\S))")


@dataclass(frozen=True)
class Expression:
    """A product of strategies, and the sizes of its axes as far as they are given."""

    text: str
    product: Product
    sizes: dict[str, int]

    @property
    def is_of_states(self) -> bool:
        """Whether it only places the training states, and cuts nothing of the model."""
        return not self.product.cuts and self.product.pipe is None

    @property
    def meanings(self) -> list[str]:
        """What each factor is."""
        return [NAMES[f.name] for f in self.product.factors]


def parse(text: str) -> Expression:
    """A product of strategies. Raises BadInput with the character where it goes wrong."""
    return _Reader(text).expression()


class _Reader:
    """Reads from left to right; `at` is where the last word began."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = list(self._words())
        self.next = 0

    def _words(self) -> Iterator[tuple[str, int]]:
        end = len(self.text.rstrip())
        place = 0
        while place < end:
            found = TOKEN.match(self.text, place)
            if found is None:
                break
            yield found[found.lastindex or 0], found.start(found.lastindex or 0)
            place = found.end()

    @property
    def word(self) -> str:
        return self.words[self.next][0] if self.next < len(self.words) else ""

    def wrong(self, expected: str, back: int = 0) -> BadInput:
        """What is wrong with this word, or one before it."""
        number = self.next - back
        ended = number >= len(self.words)
        word, place = ("", len(self.text.rstrip())) if ended else self.words[number]
        given = "the end" if ended else repr(word)
        where = f"strategy: {self.text.strip()!r}, character {place + 1}"
        return BadInput(f"{where}: given {given}; expected {expected}")

    def take(self) -> str:
        word = self.word
        self.next += 1
        return word

    def expression(self) -> Expression:
        factors: list[Factor] = []
        sizes: dict[str, int] = {}
        starts = []
        while True:
            starts.append(self.next)
            factors.append(self.factor(sizes))
            try:
                product = Product(tuple(factors))
            except OverlapError as error:
                self.next = starts[error.factor]
                raise self.wrong(
                    f"another axis than {error.axis}, which is taken: name one, as in "
                    f"{factors[-1].name}({_other(error.axis)}=2)"
                ) from None
            if sum(f.name == PIPELINE for f in factors) > 1:
                self.next = starts[-1]
                raise self.wrong("one pipeline: pp is taken")
            if self.next == len(self.words):
                return Expression(self.text.strip(), product, sizes)
            if self.take() != "*":
                raise self.wrong("* and another strategy", back=1)

    def factor(self, sizes: dict[str, int]) -> Factor:
        name = self.take()
        if name not in NAMES:
            near = nearest(name, NAMES)
            raise self.wrong(f"one of {', '.join(NAMES)}; nearest: {near}", back=1)
        usual = factor(name).axes
        if self.word != "(":
            return factor(name)
        self.take()
        axes = []
        for number, axis in enumerate(usual):
            if number and self.take() != ",":
                raise self.wrong(f", and the size of {axis}: {name} has {len(usual)} axes", back=1)
            axes.append(self.axis(axis, sizes))
        if self.take() != ")":
            raise self.wrong(f"): {name} has {_axes(usual)}", back=1)
        return factor(name, *axes)

    def axis(self, usual: str, sizes: dict[str, int]) -> str:
        """[AXIS =] SIZE, or AXIS alone."""
        name = usual
        if self.word.isidentifier():
            name = self.take()
            if name == HOST:
                raise self.wrong("another name: host is the host's memory", back=1)
            if self.word != "=":
                return name
            self.take()
        given = self.take()
        try:
            sizes[name] = count("size", given, "devices")
        except BadInput:
            words = f"a whole number of devices, from 1 to 1e{LARGEST}"
            raise self.wrong(words, back=1) from None
        return name


def _axes(axes: tuple[str, ...]) -> str:
    return "one axis" if len(axes) == 1 else f"{len(axes)} axes"


def _other(axis: str) -> str:
    return f"{axis}2"


def parsed(text: str | None) -> Expression | None:
    """A strategy or a product of strategies; nothing, if it is a single name that is none."""
    if text is None or (text.isidentifier() and text not in NAMES):
        return None
    return parse(text)
