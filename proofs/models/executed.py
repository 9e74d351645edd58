"""Parts of models on numbers: what each operation makes, element by element.

Weights are any numbers, and so are constants: angles, masks, words. A value is a list of its elements,
of which those along the last index are beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import atan, erf, exp, log, prod, sin, sqrt, tanh
from zlib import crc32

from proofs.trusted.kernel import KernelError
from spec.models.parts import MASK
from spec.models.values import LOG_TOTAL, Operation, Part, Role, Value

Indices = tuple[str, ...]
FUNCTIONS: dict[str, Callable[[float], float]] = {  # the first are any: both sides have the same
    **dict.fromkeys(("gelu", "gelu_new", "gelu_python", "gelu_fast"), erf),
    **{"silu": atan, "clamped_silu": atan, "cap": tanh, "clamp": sin},
    **{"exp": exp, "log": log, "square": lambda x: x * x, "inverse_root": lambda x: 1 / sqrt(x)},
    "sigmoid": lambda x: 1 / (1 + exp(-x)),
}


@lru_cache(maxsize=16384)
def number(name: str, at: tuple[int, ...]) -> float:
    """An element of a weight, or of a constant: any number."""
    return 1 if name == "ones" else sin(crc32(f"{name}{at}".encode()))


def normalised(function: str, row: Sequence[float]) -> list[float]:
    """A row of numbers, by a function of all of them."""
    if function in ("softmax", LOG_TOTAL):
        total = sum(map(exp, row))
        return [log(total)] if function == LOG_TOTAL else [exp(x) / total for x in row]
    mean = sum(row) / len(row) if function == "layer_norm" else 0
    root = sqrt(sum((x - mean) ** 2 for x in row) / len(row))
    return [(x - mean) / root for x in row]


class Executed:
    """Runs parts. `sizes`: of indices; `sent`: 1 where a slot of an expert has a token."""

    def __init__(self, sizes: Mapping[str, int], sent: Sequence[float]) -> None:
        self.sizes, self.sent = sizes, sent
        self._found: dict[tuple[Indices, Indices], list[int]] = {}
        self._masks: dict[str, int] = {}  # of a part, in turn

    def gives(self, part: Part, takes: list[float]) -> list[float]:
        """What a part gives, of what it takes."""
        there, self._masks = {part.takes: takes}, {}
        for line in part.operations:
            reads = [there.get(value) or self._given(value) for value in line.reads]
            there[line.makes] = getattr(self, f"_{line.does.value}")(line, *reads)
        return there[part.gives]

    def _given(self, value: Value) -> list[float]:
        """A weight or a constant: masks of what is dropped by their turn in a part."""
        if value.role not in (Role.WEIGHT, Role.CONSTANT):
            raise KernelError(f"nothing makes {value}")
        every = product(*(range(self.sizes[index]) for index in value.indices))
        if value.indices[-1] == "z":  # features of a head: those that are not turned are the first
            shift = 0 if "n" in value.indices else self.sizes["n"]
            return [at[-2] + shift == at[-1] for at in every]
        name = "causal" if value.name == MASK else value.name
        if name.endswith("_mask"):
            name = f"mask {self._masks.setdefault(name, len(self._masks))}"
        return [number(name, at) for at in every]

    def _places(self, indices: Indices, order: Indices) -> list[int]:
        """Where elements of a value are, if those of `order` are gone through."""
        if (indices, order) not in self._found:
            places = [0]
            for index in order:
                after = indices[indices.index(index) + 1 :] if index in indices else ()
                step = prod(self.sizes[i] for i in after) if index in indices else 0
                places = [place + step * n for place in places for n in range(self.sizes[index])]
            self._found[indices, order] = places
        return self._found[indices, order]

    def _summed(
        self, makes: Indices, one: Indices, x: Sequence[float], other: Indices, y: Sequence[float]
    ) -> list[float]:
        """Products, summed over indices that `makes` lacks."""
        order = tuple(dict.fromkeys((*makes, *one, *other)))
        made = [0.0] * prod(self.sizes[index] for index in makes)
        places = (self._places(indices, order) for indices in (makes, one, other))
        for at, a, b in zip(*places, strict=True):
            made[at] += x[a] * y[b]
        return made

    def _contract(self, line: Operation, x: list[float], y: list[float]) -> list[float]:
        one, other = (value.indices for value in line.reads)
        return self._summed(line.makes.indices, one, x, other, y)

    def _add(self, line: Operation, x: list[float], y: list[float]) -> list[float]:
        one, other = (self._places(value.indices, line.makes.indices) for value in line.reads)
        return [x[a] + y[b] for a, b in zip(one, other, strict=True)]

    def _apply(self, line: Operation, x: list[float]) -> list[float]:
        return [
            FUNCTIONS[line.function](x[a])
            for a in self._places(line.reads[0].indices, line.makes.indices)
        ]

    def _normalise(self, line: Operation, x: list[float]) -> list[float]:
        """Row by row."""
        before, after = line.reads[0].indices, line.makes.indices
        rows, made = tuple(index for index in before if index != line.over), dict[int, float]()
        over = (line.over,)
        for start, first in zip(self._places(before, rows), self._places(after, rows), strict=True):
            row = normalised(line.function, [x[start + a] for a in self._places(before, over)])
            ends = self._places(after, over) if line.over in after else [0]
            made |= {first + end: v for end, v in zip(ends, row, strict=True)}
        return [made[place] for place in sorted(made)]

    def _rename(self, line: Operation, x: list[float]) -> list[float]:
        """The same elements under another index; from tokens to slots, or back, as tokens are sent."""
        before, after = line.reads[0].indices, line.makes.indices
        if "c" in (*before, *after):
            of_experts = tuple("e" if index == "j" else index for index in before)
            return self._summed(after, of_experts, x, ("e", "c", "b", "s"), self.sent)
        new = dict(line.renamed)
        return self._summed(after, tuple(new.get(index, index) for index in before), x, (), [1])
