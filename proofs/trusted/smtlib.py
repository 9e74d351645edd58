"""Reading and writing terms: the symbols in them, and their standalone SMT-LIB text. Trusted too."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import z3

# Terms are dropped by Python's collector, in whichever thread it runs: z3 takes them away in its own.
z3.Z3_enable_concurrent_dec_ref(z3.main_ctx().ref())

Term: TypeAlias = Any  # z3.ExprRef
Bool: TypeAlias = Any  # z3.BoolRef


class KernelError(Exception):
    """A step that is not a proof: the solver disagrees, or a rule is misused."""


def own(given: Any, kind: Any = z3.ExprRef) -> Any:
    """The same term, sort or function in a wrapper of its own, which the caller does not have.

    The gate of the kernel: of what others hand it, the address alone is read, and once.
    """
    bare = _bare(given)
    if bare.value not in _summaries and not _is_of_this_context(bare):
        raise KernelError("not a term, a sort or a function of this context")
    made = z3.z3._to_ast_ref(bare, z3.main_ctx())
    if not isinstance(made, kind):
        raise KernelError(f"not a term of the kind needed here: {given!r}")
    return made


def own_formula(given: Bool) -> Bool:
    """The same formula, likewise, if it may stand in an obligation."""
    made = own(given, z3.BoolRef)
    summary([made])
    return made


def _bare(given: Any) -> Any:
    """A term without its wrapper: z3's own functions read it at a tenth of the cost."""
    if not isinstance(given, z3.AstRef) or given.ctx is not z3.main_ctx():
        raise KernelError(f"not a term: {given!r}")
    return z3.Ast.from_buffer_copy(given.ast)


def _is_of_this_context(bare: Any) -> bool:
    """Whether it has a sort of this context: that sort, made once more, has the same address.

    What is of another context is freed with that, whatever its wrapper says and whoever refers to it.
    """
    context = z3.main_ctx().ref()
    kind, sort = z3.Z3_get_ast_kind(context, bare), bare
    if kind != z3.Z3_SORT_AST:
        of = z3.Z3_get_range if kind == z3.Z3_FUNC_DECL_AST else z3.Z3_get_sort
        sort = of(context, bare)
    return sort.value in _theories_of or bool(_sort_again(context, sort).value == sort.value)


def _sort_again(context: Any, sort: Any) -> Any:
    kind = z3.Z3_get_sort_kind(context, sort)
    if kind in _PLAIN_SORTS:
        return _PLAIN_SORTS[kind](context)
    if kind == z3.Z3_UNINTERPRETED_SORT:
        return z3.Z3_mk_uninterpreted_sort(context, z3.Z3_get_sort_name(context, sort))
    if kind == z3.Z3_FLOATING_POINT_SORT:
        bits = (size(context, sort) for size in (z3.Z3_fpa_get_ebits, z3.Z3_fpa_get_sbits))
        return z3.Z3_mk_fpa_sort(context, *bits)
    if kind == z3.Z3_ARRAY_SORT:
        *indices, elements = (_sort_again(context, part) for part in _parts(context, sort, kind))
        return z3.Z3_mk_array_sort_n(
            context, len(indices), (z3.Sort * len(indices))(*indices), elements
        )
    if kind == z3.Z3_DATATYPE_SORT:
        name = z3.Z3_get_sort_name(context, sort)
        return z3.Z3_mk_datatype_sort(context, name, 0, (z3.Sort * 0)())
    return sort  # of no obligation


@dataclass(frozen=True)
class Summary:
    """What occurs in a term: its uninterpreted symbols by name, and the theories it needs."""

    symbols: frozenset[tuple[str, z3.FuncDeclRef]]
    constants: frozenset[str]
    features: frozenset[str]


_summaries: dict[int, Summary] = {}  # by the address of a term that is kept alive
_declarations: dict[int, z3.FuncDeclRef] = {}  # likewise: one wrapper for each
_theories_of: dict[int, tuple[str, ...]] = {}  # likewise, by the address of a sort


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
    key = bare.value
    known = _summaries.get(key)
    if known is None:
        context = z3.main_ctx().ref()
        if not z3.Z3_is_app(context, bare):
            term = z3.z3._to_ast_ref(bare, z3.main_ctx())
            raise KernelError(f"obligations are quantifier-free: {term}")
        count = z3.Z3_get_app_num_args(context, bare)
        children = [z3.Z3_get_app_arg(context, bare, i) for i in range(count)]
        known = _combined([_at_the_top(bare, children), *map(_summary, children)])
        z3.Z3_inc_ref(context, bare)  # its address stays its own
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
    if kind in (z3.Z3_OP_TO_REAL, z3.Z3_OP_ITE):
        features |= {CONVERTS}
    if kind not in _OPERATORS or kind == z3.Z3_OP_DT_CONSTRUCTOR:
        term = z3.z3._to_expr_ref(bare, z3.main_ctx())
        _require_known(term, term.decl(), term.children())
    if kind != z3.Z3_OP_UNINTERPRETED:
        return Summary(frozenset(), frozenset(), features)
    key = applied.value
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
    if kind == z3.Z3_OP_DT_CONSTRUCTOR:
        sort = term.sort()
        values = tuple(sort.constructor(i).name() for i in range(sort.num_constructors()))
        if children or name not in values:
            raise KernelError(f"{name} is not a value of an enumeration")
        _require_the_same(sort.name(), values)
        _require_free(declaration)


