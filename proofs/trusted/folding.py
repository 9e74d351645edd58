"""What is constant is worked out as a term is made, and what changes nothing is left out. Trusted.

A counterexample counts if its values make a formula `False` by these rules.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from operator import eq, ge, gt, le, lt
from typing import Any

from proofs.trusted.sorts import KernelError

ORDER: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
FLOATS: dict[str, Callable[[Any, Any], Any]] = {"fp.eq": eq, "fp.lt": lt, "fp.gt": gt}
FLOATS["fp.add"] = lambda left, right: left + right


def simpler(op: str, args: tuple[Any, ...]) -> Any:
    """What an application comes to: an argument, a plain value, fewer members; or None, if itself."""
    if op in ("and", "or"):
        return _members(op, args)
    if op in ("=", "distinct"):
        literal = all(arg.op in ("number", "bool", "value") for arg in args)
        return (len({*map(id, args)}) == (1 if op == "=" else len(args))) if literal else None
    if op == "ite":
        condition, then, otherwise = args
        same = then is otherwise or (condition.op == "bool" and condition.of)
        return then if same else otherwise if condition.op == "bool" else None
    if op == "=>":
        premise, conclusion = args
        if _is(premise, False) or _is(conclusion, True):
            return True
        return conclusion if _is(premise, True) else None
    if args[0].op in ("number", "bool") and all(arg.op in ("number", "bool") for arg in args):
        return _worked_out(op, [as_number(arg) for arg in args])
    if args[0].op == "float" and all(arg.op == "float" for arg in args):
        return FLOATS[op](*map(as_float, args))
    return _without_neutral(op, *args) if op in ("+", "-", "*", "/") else None


def as_float(term: Any) -> float:
    """The machine's own number of the same bits."""
    (number,) = struct.unpack(">d", struct.pack(">Q", term.of))
    return float(number)


def as_number(term: Any) -> Any:
    """A number or a truth value as one of Python."""
    return _fraction(term.of) if type(term.of) is str else term.of


_fraction = lru_cache(maxsize=1024)(Fraction)  # of a text


def exact(term: Any) -> bool | Fraction | float:
    """A literal as a value of Python. Raises KernelError for another term."""
    if term.op not in ("number", "bool", "float", "value"):
        raise KernelError(f"no value: {term}")
    if term.op == "float":
        return as_float(term)
    return bool(term.of) if term.op == "bool" else Fraction(term.of)


def _is(term: Any, value: Any) -> bool:
    return term.op in ("number", "bool") and term.of in (value, str(value))


def _members(op: str, args: tuple[Any, ...]) -> Any:
    """`and`, `or`: a member that decides is all; members that say nothing are gone."""
    nothing = op == "and"
    if len(args) > 1 and "bool" not in [arg.op for arg in args]:
        return None
    if any(_is(arg, not nothing) for arg in args):
        return not nothing
    left = tuple(arg for arg in args if not _is(arg, nothing))
    if len(left) < 2:
        return left[0] if left else nothing
    return None if len(left) == len(args) else left


def _worked_out(op: str, values: list[Any]) -> Any:
    """An operation on numbers; by zero nothing is worked out. The rest of `mod` is never negative."""
    if len(values) == 1:
        (value,) = values
        return not value if op == "not" else -value if op == "neg" else value
    left, right = values
    if op in ORDER:
        return ORDER[op](left, right)
    if op in ("/", "div", "mod"):
        if right == 0:
            return None
        rest = 0 if op == "/" else left % abs(right)
        return rest if op == "mod" else (left - rest) / right if op == "/" else (left - rest) // right
    return {"+": left + right, "-": left - right, "*": left * right}[op]


def _without_neutral(op: str, left: Any, right: Any) -> Any:
    if op in ("+", "-") and _is(right, 0):
        return left
    if op == "+" and _is(left, 0):
        return right
    if op == "*":
        for one, other in ((left, right), (right, left)):
            if _is(one, 0):
                return one
            if _is(one, 1):
                return other
    return left if op == "/" and _is(right, 1) else None
