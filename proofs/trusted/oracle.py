"""The solver: z3 reads a text in a context of its own, and answers. Trusted, with the text."""

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
SEED = 0


class Answer(NamedTuple):
    """sat, unsat or unknown; of sat, values of constants by name; the solver's count of its work."""

    said: str
    values: dict[str, Term]
    work: int


_answers: dict[tuple[str, int, int, bool], Answer] = {}  # to texts without a model


def ask(
    formulas: Sequence[Bool | ForAll],
    limit: int = RESOURCE_LIMIT,
    seed: int = SEED,
    simple: bool = False,
) -> Answer:
    """Whether formulas can hold together. What is known to have no model is not asked again.

    `simple`: by the solver that does not choose a strategy first; sooner where little is to be done.
    """
    question = Question(formulas)
    key = (question.text, limit, seed, simple)
    if key in _answers:
        return _answers[key]
    solver = _solver(question.text, limit, seed, simple)
    said = str(solver.check())
    work = int(solver.statistics().get_key_value("rlimit count"))
    if said != "sat":
        return _answers.setdefault(key, Answer(said, {}, work))
    model = solver.model()
    found = {constant.name(): model[constant] for constant in model if not constant.arity()}
    known = {name: symbol for name, symbol in question.symbols.items() if name in found}
    values = {symbol.name: _value(found[name], symbol.gives) for name, symbol in known.items()}
    return Answer(said, {name: value for name, value in values.items() if value is not None}, work)


def reading(text: str) -> str:
    """The answer to a text as readers have it."""
    return str(_solver(text, RESOURCE_LIMIT, SEED, False).check())


def _solver(text: str, limit: int, seed: int, simple: bool) -> Any:
    """A solver in a context of its own that has read a text."""
    solver = (z3.SimpleSolver if simple else z3.Solver)(ctx=z3.Context())
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
        return values[int(found.decl().name()[1:].partition("S")[0])]
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
