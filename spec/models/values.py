"""A model as operations on values, as one device does it, before anything is placed.

A value has named indices. There are five operations; what each does backward is made of the same five.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, lru_cache

from spec.devices.layouts import Contraction

WRITTEN = 2  # bytes of an element of what is computed in the weights' precision, as parts are written
NUMBER_BYTES = 8  # of a token, of its place, or of what it is sent to
FULL = 4  # bytes of an element of what a loss, or a softmax by turns, is computed from


class Role(Enum):
    """What a value is to training."""

    ACTIVATION = "activation"
    STREAM = "stream"  # an activation that lies where the axis says: what layers hand on
    WEIGHT = "weight"
    CONSTANT = "constant"  # has no gradient: samples, masks, angles, ones


@dataclass(frozen=True)
class Value:
    """A tensor. `width`: bytes an element takes when it is kept for backward; 0: made again.

    `form_of`: of a value that is there in several forms (moved, or contributed by several uses), each
    with a name of its own, the name that they share. `repeats`: indices along which its elements are
    the same ones, in the same room.
    """

    name: str
    indices: tuple[str, ...]
    role: Role = Role.ACTIVATION
    width: int = 2
    form_of: str = ""
    repeats: tuple[str, ...] = ()

    @property
    def plain_name(self) -> str:
        """The name that it shares with its other forms."""
        return self.form_of or self.name

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.indices))

    def __hash__(self) -> int:  # values are looked up often
        return self._hash

    def __str__(self) -> str:
        return f"{self.name}[{' '.join(self.indices)}]"


@lru_cache(maxsize=4096)
def cotangent_of(value: Value, of: str = "") -> Value:
    """A value's cotangent: all of it, or that of a use or of a sum of some."""
    plain, shared = value.name == value.plain_name, f"d {value.plain_name}"
    name = f"d {value.name}{of}" if plain else f"d ({value.name}){of}"  # not that of d value, moved
    return replace(value, name=name, role=Role.ACTIVATION, form_of=shared)


@lru_cache(maxsize=4096)
def formed(value: Value, lies: str) -> Value:
    """The same value, lying otherwise."""
    return replace(value, name=f"{value.name}|{lies}", form_of=value.plain_name)


TRANSPOSED = "transposed"  # a rename that moves some indices to the place of others
LOG_TOTAL = "log_sum_exp"  # of all elements along an index: it has one for each row
# functions whose derivatives are known from their results: those are kept for backward. Of other
# functions it is what they are computed from. (torch, tools/autograd/derivatives.yaml)
FROM_RESULT = frozenset({"exp", "inverse_root", "relu", "sigmoid", "softmax", "tanh"})


class Does(Enum):
    """What an operation does."""

    __hash__ = object.__hash__  # quicker than by name, and it is looked up often

    CONTRACT = "contract"  # sums products of two values over the indices that the result lacks
    ADD = "add"
    APPLY = "apply"  # a function of each element
    NORMALISE = "normalise"  # a function of all elements along one index: softmax, norms
    RENAME = "rename"  # the same elements, under other indices: keys are tokens, slots are tokens


OPERANDS = {Does.CONTRACT: 2, Does.ADD: 2, Does.APPLY: 1, Does.NORMALISE: 1, Does.RENAME: 1}


@dataclass(frozen=True)
class Operation:
    """makes = does(reads).

    `function`: what is applied, or normalised by. `over`: the index that it needs all of.
    `renamed`: pairs of indices, from and to; those that a transposition moves.
    `backward`: the same backward: reads a cotangent first, then what its derivative is known from.
    A softmax may read its log-sum-exp too, and backward what the cotangent and it sum to as a product.
    """

    does: Does
    reads: tuple[Value, ...]
    makes: Value
    function: str = ""
    over: str = ""
    renamed: tuple[tuple[str, str], ...] = ()
    backward: bool = False

    @property
    def known(self) -> Value:
        """What its derivative is computed from, beside a cotangent."""
        return self.makes if self.function in FROM_RESULT else self.reads[0]

    def on(self, reads: tuple[Value, ...], makes: Value) -> Operation:
        """The same operation on other values."""
        is_own = reads == self.reads and makes == self.makes
        return self if is_own else replace(self, reads=reads, makes=makes)

    @cached_property
    def _hash(self) -> int:
        return hash((self.does, self.reads, self.makes))

    def __hash__(self) -> int:  # parts, which have many, are looked up often
        return self._hash

    @cached_property
    def contraction(self) -> Contraction:
        left, right = self.reads
        return Contraction(left.indices, right.indices, self.makes.indices)

    def __str__(self) -> str:
        what = " ".join(word for word in (self.does.value, self.function) if word)
        return f"{self.makes} = {what}({', '.join(v.name for v in self.reads)})"


def misfit(operation: Operation) -> str:
    """What an operation's result should have for indices, if it has others; empty if it has these."""
    first, makes = {*operation.reads[0].indices}, {*operation.makes.indices}
    if operation.does is Does.CONTRACT:
        second = {*operation.reads[1].indices}
        if not makes <= first | second:
            return "indices of what it multiplies"
        return "" if first ^ second <= makes else "every index that only one of the two has"
    if operation.does is not Does.RENAME:
        rows, count = first - {operation.over}, OPERANDS[operation.does] + operation.backward
        of_rows = [{*value.indices} for value in operation.reads[count:]]
        most = count + (operation.function == "softmax")
        if len(operation.reads) > most:
            return f"no more than {most} operands"
        if operation.function == LOG_TOTAL:
            of_rows, makes = [makes], first
        if any(found != rows for found in of_rows):
            return f"for each row a number, of all indices but {operation.over}"
        alike = all({*value.indices} == makes for value in operation.reads[:count])
        return "" if alike else "values with the same indices"
    old, new = ({pair[side] for pair in operation.renamed} for side in (0, 1))
    if not old <= first or new & (first - old):
        return f"new names for indices that {operation.reads[0].name} has"
    if len(old) == len(new):  # one for one
        return "" if makes == first - old | new else " ".join(sorted(first - old | new))
    return "" if new <= makes and not old & makes else "the new names in place of the old ones"