def _require_the_same(enumeration: str, values: tuple[str, ...]) -> None:
    """Refuse an enumeration that is declared again with other values, and values of other names."""
    if not all(SORT_NAME.match(value) and value not in RESERVED for value in values):
        raise KernelError(f"the values of {enumeration} have no plain names")
    if _enumerations.setdefault(enumeration, values) != values:
        raise KernelError(f"the enumeration {enumeration} is declared twice")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interrupt waits: z3's reader has a handler of its own, that may wait for itself forever."""
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def symbol(name: str, *sorts: z3.SortRef) -> z3.FuncDeclRef:
    """A symbol for a function; the last sort is its range."""
    if type(name) is not str or not NAME.match(name) or name in RESERVED:
        raise KernelError(f"{name!r} is not a plain name")
    made = z3.Function(name, *(own(sort, z3.SortRef) for sort in sorts))
    _require_free(made)
    return made


def with_last(f: z3.FuncDeclRef, last: Term) -> Callable[..., Any]:
    """f with its last argument given, for others to call: what they do to it does not change f."""
    f, last = own(f, z3.FuncDeclRef), own(last)
    return lambda *args: f(*args, last)


def _require_free(declared: z3.FuncDeclRef) -> None:
    """Refuse a symbol that a text reads as an operator: the reader itself is asked."""
    key = declared.ast.value
    if key in _free:
        return
    name = declared.name()
    arguments = [f"x!{i}" for i in range(declared.arity())]
    applied = f"({' '.join([name, *arguments])})" if arguments else name
    with _uninterrupted():
        _reader.from_string("(push)")
        try:
            _reader.add_decl(declared)
            for i, argument in enumerate(arguments):
                _reader.add_decl(z3.Function(argument, declared.domain(i)))
            (equation,) = _reader.from_string(f"(assert (= {applied} {applied}))")
        except z3.Z3Exception as error:
            raise KernelError(f"{name} is not a plain name: {error}") from error
        finally:
            _reader.from_string("(pop)")
    if not equation.arg(0).decl().eq(declared):
        raise KernelError(f"{name} is not a plain name: it is an operator of SMT-LIB")
    _free[key] = declared  # kept alive: its address stays its own


def _features(bare: Any, kind: int, children: list[Any]) -> frozenset[str]:
    context = z3.main_ctx().ref()
    theory = _theories(z3.Z3_get_sort(context, bare))[0]
    found = {theory} if theory else set()
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
NAME = re.compile(r"[a-z][a-zA-Z0-9_]*\Z")
SORT_NAME = re.compile(r"[A-Z][a-zA-Z0-9_]*\Z")
_SHORT = "and or or of fewer than two"
CONVERTS = "a term of another sort in its place"
_SHARED = re.compile(r"([?$]x)[0-9]+")
_DECLARED = re.compile(r"\(declare-fun (\w+)")
_NAMES = re.compile(r"(?<![?$\w])[a-z]\w*")  # but for those of shared subterms
_ENUMERATION = re.compile(r"\(declare-datatypes \(\((\w+) 0\)\) \(\((\(\w+\)(?: \(\w+\))*)\)\)\)")
_enumerations: dict[str, tuple[str, ...]] = {}  # by name, with their values
_free: dict[int, z3.FuncDeclRef] = {}  # by address
with _uninterrupted():  # half made, it could not be taken away
    _reader = z3.ParserContext()
