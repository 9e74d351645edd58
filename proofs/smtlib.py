"""Reading and writing terms: the symbols in them, and their standalone SMT-LIB text. Trusted too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import z3

Term: TypeAlias = Any  # z3.ExprRef
Bool: TypeAlias = Any  # z3.BoolRef


class KernelError(Exception):
    """A step that is not a proof: the solver disagrees, or a rule is misused."""


def own(term: Term) -> Term:
    """The same term in a wrapper of its own: what others do to theirs does not change it."""
    if not isinstance(term, z3.ExprRef) or term.ctx != z3.main_ctx():
        raise KernelError(f"not a term: {term!r}")
    return z3.z3._to_expr_ref(term.as_ast(), z3.main_ctx())


@dataclass(frozen=True)
class Summary:
    """What occurs in a term: its uninterpreted symbols by name, and the theories it needs."""

    symbols: frozenset[tuple[str, z3.FuncDeclRef]]
    constants: frozenset[str]
    features: frozenset[str]


_summaries: dict[int, tuple[z3.ExprRef, Summary]] = {}  # by identity of a term that is kept alive


def summary(terms: Iterable[z3.ExprRef]) -> Summary:
    """What occurs in `terms`. A quantifier or a lambda is refused."""
    found = [_summary(own(term)) for term in terms]
    return Summary(
        frozenset().union(*(s.symbols for s in found)),
        frozenset().union(*(s.constants for s in found)),
        frozenset().union(*(s.features for s in found)),
    )


def _summary(term: Term) -> Summary:
    key = term.get_id()
    known = _summaries.get(key)
    if known is None:
        if not z3.is_app(term):
            raise KernelError(f"obligations are quantifier-free: {term}")
        children = term.children()
        known = _summaries[key] = (term, _combined(term, children, [_summary(c) for c in children]))
    return known[1]


def _combined(term: Term, children: list[Term], below: list[Summary]) -> Summary:
    symbols = frozenset().union(*(s.symbols for s in below))
    constants = frozenset().union(*(s.constants for s in below))
    features = frozenset().union(*(s.features for s in below)) | _features(term, children)
    declaration = term.decl()
    _require_known(term, declaration, children)
    if declaration.kind() == z3.Z3_OP_UNINTERPRETED:
        name = declaration.name()
        symbols |= {(name, declaration)}
        if not children:
            constants |= {name}
    return Summary(symbols, constants, features)


def _require_known(term: Term, declaration: z3.FuncDeclRef, children: list[Term]) -> None:
    """Refuse what hides symbols, or whose name in the text could be mistaken for another."""
    kind, name = declaration.kind(), declaration.name()
    if kind not in _OPERATORS:
        raise KernelError(f"{name} is not an operator of these obligations")
    if kind == z3.Z3_OP_DT_CONSTRUCTOR:
        sort = term.sort()
        values = tuple(sort.constructor(i).name() for i in range(sort.num_constructors()))
        if children or not name[:1].isupper():
            raise KernelError(f"{name} is not a value of an enumeration")
        if _enumerations.setdefault(sort.name(), values) != values:
            raise KernelError(f"the enumeration {sort.name()} is declared twice")


def _features(term: z3.ExprRef, children: list[z3.ExprRef]) -> set[str]:
    found = set()
    sort = _SORTS.get(term.sort_kind())
    if sort:
        found.add(sort)
    kind = term.decl().kind()
    if kind == z3.Z3_OP_UNINTERPRETED and children:
        found.add("UF")
    if kind == z3.Z3_OP_MUL:
        numbers = sum(bool(z3.is_rational_value(c) or z3.is_int_value(c)) for c in children)
        if len(children) - numbers > 1:
            found.add("N")
    divides = kind in (z3.Z3_OP_DIV, z3.Z3_OP_IDIV, z3.Z3_OP_MOD)
    if divides and not (z3.is_rational_value(children[1]) or z3.is_int_value(children[1])):
        found.add("N")
    return found


_SHARED = re.compile(r"([?$]x)[0-9]+")
_enumerations: dict[str, tuple[str, ...]] = {}
_LOGIC = ("TRUE", "FALSE", "EQ", "DISTINCT", "ITE", "AND", "OR", "NOT", "IMPLIES", "XOR")
_ARITHMETIC = ("ANUM", "LE", "GE", "LT", "GT", "ADD", "SUB", "UMINUS", "MUL", "DIV", "IDIV", "MOD")
_OTHERS = ("UNINTERPRETED", "TO_REAL", "TO_INT", "STORE", "SELECT", "DT_CONSTRUCTOR")
_FLOATS = ("NUM", "ADD", "EQ", "LT", "GT", "LE", "GE", "RM_NEAREST_TIES_TO_EVEN")
_OPERATORS = {
    getattr(z3, f"Z3_OP_{name}")
    for name in (*_LOGIC, *_ARITHMETIC, *_OTHERS, *(f"FPA_{name}" for name in _FLOATS))
}
_SORTS = {
    z3.Z3_INT_SORT: "I",
    z3.Z3_REAL_SORT: "R",
    z3.Z3_ARRAY_SORT: "A",
    z3.Z3_DATATYPE_SORT: "DT",
    z3.Z3_FLOATING_POINT_SORT: "FP",
    z3.Z3_UNINTERPRETED_SORT: "UF",
}


def applications(term: z3.ExprRef, symbol: z3.FuncDeclRef) -> list[z3.ExprRef]:
    """The subterms that apply `symbol`."""
    name, seen, found, pending = symbol.name(), set(), [], [term]
    while pending:
        here = pending.pop()
        if here.get_id() in seen or all(n != name for n, _ in _summary(here).symbols):
            continue
        seen.add(here.get_id())
        if here.decl().eq(symbol):
            found.append(here)
        pending.extend(here.children())
    return found


def logic_of(terms: Iterable[z3.ExprRef]) -> str:
    """The SMT-LIB name of the smallest usual logic that holds `terms`."""
    features = summary(terms).features
    arithmetic = ""
    if features & {"I", "R"}:
        letters = "".join(x for x in "IR" if x in features)
        arithmetic = ("N" if "N" in features else "L") + letters + "A"
    parts = "".join(x for x in ("A", "UF", "DT", "FP") if x in features)
    return f"QF_{parts}{arithmetic}" if parts or arithmetic else "QF_UF"


def standalone_text(assertions: list[Bool]) -> str:
    """SMT-LIB 2 text that asks whether `assertions` can hold together."""
    *facts, last = (own(a) for a in assertions)
    terms = (z3.Ast * len(facts))(*(fact.as_ast() for fact in facts))
    context, logic = z3.main_ctx().ref(), logic_of(assertions)
    text = z3.Z3_benchmark_to_smtlib_string(
        context, "", logic, "unknown", "", len(facts), terms, last.as_ast()
    )
    _, _, body = text.split("\n", 2)  # without the title and the status, which say nothing
    # shared subterms are numbered as they occur, not as they happened to be made
    numbers: dict[str, str] = {}
    return _SHARED.sub(lambda m: numbers.setdefault(m[0], f"{m[1]}{len(numbers)}"), body)


def resource_count(solver: z3.Solver) -> int:
    """The solver's own count of the work it did."""
    return int(dict(iter(solver.statistics())).get("rlimit count", 0))


def default_value(unknown: Term) -> Term:
    """A value for an unknown that the solver leaves open."""
    return z3.IntVal(0) if unknown.sort() == z3.IntSort() else z3.RealVal(0)


def exact_value(value: Term) -> Fraction:
    """A number of a model as a fraction."""
    if z3.is_int_value(value) or z3.is_rational_value(value):
        return Fraction(str(value.as_fraction()) if z3.is_rational_value(value) else str(value))
    raise KernelError(f"{value} is not a rational number")


def name_of(constant: Term) -> str:
    """The name of a constant; a term that is none has no name."""
    return "" if constant.num_args() else str(constant.decl().name())
