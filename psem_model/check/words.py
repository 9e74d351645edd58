"""A rejection in words: what a value has, and what it needs, of normal forms."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spec.checking.forms import Unmet
from spec.checking.symbols import (
    BEFORE,
    EACH,
    EVERY,
    LAST,
    OWN,
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
from spec.checking.verdict import Verdict
from spec.devices.operators import ALL, IDENTITY, OTHER, NormalForm, Offset, Operator, Word
from spec.language.schedule import neighbour
from spec.numbers.arithmetic import Number


def has(verdict: Verdict) -> str:
    """What a rejected schedule has; empty if it is accepted."""
    why = verdict.why
    return _has(why) if isinstance(why, Unmet) else why[0]


def needs(verdict: Verdict) -> str:
    """What it needs instead."""
    why = verdict.why
    if not isinstance(why, Unmet):
        return why[1]
    return why.need.of + _words_of(why).describe(why.need.needs)


def reason(verdict: Verdict) -> str:
    """The rejection in words, with the operation."""
    op = verdict.op
    where = f"{op.kind.value} {op.source.value}" if op else "at the end of the step"
    return f"{where}: {has(verdict)}; needs {needs(verdict)}"


def _words_of(why: Unmet) -> Words:
    forms = why.forms
    return Words(forms.axes, forms.cut, forms.roots, forms.micro_steps, why.step, why.updated)


def _has(why: Unmet) -> str:
    need, words = why.need, _words_of(why)
    where = words.describe_position(_telling(why, words))
    if why.not_known:
        return f"{where}{need.words} not known: {why.not_known}"
    return f"{where}{need.words} {need.of}{words.describe(words.on(need.has, why.position))}"


def _telling(why: Unmet, words: Words) -> dict[str, Offset]:
    """Where a device with a difference is, along the axes along which others are better off, or have
    something else; an operation's own slices go without saying.
    """
    forms, form, position = why.forms, why.need.has, why.position
    here, said = words.on(form, position), why.op.within if why.op else ()

    def alike(other: Offsets) -> bool:
        return words.on(form, other) == here and bool(forms.at(why.difference, other))

    near = [p for p in forms.device_kinds() if sum(map(operator.ne, p, position)) == 1]
    unlike = [p for p in near if not alike(p)]
    return {
        axis: place
        for i, (axis, place) in enumerate(zip(words.axes, position, strict=True))
        if axis not in said and any(p[i] != place for p in unlike)
    }


NAMES = {
    "weight": "weights",
    "moment": "moments",
    "gradient": "gradients",
    "tied": "tied gradients",
    "statistic": "samples' statistics",
}
SUMS = (" + ", " - ")
JOINTS = (*SUMS, " x ", " / ", " summed ", ", ")  # of what is in words more than a name


@dataclass(frozen=True)
class Words:
    """What a form is called, at one step of a schedule on some axes."""

    axes: tuple[str, ...]
    cut: tuple[str, ...]  # axes along which anything is sliced
    roots: Mapping[str, int]  # places of the first device after the element's owner
    micro_steps: Number
    step: int
    updated: bool = False  # whether this step's update has run

    def describe_position(self, position: Mapping[str, Offset]) -> str:
        """Which elements of a device, or which devices, to say something of."""
        words = []
        for axis, place in position.items():
            if axis not in self.cut:
                all_but = "" if place == self.roots.get(axis, 0) else "all but "
                words.append(f"on {all_but}the first device along {axis}")
            elif place is OTHER:
                words.append(f"outside a device's own slice along {axis}")
            else:
                words.append(f"in {_slice(place, axis)}")
        return " and ".join(words) + ", " * bool(words)

    def on(self, form: NormalForm, position: Offsets) -> NormalForm:
        """What such a device has of a value, as if all devices had it."""
        found: dict[tuple[Symbol, Word], Number] = {}
        for (symbol, word), coefficient in form.items():
            if all(
                op.to in (ALL, IDENTITY.to, place) for op, place in zip(word, position, strict=True)
            ):
                whole = (op if op.to in (ALL, IDENTITY.to) else _everywhere(op) for op in word)
                term = symbol, tuple(whole)
                found[term] = found.get(term, 0) + coefficient
        return {term: c for term, c in found.items() if c != 0}

    def describe(self, form: NormalForm) -> str:
        """A normal form in words: sums of terms with the same factors."""
        groups: dict[tuple[Multiplier, ...], dict[Any, Number]] = {}
        for (symbol, word), c in form.items():
            if c != 0:
                inner = tuple(f for f in symbol.multipliers if _varies(f, word))
                outer = tuple(f for f in symbol.multipliers if f not in inner)
                groups.setdefault(outer, {})[symbol._replace(multipliers=inner), word] = c
        words = [self._group(factors, part) for factors, part in groups.items()]
        return _joined([_in_brackets(w, (", ",)) for w in words] if len(words) > 1 else words)

    def _group(self, factors: tuple[Multiplier, ...], form: dict[Any, Number]) -> str:
        """Terms times functions of numbers that are the same wherever the terms are summed."""
        numbers = [*form.values()]
        common = numbers[0] if all(c == numbers[0] for c in numbers) else 1
        terms = [_multiple(c if common == 1 else 1, self._term(*term)) for term, c in form.items()]
        if len(terms) > 4:
            terms = [*terms[:3], f"{len(terms) - 3} more terms"]
        words = _joined(terms)
        for factor in factors:
            words = self._factor(words, factor, frozen(dict.fromkeys(form, 1)))
        return _multiple(common, words)

    def _term(self, symbol: Symbol, word: Word) -> str:
        name = self._original(symbol, word)
        if symbol.kind == "norm":
            varies = symbol.made_of.varies
            word = tuple(op if own else IDENTITY for op, own in zip(word, varies, strict=True))
        summed = [axis for axis, op in zip(self.axes, word, strict=True) if op.of == ALL]
        if (symbol.multipliers or symbol.kind == "scaled") and any(op != IDENTITY for op in word):
            name = _in_brackets(name)
        name += f" summed over {_and(summed)}" if summed else ""
        for axis, op in zip(self.axes, word, strict=True):
            name = self._moved(name, op, axis)
        return name

    def _original(self, symbol: Symbol, word: Word) -> str:
        if symbol.kind == "fault":
            return "what an earlier operation got wrong"
        if symbol.kind == "summed":
            return f"the sum over micro-steps of {_in_brackets(self._original(symbol.made_of, word))}"
        if symbol.kind == BEFORE:
            return "what earlier micro-steps left"
        if not symbol.known:
            return f"what is not known ({symbol.made_of})"
        if symbol.kind == "norm":
            return f"the square norm of {self._normed(symbol, word, '')}"
        if symbol.kind == "scaled":
            scaled: Scaled = symbol.made_of
            words = self._term(scaled.symbol, scaled.word)
            return self._factor(words, scaled.multiplier, frozen({(scaled.symbol, scaled.word): 1}))
        what, age = NAMES.get(symbol.kind, symbol.kind), self.step - symbol.step
        if symbol.kind in SAME:
            now = f"the {what} from before the update" if self.updated else f"the current {what}"
            now = f"the {what} from before the step" if symbol.kind == "statistics" else now
            ago = f"last step's {what}" if age == 1 else f"the {what} of {age} steps ago"
            return {0: now, -1: f"the updated {what}"}.get(age, ago)
        own = "device's own " if word and all(op == IDENTITY for op in word) else ""
        name = f"the {own}{what}{self._of(symbol.which)}"
        name += "" if age == 0 else f" of {'last step' if age == 1 else f'{age} steps ago'}"
        for factor in symbol.multipliers:
            bare = symbol._replace(multipliers=())
            name = self._factor(name, factor, frozen({(bare, word): 1}))
        return name

    def _of(self, which: MicroStep) -> str:
        """Which micro-step's; nothing if there is one only."""
        if self.micro_steps == 1 or which == OWN:
            return ""
        if isinstance(which, int):
            return f" of micro-step {which + 1}"
        known = {EVERY: "all micro-steps", EACH: "one micro-step"}
        return f" of {known.get(which, which.replace(LAST, 'the last micro-step'))}"

    def _factor(self, words: str, factor: Multiplier, value: Frozen) -> str:
        """A value in words, times a function of a number."""
        if factor.function == "over":
            return f"{_in_brackets(words)} / {_in_brackets(self.describe(dict(factor.number)))}"
        by = []
        for (symbol, word), times in factor.number:
            is_its = symbol.kind == "norm" and symbol.made_of.gradient == value
            norm = self._normed(symbol, word, "them") if is_its else ""
            norm = "their square norm" if norm == "them" else norm and f"the square norm of {norm}"
            by.append(_multiple(times, norm or self._term(symbol, word)))
        return f"{words}, clipped by {_joined(by)}"

    def _normed(self, symbol: Symbol, word: Word, name: str) -> str:
        """Of what it is the norm: all of a gradient, or a slice of it."""
        norm: SquareNorm = symbol.made_of
        name = name or _in_brackets(self.describe(dict(norm.gradient)))
        for axis, op, varies, place in zip(self.axes, word, norm.varies, norm.places, strict=True):
            if op == IDENTITY and not varies:
                name = _slice(place, axis, f" of {name}")
        return name

    def _moved(self, name: str, op: Operator, axis: str) -> str:
        """A value by where it comes from along an axis, and which devices have it."""
        if isinstance(op.of, int) and op.of != op.to:
            if axis not in self.cut or (op.of == self.roots.get(axis) != 0):
                name = f"the first device's {name.removeprefix('the ')} along {axis}"
            else:
                name += f", gathered over {axis}"
                name += f", each slice from {neighbour(op.of)}" if op.of else ""
        return name if op.to in (ALL, IDENTITY.to) else f"{name}, in {_slice(op.to, axis)} only"


