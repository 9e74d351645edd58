"""Proof rules of arithmetic, over integers and real numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from psem_check.polynomials import ONE, Polynomial, Polynomials, plus, product, ratio
from psem_check.terms import INT, Rejected, Term, Terms

SIGNS = {"<": "-", "<=": "-0", "=": "0", ">=": "0+", ">": "+"}  # of the left side less the right
COMPARISONS = frozenset(SIGNS)
Rule = Callable[[Polynomials, Sequence[Term], Term, Sequence[Any]], bool]


def _compared(terms: Terms, formula: Term) -> tuple[str, Term, Term]:
    """The relation of two numbers that a formula says, and these; the relation is empty otherwise."""
    if terms.heads[formula] in COMPARISONS:
        left, right = terms.arguments[formula]
        return terms.heads[formula], left, right
    return "", formula, formula


def poly_norm(p: Polynomials, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """Two terms that are the same polynomial are equal."""
    if p.terms.heads[conclusion] != "=":
        return False
    return not p.difference(*p.terms.arguments[conclusion])


def poly_norm_rel(p: Polynomials, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """Comparisons whose sides differ by proportional polynomials; but for `=`, by a positive factor."""
    if p.terms.heads[conclusion] != "=":
        return False
    (one, a, b), (other, c, d) = (_compared(p.terms, s) for s in p.terms.arguments[conclusion])
    if not one or one != other:
        return False
    factor = ratio(p.difference(a, b), p.difference(c, d))
    return factor is not None and (one == "=" or factor > 0)


def sum_ub(p: Polynomials, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """The sum of `<`, `<=` and `=`; strict if one of them is."""
    total: Polynomial = {}
    strict = False
    for premise in premises:
        relation, left, right = _compared(p.terms, premise)
        if relation not in ("<", "<=", "="):
            return False
        total = plus(total, p.difference(left, right))
        strict = strict or relation == "<"
    relation, left, right = _compared(p.terms, conclusion)
    allowed = ("<", "<=") if strict else ("<=",)
    return relation in allowed and p.difference(left, right) == total


def mult_sign_of_factor(p: Polynomials, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """mult_pos, mult_neg: both sides of a comparison times a number of known sign."""
    terms = p.terms
    if terms.heads[conclusion] != "=>":
        return False
    condition, then = terms.arguments[conclusion]
    if not terms.is_application(condition, "and", 2):
        return False
    signed, compared = terms.arguments[condition]
    sign, factor, zero = _compared(terms, signed)
    before, a, b = _compared(terms, compared)
    after, x, y = _compared(terms, then)
    turned = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}
    if sign not in ("<", ">") or not before or p.of(zero):
        return False
    if after != (before if sign == ">" else turned[before]):
        return False
    return p.difference(x, y) == product(p.of(factor), p.difference(a, b))


def trichotomy(p: Polynomials, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """What several comparisons of the same two numbers leave of less, equal and greater."""
    said = [_signs(p.terms, premise) for premise in premises]
    found = _signs(p.terms, conclusion)
    if found is None or any(s is None or s[1:] != found[1:] for s in said):
        return False
    left = set("-0+").intersection(*(s[0] for s in said if s is not None))
    return left <= found[0]


def _signs(terms: Terms, formula: Term) -> tuple[set[str], Term, Term] | None:
    """The signs of a - b that a comparison of a and b, or its negation, allows."""
    negative = terms.heads[formula] == "not"
    relation, a, b = _compared(terms, terms.arguments[formula][0] if negative else formula)
    if not relation or terms.sorts[a] not in ("Int", "Real"):
        return None
    allowed = set(SIGNS[relation])
    return set("-0+") - allowed if negative else allowed, a, b


def tightened(p: Polynomials, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """int_tight: an integer less than a number is at most the integer below it; and likewise above."""
    (premise,) = premises
    terms = p.terms
    (before, a, bound), (after, b, limit) = (_compared(terms, f) for f in (premise, conclusion))
    if p.of(a) != p.of(b) or _integer(terms, a) is None:
        return False
    given, found = _numeral(p, bound), _numeral(p, limit)
    if given is None or found is None:
        return False
    if (before, after) == ("<", "<="):
        return found >= math.ceil(given) - 1
    return (before, after) == (">", ">=") and found <= math.floor(given) + 1


def whole_bounds(p: Polynomials, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """Two `>=` that say of the same whole number that it is at least the same whole number."""
    if p.terms.heads[conclusion] != "=":
        return False
    one, other = (_at_least(p, said) for said in p.terms.arguments[conclusion])
    return one is not None and one == other


def _at_least(p: Polynomials, formula: Term) -> tuple[Polynomial, int] | None:
    """A sum of integers, whose factors are whole and have no divisor in common, and its least value."""
    relation, left, right = _compared(p.terms, formula)
    if relation != ">=":
        return None
    difference = dict(p.difference(left, right))
    constant = difference.pop(ONE, Fraction(0))
    if not difference or any(p.terms.sorts[atom] != INT for m in difference for atom in m):
        return None
    factors = difference.values()
    divisor = Fraction(
        math.gcd(*(f.numerator for f in factors)), math.lcm(*(f.denominator for f in factors))
    )
    return plus({}, difference, 1 / divisor), math.ceil(-constant / divisor)


def _integer(terms: Terms, term: Term) -> Term | None:
    """The integer that a number is, if its sort says so."""
    if terms.heads[term] == "to_real":
        return terms.arguments[term][0]
    return term if terms.sorts[term] == INT else None


def _numeral(p: Polynomials, term: Term) -> Fraction | None:
    found = p.of(term)
    return found.get(ONE, Fraction(0)) if set(found) <= {ONE} else None


def mult_sign(p: Polynomials, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """The sign of a product, from those of its factors; of even powers, that they are not zero."""
    terms = p.terms
    if terms.heads[conclusion] != "=>":
        return False
    condition, then = terms.arguments[conclusion]
    relation, whole, zero = _compared(terms, then)
    if relation not in ("<", ">") or p.of(zero):
        return False
    signs: dict[Term, int] = {}
    for said in _conjuncts(terms, condition):
        factor, sign = _sign_of(p, said)
        signs.setdefault(factor, sign)
    sign = 1
    for factor, power in Counter(_factors(terms, whole)).items():
        if factor not in signs or (power % 2 and not signs[factor]):
            return False
        sign *= signs[factor] if power % 2 else 1
    return sign == (1 if relation == ">" else -1)


def _sign_of(p: Polynomials, said: Term) -> tuple[Term, int]:
    """Of x > 0, x < 0 and not x = 0: x, and its sign; 0 if either. Of others: what no product has."""
    terms = p.terms
    denied = terms.heads[said] == "not"
    relation, factor, zero = _compared(terms, terms.arguments[said][0] if denied else said)
    expected = ("=",) if denied else ("<", ">")
    if relation not in expected or terms.sorts[zero] not in ("Int", "Real") or p.of(zero):
        return -1, 0
    return factor, {"=": 0, "<": -1, ">": 1}[relation]


def _conjuncts(terms: Terms, formula: Term) -> tuple[Term, ...]:
    return terms.arguments[formula] if terms.heads[formula] == "and" else (formula,)


def _factors(terms: Terms, term: Term) -> list[Term]:
    """Those of a product, however it is nested."""
    found: list[Term] = []
    pending = [term]
    while pending:
        here = pending.pop()
        if terms.heads[here] == "*":
            pending.extend(reversed(terms.arguments[here]))
            if len(found) + len(pending) > 1000:
                raise Rejected("a product is too long")
        else:
            found.append(here)
    return found


def mult_abs(p: Polynomials, premises: Sequence[Term], conclusion: Term, _: Sequence[Any]) -> bool:
    """Products of larger numbers are larger, of equal ones equal; without their signs."""
    terms = p.terms
    relation, whole, other = _compared(terms, conclusion)
    pairs = [_of_absolutes(terms, premise) for premise in premises]
    if relation not in (">", "=") or not pairs or any(pair is None for pair in pairs):
        return False
    found = [pair for pair in pairs if pair is not None]
    if relation == ">":
        # the first is strict, so what is multiplied is not zero, where equality says so
        first, *others = found
        if first[0] != ">" or any(kind == "=" and not known for kind, _, _, known in others):
            return False
    elif any(kind != "=" for kind, _, _, _ in found):
        return False
    lefts, rights = (_under_abs(terms, side) for side in (whole, other))
    if lefts is None or rights is None:
        return False
    return Counter(_factors(terms, lefts)) == Counter(
        f for _, a, _, _ in found for f in _factors(terms, a)
    ) and Counter(_factors(terms, rights)) == Counter(
        f for _, _, b, _ in found for f in _factors(terms, b)
    )


def _under_abs(terms: Terms, term: Term) -> Term | None:
    return terms.arguments[term][0] if terms.heads[term] == "abs" else None


def _of_absolutes(terms: Terms, said: Term) -> tuple[str, Term, Term, bool] | None:
    """Of |a| > |b| or |a| = |b|: the relation, a, b, and whether a is said not to be zero."""
    parts = _conjuncts(terms, said)
    relation, a, b = _compared(terms, parts[0])
    left, right = _under_abs(terms, a), _under_abs(terms, b)
    if relation not in (">", "=") or left is None or right is None:
        return None
    known = len(parts) == 2 and any(
        parts[1] == terms.negation(terms.equal(left, zero))
        for zero in [terms.number(0, terms.sorts[left])]
    )
    return relation, left, right, known


def mult_tangent(p: Polynomials, _: Sequence[Term], conclusion: Term, given: Sequence[Any]) -> bool:
    """x y compared with its tangent plane at (a, b), by the sides of a and b that x and y are on."""
    terms = p.terms
    x, y, a, b = (side[1] for side in given)
    if terms.heads[conclusion] != "=":
        return False
    compared, cases = terms.arguments[conclusion]
    relation, whole, plane = _compared(terms, compared)
    if relation not in ("<=", ">="):
        return False
    px, py, pa, pb = map(p.of, (x, y, a, b))
    tangent = plus(plus(product(pb, px), product(pa, py)), product(pa, pb), -1)
    if p.of(whole) != product(px, py) or p.of(plane) != tangent:
        return False
    opposite = ">=" if relation == "<=" else "<="
    expected = terms.make(
        "or",
        terms.make("and", terms.make("<=", x, a), terms.make(opposite, y, b)),
        terms.make("and", terms.make(">=", x, a), terms.make(relation, y, b)),
    )
    return cases == expected


def reduction(p: Polynomials, _: Sequence[Term], conclusion: Term, __: Sequence[Any]) -> bool:
    """arith_reduction: what `/`, `div`, `mod` and `abs` are, of a term that the conclusion names."""
    terms = p.terms
    candidates = [conclusion, *_conjuncts(terms, conclusion)[:1]]
    for equation in candidates:
        if terms.heads[equation] != "=":
            continue
        said = terms.arguments[equation][0]
        if terms.heads[said] in _REDUCTIONS and conclusion in _reductions(terms, said):
            return True
    return False


def _reductions(terms: Terms, said: Term) -> list[Term]:
    return _REDUCTIONS[terms.heads[said]](terms, said, *terms.arguments[said])


def _by_case(total: str) -> Callable[[Terms, Term, Term, Term], list[Term]]:
    """A division is the total one unless by zero; there it is as it is."""

    def made(terms: Terms, said: Term, a: Term, b: Term) -> list[Term]:
        zero = terms.number(0, terms.sorts[b])
        by_zero = terms.make(terms.heads[said], a, zero)
        whole = terms.make(total, a, b)
        return [terms.equal(said, terms.make("ite", terms.equal(b, zero), by_zero, whole))]

    return made


def _quotient(terms: Terms, said: Term, a: Term, b: Term) -> list[Term]:
    zero = terms.number(0, terms.sorts[b])
    times = terms.equal(terms.make("*", b, said), a)
    differs = terms.negation(terms.equal(b, zero))
    return [terms.make("and", terms.equal(said, said), terms.make("=>", differs, times))]


def _whole_quotient(terms: Terms, said: Term, a: Term, b: Term) -> list[Term]:
    return _with_bounds(terms, terms.equal(said, said), a, b)


def _remainder(terms: Terms, said: Term, a: Term, b: Term) -> list[Term]:
    quotient = terms.make("div_total", a, b)
    rest = terms.make("-", a, terms.make("*", b, quotient))
    return _with_bounds(terms, terms.equal(said, rest), a, b)


def _with_bounds(terms: Terms, equation: Term, a: Term, b: Term) -> list[Term]:
    """And b q <= a < b (q + 1), or b (q - 1) where b is negative, for the quotient q."""
    quotient = terms.make("div_total", a, b)
    zero = terms.number(0, INT)
    lower = terms.make("<=", terms.make("*", b, quotient), a)

    def bounds(step: int) -> Term:
        moved = terms.make("+", quotient, terms.number(step, INT))
        return terms.make("and", lower, terms.make("<", a, terms.make("*", b, moved)))

    head = terms.heads[b]
    if isinstance(head, tuple) and head[0] == "int" and head[1]:
        return [terms.make("and", equation, bounds(-1 if head[1] < 0 else 1))]
    cases = terms.make(
        "and",
        terms.make("=>", terms.make(">", b, zero), bounds(1)),
        terms.make("=>", terms.make("<", b, zero), bounds(-1)),
    )
    return [terms.make("and", equation, cases)]


def _absolute(terms: Terms, said: Term, a: Term) -> list[Term]:
    below = terms.make("<", a, terms.number(0, terms.sorts[a]))
    return [terms.equal(said, terms.make("ite", below, terms.make("neg", a), a))]


_REDUCTIONS: dict[str, Callable[..., list[Term]]] = {
    "/": _by_case("/_total"),
    "div": _by_case("div_total"),
    "mod": _by_case("mod_total"),
    "/_total": _quotient,
    "div_total": _whole_quotient,
    "mod_total": _remainder,
    "abs": _absolute,
}
RULES: dict[str, Rule] = {
    "arith_poly_norm": poly_norm,
    "arith_poly_norm_rel": poly_norm_rel,
    "arith_sum_ub": sum_ub,
    "arith_mult_pos": mult_sign_of_factor,
    "arith_mult_neg": mult_sign_of_factor,
    "arith_trichotomy": trichotomy,
    "int_tight_ub": tightened,
    "int_tight_lb": tightened,
    "arith_int_geq_tighten": whole_bounds,
    "arith_mult_sign": mult_sign,
    "arith_mult_abs_comparison": mult_abs,
    "arith_mult_tangent": mult_tangent,
    "arith_reduction": reduction,
}
