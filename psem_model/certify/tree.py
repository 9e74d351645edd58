"""All that the kernel did for some claims, as the steps of a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofs.premises import made_from
from proofs.registry import Result
from proofs.trusted import theorem as theorems
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import Symbol, is_term
from proofs.trusted.theorem import Record, Step, read
from psem_check.reader import VERSION
from psem_check.terms import Terms
from psem_model.certify.questions import Lists
from psem_model.certify.translation import Translation


def tree(results: Sequence[Result]) -> dict[str, Any]:
    """A certificate, with nothing in place of proofs: symbols, terms, and for each claim its steps."""
    lists = Lists(Terms())
    claims = [_claim(result, lists) for result in results]
    return {
        "certificate": VERSION,
        "sorts": lists.sorts,
        "symbols": lists.symbols,
        "terms": lists.nodes,
        "claims": claims,
    }


def _claim(result: Result, lists: Lists) -> dict[str, Any]:
    everything = {id(t): t for t in (*result.listed, *made_from(result.listed))}
    parts: dict[int, Part] = {}
    for theorem in _in_order(everything):
        kernel = read(theorem).kernel
        if id(kernel) not in parts:
            parts[id(kernel)] = Part(kernel, lists)
        parts[id(kernel)].add(theorem)
    order = list(parts)
    returned = [(id(read(t).kernel), t) for t in result.theorems]
    return {
        "id": result.claim.id,
        "statement": result.claim.statement,
        "parts": [part.json() for part in parts.values()],
        "theorems": [[order.index(k), parts[k].numbers[id(t)]] for k, t in returned],
    }


def _in_order(chosen: dict[int, Theorem]) -> Iterable[Theorem]:
    """As the kernel made them."""
    return [theorem for key, (theorem, _) in theorems._records.items() if key in chosen]


@dataclass
class Part:
    """The steps of one kernel."""

    kernel: Kernel
    lists: Lists
    steps: list[dict[str, Any]] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)  # of theorems, by identity
    _at: dict[int, int] = field(default_factory=dict)  # of a step's first theorem
    _count: int = 0

    def __post_init__(self) -> None:
        self.translation = Translation(self.lists.terms, self.kernel)

    def add(self, theorem: Theorem) -> None:
        """The step that made a theorem, if it is not there yet."""
        record = read(theorem)
        step = record.step
        if id(step) not in self._at:
            self._at[id(step)] = self._count
            self._count += 2 if step.rule in ("recursion", "choose") else 1
            self.steps.append(self._step(record))
        second = record.name.endswith(("_next", "_found")) and step.rule in ("recursion", "choose")
        self.numbers[id(theorem)] = self._at[id(step)] + second

    def json(self) -> dict[str, Any]:
        symbols = self.translation.symbols.values()
        return {
            "name": self.kernel.claim,
            "symbols": [self.lists.symbol(s) for s in symbols],
            "variables": [self.lists.symbol(s) for s in self.translation.variables],
            "steps": self.steps,
        }

    def _step(self, record: Record) -> dict[str, Any]:
        rule, name = record.step.rule, record.name
        if rule in ("suppose", "axiom"):
            return {"rule": rule, "name": name, "formula": self._one(record.goal)}
        if rule in ("recursion", "choose"):
            name = str(record.step.given["symbol"].name)
        named = {} if rule == "instance" else {"name": name}
        return {"rule": rule, **named, **self._arguments(record.step)}

    def _arguments(self, step: Step) -> dict[str, Any]:
        if step.rule == "instance":
            values = self._values(step.given["terms"])
            return {"of": self._one(step.given["of"]), "values": values}
        if step.rule == "refute":
            pairs = [[self._one(v), self._one(t)] for v, t in step.given["values"]]
            claim = self._one(step.given["claim"])
            return {"given": self._one(step.given["given"]), "claim": claim, "values": pairs}
        found = {key: self._one(given) for key, given in step.given.items() if key != "at"}
        if step.rule == "induct":
            found["first"], found["then"] = found.pop("base"), found.pop("step")
            found["at"] = [self._values(terms) for terms in step.given["at"]]
            found["proof"] = [None, None]
        if step.rule == "prove":
            found["proof"] = None
        return found

    def _values(self, terms: dict[str, Any]) -> list[list[int]]:
        named = self.translation.named(terms)
        return [[self.lists.number(v), self.lists.number(t)] for v, t in named]

    def _one(self, given: Any) -> Any:
        """A term, a theorem, a symbol, or several of them, by number."""
        if is_term(given):
            return self.lists.number(self.translation.term(given))
        if isinstance(given, Theorem):
            return self.numbers[id(given)]
        if isinstance(given, Symbol):
            return self.lists.symbol(self.translation.symbol(given))
        return [self._one(each) for each in given]
