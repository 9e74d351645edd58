"""A proof by cvc5 of one obligation, as steps of a certificate."""

from __future__ import annotations

import json
import re
from typing import Any

import cvc5
from cvc5 import ProofRule

from psem_check.graphs import Graph, Lists, asked
from psem_check.schemas import SCHEMAS
from psem_check.terms import Term
from psem_model.certify.cvc5_terms import Bridge, Unknown
from psem_model.certify.shorter import shorter

RESOURCES = 2_000_000  # cvc5's own deterministic count
OPTIONS = {
    "produce-proofs": "true",
    "proof-granularity": "dsl-rewrite",
    "decision": "justification",
    "rlimit-per": str(RESOURCES),
}
NONLINEAR = {"nl-cov": "false", "nl-ext": "full", "nl-ext-tplanes": "true"}
NAMES = {
    "NARY_CONG": "cong",
    "PAIRWISE_CONG": "cong",
}
CONNECTIVES = (  # of rules and rewrites that are about connectives and equations alone
    *(
        "absorb",
        "aci_norm",
        "and_",
        "bool-",
        "chain_",
        "cnf_",
        "contra",
        "distinct",
        "eq-refl",
        "eq-symm",
    ),
    *("eq_resolve", "equiv_", "factoring", "false_", "implies_", "ite_elim", "modus_ponens", "not_"),
    *("refl", "reordering", "resolution", "split", "symm", "true_", "xor_"),
)
CONDITIONAL = re.compile(  # rewrites of conditional terms that are formulas
    "ite-(neg-branch|expand|(then|else)-(true|false|lookahead-(not-)?self))|eq-cond-deq"
)


def is_of_connectives(name: str) -> bool:
    """Whether what a rule concludes follows by propositional logic."""
    of_formulas = name.startswith(CONNECTIVES) and name != "distinct_values"
    return of_formulas or bool(CONDITIONAL.fullmatch(name))


def prove(text: str, nonlinear: bool = False) -> dict[str, Any]:
    """A proof of a question; `missing`, with the reason, if cvc5 has none that can be written."""
    graph, facts = asked(text)
    bridge = Bridge(graph.terms)
    solver = cvc5.Solver(bridge.manager)
    for name, value in {**OPTIONS, **(NONLINEAR if nonlinear else {})}.items():
        solver.setOption(name, value)
    try:
        for fact in facts:
            solver.assertFormula(bridge.there(fact))
        answer = solver.checkSat()
        if not answer.isUnsat():
            return {"missing": f"cvc5 says {answer}"}
        (root,) = solver.getProof()
        return Writer(bridge, graph, facts).written(root)
    except Unknown as error:
        return {"missing": f"cvc5's proof has {error}"}


class Writer:
    """The steps of a proof, each once."""

    def __init__(self, bridge: Bridge, graph: Graph, facts: list[Term]) -> None:
        self.bridge = bridge
        self.graph = graph
        self.lists = Lists(bridge.terms, plain=True)
        for fact in facts:
            self.lists.number(fact)
        self.known = len(self.lists.nodes)
        assert self.known == len(graph.numbers)
        self.steps: list[list[Any]] = []
        self._numbers: dict[str, int] = {}

    def written(self, root: Any) -> dict[str, Any]:
        """The proof of false, without the outermost scope, which is that of the facts."""
        while root.getRule() == ProofRule.SCOPE:
            (root,) = root.getChildren()
        done: dict[Any, int] = {}
        pending = [root]
        while pending:
            here = pending[-1]
            if here in done:
                pending.pop()
                continue
            missing = [child for child in here.getChildren() if child not in done]
            if missing:
                pending += missing
                continue
            pending.pop()
            done[here] = self._step(here, [done[child] for child in here.getChildren()])
        terms, steps = self.lists.nodes[self.known :], self.steps[: done[root] + 1]
        return shorter(self.graph, self.known, {"terms": terms, "steps": steps})

    def _step(self, node: Any, premises: list[int]) -> int:
        conclusion = self._term(node.getResult())
        rule, more = self._rule(node)
        head = self.bridge.terms.heads[self.bridge.back(node.getResult())]
        sides = self.bridge.terms.arguments[self.bridge.back(node.getResult())]
        if head == "=" and sides[0] == sides[1]:
            rule, premises, more = "logic", [], []
        elif rule == "arith_poly_norm_rel":
            premises = []
        step = [rule, conclusion, premises, *more]
        while len(step) > 2 and step[-1] == []:
            step.pop()
        key = json.dumps(step)
        if key not in self._numbers:
            self._numbers[key] = len(self.steps)
            self.steps.append(step)
        return self._numbers[key]

    def _rule(self, node: Any) -> tuple[str, list[Any]]:
        """The name of a rule in certificates, and what it needs besides premises."""
        rule = node.getRule()
        name = NAMES.get(rule.name, rule.name.lower())
        if rule in (ProofRule.DSL_REWRITE, ProofRule.THEORY_REWRITE):
            rewrite = node.getRewriteRule().name.lower()
            hyphenated = rewrite.replace("_", "-")
            if is_of_connectives(hyphenated):
                return "logic", []
            return hyphenated if hyphenated in SCHEMAS else rewrite, []
        if is_of_connectives(name):
            return "logic", []
        arguments = node.getArguments()
        if rule == ProofRule.SCOPE:
            return name, [[self._term(a) for a in arguments]]
        if rule == ProofRule.ARITH_MULT_TANGENT:
            return name, [[[True, self._term(a)] for a in arguments[:4]]]
        if rule == ProofRule.TRUST:
            raise Unknown(f"a trusted step: {arguments[0]}")
        return name, []

    def _term(self, term: Any) -> int:
        return self.lists.number(self.bridge.back(term))
