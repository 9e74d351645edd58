"""Mathematics for a browser, as MathML: formulas of SymPy, terms of the solver, lines of plain text.

A term is set in pieces, between which a line may end: where it is joined by a connective, a relation
or a sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import z3
from markupsafe import Markup, escape
from sympy.printing.mathml import MathMLPresentationPrinter

from proofs.premises import conjuncts
from proofs.trusted.smtlib import Term
from psem_model.audit.formulas import plain

MINUS = "\N{MINUS SIGN}"
LARGEST = 200  # operators and symbols of a term that is set

SIGNS = {"<=": "≤", ">=": "≥", "<=>": "⇔", "=>": "⇒", "->": "→"}
GREEK = {"Psi": "Ψ", "theta": "θ", "omega": "ω", "Theta": "Θ", "Omega": "Ω"}
CEILING = re.compile(r"\bceil\(([^()]*)\)")
POWER = re.compile(r"\^(\d+)")
SIGN = re.compile("|".join(map(re.escape, sorted(SIGNS, key=len, reverse=True))))
NAME = re.compile(rf"(?<![\w-])({'|'.join(GREEK)})(?![\w-])")


def line(formula: str) -> Markup:
    """A claim's formula, which is a line of plain text, with the signs of mathematics."""
    text = SIGN.sub(lambda sign: SIGNS[sign[0]], CEILING.sub(r"⌈\1⌉", formula))
    text = NAME.sub(lambda name: GREEK[name[0]], text).replace("*", "·")
    return Markup(POWER.sub(r"<sup>\1</sup>", str(escape(text))))


# ------------------------------------------------------------------------------- SymPy
class _Presentation(MathMLPresentationPrinter):  # type: ignore[misc]
    """Symbols of several letters stay whole."""

    def _print_Function(self, expr: Any) -> Any:
        name = type(expr).__name__
        found = self.dom.createElement("mrow")
        called = self.dom.createElement("mi")
        called.appendChild(self.dom.createTextNode(name))
        found.appendChild(called)
        found.appendChild(self._in_brackets(expr.args))
        return found

    def _in_brackets(self, parts: Sequence[Any]) -> Any:
        found = self.dom.createElement("mrow")
        for number, part in enumerate(parts):
            found.appendChild(self._sign("," if number else "("))
            found.appendChild(self._print(part))
        found.appendChild(self._sign(")"))
        return found

    def _sign(self, text: str) -> Any:
        made = self.dom.createElement("mo")
        made.appendChild(self.dom.createTextNode(text))
        return made


def formula(expression: Any) -> Markup:
    """A formula of SymPy."""
    printer = _Presentation({"mul_symbol": None})
    found = printer._print(sympy.sympify(expression)).toxml()
    # entities that the printer spells out are characters of an HTML page
    return Markup(f"<math>{found.replace('&amp;', '&').replace('&InvisibleTimes;', '⁢')}</math>")


# ------------------------------------------------------------------------- the solver's terms
RELATIONS = {
    z3.Z3_OP_EQ: "=",
    z3.Z3_OP_DISTINCT: "≠",
    z3.Z3_OP_LE: "≤",
    z3.Z3_OP_GE: "≥",
    z3.Z3_OP_LT: "<",
    z3.Z3_OP_GT: ">",
}
NEGATED = {
    z3.Z3_OP_EQ: lambda x, y: z3.Distinct(x, y),
    z3.Z3_OP_LE: lambda x, y: x > y,
    z3.Z3_OP_GE: lambda x, y: x < y,
    z3.Z3_OP_LT: lambda x, y: x >= y,
    z3.Z3_OP_GT: lambda x, y: x <= y,
}
CONNECTIVES = {
    z3.Z3_OP_AND: "∧",
    z3.Z3_OP_OR: "\N{LOGICAL OR}",
    z3.Z3_OP_IMPLIES: "⇒",
    z3.Z3_OP_XOR: "⊕",
}
TIGHT = {  # how strongly an operator holds what it joins
    **dict.fromkeys((z3.Z3_OP_IMPLIES,), 1),
    **dict.fromkeys((z3.Z3_OP_OR, z3.Z3_OP_XOR), 2),
    z3.Z3_OP_AND: 3,
    z3.Z3_OP_NOT: 4,
    **dict.fromkeys(RELATIONS, 5),
    **dict.fromkeys((z3.Z3_OP_ADD, z3.Z3_OP_SUB, z3.Z3_OP_UMINUS), 6),
    **dict.fromkeys((z3.Z3_OP_IDIV, z3.Z3_OP_MOD), 7),
    z3.Z3_OP_MUL: 8,
}
ITE, ALONE = 0, 9
IDENTITIES = (z3.Z3_OP_TO_REAL,)