def _varies(factor: Multiplier, word: Word) -> bool:
    """Whether a number differs between devices over which the value it multiplies is summed."""
    words = [other for (_, other), _ in factor.number]
    return any(
        op != IDENTITY and any(other[i] == IDENTITY for other in words) for i, op in enumerate(word)
    )


def _everywhere(op: Operator) -> Operator:
    """What devices `to` have, on every device: their own, or the same."""
    return IDENTITY if op.to == op.of else Operator(ALL, op.of)


def _slice(place: Any, axis: str, of: str = "") -> str:
    """The slice in which an element is of whose owner a device is some places after."""
    if place:
        return f"the slice{of} along {axis} that {neighbour(-place)} owns"
    return f"a device's own slice{of} along {axis}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _in_brackets(words: str, joints: Sequence[str] = JOINTS) -> str:
    """What is more than a name, as a part of something else."""
    outside = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", words))
    return f"({words})" if any(joint in outside for joint in joints) else words


def _multiple(times: Number, words: str) -> str:
    if times == 1:
        return words
    sign, number = ("-", str(-1 * times)) if str(times).startswith("-") else ("", str(times))
    return f"{sign}{_in_brackets(number, SUMS)} x {_in_brackets(words, (*SUMS, ', '))}"


def _joined(terms: Sequence[str]) -> str:
    """A sum in words; what is taken away is written with a minus."""
    return " + ".join(terms or ["zero"]).replace("+ -1 x ", "- ").replace("+ -", "- ")
