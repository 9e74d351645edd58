"""Any number of micro-steps: what they leave, found from the first few and one in general.

Whatever X a micro-step finds in the places that micro-steps change, it leaves T X + D(i): T combines
and moves what was there, D(i) is what the micro-step of index i adds. If T^(k+1) D = T^k D, m leave

    T^(m-1) (what the first left) + the sum over i = 1, ..., m - 1 of T^k D(i)

with T^j D(m - 1 - j) in place of T^k D(m - 1 - j) for the last k, j < k. Where micro-steps add to
sums, T is the identity and k is 0. Theorem: T4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spec.checking.algebra import split
from spec.checking.forms import Forms
from spec.checking.symbols import (
    BEFORE,
    EACH,
    EVERY,
    LAST,
    OWN,
    MicroStep,
    Symbol,
    mentions,
    of_other_parts,
)
from spec.devices.operators import IDENTITY, NormalForm, add, apply_operator, scale
from spec.meaning.semantics import BufferPart, Store
from spec.numbers.any_size import Polynomial, Undecided

_Held = dict[BufferPart, NormalForm]

LONGEST = 3  # nothing is decided of what a later micro-step than this many still moves


def after_micro_steps(body: Callable[[Store, MicroStep], None], forms: Forms, store: Store) -> Store:
    """The store after `forms.micro_steps` runs of a body. Raises Undecided.

    `body` runs one micro-step of an index, in place.
    """

    def after(start: Store, index: MicroStep) -> Store:
        found = dict(start)
        body(found, index)
        return {place: (host, forms.simplified(form)) for place, (host, form) in found.items()}

    begun = [after(store, 0)]
    while len(begun) < 2 or not all(_alike(begun[-1], begun[-2], p) for p in begun[-1]):
        if len(begun) > LONGEST:
            raise Undecided("micro-steps leave buffers on other sides, or known in other places")
        begun.append(after(begun[-1], len(begun)))
    last = begun.pop()
    changing = [place for place, found in last.items() if begun[-1][place] != found]
    before = dict(last)
    for place in changing:
        host, was = last[place]
        symbol = Symbol(BEFORE, forms.step, made_of=place)
        before[place] = (host, {(symbol, (IDENTITY,) * len(forms.axes)): 1, **split(was)[1]})
    general = after(before, EACH)
    for place in last:  # every micro-step leaves the same buffers
        same = last[place] == general[place]
        if not (_alike(last, general, place) if place in changing else same):
            raise Undecided(f"micro-steps leave the {place[0].value} in different ways")

    left = {place: split(general[place][1])[0] for place in changing}
    kept: _Held = {p: {t: c for t, c in form.items() if _is_before(t[0])} for p, form in left.items()}
    added: _Held = {
        p: {t: c for t, c in form.items() if not _is_before(t[0])} for p, form in left.items()
    }
    *early, start = _moved({p: split(begun[-1][p][1])[0] for p in changing}, kept, forms)
    *late, settled = _moved(added, kept, forms)
    _set_apart(forms, len(begun) + max(len(early), len(late)))

    result = dict(last)
    for place in changing:
        form: NormalForm = add(start[place], _sum(settled[place], forms.micro_steps))
        for i in range(len(begun)):
            form = add(form, scale(_at(settled[place], i), -1))
        for k, values in enumerate(late):
            other = add(values[place], scale(settled[place], -1))
            form = add(form, _at(other, f"{LAST} but {k}" if k else LAST))
        host, was = last[place]
        result[place] = (host, forms.simplified(form) | split(was)[1])
    return result


def _alike(store: Store, other: Store, place: BufferPart) -> bool:
    """Whether a place is on the same side in two stores, and known on the same devices."""
    (host, form), (there, found) = store[place], other[place]
    return host is there and {*split(form)[1]} == {*split(found)[1]}


def _is_before(symbol: Symbol) -> bool:
    """Whether a term is what was there before. Raises Undecided if it is a function of that."""
    if symbol.kind == BEFORE and not symbol.multipliers:
        return True
    if mentions(symbol, BEFORE):
        raise Undecided("a micro-step multiplies what earlier ones left by what depends on it")
    return False


def _moved(values: _Held, kept: _Held, forms: Forms) -> list[_Held]:
    """Values, and what later micro-steps make of them, until it stays as it is. Raises Undecided."""
    found = [values]
    for _ in range(LONGEST + 1):
        after = {place: _put(form, found[-1], forms) for place, form in kept.items()}
        change = (add(form, scale(found[-1][place], -1)) for place, form in after.items())
        if not any(map(forms.simplified, change)):
            return found
        found.append(after)
    raise Undecided("each micro-step changes what earlier ones left")


def _put(form: NormalForm, values: _Held, forms: Forms) -> NormalForm:
    """A combination of what was there, with values in its place."""
    result: NormalForm = {}
    for (symbol, word), times in form.items():
        value = values[symbol.made_of]
        for i, operator in enumerate(word):
            value = apply_operator(operator, i, value, forms.sizes[i])
        result = add(result, scale(value, times))
    return result


def _set_apart(forms: Forms, least: int) -> None:
    """Numbers of micro-steps with which there are not as many; and with which none is in between."""
    if forms.comparison and isinstance(forms.micro_steps, Polynomial):
        forms.comparison.set_apart(forms.micro_steps, range(1, least))
        for few in range(1, least + 2):
            forms.same(forms.micro_steps, few)


def _sum(form: NormalForm, micro_steps: Any) -> NormalForm:
    """The sum over all micro-steps of what one adds."""
    result: dict[Any, Any] = {}
    for (symbol, word), times in form.items():
        if not mentions(symbol, EACH):
            result[symbol, word] = micro_steps * times
            continue
        own = _renamed(symbol, OWN)  # a sum of an earlier step in it has its own index, of that step
        whole = Symbol("summed", symbol.step, EVERY, own)
        if symbol.which == EACH:
            whole = own._replace(which=EVERY)
        result[whole, word] = times
    return result


def _at(form: NormalForm, index: MicroStep) -> NormalForm:
    """The same in the micro-step of an index."""
    return {(_renamed(symbol, index), word): times for (symbol, word), times in form.items()}


def _renamed(part: Any, index: MicroStep) -> Any:
    """A part of a symbol with an index in place of any one."""
    if not isinstance(part, tuple):
        return index if part == EACH else part
    return of_other_parts(part, (_renamed(p, index) for p in part))