_LOGIC = ("TRUE", "FALSE", "EQ", "DISTINCT", "ITE", "AND", "OR", "NOT", "IMPLIES", "XOR")
_ARITHMETIC = ("ANUM", "LE", "GE", "LT", "GT", "ADD", "SUB", "UMINUS", "MUL", "DIV", "IDIV", "MOD")
_OTHERS = ("UNINTERPRETED", "TO_REAL", "TO_INT", "STORE", "SELECT", "DT_CONSTRUCTOR")
_FLOATS = ("NUM", "ADD", "EQ", "LT", "GT", "LE", "GE", "RM_NEAREST_TIES_TO_EVEN")
_OPERATORS = {
    getattr(z3, f"Z3_OP_{name}")
    for name in (*_LOGIC, *_ARITHMETIC, *_OTHERS, *(f"FPA_{name}" for name in _FLOATS))
}
_PLAIN_SORTS = {
    z3.Z3_BOOL_SORT: z3.Z3_mk_bool_sort,
    z3.Z3_INT_SORT: z3.Z3_mk_int_sort,
    z3.Z3_REAL_SORT: z3.Z3_mk_real_sort,
    z3.Z3_ROUNDING_MODE_SORT: z3.Z3_mk_fpa_rounding_mode_sort,
}
_SORTS = {
    z3.Z3_BOOL_SORT: "",
    z3.Z3_ROUNDING_MODE_SORT: "",
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
    features = found.features.union(*(_theories(symbol.range().ast) for _, symbol in found.symbols))
    arithmetic = ""
    if features & {"I", "R"}:
        letters = "".join(x for x in "IR" if x in features)
        arithmetic = ("N" if "N" in features else "L") + letters + "A"
    parts = "".join(x for x in ("A", "UF", "DT", "FP") if x in features)
    return f"QF_{parts}{arithmetic}" if parts or arithmetic else "QF_UF"


def _theories(sort: Any) -> tuple[str, ...]:
    """What a sort needs: itself first, then the indices and elements of an array."""
    known = _theories_of.get(sort.value)
    if known is None:
        context = z3.main_ctx().ref()
        if not _is_of_this_context(sort):
            raise KernelError("a sort of another context")
        kind = z3.Z3_get_sort_kind(context, sort)
        name = z3.Z3_get_symbol_string(context, z3.Z3_get_sort_name(context, sort))
        if kind not in _SORTS:
            raise KernelError(f"{name} is not a sort of these obligations")
        if _SORTS[kind] in ("UF", "DT") and (not SORT_NAME.match(name) or name in RESERVED):
            raise KernelError(f"{name!r} is not a plain name of a sort")
        known = (_SORTS[kind], *(of for part in _parts(context, sort, kind) for of in _theories(part)))
        z3.Z3_inc_ref(context, z3.Z3_sort_to_ast(context, sort))  # its address stays its own
        _theories_of[sort.value] = known
    return known


def _parts(context: Any, sort: Any, kind: int) -> list[Any]:
    if kind != z3.Z3_ARRAY_SORT:
        return []
    indices = range(z3.Z3_get_array_arity(context, sort))
    return [
        *(z3.Z3_get_array_sort_domain_n(context, sort, i) for i in indices),
        z3.Z3_get_array_sort_range(context, sort),
    ]


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
    _require_enumerations(body)
    # shared subterms are numbered as they occur, not as they happened to be made
    numbers: dict[str, str] = {}
    return _SHARED.sub(lambda m: numbers.setdefault(m[0], f"{m[1]}{len(numbers)}"), body)


def _require_enumerations(text: str) -> None:
    """Every text means the same by an enumeration, wherever in the sorts of its terms it occurs."""
    found = _ENUMERATION.findall(text)
    if len(found) != text.count("(declare-datatype"):
        raise KernelError("a datatype is not an enumeration with plain names")
    for name, values in found:
        _require_the_same(name, tuple(values[1:-1].split(") (")))


_no_model: dict[tuple[str, int, int], int] = {}  # questions answered `unsat`, and the work it took


def decided(text: str, limit: int, seed: int) -> tuple[z3.CheckSatResult, tuple[dict[str, Term], int]]:
    """The solver's answer to a text, then the constants of a model, if there is one, by name, and its
    own count of the work.

    In a context of its own, with numbers for the names of symbols, so it depends on nothing else:
    what is known to have no model is not asked again.
    """
    names = _DECLARED.findall(text)
    numbers = {name: f"s{i}" for i, name in enumerate(names)}
    text = _NAMES.sub(lambda m: numbers.get(m[0], m[0]), text)
    question = text, limit, seed
    if question in _no_model:
        return z3.unsat, ({}, _no_model[question])
    solver = z3.Solver(ctx=z3.Context())
    # an interrupt is the caller's: it must not look like an answer
    solver.set(rlimit=limit, random_seed=seed, ctrl_c=False)
    with _uninterrupted():
        solver.from_string(text)
    answer = solver.check()
    work = int(solver.statistics().get_key_value("rlimit count"))
    if answer == z3.unsat:
        _no_model[question] = work
    model = solver.model() if answer == z3.sat else ()
    values = {d.name(): model[d] for d in model if not d.arity()}
    return answer, ({name: values[n] for name, n in numbers.items() if n in values}, work)


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
