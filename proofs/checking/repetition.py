"""T4: that the specification's code repeats steps and micro-steps as the theorem has them.

`verdict` takes a step for repeated if what it leaves is what it found, each value one step later;
`micro_steps` writes what any number of micro-steps leave, or says nothing. Both are run here, on values
of every kind, and on steps and micro-steps in which what matters comes late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from proofs.checking.late_steps import require_late_steps
from proofs.trusted.terms import KernelError
from spec.checking.forms import Forms
from spec.checking.micro_steps import after_micro_steps
from spec.checking.symbols import OWN, Multiplier, SquareNorm, Symbol, frozen, of_other_parts
from spec.checking.verdict import differ, relative
from spec.devices.operators import IDENTITY, SUM_ALL, NormalForm, add, scale
from spec.language.schedule import MICRO_STEPS, Buffer, Monomial, Schedule
from spec.meaning.semantics import CONTENT, BufferPart, Store
from spec.models.states import MIXED_ADAM
from spec.numbers.any_size import Comparison, Polynomial, Undecided, any_size
from spec.numbers.arithmetic import Number

AXIS, OTHER = "axis", "other"
WORDS = (IDENTITY,), (SUM_ALL,)
PLACES = [(buffer, CONTENT) for buffer in Buffer]
KINDS = ("weight", "moment", "gradient", "tied", "fault")
FRESH, ZERO = "what it adds", "nothing"
MOVES = 3  # of what a micro-step adds, by later ones: so many are decided
MANY = MOVES + 5  # micro-steps, more than are looked at by themselves


def require_repetition() -> None:
    """That steps are alike if and only if each value is one step later; and what micro-steps leave.

    Raises KernelError.
    """
    forms = _forms(2)
    stores = [{PLACES[0]: (False, {term: 1})} for term in _terms(0)]
    both = zip(_terms(0), _terms(1), strict=True)
    stores += [{PLACES[0]: (False, {one: 1, other: 2})} for one, other in both]
    ends = [relative(store, 1, forms) for store in stores]
    later = [relative(_later(store), 2, forms) for store in stores]
    for (i, one), (k, other) in product(enumerate(ends), enumerate(later)):
        if any(differ(one, other, forms)) is (i == k):
            raise KernelError(
                "a step is taken for repeated otherwise than with each value a step later"
            )
    for store, end in zip(stores, ends, strict=True):
        if not any(differ(end, relative(store, 2, forms), forms)):
            raise KernelError("a value that stays as it was is taken for one of a step later")
    form: NormalForm = {(Symbol(KINDS[0], 0), word): times for times, word in enumerate(WORDS, 1)}
    if frozen(form) != frozen(dict([*form.items()][::-1])):
        raise KernelError("the terms of a form are in another order, and it is another")
    for each in _bodies():
        _require_as_one_by_one(each)
    require_late_steps()


def _require_as_one_by_one(body: Body) -> None:
    """That so many micro-steps leave what they do one after the other, if anything is said of them."""
    one_by_one = dict(_one_by_one(body))
    for number in (any_size(MICRO_STEPS), MANY):
        try:
            left, apart = _left(body, number)
        except Undecided as no:
            if body.is_decided:
                raise KernelError(f"of micro-steps that move on what each adds: {no}") from no
            continue
        if body.is_decided and not apart <= {*range(1, MOVES + 1)}:
            raise KernelError(f"nothing is said of {apart} micro-steps that move on what each adds")
        for m in [MANY] if number == MANY else {*one_by_one} - apart:
            if _each(left, m) != one_by_one[m]:
                raise KernelError(f"{m} micro-steps leave something else than one after the other")


def _forms(
    micro_steps: Number, comparison: Comparison | None = None, on_two_axes: bool = False
) -> Forms:
    mesh = {AXIS: 2, OTHER: 3} if on_two_axes else {AXIS: any_size(AXIS)}
    schedule = Schedule(tuple(mesh), (), (), ())
    return Forms(schedule, mesh, micro_steps, MIXED_ADAM, comparison, {}, False)


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


@dataclass(frozen=True)
class Body:
    """What a micro-step does to a store; whether what any number of such leave must be decided; and
    what is there at first: weights, by their steps, and what is not known. In all other places 0 is.
    `on_host`: those of the places that are on the host's side. `on_two_axes`: of two and three devices.
    """

    run: Callable[[Forms, Store, Any], None]
    is_decided: bool = False
    weights: Mapping[BufferPart, int] = field(default_factory=dict)
    not_known: Sequence[BufferPart] = ()
    on_host: Sequence[BufferPart] = ()
    on_two_axes: bool = False


def _bodies() -> Iterator[Body]:
    """Micro-steps that move on what each adds, so many times, and add it up at last; and others, of
    which nothing may be said: all by which two places take what is in one of them, or what is added.
    """
    for moves in range(MOVES + 1):
        of_other_steps = {place: step for step, place in enumerate(PLACES[: moves + 1])}
        yield Body(partial(_moves_on, moves, True), True, of_other_steps)
        yield Body(partial(_moves_on, moves, False))
    yield from (Body(partial(_moves_on, MOVES, False), not_known=[place]) for place in PLACES[:MOVES])
    yield Body(_takes_off, weights={PLACES[1]: 0})
    yield from map(Body, (_adds_sums, _divides, _adds_norms))
    yield Body(_adds_quotients, True)
    yield from (Body(partial(_adds_and_means, axis), True, on_two_axes=True) for axis in (AXIS, OTHER))
    two = PLACES[:2]
    for sources in product((*two, FRESH, ZERO), repeat=2):
        alike = Body(partial(_takes, sources), weights=dict.fromkeys(two, 0))
        yield replace(alike, weights={place: step for step, place in enumerate(two)})
        yield from (replace(alike, not_known=two[:1]), replace(alike, on_host=two[:1]))


def _takes(sources: Sequence[Any], forms: Forms, store: Store, micro_step: Any) -> None:
    """Each place takes what was in one of them, what the micro-step adds, or zero."""
    values = {FRESH: (False, forms.symbol("gradient", 0, micro_step)), ZERO: (False, forms.zero)}
    store |= zip(PLACES, [(store | values)[source] for source in sources], strict=False)


def _moves_on(moves: int, adds_the_same: bool, forms: Forms, store: Store, micro_step: Any) -> None:
    """Beside it may be added what is the same in all; else the sum is, at first, as it was."""
    chain, total = PLACES[:moves], PLACES[moves]
    fresh = forms.symbol("gradient", 0, micro_step)
    before = [store[place][1] for place in chain]
    last = before[-1] if before else fresh
    for place, value in zip(chain, [fresh, *before], strict=False):
        store[place] = (False, value)
    same = forms.symbol("moment", 0) if adds_the_same else forms.zero
    store[total] = (False, add(add(store[total][1], same), last))


def _takes_off(forms: Forms, store: Store, micro_step: Any) -> None:
    """A backward at weights to which the micro-step before added, and which it took off again."""
    added, weights, total = PLACES[:3]
    weight = add(store[weights][1], scale(store[added][1], -1))
    fresh = forms.gradient(weight, forms.symbol("weight", 0), micro_step, ())
    store[added] = (False, fresh)
    store[weights] = (False, add(weight, fresh))
    store[total] = (False, add(store[total][1], fresh))


def _adds_sums(forms: Forms, store: Store, micro_step: Any) -> None:
    """Of what each adds there is more after every later one."""
    added, total = PLACES[:2]
    store[added] = (False, add(store[added][1], forms.symbol("gradient", 0, micro_step)))
    store[total] = (False, add(store[total][1], store[added][1]))


def _divides(forms: Forms, store: Store, micro_step: Any) -> None:
    """What all before have added is divided by the micro-step's own count."""
    added = add(store[PLACES[0]][1], forms.symbol("gradient", 0, micro_step))
    store[PLACES[0]] = (False, forms.divide(added, forms.symbol("tokens", 0, micro_step)))


