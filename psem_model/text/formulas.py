"""Formulas in LaTeX's mathematics: factors and terms in one order, on low lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

# factors stand in this order: what is micro-stepped, of a batch, of a model; then the rest by name
ORDER = ("K", "m", "k", "b", "a", "s", "h", "l")
SIZED = re.compile(r"\\(?:left|right)(?![a-z])")  # brackets of one size
SIGN = re.compile(r"( [+-] |)(.*)")
NOT_SHOWN = str.maketrans("", "", " {}_^")
LONGEST = 18  # characters that stay on one line


class _Formulas(LatexPrinter):  # type: ignore[misc]
    """Fractions as a / (b c), so that lines stay low; one root for a product of roots."""

    broken = False  # whether a line may end in a term

    def _print_Mul(self, expr: Any) -> str:
        factors, inside = _one_root([*_factors(expr)])
        if inside != 1:
            root = rf"\sqrt{{{self._print(inside)}}}"
            return f"{self._product(factors)} {root}" if factors else root
        above, below = (sympy.Mul(*part) for part in _fraction(factors))
        if below == 1:
            return self._product(factors)
        under = self._print(below)
        over = f"({self._print(above)})" if above.is_Add else self._print(above)
        return f"{over} / ({under})" if below.is_Mul or below.is_Add else f"{over} / {under}"

    def _print_Function(self, expr: Any, exp: Any = None) -> str:
        """A function of several sizes: a line may end after one of them."""
        if not self.broken or exp is not None or len(expr.args) == 1:
            return str(super()._print_Function(expr, exp))
        sizes = r",\allowbreak ".join(self._print(size) for size in expr.args)
        return rf"\operatorname{{{expr.func.__name__}}}({sizes})"

    def _product(self, factors: list[Any]) -> str:
        """Factors beside each other: numbers, symbols, sums, then what is rounded or sharded."""
        number = sympy.Mul(*(factor for factor in factors if factor.is_Number))
        others = sorted((factor for factor in factors if not factor.is_Number), key=_place)
        written = [f"({self._print(f)})" if f.is_Add else self._print(f) for f in others]
        if number == 1 and written:
            return " ".join(written)
        if number == -1 and written:
            return f"- {' '.join(written)}"
        return " ".join([self._print(number), *written])

    def _print_Pow(self, expr: Any) -> str:
        inverse = expr.exp.is_Number and expr.exp.is_negative
        return self._print_Mul(expr) if inverse else str(super()._print_Pow(expr))

    def _print_Add(self, expr: Any, order: Any = None) -> str:
        above, below = _over_a_number(expr)
        return f"({self._print(above)}) / {below}" if below != 1 else "".join(self.terms(expr)).strip()

    def terms(self, expr: Any) -> Iterator[str]:
        """The terms of a sum with their signs, what is taken off last."""
        for number, term in enumerate(sorted(expr.args, key=_rank)):
            negative = _negative(term)
            written = self._print(-term if negative else term)
            yield f"{' - ' if negative else ' + ' if number else ''}{written}"


class _Plain(StrPrinter):  # type: ignore[misc]
    """Powers as c^2, and one root for a product of roots."""

    def _print_Mul(self, expr: Any) -> str:
        factors, inside = _one_root(list(expr.as_ordered_factors()))
        if inside == 1:
            return str(super()._print_Mul(expr))
        root = sympy.Symbol(f"sqrt({self._print(inside)})")
        return str(self._print(sympy.Mul(*factors, root)))

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        return str(super()._print_Pow(expr, rational)).replace("**", "^")

    def _print_ceiling(self, expr: Any) -> str:
        return f"ceil({self._print(expr.args[0])})"


@cache
def plain(expression: Any) -> str:
    """An expression as one line of plain text."""
    return str(_Plain().doprint(expression))


def _factors(expr: Any) -> Iterator[Any]:
    """The factors of a product, of products in it too."""
    for factor in sympy.Mul.make_args(expr):
        if factor.is_Mul:
            yield from _factors(factor)
        else:
            yield factor


def _one_root(factors: list[Any]) -> tuple[list[Any], Any]:
    """The factors that are no roots, and what one root for the others is of; 1 if none is needed."""
    roots = [f for f in factors if f.is_Pow and abs(f.exp) == sympy.Rational(1, 2)]
    if len(roots) < 2:
        return factors, sympy.Integer(1)
    inside = sympy.Mul(*(root.base ** (2 * root.exp) for root in roots))
    return [factor for factor in factors if factor not in roots], inside


def _fraction(factors: list[Any]) -> tuple[list[Any], list[Any]]:
    """What is above the line, and what is below."""
    parts = [sympy.fraction(factor) for factor in factors]
    return [above for above, _ in parts], [below for _, below in parts]


def _over_a_number(expr: Any) -> tuple[Any, Any]:
    """A sum of halves, thirds and so on as one fraction."""
    above, below = sympy.fraction(sympy.together(expr))
    return (sympy.expand(above), below) if below.is_Integer else (expr, sympy.Integer(1))


def _place(factor: Any) -> tuple[int, int, str]:
    base = factor.base if factor.is_Pow else factor
    letter = str(base).partition("_")[0]
    if base.is_Symbol and (letter in ORDER or letter.islower()):  # sizes in capitals stand last
        return 0, ORDER.index(letter) if letter in ORDER else len(ORDER), str(base)
    return (1 if base.is_Add else 2), 0, str(base)


def _negative(term: Any) -> bool:
    return bool(term.could_extract_minus_sign())


def _rank(term: Any) -> tuple[bool, bool, bool, int, str]:
    """Numbers after symbols, what is rounded after what is not, the longer product first."""
    above, _ = sympy.fraction(term)
    rounded = term.has(sympy.Function) or term.has(sympy.ceiling)
    return _negative(term), bool(term.is_Number), rounded, -len(above.free_symbols), str(term)


@cache
def formula(expression: Any, broken: bool = False) -> str:
    """An expression in LaTeX's mathematics, the indices of symbols upright.

    `broken`: a line may end between terms, and nowhere else.
    """
    names = {}
    for symbol in expression.free_symbols:
        base, _, index = str(symbol).partition("_")
        if index == "prime":
            names[symbol] = f"{sympy.latex(sympy.Symbol(base))}'"
        elif index:
            names[symbol] = rf"{sympy.latex(sympy.Symbol(base))}_{{\mathrm{{{index}}}}}"
    printer = _Formulas({"symbol_names": names, "fold_short_frac": True})
    printer.broken = broken
    whole = SIZED.sub("", str(printer.doprint(expression)))
    if not broken:
        return whole
    summed = expression.is_Add and _over_a_number(expression)[1] == 1
    terms = [SIZED.sub("", term) for term in printer.terms(expression)] if summed else [whole]
    return "".join(map(_held, terms))


def _held(term: str) -> str:
    """A term after its sign, in which no line ends, unless it is too long for a line."""
    sign, inside = SIGN.fullmatch(term).groups()  # type: ignore[union-attr]
    return term if length(inside) > LONGEST else f"{sign}{{{inside}}}"


def length(latex: str) -> int:
    """About how many characters a formula shows."""
    latex = latex.replace(r"\allowbreak", "")
    return len(re.sub(r"\\\w+\{(\w+)\}|\\\w+", r"\1.", latex).translate(NOT_SHOWN))
