"""In whose room what is kept lies: a view in that of its array, a copy in its own.

Elements lie in the order of a value's indices, those along the last one side by side; what products
that are one array make lies side by side for each token. What is renamed, part of an array, or
repeated is a view: along an index that is repeated the next element is the same one. Operations keep
views as they are. But a product of batches takes the indices of its batches as one, and what does not
lie so is copied. Indices of one element do not count. (torch 2.13, aten/src/ATen:
native/LinearAlgebra.cpp, _matmul_impl; TensorUtils.cpp, computeStride)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod

from spec.costs.model_costs import Indices, elements
from spec.devices.mesh import Mesh
from spec.language.programs import Program
from spec.models.profiles import made_by
from spec.models.transformer import FLAT, MASKED
from spec.models.values import TRANSPOSED, Does, Operation, Role, Value
from spec.numbers.arithmetic import Number


def with_views(program: Program, indices: Indices, mesh: Mesh) -> Program:
    """The program, which keeps arrays in place of their views, if its part has such."""
    if not program.part.views:
        return program
    room = _Room(program, indices, mesh)
    arrays = {view: room.array(view) for view in program.kept if room.is_view(view)}
    within = {value.plain_name for value, array in arrays.items() if array and value not in array}
    lie = tuple((view, each) for view, array in arrays.items() for each in array)
    part = replace(program.part, merged=program.part.merged | within)
    kept = dict.fromkeys((*program.kept, *(each for _, each in lie)))
    return replace(program, part=part, kept=tuple(kept), arrays=lie)


def is_repeated(operation: Operation) -> bool:
    """Whether what it makes has the elements of what it reads, each several times."""
    first, *others = operation.reads
    by_ones = all(value.role is Role.CONSTANT and not value.width for value in others)
    return by_ones and {*first.indices} < {*operation.makes.indices}


def is_renamed(operation: Operation) -> bool:
    """Whether what it makes has the elements of what it reads, each once, and in their places."""
    return len(operation.renamed) == 1 and operation.function != TRANSPOSED


@dataclass(frozen=True)
class Array:
    """What lies in one array. `row`: the indices that its products make, of each token.

    `by_heads`: the products' features of a head lie beside each other, and not those of all heads.
    """

    values: tuple[Value, ...]
    row: frozenset[str]
    by_heads: bool = False


@dataclass(frozen=True)
class _Room:
    """Arrays of a program, on one device."""

    program: Program
    indices: Indices
    mesh: Mesh

    @cached_property
    def lines(self) -> dict[Value, Operation]:
        """The operation of forward that makes a value."""
        return {line.makes: line for line in self.program.forward if isinstance(line, Operation)}

    @cached_property
    def joined(self) -> dict[Value, Array]:
        """Arrays that several products make, by each of their values, with its bias."""
        part, named = self.program.part, {value.name: value for value in self.lines}
        found = dict[Value, Array]()
        for names in part.arrays:
            weights = [weight for weight in part.weights if weight.name in names]
            made = [part.first_readers[weight].makes.name for weight in weights]
            values = tuple(named.get(f"{name}_biased", named[name]) for name in made)
            row = frozenset(index for weight in weights for index in made_by(weight, part))
            found |= dict.fromkeys(values, Array(values, row, part.by_heads))
        return found

    def root(self, view: Value) -> Value:
        """The value whose elements a value has."""
        while (line := self.lines.get(view)) and (
            is_renamed(line) or is_repeated(line) or self.is_in_place(line)
        ):
            view = line.reads[0]
        return view

    def is_in_place(self, line: Operation) -> bool:
        """Whether a transposition moves nothing: of one element along what is moved, or all that it
        is moved behind.
        """
        if line.function != TRANSPOSED or line.reads[0].width != line.makes.width:
            return False
        sizes = self.sizes(line.reads[0])
        moved = {old for old, _ in line.renamed}
        behind = [*sizes][max(map([*sizes].index, moved)) + 1 :]
        if behind[-1:] == [*line.makes.indices][-1:]:  # which stays the last
            behind = behind[:-1]
        return any(prod(sizes[index] for index in some) == 1 for some in (moved, behind))

    def array(self, view: Value) -> tuple[Value, ...]:
        """What lies in the array of which a value is a view; nothing, if it is all of one."""
        root = self.root(view)
        if root in self.joined:
            return self.joined[root].values
        return (root,) if root != view else ()

    def is_view(self, value: Value) -> bool:
        """Whether what operations keep of a value is a view: they read it as it lies."""
        reads = (line for line in self.lines.values() if value in line.reads)
        return all(self._as_it_lies(value, op) for op in reads)

    def _as_it_lies(self, value: Value, reader: Operation) -> bool:
        """Whether an operation reads a value as it lies: of a product batches are one index.

        So does a kernel, inside which values are in no memory: it takes each index for itself.
        """
        if reader.does is not Does.CONTRACT or any(v.role is not Role.ACTIVATION for v in reader.reads):
            return True
        if not all(each.width for each in (*reader.reads, reader.makes)):
            return not self.is_put_together(value)
        both = {*reader.reads[0].indices} & {*reader.reads[1].indices}
        if both <= {*reader.makes.indices}:  # nothing is summed
            return True
        sizes, apart = self.sizes(value), self.apart(value)
        batches = [index for index in reader.makes.indices if index in both and sizes[index] != 1]
        return all(apart[out] == sizes[within] * apart[within] for out, within in pairwise(batches))

    def is_put_together(self, value: Value) -> bool:
        """Whether a kernel with a mask has copies of repeated keys and values: heads are one index.

        Of one token queries are in groups. (transformers, integrations/sdpa_attention.py) Or they are
        one before a kernel is called: so are queries. (models/falcon/modeling_falcon.py: _split_heads)
        """
        kinds, sizes, line = self.program.part.name.split("_"), self.sizes(value), self.lines.get(value)
        is_copy = line is not None and is_repeated(line)
        if FLAT in kinds:
            has_groups = all(sizes.get(index, 1) != 1 for index in ("g", "r"))
            return has_groups
        return is_copy and MASKED in kinds and 1 not in (sizes["g"], sizes["r"], sizes["u"])

    def apart(self, view: Value) -> dict[str, Number]:
        """How many elements apart in memory neighbours along each index are; none, if repeated."""
        root, found = self.root(view), dict.fromkeys(view.indices, 0)
        array = self.joined.get(root, Array((root,), frozenset(root.indices)))
        sizes, step = self.sizes(root), 1
        row = [index for index in root.indices if index in array.row]
        of_rows = [index for index in root.indices if index not in row]
        for index in reversed(row):
            found[index], step = step, step * sizes[index]
        step = sum(self.elements(value, array.row) for value in array.values)
        if array.by_heads:
            found[row[0]] = step // sizes[row[0]]
        for index in reversed(of_rows):
            found[index], step = step, step * sizes[index]
        return found

    def sizes(self, value: Value) -> dict[str, Number]:
        """How many of each index of a value a device has."""
        return {index: self.elements(value, {index}) for index in value.indices}

    def elements(self, value: Value, some: Collection[str]) -> Number:
        """Elements that a device has of some of a value's indices."""
        of_some = tuple(index for index in value.indices if index in some)
        lies = self.program.lies[value]
        return elements(replace(value, indices=of_some), lies, self.indices, self.mesh)
