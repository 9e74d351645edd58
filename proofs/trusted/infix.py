"""Terms as text to read: `And(x >= 0, f(x + 1) == f(x) + g(x))`. For messages and readers only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from proofs.trusted.folding import as_number

CALLS = {"and": "And", "or": "Or", "not": "Not", "=>": "Implies", "ite": "If", "to_real": "ToReal"}
SIGNS = {
    "=": "==",
    "distinct": "!=",
    "div": "/",
    "mod": "%",
    "<=": "<=",
    ">=": ">=",
    "<": "<",
    ">": ">",
}
SIGNS |= {"+": "+", "-": "-", "*": "*", "/": "/"}
BINDS = {"==": 1, "!=": 1, "<=": 1, ">=": 1, "<": 1, ">": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
NEGATIVE, TIGHT = 4, 5
ALL = 10**9  # columns: one line


def text(term: Any, columns: int = ALL) -> str:
    """A term, in one line if it fits in some columns, else in several."""
    return "\n".join(_lines(term, columns))


def beginning(term: Any, columns: int) -> str:
    """A term in one line; of one that is longer, more than so many columns from its first one on."""
    said, length = list[str](), 0
    for piece in _pieces(term):
        said.append(piece)
        length += len(piece)
        if length > columns:
            break
    return "".join(said)


def _literal(term: Any) -> str | None:
    """A constant, or what a symbol of no arguments is called."""
    if term.op == "apply" and not term.args:
        return str(term.of.name)
    if term.op == "value":
        return str(term.sort.parts[term.of])
    if term.op in ("number", "bool"):
        return str(term.of)
    return f"float({term.of:#x})" if term.op == "float" else None


def _binds(term: Any) -> int:
    """How tightly its outermost operation holds together."""
    if term.op in SIGNS and len(term.args) == 2:
        return BINDS[SIGNS[term.op]]
    negative = term.op == "neg" or (term.op == "number" and as_number(term) < 0)
    fraction = term.op == "number" and as_number(term).denominator != 1
    return 3 if fraction else NEGATIVE if negative else TIGHT


def _lines(term: Any, columns: int) -> list[str]:
    one = beginning(term, columns)
    if len(one) <= columns or _literal(term) is not None:
        return [one]
    if term.op in SIGNS and len(term.args) == 2:
        return _of_operands(term, columns)
    head, args = _head(term)
    indent = len(head) if columns - len(head) >= columns // 2 else 2
    parts = [_lines(arg, columns - indent - 1) for arg in args]
    pad = " " * indent
    if indent == 2:
        found = [head, *_joined(parts, pad)]
    else:
        first, *others = _joined(parts, pad)
        found = [head + first[indent:], *others]
    found[-1] += "]" if term.op == "select" else ")"
    return found


def _joined(parts: Sequence[Sequence[str]], pad: str) -> list[str]:
    """Arguments one below the other, with commas between them."""
    found = []
    for i, lines in enumerate(parts):
        comma = "," if i + 1 < len(parts) else ""
        found += [f"{pad}{line}" for line in lines[:-1]] + [f"{pad}{lines[-1]}{comma}"]
    return found


def _of_operands(term: Any, columns: int) -> list[str]:
    sign = SIGNS[term.op]
    found: list[str] = []
    for i, operand in enumerate(_operands(term)):
        start = f"{sign} " if i else ""
        inside = _lines(operand, columns - len(start) - 2)
        if _wants_brackets(term, operand, last=i > 0):
            inside = [f"({inside[0]}", *(f" {line}" for line in inside[1:])]
            inside[-1] += ")"
        pad = " " * len(start)
        found += [start + inside[0], *(pad + line for line in inside[1:])]
    return found


def _operands(term: Any) -> list[Any]:
    """Of a sum of sums all summands, likewise of products."""
    left, right = term.args
    chained = term.op in ("+", "*") and left.op == term.op
    return [*(_operands(left) if chained else [left]), right]


def _wants_brackets(term: Any, operand: Any, last: bool) -> bool:
    own, inner = _binds(term), _binds(operand)
    return inner < own or (inner == own and (last or own == 1)) or (last and inner == NEGATIVE)


def _line(term: Any) -> str:
    return "".join(_pieces(term))


def _pieces(term: Any) -> Iterator[str]:
    """Of one line, one after the other: what two terms share is written twice."""
    literal = _literal(term)
    if literal is not None:
        yield literal
    elif term.op in SIGNS and len(term.args) == 2:
        left, right = term.args
        yield from _side(term, left, False)
        yield f" {SIGNS[term.op]} " if _binds(term) < 3 else SIGNS[term.op]
        yield from _side(term, right, True)
    elif term.op == "neg":
        (arg,) = term.args
        inside = _pieces(arg)
        yield "-"
        yield from chain("(", inside, ")") if _binds(arg) < TIGHT else inside
    else:
        head, args = _head(term)
        yield head
        for i, arg in enumerate(args):
            yield from (", ",) if i else ()
            yield from _pieces(arg)
        yield "]" if term.op == "select" else ")"


def _side(term: Any, operand: Any, last: bool) -> Iterator[str]:
    wants = _wants_brackets(term, operand, last)
    yield from ("(",) if wants else ()
    yield from _pieces(operand)
    yield from (")",) if wants else ()


def _head(term: Any) -> tuple[str, Sequence[Any]]:
    """What stands before the arguments, with its bracket; and these."""
    if term.op == "select":
        array, index = term.args
        return f"{_line(array)}[", (index,)
    name = term.of.name if term.op == "apply" else CALLS.get(term.op, term.op.capitalize())
    return f"{name}(", term.args
