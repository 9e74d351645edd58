"""A counterexample's values put into an exported obligation, evaluated with no solver at hand.

Numbers are fractions. Floating-point numbers of double precision are the machine's own.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import combinations, pairwise
from math import prod
from typing import Any, TypeAlias

Expression: TypeAlias = Any  # a word, or a list of expressions
Value: TypeAlias = Any  # a fraction, a float or a truth value
TOKEN = re.compile(r";[^\n]*|[()]|[^\s();]+")
DOUBLE = "Float64"
NEAREST = "RNE"  # as the machine rounds


class CannotEvaluate(ValueError):
    """The text says something that is not evaluated here."""


def _chain(related: Callable[[Value, Value], bool]) -> Callable[..., bool]:
    return lambda *values: all(related(a, b) for a, b in pairwise(values))


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, float):  # fp.eq is not this: it takes 0 and -0 for equal
        raise CannotEvaluate("no value for = of floating-point numbers")
    return bool(a == b)


OPERATORS: dict[str, Callable[..., Value]] = {
    "and": lambda *values: all(values),
    "or": lambda *values: any(values),
    "not": operator.not_,
    "=>": lambda given, goal: not given or goal,
    "=": _chain(_same),
    "distinct": lambda *values: not any(_same(a, b) for a, b in combinations(values, 2)),
    "<": _chain(operator.lt),
    "<=": _chain(operator.le),
    ">": _chain(operator.gt),
    ">=": _chain(operator.ge),
    "+": lambda *values: sum(values),
    "-": lambda first, *others: first - sum(others) if others else -first,
    "*": lambda *values: prod(values),
    "/": operator.truediv,  # of fractions
    "to_real": lambda value: value,
    "fp.add": lambda _, a, b: a + b,
    "fp.eq": operator.eq,
    "fp.lt": operator.lt,
    "fp.leq": operator.le,
    "fp.gt": operator.gt,
    "fp.geq": operator.ge,
}


def holds(text: str, values: Mapping[str, str]) -> bool:
    """Whether all that is asserted is true of these values. Raises CannotEvaluate."""
    names, asserted = {}, []
    for command in commands(text):
        if command[0] == "declare-fun" and command[1] in values:
            given = values[command[1]]
            names[command[1]] = float(given) if command[3] == DOUBLE else Fraction(given)
        elif command[0] == "define-fun" and not command[2]:
            names[command[1]] = evaluated(command[4], names)
        elif command[0] == "assert":
            asserted.append(command[1])
    return all(evaluated(each, names) is True for each in asserted)


def commands(text: str) -> Iterator[list[Expression]]:
    """The commands of an SMT-LIB text, as nested lists of words."""
    stack: list[list[Expression]] = [[]]
    for token in TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        elif not token.startswith(";"):
            stack[-1].append(token)
    yield from stack[0]


def evaluated(expression: Expression, names: Mapping[str, Value]) -> Value:
    """The value of an expression, where names have values."""
    if isinstance(expression, str):
        return names[expression] if expression in names else _constant(expression)
    symbol, *arguments = expression
    if symbol == "ite":
        condition, *branches = arguments
        return evaluated(branches[0 if evaluated(condition, names) else 1], names)
    if symbol == "fp":
        return double("".join(map(_bits, arguments)))
    if not isinstance(symbol, str) or symbol not in OPERATORS:
        raise CannotEvaluate(f"no value for {symbol}")
    try:
        return OPERATORS[symbol](*(evaluated(each, names) for each in arguments))
    except ZeroDivisionError:
        raise CannotEvaluate("a division by zero") from None


def _constant(word: str) -> Value:
    if word in ("true", "false"):
        return word == "true"
    if word == NEAREST:
        return word
    try:
        return Fraction(word)
    except ValueError:
        raise CannotEvaluate(f"no value for {word}") from None


def _bits(literal: str) -> str:
    """#b01 and #x3f as binary digits."""
    digits = literal[2:]
    return digits if literal[1] == "b" else f"{int(digits, 16):0{4 * len(digits)}b}"


def double(bits: str) -> float:
    """The number of binary64 with these digits. Raises CannotEvaluate for another number of them."""
    if len(bits) != 64:
        raise CannotEvaluate(f"a floating-point number of {len(bits)} bits")
    number: float = struct.unpack(">d", int(bits, 2).to_bytes(8, "big"))[0]
    return number