def size(term: Term, most: int = LARGEST) -> int:
    """Operators and symbols in a term, counted up to one more than `most`."""
    pending, count = [term], 0
    while pending and count <= most:
        pending += pending.pop().children()
        count += 1
    return count


def conditions(terms: Sequence[Term]) -> list[Markup] | None:
    """Formulas that hold together, each set; none if they are too large."""
    each = [part for term in terms for part in conjuncts(term)]
    if len(each) > LARGEST or sum(map(size, each)) > LARGEST:
        return None
    shown = [_without_true(plain(part)) for part in each]
    return list(dict.fromkeys(term_in_pieces(part) for part in shown if not z3.is_true(part)))


def _without_true(term: Term) -> Term:
    """What an implication says beyond what is true anyway."""
    while z3.is_implies(term) and (z3.is_true(term.arg(0)) or z3.is_true(term.arg(1))):
        term = term.arg(1)
    return term


def term_in_pieces(term: Term) -> Markup:
    """A term as mathematics, in pieces between which a line may end."""
    pieces = (f"{escape(sign)} <math>{made}</math>" for sign, made in _pieces(term, ITE))
    return Markup(" ".join(pieces).lstrip())


def _pieces(term: Term, outer: int) -> Iterator[tuple[str, str]]:
    """Pieces of a term in a place that holds as strongly as `outer`, and the sign before each."""
    term = _negated(term)
    kind = _kind(term)
    joined = {**CONNECTIVES, **RELATIONS, z3.Z3_OP_ADD: "+"}.get(kind)
    if joined is None or len(term.children()) < 2:
        yield "", _within(term, outer)
        return
    if joined == "=" and z3.is_bool(term.arg(0)):
        joined = "⇔"
    pieces: list[tuple[str, str]] = []
    for number, child in enumerate(term.children()):
        sign, child = _sign(joined, child) if number else ("", child)
        apart = (kind == z3.Z3_OP_IMPLIES and number == 0) + 2 * (kind == z3.Z3_OP_OR)
        (_, first), *others = _pieces(child, TIGHT[kind] + apart)
        pieces += [(sign, first), *others]
    if TIGHT[kind] < outer:
        pieces[0] = "", f"<mo>(</mo>{pieces[0][1]}"
        pieces[-1] = pieces[-1][0], f"{pieces[-1][1]}<mo>)</mo>"
    yield from pieces


def _negated(term: Term) -> Term:
    """Of numbers: not equal, not less and so on as relations of their own."""
    if not z3.is_not(term) or _kind(term.arg(0)) not in NEGATED or z3.is_bool(term.arg(0).arg(0)):
        return term
    first, second = term.arg(0).children()
    negated: Term = NEGATED[_kind(term.arg(0))](first, second)
    return negated


def _sign(joined: str, child: Term) -> tuple[str, Term]:
    """What is added may be taken off instead."""
    if joined == "+" and _kind(child) == z3.Z3_OP_UMINUS:
        return MINUS, child.arg(0)
    is_product = joined == "+" and _kind(child) == z3.Z3_OP_MUL
    if is_product and len(child.children()) == 2 and _is(child.arg(0), -1):
        return MINUS, child.arg(1)
    return joined, child


