"""A2: of what layers keep, what lies in an array that is there anyway: by the places of elements.

Each element that is written has a place in an array. What is renamed, part of an array, or repeated has
the places of what it is made of. What an operation takes as one index has to lie there in equal steps:
else it is copied, and the copy is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate, pairwise, product
from math import prod

from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.model_costs import kept_bytes, waiting_bytes
from spec.costs.views import with_views
from spec.derivation.programs import program_of
from spec.derivation.two_parts import gradients_last
from spec.language.programs import Program
from spec.models.parts import layer
from spec.models.profiles import TEXTBOOK, realised
from spec.models.transformer import FLAT, MASKED, Transformer, with_masks
from spec.models.values import TRANSPOSED, Builder, Does, Operation, Part, Role, Value

Place = tuple[str, int]  # in which array an element is, and where
At = Mapping[str, int]  # the element that has these indices
PlaceOf = Callable[[At], Place]
Names = tuple[str, ...]
WIDTH = 2
EAGER = replace(TEXTBOOK, views=True, repeats=True, masks=True, routes=True, composes=True)
IN_FULL = replace(EAGER, in_full=frozenset({"scores", "softmax"}))
AS_KERNEL = replace(EAGER, inside=frozenset({"scores", "seen", "shares"}))
SHAPE = Transformer(1, 1, 4, 2, 3, 2, 11, angles=False, routed=True, in_steps=True)
BY_HEADS = replace(SHAPE, joined=frozenset({"heads"}))
EXPERTS = replace(SHAPE, experts=3, chosen=1)
ALL_EXPERTS = replace(EXPERTS, weighed_first=True, odds="sigmoid")
CASES = (
    *((EAGER, model) for model in (SHAPE, replace(SHAPE, joined=frozenset({"qkv"})), ALL_EXPERTS)),
    (EAGER, replace(BY_HEADS, angles=True)),  # values alone lie in the array
    (EAGER, replace(ALL_EXPERTS, plain_odds=True)),
    (EAGER, replace(EXPERTS, of_chosen=True)),
    (IN_FULL, replace(SHAPE, joined=frozenset({"qkv"}))),
    (AS_KERNEL, BY_HEADS),
    (AS_KERNEL, replace(SHAPE, windows=(1,))),
    (AS_KERNEL, replace(BY_HEADS, windows=(1,), biases=frozenset())),
    (AS_KERNEL, replace(SHAPE, spread_keys=True, put_together=True)),
    (AS_KERNEL, replace(BY_HEADS, spread_keys=True, put_together=True)),
    (AS_KERNEL, replace(SHAPE, gated=True, function="relu", joined=frozenset({"mlp"}))),
)
COUNTS = (  # samples, tokens, groups, heads of each, experts
    *((2, 3, 2, 1, 3), (2, 1, 2, 1, 2)),  # where products take batches as one
    *((2, 3, 1, 2, 2), (1, 3, 2, 3, 1), (2, 1, 2, 2, 2), (2, 3, 1, 1, 2), (2, 3, 2, 1, 2)),
)


def views_lie_in_arrays(k: Kernel) -> None:
    """Raise KernelError unless what parts keep takes the room of the arrays that its elements lie in.

    So does what waits between the two parts of backward. Without views, all has room of its own.
    """
    for part, each in _parts():
        program = gradients_last(program_of(part, ()))
        apart = replace(program, part=replace(part, views=False))
        for sizes in each:
            found, memory = with_views(program, sizes, {}), _Memory(program, sizes)
            has = kept_bytes(found, sizes, {}), waiting_bytes(found, sizes, {})
            expected = memory.room_of(program.stored), memory.room_of(program.stored_between)
            if has != expected or with_views(apart, sizes, {}) is not apart:
                raise KernelError(f"{k.claim}: a {part.name} keeps {has} bytes, not {expected}")


def _parts() -> Iterator[tuple[Part, list[dict[str, int]]]]:
    """Parts, and sizes of their indices."""
    for profile, model in CASES:
        shape = with_masks(model, 1)
        part = realised(layer(shape, *shape.kinds), profile.in_model(shape), WIDTH)
        yield (
            part,
            [
                shape.sizes(samples, tokens) | {"g": groups, "r": each, "j": experts, "e": experts}
                for samples, tokens, groups, each, experts in COUNTS[2 if profile is AS_KERNEL else 0 :]
            ],
        )
    x = Value("x", ("b", "h"), Role.STREAM)
    work = Builder("part", x)
    wide = Value("wide", ("b", "d", "f"))
    few, inside = Value("few", ("b", "d")), Value("inside", ("b", "f"), width=0)
    for made in (few, inside):
        work.contract(x, Value(f"to_{made.name}", ("h", made.indices[1]), Role.WEIGHT), made)
    both = [replace(wide, name=name) for name in ("one", "other")]
    for each, by in zip(both, (Value("factors", ("f",), Role.CONSTANT), inside), strict=True):
        work.contract(few, by, each)
    one, other = (work.apply("gelu", each, replace(each, name=f"{each.name}_bent")) for each in both)
    yield replace(work.part(work.add(one, other, wide)), views=True), [{"b": 2, "h": 3, "d": 2, "f": 3}]
    yield _read_twice(), [{"b": 2, "h": 3, "g": 2, "r": 2, "d": 3}]


def _read_twice() -> Part:
    """A part that repeats keys for groups of queries, for a product, and for what takes any place."""
    x = Value("x", ("b", "h"), Role.STREAM)
    work = Builder("part", x)
    makes = (Value("key", ("b", "g", "d")), Value("query", ("b", "g", "r", "d")))
    key, query = (
        work.contract(x, Value(f"to_{each.name}", ("h", *each.indices[1:]), Role.WEIGHT), each)
        for each in makes
    )
    ones = Value("ones", ("r",), Role.CONSTANT, width=0)
    keys = work.contract(key, ones, replace(query, name="keys"))
    scores = work.contract(query, keys, Value("scores", ("b", "g", "r")))
    bent = work.apply("gelu", keys, replace(keys, name="bent"))
    return replace(work.part(work.contract(scores, bent, replace(query, name="sum"))), views=True)


class _Memory:
    """Where elements of values lie, on one device."""

    def __init__(self, program: Program, sizes: Mapping[str, int]) -> None:
        self.program, self.part, self.sizes = program, program.part, sizes
        self.lines = {line.makes: line for line in program.forward if isinstance(line, Operation)}
        self.readers: dict[Value, list[Operation]] = {value: [] for value in program.lies}
        for line in self.lines.values():
            for value in {*line.reads}:
                self.readers[value].append(line)
        self.bytes = dict[str, int]()

    def room_of(self, values: Iterable[Value]) -> int:
        """Bytes of the arrays that have elements of what is there, or are copies of it."""
        arrays = set[str]()
        for value in values:
            place = self.place_of(value)
            if not all(self._lies_so(value, place, line) for line in self.readers[value]):
                place = self._written(value, value.indices, f"copy of {value.name}")
            arrays.add(place(dict.fromkeys(value.indices, 0))[0])
        return sum(self.bytes[array] for array in arrays)

    def _elements(self, indices: tuple[str, ...]) -> Iterator[dict[str, int]]:
        for at in product(*(range(self.sizes[index]) for index in indices)):
            yield dict(zip(indices, at, strict=True))

    def place_of(self, value: Value) -> PlaceOf:
        """Where each element of a value is."""
        line = self.lines.get(value)
        if value in self.joined:
            return self.joined[value]
        if line and line.does is Does.RENAME:
            return self._renamed(line)
        first, *others = line.reads if line else (value,)
        if [each.name for each in others] == ["ones"] and len(first.indices) < len(value.indices):
            return self.place_of(first)  # each of whose elements is there several times
        return self._written(value, value.indices, value.name)

    def _written(self, value: Value, order: tuple[str, ...], array: str) -> PlaceOf:
        """Elements in an order, side by side, in an array of their own."""
        order = tuple(index for index in order if index not in value.repeats)
        self.bytes[array] = value.width * prod(self.sizes[index] for index in order)
        return lambda at: (array, self._number(order, at))

    def _number(self, order: tuple[str, ...], at: At) -> int:
        number = 0
        for index in order:
            number = number * self.sizes[index] + at[index]
        return number

    def _renamed(self, line: Operation) -> PlaceOf:
        """In their places; or, in other order, in new ones, unless that leaves them where they are."""
        (source,), value = line.reads, line.makes
        if line.function != TRANSPOSED:
            if len(line.renamed) > 1:
                return self._written(value, value.indices, value.name)
            ((old, new),), place = line.renamed, self.place_of(source)
            return lambda at: place({**at, old: at[new]})
        by_heads = "b", "g", "r", "s", "d"
        if source.name == "context":
            place, order = self._written(source, by_heads, source.name), value.indices
        else:
            place, order = self.place_of(source), ("j", "b", "s")
        places = [place(at) for at in self._elements(order)]
        in_order = [place for _, place in places] == [*range(len(places))]
        if source.width != value.width or not in_order:
            return self._written(value, value.indices, value.name)
        return lambda at: places[self._number(value.indices, at)]

    @cached_property
    def joined(self) -> dict[Value, PlaceOf]:
        """What products make that are one array: of each token, or head, one after the other."""
        found = dict[Value, PlaceOf]()
        named = {value.name: value for value in self.lines}
        for names in self.part.arrays:
            made = [self.part.first_readers[w].makes.name for w in self.part.weights if w.name in names]
            values = [named.get(f"{name}_biased", named[name]) for name in made]
            outer = ("b", "s", "g") if self.part.by_heads else ("b", "s")
            rows = [tuple(index for index in value.indices if index not in outer) for value in values]
            starts = [0, *accumulate(prod(self.sizes[index] for index in row) for row in rows)]
            array = " ".join(names)
            self.bytes[array] = WIDTH * prod(self.sizes[index] for index in outer) * starts[-1]
            for value, row, start in zip(values, rows, starts, strict=False):
                found[value] = partial(self._in_row, array, outer, starts[-1], row, start)
        return found

    def _in_row(self, array: str, outer: Names, length: int, row: Names, start: int, at: At) -> Place:
        return array, self._number(outer, at) * length + start + self._number(row, at)

    def _lies_so(self, value: Value, place: PlaceOf, line: Operation) -> bool:
        """Whether what an operation takes as one index of a value lies in equal steps."""
        one = [index for index in self._as_one(value, line) if index in value.indices]
        rest = tuple(index for index in value.indices if index not in one)
        for at in self._elements(rest) if one else ():
            places = [place({**at, **more})[1] for more in self._elements(tuple(one))]
            if len({after - before for before, after in pairwise(places)}) > 1:
                return False
        return True

    def _as_one(self, value: Value, line: Operation) -> Names:
        """Of a product its batches; a kernel's heads, where they are put together before it."""
        if line.does is not Does.CONTRACT or {each.role for each in line.reads} != {Role.ACTIVATION}:
            return ()
        if all(each.width for each in (*line.reads, line.makes)):
            both = [index for index in line.reads[0].indices if index in line.reads[1].indices]
            summed = {*both} - {*line.makes.indices}
            return tuple(index for index in line.makes.indices if index in both) if summed else ()
        kinds = self.part.name.split("_")
        # keys of several tokens: of one token queries are put in groups
        is_repeated = MASKED in kinds and "u" in value.indices and self.sizes["u"] != 1
        return ("g", "r") if FLAT in kinds or is_repeated else ()
