"""Certificates of small kernels, and terms of certificates as the solver's."""

import copy
import json
from functools import cache, reduce
from itertools import count

import cvc5
import pytest
import z3

from proofs.registry import Claim, prove, select
from proofs.trusted.terms import IntSort
from psem_check.cases import Cases
from psem_check.check import check
from psem_check.forms import TRUE, Forms
from psem_check.polynomials import value_of
from psem_check.proofs import WORK
from psem_check.terms import BOOL, INT, REAL, Rejected
from psem_model.certify.certificate import add_proofs, places
from psem_model.certify.cvc5_proofs import NONLINEAR
from psem_model.certify.search import search
from psem_model.certify.tree import tree


def claim(id="X"):
    return Claim(id, "area", "It holds.", "", "", (), (), (), "", "proved")


def certified(results):
    """The certificate of some results, its proofs made in this process."""
    document = tree(results)
    add_proofs(document, lambda questions: {text: search(text) for text in questions})
    return document


def unproved(results):
    """The certificate of some results, with no proof of any obligation."""
    document = tree(results)
    add_proofs(document, lambda questions: {text: {"missing": "none"} for text in questions})
    return document


def made(proof):
    """The certificate of what a function proves."""
    result = prove(claim(), proof)
    assert not result.failure, result.failure
    return certified([result])


@cache
def _of_claims(ids):
    return json.dumps(certified([prove(each) for each in select(ids)]))


def of_claims(*ids):
    return json.loads(_of_claims(ids))


def all_rules(k):
    """All rules: n <= total(n) <= twice(n), for a total made by recursion."""
    n, m, x = k.integers("n m x")
    start, size = k.fixed("start", IntSort()), k.function("size", IntSort(), IntSort())
    least = k.suppose("start_is_positive", [], start >= 1)
    given = k.suppose("sizes_are_positive", [x], size(x) >= 1)
    total, at_zero, then = k.recursion("total", [m], n, start, lambda before: before(m) + 1)
    twice, doubled = k.define("twice", [m], 2 * m)
    shown, found, _, serves = k.choose("even", [m], n, m == 2 * n)
    holds = k.prove("sum_is_positive", size(x) + start >= 2, uses=[least, given])
    grows = k.induct("grows", n, total(m, n) >= n + 1, base=[at_zero, least], step=[then])
    even = k.prove("even_is_twice", twice(found(m)) == m, [shown(m)], [doubled.at(m=found(m)), serves])
    return (grows, even, holds, k.prove("grown", total(3, 4) >= 5, uses=[grows.at(m=3, n=4)]))


def changed(document):
    """A copy to be changed."""
    return copy.deepcopy(document)


def rejected(document):
    """Why a certificate is rejected."""
    with pytest.raises(Rejected) as caught:
        list(check(document))
    return str(caught.value)


def proofs_in(document):
    """The proofs of a certificate: in what, and by which key."""
    return [(place, key) for _, place, key in places(document)]


def follows(terms, premises, conclusion):
    """Whether the checker sees that premises imply a conclusion."""
    forms = Forms(terms)
    return Cases(forms, WORK).impossible([*map(forms.of, premises), -forms.of(conclusion)])


def worth(terms, term):
    """What the checker takes a closed term for: a truth value, a number, or None."""
    forms = Forms(terms)
    form = forms.of(term)
    if terms.sorts[term] == BOOL:
        return {TRUE: True, -TRUE: False}.get(form)
    return value_of(forms.polynomial(form))


NUMBERS = count()  # of enumerations, which the solver knows by their names


class Solver:
    """Terms of a graph, as z3's."""

    def __init__(self, terms):
        self.terms = terms
        self.done = {}

    def sort(self, sort):
        plain = {BOOL: z3.BoolSort, INT: z3.IntSort, REAL: z3.RealSort}
        if sort in plain:
            return plain[sort]()
        if sort[0] == "Array":
            return z3.ArraySort(self.sort(sort[1]), self.sort(sort[2]))
        if sort[0] == "Values":
            return self.enumeration(sort)[0]
        return z3.DeclareSort(sort[1])

    def enumeration(self, sort):
        key = ("enumeration", sort)
        if key not in self.done:
            names = [f"{sort[1]}_{name}" for name in sort[2]]
            self.done[key] = z3.EnumSort(f"{sort[1]}_{next(NUMBERS)}", names)
        return self.done[key]

    def of(self, term):
        for here in self.terms.below([term]):
            if here not in self.done:
                arguments = [self.done[a] for a in self.terms.arguments[here]]
                self.done[here] = self.made(self.terms.heads[here], arguments)
        return self.done[term]

    def made(self, head, arguments):
        if isinstance(head, str):
            return OPERATORS[head](*arguments)
        if isinstance(head, int):
            said = self.terms.symbols[head]
            sorts = [self.sort(s) for s in (*said.arguments, said.sort)]
            return z3.Function(f"{said.name}_{head}", *sorts)(*arguments)
        sort, what = head
        plain = {BOOL: z3.BoolVal, INT: z3.IntVal, REAL: z3.RealVal}
        return plain[sort](what) if sort in plain else self.enumeration(sort)[1][what]

    def follows(self, premises, conclusion):
        """Whether the conclusion follows: True, False, or None if the solver cannot tell."""
        solver = z3.Solver()
        solver.set("timeout", 2000)
        solver.add(*map(self.of, premises), z3.Not(self.of(conclusion)))
        said = str(solver.check())
        return {"unsat": True, "sat": False}.get(
            said if said != "unknown" else by_cvc5(solver.to_smt2())
        )


def by_cvc5(text):
    """What cvc5 says of a text of which z3 cannot tell."""
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setLogic("ALL")
    for name, value in {"decision": "justification", **NONLINEAR}.items():
        solver.setOption(name, value)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "")
    symbols = parser.getSymbolManager()
    said = []
    while not (command := parser.nextCommand()).isNull():
        said.append(command.invoke(solver, symbols).strip())
    return " ".join(filter(None, said))


OPERATORS = {
    "not": z3.Not,
    "and": z3.And,
    "or": z3.Or,
    "=>": z3.Implies,
    "=": lambda a, b: a == b,
    "ite": z3.If,
    "+": lambda *a: z3.Sum(a),
    "*": lambda *a: reduce(lambda x, y: x * y, a),
    "-": lambda a, b: a - b,
    "neg": lambda a: -a,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "/": lambda a, b: a / b,
    "div": lambda a, b: a / b,
    "mod": lambda a, b: a % b,
    "to_real": z3.ToReal,
    "select": z3.Select,
    "store": z3.Store,
}
