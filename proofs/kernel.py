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

Each obligation is exported to standalone SMT-LIB text first, and the solver decides that text in a
context of its own, bounded by a resource count with a fixed seed. `unknown` is a failure.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import z3

from proofs.smtlib import applications, resource_count, standalone_text, summary
from spec.assumptions import ASSUMPTIONS, Assumption

RESOURCE_LIMIT = 20_000_000  # the solver's own deterministic count, not seconds
SEED = 0
NAME = re.compile(r"[a-z][a-zA-Z0-9_]*\Z")

Term: TypeAlias = Any  # z3.ExprRef
Bool: TypeAlias = Any  # z3.BoolRef


class KernelError(Exception):
    """A step that is not a proof: the solver disagrees, or a rule is misused."""


@dataclass(frozen=True)
class Obligation:
    """One question put to the solver: do `facts` imply `goal`?"""

    name: str
    rule: str
    text: str
    facts: tuple[Bool, ...]
    goal: Bool
    expected: str
    seconds: float
    resources: int


@dataclass(frozen=True)
class _Hypothesis:
    name: str
    fixed: frozenset[str]  # constants it constrains for the whole theorem: never instantiated
    axiom: str | None = None


@dataclass(frozen=True)
class _Record:
    kernel: Kernel
    name: str
    rule: str
    given: tuple[Bool, ...]
    goal: Bool
    parts: tuple[Theorem, ...]
    obligations: tuple[Obligation, ...]
    under: frozenset[_Hypothesis]
    counterexample: Mapping[str, str] | None = None


_made: Any = object.__new__  # past Theorem.__new__, which refuses
_records: dict[int, tuple[Theorem, _Record]] = {}


def _read(theorem: object) -> _Record:
    known = _records.get(id(theorem))
    if known is None or known[0] is not theorem or type(theorem) is not Theorem:
        raise KernelError("not a theorem: the kernel did not make it")
    return known[1]


class Theorem:
    """A proved statement. Only a `Kernel` makes one; what it says is kept by the kernel."""

    __slots__ = ()

    def __new__(cls, *_: object, **__: object) -> NoReturn:
        raise KernelError("theorems are made by the kernel's rules only")

    def __init_subclass__(cls, **_: object) -> NoReturn:
        raise KernelError("a theorem has no subclasses")

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise KernelError("a theorem is not data: it can be neither copied nor pickled")

    @property
    def name(self) -> str:
        return _read(self).name

    @property
    def rule(self) -> str:
        return _read(self).rule

    @property
    def given(self) -> tuple[Bool, ...]:
        return _read(self).given

    @property
    def goal(self) -> Bool:
        return _read(self).goal

    @property
    def statement(self) -> Bool:
        return _implies(_read(self).given, _read(self).goal)

    @property
    def parts(self) -> tuple[Theorem, ...]:
        """The theorems it was made from."""
        return _read(self).parts

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """Its own obligations, without those of its parts."""
        return _read(self).obligations

    @property
    def counterexample(self) -> Mapping[str, str] | None:
        return _read(self).counterexample

    @property
    def hypotheses(self) -> frozenset[str]:
        return frozenset(h.name for h in _read(self).under if h.axiom is None)

    @property
    def axioms(self) -> frozenset[str]:
        return frozenset(h.axiom for h in _read(self).under if h.axiom is not None)

    def at(self, **terms: Any) -> Theorem:
        """The instance with `terms` in place of the variables of those names."""
        return _read(self).kernel._instance(self, terms)

    def __repr__(self) -> str:
        return f"<theorem {self.name}>"


