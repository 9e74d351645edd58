"""Terms as standalone SMT-LIB text. Trusted: the solver decides what is written here.

A question is written with numbers for names (`s0`, `s1`, ...), so that no name can be mistaken for
anything else and questions that differ in names are one; for readers it is written with its own names.
What occurs several times is defined once, above what is asserted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from proofs.trusted.parts import below
from proofs.trusted.terms import Bool, Sort, Symbol, Term

WORTH = 4  # operators and symbols, from which on what occurs several times is defined once
SHORT = 40  # characters that a reader would rather read again
SPELLED = {"neg": "-", "fp.add": "fp.add RNE"}


@dataclass(frozen=True)
class ForAll:
    """A formula for all values of some variables. No obligation has one: it is asked of hypotheses."""

    variables: tuple[Term, ...]
    formula: Bool


class Question:
    """Whether formulas can hold together: the text, and what the symbols are called in it."""

    def __init__(
        self, formulas: Sequence[Bool | ForAll], readable: bool = False, notes: Sequence[str] = ()
    ) -> None:
        """`readable`: with the symbols' own names, and `notes` on the formulas, in their order."""
        self.readable = readable
        self.names: dict[Any, str] = {}  # of symbols and sorts, and of terms that are shared
        self._declared: list[str] = []
        self._defined: list[str] = []
        bound = [v for f in formulas if isinstance(f, ForAll) for v in f.variables]
        self._bound = {v.of for v in bound}
        bodies = [f.formula if isinstance(f, ForAll) else f for f in formulas]
        parts = below([*bodies, *bound])
        spelled = self._spelled(parts)
        logic = logic_of(parts, bool(self._bound)) if readable else ""
        lines = [f"(set-logic {logic})"] if logic else []  # the solver that is asked here takes any
        lines += [*self._declared, *self._defined]
        for i, formula in enumerate(formulas):
            said = spelled[id(bodies[i])]
            if isinstance(formula, ForAll):
                over = (f"({self.names[v.of]} {self._sort(v.sort)})" for v in formula.variables)
                said = f"(forall ({' '.join(over)}) {said})"
            lines += [f"; {notes[i]}"] if notes else []
            lines.append(f"(assert {said})")
        self.text = "\n".join([*lines, "(check-sat)", ""])

    @property
    def symbols(self) -> dict[str, Symbol]:
        """The constants and functions, by what they are called in the text."""
        return {name: key for key, name in self.names.items() if isinstance(key, Symbol)}

    def _name(self, key: Any, own: str, prefix: str) -> str:
        return self.names.setdefault(key, own if self.readable else f"{prefix}{len(self.names)}")

    def _sort(self, sort: Sort) -> str:
        if sort.kind == "Array":
            return f"(Array {' '.join(map(self._sort, sort.parts))})"
        if sort.kind not in ("Sort", "Values"):
            return sort.kind
        if sort not in self.names:
            name = self._name(sort, sort.name, f"E{len(sort.parts)}x" if sort.parts else "S")
            values = " ".join(f"({self._value(sort, i)})" for i in range(len(sort.parts)))
            datatype = f"(declare-datatypes (({name} 0)) (({values})))"
            self._declared.append(datatype if sort.kind == "Values" else f"(declare-sort {name} 0)")
        return self.names[sort]

    def _value(self, sort: Sort, index: int) -> str:
        self._sort(sort)
        return str(sort.parts[index]) if self.readable else f"v{index}{self.names[sort]}"

    def _symbol(self, symbol: Symbol) -> str:
        if symbol not in self.names:
            name = self._name(symbol, symbol.name, "s")
            takes, gives = " ".join(map(self._sort, symbol.takes)), self._sort(symbol.gives)
            if symbol not in self._bound:
                self._declared.append(f"(declare-fun {name} ({takes}) {gives})")
        return self.names[symbol]

    def _spelled(self, parts: Sequence[Term]) -> dict[int, str]:
        """What stands in the text for each term; those that are shared are defined."""
        uses = Counter([id(arg) for term in parts for arg in term.args])
        spelled: dict[int, str] = {}
        sizes: dict[int, int] = {}
        bound: set[int] = set()  # terms with a variable of a hypothesis for all values: not shared
        heads: dict[Any, str] = {}
        for term in parts:
            op, args, sort, of = term
            key, size = id(term), 1
            if op == "apply":
                head = heads.get(id(of)) or heads.setdefault(id(of), self._symbol(of))
                if of in self._bound:
                    bound.add(key)
            else:
                head = self._literal(term) if not args else SPELLED.get(op, op)
            if not args:
                spelled[key], sizes[key] = head, 1
                continue
            for arg in args:
                size += sizes[id(arg)]
            said = f"({head} {' '.join([spelled[id(arg)] for arg in args])})"
            if bound and not bound.isdisjoint(map(id, args)):
                bound.add(key)
            elif uses[key] > 1 and size >= WORTH and not (self.readable and len(said) < SHORT):
                name = self._name(term, f"${_word(term)}{len(self._defined) + 1}", "x")
                self._defined.append(f"(define-fun {name} () {self._sort(sort)} {said})")
                said, size = name, 1
            spelled[key], sizes[key] = said, size
        return spelled

    def _literal(self, term: Term) -> str:
        return self._value(term.sort, term.of) if term.op == "value" else _literal(term)


