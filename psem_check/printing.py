"""Claims that were checked, as text: what they say in full, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator

from psem_check.check import Checked
from psem_check.terms import Sort, Symbol, Term, Terms
from psem_check.tree import Part, Theorem
from psem_check.values import float_of

LONG = 400  # characters, of a part of a formula that gets a name
INFIX = {
    **{name: f" {name} " for name in ("and", "or", "=>", "xor", "=", "+", "*", "-", "/", "div", "mod")},
    **{name: f" {name} " for name in ("<", "<=", ">", ">=")},
}


def lines_of(claim: Checked, brief: bool = False) -> Iterator[str]:
    """What is printed of a claim."""
    open_ = len(claim.open)
    verdict = f"checked but for {open_} obligations" if open_ else "checked"
    yield f"{claim.id} {claim.verdict}: {verdict} ({claim.obligations} obligations)"
    for each in claim.open:
        yield f"  NOT CHECKED {each.name}: {each.why}"
    if brief:
        return
    yield f"  {claim.statement}"
    under: dict[tuple[int, int | str], Part] = {}
    for part, theorem in claim.theorems:
        yield f"  theorem {theorem.name}"
        yield from _statement(part.terms, theorem)
        under.update({(id(part), u): part for u in theorem.under})
    for (_, which), part in under.items():
        if isinstance(which, int):
            hypothesis = part.hypotheses[which]
            kind = f"axiom {hypothesis.axiom}" if hypothesis.axiom else "hypothesis"
            yield f"  {kind} {hypothesis.name}"
            yield from _formula(part.terms, hypothesis.formula)
            if hypothesis.fixed:
                names = sorted(part.terms.symbols[s].name for s in hypothesis.fixed)
                yield f"    where these are fixed: {', '.join(names)}"
    for part in {id(part): part for part, _ in claim.theorems}.values():
        yield from _symbols(part, [t for p, t in claim.theorems if p is part])
    reasoning = sorted({which for _, which in under if isinstance(which, str)})
    yield f"  by {', '.join(reasoning) or 'no axiom of reasoning'}"


def _symbols(part: Part, theorems: list[Theorem]) -> Iterator[str]:
    """Sorts and definitions of the symbols in theorems, in what they rest on, and in definitions."""
    hypotheses = {which for theorem in theorems for which in theorem.under if isinstance(which, int)}
    said = [part.hypotheses[which].formula for which in hypotheses]
    pending = [*said, *(t for theorem in theorems for t in (*theorem.given, theorem.goal))]
    seen: set[int] = set()
    while pending:
        new = part.terms.symbols_in(pending) - seen
        seen |= new
        defined = [d for s in new for d in part.definitions.get(s, ())]
        pending = [t for d in defined for t in (*d.given, d.goal)]
    if seen:
        yield f"  for {'; '.join(_declared(part.terms.symbols[s]) for s in sorted(seen))}"
    for symbol in sorted(seen & part.definitions.keys()):
        yield f"  definition of {part.terms.symbols[symbol].name}"
        for definition in part.definitions[symbol]:
            yield from _statement(part.terms, definition)


def _declared(symbol: Symbol) -> str:
    """A symbol with its sorts."""
    arguments = ", ".join(map(_sort, symbol.arguments))
    of = f"({arguments}) -> " if arguments else ""
    return f"{symbol.name}: {of}{_sort(symbol.sort)}"


def _sort(sort: Sort) -> str:
    if isinstance(sort, str):
        return sort
    if sort[0] == "Array":
        return f"Array({_sort(sort[1])}, {_sort(sort[2])})"
    return f"{sort[1]} of {'/'.join(sort[2])}" if sort[0] == "Values" else str(sort[1])


def _statement(terms: Terms, theorem: Theorem) -> Iterator[str]:
    for given in theorem.given:
        yield from _formula(terms, given, "    given ")
    yield from _formula(terms, theorem.goal)


def _formula(terms: Terms, formula: Term, before: str = "    ") -> Iterator[str]:
    """A formula, and the parts of it that are too long to stand in it."""
    texts: dict[Term, str] = {}
    named: list[str] = []
    for term in terms.below([formula]):
        text = _text(terms, term, [texts[a] for a in terms.arguments[term]])
        if len(text) > LONG and term != formula:
            named.append(f"      where ?{term} is {text}")
            text = f"?{term}"
        texts[term] = text
    yield before + texts[formula]
    yield from named


def _text(terms: Terms, term: Term, arguments: list[str]) -> str:
    head = terms.heads[term]
    if isinstance(head, tuple):
        kind, what = head[0], head[1]
        if kind == "value":
            return str(what[2][head[2]])
        if kind == "bool":
            return "true" if what else "false"
        if kind == "float":
            return repr(float_of(what))
        name = terms.symbols[what].name if kind == "symbol" else str(what)
        return f"{name}({', '.join(arguments)})" if arguments else name
    if head in INFIX:
        return f"({INFIX[head].join(arguments)})"
    if head == "ite":
        return f"(if {arguments[0]} then {arguments[1]} else {arguments[2]})"
    if head == "select":
        return f"{arguments[0]}[{arguments[1]}]"
    return f"{head}({', '.join(arguments)})"
