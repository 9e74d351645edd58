"""The kernel's terms as terms of a certificate. Not trusted: the checker reads what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import z3

from proofs.trusted.kernel import Kernel
from psem_check.terms import BOOL, FLOAT, INT, REAL, Sort, Symbol, Term, Terms

OPERATORS = {
    z3.Z3_OP_EQ: "=",
    z3.Z3_OP_DISTINCT: "distinct",
    z3.Z3_OP_ITE: "ite",
    z3.Z3_OP_AND: "and",
    z3.Z3_OP_OR: "or",
    z3.Z3_OP_NOT: "not",
    z3.Z3_OP_IMPLIES: "=>",
    z3.Z3_OP_XOR: "xor",
    z3.Z3_OP_LE: "<=",
    z3.Z3_OP_GE: ">=",
    z3.Z3_OP_LT: "<",
    z3.Z3_OP_GT: ">",
    z3.Z3_OP_ADD: "+",
    z3.Z3_OP_SUB: "-",
    z3.Z3_OP_UMINUS: "neg",
    z3.Z3_OP_MUL: "*",
    z3.Z3_OP_DIV: "/",
    z3.Z3_OP_IDIV: "div",
    z3.Z3_OP_MOD: "mod",
    z3.Z3_OP_TO_REAL: "to_real",
    z3.Z3_OP_TO_INT: "to_int",
    z3.Z3_OP_STORE: "store",
    z3.Z3_OP_SELECT: "select",
    z3.Z3_OP_FPA_ADD: "fp.add",
    z3.Z3_OP_FPA_EQ: "fp.eq",
    z3.Z3_OP_FPA_LT: "fp.lt",
    z3.Z3_OP_FPA_GT: "fp.gt",
    z3.Z3_OP_FPA_LE: "fp.leq",
    z3.Z3_OP_FPA_GE: "fp.geq",
}
PLAIN = {z3.Z3_BOOL_SORT: BOOL, z3.Z3_INT_SORT: INT, z3.Z3_REAL_SORT: REAL}


class Translation:
    """The terms of one kernel, added to a graph that several share."""

    def __init__(self, terms: Terms, kernel: Kernel) -> None:
        self.terms = terms
        self.symbols: dict[str, int] = {}
        self.variables: list[int] = []
        self._done: dict[int, tuple[Any, Term]] = {}  # by z3's number; the term stays alive
        for name, symbol in kernel._symbols.items():
            arguments = tuple(sort_of(symbol.domain(i)) for i in range(symbol.arity()))
            self.symbols[name] = len(terms.symbols)
            terms.symbols.append(Symbol(name, arguments, sort_of(symbol.range())))
            if name in kernel._variables:
                self.variables.append(self.symbols[name])

    def symbol(self, declared: z3.FuncDeclRef) -> int:
        return self.symbols[declared.name()]

    def several(self, terms: Sequence[Any]) -> list[Term]:
        return [self.term(term) for term in terms]

    def named(self, values: Mapping[str, Any]) -> list[list[Term]]:
        """Variables by name, and the terms in their place."""
        return [
            [self.terms.apply(self.symbols[name]), self.term(z3.IntVal(v) if type(v) is int else v)]
            for name, v in values.items()
        ]

    def term(self, term: Any) -> Term:
        """The same term, in the graph."""
        pending = [term]
        while pending:
            here = pending[-1]
            children = [] if here.get_id() in self._done else here.children()
            missing = [c for c in children if c.get_id() not in self._done]
            if missing:
                pending += missing
                continue
            pending.pop()
            if here.get_id() not in self._done:
                made = self._made(here, [self._done[c.get_id()][1] for c in children])
                self._done[here.get_id()] = here, made
        return self._done[term.get_id()][1]

    def _made(self, term: Any, arguments: list[Term]) -> Term:
        terms, kind = self.terms, term.decl().kind()
        if kind == z3.Z3_OP_UNINTERPRETED:
            return terms.apply(self.symbol(term.decl()), *arguments)
        if kind in (z3.Z3_OP_TRUE, z3.Z3_OP_FALSE):
            return terms.true if kind == z3.Z3_OP_TRUE else terms.false
        if kind == z3.Z3_OP_ANUM:
            return terms.number(Fraction(term.as_string()), sort_of(term.sort()))
        if kind == z3.Z3_OP_DT_CONSTRUCTOR:
            sort = sort_of(term.sort())
            return terms.make(("value", sort, sort[2].index(term.decl().name())))
        if kind == z3.Z3_OP_FPA_NUM:
            return terms.make(("float", z3.simplify(z3.fpToIEEEBV(term)).as_long()))
        if kind == z3.Z3_OP_FPA_RM_NEAREST_TIES_TO_EVEN:
            return terms.true  # the only mode: `fp.add` leaves it out
        return self._applied(OPERATORS[kind], arguments, sort_of(term.sort()))

    def _applied(self, operator: str, arguments: list[Term], sort: Sort) -> Term:
        terms = self.terms
        if operator == "fp.add":
            return terms.make(operator, *arguments[1:])
        if operator in ("and", "or", "+", "*") and len(arguments) < 2:
            neutral = {"and": terms.true, "or": terms.false}
            if arguments:
                return arguments[0]
            return neutral[operator] if operator in neutral else terms.number(operator == "*", sort)
        if operator == "-":
            made = arguments[0]
            for argument in arguments[1:]:
                made = terms.make("-", made, argument)
            return made
        return terms.make(operator, *arguments)


def sort_of(sort: z3.SortRef) -> Sort:
    """The same sort, in a certificate."""
    kind = sort.kind()
    if kind in PLAIN:
        return PLAIN[kind]
    if kind == z3.Z3_ARRAY_SORT:
        return ("Array", sort_of(sort.domain()), sort_of(sort.range()))
    if kind == z3.Z3_UNINTERPRETED_SORT:
        return ("Sort", sort.name())
    if kind == z3.Z3_DATATYPE_SORT:
        values = (sort.constructor(i).name() for i in range(sort.num_constructors()))
        return ("Values", sort.name(), tuple(values))
    if kind == z3.Z3_ROUNDING_MODE_SORT:
        return BOOL
    if sort == z3.Float64():
        return FLOAT
    raise TypeError(f"{sort} is not a sort of certificates")
