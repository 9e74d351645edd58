"""Terms: sorts, symbols and expressions, as values that nothing can change. Trusted.

Equal terms are one object, which only this module makes: what looks like one is refused. The names are
those of z3's Python interface, as its operators are: `x + 1 <= y` is a term. What is constant is worked
out as a term is made, and what changes nothing is left out: 2 + 3 is 5, x + 0 is x, And(p, True) is p.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, TypeAlias

from proofs.trusted import infix
from proofs.trusted.folding import simpler
from proofs.trusted.sorts import (
    BOOL,
    FLOAT,
    INT,
    NAME,
    REAL,
    ArraySort,
    BoolSort,
    DeclareSort,
    Float64,
    IntSort,
    KernelError,
    RealSort,
    Sort,
    enumeration,
    plain,
    range_of,
    sort_of,
)


# ---------------------------------------------------------------------- symbols
class Symbol(NamedTuple):
    """A symbol for a function, or for a value if it takes nothing."""

    name: str
    takes: tuple[Sort, ...]
    gives: Sort

    def __call__(self, *arguments: Any) -> Any:
        _, takes, gives = symbol_of(self)
        if len(arguments) != len(takes):
            raise KernelError(f"{self.name} takes {len(takes)} arguments, not {len(arguments)}")
        return _term("apply", tuple(map(_cast, arguments, takes)), gives, self)

    def __str__(self) -> str:
        return self.name


_symbols: dict[Symbol, Symbol] = {}  # each once
_known_symbols: dict[int, Symbol] = {}  # by identity


def Function(name: str, *sorts: Sort) -> Symbol:
    """A symbol for a function; the last sort is its range."""
    *takes, gives = map(sort_of, sorts)
    made = Symbol(plain(name, NAME), tuple(takes), gives)
    made = _symbols.setdefault(made, made)
    return _known_symbols.setdefault(id(made), made)


def Const(name: str, sort: Sort) -> Any:
    return Function(name, sort)()


def Int(name: str) -> Any:
    return Const(name, INT)


def Real(name: str) -> Any:
    return Const(name, REAL)


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
        whole = RealVal(1) if self.sort == REAL else IntVal(1)
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
        return applied("neg", (term_of(self),))


_terms: dict[tuple[Any, ...], Term] = {}  # each once
_known: dict[int, Term] = {}  # by identity
_within: dict[int, frozenset[Symbol]] = {}  # by identity: the symbols in it
_new: Any = tuple.__new__  # past Term.__new__, which refuses


def _term(op: str, args: tuple[Term, ...], sort: Sort, of: Any = None) -> Term:
    """The one term of these fields. Whatever its arguments went through, here they are terms."""
    key = (op, id(of), *map(id, args)) if args or op == "apply" else (op, of, sort)
    found = _terms.get(key)
    if found is None:
        within = frozenset([of] if op == "apply" else ())
        for arg in args:
            more = _within[id(term_of(arg))]
            within = more if within <= more else within if more <= within else within | more
        found = _terms[key] = _new(Term, (op, args, sort, of))
        _known[id(found)] = found
        _within[id(found)] = within
    return found


def symbols(*terms: Term) -> frozenset[Symbol]:
    """The symbols that occur in terms."""
    each = [_within[id(term_of(term))] for term in terms]
    return each[0] if len(each) == 1 else frozenset().union(*each)


def term_of(given: Any) -> Any:
    """The same term, if this module made it. Raises KernelError."""
    if type(given) is Term and _known.get(id(given)) is given:
        return given
    raise KernelError(f"not a term: {given!r}")


def is_term(given: Any) -> bool:
    """Whether this module made it."""
    return type(given) is Term and _known.get(id(given)) is given


def EnumSort(name: str, values: Sequence[str]) -> tuple[Sort, list[Any]]:
    """A sort of these values, and the values."""
    sort = enumeration(name, values)
    return sort, [_term("value", (), sort, i) for i in range(len(sort.parts))]


def default(sort: Sort) -> Any:
    """A value for an unknown that the solver leaves open."""
    return BoolVal(False) if sort == BOOL else IntVal(0) if sort == INT else RealVal(0)


TRUE, FALSE = (_term("bool", (), BOOL, value) for value in (True, False))


def BoolVal(value: bool) -> Any:
    return TRUE if value else FALSE


def IntVal(value: Any) -> Any:
    if type(value) is not int and Fraction(value).denominator != 1:
        raise KernelError(f"{value} is not whole")
    return _term("number", (), INT, int(value))


def RealVal(value: Any) -> Any:
    if type(value) is int:
        return _term("number", (), REAL, str(value))
    given = Fraction(value)  # kept as text: a fraction's parts may be anything, and may change
    return _term("number", (), REAL, str(Fraction(int(given.numerator), int(given.denominator))))


def Q(numerator: int, denominator: int) -> Any:
    return RealVal(Fraction(numerator, denominator))


def FPVal(value: float) -> Any:
    """A number of binary64, by its bits."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    return FPBits(bits)


def FPBits(bits: int) -> Any:
    """The number of binary64 with these 64 bits."""
    if type(bits) is not int or bits < 0 or bits >> 64:
        raise KernelError(f"not 64 bits: {bits!r}")
    return _term("float", (), FLOAT, bits)


def _literal(value: Any, sort: Sort) -> Term | None:
    """A plain value of Python, as a term of a sort; nothing if it is none of it."""
    if type(value) is bool:
        return BoolVal(value) if sort == BOOL else None
    if type(value) is int and sort in (INT, REAL):
        return IntVal(value) if sort == INT else RealVal(value)
    return RealVal(value) if type(value) is Fraction and sort == REAL else None


