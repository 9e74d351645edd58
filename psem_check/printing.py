"""Claims that were checked, as text: what they say in full, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator

from psem_check.check import Checked
from psem_check.terms import Term, Terms
from psem_check.tree import Part, Theorem
from psem_check.values import value_of

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
        yield from _definitions(part, [t for p, t in claim.theorems if p is part])
    reasoning = sorted({which for _, which in under if isinstance(which, str)})
    yield f"  by {', '.join(reasoning) or 'no axiom of reasoning'}"


def _definitions(part: Part, theorems: list[Theorem]) -> Iterator[str]:
    """Those of the symbols in theorems and what they rest on, and of the symbols in these."""
    hypotheses = {which for theorem in theorems for which in theorem.under if isinstance(which, int)}
    said = [part.hypotheses[which].formula for which in hypotheses]
    pending = [*said, *(t for theorem in theorems for t in (*theorem.given, theorem.goal))]
    seen: set[int] = set()
    while pending:
        new = part.terms.symbols_in(pending) & part.definitions.keys() - seen
        seen |= new
        pending = [t for s in new for d in part.definitions[s] for t in (*d.given, d.goal)]
    for symbol in sorted(seen):
        yield f"  definition {part.terms.symbols[symbol].name}"
        for definition in part.definitions[symbol]:
            yield from _statement(part.terms, definition)


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
            named.append(f"      where t{term} is {text}")
            text = f"t{term}"
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
            return repr(value_of(terms, term))
        name = terms.symbols[what].name if kind == "symbol" else str(what)
        return f"{name}({', '.join(arguments)})" if arguments else name
    if head in INFIX:
        return f"({INFIX[head].join(arguments)})"
    if head == "ite":
        return f"(if {arguments[0]} then {arguments[1]} else {arguments[2]})"
    if head == "select":
        return f"{arguments[0]}[{arguments[1]}]"
    return f"{head}({', '.join(arguments)})"
