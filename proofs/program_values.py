"""What a program computes on whole values, as terms, and what the chain rule says that it should.

Two programs that compute the same terms compute the same, whatever the functions are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from proofs.kernel import KernelError
from spec.programs import Line, Move, Program
from spec.values import Does, Operation, Part, Role, Value

SEED = "the cotangent of what is given"


def given_to(part: Part) -> tuple[Value, ...]:
    """Weights, and what the part takes."""
    return (*part.weights, *([part.takes] if part.takes else []))


@dataclass
class Terms:
    """Terms by number: equal ones have one. Sums are equal whatever their order."""

    numbers: dict[Any, int] = field(default_factory=dict)
    addends: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def number(self, term: Any) -> int:
        return self.numbers.setdefault(term, len(self.numbers))

    def given(self, value: Value) -> int:
        """What comes in; a constant has one name however it lies."""
        return self.number((value.name.partition("|")[0], value.indices))

    def sum(self, numbers: Sequence[int]) -> int:
        flat = tuple(sorted(a for n in numbers for a in self.addends.get(n, (n,))))
        if len(flat) == 1:
            return flat[0]
        made = self.number(flat)
        self.addends[made] = flat
        return made

    def made(self, operation: Operation, reads: Sequence[int]) -> int:
        """What an operation makes of these."""
        if operation.does is Does.ADD:
            return self.sum(reads)
        what = (operation.does, operation.function, operation.over, frozenset(operation.renamed))
        of = tuple((n, value.indices) for n, value in zip(reads, operation.reads, strict=True))
        return self.number((what, operation.backward, of, operation.makes.indices))


def computed(program: Program, terms: Terms) -> dict[str, int]:
    """What a program gives, returns, and finds of each weight, on whole values: a move changes none.

    Backward has what is kept, and what is at hand at any time.
    """
    known: dict[Value, int] = {}

    def of(value: Value) -> int:
        return terms.given(value) if value.role is Role.CONSTANT else known[value]

    def run(lines: Sequence[Line]) -> None:
        for line in lines:
            if isinstance(line, Move):
                known[line.makes] = of(line.value)
            else:
                known[line.makes] = terms.made(line, [of(value) for value in line.reads])

    known |= {value: terms.given(value) for value in given_to(program.part)}
    run(program.forward)
    found = {"gives": of(program.gives)}
    kept = {*program.kept}
    known = {v: n for v, n in known.items() if v in kept or v.role is Role.WEIGHT}
    known[program.seed] = terms.number(SEED)
    run(program.backward)
    found |= {weight.name: of(gradient) for weight, gradient in program.gradients.items()}
    return found | ({"returns": of(program.returns)} if program.returns else {})


def differentiated(part: Part, terms: Terms) -> dict[str, int]:
    """The same of a part, by the chain rule: a cotangent is the sum of what all uses pull back."""
    known = {value: terms.given(value) for op in part.operations for value in op.reads}
    for operation in part.operations:
        reads = [known[value] for value in operation.reads]
        known[operation.makes] = terms.made(operation, reads)
    pulled: dict[Value, list[int]] = {part.gives: [terms.number(SEED)]}
    for operation in reversed(part.operations):
        cotangent = terms.sum(pulled[operation.makes])
        for place, value in enumerate(operation.reads):
            if value.role is not Role.CONSTANT:
                back, reads = _pulled_back(operation, place, cotangent, known)
                made = cotangent if back.does is Does.ADD else terms.made(back, reads)
                pulled.setdefault(value, []).append(made)
    found = {"gives": known[part.gives]}
    found |= {weight.name: terms.sum(pulled[weight]) for weight in part.weights}
    return found | ({"returns": terms.sum(pulled[part.takes])} if part.takes else {})


def _pulled_back(
    operation: Operation, place: int, cotangent: int, known: Mapping[Value, int]
) -> tuple[Operation, list[int]]:
    """What gives the cotangent of an operand, and what it reads: a transpose, or a derivative."""
    value, made = operation.reads[place], operation.makes
    if operation.does is Does.CONTRACT:
        other = operation.reads[1 - place]
        reads = (made, other) if place == 0 else (other, made)
        back = Operation(Does.CONTRACT, reads, value)
        if back.contraction != operation.contraction.backward[place]:
            raise KernelError(f"{operation}: its transpose is not {back.contraction}")
        return back, [cotangent if v == made else known[v] for v in reads]
    if operation.does is Does.RENAME:
        renamed = tuple((new, old) for old, new in operation.renamed)
        return Operation(Does.RENAME, (made,), value, renamed=renamed, backward=True), [cotangent]
    at = made if operation.function == "softmax" else value
    return replace(operation, reads=(made, at), makes=value, backward=True), [cotangent, known[at]]
