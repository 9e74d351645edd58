"""What is required of the specification's code beside the tables of one axis (`axis_tables`).

On several axes it does to each what the tables say of one; of a form of several words it makes the sum
of what it makes of each; of numbers of devices it makes what it makes of any.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from proofs.checking.axis_tables import (
    AXES,
    EACH,
    EVERYBODY,
    LINEAR,
    Form,
    counts,
    entries,
    forms,
    moved,
    moving,
    only,
    places,
    sights,
    words,
)
from proofs.checking.lines import AXIS, FIRST, NAMED, OPERATORS, OWNER
from proofs.checking.symbols import FIRSTS
from proofs.trusted.terms import KernelError
from spec.devices.operators import OTHER, Source
from spec.numbers.any_size import Polynomial, any_size


def require_axes_apart() -> None:
    """On two axes the specification's code does to each what the tables say of one; likewise on three.

    A form has words with coefficients, all of them, or of three axes a sample. Raises KernelError.
    """
    for firsts in (*product(FIRSTS, repeat=2), (FIRST, OWNER, FIRST), (FIRST, FIRST, FIRST)):
        held = _sample(firsts)
        for move, of_target, a in product(LINEAR, (False, True), range(len(firsts))):
            source, target = ({}, held) if of_target else (held, {})
            after = move.of(moving(firsts), source, target, axis=AXES[a])
            expected: dict[Any, Any] = {}
            for ((o,), (q,)), amount in moved(move, firsts[a : a + 1], of_target).items():
                for (symbol, word), times in held.items():
                    if word[a] == OPERATORS[q]:
                        term = symbol, (*word[:a], OPERATORS[o], *word[a + 1 :])
                        expected[term] = expected.get(term, 0) + times * _of_axis(amount, AXES[a])
            _require(f"{move.name} along one axis of several", _without_zeros(after), expected)
        seen = {p: moving(firsts).at(held, p) for p in places(firsts)}
        _require("what devices see on several axes", seen, _seen(firsts, held))
    for firsts in product(FIRSTS, repeat=2):
        one, other = ((first,) for first in firsts)
        for table, of in (("entries", entries), ("only", only), ("counts", counts)):
            _require(f"{table} of two axes", of(firsts), _times(of(one), of(other)))


def require_numbers() -> None:
    """With a number of devices the specification's code makes what it makes of any number.

    With those of which there are all places; there are fewer where there are fewer devices. Raises
    KernelError.
    """
    for first in FIRSTS:
        held = _sample((first,))
        for n in range(2, 5):
            there = forms((first,), sizes=(n,))
            named = NAMED[first]
            positions = [(place,) for place in (*named, *([OTHER] if n > len(named) else []))]
            _require("places of numbers", [*there.device_kinds()], positions)
            for move in LINEAR:
                after = _without_zeros(move.of(there, held, {}))
                found = move.of(moving((first,)), held, {})
                _require(f"{move.name} of numbers", after, _at_size(_without_zeros(found), n))
            for place in positions:
                of_any = {
                    key: amount
                    for key, amount in moving((first,)).at(held, place).items()
                    if Source.REST not in key[1] or n > len({*named, place[0]})
                }
                seen = _without_zeros(_at_size(of_any, n))
                _require("what devices see of numbers", there.at(held, place), seen)


def _sample(firsts: tuple[int, ...]) -> dict[Any, int]:
    """A form with a coefficient of its own for each word; of three axes, for every seventh."""
    every = [*words(firsts)][:: 7 if len(firsts) > 2 else 1]
    return {
        (EACH, tuple(OPERATORS[o] for o in word)): i * i + 3 * i + 7 for i, word in enumerate(every)
    }


def _seen(firsts: tuple[int, ...], held: Form) -> dict[Any, Any]:
    """What devices see of a form, by what they see along each axis of its words."""
    found: dict[Any, Any] = {}
    for at in places(firsts):
        here: dict[Any, Any] = {}
        for (symbol, word), times in held.items():
            along = [
                sights((f,), (OPERATORS.index(o),), (p,))
                for f, p, o in zip(firsts, at, word, strict=True)
            ]
            for of in product(*along):
                key, amount = (symbol, tuple(s for (s,), _ in of)), times
                for _, one in of:
                    amount = amount * one
                here[key] = here.get(key, 0) + amount
        found[at] = _without_zeros(here)
    return found


def _without_zeros(form: Form) -> dict[Any, Any]:
    return {term: amount for term, amount in form.items() if amount != 0}


def _at_size(form: Form, size: int) -> dict[Any, Any]:
    """A form's coefficients, of axes of any size, with a size for the first."""
    return {term: _with_size(amount, size) for term, amount in form.items()}


def _with_size(amount: Any, size: int) -> Any:
    if not isinstance(amount, Polynomial):
        return amount
    found: Any = 0
    for powers, times in amount.terms:
        part: Any = times
        for name, exponent in powers:
            part = part * (size**exponent if name == AXIS else any_size(name))
        found = found + part
    return found


def _times(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> dict[Any, Any]:
    found = {}
    for (x, a), (y, b) in product(one.items(), other.items()):
        key = tuple((*i, *j) for i, j in zip(x, y, strict=True))
        if len(key) < 3 or (EVERYBODY in key[1]) == (set(key[1]) == {EVERYBODY}):
            found[key] = a * _of_axis(b, AXES[1])
    return found


def _of_axis(amount: Any, axis: str) -> Any:
    """An amount of the first axis as of another."""
    if not isinstance(amount, Polynomial):
        return amount
    renamed = (
        (tuple(sorted((axis if name == AXIS else name, e) for name, e in powers)), times)
        for powers, times in amount.terms
    )
    return Polynomial(tuple(renamed))


def _require(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise KernelError(f"{what} are not what they are of one axis after the other")
