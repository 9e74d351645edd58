"""Terms as standalone SMT-LIB text. Trusted: the solver decides what is written here.

A question is written with numbers for names (`s0`, `s1`, ...), so that no name can be mistaken for
anything else and questions that differ in names are one; for readers it is written with its own names.
What occurs several times is defined once, above what is asserted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from proofs.trusted.terms import Bool, Sort, Symbol, Term, below

WORTH = 4  # operators and symbols, from which on what occurs several times is defined once
SHORT = 40  # characters that a reader would rather read again
_SPELLED = {"neg": "-", "fp.add": "fp.add RNE"}


@dataclass(frozen=True)
class ForAll:
    """A formula for all values of some variables. No obligation has one: it is asked of hypotheses."""

    variables: tuple[Term, ...]
    formula: Bool


@dataclass
class Question:
    """Whether formulas can hold together: the text, and what the symbols are called in it."""

    formulas: Sequence[Bool | ForAll]
    readable: bool = False
    notes: Sequence[str] = ()  # of a readable one: what each formula is
    names: dict[Any, str] = field(
        default_factory=dict, init=False
    )  # of symbols, sorts and shared terms

    def __post_init__(self) -> None:
        self._declared: list[str] = []
        self._bound = frozenset(
            v.of for f in self.formulas if isinstance(f, ForAll) for v in f.variables
        )
        bodies = [f.formula if isinstance(f, ForAll) else f for f in self.formulas]
        self._parts = list(below(bodies))
        for term in self._parts:
            self._declare(term)
        self._spelled: dict[int, str] = {}
        defined = self._write()
        notes = [*self.notes, *[""] * len(bodies)]
        asserted = []
        for note, formula, body in zip(notes, self.formulas, bodies, strict=False):
            said = self._spelled[id(body)]
            if isinstance(formula, ForAll):
                bound = " ".join(
                    f"({self.names[v.of]} {self._sort(v.sort)})" for v in formula.variables
                )
                said = f"(forall ({bound}) {said})"
            asserted += [f"; {note}"] if note else []
            asserted.append(f"(assert {said})")
        logic = f"(set-logic {logic_of(self._parts, bool(self._bound))})"
        self.text = "\n".join([logic, *self._declared, *defined, *asserted, "(check-sat)", ""])

    @property
    def symbols(self) -> dict[str, Symbol]:
        """The constants and functions, by what they are called in the text."""
        return {name: key for key, name in self.names.items() if isinstance(key, Symbol)}

    def _name(self, key: Any, own: str, prefix: str) -> str:
        count = len(self.names)
        return self.names.setdefault(key, own if self.readable else f"{prefix}{count}")

    def _sort(self, sort: Sort) -> str:
        if sort.kind == "Array":
            return f"(Array {' '.join(map(self._sort, sort.parts))})"
        if sort.kind not in ("Sort", "Values"):
            return sort.kind
        if sort not in self.names:
            name = self._name(sort, sort.name, "S")
            values = " ".join(f"({self._value(sort, i)})" for i in range(len(sort.parts)))
            datatype = f"(declare-datatypes (({name} 0)) (({values})))"
            self._declared.append(datatype if sort.kind == "Values" else f"(declare-sort {name} 0)")
        return self.names[sort]

    def _value(self, sort: Sort, index: int) -> str:
        return str(sort.parts[index]) if self.readable else f"v{index}{self.names[sort]}"

    def _declare(self, term: Term) -> None:
        sort = self._sort(term.sort)
        if term.op == "apply" and term.of not in self.names:
            takes = " ".join(map(self._sort, term.of.takes))
            name = self._name(term.of, term.of.name, "s")
            if term.of not in self._bound:
                self._declared.append(f"(declare-fun {name} ({takes}) {sort})")

    def _write(self) -> list[str]:
        """Spell all terms; the definitions of those that are shared."""
        uses = Counter(id(arg) for term in self._parts for arg in term.args)
        defined: list[str] = []
        sizes: dict[int, int] = {}
        bound: set[int] = set()  # what has a variable of a hypothesis for all values
        for term in self._parts:
            key = id(term)
            sizes[key] = 1 + sum(sizes[id(arg)] for arg in term.args)
            own = term.op == "apply" and term.of in self._bound
            if own or any(id(arg) in bound for arg in term.args):
                bound.add(key)
            self._spelled[key] = said = self._spell(term)
            shared = uses[key] > 1 and sizes[key] >= WORTH and key not in bound
            if shared and not (self.readable and len(said) < SHORT):
                name = self._name(term, f"${_word(term)}{len(defined) + 1}", "x")
                defined.append(f"(define-fun {name} () {self._sort(term.sort)} {said})")
                self._spelled[key] = name
                sizes[key] = 1
        return defined

    def _spell(self, term: Term) -> str:
        if term.op == "apply":
            head = self.names[term.of]
        elif term.op == "value":
            return self._value(term.sort, term.of)
        elif not term.args:
            return _literal(term)
        else:
            head = _SPELLED.get(term.op, term.op)
        if not term.args:
            return head
        return f"({head} {' '.join(self._spelled[id(arg)] for arg in term.args)})"


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