def _is(term: Term, number: int) -> bool:
    is_number = z3.is_int_value(term) or z3.is_rational_value(term)
    return bool(is_number and term.as_string() == str(number))


def _kind(term: Term) -> int:
    return int(term.decl().kind()) if z3.is_app(term) else -1


def _within(term: Term, outer: int) -> str:
    """A term in one piece, in brackets if its place asks for them."""
    made, tight = _set(term)
    return _enclosed("(", made, ")") if tight < outer else made


# one branch for each operator of the solver
def _set(term: Term) -> tuple[str, int]:  # noqa: C901
    """A term in one piece, and how strongly it holds together."""
    term = _negated(term)
    kind, children = _kind(term), term.children()
    if kind in IDENTITIES:
        return _set(children[0])
    if z3.is_int_value(term) or z3.is_rational_value(term):
        return _number(term.as_string())
    if kind in (*CONNECTIVES, *RELATIONS, z3.Z3_OP_ADD, z3.Z3_OP_UMINUS, z3.Z3_OP_SUB):
        if kind == z3.Z3_OP_UMINUS:
            return f"<mo>{MINUS}</mo>{_within(children[0], TIGHT[kind] + 1)}", TIGHT[kind]
        if kind == z3.Z3_OP_SUB:
            first, *others = children
            rest = "".join(f"<mo>{MINUS}</mo>{_within(c, TIGHT[kind] + 1)}" for c in others)
            return _within(first, TIGHT[kind]) + rest, TIGHT[kind]
        pieces = ((f"<mo>{escape(s)}</mo>" if s else "", made) for s, made in _pieces(term, ITE))
        return "".join(sign + made for sign, made in pieces), TIGHT[kind]
    if kind == z3.Z3_OP_NOT:
        return f"<mo>¬</mo>{_within(children[0], ALONE)}", TIGHT[kind]
    if kind == z3.Z3_OP_MUL:
        return "<mo>·</mo>".join(_within(c, TIGHT[kind]) for c in children), TIGHT[kind]
    if kind == z3.Z3_OP_DIV:
        above, below = (f"<mrow>{_set(c)[0]}</mrow>" for c in children)
        return f"<mfrac>{above}{below}</mfrac>", ALONE
    if kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD):
        word = "div" if kind == z3.Z3_OP_IDIV else "mod"
        first, second = (_within(c, TIGHT[kind] + 1) for c in children)
        return f"{first}<mtext> {word} </mtext>{second}", TIGHT[kind]
    if kind == z3.Z3_OP_ITE:
        if_, then, other = (_within(c, ITE + 1) for c in children)
        return f"{then}<mtext> if </mtext>{if_}<mtext> else </mtext>{other}", ITE
    name = f"<mi>{escape(term.decl().name())}</mi>" if z3.is_app(term) else _text(str(term))
    if not children:
        return name, ALONE
    if kind == z3.Z3_OP_SELECT:
        array, index = (_within(c, ALONE if number == 0 else ITE) for number, c in enumerate(children))
        return f"{array}{_enclosed('[', index, ']')}", ALONE
    arguments = "<mo>,</mo>".join(_within(c, ITE) for c in children)
    return f"{name}{_enclosed('(', arguments, ')')}", ALONE


def _enclosed(opens: str, made: str, closes: str) -> str:
    return f"<mrow><mo>{opens}</mo>{made}<mo>{closes}</mo></mrow>"


def _number(text: str) -> tuple[str, int]:
    """A whole number, or a fraction."""
    above, _, below = text.partition("/")
    negative, above = above.startswith("-"), above.removeprefix("-")
    made = f"<mn>{above}</mn>"
    if below:
        made = f"<mfrac>{made}<mn>{below}</mn></mfrac>"
    tight = TIGHT[z3.Z3_OP_UMINUS] if negative else ALONE
    return (f"<mo>{MINUS}</mo>{made}" if negative else made), tight


def _text(words: str) -> str:
    return f"<mtext>{escape(words)}</mtext>"
