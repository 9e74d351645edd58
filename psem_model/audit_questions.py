"""What is asked of an obligation besides its answer: can its facts hold, is each of them needed?

A fact is what the goal is concluded from: a theorem in use, a `given`, an induction hypothesis.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import isclass, isfunction, signature, unwrap
from typing import Any

import z3

from proofs import registry
from proofs.kernel import RESOURCE_LIMIT, SEED, Obligation, Theorem
from proofs.smtlib import Bool, Term, standalone_text

VALUES = (z3.Z3_BOOL_SORT, z3.Z3_INT_SORT, z3.Z3_REAL_SORT)
OF_A_CLAIM = re.compile(r"\(Claim \w+")
CALLED = re.compile(r"(?<!def )\b(\w+)\(")  # proves a part of a claim
SEVERAL_THEOREMS = re.compile(r"\w\[.*\bTheorem\b.*\]")


def _solver() -> z3.Solver:
    """A solver of its own context, bounded as the kernel's is."""
    solver = z3.Solver(ctx=z3.Context())
    solver.set(rlimit=RESOURCE_LIMIT, random_seed=SEED)
    return solver


@cache
def answer(text: str) -> str:
    """The solver's answer to a text: sat, unsat or unknown."""
    solver = _solver()
    solver.from_string(text)
    return str(solver.check())


def together(formulas: Sequence[Bool]) -> str:
    """Whether formulas can hold together."""
    return answer(standalone_text(list(formulas))) if formulas else "sat"


def without(obligation: Obligation, index: int) -> str:
    """The obligation with one fact dropped. `sat` means that the fact was needed."""
    rest = [fact for i, fact in enumerate(obligation.facts) if i != index]
    return together([*rest, z3.Not(obligation.goal)])


def proved_theorems(theorems: Sequence[Theorem]) -> list[Theorem]:
    """Those with obligations that the solver answered `unsat`: all but counterexamples."""
    return [t for t in theorems if t.obligations and t.rule != "counterexample"]


def entries(theorem: Theorem) -> dict[str, list[tuple[Obligation, int]]]:
    """Where each fact comes from: the argument of the rule, then (obligation, index) per use.

    An induction puts one `given` into its base and its step; it is used if either needs it.
    The index being natural is the rule's own fact, and is left out.
    """
    found = {}
    if theorem.rule == "smt":
        (only,) = theorem.obligations
        uses = len(only.facts) - len(theorem.given)
        for i in range(len(only.facts)):
            label = f"uses[{i}]" if i < uses else f"given[{i - uses}]"
            found[label] = [(only, i)]
        return found
    base, step = theorem.obligations
    given = len(theorem.given) - 1
    of_base = len(base.facts) - given
    of_step = len(theorem.parts) - of_base
    for i in range(of_base):
        found[f"base[{i}]"] = [(base, i)]
    for i in range(of_step):
        found[f"step[{i}]"] = [(step, i)]
    for i in range(of_step + 1, len(step.facts) - given):
        found[f"hypothesis[{i - of_step - 1}]"] = [(step, i)]
    for i in range(given):
        found[f"given[{i}]"] = [(base, of_base + i), (step, len(step.facts) - given + i)]
    return found


def unused(theorem: Theorem) -> Iterator[str]:
    """The facts that a theorem is proved without."""
    for label, places in entries(theorem).items():
        if all(without(obligation, index) != "sat" for obligation, index in places):
            obligation, index = places[-1]
            yield f"{obligation.name} {label}: {brief(obligation.facts[index])}"


def brief(formula: Bool, length: int = 100) -> str:
    """A formula in one line."""
    text = " ".join(str(formula).split())
    return text if len(text) <= length else f"{text[:length]}..."


def witness(facts: Sequence[Bool]) -> str | None:
    """The facts with values under which they hold, as text; nothing if none are found.

    With values no solver need search: for a second one, nonlinear facts are hard to satisfy.
    """
    solver = _solver()
    solver.add(*(fact.translate(solver.ctx) for fact in facts))
    if solver.check() != z3.sat:
        return None
    model, values = solver.model(), []
    for term in _unknowns(facts):
        value = model.eval(term.translate(solver.ctx), model_completion=True)
        if z3.is_int_value(value) or z3.is_rational_value(value):
            values.append(term == value.translate(z3.main_ctx()))
        elif z3.is_true(value) or z3.is_false(value):
            values.append(term if z3.is_true(value) else z3.Not(term))
    text = standalone_text([*facts, *values])
    return text if answer(text) == "sat" else None


def _unknowns(terms: Sequence[Term]) -> Iterator[Term]:
    """The numbers and truth values in terms that no operator makes from others."""
    seen, pending = set(), list(terms)
    while pending:
        term = pending.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        pending.extend(term.children())
        if term.decl().kind() in (z3.Z3_OP_UNINTERPRETED, z3.Z3_OP_SELECT) and (
            term.sort_kind() in VALUES
        ):
            yield term


def registration() -> list[str]:
    """Functions that prove a claim and are registered under none, or under several."""
    registered = [claim.theorem for claim in registry.claims()]
    found = set(_claim_functions())
    return [
        *(f"{name} is registered under no claim" for name in sorted(found - {*registered})),
        *(f"{name} is no function that proves a claim" for name in sorted({*registered} - found)),
        *(
            f"{name} is registered under several claims"
            for name in sorted({n for n in registered if registered.count(n) > 1})
        ),
    ]


def _claim_functions() -> Iterator[str]:
    paths = sorted((registry.ROOT / "proofs").glob("*.py"))
    called = set(CALLED.findall("".join(path.read_text() for path in paths)))
    for path in paths:
        module = importlib.import_module(f"proofs.{path.stem}")
        for name, function in vars(module).items():
            if callable(function) and not isclass(function):
                made = unwrap(function)
                here = getattr(made, "__module__", module.__name__) == module.__name__
                if here and (_says_so(made) or (name not in called and _shaped_so(made, name))):
                    yield f"{module.__name__}.{name}"


def _says_so(function: Callable[..., Any]) -> bool:
    """Its docstring names a claim."""
    return OF_A_CLAIM.search(getattr(function, "__doc__", None) or "") is not None


def _shaped_so(function: Callable[..., Any], name: str) -> bool:
    """It is public, takes a kernel and nothing else, and returns theorems."""
    if name.startswith("_") or not isfunction(function):
        return False
    taken = [str(p.annotation).strip("'") for p in signature(function).parameters.values()]
    returned = str(signature(function).return_annotation)
    return taken == ["Kernel"] and SEVERAL_THEOREMS.search(returned) is not None
