"""Reading and writing terms: the symbols in them, and their standalone SMT-LIB text. Trusted too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    return z3.z3._to_expr_ref(_bare(term), z3.main_ctx())


def _bare(term: Term) -> Any:
    """A term without its wrapper: z3's own functions read it at a tenth of the cost."""
    if not isinstance(term, z3.ExprRef) or term.ctx != z3.main_ctx():
        raise KernelError(f"not a term: {term!r}")
    return term.as_ast()


@dataclass(frozen=True)
class Summary:
    """What occurs in a term: its uninterpreted symbols by name, and the theories it needs."""

    symbols: frozenset[tuple[str, z3.FuncDeclRef]]
    constants: frozenset[str]
    features: frozenset[str]


_summaries: dict[int, Summary] = {}  # by z3's number of a term that is kept alive
_declarations: dict[int, z3.FuncDeclRef] = {}  # likewise: one wrapper for each


def summary(terms: Iterable[z3.ExprRef]) -> Summary:
    """What occurs in `terms`. A quantifier or a lambda is refused."""
    return _combined([_summary(_bare(term)) for term in terms])


def _combined(parts: Sequence[Summary]) -> Summary:
    if len(parts) == 1:
        return parts[0]
    return Summary(
        frozenset().union(*(part.symbols for part in parts)),
        frozenset().union(*(part.constants for part in parts)),
        frozenset().union(*(part.features for part in parts)),
    )


def _summary(bare: Any) -> Summary:
    context = z3.main_ctx().ref()
    key = z3.Z3_get_ast_id(context, bare)
    known = _summaries.get(key)
    if known is None:
        if not z3.Z3_is_app(context, bare):
            term = z3.z3._to_expr_ref(bare, z3.main_ctx())
            raise KernelError(f"obligations are quantifier-free: {term}")
        count = z3.Z3_get_app_num_args(context, bare)
        children = [z3.Z3_get_app_arg(context, bare, i) for i in range(count)]
        known = _combined([_at_the_top(bare, children), *map(_summary, children)])
        z3.Z3_inc_ref(context, bare)  # its number stays its own
        _summaries[key] = known
    return known


def _at_the_top(bare: Any, children: list[Any]) -> Summary:
    """What an application adds to what occurs in its arguments."""
    context = z3.main_ctx().ref()
    applied = z3.Z3_get_app_decl(context, bare)
    kind = z3.Z3_get_decl_kind(context, applied)
    features = _features(bare, kind, children)
    if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR) and len(children) < 2:
        features |= {_SHORT}
    if kind not in _OPERATORS or kind == z3.Z3_OP_DT_CONSTRUCTOR:
        term = z3.z3._to_expr_ref(bare, z3.main_ctx())
        _require_known(term, term.decl(), term.children())
    if kind != z3.Z3_OP_UNINTERPRETED:
        return Summary(frozenset(), frozenset(), features)
    key = z3.Z3_get_ast_id(context, applied)
    if key not in _declarations:
        _declarations[key] = z3.FuncDeclRef(applied, z3.main_ctx())
    symbol = _declarations[key]
    name = symbol.name()
    constants = frozenset() if children else frozenset([name])
    return Summary(frozenset([(name, symbol)]), constants, features)


def _require_known(term: Term, declaration: z3.FuncDeclRef, children: list[Term]) -> None:
    """Refuse what hides symbols, or whose name in the text could be mistaken for another."""
    kind, name = declaration.kind(), declaration.name()
    if kind not in _OPERATORS:
        raise KernelError(f"{name} is not an operator of these obligations")
    if name in RESERVED and kind == z3.Z3_OP_DT_CONSTRUCTOR:
        raise KernelError(f"{name} means something else in SMT-LIB")
    if kind == z3.Z3_OP_DT_CONSTRUCTOR:
        sort = term.sort()
        values = tuple(sort.constructor(i).name() for i in range(sort.num_constructors()))
        if children or not name[:1].isupper():
            raise KernelError(f"{name} is not a value of an enumeration")
        if _enumerations.setdefault(sort.name(), values) != values:
            raise KernelError(f"the enumeration {sort.name()} is declared twice")


def _features(bare: Any, kind: int, children: list[Any]) -> frozenset[str]:
    context = z3.main_ctx().ref()
    sort = z3.Z3_get_sort(context, bare)
    theory = _SORTS.get(z3.Z3_get_sort_kind(context, sort))
    found = {theory} if theory else set()
    if theory in ("UF", "DT"):
        named = z3.Z3_get_symbol_string(context, z3.Z3_get_sort_name(context, sort))
        if not SORT_NAME.match(named) or named in RESERVED:
            raise KernelError(f"{named!r} is not a plain name of a sort")
    if kind == z3.Z3_OP_UNINTERPRETED and children:
        found.add("UF")
    factors = children if kind == z3.Z3_OP_MUL else ()
    if sum(not z3.Z3_is_numeral_ast(context, factor) for factor in factors) > 1:
        found.add("N")
    divides = kind in (z3.Z3_OP_DIV, z3.Z3_OP_IDIV, z3.Z3_OP_MOD)
    if divides and not z3.Z3_is_numeral_ast(context, children[1]):
        found.add("N")
    return frozenset(found)


