"""Claims that were checked, as text: what they say in full, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    yield f'  "{claim.statement}"'
    parts = list({id(part): part for part, _ in claim.theorems}.values())
    for number, part in enumerate(parts):
        if len(parts) > 1:
            yield f"  part {number + 1} of {len(parts)}, whose names are its own"
        yield from _of_part(part, [theorem for p, theorem in claim.theorems if p is part])
    under = {which for _, theorem in claim.theorems for which in theorem.under}
    reasoning = sorted(which for which in under if isinstance(which, str))
    yield f"  by {', '.join(reasoning) or 'no axiom of reasoning'}"


def _of_part(part: Part, theorems: list[Theorem]) -> Iterator[str]:
    """Its theorems, what they rest on, and what their symbols are."""
    under: dict[int, None] = {}
    for theorem in theorems:
        yield f"  {'not always' if theorem.rule == 'refute' else 'theorem'} {theorem.name}"
        hypotheses = [which for which in theorem.under if isinstance(which, int)]
        under |= dict.fromkeys(sorted(hypotheses))
        yield from _for_all(part, (*theorem.given, theorem.goal))
        yield from _statement(part.terms, theorem)
        for variable, value in theorem.values:
            name = _text(part.terms, variable, [])
            yield from _formula(part.terms, value, f"    false where {name} = ")
    for which in under:
        hypothesis = part.hypotheses[which]
        kind = f"axiom {hypothesis.axiom}" if hypothesis.axiom else "hypothesis"
        yield f"  {kind} {hypothesis.name}"
        yield from _for_all(part, (hypothesis.formula,))
        yield from _formula(part.terms, hypothesis.formula)
    yield from _symbols(part, theorems)


def _for_all(part: Part, said: Iterable[Term]) -> Iterator[str]:
    """The variables in what is said: it is so for all their values."""
    if variables := part.terms.symbols_in(said) & part.variables:
        yield f"    for all {', '.join(sorted(part.terms.symbols[s].name for s in variables))}"


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
    for name, values in sorted({kind for s in seen for kind in _kinds(part.terms.symbols[s])}):
        yield f"  where {name} is one of {', '.join(values)}"
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
    return str(sort[1])


def _kinds(symbol: Symbol) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The enumerations in a symbol's sorts, with their values."""
    pending: list[Sort] = [*symbol.arguments, symbol.sort]
    while pending:
        sort = pending.pop()
        if isinstance(sort, tuple) and sort[0] == "Values":
            yield sort[1], sort[2]
        pending += sort[1:] if isinstance(sort, tuple) and sort[0] == "Array" else ()


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
        number = f"({what})" if "/" in str(what) else str(what)
        name = terms.symbols[what].name if kind == "symbol" else number
        return f"{name}({', '.join(arguments)})" if arguments else name
    if head in INFIX:
        return f"({INFIX[head].join(arguments)})"
    if head == "ite":
        return f"(if {arguments[0]} then {arguments[1]} else {arguments[2]})"
    if head == "select":
        return f"{arguments[0]}[{arguments[1]}]"
    return f"{head}({', '.join(arguments)})"
