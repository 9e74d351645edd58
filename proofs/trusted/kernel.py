"""The trusted file: the only maker of theorems.

A theorem reads "under these hypotheses, for all values of its variables, `given` implies `goal`".
Free constants are its variables; function symbols stand for any function. Rules:

    prove       the solver decides one quantifier-free obligation, from theorems named in `uses`
    induct      from P(0), and P(n) => P(n+1) for an arbitrary n >= 0, to P(n) for all n >= 0
    extend      two arrays that agree at an arbitrary index are equal
    at          an instance: terms in place of variables
    define, recursion, choose    new symbols, by an equation that defines them (conservative)
    suppose     a hypothesis, carried along by every theorem that uses it
    axiom       an assumption of `spec/assumptions.py`, likewise
    refute      a counterexample: an explicit model, evaluated again outside the solver

Each obligation is exported to standalone SMT-LIB text first, and the solver decides that text, whatever
its symbols are called, in a context of its own, once, bounded by a resource count with a fixed seed.
`unknown` is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from proofs.trusted import smtlib
from proofs.trusted.smtlib import Bool, KernelError, Term, name_of, own, summary
from proofs.trusted.theorem import (
    Hypothesis,
    Obligation,
    Record,
    SetOnce,
    Step,
    Theorem,
    assumed,
    hypotheses_of,
    implies,
    issue,
    needs_arithmetic,
    put,
    read,
)
from spec.assumptions import ASSUMPTIONS, Assumption

__all__ = ["Bool", "Kernel", "KernelError", "Obligation", "Term", "Theorem"]

RESOURCE_LIMIT = 20_000_000  # the solver's own deterministic count, not seconds
SEED = 0


@dataclass(eq=False)
class Kernel(SetOnce):
    """One namespace of symbols and the theorems about them; `claim` names it in exports."""

    claim: str
    theorems: list[Theorem] = field(default_factory=list, init=False)
    _symbols: dict[str, z3.FuncDeclRef] = field(default_factory=dict, init=False)
    _variables: set[str] = field(default_factory=set, init=False)
    _arbitrary: set[str] = field(default_factory=set, init=False)  # functions nothing is said of
    _names: set[str] = field(default_factory=set, init=False)

    def __init_subclass__(cls, **_: object) -> None:
        raise KernelError("a kernel has no subclasses")

    def part(self, name: str) -> Kernel:
        """A fresh namespace for one part of the claim; its theorems are listed with the claim's."""
        made = Kernel(f"{self.claim}/{name}")
        object.__setattr__(made, "theorems", self.theorems)
        return made

    # ------------------------------------------------------------------ symbols
    def constant(self, name: str, sort: z3.SortRef) -> Any:
        """A variable: theorems hold for all its values, and have instances."""
        made = self._declare(name, [], sort)()
        self._variables.add(name)
        return made

    def fixed(self, name: str, sort: z3.SortRef) -> Any:
        """A symbol for any one value, the same throughout: definitions may mention it."""
        return self._declare(name, [], sort)()

    def integers(self, names: str) -> Any:
        """Variables over the integers; one, or several separated by spaces."""
        return self._several(names, z3.IntSort())

    def reals(self, names: str) -> Any:
        """Variables over the real numbers, likewise."""
        return self._several(names, z3.RealSort())

    def _several(self, names: str, sort: z3.SortRef) -> Any:
        made = [self.constant(name, sort) for name in names.split()]
        return made[0] if len(made) == 1 else made

    def function(self, name: str, *sorts: z3.SortRef) -> z3.FuncDeclRef:
        """A symbol for any function; the last sort is its range."""
        made = self._declare(name, sorts[:-1], sorts[-1])
        self._arbitrary.add(name)
        return made

    def _declare(self, name: str, domain: Sequence[z3.SortRef], range_: z3.SortRef) -> z3.FuncDeclRef:
        made = smtlib.symbol(name, *domain, range_)
        if self._symbols.setdefault(name, made) is not made:
            raise KernelError(f"{name} is declared already")
        return own(made, z3.FuncDeclRef)

    # -------------------------------------------------------------- definitions
    def define(self, name: str, params: Sequence[Term], body: Term) -> tuple[Any, Theorem]:
        """A new function and its equation name(params) = body."""
        params, body = self._parameters(params), own(body)
        self._closed(body, params)
        self._said([body])
        f = self._declare(name, [p.sort() for p in params], body.sort())
        step = Step("define", symbol=f, params=params, body=body)
        return f, self._issue(name, "definition", (), f(*params) == body, step)

    def recursion(
        self,
        name: str,
        params: Sequence[Term],
        index: Term,
        base: Term,
        step: Callable[[Callable[..., Any]], Term],
    ) -> tuple[Any, Theorem, Theorem]:
        """A new function by recursion on its last argument, a natural number, with its equations.

        `step(previous)` is the value at index + 1, where previous(params) is the value at index.
        """
        params, base = self._parameters(params), own(base)
        (index,) = self._parameters([index], z3.IntSort())
        self._closed(base, params)
        self._said([base])
        f = smtlib.symbol(name, *(p.sort() for p in params), z3.IntSort(), base.sort())
        # f is not declared yet: nothing the step defines on its way can mention it
        body = own(step(smtlib.with_last(f, index)))
        if body.sort() != base.sort():
            raise KernelError(f"{name} is of sort {base.sort()}, its step of sort {body.sort()}")
        self._closed(body, (*params, index))
        self._said([body], f)
        for use in smtlib.applications(body, f):
            if not use.arg(use.num_args() - 1).eq(index):
                raise KernelError(f"{name}: the step may use the value before it only")
        f = self._declare(name, [*(p.sort() for p in params), z3.IntSort()], base.sort())
        axioms = assumed("induction")
        made = Step("recursion", symbol=f, params=params, index=index, base=base, body=body)
        first, after = f(*params, 0) == base, f(*params, index + 1) == body
        start = self._issue(f"{name}_start", "definition", (), first, made, under=axioms)
        then = self._issue(f"{name}_next", "definition", (index >= 0,), after, made, under=axioms)
        return f, start, then

    def choose(
        self, name: str, params: Sequence[Term], witness: Term, body: Bool
    ) -> tuple[Any, Any, Theorem, Theorem]:
        """A predicate name(params) for "some witness makes body true", and a function that finds one.

        Two theorems: a witness shows it; and where it holds, the found witness serves.
        """
        params, body = self._parameters(params), own(body)
        (witness,) = self._parameters([witness])
        self._closed(body, (*params, witness))
        self._said([body])
        sorts = [p.sort() for p in params]
        holds = self._declare(name, sorts, z3.BoolSort())
        found = self._declare(f"{name}_witness", sorts, witness.sort())
        step = Step("choose", symbol=holds, found=found, params=params, witness=witness, body=body)
        shown = self._issue(f"{name}_shown", "definition", (body,), holds(*params), step)
        serves = z3.substitute(body, (witness, found(*params)))
        back = self._issue(f"{name}_found", "definition", (holds(*params),), serves, step)
        return holds, found, shown, back

    def suppose(self, name: str, variables: Sequence[Term], formula: Bool) -> Theorem:
        """A hypothesis, for all values of `variables`; other constants in it stay as they are."""
        step = Step("suppose", variables=tuple(variables), formula=own(formula))
        return self._assume(name, variables, formula, None, step)

    def axiom(
        self, name: str, assumption: Assumption, function: z3.FuncDeclRef, *symbols: Any
    ) -> Theorem:
        """An assumption of spec/assumptions.py about a function that nothing else is said of.

        `symbols` are declared functions and variables; it holds for all values of the variables.
        """
        if ASSUMPTIONS.get(assumption.name) is not assumption or assumption.formula is None:
            raise KernelError(f"{assumption.name} is not an assumption of spec/assumptions.py")
        function, *others = map(self._declared, (function, *symbols))
        functions = [s for s in others if not z3.is_expr(s)]
        said = z3.is_expr(function) or function.name() not in self._arbitrary
        if said or function in functions:
            raise KernelError(f"{function} is not a function that nothing is said of")
        formula = assumption.formula(function, *others)
        if smtlib.CONVERTS in summary([formula]).features:
            raise KernelError(f"{assumption.name} does not relate symbols of these sorts")
        variables = [s for s in others if z3.is_expr(s)]
        step = Step("axiom", axiom=assumption.name, symbols=(function, *others))
        return self._assume(name, variables, formula, assumption.name, step)

    def _assume(
        self, name: str, variables: Sequence[Term], formula: Bool, axiom: str | None, step: Step
    ) -> Theorem:
        variables, formula = self._parameters(variables), own(formula)
        self._said([formula])
        fixed = (self._variables & summary([formula]).constants) - {name_of(v) for v in variables}
        under = frozenset([Hypothesis(name, frozenset(fixed), axiom)])
        rule = "axiom" if axiom else "hypothesis"
        return self._issue(name, rule, (), formula, step, under=under)

    # -------------------------------------------------------------------- rules
    def prove(
        self,
        name: str,
        goal: Bool,
        given: Iterable[Bool] = (),
        uses: Iterable[Theorem] = (),
    ) -> Theorem:
        """`given` implies `goal`, by the solver, from the theorems in `uses`."""
        given, goal, uses = tuple(map(own, given)), own(goal), tuple(uses)
        asked = self._ask(name, "smt", self._statements(uses), given, goal)
        under = hypotheses_of(uses) | needs_arithmetic([asked])
        step = Step("prove", given=given, goal=goal, uses=uses)
        return self._issue(name, "smt", given, goal, step, uses, (asked,), under)

    def induct(
        self,
        name: str,
        index: Term,
        goal: Bool,
        given: Iterable[Bool] = (),
        base: Iterable[Theorem] = (),
        step: Iterable[Theorem] = (),
        at: Sequence[Mapping[str, Any]] = ({},),
    ) -> Theorem:
        """For all index >= 0, `given` implies `goal`, by induction.

        The step may use the induction hypothesis at each instance in `at` of its other variables.
        """
        given, goal, base, step = tuple(map(own, given)), own(goal), tuple(base), tuple(step)
        facts = self._statements(base), self._statements(step)
        under = hypotheses_of([*base, *step])
        claim = implies(given, goal)
        (index,) = self._parameters([index], z3.IntSort())
        self._free(index, under)
        hypothesis = []
        at = tuple(map(dict, at))
        for terms in at:
            if name_of(index) in terms:
                raise KernelError(f"{name}: the induction hypothesis is about {index} alone")
            hypothesis.append(self._substituted(claim, terms, under))
        zero, following = ((index, z3.IntVal(0)),), ((index, index + 1),)
        asked = (
            self._ask(
                f"{name}_base",
                "induction base",
                facts[0],
                [z3.substitute(g, *zero) for g in given],
                z3.substitute(goal, *zero),
            ),
            self._ask(
                f"{name}_step",
                "induction step",
                facts[1],
                [index >= 0, *hypothesis, *(z3.substitute(g, *following) for g in given)],
                z3.substitute(goal, *following),
            ),
        )
        return self._issue(
            name,
            "induction",
            (index >= 0, *given),
            goal,
            Step("induct", index=index, given=given, goal=goal, base=base, step=step, at=at),
            (*base, *step),
            asked,
            under | assumed("induction") | needs_arithmetic(asked),
        )

    def extend(self, name: str, pointwise: Theorem, index: Term) -> Theorem:
        """From a[index] = b[index], for an arbitrary index, to a = b."""
        self._statements([pointwise])
        record = read(pointwise)
        (index,) = self._parameters([index])
        self._free(index, record.under)
        goal = record.goal
        sides = goal.children() if z3.is_eq(goal) else []
        if len(sides) != 2 or not all(
            z3.is_select(s) and s.num_args() == 2 and s.arg(1).eq(index) for s in sides
        ):
            raise KernelError(f"{name}: not an equation between two arrays at {index}")
        left, right = (s.arg(0) for s in sides)
        if name_of(index) in summary([left, right, *record.given]).constants:
            raise KernelError(f"{name}: {index} is not arbitrary")
        made, goal = Step("extend", pointwise=pointwise, index=index), left == right
        parts = (pointwise,)
        return self._issue(name, "extensionality", record.given, goal, made, parts, (), record.under)

    def refute(
        self,
        name: str,
        claim: Bool,
        unknowns: Sequence[Term],
        replay: Callable[..., bool],
        given: Iterable[Bool] = (),
        as_exact: Callable[[Term], Any] | None = None,
    ) -> Theorem:
        """`given` does not imply `claim`: a counterexample, found by the solver.

        It counts only if its explicit values make the formula false by substitution, and if
        replay(**values), the claim evaluated outside the solver, is False too.
        """
        given, claim = tuple(map(own, given)), own(claim)
        unknowns = self._parameters(unknowns)
        formula = implies(given, claim)
        self._known([formula])
        asked, model = put(_decide, self.claim, name, "counterexample", given, claim, z3.sat)
        values = {name: value.translate(z3.main_ctx()) for name, value in model.items()}
        pairs = [(u, values.get(name_of(u), smtlib.default_value(u))) for u in unknowns]
        refuted = z3.substitute(formula, *pairs)
        if not z3.is_false(z3.simplify(refuted)):
            raise KernelError(f"{self.claim}: {name}: its values do not refute it")
        exact = {name_of(u): (as_exact or smtlib.exact_value)(v) for u, v in pairs}
        if replay(**exact) is not False:
            raise KernelError(f"{self.claim}: {name}: outside the solver the claim holds there")
        shown = {key: str(value) for key, value in exact.items()}
        made, goal = Step("refute", given=given, claim=claim, values=tuple(pairs)), z3.Not(refuted)
        return self._issue(
            name, "counterexample", (), goal, made, obligations=(asked,), counterexample=shown
        )

    # ------------------------------------------------------------------ innards
    def _ask(
        self, name: str, rule: str, facts: Sequence[Bool], given: Sequence[Bool], goal: Bool
    ) -> Obligation:
        everything = (*facts, *given)
        self._known([*everything, goal])
        return put(_decide, self.claim, name, rule, everything, goal, z3.unsat)[0]

    def _issue(
        self,
        name: str,
        rule: str,
        given: tuple[Bool, ...],
        goal: Bool,
        step: Step,
        parts: tuple[Theorem, ...] = (),
        obligations: tuple[Obligation, ...] = (),
        under: frozenset[Hypothesis] = frozenset(),
        counterexample: Mapping[str, str] | None = None,
    ) -> Theorem:
        if rule != "instance":
            if name in self._names:
                raise KernelError(f"{self.claim}: a theorem is called {name} already")
            self._names.add(name)
        given, goal = tuple(map(smtlib.own_formula, given)), smtlib.own_formula(goal)
        theorem = issue(
            Record(self, name, rule, given, goal, parts, obligations, under, step, counterexample)
        )
        if rule != "instance":
            self.theorems.append(theorem)
        return theorem

    def _instance(self, theorem: Theorem, terms: Mapping[str, Any]) -> Theorem:
        record = read(theorem)
        if record.rule == "counterexample":
            raise KernelError(f"{record.name} is a counterexample, not a fact to use")
        given = tuple(self._substituted(g, terms, record.under) for g in record.given)
        goal = self._substituted(record.goal, terms, record.under)
        step, under = Step("instance", of=theorem, terms=dict(terms)), record.under
        return self._issue(record.name, "instance", given, goal, step, (theorem,), under=under)

    def _substituted(
        self, formula: Bool, terms: Mapping[str, Any], under: frozenset[Hypothesis]
    ) -> Bool:
        pairs = []
        for name, term in dict(terms).items():
            if type(name) is not str or name not in self._variables:
                raise KernelError(f"{name} is not a variable")
            variable = self._symbols[name]()
            self._free(variable, under)
            value = z3.IntVal(term) if type(term) is int else own(term)
            if value.sort() != variable.sort():
                raise KernelError(f"{name} is of sort {variable.sort()}, not {value.sort()}")
            pairs.append((variable, value))
        return z3.substitute(formula, *pairs)

    def _free(self, variable: Term, under: frozenset[Hypothesis]) -> None:
        for hypothesis in under:
            if name_of(variable) in hypothesis.fixed:
                raise KernelError(f"{variable} is fixed by the hypothesis {hypothesis.name}")

    def _statements(self, theorems: Sequence[Theorem]) -> list[Bool]:
        """What theorems of this kernel say."""
        for theorem in theorems:
            if read(theorem).kernel is not self:
                raise KernelError(f"{theorem.name} belongs to another claim's kernel")
            if read(theorem).rule == "counterexample":
                raise KernelError(f"{theorem.name} is a counterexample, not a fact to use")
        return [implies(read(t).given, read(t).goal) for t in theorems]

    def _known(self, formulas: Iterable[Term], besides: z3.FuncDeclRef | None = None) -> None:
        for name, symbol in summary(formulas).symbols:
            expected = besides is not None and symbol.eq(besides)
            if not expected and not self._is_declared(name, symbol):
                raise KernelError(f"{name} is not declared in this kernel")

    def _said(self, formulas: Sequence[Term], besides: z3.FuncDeclRef | None = None) -> None:
        """Known symbols; in a definition, a hypothesis or an axiom they are no longer arbitrary."""
        self._known(formulas, besides)
        self._arbitrary.difference_update(name for name, _ in summary(formulas).symbols)

    def _is_declared(self, name: str, symbol: z3.FuncDeclRef) -> bool:
        declared = self._symbols.get(name)
        return declared is not None and declared.ast.value == symbol.ast.value

    def _declared(self, given: Any) -> Any:
        """A function or a variable of this kernel, in a wrapper of its own."""
        symbol = own(given, (z3.FuncDeclRef, z3.ExprRef))
        if z3.is_expr(symbol):
            return self._parameters([symbol])[0]
        if not self._is_declared(symbol.name(), symbol):
            raise KernelError(f"{symbol} is not declared in this kernel")
        return symbol

    def _parameters(self, given: Sequence[Term], sort: z3.SortRef | None = None) -> tuple[Term, ...]:
        """Distinct variables of this kernel, all of this sort if one is given."""
        variables = tuple(map(own, given))
        for variable in variables:
            name = name_of(variable)
            if name not in self._variables or not variable.eq(self._symbols[name]()):
                raise KernelError(f"{variable} is not a variable")
            if sort is not None and variable.sort() != sort:
                raise KernelError(f"{variable} is not of sort {sort}")
        if len({name_of(v) for v in variables}) != len(variables):
            raise KernelError("a variable is named twice")
        return variables

    def _closed(self, body: Term, params: Sequence[Term]) -> None:
        stray = (self._variables & summary([body]).constants) - {name_of(p) for p in params}
        if stray:
            raise KernelError(f"a definition leaves {', '.join(sorted(stray))} open")


def _decide(text: str) -> tuple[z3.CheckSatResult, tuple[Any, int]]:
    return smtlib.decided(text, RESOURCE_LIMIT, SEED)
