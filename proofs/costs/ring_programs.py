"""Programs of two rings, one in the other, line by line: what no layer does, but a program may.

What comes in is read late, and what goes out is made early; masks are read in several turns; values are
read before loops, in every turn of one, or after both.
"""

from __future__ import annotations

from collections.abc import Iterator

from spec.devices.layouts import PARTIAL, WHOLE, Lies, along
from spec.language.moves import Axis, Move, turns_of
from spec.language.programs import Line, Program
from spec.models.values import Does, Operation, Part, Role, Value

CUT = along("s")
# what stands first is made of the others: round a ring (@), as the sum of its turns (+), or else by an
# operation. After a name: the rings in whose turns it is another. x and dy come in; m, n, c are masks
FORWARD = """
    w: c
    y: w c
    q: w
    k.a: @a q
    p.a: k.a m.a w
    v.ab: @b p.a
    t.ab: v.ab m.ab k.a n.b
    u.ab: t.ab n.b m.a
    r.a: +b u.ab
    y1.a: r.a w
    s.ab: @b y1.a
    j.ab: s.ab m.ab
    l.a: +b j.ab
    o.a: l.a m.a
    z: +a o.a
    h: z x q
    d.b: @b h
    i.b: d.b w n.b
    f.b: i.b h
    e: +b f.b
    g: e h
"""
BACKWARD = """
    1: w m
    2: 1 dy
    dx: 2
    3.a: @a 2
    4.a: 3.a m.a g
    5: +a 4.a
    6: 5 1
"""
SECOND = """
    7: 5 h m
    8.b: @b 7
    9.b: 8.b n.b 1
    10: +b 9.b
    11: 10 2
"""
ROLES = {"x": Role.STREAM, "m": Role.CONSTANT, "n": Role.CONSTANT, "c": Role.CONSTANT}


def programs_of_rings() -> Iterator[Program]:
    """Those lines, backward in one part and in two; and with what it holds between them in a kernel,
    but for a mask that is kept.

    In turn one ring, or the other, brings all its slices at once.
    """
    second = len(_lines(SECOND))
    for waiting, inside, at_once in ((0, "", "b"), (second, "", "a"), (second, "15", "")):
        rings = (Axis(name, ring="s", at_once=name == at_once) for name in "ab")
        axes = Axis("c"), *rings
        forward, backward = _written(FORWARD, inside), _written(BACKWARD + SECOND, inside)
        lies = {value: _lies(value) for line in (*forward, *backward) for value in _values(line)}
        x, y, dx, dy = (_value(name, inside) for name in ("x", "y", "dx", "dy"))
        part = Part("part", (), x, y)
        kept = (_value("m", inside),) if inside else ()
        yield Program(part, axes, forward, backward, y, dy, dx, {}, kept, lies, waiting)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _written(text: str, inside: str) -> tuple[Line, ...]:
    return tuple(_line(line, inside) for line in _lines(text))


def _line(line: str, inside: str) -> Line:
    made, _, of = line.partition(": ")
    makes = _value(made, inside)
    if of[0] in "@+":
        how, name = of.split()
        value, ring = _value(name, inside), how[1]
        if how[0] == "@":
            return Move(ring, value, makes, CUT, WHOLE, in_turns=True)
        return Move(turns_of(ring), value, makes, PARTIAL, WHOLE, in_turns=True)
    reads = tuple(_value(name, inside) for name in of.split())
    return Operation(Does.ADD, reads, makes)


def _value(name: str, inside: str) -> Value:
    role = ROLES.get(name[0], Role.ACTIVATION)
    return Value(name, ("s",), role, width=0 if name in inside else 2)


def _values(line: Line) -> tuple[Value, ...]:
    return *line.reads, line.makes


def _lies(value: Value) -> Lies:
    turns = value.name.partition(".")[2]
    return dict.fromkeys("abc", WHOLE) | {turns_of(a): CUT if a in turns else WHOLE for a in "ab"}
