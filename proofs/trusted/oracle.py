"""The solver: z3 reads a text, and answers. Trusted, with the text.

Texts of one claim are read by new solvers in the same context, which takes as long to make as ten
answers. A sort's name says how many values it has, so that no text says another thing of it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import z3

from proofs.trusted.smtlib import ForAll, Question
from proofs.trusted.terms import Bool, BoolVal, EnumSort, FPBits, IntVal, RealVal, Sort, Term

VERSION = z3.get_version_string()
RESOURCE_LIMIT = 20_000_000  # the solver's own deterministic count, not seconds
SOON = RESOURCE_LIMIT // 100  # for the solver that does not choose a strategy first
SEED = 0


class Answer(NamedTuple):
    """sat, unsat or unknown; of sat, values of constants by name; the solver's count of its work."""

    said: str
    values: dict[str, Term]
    work: int


_answers: dict[tuple[str, int, int, bool, bool], Answer] = {}  # without values


def ask(
    formulas: Sequence[Bool | ForAll],
    limit: int = RESOURCE_LIMIT,
    seed: int = SEED,
    simple: bool = False,
    shared: bool = False,
) -> Answer:
    """Whether formulas can hold together. What is answered without values is not asked again.

    `simple`: by the solver that does not choose a strategy first; sooner where little is to be done.
    `shared`: in the context that other texts of the claim were read in, not in one of its own; then no
    values are said.
    """
    question = Question(formulas)
    key = (question.text, limit, seed, simple, shared)
    if key in _answers:
        return _answers[key]
    context = _shared.context() if shared else z3.Context()
    solver = _solver(question.text, limit, seed, simple, context)
    said = str(solver.check())
    done = int(solver.statistics().get_key_value("rlimit count"))
    work = _shared.counted(done) if shared else done
    if said != "sat" or shared:
        return _answers.setdefault(key, Answer(said, {}, work))
    model = solver.model()
    found = {constant.name(): model[constant] for constant in model if not constant.arity()}
    known = {name: symbol for name, symbol in question.symbols.items() if name in found}
    values = {symbol.name: _value(found[name], symbol.gives) for name, symbol in known.items()}
    return Answer(said, {name: value for name, value in values.items() if value is not None}, work)


def settle(formulas: Sequence[Bool]) -> Answer:
    """Whether formulas that should have no model have none: by the simple solver, if that is soon."""
    soon = ask(formulas, SOON, SEED, simple=True, shared=True)
    return soon if soon.said != "unknown" else ask(formulas, RESOURCE_LIMIT, SEED, shared=True)


def reading(text: str) -> str:
    """The answer to a text as readers have it."""
    return str(_solver(text, RESOURCE_LIMIT, SEED, False, z3.Context()).check())


def start() -> None:
    """A claim starts: what was asked before is forgotten, so that nothing depends on it."""
    _answers.clear()
    _shared.texts = 0


class _Shared:
    """The context of a claim's texts, a new one for every so many."""

    most = 100

    def __init__(self) -> None:
        self.texts = self.work = 0

    def context(self) -> Any:
        if self.texts % self.most == 0:
            self.made, self.work = z3.Context(), 0
        self.texts += 1
        return self.made

    def counted(self, done: int) -> int:
        """What the last answer took, of all that the context counted."""
        work, self.work = done - self.work, done
        return work


_shared = _Shared()


def _solver(text: str, limit: int, seed: int, simple: bool, context: Any) -> Any:
    """A new solver that has read a text."""
    solver = (z3.SimpleSolver if simple else z3.Solver)(ctx=context)
    # an interrupt is the caller's: it must not look like an answer
    solver.set(rlimit=limit, random_seed=seed, ctrl_c=False)
    with _uninterrupted():
        solver.from_string(text)
    return solver


def _value(found: Any, sort: Sort) -> Term | None:
    """A value of a model as a term; nothing if it is of no sort that has literals."""
    if sort.kind == "Bool":
        return BoolVal(z3.is_true(found))
    if sort.kind in ("Int", "Real"):
        if not (z3.is_int_value(found) or z3.is_rational_value(found)):
            return None  # a root
        return IntVal(found.as_long()) if sort.kind == "Int" else RealVal(found.as_fraction())
    if sort.kind == "Values":
        _, values = EnumSort(sort.name, sort.parts)
        return values[int(found.decl().name()[1:].partition("E")[0])]
    if sort.kind == "Float64" and not found.isNaN():
        sign, exponent = int(found.sign()), found.exponent_as_long(biased=True)
        return FPBits(sign << 63 | exponent << 52 | found.significand_as_long())
    return None


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interrupt waits: z3's reader has a handler of its own, that may wait for itself forever."""
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
