"""Mathematics for a browser: terms of the proofs as HTML.

A line may end in a term where it is joined by a connective, a relation or a sum, and after commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from proofs.premises import conjuncts
from proofs.trusted.infix import text
from proofs.trusted.terms import TRUE, BoolSort, Term, applied

MINUS = "\N{MINUS SIGN}"
FIXED = "\N{NO-BREAK SPACE}"
VARIABLE = re.compile(r"[A-Za-z]\d*")  # set in italics; other names are words
LARGEST = 200  # operators and symbols of a term that is set


RELATIONS = {"=": "=", "distinct": "≠", "<=": "≤", ">=": "≥", "<": "<", ">": ">"}
OPPOSITE = {"=": "distinct", "<=": ">", ">=": "<", "<": ">=", ">": "<="}
CONNECTIVES = {"and": "∧", "or": "\N{LOGICAL OR}", "=>": "⇒"}
TIGHT = {  # how strongly an operator holds what it joins
    "=>": 1,
    "or": 2,
    "and": 3,
    "not": 4,
    **dict.fromkeys(RELATIONS, 5),
    **dict.fromkeys(("+", "-", "neg"), 6),
    **dict.fromkeys(("div", "mod"), 7),
    **dict.fromkeys(("*", "/"), 8),
}
ITE, ALONE = 0, 9


def size(term: Term) -> int:
    """Operators and symbols in a term, counted up to one more than is set."""
    pending, count = [term], 0
    while pending and count <= LARGEST:
        pending += pending.pop().args
        count += 1
    return count


def conditions(terms: Sequence[Term]) -> list[Markup] | None:
    """Formulas that hold together, each set; none if they are too large."""
    each = [part for term in terms for part in conjuncts(term)]
    if len(each) > LARGEST or sum(map(size, each)) > LARGEST:
        return None
    return list(dict.fromkeys(term_in_pieces(part) for part in each if part is not TRUE))


def term_in_pieces(term: Term) -> Markup:
    """A term as mathematics, in pieces between which a line may end."""
    pieces = (f"{escape(sign)}{FIXED * bool(sign)}{made}" for sign, made in _pieces(term, ITE))
    return Markup(" ".join(pieces))


def _pieces(term: Term, outer: int) -> Iterator[tuple[str, str]]:
    """Pieces of a term in a place that holds as strongly as `outer`, and the sign before each."""
    term = _negated(term)
    kind = term.op
    joined = {**CONNECTIVES, **RELATIONS, "+": "+"}.get(kind)
    if joined is None or len(term.args) < 2:
        yield "", _within(term, outer)
        return
    if joined == "=" and term.args[0].sort == BoolSort():
        joined = "⇔"
    pieces: list[tuple[str, str]] = []
    for number, child in enumerate(_joined(term)):
        sign, child = _sign(joined, child) if number else ("", child)
        apart = (kind == "=>" and number == 0) + 2 * (kind == "or")
        (_, first), *others = _pieces(child, TIGHT[kind] + apart)
        pieces += [(sign, first), *others]
    if TIGHT[kind] < outer:
        pieces[0] = "", f"({pieces[0][1]}"
        pieces[-1] = pieces[-1][0], f"{pieces[-1][1]})"
    yield from pieces


def _negated(term: Term) -> Term:
    """Of numbers: not equal, not less and so on as relations of their own."""
    inner = term.args[0] if term.op == "not" else term
    if inner is term or inner.op not in OPPOSITE or inner.args[0].sort == BoolSort():
        return term
    opposite: Term = applied(OPPOSITE[inner.op], inner.args)
    return opposite


def _joined(term: Term) -> Sequence[Term]:
    """What an operator joins: of a sum of sums all summands."""
    if term.op == "+" and term.args[0].op == "+":
        return [*_joined(term.args[0]), term.args[1]]
    return term.args


def _factors(term: Term) -> Sequence[Term]:
    """What is multiplied: of a product of products all factors."""
    if term.op != "*":
        return [term]
    return [factor for child in term.args for factor in _factors(child)]


def _sign(joined: str, child: Term) -> tuple[str, Term]:
    """What is added may be taken off instead."""
    if joined == "+" and child.op == "neg":
        return MINUS, child.args[0]
    if joined == "+" and child.op == "*" and _is(child.args[0], -1):
        return MINUS, child.args[1]
    return joined, child


def _is(term: Term, number: int) -> bool:
    return bool(term.op == "number" and str(term.of) == str(number))


def _within(term: Term, outer: int) -> str:
    """A term in one piece, in brackets if its place asks for them."""
    made, tight = _set(term)
    return f"({made})" if tight < outer else made


# one branch for each operator
def _set(term: Term) -> tuple[str, int]:  # noqa: C901
    """A term in one piece, and how strongly it holds together."""
    term = _negated(term)
    kind, children = term.op, term.args
    if kind == "to_real":
        return _set(children[0])
    if kind == "number":
        return _number(str(term.of))
    if kind in (*CONNECTIVES, *RELATIONS, "+", "neg", "-"):
        if kind == "neg":
            return f"{MINUS}{_within(children[0], TIGHT[kind] + 1)}", TIGHT[kind]
        if kind == "-":
            first, *others = children
            rest = "".join(_joined_by(MINUS, _within(c, TIGHT[kind] + 1)) for c in others)
            return _within(first, TIGHT[kind]) + rest, TIGHT[kind]
        pieces = (_joined_by(sign, made) if sign else made for sign, made in _pieces(term, ITE))
        return "".join(pieces), TIGHT[kind]
    if kind == "not":
        return f"¬{_within(children[0], ALONE)}", TIGHT[kind]
    if kind == "*":
        factors = sorted(_factors(term), key=lambda each: each.op != "number")
        return "·".join(_within(c, TIGHT[kind]) for c in factors), TIGHT[kind]
    if kind == "/":
        above, below = children
        return f"{_within(above, TIGHT[kind])}/{_within(below, ALONE)}", TIGHT[kind]
    if kind in ("div", "mod"):
        first, second = (_within(c, TIGHT[kind] + 1) for c in children)
        return first + _joined_by(kind, second), TIGHT[kind]
    if kind == "ite":
        if_, then, other = (_within(c, ITE + 1) for c in children)
        return f"{then} if {if_} else {other}", ITE
    said = name(str(term.of.name) if kind == "apply" else text(term))
    if not children:
        return said, ALONE
    if kind == "select":
        array, index = (_within(c, ALONE if number == 0 else ITE) for number, c in enumerate(children))
        return f"{array}[{index}]", ALONE
    return f"{said}({', '.join(_within(c, ITE) for c in children)})", ALONE


def _joined_by(sign: str, made: str) -> str:
    return f"{FIXED}{escape(sign)}{FIXED}{made}"


def name(of: str) -> str:
    """A name: of a variable in italics, and of the number of parameters as everywhere."""
    if of == "psi":
        return "Ψ"
    return f"<i>{of}</i>" if VARIABLE.fullmatch(of) else str(escape(of))


def _number(text: str) -> tuple[str, int]:
    """A whole number, or a fraction."""
    made = text.removeprefix("-")
    if made != text:
        return f"{MINUS}{made}", TIGHT["neg"]
    return made, TIGHT["div"] if "/" in made else ALONE  # in brackets where it is a factor