@dataclass(eq=False)
class Kernel:
    """One namespace of symbols and the theorems about them; `claim` names it in exports."""

    claim: str
    theorems: list[Theorem] = field(default_factory=list)
    _symbols: dict[str, z3.FuncDeclRef] = field(default_factory=dict)
    _variables: set[str] = field(default_factory=set)
    _names: set[str] = field(default_factory=set)

    def part(self, name: str) -> Kernel:
        """A fresh namespace for one part of the claim; its theorems are listed with the claim's."""
        made = Kernel(f"{self.claim}/{name}")
        made.theorems = self.theorems
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
        made = [self.constant(name, z3.IntSort()) for name in names.split()]
        return made[0] if len(made) == 1 else made

    def reals(self, names: str) -> Any:
        made = [self.constant(name, z3.RealSort()) for name in names.split()]
        return made[0] if len(made) == 1 else made

    def function(self, name: str, *sorts: z3.SortRef) -> z3.FuncDeclRef:
        """A symbol for any function; the last sort is its range."""
        return self._declare(name, sorts[:-1], sorts[-1])

    def _declare(self, name: str, domain: Sequence[z3.SortRef], range_: z3.SortRef) -> z3.FuncDeclRef:
        if not NAME.match(name):
            raise KernelError(f"{name!r} is not a plain name")
        if name in self._symbols:
            raise KernelError(f"{name} is declared already")
        self._symbols[name] = z3.Function(name, *domain, range_)
        return self._symbols[name]

    # -------------------------------------------------------------- definitions
    def define(self, name: str, params: Sequence[Term], body: Term) -> tuple[Any, Theorem]:
        """A new function and its equation name(params) = body."""
        self._closed(body, params)
        self._known([body])
        f = self._declare(name, [p.sort() for p in params], body.sort())
        return f, self._issue(name, "definition", (), f(*params) == body)

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
        self._closed(base, params)
        self._known([base])
        f = self._declare(name, [*(p.sort() for p in params), z3.IntSort()], base.sort())
        body = step(lambda *args: f(*args, index))
        self._closed(body, [*params, index])
        self._known([body])
        for use in applications(body, f):
            if not use.arg(use.num_args() - 1).eq(index):
                raise KernelError(f"{name}: the step may use the value before it only")
        axioms = _assumed("induction")
        start = self._issue(f"{name}_start", "definition", (), f(*params, 0) == base, under=axioms)
        then = self._issue(
            f"{name}_next", "definition", (index >= 0,), f(*params, index + 1) == body, under=axioms
        )
        return f, start, then

    def choose(
        self, name: str, params: Sequence[Term], witness: Term, body: Bool
    ) -> tuple[Any, Any, Theorem, Theorem]:
        """A predicate name(params) for "some witness makes body true", and a function that finds one.

        Two theorems: a witness shows it; and where it holds, the found witness serves.
        """
        self._closed(body, [*params, witness])
        self._known([body])
        sorts = [p.sort() for p in params]
        holds = self._declare(name, sorts, z3.BoolSort())
        found = self._declare(f"{name}_witness", sorts, witness.sort())
        shown = self._issue(f"{name}_shown", "definition", (body,), holds(*params))
        serves = z3.substitute(body, (witness, found(*params)))
        return (
            holds,
            found,
            shown,
            self._issue(f"{name}_found", "definition", (holds(*params),), serves),
        )

    def suppose(self, name: str, variables: Sequence[Term], formula: Bool) -> Theorem:
        """A hypothesis, for all values of `variables`; other constants in it stay as they are."""
        return self._assume(name, variables, formula, None)

    def axiom(
        self, name: str, assumption: Assumption, variables: Sequence[Term], *symbols: Any
    ) -> Theorem:
        """An assumption of spec/assumptions.py about these symbols, for all values of `variables`."""
        if ASSUMPTIONS.get(assumption.name) is not assumption or assumption.formula is None:
            raise KernelError(f"{assumption.name} is not an assumption of spec/assumptions.py")
        return self._assume(name, variables, assumption.formula(*symbols), assumption.name)

    def _assume(
        self, name: str, variables: Sequence[Term], formula: Bool, axiom: str | None
    ) -> Theorem:
        self._known([formula])
        bound = {_name(v) for v in variables}
        fixed = (self._variables & summary([formula]).constants) - bound
        stray = bound - self._variables
        if stray:
            raise KernelError(f"{name}: {', '.join(sorted(stray))} is not a variable")
        under = frozenset([_Hypothesis(name, frozenset(fixed), axiom)])
        return self._issue(name, "axiom" if axiom else "hypothesis", (), formula, under=under)

    # -------------------------------------------------------------------- rules
    def prove(
        self,
        name: str,
        goal: Bool,
        given: Iterable[Bool] = (),
        uses: Iterable[Theorem] = (),
    ) -> Theorem:
        """`given` implies `goal`, by the solver, from the theorems in `uses`."""
        given, uses = tuple(given), tuple(uses)
        asked = self._ask(name, "smt", [u.statement for u in self._ours(uses)], given, goal)
        under = _under(uses) | _arithmetic([asked])
        return self._issue(name, "smt", given, goal, uses, (asked,), under)

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
        given, base, step = tuple(given), tuple(base), tuple(step)
        under = _under([*self._ours(base), *self._ours(step)])
        claim = _implies(given, goal)
        self._free(index, under)
        hypothesis = []
        for terms in at:
            if _name(index) in terms:
                raise KernelError(f"{name}: the induction hypothesis is about {index} alone")
            hypothesis.append(self._substituted(claim, terms, under))
        zero, following = ((index, z3.IntVal(0)),), ((index, index + 1),)
        asked = (
            self._ask(
                f"{name}_base",
                "induction base",
                [u.statement for u in base],
                [z3.substitute(g, *zero) for g in given],
                z3.substitute(goal, *zero),
            ),
            self._ask(
                f"{name}_step",
                "induction step",
                [u.statement for u in step],
                [index >= 0, *hypothesis, *(z3.substitute(g, *following) for g in given)],
                z3.substitute(goal, *following),
            ),
        )
        return self._issue(
            name,
            "induction",
            (index >= 0, *given),
            goal,
            (*base, *step),
            asked,
            under | _assumed("induction") | _arithmetic(asked),
        )

    def extend(self, name: str, pointwise: Theorem, index: Term) -> Theorem:
        """From a[index] = b[index], for an arbitrary index, to a = b."""
        record = _read(pointwise)
        self._ours([pointwise])
        self._free(index, record.under)
        goal = record.goal
        sides = goal.children() if z3.is_eq(goal) else []
        if len(sides) != 2 or not all(z3.is_select(s) and s.arg(1).eq(index) for s in sides):
            raise KernelError(f"{name}: not an equation between two arrays at {index}")
        left, right = (s.arg(0) for s in sides)
        if _name(index) in summary([left, right, *record.given]).constants:
            raise KernelError(f"{name}: {index} is not arbitrary")
        return self._issue(
            name, "extensionality", record.given, left == right, (pointwise,), (), record.under
        )

    def refute(
        self,
        name: str,
        claim: Bool,
        unknowns: Sequence[Term],
        replay: Callable[..., bool],
        given: Iterable[Bool] = (),
        read: Callable[[Term], Any] | None = None,
    ) -> Theorem:
        """`given` does not imply `claim`: a counterexample, found by the solver.

        It counts only if its explicit values make the formula false by substitution, and if
        replay(**values), the claim evaluated outside the solver, is False too.
        """
        given = tuple(given)
        formula = _implies(given, claim)
        self._known([formula])
        start = time.perf_counter()
        text = standalone_text([*given, z3.Not(claim)])
        answer, solver = _decide(text)
        if answer != z3.sat:
            raise KernelError(f"{self.claim}: {name}: no counterexample: the solver says {answer}")
        model = solver.model()
        values = {str(d): model[d].translate(z3.main_ctx()) for d in model.decls() if d.arity() == 0}
        pairs = [(u, values.get(str(u), _default(u))) for u in unknowns]
        if not z3.is_false(z3.simplify(z3.substitute(formula, *pairs))):
            raise KernelError(f"{self.claim}: {name}: its values do not refute it")
        exact = {str(u): (read or _exact)(v) for u, v in pairs}
        if replay(**exact) is not False:
            raise KernelError(f"{self.claim}: {name}: outside the solver the claim holds there")
        asked = Obligation(
            name,
            "counterexample",
            text,
            given,
            claim,
            "sat",
            time.perf_counter() - start,
            resource_count(solver),
        )
        shown = {key: str(value) for key, value in exact.items()}
        return self._issue(
            name, "counterexample", (), z3.Not(formula), obligations=(asked,), counterexample=shown
        )

    # ------------------------------------------------------------------ innards
    def _ask(
        self, name: str, rule: str, facts: Sequence[Bool], given: Sequence[Bool], goal: Bool
    ) -> Obligation:
        everything = (*facts, *given)
        self._known([*everything, goal])
        start = time.perf_counter()
        text = standalone_text([*everything, z3.Not(goal)])
        answer, solver = _decide(text)
        if answer != z3.unsat:
            raise KernelError(f"{self.claim}: {name}: not proved: the solver says {answer}")
        seconds = time.perf_counter() - start
        return Obligation(name, rule, text, everything, goal, "unsat", seconds, resource_count(solver))

    def _issue(
        self,
        name: str,
        rule: str,
        given: tuple[Bool, ...],
        goal: Bool,
        parts: tuple[Theorem, ...] = (),
        obligations: tuple[Obligation, ...] = (),
        under: frozenset[_Hypothesis] = frozenset(),
        counterexample: Mapping[str, str] | None = None,
    ) -> Theorem:
        if rule != "instance":
            if name in self._names:
                raise KernelError(f"{self.claim}: a theorem is called {name} already")
            self._names.add(name)
        theorem: Theorem = _made(Theorem)
        record = _Record(self, name, rule, given, goal, parts, obligations, under, counterexample)
        _records[id(theorem)] = (theorem, record)
        if rule != "instance":
            self.theorems.append(theorem)
        return theorem

    def _instance(self, theorem: Theorem, terms: Mapping[str, Any]) -> Theorem:
        record = _read(theorem)
        given = tuple(self._substituted(g, terms, record.under) for g in record.given)
        goal = self._substituted(record.goal, terms, record.under)
        return self._issue(record.name, "instance", given, goal, (theorem,), under=record.under)

    def _substituted(
        self, formula: Bool, terms: Mapping[str, Any], under: frozenset[_Hypothesis]
    ) -> Bool:
        pairs = []
        for name, term in terms.items():
            if name not in self._variables:
                raise KernelError(f"{name} is not a variable")
            variable = self._symbols[name]()
            self._free(variable, under)
            value = z3.IntVal(term) if isinstance(term, int) else term
            if value.sort() != variable.sort():
                raise KernelError(f"{name} is of sort {variable.sort()}, not {value.sort()}")
            pairs.append((variable, value))
        return z3.substitute(formula, *pairs)

    def _free(self, variable: Term, under: frozenset[_Hypothesis]) -> None:
        if _name(variable) not in self._variables:
            raise KernelError(f"{variable} is not a variable")
        for hypothesis in under:
            if _name(variable) in hypothesis.fixed:
                raise KernelError(f"{variable} is fixed by the hypothesis {hypothesis.name}")

    def _ours(self, theorems: Sequence[Theorem]) -> Sequence[Theorem]:
        for theorem in theorems:
            if _read(theorem).kernel is not self:
                raise KernelError(f"{theorem.name} belongs to another claim's kernel")
            if _read(theorem).rule == "counterexample":
                raise KernelError(f"{theorem.name} is a counterexample, not a fact to use")
        return theorems

    def _known(self, formulas: Iterable[Term]) -> None:
        for name, symbol in summary(formulas).symbols:
            declared = self._symbols.get(name)
            if declared is None or not declared.eq(symbol):
                raise KernelError(f"{symbol} is not declared in this kernel")

    def _closed(self, body: Term, params: Sequence[Term]) -> None:
        for p in params:
            if _name(p) not in self._variables:
                raise KernelError(f"{p} is not a variable")
        stray = (self._variables & summary([body]).constants) - {_name(p) for p in params}
        if stray:
            raise KernelError(f"a definition leaves {', '.join(sorted(stray))} open")