# words that a text in SMT-LIB would take for something else than a symbol of that name
_RESERVED_WORDS = """
    and or not xor true false ite distinct let forall exists match par as is abs div mod divisible
    to_real to_int is_int select store exp sin cos tan csc sec cot arcsin arccos arctan sqrt pi
    assert check declare define get set reset push pop exit echo model unsat sat unknown
    Bool Int Real Array Float16 Float32 Float64 Float128 FloatingPoint RoundingMode BitVec String
    RNE RNA RTP RTN RTZ NUMERAL DECIMAL STRING HEXADECIMAL BINARY
"""
RESERVED = frozenset(_RESERVED_WORDS.split())
SORT_NAME = re.compile(r"[A-Z][a-zA-Z0-9_]*\Z")
_SHORT = "and or or of fewer than two"
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
        if here.get_id() in seen or all(n != name for n, _ in summary([here]).symbols):
            continue
        seen.add(here.get_id())
        if here.decl().eq(symbol):
            found.append(here)
        pending.extend(here.children())
    return found


def logic_of(terms: Iterable[z3.ExprRef]) -> str:
    """The SMT-LIB name of the smallest usual logic that holds `terms`."""
    found = summary(terms)
    features = found.features.union(*(_theories(symbol.range()) for _, symbol in found.symbols))
    arithmetic = ""
    if features & {"I", "R"}:
        letters = "".join(x for x in "IR" if x in features)
        arithmetic = ("N" if "N" in features else "L") + letters + "A"
    parts = "".join(x for x in ("A", "UF", "DT", "FP") if x in features)
    return f"QF_{parts}{arithmetic}" if parts or arithmetic else "QF_UF"


def _theories(sort: z3.SortRef) -> set[str]:
    """Of a sort, and of an array what its indices and elements need."""
    within = (sort.domain(), sort.range()) if sort.kind() == z3.Z3_ARRAY_SORT else ()
    return {_SORTS[sort.kind()]}.union(*map(_theories, within)) if sort.kind() in _SORTS else set()


def in_smtlib(term: Term) -> Term:
    """The same, with `and` and `or` of two members or more, as SMT-LIB has them."""
    if _SHORT not in summary([term]).features:
        return term
    children = [in_smtlib(child) for child in term.children()]
    if len(children) < 2 and (z3.is_and(term) or z3.is_or(term)):
        return children[0] if children else z3.BoolVal(z3.is_and(term))
    arguments = (z3.Ast * len(children))(*(child.as_ast() for child in children))
    context = z3.main_ctx()
    made = z3.Z3_update_term(context.ref(), term.as_ast(), len(children), arguments)
    return z3.z3._to_expr_ref(made, context)


def standalone_text(assertions: list[Bool]) -> str:
    """SMT-LIB 2 text that asks whether `assertions` can hold together."""
    *facts, last = (in_smtlib(own(a)) for a in assertions)
    terms = (z3.Ast * len(facts))(*(fact.as_ast() for fact in facts))
    context, logic = z3.main_ctx().ref(), logic_of(assertions)
    text = z3.Z3_benchmark_to_smtlib_string(
        context, "", logic, "unknown", "", len(facts), terms, last.as_ast()
    )
    _, _, body = text.split("\n", 2)  # without the title and the status, which say nothing
    # shared subterms are numbered as they occur, not as they happened to be made
    numbers: dict[str, str] = {}
    return _SHARED.sub(lambda m: numbers.setdefault(m[0], f"{m[1]}{len(numbers)}"), body)


_no_model: dict[tuple[str, int, int], int] = {}  # questions answered `unsat`, and the work it took


def decided(text: str, limit: int, seed: int) -> tuple[z3.CheckSatResult, tuple[Any, int]]:
    """The solver's answer to a text, then a model, if there is one, and its own count of the work.

    In a context of its own, so it depends on nothing else: what is known to have no model is not
    asked again.
    """
    question = text, limit, seed
    if question in _no_model:
        return z3.unsat, (None, _no_model[question])
    solver = z3.Solver(ctx=z3.Context())
    # an interrupt is the caller's: it must not look like an answer
    solver.set(rlimit=limit, random_seed=seed, ctrl_c=False)
    solver.from_string(text)
    answer = solver.check()
    work = int(dict(iter(solver.statistics())).get("rlimit count", 0))
    if answer == z3.unsat:
        _no_model[question] = work
    return answer, (solver.model() if answer == z3.sat else None, work)


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
