"""Sorts, and the names that symbols and sorts may have. Trusted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple


class KernelError(Exception):
    """A step that is not a proof: the solver disagrees, or a rule is misused."""


# words that a text in SMT-LIB would take for something else than a symbol of that name
_WORDS = """
    and or not xor true false ite distinct let forall exists match par as is abs div mod divisible
    to_real to_int is_int select store exp sin cos tan csc sec cot arcsin arccos arctan sqrt pi
    asin acos atan sinh cosh tanh asinh acosh atanh arctan2 atan2 log ln rem
    implies iff if nand nor lambda const map equals equiv
    union intersection setminus complement subset choice mkbv div0 mod0
    assert check declare define get set reset push pop exit echo model unsat sat unknown
    Bool Int Real Array Float16 Float32 Float64 Float128 FloatingPoint RoundingMode BitVec String
    RNE RNA RTP RTN RTZ NUMERAL DECIMAL STRING HEXADECIMAL BINARY
"""
RESERVED = frozenset(_WORDS.split())
NAME = re.compile(r"[a-z][a-zA-Z0-9_]*\Z")
SORT_NAME = re.compile(r"[A-Z][a-zA-Z0-9_]*\Z")


class Sort(NamedTuple):
    """A sort: its kind, its name if it has one, and its parts (index and element, or values)."""

    kind: str
    name: str = ""
    parts: tuple[Any, ...] = ()

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.parts))
        return f"Array({inside})" if self.kind == "Array" else self.name or self.kind


_sorts: dict[Sort, Sort] = {}  # each once


def _once(made: Sort) -> Sort:
    """The one object that is this sort: equal sorts are the same."""
    return _sorts.setdefault(made, made)


BOOL, INT, REAL, FLOAT = (_once(Sort(kind)) for kind in ("Bool", "Int", "Real", "Float64"))
_PLAIN = {sort.kind: sort for sort in (BOOL, INT, REAL, FLOAT)}


def BoolSort() -> Sort:
    return BOOL


def IntSort() -> Sort:
    return INT


def RealSort() -> Sort:
    return REAL


def Float64() -> Sort:
    """IEEE 754 binary64; sums are rounded to nearest."""
    return FLOAT


def ArraySort(index: Sort, element: Sort) -> Sort:
    """Functions as values: from an index to an element, equal if they are equal everywhere."""
    return _once(Sort("Array", "", (sort_of(index), sort_of(element))))


def DeclareSort(name: str) -> Sort:
    """Any set that is not empty."""
    return _once(Sort("Sort", plain(name, SORT_NAME)))


def enumeration(name: str, values: Sequence[str]) -> Sort:
    """The sort of these values, each of which is different."""
    names = tuple(plain(value, SORT_NAME) for value in values)
    if not names or len({*names}) != len(names):
        raise KernelError(f"the values of {name} are not distinct")
    return _once(Sort("Values", plain(name, SORT_NAME), names))


def plain(name: Any, pattern: re.Pattern[str]) -> str:
    if type(name) is not str or not pattern.match(name) or name in RESERVED:
        raise KernelError(f"{name!r} is not a plain name")
    return name


def sort_of(given: Any) -> Sort:
    """The same sort, if it is one. Raises KernelError."""
    if type(given) is Sort and type(given[0]) is str:
        kind, name, parts = given
        if kind == "Array" and type(parts) is tuple and len(parts) == 2:
            return ArraySort(*parts)
        if kind == "Sort" and parts == ():
            return DeclareSort(name)
        if kind == "Values" and type(parts) is tuple:
            return enumeration(name, parts)
        if kind in _PLAIN:
            return _PLAIN[kind]
    raise KernelError(f"not a sort of obligations: {given!r}")


def is_sort(given: Any) -> bool:
    """Whether it is a sort with all its parts, of no other class."""
    if type(given) is not Sort:
        return False
    return not given.parts or all(type(part) is str or is_sort(part) for part in given.parts)


def range_of(op: str, sorts: tuple[Sort, ...]) -> Sort | None:
    """The sort of an operator's application, by those of its arguments; nothing if there is none."""
    if op in ("and", "or"):
        return BOOL if sorts.count(BOOL) == len(sorts) else None
    if op in _SIGNATURES:
        takes, gives = _SIGNATURES[op]
        return gives if sorts == takes else None
    if not sorts:
        return None
    count, first = len(sorts), sorts[0]
    if op == "ite":
        return sorts[1] if count == 3 and first == BOOL and sorts[1] == sorts[2] else None
    if op == "store":
        return first if first.kind == "Array" and sorts[1:] == first.parts else None
    alike = sorts.count(first) == count
    if op in ("=", "distinct"):
        return BOOL if alike and (count == 2 or (op == "distinct" and count > 2)) else None
    if not alike or first not in (INT, REAL) or count != _OF_NUMBERS.get(op):
        return None
    return BOOL if op in ("<", "<=", ">", ">=") else first


_OF_NUMBERS = {"neg": 1, **dict.fromkeys(("+", "-", "*", "<", "<=", ">", ">="), 2)}


_SIGNATURES: dict[str, tuple[tuple[Sort, ...], Sort]] = {
    "not": ((BOOL,), BOOL),
    "=>": ((BOOL, BOOL), BOOL),
    "/": ((REAL, REAL), REAL),
    "div": ((INT, INT), INT),
    "mod": ((INT, INT), INT),
    "to_real": ((INT,), REAL),
    "fp.add": ((FLOAT, FLOAT), FLOAT),
    **dict.fromkeys(("fp.eq", "fp.lt", "fp.gt"), ((FLOAT, FLOAT), BOOL)),
}
