"""SMT-LIB 2 text for readers: symbols have their own names, and what is said often is defined once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from proofs.trusted.parts import below, constants, name_of
from proofs.trusted.smtlib import Names
from proofs.trusted.terms import Bool, Sort, Symbol, Term, symbols

ANY = "$n"  # the number by which a row's terms differ
SHORT = 20  # characters that a reader would rather read again
WORDS = {"+": "sum", "-": "difference", "*": "product", "/": "quotient", "ite": "choice"}
WORDS |= {"and": "all", "or": "any", "=>": "implied", "=": "equal", "distinct": "different"}


class OwnNames(Names):
    """Sorts, symbols and values, by the names that they have in the proofs."""

    def called(self, own: str, prefix: str) -> str:
        return own

    def value(self, sort: Sort, index: int) -> str:
        self.sort(sort)
        return str(sort.parts[index])

    def defined(
        self, name: str, params: Iterable[Term], sort: Sort, said: str, number: Sort | None = None
    ) -> str:
        """The line that defines a name, for all values of some variables. `number`: the sort of ANY."""
        over = [(ANY, number)] if number else []
        over += [(name_of(v), v.sort) for v in params]
        named = " ".join(f"({each} {self.sort(of)})" for each, of in over)
        return f"(define-fun {name} ({named}) {self.sort(sort)} {said})"


class Row(NamedTuple):
    """Terms that are the same but for one argument, which is a number."""

    function: int  # by identity, as the other arguments
    place: int
    others: tuple[int, ...]
    members: int


def _rows(parts: Iterable[Term]) -> dict[int, Row]:
    """The longest row that a term is in, by the term."""
    alike: dict[tuple[int, int, tuple[int, ...]], list[Term]] = {}
    for term in parts:
        for place, arg in enumerate(term.args if term.op == "apply" else ()):
            if arg.op == "number":
                others = tuple(map(id, (*term.args[:place], *term.args[place + 1 :])))
                alike.setdefault((id(term.of), place, others), []).append(term)
    found: dict[int, Row] = {}
    for like, terms in sorted(alike.items(), key=lambda row: -len(row[1])):
        row = Row(*like, len(terms))
        found |= {id(term): row for term in terms if id(term) not in found and len(terms) > 2}
    return found


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
        self._open: dict[int, tuple[str, str]] = {}  # that are written out: what they are, and of what
        parts = below(terms)
        self._often = Counter(id(term) for term in [*terms, *(arg for t in parts for arg in t.args)])
        self._rows = _rows(parts)
        self._row_names: dict[Row, str] = {}  # what a row's terms are written by; nothing if in full
        for part in parts:
            self._spelled[id(part)] = self._in_a_row(part) or self._said(part)

    def __call__(self, term: Term) -> str:
        return self._spelled[id(term)]

    def denied(self, formula: Bool) -> str:
        """That a formula is not so: of an implication that its premises are, and not what follows."""
        if formula.op != "=>":
            return call("not", [self(formula)])
        premise, conclusion = formula.args
        op, of = self._open.get(id(premise), ("", ""))
        return call("and", [of if op == "and" else self(premise), self.denied(conclusion)])

    def _said(self, term: Term) -> str:
        head, of = self._names.head(term), [*self._args(term)]
        said, often = call(head, of), self._often[id(term)]
        if term.args:
            self._open[id(term)] = term.op, " ".join(of)
        if often < 2 or len(said) < SHORT or not term.args:
            return said
        params, name = self._params(term), self._name(term)
        short = call(name, map(name_of, params))
        line = self._names.defined(name, params, term.sort, said)
        if len(line) > often * (len(said) - len(short)):
            return said
        self.lines.append(line)
        del self._open[id(term)]
        return short

    def _in_a_row(self, term: Term) -> str:
        """How a term is written that is as others are but for a number; empty if in full."""
        row = self._rows.get(id(term))
        if row is None:
            return ""
        of = [*map(self, term.args)]
        params = self._params(term)
        if row not in self._row_names:
            said = call(self._names.head(term), [*of[: row.place], ANY, *of[row.place + 1 :]])
            name, number = self._name(term), term.args[row.place].sort
            line = self._names.defined(name, params, term.sort, said, number)
            shorter = len(said) - len(call(name, [ANY, *map(name_of, params)]))
            worth = len(line) < row.members * shorter
            self._row_names[row] = name if worth else ""
            self.lines += [line] if worth else []
        name = self._row_names[row]
        return call(name, [of[row.place], *map(name_of, params)]) if name else ""

    def _params(self, term: Term) -> list[Term]:
        """The bound variables in a term."""
        known = constants(term)
        return [v for v in self._bound if name_of(v) in known]

    def _name(self, term: Term) -> str:
        """A new name for what is like a term."""
        word = _word(term)
        apart = "." if word[-1].isdigit() else ""
        return f"${word}{apart}{self._before + len(self.lines) + 1}"

    def _args(self, term: Term) -> Iterator[str]:
        """Its arguments. A sum that is the first term of a sum is not written apart; and so on."""
        for place, arg in enumerate(term.args):
            op, of = self._open.get(id(arg), ("", ""))
            joined = op == term.op and (op in ("and", "or") or (op in ("+", "*") and not place))
            yield of if joined else self(arg)


def call(name: str, args: Iterable[str]) -> str:
    """A function applied to arguments, or a name alone."""
    of = " ".join(args)
    return f"({name} {of})" if of else name


def _word(term: Term) -> str:
    """A word for what a term is, by what is outermost in it: of a long name the last."""
    if term.op == "select":
        return _word(term.args[0])
    name = str(term.of.name) if term.op == "apply" else WORDS.get(term.op, "said")
    return name if len(name) < SHORT else name.rpartition("_")[2]


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
