"""Terms: sorts, symbols and expressions, as values that nothing can change. Trusted.

Equal terms are one object, which only this module makes: what looks like one is refused. The names are
those of z3's Python interface, as its operators are: `x + 1 <= y` is a term. What is constant is worked
out as a term is made, and what changes nothing is left out: 2 + 3 is 5, x + 0 is x, And(p, True) is p.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, TypeAlias

from proofs.trusted import infix
from proofs.trusted.folding import ORDER, simpler


class KernelError(Exception):
    """A step that is not a proof: the solver disagrees, or a rule is misused."""


# words that a text in SMT-LIB would take for something else than a symbol of that name
_WORDS = """
    and or not xor true false ite distinct let forall exists match par as is abs div mod divisible
    to_real to_int is_int select store exp sin cos tan csc sec cot arcsin arccos arctan sqrt pi
    implies iff if nand nor lambda const map
    assert check declare define get set reset push pop exit echo model unsat sat unknown
    Bool Int Real Array Float16 Float32 Float64 Float128 FloatingPoint RoundingMode BitVec String
    RNE RNA RTP RTN RTZ NUMERAL DECIMAL STRING HEXADECIMAL BINARY
"""
RESERVED = frozenset(_WORDS.split())
NAME = re.compile(r"[a-z][a-zA-Z0-9_]*\Z")
SORT_NAME = re.compile(r"[A-Z][a-zA-Z0-9_]*\Z")


# ---------------------------------------------------------------------- sorts and symbols
class Sort(NamedTuple):
    """A sort: its kind, its name if it has one, and its parts (index and element, or values)."""

    kind: str
    name: str = ""
    parts: tuple[Any, ...] = ()

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.parts))
        return f"Array({inside})" if self.kind == "Array" else self.name or self.kind


_BOOL, _INT, _REAL, _FLOAT = map(Sort, ("Bool", "Int", "Real", "Float64"))
_PLAIN = (_BOOL, _INT, _REAL, _FLOAT)


def BoolSort() -> Sort:
    return _BOOL


def IntSort() -> Sort:
    return _INT


def RealSort() -> Sort:
    return _REAL


def Float64() -> Sort:
    """IEEE 754 binary64; sums are rounded to nearest."""
    return _FLOAT


def ArraySort(index: Sort, element: Sort) -> Sort:
    """Functions as values: from an index to an element, equal if they are equal everywhere."""
    return Sort("Array", "", (sort_of(index), sort_of(element)))


def DeclareSort(name: str) -> Sort:
    """Any set that is not empty."""
    return Sort("Sort", _plain(name, SORT_NAME))


def EnumSort(name: str, values: Sequence[str]) -> tuple[Sort, list[Any]]:
    """A sort of these values, and the values."""
    names = tuple(_plain(value, SORT_NAME) for value in values)
    if not names or len({*names}) != len(names):
        raise KernelError(f"the values of {name} are not distinct")
    sort = Sort("Values", _plain(name, SORT_NAME), names)
    return sort, [_term("value", (), sort, i) for i in range(len(names))]


def _plain(name: Any, pattern: re.Pattern[str]) -> str:
    if type(name) is not str or not pattern.match(name) or name in RESERVED:
        raise KernelError(f"{name!r} is not a plain name")
    return name


def sort_of(given: Any) -> Sort:
    """The same sort, if it is one. Raises KernelError."""
    if type(given) is Sort:
        kind, name, parts = given
        if kind == "Array" and type(parts) is tuple and len(parts) == 2:
            return ArraySort(*parts)
        if kind == "Sort" and parts == ():
            return DeclareSort(name)
        if kind == "Values" and type(parts) is tuple:
            return EnumSort(name, parts)[0]
        if given in _PLAIN:
            return given
    raise KernelError(f"not a sort of obligations: {given!r}")


class Symbol(NamedTuple):
    """A symbol for a function, or for a value if it takes nothing."""

    name: str
    takes: tuple[Sort, ...]
    gives: Sort

    def __call__(self, *arguments: Any) -> Any:
        made = symbol_of(self)
        if len(arguments) != len(made.takes):
            raise KernelError(f"{made.name} takes {len(made.takes)} arguments, not {len(arguments)}")
        args = tuple(map(_cast, arguments, made.takes))
        return _term("apply", args, made.gives, made)

    def __str__(self) -> str:
        return self.name


_symbols: dict[Symbol, Symbol] = {}  # each once
_known_symbols: dict[int, Symbol] = {}  # by identity


def Function(name: str, *sorts: Sort) -> Symbol:
    """A symbol for a function; the last sort is its range."""
    *takes, gives = map(sort_of, sorts)
    made = Symbol(_plain(name, NAME), tuple(takes), gives)
    made = _symbols.setdefault(made, made)
    return _known_symbols.setdefault(id(made), made)


def Const(name: str, sort: Sort) -> Any:
    return Function(name, sort)()


def Int(name: str) -> Any:
    return Const(name, _INT)


def Real(name: str) -> Any:
    return Const(name, _REAL)


def Ints(names: str) -> list[Any]:
    return [Int(name) for name in names.split()]


def symbol_of(given: Any) -> Symbol:
    """The same symbol, if `Function` made it. Raises KernelError."""
    if type(given) is Symbol and _known_symbols.get(id(given)) is given:
        return given
    raise KernelError(f"not a symbol: {given!r}")


# ---------------------------------------------------------------------- terms
class _Fields(NamedTuple):
    op: str  # apply, number, value, bool, float, or an operator's name
    args: tuple[Any, ...]
    sort: Sort
    of: Any  # the symbol, or what is constant


class Term(_Fields):
    """An expression. Its fields are read by name; operators make other terms."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __new__(cls, *_: object, **__: object) -> NoReturn:
        raise KernelError("terms are made by operators only")

    def __init_subclass__(cls, **_: object) -> NoReturn:
        raise KernelError("a term has no subclasses")

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise KernelError("a term is not data: it can be neither copied nor pickled")

    def __len__(self) -> NoReturn:
        raise TypeError("a term has no members")

    __contains__ = __len__  # type: ignore[assignment]

    def __bool__(self) -> bool:
        if self.op == "bool":
            return bool(self.of)
        if self.op in ("=", "distinct") and len(self.args) == 2:
            return (self.args[0] is self.args[1]) == (self.op == "=")
        raise TypeError(f"{self} is true or false for some values only")

    def __str__(self) -> str:
        return infix.text(self)

    __repr__ = __str__

    def __getitem__(self, index: Any) -> Any:
        if self.sort.kind != "Array":
            raise KernelError(f"{self} is no array")
        place, element = self.sort.parts
        return _term("select", (term_of(self), _cast(index, place)), element)

    def __eq__(self, other: object) -> Any:
        return _compared("=", self, other)

    def __ne__(self, other: object) -> Any:
        return _compared("distinct", self, other)

    def __lt__(self, other: Any) -> Any:
        return _compared("<", self, other)

    def __le__(self, other: Any) -> Any:
        return _compared("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return _compared(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return _compared(">=", self, other)

    def __add__(self, other: Any) -> Any:
        return _of_numbers("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return _of_numbers("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return _of_numbers("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _of_numbers("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return _of_numbers("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _of_numbers("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _of_numbers("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _of_numbers("/", other, self)

    def __mod__(self, other: Any) -> Any:
        return _of_numbers("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _of_numbers("mod", other, self)

    def __pow__(self, exponent: int) -> Any:
        whole = RealVal(1) if self.sort == _REAL else IntVal(1)
        for _ in range(abs(exponent)):
            whole = whole * self
        return whole if exponent >= 0 else 1 / whole

    def __and__(self, other: Any) -> Any:
        return And(self, other)

    def __rand__(self, other: Any) -> Any:
        return And(other, self)

    def __or__(self, other: Any) -> Any:
        return Or(self, other)

    def __ror__(self, other: Any) -> Any:
        return Or(other, self)

    def __neg__(self) -> Any:
        return _made("neg", (term_of(self),))


_terms: dict[tuple[Any, ...], Term] = {}  # each once
_known: dict[int, Term] = {}  # by identity
_new: Any = tuple.__new__  # past Term.__new__, which refuses


def _term(op: str, args: tuple[Term, ...], sort: Sort, of: Any = None) -> Term:
    key = (op, *map(id, (of, *args))) if args or op == "apply" else (op, of, sort)
    found = _terms.get(key)
    if found is None:
        for arg in args:
            term_of(arg)
        found = _terms[key] = _new(Term, (op, args, sort, of))
        _known[id(found)] = found
    return found


def term_of(given: Any) -> Any:
    """The same term, if this module made it. Raises KernelError."""
    if is_term(given):
        return given
    raise KernelError(f"not a term: {given!r}")


def is_term(given: Any) -> bool:
    """Whether this module made it."""
    return type(given) is Term and _known.get(id(given)) is given


TRUE, FALSE = (_term("bool", (), _BOOL, value) for value in (True, False))


def BoolVal(value: bool) -> Any:
    return TRUE if value else FALSE


def IntVal(value: Any) -> Any:
    if Fraction(value).denominator != 1:
        raise KernelError(f"{value} is not whole")
    return _term("number", (), _INT, int(value))


def RealVal(value: Any) -> Any:
    return _term("number", (), _REAL, Fraction(value))


def Q(numerator: int, denominator: int) -> Any:
    return RealVal(Fraction(numerator, denominator))


def FPVal(value: float) -> Any:
    """A number of binary64, by its bits."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    return FPBits(bits)


def FPBits(bits: int) -> Any:
    """The number of binary64 with these 64 bits."""
    return _term("float", (), _FLOAT, bits)


def _literal(value: Any, sort: Sort) -> Term | None:
    """A plain value of Python, as a term of a sort; nothing if it is none of it."""
    if type(value) is bool:
        return BoolVal(value) if sort == _BOOL else None
    if type(value) is int and sort in (_INT, _REAL):
        return IntVal(value) if sort == _INT else RealVal(value)
    return RealVal(value) if type(value) is Fraction and sort == _REAL else None


def _cast(value: Any, sort: Sort) -> Term:
    """A term, or a plain number, as a term of this sort: a whole one may stand for a real one."""
    made = value if is_term(value) else _literal(value, sort)
    if made is not None and made.sort == _INT and sort == _REAL:
        made = ToReal(made)
    if made is None or made.sort != sort:
        raise KernelError(f"{value} is not of sort {sort}")
    return made


def _pair(left: Any, right: Any) -> tuple[Term, Term]:
    """Two operands, of one sort."""
    sorts = [side.sort for side in (left, right) if is_term(side)]
    real = _REAL in sorts or (_INT in sorts and Fraction in (type(left), type(right)))
    sort = _REAL if real else sorts[0] if sorts else _INT
    return _cast(left, sort), _cast(right, sort)


def _of_numbers(op: str, left: Any, right: Any) -> Any:
    if not all(is_term(side) or type(side) in (int, Fraction) for side in (left, right)):
        return NotImplemented
    pair = _pair(left, right)
    if op == "/" and pair[0].sort == _INT:
        op = "div"
    return _made(op, pair)


def _compared(op: str, left: Any, right: Any) -> Any:
    if not all(is_term(side) or type(side) in (int, bool, Fraction) for side in (left, right)):
        return NotImplemented
    return _made(op, _pair(left, right))


def _many(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments, given one by one or as one sequence."""
    alone = len(given) == 1 and not is_term(given[0]) and type(given[0]) is not bool
    return tuple(given[0]) if alone else given


def And(*formulas: Any) -> Any:
    return _made("and", tuple(_cast(f, _BOOL) for f in _many(formulas)))


def Or(*formulas: Any) -> Any:
    return _made("or", tuple(_cast(f, _BOOL) for f in _many(formulas)))


def Not(formula: Any) -> Any:
    return _made("not", (_cast(formula, _BOOL),))


def Implies(premise: Any, conclusion: Any) -> Any:
    return _made("=>", (_cast(premise, _BOOL), _cast(conclusion, _BOOL)))


def If(condition: Any, then: Any, otherwise: Any) -> Any:
    return _made("ite", (_cast(condition, _BOOL), *_pair(then, otherwise)))


def Distinct(*terms: Any) -> Any:
    return _made("distinct", _many(terms))


def ToReal(term: Any) -> Any:
    return _made("to_real", (term_of(term),))


def Store(array: Any, index: Any, element: Any) -> Any:
    place, of = term_of(array).sort.parts
    return _made("store", (array, _cast(index, place), _cast(element, of)))


def Sum(*terms: Any) -> Any:
    first, *others = _many(terms)
    return sum(others, start=first)


def fp(op: str, left: Any, right: Any) -> Any:
    """`fp.add`, `fp.eq`, `fp.lt` or `fp.gt` of two numbers of binary64."""
    return _made(op, (_cast(left, _FLOAT), _cast(right, _FLOAT)))


# ---------------------------------------------------------------------- what operators make
def _made(op: str, args: tuple[Any, ...]) -> Any:
    """An operator's application. Raises KernelError for arguments of other sorts."""
    for arg in args:
        term_of(arg)
    sorts = tuple(arg.sort for arg in args)
    sort = _range(op, sorts)
    if sort is None:
        raise KernelError(f"{op} has no arguments of sorts {', '.join(map(str, sorts))}")
    found = simpler(op, args)
    if found is None:
        return _term(op, args, sort)
    if type(found) is tuple:  # fewer members of `and` or `or`
        return _term(op, found, sort)
    return found if is_term(found) else FPVal(found) if type(found) is float else _literal(found, sort)


def _range(op: str, sorts: tuple[Sort, ...]) -> Sort | None:
    """The sort of an application; nothing if there is none."""
    if op in ("and", "or"):
        return _BOOL if all(sort == _BOOL for sort in sorts) else None
    if op in _SIGNATURES:
        takes, gives = _SIGNATURES[op]
        return gives if sorts == takes else None
    count, first = len(sorts), sorts[0]
    if op == "ite":
        return sorts[1] if count == 3 and first == _BOOL and sorts[1] == sorts[2] else None
    if op == "store":
        return first if first.kind == "Array" and sorts[1:] == first.parts else None
    alike = all(sort == first for sort in sorts)
    if op in ("=", "distinct"):
        return _BOOL if alike and (count == 2 or (op == "distinct" and count > 2)) else None
    if not alike or first not in (_INT, _REAL) or count != (1 if op == "neg" else 2):
        return None
    return _BOOL if op in ORDER else first


_SIGNATURES: dict[str, tuple[tuple[Sort, ...], Sort]] = {
    "not": ((_BOOL,), _BOOL),
    "=>": ((_BOOL, _BOOL), _BOOL),
    "/": ((_REAL, _REAL), _REAL),
    "div": ((_INT, _INT), _INT),
    "mod": ((_INT, _INT), _INT),
    "to_real": ((_INT,), _REAL),
    "fp.add": ((_FLOAT, _FLOAT), _FLOAT),
    **dict.fromkeys(("fp.eq", "fp.lt", "fp.gt"), ((_FLOAT, _FLOAT), _BOOL)),
}


# ---------------------------------------------------------------------- what is in terms
_in_terms: dict[int, frozenset[Symbol]] = {}  # by identity: terms stay
_real: set[int] = set()  # terms in which there is a real number, likewise


def below(terms: Iterable[Term]) -> list[Term]:
    """Terms and all their parts, each once, parts first."""
    found: dict[int, Term] = {}

    def visit(term: Term) -> None:
        for arg in term.args:
            if id(arg) not in found:
                visit(arg)
        found[id(term)] = term

    for term in terms:
        if id(term) not in found:
            visit(term)
    return list(found.values())


def symbols(*terms: Term) -> frozenset[Symbol]:
    """The symbols that occur in terms."""
    missing = [term for term in terms if id(term_of(term)) not in _in_terms]
    for term in below(missing) if missing else ():
        if id(term) not in _in_terms:
            found = [_in_terms[id(arg)] for arg in term.args]
            own = frozenset([term.of]) if term.op == "apply" else frozenset()
            largest = max(found, key=len, default=own)
            alone = own <= largest and all(each <= largest for each in found)
            _in_terms[id(term)] = largest if alone else own.union(*found)
            if term.sort == _REAL or any(id(arg) in _real for arg in term.args):
                _real.add(id(term))
    return frozenset().union(*(_in_terms[id(term)] for term in terms))


def speak_of_reals(*terms: Term) -> bool:
    """Whether there is a real number in terms."""
    symbols(*terms)
    return any(id(term) in _real for term in terms)


def constants(*terms: Term) -> frozenset[str]:
    """The names of the constants that occur in terms."""
    return frozenset(symbol.name for symbol in symbols(*terms) if not symbol.takes)


def name_of(term: Term) -> str:
    """The name of a constant; a term that is none has no name."""
    return term.of.name if term.op == "apply" and not term.args else ""


def substitute(term: Any, *pairs: tuple[Any, Any]) -> Any:
    """The term with others in place of some of its parts, all at once."""
    done: dict[int, Any] = {}
    for part, other in pairs:
        if term_of(part).sort != term_of(other).sort:
            raise KernelError(f"{other} cannot stand for {part}: it is of another sort")
        done.setdefault(id(part), other)
    heads = {part.of for part, _ in pairs} if all(part.op == "apply" for part, _ in pairs) else None

    def replaced(here: Any) -> Any:
        known = done.get(id(here))
        if known is None:
            if heads is not None and heads.isdisjoint(symbols(here)):
                known = here
            else:
                known = with_args(here, tuple(map(replaced, here.args)))
            done[id(here)] = known
        return known

    return replaced(term_of(term))


def with_args(term: Any, args: tuple[Any, ...]) -> Any:
    """The same operation of other arguments."""
    if all(a is b for a, b in zip(args, term.args, strict=True)):
        return term
    if term.op == "apply":
        return term.of(*args)
    return args[0][args[1]] if term.op == "select" else _made(term.op, args)


Bool: TypeAlias = Any  # Term
