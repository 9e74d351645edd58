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
refl                   |- (= a a)
symm                   (= a b) |- (= b a)
symm                   (not (= a b)) |- (not (= b a))
eq_resolve             a (= a b) |- b
modus_ponens           a (=> a b) |- b
contra                 a (not a) |- false
not_not_elim           (not (not a)) |- a
split                  |- (or a (not a))
true_intro             a |- (= a true)
true_elim              (= a true) |- a
false_intro            (not a) |- (= a false)
false_elim             (= a false) |- (not a)
implies_elim           (=> a b) |- (or (not a) b)
not_implies_elim1      (not (=> a b)) |- a
not_implies_elim2      (not (=> a b)) |- (not b)
equiv_elim1            (= a b) |- (or (not a) b)
equiv_elim2            (= a b) |- (or a (not b))
not_equiv_elim1        (not (= a b)) |- (or a b)
not_equiv_elim2        (not (= a b)) |- (or (not a) (not b))
xor_elim1              (xor a b) |- (or a b)
xor_elim2              (xor a b) |- (or (not a) (not b))
not_xor_elim1          (not (xor a b)) |- (or a (not b))
not_xor_elim2          (not (xor a b)) |- (or (not a) b)
ite_elim1              (ite c a b) |- (or (not c) a)
ite_elim2              (ite c a b) |- (or c b)
not_ite_elim1          (not (ite c a b)) |- (or (not c) (not a))
not_ite_elim2          (not (ite c a b)) |- (or c (not b))
cnf_implies_pos        |- (or (not (=> a b)) (not a) b)
cnf_implies_neg1       |- (or (=> a b) a)
cnf_implies_neg2       |- (or (=> a b) (not b))
cnf_equiv_pos1         |- (or (not (= a b)) (not a) b)
cnf_equiv_pos2         |- (or (not (= a b)) a (not b))
cnf_equiv_neg1         |- (or (= a b) a b)
cnf_equiv_neg2         |- (or (= a b) (not a) (not b))
cnf_xor_pos1           |- (or (not (xor a b)) a b)
cnf_xor_pos2           |- (or (not (xor a b)) (not a) (not b))
cnf_xor_neg1           |- (or (xor a b) (not a) b)
cnf_xor_neg2           |- (or (xor a b) a (not b))
cnf_ite_pos1           |- (or (not (ite c a b)) (not c) a)
cnf_ite_pos2           |- (or (not (ite c a b)) c b)
cnf_ite_pos3           |- (or (not (ite c a b)) a b)
cnf_ite_neg1           |- (or (ite c a b) (not c) (not a))
cnf_ite_neg2           |- (or (ite c a b) c (not b))
cnf_ite_neg3           |- (or (ite c a b) (not a) (not b))
ite_eq                 |- (ite c (= (ite c a b) a) (= (ite c a b) b))
bool-double-not-elim   |- (= (not (not a)) a)
bool-not-true          (= a false) |- (= (not a) true)
bool-not-false         (= a true) |- (= (not a) false)
bool-eq-true           |- (= (= a true) a)
bool-eq-false          |- (= (= a false) (not a))
bool-eq-nrefl          |- (= (= a (not a)) false)
bool-impl-false1       |- (= (=> a false) (not a))
bool-impl-false2       |- (= (=> false a) true)
bool-impl-true1        |- (= (=> a true) true)
bool-impl-true2        |- (= (=> true a) a)
bool-impl-elim         |- (= (=> a b) (or (not a) b))
bool-dual-impl-eq      |- (= (and (=> a b) (=> b a)) (= a b))
bool-implies-de-morgan |- (= (not (=> a b)) (and a (not b)))
bool-xor-refl          |- (= (xor a a) false)
bool-xor-nrefl         |- (= (xor a (not a)) true)
bool-xor-false         |- (= (xor a false) a)
bool-xor-true          |- (= (xor a true) (not a))
bool-xor-comm          |- (= (xor a b) (xor b a))
bool-xor-elim          |- (= (xor a b) (= (not a) b))
bool-not-xor-elim      |- (= (not (xor a b)) (= a b))
bool-not-eq-elim1      |- (= (not (= a b)) (= (not a) b))
bool-not-eq-elim2      |- (= (not (= a b)) (= a (not b)))
bool-not-ite-elim      |- (= (not (ite c a b)) (ite c (not a) (not b)))
ite-neg-branch         (= (not b) a) |- (= (ite c a b) (= c a))
ite-then-true          |- (= (ite c true a) (or c a))
ite-else-false         |- (= (ite c a false) (and c a))
ite-then-false         |- (= (ite c false a) (and (not c) a))
ite-else-true          |- (= (ite c a true) (or (not c) a))
ite-then-lookahead-self     |- (= (ite c c a) (ite c true a))
ite-else-lookahead-self     |- (= (ite c a c) (ite c a false))
ite-then-lookahead-not-self |- (= (ite c (not c) a) (ite c false a))
ite-else-lookahead-not-self |- (= (ite c a (not c)) (ite c a true))
ite-expand             |- (= (ite c a b) (and (or (not c) a) (or c b)))
ite-true-cond          |- (= (ite true a b) a)
ite-false-cond         |- (= (ite false a b) b)
ite-not-cond           |- (= (ite (not c) a b) (ite c b a))
ite-eq-branch          |- (= (ite c a a) a)
ite-then-lookahead     |- (= (ite c (ite c a b) d) (ite c a d))
ite-else-lookahead     |- (= (ite c a (ite c b d)) (ite c a d))
ite-then-neg-lookahead |- (= (ite c (ite (not c) a b) d) (ite c b d))
ite-else-neg-lookahead |- (= (ite c a (ite (not c) b d)) (ite c a b))
eq-refl                |- (= (= a a) true)
eq-symm                |- (= (= a b) (= b a))
eq-cond-deq            (= (= b c) false) |- (= (= (= a b) (= a c)) (and (not (= a b)) (not (= a c))))
eq-ite-lift            |- (= (= (ite c a b) d) (ite c (= a d) (= b d)))
distinct-binary-elim   |- (= (distinct a b) (not (= a b)))
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
