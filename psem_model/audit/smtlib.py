"""SMT-LIB 2 text for readers: symbols have their own names, and what is said often is defined once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from proofs.trusted.parts import below, constants, name_of
from proofs.trusted.smtlib import Names
from proofs.trusted.terms import Bool, Sort, Symbol, Term, symbols

SHORT = 30  # characters that a reader would rather read again
WORDS = {"+": "sum", "-": "difference", "*": "product", "/": "quotient", "ite": "choice"}
WORDS |= {"and": "all", "or": "any", "=>": "implied", "=": "equal", "distinct": "different"}


class OwnNames(Names):
    """Sorts, symbols and values, by the names that they have in the proofs."""

    def called(self, own: str, prefix: str) -> str:
        return own

    def value(self, sort: Sort, index: int) -> str:
        self.sort(sort)
        return str(sort.parts[index])

    def defined(self, name: str, params: Iterable[Term], sort: Sort, said: str) -> str:
        """The line that defines a name, for all values of some variables."""
        over = " ".join(f"({name_of(v)} {self.sort(v.sort)})" for v in params)
        return f"(define-fun {name} ({over}) {self.sort(sort)} {said})"


class Spelling:
    """How terms are written that stand together; `lines` define what is said often in them."""

    def __init__(
        self, terms: Sequence[Term], names: OwnNames, bound: Sequence[Term] = (), before: int = 0
    ) -> None:
        """`bound`: variables that are parameters of some of the terms: where they occur in what is
        said often, they are its parameters too. `before`: how many names there are already.
        """
        self.lines: list[str] = []
        self._names, self._bound, self._before = names, bound, before
        self._spelled: dict[int, str] = {}
        parts = below(terms)
        self._often = Counter(id(term) for term in [*terms, *(arg for t in parts for arg in t.args)])
        for part in parts:
            self._spelled[id(part)] = self._said(part)

    def __call__(self, term: Term) -> str:
        return self._spelled[id(term)]

    def _said(self, term: Term) -> str:
        said = call(self._names.head(term), map(self, term.args))
        often = self._often[id(term)]
        if often < 2 or len(said) < SHORT or not term.args:
            return said
        known = constants(term)
        params = [v for v in self._bound if name_of(v) in known]
        name = f"${_word(term)}{self._before + len(self.lines) + 1}"
        short = call(name, map(name_of, params))
        line = self._names.defined(name, params, term.sort, said)
        if len(line) > often * (len(said) - len(short)):
            return said
        self.lines.append(line)
        return short


def call(name: str, args: Iterable[str]) -> str:
    """A function applied to arguments, or a name alone."""
    of = " ".join(args)
    return f"({name} {of})" if of else name


def _word(term: Term) -> str:
    """A word for what a term is, by what is outermost in it."""
    if term.op == "select":
        return _word(term.args[0])
    return str(term.of.name) if term.op == "apply" else WORDS.get(term.op, "said")


def text(formulas: Sequence[Bool]) -> str:
    """A text that asks whether formulas can hold together."""
    names = OwnNames()
    said = Spelling(formulas, names)
    lines = [*said.lines, *(f"(assert {said(formula)})" for formula in formulas)]
    return standalone(names, formulas, symbols(*formulas), lines)


def standalone(
    names: Names, formulas: Iterable[Bool], free: Iterable[Symbol], lines: Iterable[str]
) -> str:
    """Lines that speak of formulas and assert some, with all that they need: logic, declarations."""
    logic = f"(set-logic {logic_of(below(formulas))})"
    known = {*free}
    declared = [line for key, line in names.declared.items() if isinstance(key, Sort) or key in known]
    return "\n".join([logic, *declared, *lines, "(check-sat)", ""])


def logic_of(terms: Iterable[Term]) -> str:
    """The SMT-LIB name of the smallest usual logic that holds `terms`, which have all their parts."""
    found: set[str] = set()
    for term in terms:
        found.update(_features(term))
    letters = "".join(x for x in "IR" if x in found)
    arithmetic = f"{'N' if 'N' in found else 'L'}{letters}A" if letters else ""
    parts = "".join(x for x in ("A", "UF", "DT", "FP") if x in found)
    return f"QF_{f'{parts}{arithmetic}' or 'UF'}"


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
