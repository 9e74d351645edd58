"""The kernel's terms built by z3's own interface: a second reading of what their text says."""

from __future__ import annotations

import operator
from typing import Any

import z3

from proofs.trusted.folding import exact
from proofs.trusted.terms import Sort, Symbol, Term

PLAIN = {"Bool": z3.BoolSort, "Int": z3.IntSort, "Real": z3.RealSort, "Float64": z3.Float64}
MADE = {
    "and": z3.And,
    "or": z3.Or,
    "not": z3.Not,
    "=>": z3.Implies,
    "ite": z3.If,
    "=": operator.eq,
    "distinct": z3.Distinct,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "div": operator.truediv,  # of integers it is SMT-LIB's div
    "mod": operator.mod,
    "neg": operator.neg,
    "to_real": z3.ToReal,
    "select": z3.Select,
    "store": z3.Store,
    "fp.add": lambda left, right: z3.fpAdd(z3.RNE(), left, right),
    "fp.eq": z3.fpEQ,
    "fp.lt": z3.fpLT,
    "fp.gt": z3.fpGT,
}
_values: dict[Sort, tuple[Any, list[Any]]] = {}


def sort_of(sort: Sort) -> Any:
    if sort.kind == "Array":
        return z3.ArraySort(*map(sort_of, sort.parts))
    if sort.kind == "Values":
        return values_of(sort)[0]
    return z3.DeclareSort(sort.name) if sort.kind == "Sort" else PLAIN[sort.kind]()


def values_of(sort: Sort) -> tuple[Any, list[Any]]:
    if sort not in _values:
        _values[sort] = z3.EnumSort(sort.name, list(sort.parts))
    return _values[sort]


def function_of(symbol: Symbol) -> Any:
    return z3.Function(symbol.name, *map(sort_of, symbol.takes), sort_of(symbol.gives))


def built(term: Term) -> Any:
    """The same expression, of z3."""
    args = [built(arg) for arg in term.args]
    if term.op == "apply":
        return function_of(term.of)(*args) if args else z3.Const(term.of.name, sort_of(term.sort))
    if term.op == "number":
        return (z3.IntVal if term.sort.kind == "Int" else z3.RealVal)(str(exact(term)))
    if term.op == "bool":
        return z3.BoolVal(term.of)
    if term.op == "value":
        return values_of(term.sort)[1][term.of]
    if term.op == "float":
        return z3.fpBVToFP(z3.BitVecVal(term.of, 64), z3.Float64())
    return MADE[term.op](*args)