def _decide(text: str) -> tuple[z3.CheckSatResult, z3.Solver]:
    solver = z3.Solver(ctx=z3.Context())
    solver.set("rlimit", RESOURCE_LIMIT)
    solver.set("random_seed", SEED)
    solver.from_string(text)
    return solver.check(), solver


def _implies(given: Sequence[Bool], goal: Bool) -> Bool:
    return z3.Implies(z3.And(*given), goal) if given else goal


def _name(constant: Term) -> str:
    """The name of a constant; a term that is none has no name."""
    return "" if constant.num_args() else str(constant.decl().name())


def _under(theorems: Iterable[Theorem]) -> frozenset[_Hypothesis]:
    return frozenset().union(*(_read(t).under for t in theorems))


def _assumed(name: str) -> frozenset[_Hypothesis]:
    return frozenset([_Hypothesis(name, frozenset(), name)])


def _arithmetic(asked: Iterable[Obligation]) -> frozenset[_Hypothesis]:
    real = any("R" in summary([*o.facts, o.goal]).features for o in asked)
    return _assumed("real-arithmetic") if real else frozenset()


def _default(unknown: Term) -> Term:
    return z3.IntVal(0) if unknown.sort() == z3.IntSort() else z3.RealVal(0)


def _exact(value: Term) -> Fraction:
    if z3.is_int_value(value) or z3.is_rational_value(value):
        return Fraction(str(value.as_fraction()) if z3.is_rational_value(value) else str(value))
    raise KernelError(f"{value} is not a rational number")