def _cast(value: Any, sort: Sort) -> Term:
    """A term, or a plain number, as a term of this sort: a whole one may stand for a real one.

    What looks like a term is none where something is made of it: `_term` makes nothing of others.
    """
    made = value if type(value) is Term else _literal(value, sort)
    if made is not None and made.sort is sort:
        return made
    if made is not None and made.sort == INT and sort == REAL:
        made = ToReal(made)
    if made is None or made.sort != sort:
        raise KernelError(f"{value} is not of sort {sort}")
    return made


def _pair(left: Any, right: Any) -> tuple[Term, Term]:
    """Two operands, of one sort."""
    if type(left) is type(right) is Term and left.sort is right.sort:
        return left, right
    sorts = [side.sort for side in (left, right) if type(side) is Term]
    real = REAL in sorts or (INT in sorts and Fraction in (type(left), type(right)))
    sort = REAL if real else sorts[0] if sorts else INT
    return _cast(left, sort), _cast(right, sort)


def _of_numbers(op: str, left: Any, right: Any) -> Any:
    if type(left) not in _OF_NUMBERS or type(right) not in _OF_NUMBERS:
        return NotImplemented
    pair = _pair(left, right)
    if op == "/" and pair[0].sort == INT:
        op = "div"
    return applied(op, pair)


_OF_NUMBERS = frozenset([Term, int, Fraction])  # classes of operands
_COMPARED = _OF_NUMBERS | {bool}


def _compared(op: str, left: Any, right: Any) -> Any:
    if type(left) not in _COMPARED or type(right) not in _COMPARED:
        return NotImplemented
    return applied(op, _pair(left, right))


def _many(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments, given one by one or as one sequence."""
    alone = len(given) == 1 and type(given[0]) not in (Term, bool)
    return tuple(given[0]) if alone else given


def And(*formulas: Any) -> Any:
    return applied("and", tuple(_cast(f, BOOL) for f in _many(formulas)))


def Or(*formulas: Any) -> Any:
    return applied("or", tuple(_cast(f, BOOL) for f in _many(formulas)))


def Not(formula: Any) -> Any:
    return applied("not", (_cast(formula, BOOL),))


def Implies(premise: Any, conclusion: Any) -> Any:
    return applied("=>", (_cast(premise, BOOL), _cast(conclusion, BOOL)))


def If(condition: Any, then: Any, otherwise: Any) -> Any:
    return applied("ite", (_cast(condition, BOOL), *_pair(then, otherwise)))


def Distinct(*terms: Any) -> Any:
    return applied("distinct", _many(terms))


def ToReal(term: Any) -> Any:
    return applied("to_real", (term_of(term),))


def Store(array: Any, index: Any, element: Any) -> Any:
    place, of = term_of(array).sort.parts
    return applied("store", (array, _cast(index, place), _cast(element, of)))


def Sum(*terms: Any) -> Any:
    first, *others = _many(terms)
    return sum(others, start=first)


def fp(op: str, left: Any, right: Any) -> Any:
    """`fp.add`, `fp.eq`, `fp.lt` or `fp.gt` of two numbers of binary64."""
    return applied(op, (_cast(left, FLOAT), _cast(right, FLOAT)))


# ---------------------------------------------------------------------- what operators make
def applied(op: str, args: tuple[Any, ...]) -> Any:
    """An operator's application. Raises KernelError for arguments of other sorts."""
    args = tuple([term_of(arg) for arg in args])
    sorts = tuple([arg.sort for arg in args])
    sort = range_of(op, sorts) if type(op) is str else None
    if sort is None:
        raise KernelError(f"{op} has no arguments of sorts {', '.join(map(str, sorts))}")
    return _simplest(op, args, sort)


def with_args(term: Any, args: Sequence[Any]) -> Any:
    """The same operation of other arguments, which are of the same sorts."""
    args = tuple([term_of(arg) for arg in args])
    if [id(arg.sort) for arg in args] != [id(arg.sort) for arg in term_of(term).args]:
        raise KernelError(f"{term} has no such arguments")
    if term.op == "apply":
        return _term("apply", args, term.sort, symbol_of(term.of))
    return (
        _term("select", args, term.sort) if term.op == "select" else _simplest(term.op, args, term.sort)
    )


def _simplest(op: str, args: tuple[Any, ...], sort: Sort) -> Any:
    """What an application comes to; it is of this sort."""
    found = simpler(op, args)
    if found is None:
        return _term(op, args, sort)
    if type(found) is tuple:  # fewer members of `and` or `or`
        return _term(op, found, sort)
    return (
        found
        if type(found) is Term
        else FPVal(found)
        if type(found) is float
        else _literal(found, sort)
    )


Bool: TypeAlias = Any  # Term

__all__ = [
    "FALSE", "TRUE", "And", "ArraySort", "Bool", "BoolSort", "BoolVal", "Const", "DeclareSort",
    "Distinct", "EnumSort", "FPBits", "FPVal", "Float64", "Function", "If", "Implies", "Int",
    "IntSort", "IntVal", "Ints", "KernelError", "Not", "Or", "Q", "Real", "RealSort", "RealVal",
    "Sort", "Store", "Sum", "Symbol", "Term", "ToReal", "applied", "default", "fp", "is_term",
    "symbol_of", "symbols", "term_of", "with_args",
]  # fmt: skip
