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

Each obligation is written as standalone SMT-LIB text, and the solver decides that text alone, bounded
by a resource count with a fixed seed. `unknown` is a failure. No object of the solver is here: terms
are values of `terms`, and only a text goes to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofs.trusted.folding import exact
from proofs.trusted.oracle import ask, settle, start
from proofs.trusted.parts import below, constants, name_of, substitute, substituted
from proofs.trusted.terms import (
    FALSE,
    Bool,
    BoolSort,
    Function,
    IntSort,
    IntVal,
    KernelError,
    Not,
    RealSort,
    Sort,
    Symbol,
    Term,
    default,
    is_term,
    symbol_of,
    symbols,
    term_of,
)
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
    read,
)
from spec.assumptions import ASSUMPTIONS, Assumption

__all__ = ["Bool", "Kernel", "KernelError", "Obligation", "Term", "Theorem"]


@dataclass(eq=False)
class Kernel(SetOnce):
    """One namespace of symbols and the theorems about them; `claim` names it in exports."""

    claim: str
    theorems: list[Theorem] = field(default_factory=list, init=False)
    _symbols: dict[str, Symbol] = field(default_factory=dict, init=False)
    _variables: set[str] = field(default_factory=set, init=False)
    _arbitrary: set[str] = field(default_factory=set, init=False)  # functions nothing is said of
    _names: set[str] = field(default_factory=set, init=False)
    _spoken: set[int] = field(default_factory=set, init=False)  # formulas of its symbols, by identity

    def __init_subclass__(cls, **_: object) -> None:
        raise KernelError("a kernel has no subclasses")

    def __post_init__(self) -> None:
        if "/" not in self.claim:
            start()

    def part(self, name: str) -> Kernel:
        """A fresh namespace for one part of the claim; its theorems are listed with the claim's."""
        made = Kernel(f"{self.claim}/{name}")
        object.__setattr__(made, "theorems", self.theorems)
        return made

    # ------------------------------------------------------------------ symbols
    def constant(self, name: str, sort: Sort) -> Any:
        """A variable: theorems hold for all its values, and have instances."""
        made = self._declare(name, [], sort)()
        self._variables.add(name)
        return made

    def fixed(self, name: str, sort: Sort) -> Any:
        """A symbol for any one value, the same throughout: definitions may mention it."""
        return self._declare(name, [], sort)()

    def integers(self, names: str) -> Any:
        """Variables over the integers; one, or several separated by spaces."""
        return self._several(names, IntSort())

    def reals(self, names: str) -> Any:
        """Variables over the real numbers, likewise."""
        return self._several(names, RealSort())

    def _several(self, names: str, sort: Sort) -> Any:
        made = [self.constant(name, sort) for name in names.split()]
        return made[0] if len(made) == 1 else made

    def function(self, name: str, *sorts: Sort) -> Any:
        """A symbol for any function; the last sort is its range."""
        made = self._declare(name, sorts[:-1], sorts[-1])
        self._arbitrary.add(name)
        return made

    def _declare(self, name: str, domain: Sequence[Sort], range_: Sort) -> Symbol:
        made = Function(name, *domain, range_)
        if name in self._symbols:
            raise KernelError(f"{name} is declared already")
        self._symbols[name] = made
        return made

    # -------------------------------------------------------------- definitions
    def define(self, name: str, params: Sequence[Term], body: Term) -> tuple[Any, Theorem]:
        """A new function and its equation name(params) = body."""
        params, body = self._parameters(params), term_of(body)
        self._closed(body, params)
        self._said([body])
        f = self._declare(name, [p.sort for p in params], body.sort)
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
        params, base = self._parameters(params), term_of(base)
        (index,) = self._parameters([index], IntSort())
        self._closed(base, params)
        self._said([base])
        f = Function(name, *(p.sort for p in params), IntSort(), base.sort)
        # f is not declared yet: nothing the step defines on its way can mention it
        body = term_of(step(_before(f, index)))
        if body.sort != base.sort:
            raise KernelError(f"{name} is of sort {base.sort}, its step of sort {body.sort}")
        self._closed(body, (*params, index))
        self._said([body], f)
        for part in below([body]):
            if part.op == "apply" and part.of is f and part.args[-1] is not index:
                raise KernelError(f"{name}: the step may use the value before it only")
        f = self._declare(name, [*(p.sort for p in params), IntSort()], base.sort)
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
        params, body = self._parameters(params), term_of(body)
        (witness,) = self._parameters([witness])
        self._closed(body, (*params, witness))
        self._said([body])
        sorts = [p.sort for p in params]
        holds = self._declare(name, sorts, BoolSort())
        found = self._declare(f"{name}_witness", sorts, witness.sort)
        step = Step("choose", symbol=holds, found=found, params=params, witness=witness, body=body)
        shown = self._issue(f"{name}_shown", "definition", (body,), holds(*params), step)
        serves = substitute(body, (witness, found(*params)))
        back = self._issue(f"{name}_found", "definition", (holds(*params),), serves, step)
        return holds, found, shown, back

    def suppose(self, name: str, variables: Sequence[Term], formula: Bool) -> Theorem:
        """A hypothesis, for all values of `variables`, which are all that are in it."""
        variables = tuple(variables)
        step = Step("suppose", variables=variables, formula=term_of(formula))
        return self._assume(name, variables, formula, None, step)

    def axiom(self, name: str, assumption: Assumption, function: Symbol, *symbols: Any) -> Theorem:
        """An assumption of spec/assumptions.py about a function that nothing else is said of.

        `symbols` are declared functions and variables; it holds for all values of the variables.
        """
        if ASSUMPTIONS.get(assumption.name) is not assumption or assumption.formula is None:
            raise KernelError(f"{assumption.name} is not an assumption of spec/assumptions.py")
        function, *others = map(self._declared, (function, *symbols))
        functions = [s for s in others if not is_term(s)]
        said = is_term(function) or function.name not in self._arbitrary
        if said or function in functions:
            raise KernelError(f"{function} is not a function that nothing is said of")
        formula = assumption.formula(function, *others)
        if any(part.op in ("to_real", "ite") for part in below([term_of(formula)])):
            raise KernelError(f"{assumption.name} does not relate symbols of these sorts")
        variables = [s for s in others if is_term(s)]
        step = Step("axiom", axiom=assumption.name, symbols=(function, *others))
        return self._assume(name, variables, formula, assumption.name, step)

    def _assume(
        self, name: str, variables: Sequence[Term], formula: Bool, axiom: str | None, step: Step
    ) -> Theorem:
        variables, formula = self._parameters(variables), term_of(formula)
        self._closed(formula, variables)
        self._said([formula])
        under = frozenset([Hypothesis(name, axiom)])
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
        given, goal, uses = tuple(map(term_of, given)), term_of(goal), tuple(uses)
        asked, _ = self._ask(name, "smt", (*self._statements(uses), *given), goal)
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
        given, goal = tuple(map(term_of, given)), term_of(goal)
        base, step = tuple(base), tuple(step)
        facts = self._statements(base), self._statements(step)
        under = hypotheses_of([*base, *step])
        claim = implies(given, goal)
        (index,) = self._parameters([index], IntSort())
        hypothesis = []
        at = tuple(map(dict, at))
        for terms in at:
            if name_of(index) in terms:
                raise KernelError(f"{name}: the induction hypothesis is about {index} alone")
            hypothesis += self._substituted([claim], terms)
        *of_base, reached = substituted([*given, goal], (index, IntVal(0)))
        *after, next_ = substituted([*given, goal], (index, index + 1))
        of_base, after = [*facts[0], *of_base], [index >= 0, *hypothesis, *after]
        base_asked, _ = self._ask(f"{name}_base", "induction base", of_base, reached)
        step_asked, _ = self._ask(f"{name}_step", "induction step", [*facts[1], *after], next_)
        asked = base_asked, step_asked
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
        goal = below([record.goal])[-1]
        sides = goal.args if goal.op == "=" else ()
        if len(sides) != 2 or not all(s.op == "select" and s.args[1] is index for s in sides):
            raise KernelError(f"{name}: not an equation between two arrays at {index}")
        left, right = (s.args[0] for s in sides)
        if name_of(index) in constants(left, right, *record.given):
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
        at: Mapping[str, Term] | None = None,
    ) -> Theorem:
        """`given` does not imply `claim`: a counterexample, which is `at`, or found by the solver.

        It counts only if its explicit values make the formula false by substitution, and if
        replay(**values), the claim evaluated outside the solver, is False too.
        """
        given, claim = tuple(map(term_of, given)), term_of(claim)
        unknowns = self._parameters(unknowns)
        formula = implies(given, claim)
        if at is None:
            asked, model = self._ask(name, "counterexample", given, claim, "sat")
        else:
            self._known([*given, claim])
            asked, model = Obligation(name, "counterexample", given, claim, "sat", 0.0, 0), dict(at)
            if {*model} != {*map(name_of, unknowns)}:
                raise KernelError(f"{self.claim}: {name}: values are given of {', '.join(model)}")
        pairs = [(u, model.get(name_of(u), default(u.sort))) for u in unknowns]
        values = {name_of(u): exact(term_of(v)) for u, v in pairs}
        refuted = substitute(formula, *pairs)
        if refuted is not FALSE:
            raise KernelError(f"{self.claim}: {name}: its values do not refute it")
        if replay(**values) is not False:
            raise KernelError(f"{self.claim}: {name}: outside the solver the claim holds there")
        shown = {key: str(value) for key, value in values.items()}
        made = Step("refute", given=given, claim=claim, values=tuple(pairs))
        return self._issue(
            name, "counterexample", (), Not(refuted), made, obligations=(asked,), counterexample=shown
        )

    # ------------------------------------------------------------------ innards
    def _ask(
        self, name: str, rule: str, facts: Sequence[Bool], goal: Bool, expected: str = "unsat"
    ) -> tuple[Obligation, dict[str, Term]]:
        """Put one question to the solver; any other answer than the expected one is a failure."""
        self._known([*facts, goal])
        start = time.perf_counter()
        proof = expected == "unsat"
        found = (settle if proof else ask)([*facts, Not(goal)])
        if found.said != expected:
            what = "not proved" if proof else "no counterexample"
            raise KernelError(f"{self.claim}: {name}: {what}: the solver says {found.said}")
        seconds = time.perf_counter() - start
        return Obligation(name, rule, tuple(facts), goal, expected, seconds, found.work), found.values

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
        if not all(term_of(formula).sort == BoolSort() for formula in (*given, goal)):
            raise KernelError(f"{self.claim}: {name}: not a formula")
        record = Record(self, name, rule, given, goal, parts, obligations, under, step, counterexample)
        theorem = issue(record)
        if rule != "instance":
            self.theorems.append(theorem)
        return theorem

    def _instance(self, theorem: Theorem, terms: Mapping[str, Any]) -> Theorem:
        record, terms = read(theorem), dict(terms)
        if record.rule == "counterexample":
            raise KernelError(f"{record.name} is a counterexample, not a fact to use")
        *given, goal = self._substituted([*record.given, record.goal], terms)
        step, under = Step("instance", of=theorem, terms=terms), record.under
        return self._issue(record.name, "instance", tuple(given), goal, step, (theorem,), under=under)

    def _substituted(self, formulas: Sequence[Bool], terms: Mapping[str, Any]) -> list[Bool]:
        pairs = []
        for name, term in terms.items():
            if type(name) is not str or name not in self._variables:
                raise KernelError(f"{name} is not a variable")
            variable = self._symbols[name]()
            pairs.append((variable, IntVal(term) if type(term) is int else term_of(term)))
        return substituted(formulas, *pairs)

    def _statements(self, theorems: Sequence[Theorem]) -> list[Bool]:
        """What theorems of this kernel say."""
        records = [read(theorem) for theorem in theorems]
        for record in records:
            if record.kernel is not self:
                raise KernelError(f"{record.name} belongs to another claim's kernel")
            if record.rule == "counterexample":
                raise KernelError(f"{record.name} is a counterexample, not a fact to use")
        return [record.statement for record in records]

    def _known(self, formulas: Iterable[Term], besides: Symbol | None = None) -> None:
        new = [formula for formula in formulas if id(term_of(formula)) not in self._spoken]
        below(new)  # refuses what was changed
        for symbol in symbols(*new) - {besides}:
            if self._symbols.get(symbol.name) is not symbol:
                raise KernelError(f"{symbol} is not declared in this kernel")
        self._spoken.update([] if besides else map(id, new))

    def _said(self, formulas: Sequence[Term], besides: Symbol | None = None) -> None:
        """Known symbols; in a definition, a hypothesis or an axiom they are no longer arbitrary."""
        self._known(formulas, besides)
        self._arbitrary.difference_update(symbol.name for symbol in symbols(*formulas))

    def _declared(self, given: Any) -> Any:
        """A function or a variable of this kernel."""
        if is_term(given):
            return self._parameters([given])[0]
        if self._symbols.get(symbol_of(given).name) is not given:
            raise KernelError(f"{given} is not declared in this kernel")
        return given

    def _parameters(self, given: Sequence[Term], sort: Sort | None = None) -> tuple[Term, ...]:
        """Distinct variables of this kernel, all of this sort if one is given."""
        variables = tuple(map(term_of, given))
        for variable in variables:
            name = name_of(variable)
            if name not in self._variables or variable.of is not self._symbols[name]:
                raise KernelError(f"{variable} is not a variable")
            if sort is not None and variable.sort != sort:
                raise KernelError(f"{variable} is not of sort {sort}")
        if len({name_of(v) for v in variables}) != len(variables):
            raise KernelError("a variable is named twice")
        return variables

    def _closed(self, body: Term, params: Sequence[Term]) -> None:
        stray = (self._variables & constants(body)) - {name_of(p) for p in params}
        if stray:
            raise KernelError(f"variables are left open: {', '.join(sorted(stray))}")


def _before(f: Symbol, index: Term) -> Callable[..., Any]:
    """The value at index of the function of a recursion; its variables are shared with nothing."""
    return lambda *args: f(*args, index)
