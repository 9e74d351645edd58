"""Terms of a certificate as cvc5's, and back. Not trusted: the checker reads what comes back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvc5
from cvc5 import Kind, SkolemId

from psem_check.terms import BOOL, INT, REAL, Sort, Term, Terms

KINDS = {
    "not": Kind.NOT,
    "and": Kind.AND,
    "or": Kind.OR,
    "=>": Kind.IMPLIES,
    "=": Kind.EQUAL,
    "ite": Kind.ITE,
    "+": Kind.ADD,
    "*": Kind.MULT,
    "-": Kind.SUB,
    "neg": Kind.NEG,
    "<": Kind.LT,
    "<=": Kind.LEQ,
    ">": Kind.GT,
    ">=": Kind.GEQ,
    "/": Kind.DIVISION,
    "div": Kind.INTS_DIVISION,
    "mod": Kind.INTS_MODULUS,
    "to_real": Kind.TO_REAL,
    "select": Kind.SELECT,
    "store": Kind.STORE,
}
TOTAL = {  # zero by zero, but for the remainder, which is then the dividend
    Kind.DIVISION_TOTAL: "/",
    Kind.INTS_DIVISION_TOTAL: "div",
    Kind.INTS_MODULUS_TOTAL: "mod",
}
OPERATORS = {**{kind: name for name, kind in KINDS.items()}, **TOTAL}
DIFFER = (Kind.DISTINCT, Kind.XOR)
MIXED = ("+", "*", "-", "=", "<", "<=", ">", ">=", "ite", "/")
BY_ZERO = {SkolemId.DIV_BY_ZERO: "/", SkolemId.INT_DIV_BY_ZERO: "div", SkolemId.MOD_BY_ZERO: "mod"}


def absolute(terms: Terms, term: Term) -> Term:
    """|term|, which certificates say by cases."""
    negative = terms.make("<", term, terms.number(0, terms.sorts[term]))
    return terms.make("ite", negative, terms.make("neg", term), term)


class Unknown(Exception):
    """A term that certificates do not have."""


class Bridge:
    """The same terms in a graph and in cvc5."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.manager = cvc5.TermManager()
        self._sorts: dict[Sort, Any] = {}
        self._symbols: dict[int, Any] = {}
        self._there: dict[Term, Any] = {}
        self._back: dict[Any, Term] = {}

    def there(self, term: Term) -> Any:
        """The term in cvc5."""
        for here in self.terms.below([term]):
            if here not in self._there:
                made = self._made(here)
                self._there[here] = made
                self._back.setdefault(made, here)
        return self._there[term]

    def _made(self, term: Term) -> Any:
        manager, head = self.manager, self.terms.heads[term]
        arguments = [self._there[a] for a in self.terms.arguments[term]]
        if isinstance(head, str):
            return manager.mkTerm(KINDS[head], *arguments)
        if isinstance(head, int):
            symbol = self._symbol(head)
            return manager.mkTerm(Kind.APPLY_UF, symbol, *arguments) if arguments else symbol
        sort, what = head
        if sort == BOOL:
            return manager.mkBoolean(what)
        if sort == INT:
            return manager.mkInteger(what)
        if sort == REAL:
            return manager.mkReal(f"{what.numerator}/{what.denominator}")
        values = self._sort(sort).getDatatype()
        return manager.mkTerm(Kind.APPLY_CONSTRUCTOR, values[what].getTerm())

    def _symbol(self, symbol: int) -> Any:
        if symbol not in self._symbols:
            said = self.terms.symbols[symbol]
            sort = self._sort(said.sort)
            if said.arguments:
                sort = self.manager.mkFunctionSort([self._sort(a) for a in said.arguments], sort)
            made = self.manager.mkConst(sort, said.name)
            self._symbols[symbol] = made
            self._back[made] = self.terms.make(symbol) if not said.arguments else -1 - symbol
        return self._symbols[symbol]

    def _sort(self, sort: Sort) -> Any:
        if sort not in self._sorts:
            self._sorts[sort] = self._new_sort(sort)
        return self._sorts[sort]

    def _new_sort(self, sort: Sort) -> Any:
        manager = self.manager
        plain = {BOOL: manager.getBooleanSort, INT: manager.getIntegerSort, REAL: manager.getRealSort}
        if sort in plain:
            return plain[sort]()
        if isinstance(sort, str):
            raise Unknown(sort)
        if sort[0] == "Array":
            return manager.mkArraySort(self._sort(sort[1]), self._sort(sort[2]))
        if sort[0] == "Sort":
            return manager.mkUninterpretedSort(sort[1])
        made = manager.mkDatatypeDecl(sort[1])
        for value in sort[2]:
            made.addConstructor(manager.mkDatatypeConstructorDecl(value))
        return manager.mkDatatypeSort(made)

    # ------------------------------------------------------------------ back
    def back(self, term: Any) -> Term:
        """A term of cvc5 in the graph. Raises Unknown."""
        pending = [term]
        while pending:
            here = pending[-1]
            if here in self._back:
                pending.pop()
                continue
            children = self._children(here)
            missing = [c for c in children if c not in self._back]
            if missing:
                pending += missing
                continue
            pending.pop()
            self._back[here] = self._made_back(here, [self._back[c] for c in children])
        return self._back[term]

    def _children(self, term: Any) -> list[Any]:
        if term.isSkolem():
            if term.getSkolemId() == SkolemId.PURIFY:
                return list(term.getSkolemIndices())
            return []
        kind = term.getKind()
        if kind == Kind.APPLY_UF and term[0].isSkolem():
            return list(term)[1:]
        if kind == Kind.APPLY_TESTER:
            return [term[1]]
        return [] if kind == Kind.APPLY_CONSTRUCTOR else list(term)

    def _made_back(self, term: Any, arguments: list[Term]) -> Term:
        terms, kind = self.terms, term.getKind()
        if term.isSkolem():
            if term.getSkolemId() != SkolemId.PURIFY:
                raise Unknown(f"the skolem {term}")
            return arguments[0]
        if kind == Kind.CONST_BOOLEAN:
            return terms.true if term.getBooleanValue() else terms.false
        if kind == Kind.CONST_INTEGER:
            return terms.number(int(term.getIntegerValue()), INT)
        if kind == Kind.CONST_RATIONAL:
            return terms.number(Fraction(term.getRealValue()), REAL)
        if kind == Kind.APPLY_CONSTRUCTOR:
            return self._value(term.getSort(), str(term[0]))
        if kind == Kind.APPLY_TESTER:  # it is said by an equation
            name = str(term[0]).removeprefix("(_ is ").removesuffix(")").removeprefix("is_")
            return terms.equal(arguments[0], self._value(term[1].getSort(), name))
        if kind == Kind.APPLY_UF:
            return self._applied(term, arguments)
        if kind == Kind.ABS:
            return absolute(terms, *arguments)
        if kind in DIFFER and len(arguments) == 2:
            return terms.negation(self._of_operator("=", arguments))
        if kind not in OPERATORS:
            raise Unknown(str(kind))
        made = self._of_operator(OPERATORS[kind], arguments)
        return self._by_zero_too(made) if kind in TOTAL else made

    def _by_zero_too(self, quotient: Term) -> Term:
        """A division with what cvc5's total one is by zero."""
        terms, (dividend, divisor) = self.terms, self.terms.arguments[quotient]
        zero = terms.number(0, terms.sorts[divisor])
        by_zero = dividend if terms.heads[quotient] == "mod" else zero
        return terms.make("ite", terms.equal(divisor, zero), by_zero, quotient)

    def _value(self, of: Any, name: str) -> Term:
        for sort, made in self._sorts.items():
            if made == of:
                return self.terms.make((sort, sort[2].index(name)))
        raise Unknown(name)

    def _applied(self, term: Any, arguments: list[Term]) -> Term:
        if term[0].isSkolem():
            operator = BY_ZERO.get(term[0].getSkolemId())
            if operator is None:
                raise Unknown(f"the skolem {term[0]}")
            zero = self.terms.number(0, self.terms.sorts[arguments[0]])
            return self._of_operator(operator, [arguments[0], zero])
        return self.terms.make(-1 - arguments[0], *arguments[1:])

    def _of_operator(self, operator: str, arguments: list[Term]) -> Term:
        """With `to_real` where cvc5 mixes integers and real numbers."""
        terms = self.terms
        sorts = {terms.sorts[a] for a in arguments}
        if (operator in MIXED and sorts >= {INT, REAL}) or (operator == "/" and INT in sorts):
            arguments = [self._real(a) for a in arguments]
        if operator in ("+", "*", "and", "or") and len(arguments) == 1:
            return arguments[0]
        return terms.make(operator, *arguments)

    def _real(self, term: Term) -> Term:
        return self.terms.make("to_real", term) if self.terms.sorts[term] == INT else term
