"""The turns of a ring: an axis in time.

Round a ring of n devices slices of keys come to each device one after the other, in n turns. Along
the turns a value lies as along any axis: the same in each turn, a slice in each, or a term in each; and
the layout rule holds, for elements may be owned by turns as by devices. Lines on what is not the same
in each turn are the body of a loop: after its last turn only what it summed, or sent home, is there.

A softmax over what is cut in turns is made of each turn's keys alone. What is linear in it, row by row,
is a partial result, and those of all turns merge by their log-sum-exp (claim F2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Protocol, TypeVar

from spec.devices.layouts import WHOLE, Layout, LayoutError, Lie, along, contract, normalised
from spec.models.values import LOG_TOTAL, Does, Operation, Role, Value

_Lies = Mapping[str, Lie]


class _Line(Protocol):
    """Reads some values, makes one."""

    @property
    def reads(self) -> tuple[Value, ...]: ...

    @property
    def makes(self) -> Value: ...


L = TypeVar("L", bound=_Line)


# ------------------------------------------------------------------------------- layouts
def layout_in_turns(operation: Operation, *lies: Lie) -> Lie | None:
    """How a result lies along turns, of a softmax of each turn's keys; None if the layout rule says it.

    Raises LayoutError for what is not linear in such a softmax, or not for each of its rows alone.
    """
    if lies[0] == along(operation.over):  # a function of rows
        return _normalised(operation, *lies)
    open_ones = [(v, lie) for v, lie in zip(operation.reads, lies, strict=True) if lie.shares_of]
    if not open_ones:
        return None
    value, lie = open_ones[0]
    rows = {*value.indices} - {lie.index}
    is_linear = operation.does is Does.CONTRACT and len(open_ones) == 1
    if not is_linear or lie.log_total or not rows <= {*operation.makes.indices}:
        raise LayoutError(f"{value.name} is of each turn's keys alone, and is not merged")
    closed = (other.plain for other in lies)
    return contract(operation.contraction, *closed)._replace(shares_of=lie.shares_of)


def _normalised(operation: Operation, *lies: Lie) -> Lie:
    """Of a turn's keys alone; or right at once, from the log-sum-exp, and the gradient's product."""
    scores, known = operation.reads[0].name, lies[1:]
    if operation.function == LOG_TOTAL:
        return Lie(Layout.PARTIAL, shares_of=scores, log_total=True)
    if operation.function == "softmax" and not known:
        return lies[0]._replace(shares_of=scores)
    needed = (along(operation.over), WHOLE) if operation.backward else (WHOLE,)
    return lies[0] if known == needed else normalised(lies[0], operation.over)


# --------------------------------------------------------------------------------- loops
def is_of_turns(line: _Line, lies: Mapping[Value, _Lies], turns: str) -> bool:
    """Whether a line has to do with what is not the same in each turn."""
    return any(lies[value][turns] != WHOLE for value in (*line.reads, line.makes))


def nested(turns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Each of some turns, after those whose loops theirs are within."""
    return accumulate((name,) for name in turns)


def loops(lines: Sequence[_Line], lies: Mapping[Value, _Lies], turns: Sequence[str]) -> list[range]:
    """The bodies of loops over the last of some turns, each within one over those before, or apart from
    it: runs of lines, by their numbers.
    """
    found, number = [], 0
    for inside, run in groupby(lines, lambda line: [is_of_turns(line, lies, name) for name in turns]):
        size = len([*run])
        found += [range(number, number + size)] if inside[-1] else []
        number += size
    return found


def arranged(lines: Sequence[L], lies: Mapping[Value, _Lies], turns: Sequence[str]) -> list[L]:
    """The lines, those of each of some turns in one loop: before it what it needs, after it all else.

    Where it needs what it makes there are several loops, one after the other.
    """
    found = [*lines]
    for number in reversed(range(len(turns))):  # the inner loops first
        found = _in_loops(found, lies, turns[number:])
    return found


def _in_loops(lines: Sequence[L], lies: Mapping[Value, _Lies], turns: Sequence[str]) -> list[L]:
    """The same of the first of some turns; loops of the others stay whole."""
    inside = [number for number, line in enumerate(lines) if is_of_turns(line, lies, turns[0])]
    if not inside:
        return [*lines]
    first, end = inside[0], inside[-1] + 1
    needed: set[Value] = set()
    before: list[L] = []
    body, after = [lines[i] for i in inside], []
    for number, line in reversed([*enumerate(lines)][first:end]):
        if number in inside or line.makes in needed:
            needed |= {*line.reads}
            before += [] if number in inside else [line]
        else:
            after.append(line)
    made = {line.makes for line in body}
    later = {line.makes for line in before if made & {*line.reads}}
    if later:
        return _loop_by_loop(lines, lies, turns, later)
    return [*lines[:first], *before[::-1], *body, *after[::-1], *lines[end:]]


def _loop_by_loop(
    lines: Sequence[L], lies: Mapping[Value, _Lies], turns: Sequence[str], later: set[Value]
) -> list[L]:
    """The lines of a first loop, and then those of others, which need what it makes; with all that need
    it, and with what they read of a turn.
    """
    of_turn, count = {line.makes for line in lines if is_in_turns(lies[line.makes], turns)}, 0
    while count < len(later):
        count = len(later)
        for line in lines:
            later |= {line.makes} if later & {*line.reads} else set()
        later |= {v for line in lines if line.makes in later for v in line.reads} & of_turn
    first, others = ([line for line in lines if (line.makes in later) is so] for so in (False, True))
    if not any(is_of_turns(line, lies, turns[0]) for line in first):
        return [*lines]
    return [*_in_loops(first, lies, turns), *_in_loops(others, lies, turns)]


def check_loops(lines: Sequence[_Line], lies: Mapping[Value, _Lies], turns: Sequence[str]) -> None:
    """Raise LayoutError where a line reads another loop's turn, or a sum before the last turn.

    Of loops over the last of some turns, as `loops` says.
    """
    *_, name = turns
    for body in loops(lines, lies, turns):
        made = {lines[number].makes for number in body}
        for line in (lines[number] for number in body):
            for value in line.reads:
                is_whole = lies[value][name] == WHOLE
                if value in made and is_whole:
                    raise LayoutError(f"{value.name} is whole only after the last of the {name}", line)
                if value not in made and not is_whole and value.role is not Role.CONSTANT:
                    raise LayoutError(f"{value.name} is not there in these {name}", line)


def is_in_turns(lies: _Lies, turns: Iterable[str]) -> bool:
    """Whether what lies so is not the same in each turn."""
    return any(lies[name] != WHOLE for name in turns)
