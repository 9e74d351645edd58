"""Theorems as values: what a kernel made stays what it is. Trusted, with kernel.py and smtlib.py.

A `Theorem` holds nothing. What it says is in a record that only `issue` adds, and `read` finds by
the identity of the theorem: a copy, a subclass or a look-alike says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from proofs.trusted.parts import speak_of_reals
from proofs.trusted.terms import And, Bool, Implies, KernelError


@dataclass(frozen=True)
class Obligation:
    """One question put to the solver: do `facts` imply `goal`?"""

    name: str
    rule: str
    facts: tuple[Bool, ...]
    goal: Bool
    expected: str
    seconds: float
    resources: int


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis or an axiom that a theorem rests on."""

    name: str
    axiom: str | None = None


class Step:
    """One use of a rule, and what it was given, by name; a certificate lists it."""

    def __init__(self, rule: str, **given: Any) -> None:
        self.rule, self.given = rule, given


@dataclass(frozen=True)
class Record:
    """What a theorem says, and how it was made."""

    kernel: Any
    name: str
    rule: str
    given: tuple[Bool, ...]
    goal: Bool
    parts: tuple[Theorem, ...]
    obligations: tuple[Obligation, ...]
    under: frozenset[Hypothesis]
    step: Step
    counterexample: Mapping[str, str] | None = None

    @cached_property
    def statement(self) -> Bool:
        """That `given` together imply `goal`: made once, as it is used often."""
        return implies(self.given, self.goal)


class SetOnce:
    """What an attribute is, it stays: a kernel is not started over while its theorems last."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            raise KernelError(f"{name} is set already")
        object.__setattr__(self, name, value)


_made: Any = object.__new__  # past Theorem.__new__, which refuses
_records: dict[int, tuple[Theorem, Record]] = {}


def issue(record: Record) -> Theorem:
    """A new theorem with this record. For the kernel alone."""
    if type(record.name) is not str:
        raise KernelError(f"{record.name!r} is not a plain string")
    theorem: Theorem = _made(Theorem)
    _records[id(theorem)] = (theorem, record)
    return theorem


def read(theorem: object) -> Record:
    """What a theorem says. Raises KernelError for anything else."""
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
        return read(self).name

    @property
    def rule(self) -> str:
        return read(self).rule

    @property
    def given(self) -> tuple[Bool, ...]:
        return read(self).given

    @property
    def goal(self) -> Bool:
        return read(self).goal

    @property
    def statement(self) -> Bool:
        return read(self).statement

    @property
    def parts(self) -> tuple[Theorem, ...]:
        """The theorems it was made from."""
        return read(self).parts

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """Its own obligations, without those of its parts."""
        return read(self).obligations

    @property
    def counterexample(self) -> Mapping[str, str] | None:
        return read(self).counterexample

    @property
    def hypotheses(self) -> frozenset[str]:
        return frozenset(h.name for h in read(self).under if h.axiom is None)

    @property
    def axioms(self) -> frozenset[str]:
        return frozenset(h.axiom for h in read(self).under if h.axiom is not None)

    def at(self, **terms: Any) -> Theorem:
        """The instance with `terms` in place of the variables of those names."""
        return read(self).kernel._instance(self, terms)

    def __repr__(self) -> str:
        return f"<theorem {self.name}>"


def implies(given: Sequence[Bool], goal: Bool) -> Bool:
    """The formula that `given` together imply `goal`."""
    return Implies(And(*given), goal) if given else goal


def hypotheses_of(theorems: Iterable[Theorem]) -> frozenset[Hypothesis]:
    """All that some theorems rest on."""
    return frozenset().union(*(read(t).under for t in theorems))


def assumed(name: str) -> frozenset[Hypothesis]:
    """The assumption of this name, as something to rest on."""
    return frozenset([Hypothesis(name, name)])


def needs_arithmetic(asked: Iterable[Obligation]) -> frozenset[Hypothesis]:
    """Real arithmetic, if any obligation is about real numbers."""
    real = any(speak_of_reals(*o.facts, o.goal) for o in asked)
    return assumed("real-arithmetic") if real else frozenset()
