"""Formulas as text to read: in full, over several lines where one is not enough."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import z3
from z3 import z3printer

from proofs.premises import conjuncts, premises_of, variables
from proofs.trusted.smtlib import Bool, Term
from proofs.trusted.theorem import Theorem, read
from psem_model.text.lines import width

ALL = 10**9  # no bound of z3's printer cuts anything
LARGE = 300  # operators and symbols from which on what occurs several times is given a number
_NONE: tuple[Any, Any] = (None, None)
NEUTRAL: dict[
    int, tuple[Any, Any]
] = {  # of an operation: what it comes to with it, what changes nothing
    z3.Z3_OP_AND: (False, True),
    z3.Z3_OP_OR: (True, False),
    z3.Z3_OP_ADD: (None, 0),
    z3.Z3_OP_MUL: (0, 1),
}
LEAST_WIDTH = 20
WORTH = 8  # of them, from which on it is worth a number


def text(term: Term, columns: int = ALL) -> str:
    """A term, in as few lines as fit in some columns."""
    formatter, printer = z3printer.Formatter(), z3printer.PP()
    formatter.max_depth = formatter.max_args = formatter.max_visited = ALL
    printer.max_lines, printer.max_width = ALL, columns
    while True:
        out = io.StringIO()
        printer(out, formatter(term))
        over = max(map(len, out.getvalue().splitlines())) - columns  # the printer forgets what closes
        if over <= 0 or printer.max_width <= LEAST_WIDTH:
            return out.getvalue()
        printer.max_width -= over


def parts(theorem: Theorem) -> tuple[list[Bool], list[Bool]]:
    """What a theorem says: if these hold, then these."""
    record = read(theorem)
    said, goal = premises_of(record.goal)
    return [*record.given, *said], conjuncts(goal)


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
    formulas = [plain(formula) for formula in formulas]
    formulas = [formula for formula in formulas if not z3.is_true(formula)] or formulas[:1]
    title += "  " if title else ""
    pad = " " * (indent + len(title))
    short, named = shared(formulas)
    columns = width() - len(pad) - 2  # what a formula goes on with, after its first line, is indented
    shown = [text(f, columns) for f in short]
    shown += [f"where {text(name == term, columns - 6)}" for name, term in named]
    lines = [pad + line for formula in shown for line in formula.replace("\n", "\n  ").splitlines()]
    return [" " * indent + title + lines[0][len(pad) :], *lines[1:]]


def plain(term: Term) -> Term:
    """A term without what changes nothing: 0 + x, 1*x, 0*x, x == x, and True, Or(False, x)."""
    known: dict[int, Term] = {}
    for each in _below([term], {}, Counter()):
        children = [known[child.get_id()] for child in each.children()]
        known[each.get_id()] = _plain(each, children)
    return known[term.get_id()]


def _plain(term: Term, children: Sequence[Term]) -> Term:
    kind = term.decl().kind()
    if kind == z3.Z3_OP_EQ and children[0].eq(children[1]):
        return z3.BoolVal(True)
    absorbing, neutral = NEUTRAL.get(kind, _NONE)
    absorbing, neutral = (term.sort().cast(v) if v is not None else None for v in (absorbing, neutral))
    if absorbing is not None and any(child.eq(absorbing) for child in children):
        return absorbing
    left = children if neutral is None else [child for child in children if not child.eq(neutral)]
    if neutral is not None and len(left) < 2:
        return left[0] if left else neutral
    same = len(left) == len(children) and all(
        a.eq(b) for a, b in zip(left, term.children(), strict=True)
    )
    return term if same else _of(term, left)


def _of(term: Term, children: Sequence[Term]) -> Term:
    """The operation of a term, of other terms."""
    makers = {z3.Z3_OP_AND: z3.And, z3.Z3_OP_OR: z3.Or, z3.Z3_OP_ADD: z3.Sum, z3.Z3_OP_MUL: z3.Product}
    return makers.get(term.decl().kind(), term.decl())(*children)


def shared(formulas: Sequence[Bool]) -> tuple[list[Bool], list[tuple[Term, Term]]]:
    """Formulas with numbers for the terms that large ones have several times; and these terms."""
    each = list({formula.get_id(): formula for formula in formulas}.values())
    sizes: dict[int, int] = {}
    uses: Counter[int] = Counter()
    inner = list(_below([term for formula in each for term in formula.children()], sizes, uses))
    if sum(sizes[term.get_id()] for formula in each for term in formula.children()) < LARGE:
        return each, []
    pairs: list[tuple[Term, Term]] = []
    named: list[tuple[Term, Term]] = []
    for term in inner:
        if uses[term.get_id()] > 1 and sizes[term.get_id()] >= WORTH:
            name = z3.Const(f"[{len(pairs) + 1}]", term.sort())
            named.append((name, _with_names(term, pairs)))
            pairs.append((term, name))
    return [_with_names(formula, pairs) for formula in each], named


def _with_names(term: Term, pairs: Sequence[tuple[Term, Term]]) -> Term:
    return z3.substitute(term, *pairs) if pairs else term


def _below(terms: Sequence[Term], sizes: dict[int, int], uses: Counter[int]) -> Iterator[Term]:
    """All terms in some terms, each once, after those in it; their sizes, and in how many they are."""
    for term in terms:
        uses[term.get_id()] += 1
        if term.get_id() not in sizes:
            sizes[term.get_id()] = 0
            children = term.children()
            yield from _below(children, sizes, uses)
            sizes[term.get_id()] = 1 + sum(sizes[child.get_id()] for child in children)
            yield term
