"""What is said of arguments that are the same throughout, and so are not written each time.

A theorem about a run is about every run. So its functions have one more argument, the run, and so have
all definitions and hypotheses that are made of them; written they are as if there was one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import constants, name_of, substitute
from proofs.trusted.terms import Function, IntSort, Sort, Symbol, Term, term_of


@dataclass(frozen=True)
class Applied:
    """A function whose first arguments are not written."""

    symbol: Symbol
    unwritten: tuple[Term, ...]

    def __call__(self, *arguments: Any) -> Any:
        return self.symbol(*self.unwritten, *arguments)

    @property
    def gives(self) -> Sort:
        return self.symbol.gives

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """Those of the arguments that are not written."""
        return tuple(each.sort for each in self.unwritten)


@dataclass(frozen=True)
class Closing:
    """A kernel whose definitions and hypotheses are of all values of `unwritten` variables.

    at: terms that stand for some of them in all that is supposed and proved. Definitions are of all
    values: where there are such terms there are none.
    """

    kernel: Kernel
    unwritten: list[Term] = field(default_factory=list)
    at: tuple[tuple[Term, Term], ...] = ()

    @property
    def as_kernel(self) -> Kernel:
        return cast("Kernel", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def where(self, *at: tuple[Term, Term]) -> Closing:
        """The same, with terms for some variables, besides those that have one."""
        return Closing(self.kernel, self.unwritten, (*self.at, *at))

    # ------------------------------------------------------------------ symbols
    def unwritten_constant(self, name: str, sort: Sort) -> Any:
        """A variable that is not written where it is an argument."""
        made = self.kernel.constant(name, sort)
        self.unwritten.append(made)
        return made

    def function_of(self, unwritten: Sequence[Term], name: str, *sorts: Sort) -> Any:
        """A function of variables that are not written, and of others."""
        takes = (each.sort for each in unwritten)
        return self._applied(self.kernel.function(name, *takes, *sorts), unwritten)

    def _defined(self, written: Sequence[Term], *said: Term) -> list[Term]:
        """The unwritten variables that a definition is about."""
        if self.at:
            names = ", ".join(name_of(part) for part, _ in self.at)
            raise ValueError(f"a definition is of all values, and {names} has one here")
        return self._free(written, *said)

    def _free(self, written: Sequence[Term], *said: Term) -> list[Term]:
        """The unwritten variables that something is about."""
        names = constants(*said) - {name_of(term_of(each)) for each in written}
        return [each for each in self.unwritten if name_of(each) in names]

    def _applied(self, symbol: Any, unwritten: Sequence[Term]) -> Any:
        return Applied(symbol, tuple(unwritten)) if unwritten else symbol

    def define(self, name: str, params: Sequence[Term], body: Any) -> tuple[Any, Theorem]:
        free = self._defined(params, term_of(body))
        made, is_ = self.kernel.define(name, [*free, *params], body)
        return self._applied(made, free), is_

    def recursion(
        self,
        name: str,
        params: Sequence[Term],
        index: Term,
        base: Any,
        step: Callable[[Callable[..., Any]], Any],
    ) -> tuple[Any, Theorem, Theorem]:
        base = term_of(base)
        before = Function(name, *(p.sort for p in params), IntSort(), base.sort)
        body = term_of(step(lambda *written: before(*written, index)))
        free = self._defined([*params, index], base, body)
        made, start, then = self.kernel.recursion(
            name,
            [*free, *params],
            index,
            base,
            lambda previous: step(lambda *written: previous(*free, *written)),
        )
        return self._applied(made, free), start, then

    def choose(
        self, name: str, params: Sequence[Term], witness: Term, body: Any
    ) -> tuple[Any, Any, Theorem, Theorem]:
        free = self._defined([*params, witness], term_of(body))
        holds, found, shown, back = self.kernel.choose(name, [*free, *params], witness, body)
        return self._applied(holds, free), self._applied(found, free), shown, back

    def suppose(self, name: str, variables: Sequence[Term], formula: Any) -> Theorem:
        formula = self._said(formula)
        free = self._free(variables, term_of(formula))
        return self.kernel.suppose(name, [*free, *variables], formula)

    # -------------------------------------------------------------------- rules
    def _said(self, formula: Any) -> Any:
        return substitute(term_of(formula), *self.at) if self.at else formula

    def _known(self, theorems: Iterable[Theorem]) -> list[Theorem]:
        if not self.at:
            return list(theorems)
        return [self._instance(theorem) for theorem in theorems]

    def _instance(self, theorem: Theorem) -> Theorem:
        about = constants(theorem.statement)
        at = {name_of(part): term for part, term in self.at if name_of(part) in about}
        return theorem.at(**at) if at else theorem

    def prove(
        self, name: str, goal: Any, given: Iterable[Bool] = (), uses: Iterable[Theorem] = ()
    ) -> Theorem:
        said = [self._said(each) for each in given]
        return self.kernel.prove(name, self._said(goal), said, self._known(uses))

    def induct(
        self,
        name: str,
        index: Term,
        goal: Any,
        given: Iterable[Bool] = (),
        base: Iterable[Theorem] = (),
        step: Iterable[Theorem] = (),
        at: Sequence[Mapping[str, Any]] = ({},),
    ) -> Theorem:
        return self.kernel.induct(
            name,
            index,
            self._said(goal),
            [self._said(each) for each in given],
            self._known(base),
            self._known(step),
            [{key: self._said(term) for key, term in each.items()} for each in at],
        )
