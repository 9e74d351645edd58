"""Claims that were checked, as text: what they say in full, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from psem_check.check import Checked
from psem_check.terms import ORDER, Sort, Symbol, Term, Terms
from psem_check.tree import Part, Theorem

LONG = 400  # characters, of a part of a formula that gets a name
INFIX = ("and", "or", "=>", "=", "+", "*", "-", "/", "div", "mod", *ORDER)


def lines_of(claim: Checked, brief: bool = False) -> Iterator[str]:
    """What is printed of a claim."""
    yield f"{claim.id} {claim.verdict}: checked ({claim.obligations} obligations)"
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
    said: list[Term] = []
    for theorem in theorems:
        yield f"  {'not always' if theorem.rule == 'refute' else 'theorem'} {theorem.name}"
        under |= dict.fromkeys(sorted(which for which in theorem.under if isinstance(which, int)))
        said += theorem.formulas
        yield from _for_all(part, theorem.formulas)
        yield from _statement(part.terms, theorem)
        for variable, value in theorem.values:
            name = _text(part.terms, variable, [])
            yield from _formula(part.terms, value, f"    false where {name} = ")
    for hypothesis in (part.theorems[which] for which in under):
        said += hypothesis.formulas
        yield f"  {'axiom' if hypothesis.rule == 'axiom' else 'hypothesis'} {hypothesis.name}"
        yield from _for_all(part, hypothesis.formulas)
        yield from _statement(part.terms, hypothesis)
    yield from _symbols(part, said)


def _for_all(part: Part, said: Iterable[Term]) -> Iterator[str]:
    """The variables in what is said: it is so for all their values."""
    if variables := part.terms.symbols_in(said) & part.variables:
        yield f"    for all {', '.join(sorted(part.terms.symbols[s].name for s in variables))}"


def _symbols(part: Part, said: list[Term]) -> Iterator[str]:
    """Sorts and definitions of the symbols in what is said, and in definitions."""
    symbols = part.terms.symbols
    defined = [theorem for theorem in part.theorems if theorem.defines]
    seen: set[int] = set()
    while new := part.terms.symbols_in(said) - seen:
        seen |= new
        said = [f for theorem in defined if new & {*theorem.defines} for f in theorem.formulas]
    if seen:
        yield f"  for {'; '.join(_declared(symbols[s]) for s in sorted(seen))}"
    sorts = [sort for s in seen for sort in (*symbols[s].arguments, symbols[s].sort)]
    parts = {part for sort in sorts for part in (sort[1:] if sort[0] == "Array" else (sort,))}
    for _, name, values in sorted(part for part in parts if part[0] == "Values"):
        yield f"  where {name} is one of {', '.join(values)}"
    for theorem in defined:
        if seen & {*theorem.defines}:
            yield f"  definition of {', '.join(symbols[s].name for s in theorem.defines)}"
            yield from _statement(part.terms, theorem)


def _declared(symbol: Symbol) -> str:
    """A symbol with its sorts."""
    of = f"({', '.join(map(_sort, symbol.arguments))}) -> " if symbol.arguments else ""
    return f"{symbol.name}: {of}{_sort(symbol.sort)}"


def _sort(sort: Sort) -> str:
    match sort:
        case "Array", index, element:
            return f"Array({_sort(index)}, {_sort(element)})"
        case _, name, *_:
            return str(name)
    return str(sort)


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
    several = ", ".join(arguments)
    match terms.heads[term]:
        case int() as symbol:
            name = terms.symbols[symbol].name
            return f"{name}({several})" if arguments else name
        case (_, _, names), which:
            return str(names[which])
        case "Float64", text:
            return repr(float.fromhex(text))
        case _, constant:
            text = str(constant)
            return f"({text})" if "/" in text else text.lower()
        case "ite":
            return "(if {} then {} else {})".format(*arguments)
        case "select":
            return "{}[{}]".format(*arguments)
        case head:
            return f"({f' {head} '.join(arguments)})" if head in INFIX else f"{head}({several})"
