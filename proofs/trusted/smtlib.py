"""Terms as standalone SMT-LIB text. Trusted: the solver decides what is written here.

Symbols and sorts have numbers for names (`s0`, `s1`, ...), so that no name can be mistaken for
anything else and questions that differ in names are one. What occurs several times is defined once,
above what is asserted. `psem_model/audit/obligations.py` writes it for readers, with its own names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from proofs.trusted.folding import as_number
from proofs.trusted.parts import below
from proofs.trusted.terms import Bool, Sort, Symbol, Term

WORTH = 3  # arguments, of it and of its parts, from which on what occurs several times is defined once
SPELLED = {"neg": "-", "fp.add": "fp.add RNE"}


@dataclass(frozen=True)
class ForAll:
    """A formula for all values of some variables. No obligation has one: it is asked of hypotheses."""

    variables: tuple[Term, ...]
    formula: Bool


class Names:
    """What sorts and symbols are called in a text, and the lines that declare them."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.declared: dict[Any, str] = {}

    def called(self, own: str, prefix: str) -> str:
        """The name of a sort or a symbol that is called so elsewhere."""
        return f"{prefix}{len(self.names)}"

    def value(self, sort: Sort, index: int) -> str:
        return f"v{index}{self.sort(sort)}"

    def sort(self, sort: Sort) -> str:
        if sort.kind == "Array":
            return f"(Array {' '.join(map(self.sort, sort.parts))})"
        if sort.kind not in ("Sort", "Values"):
            return sort.kind
        if sort not in self.names:
            name = self.called(sort.name, f"E{len(sort.parts)}x" if sort.parts else "S")
            self.names[sort] = name
            values = " ".join(f"({self.value(sort, i)})" for i in range(len(sort.parts)))
            datatype = f"(declare-datatypes (({name} 0)) (({values})))"
            self.declared[sort] = datatype if sort.kind == "Values" else f"(declare-sort {name} 0)"
        return self.names[sort]

    def symbol(self, symbol: Symbol) -> str:
        if symbol not in self.names:
            takes, gives = " ".join(map(self.sort, symbol.takes)), self.sort(symbol.gives)
            name = self.names[symbol] = self.called(symbol.name, "s")
            self.declared[symbol] = f"(declare-fun {name} ({takes}) {gives})"
        return self.names[symbol]

    def head(self, term: Term) -> str:
        """What stands before a term's arguments, or for it if it has none."""
        if term.op == "apply":
            return self.symbol(term.of)
        if term.op == "value":
            return self.value(term.sort, term.of)
        return SPELLED.get(term.op, term.op) if term.args else _literal(term)


class Question:
    """Whether formulas can hold together: the text, and what the symbols are called in it."""

    def __init__(self, formulas: Sequence[Bool | ForAll]) -> None:
        self._names = Names()
        self._defined: list[str] = []
        bound = [v for f in formulas if isinstance(f, ForAll) for v in f.variables]
        self._bound = {v.of for v in bound}
        bodies = [f.formula if isinstance(f, ForAll) else f for f in formulas]
        spelled = self._spelled(below([*bodies, *bound]))
        self._said: list[str] = []  # for each formula
        for formula, body in zip(formulas, bodies, strict=True):
            said = spelled[id(body)]
            if isinstance(formula, ForAll):
                over = (f"({spelled[id(v)]} {self._names.sort(v.sort)})" for v in formula.variables)
                said = f"(forall ({' '.join(over)}) {said})"
            self._said.append(said)

    def _lines(self) -> list[str]:
        """What is declared and defined."""
        declared = [line for key, line in self._names.declared.items() if key not in self._bound]
        return [*declared, *self._defined]

    @property
    def text(self) -> str:
        """Asks whether all can hold together."""
        asserted = [f"(assert {said})" for said in self._said]
        return "\n".join([*self._lines(), *asserted, "(check-sat)", ""])

    def without(self, dropped: Sequence[Sequence[int]]) -> str:
        """Asks whether all can hold together but for some, by their numbers; of each."""
        kept = [f"k{i}" for i in range(len(self._said))]
        lines = self._lines()
        for name, said in zip(kept, self._said, strict=True):
            lines += [f"(declare-fun {name} () Bool)", f"(assert (=> {name} {said}))"]
        for some in dropped:
            rest = " ".join(name for i, name in enumerate(kept) if i not in some)
            lines.append(f"(check-sat-assuming ({rest}))")
        return "\n".join([*lines, ""])

    @property
    def symbols(self) -> dict[str, Symbol]:
        """The constants and functions, by what they are called in the text."""
        return {name: key for key, name in self._names.names.items() if isinstance(key, Symbol)}

    def _spelled(self, parts: Sequence[Term]) -> dict[int, str]:
        """What stands in the text for each term; those that are shared are defined."""
        uses = Counter(map(id, chain.from_iterable([term.args for term in parts])))
        shared = {key for key, count in uses.items() if count > 1}
        spelled: dict[int, str] = {}
        bound: set[int] = set()  # terms with a variable of a hypothesis for all values: not shared
        heads: dict[int, str] = {}
        for term in parts:
            op, args, sort, of = term
            if op != "apply":
                head = SPELLED.get(op, op) if args else self._names.head(term)
            elif (head := heads.get(id(of), "")) == "":
                head = heads[id(of)] = self._names.symbol(of)
            key = id(term)
            if not args:
                spelled[key] = head
                if op == "apply" and self._bound and of in self._bound:
                    bound.add(key)
                continue
            said = f"({head} {' '.join(map(spelled.__getitem__, map(id, args)))})"
            if bound and not bound.isdisjoint(map(id, args)):
                bound.add(key)
            elif key in shared and said.count(" ") >= WORTH:
                name = f"x{len(self._defined)}"
                self._defined.append(f"(define-fun {name} () {self._names.sort(sort)} {said})")
                said = name
            spelled[key] = said
        return spelled


def _literal(term: Term) -> str:
    if term.op == "bool":
        return "true" if term.of else "false"
    if term.op == "float":
        bits = f"{term.of:064b}"
        return f"(fp #b{bits[0]} #b{bits[1:12]} #b{bits[12:]})"
    value = as_number(term)
    dot = "" if term.sort.kind == "Int" else ".0"
    said = f"{abs(value.numerator)}{dot}"
    if value.denominator != 1:
        said = f"(/ {said} {value.denominator}{dot})"
    return f"(- {said})" if value < 0 else said
