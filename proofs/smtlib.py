"""Reading and writing terms: the symbols in them, and their standalone SMT-LIB text. Trusted too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import z3

UNINTERPRETED = z3.Z3_OP_UNINTERPRETED


def subterms(terms: Iterable[z3.ExprRef]) -> Iterator[z3.ExprRef]:
    """Each distinct subterm once. A quantifier or a lambda is refused."""
    seen: set[int] = set()
    todo = list(terms)
    while todo:
        term = todo.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if not z3.is_app(term):
            raise ValueError(f"obligations are quantifier-free: {term}")
        yield term
        todo.extend(term.children())


def symbols_of(terms: Any, only: z3.FuncDeclRef | None = None) -> list[Any]:
    """The uninterpreted symbols in `terms`; or, of one symbol, the subterms that apply it."""
    found = [
        t
        for t in subterms([terms] if isinstance(terms, z3.ExprRef) else terms)
        if t.decl().kind() == UNINTERPRETED
    ]
    if only is not None:
        return [t for t in found if t.decl().eq(only)]
    return [t.decl() for t in found]


def constants_of(terms: Iterable[z3.ExprRef]) -> set[str]:
    """The names of the uninterpreted constants in `terms`."""
    return {d.name() for d in symbols_of(terms) if d.arity() == 0}


def has_reals(terms: Iterable[z3.ExprRef]) -> bool:
    """Whether any subterm is a real number."""
    return any(t.sort().kind() == z3.Z3_REAL_SORT for t in subterms(terms))


def logic_of(terms: Iterable[z3.ExprRef]) -> str:
    """The SMT-LIB name of the smallest usual logic that holds `terms`."""
    features: set[str] = set()
    for term in subterms(terms):
        sort = term.sort()
        kind = sort.kind()
        if kind == z3.Z3_INT_SORT:
            features.add("I")
        elif kind == z3.Z3_REAL_SORT:
            features.add("R")
        elif kind == z3.Z3_ARRAY_SORT:
            features.add("A")
        elif kind == z3.Z3_DATATYPE_SORT:
            features.add("DT")
        elif kind == z3.Z3_FLOATING_POINT_SORT:
            features.add("FP")
        elif kind == z3.Z3_UNINTERPRETED_SORT:
            features.add("UF")
        if term.decl().kind() == UNINTERPRETED and term.num_args():
            features.add("UF")
        if _nonlinear(term):
            features.add("N")
    if not features & {"I", "R"}:
        arithmetic = ""
    else:
        letters = "".join(x for x in "IR" if x in features)
        arithmetic = ("N" if "N" in features else "L") + letters + "A"
    parts = "".join(x for x in ("A", "UF", "DT", "FP") if x in features)
    return f"QF_{parts}{arithmetic}" if parts or arithmetic else "QF_UF"


def _nonlinear(term: z3.ExprRef) -> bool:
    def constant(t: z3.ExprRef) -> bool:
        return bool(z3.is_rational_value(t) or z3.is_int_value(t))

    kind = term.decl().kind()
    if kind == z3.Z3_OP_MUL:
        return sum(not constant(c) for c in term.children()) > 1
    if kind in (z3.Z3_OP_DIV, z3.Z3_OP_IDIV, z3.Z3_OP_MOD):
        return not constant(term.arg(1))
    return False


def standalone_text(assertions: list[z3.BoolRef]) -> str:
    """SMT-LIB 2 text that asks whether `assertions` can hold together."""
    solver = z3.Solver()
    solver.add(*assertions)
    return f"(set-logic {logic_of(assertions)})\n{solver.sexpr()}(check-sat)\n"


def resource_count(solver: z3.Solver) -> int:
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in statistics.keys() else 0
