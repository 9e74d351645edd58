"""A proof by cvc5 of one obligation, as steps of a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cvc5
from cvc5 import ProofRule

from psem_model.certify.cvc5_terms import Bridge, Unknown
from psem_model.certify.formulas import Unwritten
from psem_model.certify.questions import asked
from psem_model.certify.shorter import Step, shorter

RESOURCES = 400_000  # cvc5's own deterministic count: two seconds
OPTIONS = {
    "produce-proofs": "true",
    "proof-granularity": "dsl-rewrite",
    "decision": "justification",
}
PLAIN = {"rlimit-per": str(RESOURCES)}
NONLINEAR = {
    "rlimit-per": str(5 * RESOURCES),
    "nl-cov": "false",
    "nl-ext": "full",
    "nl-ext-tplanes": "true",
}


def prove(text: str, nonlinear: bool = False) -> dict[str, Any]:
    """A proof of a question; `missing`, with the reason, if cvc5 has none that can be written."""
    graph, facts = asked(text)
    bridge = Bridge(graph.terms)
    solver = cvc5.Solver(bridge.manager)
    for name, value in {**OPTIONS, **(NONLINEAR if nonlinear else PLAIN)}.items():
        solver.setOption(name, value)
    try:
        for fact in facts:
            solver.assertFormula(bridge.there(fact))
        answer = solver.checkSat()
        if not answer.isUnsat():
            return {"missing": f"cvc5 says {answer}"}
        (root,) = solver.getProof()
        return shorter(graph, facts, steps_of(root, bridge))
    except (Unknown, Unwritten) as error:
        return {"missing": f"cvc5's proof has {error}"}


def steps_of(root: Any, bridge: Bridge) -> Iterator[Step]:
    """The steps of a proof of false, each once, without the outermost scope: that of the facts."""
    while root.getRule() == ProofRule.SCOPE:
        (root,) = root.getChildren()
    done: dict[Any, int] = {}
    pending = [root]
    while pending:
        here = pending[-1]
        missing = [child for child in here.getChildren() if child not in done]
        if here in done or missing:
            pending = pending[:-1] if here in done else pending + missing
            continue
        premises = [done[child] for child in here.getChildren()]
        done[here] = len(done)
        more = (
            [bridge.back(a) for a in here.getArguments()] if here.getRule() == ProofRule.SCOPE else []
        )
        yield _name(here), bridge.back(here.getResult()), premises, [more]


def _name(node: Any) -> str:
    """That of a rule, or of a rewrite; congruence has one name."""
    rule = node.getRule()
    if rule == ProofRule.TRUST:
        raise Unknown(f"a trusted step: {node.getArguments()[0]}")
    if rule in (ProofRule.DSL_REWRITE, ProofRule.THEORY_REWRITE):
        return str(node.getRewriteRule().name.lower())
    return "cong" if rule.name.endswith("CONG") else str(rule.name.lower())
