"""Normal forms in words: for the reader of a rejection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from spec.arithmetic import Number
from spec.operators import ALL, KEEP, OTHER, NormalForm, Operator, Place, Word

Index = int | str  # of a micro-step: a number, or one of these
EACH = "any one"  # of which nothing is said
EVERY = "every"  # their sum
OWN = "its own"  # in a symbol that is such a sum: each one's
LAST = "last"
Frozen = tuple[tuple[tuple[Any, Word], Number], ...]  # the terms of a normal form, in order


class Symbol(NamedTuple):
    """An original value: of a step, and a micro-step or operation; times functions of numbers."""

    # weight, moment, gradient, tied, tokens, statistic, norm, scaled, fault, unknown, summed, before
    kind: str
    step: int
    which: Index = 0
    made_of: Any = None  # of a norm, a Norm; of a scaled value, a Scaled; of what is not known, why
    factors: tuple[Factor, ...] = ()

    @property
    def known(self) -> bool:
        return self.kind != "unknown"


class Factor(NamedTuple):
    """A function of a number, by which a value is multiplied."""

    function: str  # over: divided by the number; clip: clipped by the norm whose square it is
    number: Frozen


class Norm(NamedTuple):
    """What the square norm of a gradient is made of. Along each axis: whether the gradient differs from
    device to device, and of slices, whose slice this one is.
    """

    gradient: Frozen
    varies: tuple[bool, ...]
    places: tuple[int, ...]


class Scaled(NamedTuple):
    """What a value was before it was multiplied by a factor that differs from device to device."""

    symbol: Symbol
    word: Word
    factor: Factor


BEFORE = "before"  # of symbols: what the earlier micro-steps left, whatever it is
SAME = ("weight", "moment", "statistics")  # symbols that are the same on every device
Position = tuple[Place, ...]  # where a device is along each axis, seen from the element's owner


class Words:
    """What a form is called, at one step of a schedule on some axes."""

    axes: tuple[str, ...]
    step: int
    updated = False  # whether this step's update has run
    same: Callable[[Number, Number], bool]

    def describe_position(self, position: Position) -> str:
        """Which devices."""
        others = [a for a, place in zip(self.axes, position, strict=True) if place is OTHER]
        words = [f"do not own the element along {' and '.join(others)}"] if others else []
        for axis, place in zip(self.axes, position, strict=True):
            if place:
                words.append(f"are {place} after its owner along {axis}")
        return f" on devices that {' and '.join(words)}" if words else ""

    def on(self, form: NormalForm, position: Position) -> NormalForm:
        """What such a device has of a value, as if all devices had it."""
        found: dict[tuple[Symbol, Word], Number] = {}
        for (symbol, word), coefficient in form.items():
            if all(op.to in (ALL, KEEP.to, place) for op, place in zip(word, position, strict=True)):
                whole = (op if op.to in (ALL, KEEP.to) else _everywhere(op) for op in word)
                term = symbol, tuple(whole)
                found[term] = found.get(term, 0) + coefficient
        return found

    def describe(self, form: NormalForm) -> str:
        """A normal form in words."""
        terms = [self._term(term, c) for term, c in form.items() if not self.same(c, 0)]
        if len(terms) > 4:
            terms = [*terms[:3], f"{len(terms) - 3} more terms"]
        return " + ".join(terms) or "nothing"

    def _term(self, term: tuple[Symbol, Word], coefficient: Number) -> str:
        symbol, word = term
        name = self._original(symbol, all(op == KEEP for op in word))
        for axis, op in zip(self.axes, word, strict=True):
            name += _in_words(op, axis)
        return name if self.same(coefficient, 1) else f"{coefficient} x {name}"

    def _original(self, symbol: Symbol, own: bool) -> str:
        age = self.step - symbol.step
        if symbol.kind == "fault":
            return "what an earlier operation got wrong"
        if symbol.kind == "summed":
            return f"the sum over micro-steps of {self._original(symbol.made_of, own)}"
        if symbol.kind == BEFORE:
            return "what earlier micro-steps left"
        if not symbol.known:
            return f"what is not known ({symbol.made_of})"
        if symbol.kind == "norm":
            return f"the square norm of ({self.describe(dict(symbol.made_of.gradient))})"
        if symbol.kind == "scaled":
            scaled: Scaled = symbol.made_of
            return f"({self._term((scaled.symbol, scaled.word), 1)}){self._factor(scaled.factor)}"
        if symbol.kind in SAME:
            if age == 0 and self.updated:
                return f"the {symbol.kind} from before the update"
            when = {0: "current", -1: "updated"}.get(age, f"stale (by {_steps(age)})")
            return f"the {when} {symbol.kind}"
        what = {"gradient": "gradient", "tied": "gradient by the second use"}.get(
            symbol.kind, symbol.kind
        )
        old = "" if age == 0 else f" of {_steps(age)} ago"
        mine = "the device's own " if own else ""
        whose = f"micro-step {symbol.which}"
        if isinstance(symbol.which, str):
            whose = {EVERY: "every micro-step", OWN: "its own micro-step"}.get(symbol.which, whose)
        name = f"{mine}{whose}'s {what}{old}"
        return name + "".join(self._factor(f) for f in symbol.factors)

    def _factor(self, factor: Factor) -> str:
        verb = {"over": "divided by", "clip": "clipped by"}[factor.function]
        return f" {verb} ({self.describe(dict(factor.number))})"


def _everywhere(op: Operator) -> Operator:
    """What devices `to` have, on every device: their own, or the same."""
    return KEEP if op.to == op.of else Operator(ALL, op.of)


def _steps(age: int) -> str:
    return f"{age} step" if age == 1 else f"{age} steps"


def _in_words(op: Operator, axis: str) -> str:
    """What an operator did along an axis."""

    def who(place: Any) -> str:
        return "the owner" if place == 0 else f"the device {place} after the owner"

    if op == KEEP:
        return ""
    if op.to == op.of != ALL:
        return f" only on {who(op.to)} along {axis}"
    took = f" summed over {axis}" if op.of == ALL else f" taken from {who(op.of)} along {axis}"
    return took if op.to == ALL else f"{took}, only on {'its owner' if op.to == 0 else who(op.to)}"


def frozen(form: NormalForm) -> Frozen:
    """A form as a part of a symbol."""
    return tuple(sorted(form.items(), key=lambda item: repr(item[0])))


def mentions(part: Any, what: str) -> bool:
    """Whether there is a symbol of a kind, or an index, in a part of a symbol."""
    inner = part if isinstance(part, tuple) else ()
    return part == what or any(mentions(p, what) for p in inner)
