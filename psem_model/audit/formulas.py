"""Formulas as text to read: in full, over several lines where one is not enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proofs.premises import conjuncts, premises_of, variables
from proofs.trusted.infix import text
from proofs.trusted.parts import below, substitute
from proofs.trusted.terms import TRUE, Bool, Const, Term
from proofs.trusted.theorem import Theorem, read
from psem_model.text.lines import width, wrapped

LARGE = 300  # operators and symbols from which on what occurs several times is given a number
WORTH = 8  # of them, from which on it is worth a number


def parts(theorem: Theorem) -> tuple[list[Bool], list[Bool]]:
    """What a theorem says: if these hold, then these."""
    record = read(theorem)
    said, goal = premises_of(record.goal)
    return [*record.given, *said], conjuncts(goal)


def source(theorem: Theorem) -> Theorem:
    """The theorem that one is an instance of, or itself."""
    while theorem.rule == "instance":
        (theorem,) = theorem.parts
    return theorem


def in_general(hypothesis: Theorem) -> str:
    """Of which variables a hypothesis speaks for all values: "for all x, y", or nothing."""
    free = ", ".join(map(str, variables(hypothesis)))
    return free and f"for all {free}"


def statement(theorem: Theorem, indent: int) -> list[str]:
    """What a theorem says, as lines."""
    return implication(*parts(theorem), indent)


def implication(conditions: Sequence[Bool], goals: Sequence[Bool], indent: int) -> list[str]:
    """If these then those, as lines."""
    return [*block("if  ", conditions, indent), *block("then" if conditions else "", goals, indent)]


def block(title: str, formulas: Sequence[Bool], indent: int) -> list[str]:
    """Formulas one below the other, beside a title; what they share, in numbers below them."""
    if not formulas:
        return []
    formulas = [formula for formula in formulas if formula is not TRUE] or formulas[:1]
    title += "  " if title else ""
    pad = " " * (indent + len(title))
    short, named = shared(formulas)
    columns = width() - len(pad) - 2  # what a formula goes on with, after its first line, is indented
    shown = [text(f, columns) for f in short]
    shown += [f"where {text(name == term, columns - 6)}" for name, term in named]
    lines = [pad + line for formula in shown for line in formula.replace("\n", "\n  ").splitlines()]
    first = " " * indent + title + lines[0][len(pad) :]
    return [part for line in (first, *lines[1:]) for part in _in_columns(line)]


def _in_columns(line: str) -> list[str]:
    """A line, broken where it is wider than a terminal, as a long name may be."""
    said = line.lstrip()
    return [line] if len(line) <= width() else wrapped(said, line[: len(line) - len(said)])


def shared(formulas: Sequence[Bool]) -> tuple[list[Bool], list[tuple[Term, Term]]]:
    """Formulas with numbers for the terms that large ones have several times; and these terms."""
    each = list({id(formula): formula for formula in formulas}.values())
    inner = below([term for formula in each for term in formula.args])
    uses = Counter(id(arg) for term in [*inner, *each] for arg in term.args)
    sizes: dict[int, int] = {}
    for term in [*inner, *each]:
        sizes[id(term)] = 1 + sum(sizes[id(arg)] for arg in term.args)
    if sum(sizes[id(formula)] for formula in each) < LARGE:
        return each, []
    pairs: list[tuple[Term, Term]] = []
    named: list[tuple[Term, Term]] = []
    for term in inner:
        if uses[id(term)] > 1 and sizes[id(term)] >= WORTH:
            name = Const(f"part{len(pairs) + 1}", term.sort)
            named.append((name, substitute(term, *pairs)))
            pairs.append((term, name))
    return [substitute(formula, *pairs) for formula in each], named
