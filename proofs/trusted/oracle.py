"""The solver: z3 reads a text, and answers. Trusted, with the text.

What is soon answered is read by one solver after the other texts of the claim, which it then forgets
(`push`, `pop`); what is not, by a new solver in a context of its own. What is answered is not asked
again; nor, where answers of an earlier run are recalled, what that one asked. A sort's name says how
many values it has, so that no text says another thing of it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

import z3

from proofs.trusted.smtlib import ForAll, Question
from proofs.trusted.terms import Bool, BoolVal, EnumSort, FPBits, IntVal, RealVal, Sort, Term

VERSION = z3.get_version_string()
RESOURCE_LIMIT = 20_000_000  # the solver's own deterministic count, not seconds
SOON = RESOURCE_LIMIT // 100  # for the solver that does not choose a strategy first
SEED = 0
ANSWERED = re.compile(r"((?:(?:sat|unsat|unknown)\n)+)\(:rlimit (\d+)\)\s*")


class Answer(NamedTuple):
    """sat, unsat or unknown; of sat, values of constants by name; the solver's count of its work."""

    said: str
    values: dict[str, Term]
    work: int


Answered = dict[str, tuple[str, int]]  # by the hash of what was asked: what was said, and the work
_answers: Answered = {}  # without values
_of_claim: Answered = {}  # those of use since a claim started


def ask(
    formulas: Sequence[Bool | ForAll],
    limit: int = RESOURCE_LIMIT,
    seed: int = SEED,
    simple: bool = False,
    values: bool = True,
) -> Answer:
    """Whether formulas can hold together. What is answered without values is not asked again.

    `simple`: by the solver that does not choose a strategy first, and with z3's older arithmetic: it
    sooner finds that much can hold together.
    `values`: of what can hold, with values.
    """
    question = Question(formulas)
    key = _key(question.text, limit, seed, simple)
    before = _known(key)
    if before and not (values and before.said == "sat"):
        return before
    solver = _solver(question.text, limit, seed, simple)
    said = str(solver.check())
    work = int(solver.statistics().get_key_value("rlimit count"))
    if said != "sat" or not values:
        return _answered(key, said, work)
    model = solver.model()
    found = {constant.name(): model[constant] for constant in model if not constant.arity()}
    known = {name: symbol for name, symbol in question.symbols.items() if name in found}
    made = {symbol.name: _value(found[name], symbol.gives) for name, symbol in known.items()}
    return Answer(said, {name: value for name, value in made.items() if value is not None}, work)


def glance(formulas: Sequence[Bool | ForAll], limit: int) -> Answer:
    """Whether formulas can hold together, if that is soon seen; without values."""
    return _session.answer(Question(formulas).text, limit)


def settle(formulas: Sequence[Bool]) -> Answer:
    """Whether formulas can hold together; without values, if that is soon seen."""
    soon = glance(formulas, SOON)
    return soon if soon.said != "unknown" else ask(formulas, RESOURCE_LIMIT, SEED, values=False)


def glance_without(formulas: Sequence[Bool], dropped: Sequence[Sequence[int]], limit: int) -> list[str]:
    """Whether formulas can hold together but for some, by number, if that is soon seen; of each."""
    if not dropped:
        return []
    said, _ = _of_several.answers(Question(formulas).without(dropped), limit)
    if len(said) != len(dropped):
        raise ValueError(f"{len(said)} answers to {len(dropped)} questions")
    return said


def reading(text: str) -> str:
    """The answer to a text as readers have it."""
    return str(_solver(text, RESOURCE_LIMIT, SEED, False).check())


def start() -> None:
    """A claim starts: it is read by solvers that have read nothing."""
    _of_claim.clear()
    _session.start()
    _of_several.start()


def answered() -> Answered:
    """The answers, without values, that were of use since a claim started."""
    return dict(_of_claim)


def recall(answers: Mapping[str, tuple[str, int]]) -> None:
    """Answers of earlier runs: what they are to is not asked again in this process."""
    _answers.update(answers)


def forget() -> None:
    """All is asked again."""
    _answers.clear()


def _key(text: str, *options: object) -> str:
    return sha256(f"{VERSION} {options}\n{text}".encode()).hexdigest()


def _known(key: str) -> Answer | None:
    return _answered(key, *_answers[key]) if key in _answers else None


def _answered(key: str, said: str, work: int) -> Answer:
    _answers[key] = _of_claim[key] = said, work
    return Answer(said, {}, work)


class _Session:
    """One solver for the texts of a claim, a new one for every so many. It is told to forget each."""

    most = 100

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._context: Any = None
        self._texts = self._work = 0

    def answer(self, text: str, limit: int) -> Answer:
        """The answer to a text within a limit. Raises z3.Z3Exception or ValueError if there is none."""
        key = _key(text, limit)
        known = _known(key)
        if known:
            return known
        (said,), work = self.answers(text, limit)
        return _answered(key, said, work)

    def answers(self, text: str, limit: int) -> tuple[list[str], int]:
        """Those to a text that asks several times, each within a limit; and the work for all."""
        if self._context is None or self._texts == self.most:
            self._context, self._texts, self._work = z3.Context(), 0, 0
        self._texts += 1
        before = self._work
        said, self._work = self._read(
            f"(push)(set-option :rlimit {limit})\n{text}(get-info :rlimit)(pop)"
        )
        return said, self._work - before

    def _read(self, commands: str) -> tuple[list[str], int]:
        """What is said to commands, and how much work the solver has counted."""
        context, self._context = self._context, None  # a solver that complains is not used again
        with _uninterrupted():
            try:
                said = z3.Z3_eval_smtlib2_string(context.ref(), commands)
            finally:
                z3.set_param("rlimit", 0)  # a text sets it for all solvers of the process
        answered = ANSWERED.fullmatch(said)
        if answered is None:
            raise ValueError(f"no answer: {said!r}")
        self._context = context
        return answered[1].split(), int(answered[2])


_session, _of_several = _Session(), _Session()  # z3 5.4.0 may crash where one is for both


def _solver(text: str, limit: int, seed: int, simple: bool) -> Any:
    """A new solver that has read a text."""
    solver = (z3.SimpleSolver if simple else z3.Solver)(ctx=z3.Context())
    # an interrupt is the caller's: it must not look like an answer
    solver.set(rlimit=limit, random_seed=seed, ctrl_c=False)
    if simple:
        solver.set("arith.solver", 2)
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