def _adds_norms(forms: Forms, store: Store, micro_step: Any) -> None:
    """To the norm of what all before have added is added that with the micro-step's own."""
    added, total = PLACES[:2]
    store[added] = (False, add(store[added][1], forms.symbol("gradient", 0, micro_step)))
    store[total] = (False, add(store[total][1], forms.square_norm(store[added][1])))


def _adds_quotients(forms: Forms, store: Store, micro_step: Any) -> None:
    """Weights, and what the micro-step makes, over its count are added."""
    for kind, index in (("weight", 0), ("gradient", micro_step)):
        made = forms.divide(forms.symbol(kind, 1, index), forms.symbol("tokens", 1, micro_step))
        store[PLACES[0]] = (False, add(store[PLACES[0]][1], made))


def _adds_and_means(axis: str, forms: Forms, store: Store, micro_step: Any) -> None:
    """Of what there is, and what is added, the mean along an axis is left."""
    added = add(store[PLACES[0]][1], forms.symbol("gradient", 0, micro_step))
    mean = forms.scale(forms.sum(added, axis), Monomial(powers=((axis, -1),)))
    store[PLACES[0]] = (False, mean)


def _left(body: Body, micro_steps: Number) -> tuple[Store, set[int]]:
    """What micro-steps leave, and the numbers of them of which it says nothing."""
    forms = _forms(micro_steps, comparison := Comparison(), body.on_two_axes)
    left = after_micro_steps(partial(_run, body, forms), forms, _begin(body, forms))
    return left, comparison.exempt.get(MICRO_STEPS, set())


