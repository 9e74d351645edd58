"""Proof rules that are schemas: whatever terms stand for the letters, premises imply the conclusion.

`k`, `m` and `n` stand for integers, other letters for terms of any sort. Names are cvc5's (its rewrites
have hyphens), but for `arith_apart` and `arith_quotient`. A solver decides in the tests that each is
valid.
"""

from __future__ import annotations

import re
from typing import Any

from psem_check.terms import INT, Term, Terms

TABLE = """
ite_eq                 |- (ite c (= (ite c a b) a) (= (ite c a b) b))
ite-true-cond          |- (= (ite true a b) a)
ite-false-cond         |- (= (ite false a b) b)
ite-not-cond           |- (= (ite (not c) a b) (ite c b a))
ite-eq-branch          |- (= (ite c a a) a)
ite-then-lookahead     |- (= (ite c (ite c a b) d) (ite c a d))
ite-else-lookahead     |- (= (ite c a (ite c b d)) (ite c a d))
ite-then-neg-lookahead |- (= (ite c (ite (not c) a b) d) (ite c b d))
ite-else-neg-lookahead |- (= (ite c a (ite (not c) b d)) (ite c a b))
eq-ite-lift            |- (= (= (ite c a b) d) (ite c (= a d) (= b d)))
arith-elim-gt          |- (= (> a b) (not (>= b a)))
arith-elim-lt          |- (= (< a b) (not (>= a b)))
arith-elim-int-gt      |- (= (> m n) (>= m (+ n 1)))
arith-elim-int-lt      |- (= (< m n) (>= n (+ m 1)))
arith-elim-leq         |- (= (<= a b) (>= b a))
arith-leq-norm         |- (= (<= m n) (not (>= m (+ n 1))))
arith-geq-tighten      |- (= (not (>= m n)) (>= n (+ m 1)))
arith-geq-norm1-int    |- (= (>= m n) (>= (- m n) 0))
arith-geq-norm1-real   |- (= (>= a b) (>= (- a b) 0))
arith-eq-elim-real     |- (= (= a b) (and (>= a b) (<= a b)))
arith-eq-elim-int      |- (= (= m n) (and (>= m n) (<= m n)))
arith-to-int-elim-to-real |- (= (to_int (to_real a)) a)
arith-div-total-zero-real |- (= (/_total a 0) 0)
arith-int-div-total       (= (not (= n 0)) true) |- (= (div m n) (div_total m n))
arith-int-mod-total       (= (not (= n 0)) true) |- (= (mod m n) (mod_total m n))
arith-int-div-total-one   |- (= (div_total m 1) m)
arith-int-div-total-zero  |- (= (div_total m 0) 0)
arith-int-mod-total-one   |- (= (mod_total m 1) 0)
arith-int-mod-total-zero  |- (= (mod_total m 0) m)
arith-abs-eq           |- (= (= (abs a) (abs b)) (or (= a b) (= a (neg b))))
arith-abs-int-gt       |- (= (> (abs a) (abs b)) (ite (>= a 0) (ite (>= b 0) (> a b) (> a (neg b)))
                              (ite (>= b 0) (> (neg a) b) (> (neg a) (neg b)))))
arith-abs-real-gt      |- (= (> (abs a) (abs b)) (ite (>= a 0) (ite (>= b 0) (> a b) (> a (neg b)))
                              (ite (>= b 0) (> (neg a) b) (> (neg a) (neg b)))))
arith-geq-ite-lift     |- (= (>= (ite c a b) d) (ite c (>= a d) (>= b d)))
arith-leq-ite-lift     |- (= (<= (ite c a b) d) (ite c (<= a d) (<= b d)))
arith-min-lt1          |- (= (<= (ite (< a b) a b) a) true)
arith-min-lt2          |- (= (<= (ite (< a b) a b) b) true)
arith-max-geq1         |- (= (>= (ite (>= a b) a b) a) true)
arith-max-geq2         |- (= (>= (ite (>= a b) a b) b) true)
arith_apart            (not (= a b)) |- (or (< a b) (< b a))
arith_quotient         |- (or (= b 0) (= (* (/ a b) b) a))
arrays_read_over_write        (not (= a b)) |- (= (select (store d a c) b) (select d b))
arrays_read_over_write_contra (not (= (select (store d a c) b) (select d b))) |- (= b a)
arrays_read_over_write_1      |- (= (select (store d a c) a) c)
array-read-over-write         |- (= (select (store d a c) a) c)
array-read-over-write2        (= (= a b) false) |- (= (select (store d a c) b) (select d b))
array-store-overwrite         |- (= (store (store d a b) a c) (store d a c))
array-store-self              |- (= (store d a (select d a)) d)
array-read-over-write-split   |- (= (select (store d b c) a) (ite (= a b) c (select d a)))
"""

LETTERS = frozenset("abcdkmn")
INTEGERS = frozenset("kmn")


def matches(terms: Terms, rule: str, premises: list[Term], conclusion: Term) -> bool:
    """Whether premises and conclusion are an instance of a schema of this name."""
    for expected, pattern in SCHEMAS[rule]:
        if len(expected) == len(premises):
            bound: dict[str, Term] = {}
            pairs = [*zip(expected, premises, strict=True), (pattern, conclusion)]
            if all(_is(terms, part, term, bound) for part, term in pairs):
                return True
    return False


def _is(terms: Terms, pattern: Any, term: Term, bound: dict[str, Term]) -> bool:
    if isinstance(pattern, tuple):
        head, *parts = pattern
        arguments = terms.arguments[term]
        return (
            terms.heads[term] == head
            and len(arguments) == len(parts)
            and all(_is(terms, p, a, bound) for p, a in zip(parts, arguments, strict=True))
        )
    if pattern in LETTERS:
        if pattern in INTEGERS and terms.sorts[term] != INT:
            return False
        return bound.setdefault(pattern, term) == term
    if pattern in ("true", "false"):
        return term == (terms.true if pattern == "true" else terms.false)
    head = terms.heads[term]
    return isinstance(head, tuple) and head[0] in ("int", "real") and head[1] == int(pattern)


def _parsed(text: str) -> list[Any]:
    """The patterns of a text, as nested tuples."""
    stack: list[list[Any]] = [[]]
    for word in re.findall(r"[()]|[^\s()]+", text):
        if word == "(":
            stack.append([])
        elif word == ")":
            made = tuple(stack.pop())
            stack[-1].append(made)
        else:
            stack[-1].append(word)
    (found,) = stack
    return found


def _table() -> dict[str, list[tuple[list[Any], Any]]]:
    found: dict[str, list[tuple[list[Any], Any]]] = {}
    for line in re.sub(r"\n\s+", " ", TABLE).strip().splitlines():
        name, rest = line.split(None, 1)
        premises, conclusion = rest.split("|-")
        (pattern,) = _parsed(conclusion)
        found.setdefault(name, []).append((_parsed(premises), pattern))
    return found


SCHEMAS = _table()
