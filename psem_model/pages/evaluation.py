"""A counterexample line by line: its values, and what they make of each formula that it refutes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from markupsafe import Markup

from proofs.premises import conjuncts
from proofs.trusted.terms import Term
from psem_model.audit.evaluate import NEAREST, CannotEvaluate, Expression, Value, evaluated
from psem_model.pages import mathematics
from psem_model.text.figures import exactly

SPELLED = {"neg": "-"}  # as an SMT-LIB text has it
LONGEST = 30  # characters of a value


@dataclass(frozen=True)
class Evaluated:
    """A line: a symbol with its value, or a formula with the values of its sides, and if it is true."""

    kind: str  # "value", "if" or "then"
    what: Markup
    sides: Sequence[str]  # one value, or two
    holds: bool = True
    first_wrong: bool = False


def evaluation(
    values: Mapping[str, str], given: Sequence[Term], then: Sequence[Term]
) -> list[Evaluated]:
    """The lines of a counterexample; of what has no value here, there is none."""
    names = {name: _read(value) for name, value in values.items()}
    found = [
        Evaluated("value", Markup(mathematics.name(name)), [_short(names[name])]) for name in values
    ]
    for kind, terms in (("if", given), ("then", then)):
        each = dict.fromkeys(part for term in terms for part in conjuncts(term))
        lines = {line.what: line for term in each if (line := _line(kind, term, names))}
        first = next((line for line in lines.values() if kind == "then" and not line.holds), None)
        found += [replace(line, first_wrong=line is first) for line in lines.values()]
    return found


def _line(kind: str, term: Term, names: Mapping[str, Value]) -> Evaluated | None:
    """A formula, if it has a value here."""
    try:
        sides = [_short(side) for side in _sides(term, names)]
        return Evaluated(kind, mathematics.term_in_pieces(term), sides, bool(value_of(term, names)))
    except CannotEvaluate:
        return None


def value_of(term: Term, names: Mapping[str, Value]) -> Value:
    """The value of a term, where symbols have values. Raises CannotEvaluate."""
    return evaluated(_spelled(term), names)


def _spelled(term: Term) -> Expression:
    """A term as the words of an SMT-LIB text."""
    if term.op in ("number", "bool"):
        return str(term.of).lower()
    if term.op == "float":
        return ["fp", f"#b{term.of:064b}"]
    if term.op == "apply":
        return [term.of.name, *map(_spelled, term.args)] if term.args else term.of.name
    rounded = [NEAREST] if term.op == "fp.add" else []
    return [SPELLED.get(term.op, term.op), *rounded, *map(_spelled, term.args)]


def _sides(term: Term, names: Mapping[str, Value]) -> Iterator[Value]:
    """The values of both sides of a relation, or of its opposite."""
    inner = term.args[0] if term.op == "not" else term
    if inner.op in mathematics.RELATIONS or inner.op.startswith("fp."):
        yield from (value_of(arg, names) for arg in inner.args)


def _read(value: str) -> Value:
    if value in ("true", "false"):
        return value == "true"
    return float(value) if "e" in value or "." in value else Fraction(value)


def _short(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    said = repr(value) if isinstance(value, float) else exactly(value)
    return said if len(said) <= LONGEST else f"{float(value):.12g}"
