"""What a part computes on a single device, as terms: forward, and backward by the chain rule.

Programs that compute the same terms compute the same, whatever the functions are: so a program finds
the model's gradients if the terms of its lines are those of the chain rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spec.devices.layouts import LayoutError
from spec.models.values import LOG_TOTAL, Does, Operation, Part, Role, Value

SEED = "the cotangent of what is given"


def given_to(part: Part) -> tuple[Value, ...]:
    """Weights, and what the part takes."""
    return (*part.weights, *([part.takes] if part.takes else []))


Indexed = tuple[int, frozenset[str]]  # a term, and its indices


@dataclass
class Terms:
    """Terms by number: equal ones have one. Sums and products are equal whatever their order."""

    numbers: dict[Any, int] = field(default_factory=dict)
    addends: dict[int, Counter[int]] = field(default_factory=dict)  # of a sum, each so many times
    operands: dict[int, tuple[Indexed, Indexed]] = field(default_factory=dict)  # of a contraction

    def number(self, term: Any) -> int:
        return self.numbers.setdefault(term, len(self.numbers))

    def given(self, value: Value) -> int:
        """What comes in; a constant has one name however it lies."""
        return self.number((value.name.partition("|")[0], value.indices))

    def sum(self, numbers: Sequence[int]) -> int:
        if len(numbers) == 1:
            return numbers[0]
        flat = sum(map(self.of, numbers), Counter[int]())
        made = self.number(frozenset(flat.items()))
        self.addends[made] = flat
        return made

    def of(self, number: int) -> Counter[int]:
        """What a term is the sum of; of another term, itself."""
        return self.addends.get(number) or Counter([number])

    def made(self, operation: Operation, reads: Sequence[int]) -> int:
        """What an operation makes of these."""
        if operation.does is Does.ADD:
            return self.sum(reads)
        makes = frozenset(operation.makes.indices)
        pairs = zip(reads, operation.reads, strict=True)
        of = tuple((n, frozenset(value.indices)) for n, value in pairs)
        if operation.does is Does.CONTRACT:
            left, right = of
            made = self.number(_product(left, right, makes))
            self.operands[made] = left, right
            return made
        what = (operation.does, operation.function, operation.over, frozenset(operation.renamed))
        backward = operation.backward and operation.does is not Does.RENAME  # it is a rename, too
        if operation.function == "softmax" and self.tells_nothing(operation.over, backward, *of):
            of = of[: 1 + backward]
        return self.number((what, backward, of, makes))

    def tells_nothing(self, over: str, backward: bool, *of: Indexed) -> bool:
        """Whether a softmax has, beside its operands, only what it could make of them itself.

        That is its log-sum-exp, or what its cotangent and it sum to as a product.
        """
        if len(of) != 2 + backward:
            return False
        (made, rows), (scores, indices) = of[-1], of[0]
        if rows != indices - {over}:
            return False
        if not backward:
            what = (Does.NORMALISE, LOG_TOTAL, over, frozenset[tuple[str, str]]())
            return made == self.numbers.get((what, False, ((scores, indices),), rows))
        pairs = self.operands.get(made, ())
        return any(self.pairs_as(pair, of[:2], rows) for pair in (pairs, pairs[::-1]) if pair)

    def pairs_as(
        self, pair: tuple[Indexed, ...], other: tuple[Indexed, ...], rows: frozenset[str]
    ) -> bool:
        """Whether the product of a cotangent and a result, row by row, is that of two others.

        What contracts a result with anything may contract the cotangent instead: <c, A y> = <A' c, y>.
        Both have the same indices, and the rows are among them: nothing else is summed in one alone.
        """
        cotangent, result = pair
        if cotangent[1] != result[1] or not rows <= result[1]:
            return False
        if pair == other:
            return True
        factors = self.operands.get(result[0], ())
        for operand, by in (factors, factors[::-1]) if factors else ():
            pulled = self.numbers.get(_product(cotangent, by, operand[1]))
            if pulled is not None:
                next_pair = (pulled, operand[1]), operand
                if self.pairs_as(next_pair, other, rows):
                    return True
        return False


def _product(left: Indexed, right: Indexed, makes: frozenset[str]) -> Any:
    """The term of a contraction of two operands, or of one with itself, whichever is the first."""
    return Does.CONTRACT, frozenset((left, right)), makes


def differentiated(part: Part, terms: Terms) -> dict[str, int]:
    """What a part gives, returns, and finds of each weight, by the chain rule.

    A cotangent is the sum of what all uses pull back.
    """
    known = {value: terms.given(value) for op in part.operations for value in op.reads}
    for operation in part.operations:
        reads = [known[value] for value in operation.reads]
        known[operation.makes] = terms.made(operation, reads)
    pulled: dict[Value, list[int]] = {part.gives: [terms.number(SEED)]}
    for operation in reversed(part.operations):
        if operation.makes not in pulled:  # nothing uses it
            continue
        cotangent = terms.sum(pulled[operation.makes])
        for place, value in enumerate(operation.reads):
            if value.role is not Role.CONSTANT:
                if operation.function == LOG_TOTAL:  # its derivative is the softmax
                    shares = replace(operation, function="softmax", makes=value)
                    reads = [cotangent, terms.made(shares, [known[value]])]
                    back = Operation(Does.CONTRACT, (operation.makes, value), value)
                else:
                    back, reads = _pulled_back(operation, place, cotangent, known)
                made = cotangent if back.does is Does.ADD else terms.made(back, reads)
                pulled.setdefault(value, []).append(made)
    for value in given_to(part):
        if value not in pulled:
            what = f"nothing that {part.name} gives depends on {value.name}: it has no gradient"
            raise LayoutError(what, (part.name, "takes" if value == part.takes else value.name))
    found = {"gives": known[part.gives]}
    found |= {gradient_of(weight): terms.sum(pulled[weight]) for weight in part.weights}
    return found | ({"returns": terms.sum(pulled[part.takes])} if part.takes else {})


def gradient_of(weight: Value) -> str:
    return f"gradient of {weight.name}"


def _pulled_back(
    operation: Operation, place: int, cotangent: int, known: Mapping[Value, int]
) -> tuple[Operation, list[int]]:
    """What gives the cotangent of an operand, and what it reads: a transpose, or a derivative."""
    value, made = operation.reads[place], operation.makes
    if operation.does is Does.CONTRACT:
        other = operation.reads[1 - place]
        reads = (made, other) if place == 0 else (other, made)
        back = Operation(Does.CONTRACT, reads, value)
        return back, [cotangent if v == made else known[v] for v in reads]
    if operation.does is Does.RENAME:
        renamed = tuple((new, old) for old, new in operation.renamed)
        return Operation(Does.RENAME, (made,), value, renamed=renamed, backward=True), [cotangent]
    at = operation.known
    return replace(operation, reads=(made, at), makes=value, backward=True), [cotangent, known[at]]