def _word(term: Term) -> str:
    """A word for what a term is, by what is outermost in it."""
    if term.op == "select":
        return _word(term.args[0])
    words = {"+": "sum", "-": "difference", "*": "product", "/": "quotient", "ite": "choice"}
    return str(term.of.name) if term.op == "apply" else words.get(term.op, "said")


def _literal(term: Term) -> str:
    if term.op == "bool":
        return "true" if term.of else "false"
    if term.op == "float":
        bits = f"{term.of:064b}"
        return f"(fp #b{bits[0]} #b{bits[1:12]} #b{bits[12:]})"
    value = Fraction(term.of)
    dot = "" if term.sort.kind == "Int" else ".0"
    said = f"{abs(value.numerator)}{dot}"
    if value.denominator != 1:
        said = f"(/ {said} {value.denominator}{dot})"
    return f"(- {said})" if value < 0 else said


def text(formulas: Sequence[Bool | ForAll], notes: Sequence[str] = ()) -> str:
    """SMT-LIB 2 text that asks whether formulas can hold together, with their own names."""
    return Question(formulas, True, notes).text


def logic_of(terms: Iterable[Term], quantified: bool = False) -> str:
    """The SMT-LIB name of the smallest usual logic that holds `terms`, which have all their parts."""
    found: set[str] = set()
    for term in terms:
        found.update(_features(term))
    letters = "".join(x for x in "IR" if x in found)
    arithmetic = f"{'N' if 'N' in found else 'L'}{letters}A" if letters else ""
    parts = "".join(x for x in ("A", "UF", "DT", "FP") if x in found)
    name = f"{parts}{arithmetic}" or "UF"
    return name if quantified else f"QF_{name}"


def _features(term: Term) -> Iterator[str]:
    yield from _theories(term.sort)
    if term.op == "apply":
        for sort in term.of.takes:
            yield from _theories(sort)
        if term.args:
            yield "UF"
    variable = [arg.op != "number" for arg in term.args]
    if (term.op == "*" and all(variable)) or (term.op in ("/", "div", "mod") and variable[1]):
        yield "N"


def _theories(sort: Sort) -> Iterator[str]:
    kinds = {"Int": "I", "Real": "R", "Array": "A", "Values": "DT", "Float64": "FP", "Sort": "UF"}
    if sort.kind in kinds:
        yield kinds[sort.kind]
    if sort.kind == "Array":
        for part in sort.parts:
            yield from _theories(part)
