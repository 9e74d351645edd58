"""For which numbers of devices and of micro-steps a schedule is right, in words and for a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from psem_model.text.figures import counted
from spec.checking.everywhere import LOOKED_AT, NEAR, Everywhere, Found, Given, complete
from spec.language.schedule import MICRO_STEPS
from spec.numbers.any_size import Polynomial

ANY = "any"
_Condition = tuple[Polynomial, Found]  # and the sizes of which it is one
MOST, MOST_NUMBERS = 4, 8  # groups of sizes, and numbers, that are told


def listed(words: Iterable[Any]) -> str:
    """Words, with an "and" before the last."""
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last


def scope(found: Everywhere, given: Given) -> list[str]:
    """What a verdict is about: the sizes that were given, and every other one, or those looked at."""
    axes = [name for name in found.names if name != MICRO_STEPS]
    numbers = " x ".join(f"{axis} {given[axis]:,}" for axis in axes if axis in given)
    every = [axis for axis in axes if axis not in given and axis not in found.undecided]
    parts = [numbers] if numbers else [] if every else ["one device"] * (not axes)
    if every:
        parts.append(f"every number of devices along {listed(every)}")
    if MICRO_STEPS in given:
        parts.append(counted(given[MICRO_STEPS], "micro-step"))
    elif MICRO_STEPS not in found.undecided:
        parts.append("every number of micro-steps")
    return [f"for {listed(parts)}"] * bool(parts) + list(_looked_at(found))


def _looked_at(found: Everywhere) -> Iterator[str]:
    """Given of which only a few numbers were looked at."""
    few = listed(LOOKED_AT)
    for name in found.undecided:
        if name == MICRO_STEPS:
            yield f"looked at: {few} micro-steps; each changes what earlier ones left"
            yield "others are looked at with --accumulate"
        else:
            yield f"looked at: {few} devices along {name}; others with --devices"


def exceptions(found: Everywhere, given: Given) -> str:
    """For which sizes a rejected schedule is accepted; if it is in general, for which it is not."""
    if found.found[0].accepted:
        return _only("rejected", found.wrong_for, found, given)
    if found.found[0].verdict is None:
        along = [n if n == MICRO_STEPS else f"devices along {n}" for n in found.undecided]
        few = f"looked at: {listed(LOOKED_AT)} {listed(along).replace('_', '-')}"
        return f"{_only('accepted', found.right_for, found, given)}; {few}"
    free = [name for name in found.names if name not in given]
    zero, unseen = _conditions(found)
    right = [one for one in found.right_for if not any(_is_zero(*each, one) for each in zero)]
    words = [_only("accepted", right, found, given)] if right or not zero else []
    for condition, of in zero:
        exact = complete(condition) or condition in of.equal
        near = "" if exact else f" (not decided; looked at: sizes up to {NEAR})"
        words.append(f"accepted where {_equation(condition)}{_with(of, found, free)}{near}")
    far = [(c, of) for c, of in unseen if not complete(c)][:MOST]
    words += [f"not looked at where {_equation(c)}{_with(of, found, free)}" for c, of in far]
    return "; ".join(words)


def _with(of: Found, found: Everywhere, free: Sequence[str]) -> str:
    """The sizes that are numbers where a condition is told."""
    numbers = _words([of], found, free)
    return f" with {numbers}" if numbers else ""


def _only(verdict: str, those: Sequence[Found], found: Everywhere, given: Given) -> str:
    free = [name for name in found.names if name not in given]
    if not those:
        along = [name for name in free if name != MICRO_STEPS]
        every = ["devices"] * bool(along) + ["micro-steps"] * (MICRO_STEPS in free)
        other = {"accepted": "rejected", "rejected": "accepted"}[verdict]
        return f"{other} for every number of {' and of '.join(every)}" if every else ""
    groups: dict[tuple[str, ...], list[Found]] = {}
    for one in those:
        names = tuple(name for name in found.names if name in one.sizes and name not in given)
        groups.setdefault((*names, *(str(one.sizes[n]) for n in names[:-1])), []).append(one)
    told = [_words(group, found, free) for group in groups.values()]
    more = f", and others ({len(told) - MOST})" if len(told) > MOST else ""
    if len(told) == 1:
        return f"{verdict} for {told[0]} only"
    return f"{verdict} only for {', or for '.join(told[:MOST])}{more}"


def _words(group: Sequence[Found], found: Everywhere, free: Sequence[str]) -> str:
    """Given that are numbers: one size that is one of several, or several sizes."""
    sizes = {n: sorted({one.sizes[n] for one in group}) for n in free if n in group[0].sizes}
    alone = len(found.names) == 2  # one axis, and micro-steps
    devices: list[str] = []
    steps = ""
    for name, numbers in sizes.items():
        some, many = _numbers(numbers), "s" * (numbers != [1])
        if name in found.undecided and tuple(numbers) == LOOKED_AT and devices:
            continue  # all that were looked at
        if name == MICRO_STEPS:
            steps = f"{some} micro-step{many}"
        else:
            devices.append(f"{some} device{many}" if alone else f"{name} {some}")
    return " with ".join(filter(None, (" x ".join(devices), steps)))


def _numbers(numbers: Sequence[int]) -> str:
    """Sorted numbers; from four that follow each other on, the first and the last of them."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    words = []
    for run in runs:
        ends = [f"{run[0]:,} to {run[-1]:,}"] if len(run) > 3 else [f"{n:,}" for n in run]
        words += ends
    return listed(words if len(words) <= MOST_NUMBERS else [*words[:MOST], f"{len(words) - MOST} more"])


def _conditions(found: Everywhere) -> tuple[list[_Condition], list[_Condition]]:
    """Conditions on several sizes that make it right, and those that no sizes looked at fulfil.

    Each with the sizes that are numbers where it holds. What says no more than others is left out:
    what is decided comes first.
    """
    right: list[_Condition] = []
    unseen: list[_Condition] = []
    for of in found.found:
        for condition in dict.fromkeys([*of.equal, *of.conditions]):
            zero = [one for one in found.found if _is_zero(condition, of, one)]
            said = [any(_is_zero(*each, one) for each in right) for one in zero]
            if not zero:
                unseen.append((condition, of))
            elif all(one.accepted for one in zero) and any(one in found.right_for for one in zero):
                right += [] if all(said) else [(condition, of)]
    return right, unseen


def _equation(condition: Polynomial) -> str:
    one, other = condition.sides
    return f"{one} = {other}"


def _is_zero(condition: Polynomial, of: Found, one: Found) -> bool:
    """Whether sizes that are numbers fulfil a condition of some."""
    is_of = of.sizes.items() <= one.sizes.items() and {*condition.names} <= {*one.sizes}
    return is_of and condition.at(one.sizes) == 0


def data(found: Everywhere) -> dict[str, Any]:
    """For a program: of each verdict the widest sizes; the one with more numbers holds."""
    return {
        "right": [_sizes(one, found.names) for one in found.right_for],
        "wrong": [_sizes(one, found.names) for one in found.wrong_for],
        "looked_at": {name: list(LOOKED_AT) for name in found.undecided},
        "conditions": [str(c) for c in {c: None for one in found.found for c in one.conditions}],
    }


def _sizes(one: Found, names: Sequence[str]) -> dict[str, Any]:
    mesh = {name: one.sizes.get(name, ANY) for name in names if name != MICRO_STEPS}
    return {"mesh": mesh, "micro_steps": one.sizes.get(MICRO_STEPS, ANY)}
