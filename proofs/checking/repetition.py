"""T4: that the specification's code repeats steps and micro-steps as the theorem has them.

`verdict` takes a step for repeated if what it leaves is what it found, each value one step later;
`micro_steps` writes what any number of micro-steps leave. Both are run here, on values of every kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from proofs.trusted.terms import KernelError
from spec.checking.forms import Forms
from spec.checking.micro_steps import after_micro_steps
from spec.checking.symbols import Multiplier, SquareNorm, Symbol, frozen, of_other_parts
from spec.checking.verdict import differ, relative
from spec.devices.operators import IDENTITY, SUM_ALL, NormalForm, add
from spec.language.schedule import Buffer, Schedule
from spec.meaning.semantics import CONTENT, Store
from spec.models.states import MIXED_ADAM
from spec.numbers.any_size import Undecided, any_size

AXIS = "axis"
WORDS = (IDENTITY,), (SUM_ALL,)
PLACES = [(buffer, CONTENT) for buffer in Buffer]
KINDS = ("weight", "moment", "gradient", "tied", "fault")
MOVES = 3  # of what a micro-step adds, by later ones: so many are decided


def require_repetition() -> None:
    """That steps are alike if and only if each value is one step later; and what micro-steps leave.

    Raises KernelError.
    """
    forms = _forms(2)
    stores = [{PLACES[0]: (False, {term: 1})} for term in _terms(0)]
    both = zip(_terms(0), _terms(1), strict=True)
    stores += [{PLACES[0]: (False, {one: 1, other: 2})} for one, other in both]
    for (i, one), (k, other) in product(enumerate(stores), repeat=2):
        alike = not any(differ(relative(one, 1, forms), relative(_later(other), 2, forms), forms))
        if alike is not (i == k):
            raise KernelError(
                "a step is taken for repeated otherwise than with each value a step later"
            )
    for store in stores:
        if not any(differ(relative(store, 1, forms), relative(store, 2, forms), forms)):
            raise KernelError("a value that stays as it was is taken for one of a step later")
    for moves, few in product(range(MOVES + 1), range(MOVES + 3, MOVES + 6)):
        try:
            left = _left(moves, few, one_by_one=False)
        except Undecided as no:
            raise KernelError(f"of micro-steps that move what each adds {moves} times: {no}") from no
        if left != _left(moves, few, one_by_one=True):
            raise KernelError("micro-steps leave something else than one after the other")


def _forms(micro_steps: int) -> Forms:
    schedule = Schedule((AXIS,), (), (), ())
    return Forms(schedule, {AXIS: any_size(AXIS)}, micro_steps, MIXED_ADAM, None, {}, False)


def _terms(step: int) -> Iterator[tuple[Symbol, Any]]:
    """Values of every kind of a step: under each word, and times a function of a number."""
    for kind, word in product(KINDS, WORDS):
        symbol = Symbol(kind, step)
        number = frozen({(Symbol("tokens", step), word): 1})
        yield symbol, word
        yield symbol._replace(multipliers=(Multiplier("over", number),)), word
        yield Symbol("norm", step, 0, SquareNorm(frozen({(symbol, word): 1}), (True,), (0,))), word


def _later(store: Store) -> Store:
    """The same values, one step later."""

    def part(of: Any) -> Any:
        if isinstance(of, Symbol):
            return of._replace(
                step=of.step + 1, made_of=part(of.made_of), multipliers=part(of.multipliers)
            )
        return of_other_parts(of, map(part, of)) if isinstance(of, tuple) else of

    return {
        place: (host, {(part(symbol), word): times for (symbol, word), times in form.items()})
        for place, (host, form) in store.items()
    }


def _left(moves: int, micro_steps: int, one_by_one: bool) -> dict[Any, NormalForm]:
    """What micro-steps leave that move what each adds on, so many times, and add it up at last; beside
    it what is the same in all.
    """
    forms = _forms(micro_steps)
    same = forms.symbol("moment", 0)
    chain, total = PLACES[:moves], PLACES[moves]

    def body(store: Store, micro_step: Any) -> None:
        fresh = forms.symbol("gradient", 0, micro_step)
        before = [store[place][1] for place in chain]
        last = before[-1] if before else fresh
        for place, value in zip(chain, [fresh, *before], strict=False):
            store[place] = (False, value)
        store[total] = (False, add(add(store[total][1], same), last))

    store: Store = {
        place: (False, forms.symbol("weight", number)) for number, place in enumerate((*chain, total))
    }
    if one_by_one:
        for m in range(micro_steps):
            body(store, m)
    else:
        store = after_micro_steps(body, forms, store)
    return {place: _each(form, micro_steps) for place, (_, form) in store.items()}


def _each(form: NormalForm, micro_steps: int) -> NormalForm:
    """A form with every micro-step by its number."""
    found: NormalForm = {}
    for (symbol, word), times in form.items():
        which = symbol.which
        last = str(which).removeprefix("last")
        numbers = [which] if isinstance(which, int) else range(micro_steps)
        if str(which).startswith("last"):
            numbers = [micro_steps - 1 - int(last.removeprefix(" but ") or 0)]
        for m in numbers:
            found = add(found, {(symbol._replace(which=m), word): times})
    return {term: times for term, times in found.items() if times}