@dataclass(frozen=True)
class Part:
    """Operations in order, from what comes in to what goes out: an embedding, a layer, a head.

    `whole`: names of values, and of weights, that each device has of all words, along axes that cut
    words. `stores`: of values that are kept though backward does not read them. `merged`: of values
    that backward has from others that are kept, and which take no room of their own. `apart`: terms of
    a cotangent are summed over devices one by one, and not together. `overwritten`: of values that a
    kernel which reads them overwrites with their cotangents. `arrays`: names of weights that are one
    array; `by_heads`: in it lies head after head. `views`: of what is kept arrays take room, and no
    views of them. `reads_first`: rows of weights are what products read. `held`: names of values that
    are kept as they are gathered; `gathers_again`: others are gathered for backward alone, even where
    it makes again what forward gathered.
    """

    name: str
    operations: tuple[Operation, ...]
    takes: Value | None  # none: it starts from samples
    gives: Value
    whole: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    merged: frozenset[str] = frozenset()
    apart: bool = False
    overwritten: frozenset[str] = frozenset()
    arrays: tuple[tuple[str, ...], ...] = ()
    by_heads: bool = False
    views: bool = False
    reads_first: bool = False
    held: frozenset[str] = frozenset()
    gathers_again: bool = False

    @cached_property
    def weights(self) -> tuple[Value, ...]:
        """The weights, each once."""
        read = (value for op in self.operations for value in op.reads)
        return tuple(dict.fromkeys(v for v in read if v.role is Role.WEIGHT))

    @cached_property
    def of_weights(self) -> frozenset[str]:
        """The names of weights, and of what is made of them alone, or with constants of no samples."""
        found = {weight.name for weight in self.weights}
        for op in self.operations:
            alike = (v.role is Role.CONSTANT and "b" not in v.indices for v in op.reads)
            of = [value.name in found for value in op.reads]
            if any(of) and all(one or other for one, other in zip(of, alike, strict=True)):
                found.add(op.makes.name)
        return frozenset(found)

    @cached_property
    def of_constants(self) -> frozenset[str]:
        """The names of what is made of constants alone: it has no gradient."""
        found = set[str]()
        for op in self.operations:
            if all(value.role is Role.CONSTANT or value.name in found for value in op.reads):
                found.add(op.makes.name)
        return frozenset(found)

    @cached_property
    def first_readers(self) -> dict[Value, Operation]:
        """The first operation that reads each value."""
        return {value: op for op in reversed(self.operations) for value in op.reads}

    @cached_property
    def indices(self) -> tuple[str, ...]:
        """Those that some line reads."""
        values = (value for op in self.operations for value in op.reads)
        return tuple(dict.fromkeys(index for value in values for index in value.indices))

    def names_of(self, index: str) -> tuple[str, ...]:
        """An index, and what it is renamed to."""
        return tuple(dict.fromkeys((index, *(new for old, new in self._renamed if old == index))))

    @cached_property
    def _renamed(self) -> tuple[tuple[str, str], ...]:
        return tuple(pair for operation in self.operations for pair in operation.renamed)


class Builder:
    """Writes a part, an operation a line. `of`: what names of weights begin with."""

    def __init__(self, name: str, takes: Value | None = None, of: str = "") -> None:
        self.name, self.takes, self.of = name, takes, of
        self.operations: list[Operation] = []

    def _make(
        self, does: Does, reads: tuple[Value, ...], makes: Value, function: str = "", over: str = ""
    ) -> Value:
        self.operations.append(Operation(does, tuple(map(self._named, reads)), makes, function, over))
        return makes

    def _named(self, value: Value) -> Value:
        weight = self.of and value.role is Role.WEIGHT
        return replace(value, name=f"{self.of}{value.name}") if weight else value

    def contract(self, left: Value, right: Value, makes: Value) -> Value:
        """The sum of products over the indices that `makes` lacks."""
        return self._make(Does.CONTRACT, (left, right), makes)

    def add(self, left: Value, right: Value, makes: Value) -> Value:
        """An elementwise sum."""
        return self._make(Does.ADD, (left, right), makes)

    def apply(self, function: str, value: Value, makes: Value) -> Value:
        """A function of each element."""
        return self._make(Does.APPLY, (value,), makes, function)

    def normalise(self, function: str, over: str, value: Value, makes: Value) -> Value:
        """A function of all elements along `over`."""
        return self._make(Does.NORMALISE, (value,), makes, function, over)

    def rename(
        self, value: Value, makes: Value, *renamed: tuple[str, str], function: str = ""
    ) -> Value:
        """The same elements under other indices."""
        self.operations.append(Operation(Does.RENAME, (value,), makes, function, renamed=renamed))
        return makes

    def part(self, gives: Value) -> Part:
        return Part(self.name, tuple(self.operations), self.takes, gives)