def _one_by_one(body: Body) -> Iterator[tuple[int, Store]]:
    """What so many micro-steps leave, each after the one before."""
    forms = _forms(MANY, on_two_axes=body.on_two_axes)
    store = _begin(body, forms)
    for m in range(MANY):
        _run(body, forms, store, m)
        yield m + 1, _each(store, m + 1)


def _begin(body: Body, forms: Forms) -> Store:
    store: Store = dict.fromkeys(PLACES[: MOVES + 1], (False, forms.zero))
    store |= {place: (False, forms.symbol("weight", step)) for place, step in body.weights.items()}
    store |= {place: (False, forms.unknown("")) for place in body.not_known}
    return store | {place: (True, store[place][1]) for place in body.on_host}


def _run(body: Body, forms: Forms, store: Store, micro_step: Any) -> None:
    forms.micro_step = micro_step
    body.run(forms, store, micro_step)


def _each(store: Store, micro_steps: int) -> Store:
    """A store after so many micro-steps, with every one of them by its number."""
    return {place: (host, _of_each(form, micro_steps)) for place, (host, form) in store.items()}


def _of_each(form: NormalForm, micro_steps: int) -> NormalForm:
    found: NormalForm = {}
    for (symbol, word), times in form.items():
        which = symbol.which
        last = str(which).removeprefix("last")
        numbers = [which] if isinstance(which, int) else range(micro_steps)
        if str(which).startswith("last"):
            numbers = [micro_steps - 1 - int(last.removeprefix(" but ") or 0)]
        if isinstance(times, Polynomial):
            times = times.at({MICRO_STEPS: micro_steps})
        for m in numbers:
            named = _named(symbol, m)
            is_sum = symbol.kind == "summed"
            one = named.made_of._replace(step=symbol.step) if is_sum else named._replace(which=m)
            found = add(found, {(one, word): times})
    return {term: times for term, times in found.items() if times}


def _named(part: Any, m: int) -> Any:
    """A part of a symbol, of a sum over micro-steps, as it is of one of them."""
    if isinstance(part, tuple):
        return of_other_parts(part, (_named(each, m) for each in part))
    return m if part == OWN else part
