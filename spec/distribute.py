"""A model on several devices: from what each axis cuts, the collectives follow.

Weights stay where an axis puts them, what layers hand on (the stream) lies where it says, and by the
layout rule everything else comes out to lie somewhere. What then lies otherwise than the next operation
needs it is moved: that is all the communication of tensor, sequence, context and expert parallelism.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spec.layouts import PARTIAL, WHOLE, LayoutError, Lie, along, contract
from spec.programs import Axis, Lies, Line, Move, Program, of_cotangent, result
from spec.values import Does, Operation, Part, Role, Value

# moves in the order in which they are made: those that leave less first
ORDER = ("slice", "reduce_scatter", "all_to_all", "all_reduce", "all_gather")
# what is made again for backward, rather than kept
NOTHING, PAIRS, ALL, FROM_SLICES = "none", "attention", "all", "sliced"
POSITIONS = "s"


def distribute(part: Part, axes: Iterable[Axis], again: str = NOTHING) -> Program:
    """The part, forward and backward, with the moves that the layout rule asks for.

    `again`: what backward computes again from what is kept: nothing but norms; what has an element
    for each pair of tokens; everything, from what the part takes; or that, kept in slices.
    """
    work = _Work(part, tuple(axes), again)
    work.go_forward()
    work.go_backward()
    return Program(
        part,
        work.axes,
        tuple(work.forward),
        tuple(work.backward),
        work.now[part.gives],
        work.seed,
        work.returns,
        work.gradients,
        tuple(work.kept),
        work.lies,
    )


class _Work:
    """A program while it is written. `now` is the form in which a value is at hand."""

    def __init__(self, part: Part, axes: tuple[Axis, ...], again: str) -> None:
        self.part, self.axes = part, axes
        self.again = again if part.takes or again == PAIRS else NOTHING  # from samples, nothing is
        self.forward: list[Line] = []
        self.backward: list[Line] = []
        self.lines = self.forward  # those that are being written
        self.lies: dict[Value, Lies] = {}
        self.now: dict[Value, Value] = {}
        self.made_by: dict[Value, Line] = {}
        self.contributed: dict[Value, list[Value]] = {}  # to each value's cotangent
        self.back: set[Value] = set()  # made again in backward
        self.kept: dict[Value, None] = {}
        self.gradients: dict[Value, Value] = {}
        self.seed: Value = part.gives
        self.returns: Value | None = None

    # --------------------------------------------------------------- where values lie
    def home(self, value: Value, axis: Axis) -> Lie:
        return axis.home(value, self.part)

    def homes(self, value: Value) -> Lies:
        return {axis.name: self.home(value, axis) for axis in self.axes}

    def bring(self, value: Value, lies: Lies) -> Value:
        """The value, lying so: moved there, once for all who need it; what makes it smaller first."""
        while True:
            has = self.lies[value]
            moves = [
                _move(value, axis, has[axis], lie) for axis, lie in lies.items() if has[axis] != lie
            ]
            if not moves:
                return value
            move = min(moves, key=lambda move: ORDER.index(move.collective))
            if move.makes not in self.lies:
                self.lies[move.makes] = {**has, move.axis: move.after}
                self.write(move)
            value = move.makes

    def write(self, line: Line) -> None:
        self.lines.append(line)
        if self.lines is self.forward:
            self.made_by[line.makes] = line

    def place(self, value: Value) -> None:
        """A weight, or what the part takes, lies where the axes say."""
        self.lies.setdefault(value, {axis.name: axis.rest(value, self.part) for axis in self.axes})

    # ------------------------------------------------------------------------ forward
    def go_forward(self) -> None:
        for value in (*self.part.weights, *([self.part.takes] if self.part.takes else [])):
            self.place(value)
        for operation in self.part.operations:
            self.do(operation)
        gives = self.now[self.part.gives]
        self.now[self.part.gives] = self.bring(gives, self.homes(gives))

    def do(self, operation: Operation) -> None:
        """Write an operation, after the moves that it needs; a partial result is summed at once."""
        reads = [self.now.get(value, value) for value in operation.reads]
        needed: list[Lies] = [{} for _ in reads]
        made: Lies = {}
        for axis in self.axes:
            lies = self.needed(operation, reads, axis)
            for needs, lie in zip(needed, lies, strict=True):
                needs[axis.name] = lie
            made[axis.name] = result(operation, axis, *lies)
        there = tuple(
            self.constant(value, lies) if value.role is Role.CONSTANT else self.bring(value, lies)
            for value, lies in zip(reads, needed, strict=True)
        )
        makes = operation.makes
        self.lies[makes] = made
        self.write(replace(operation, reads=there))
        homes = self.homes(makes)
        whole = {axis: homes[axis] if lie == PARTIAL else lie for axis, lie in made.items()}
        self.now[makes] = self.bring(makes, whole)

    def constant(self, value: Value, lies: Lies) -> Value:
        """A constant that lies so. Every device has, or makes, the slice that it needs."""
        where = ",".join(f"{axis}:{lie}" for axis, lie in lies.items() if lie != WHOLE)
        named = _form(value, where) if where else value
        self.lies[named] = lies
        return named

    def needed(self, operation: Operation, reads: list[Value], axis: Axis) -> tuple[Lie, ...]:
        """How an operation's operands must lie along an axis; as they are, if that will do."""
        has = [self.lies[v][axis.name] if v in self.lies else WHOLE for v in reads]
        brought = dict(axis.brought).get(operation.makes.name)
        if brought:
            return tuple(along(brought) for _ in reads)
        if operation.does is Does.ADD:
            return (has[0], has[0])
        if operation.does is Does.NORMALISE and has[0] == along(operation.over):
            return (WHOLE,)
        if operation.does is not Does.CONTRACT:
            return tuple(has)
        for left, right in self.options(reads, has, axis):
            try:
                contract(operation.contraction, left, right)
                return left, right
            except LayoutError:
                continue
        raise LayoutError(f"{operation}: no way to lie along {axis.name}")

    def options(self, reads: list[Value], has: list[Lie], axis: Axis) -> Iterable[tuple[Lie, Lie]]:
        """Ways for two operands to lie, the cheapest first.

        A weight stays; a constant lies as it must; of two activations the second is brought.
        """
        (left, right), (first, second) = reads, has

        def choices(value: Value, own: Lie, other: Lie) -> list[Lie]:
            like = [other] if other.index in value.indices else []
            home = [self.home(value, axis)]
            return [*home, *like, WHOLE] if value.role is Role.CONSTANT else [own, *like, *home, WHOLE]

        if left.role is Role.CONSTANT or right.role is Role.WEIGHT:
            return [(choice, second) for choice in choices(left, first, second)]
        if right.role is Role.CONSTANT:
            return [(first, choice) for choice in choices(right, second, first)]
        return [(first, choice) for choice in choices(right, second, first)]

    # ----------------------------------------------------------------------- backward
    def go_backward(self) -> None:
        self.lines = self.backward
        if self.again in (ALL, FROM_SLICES) and self.part.takes:
            forward = list(self.forward)
            self.keep_what_it_takes(self.part.takes)
            self.backward += forward
        gives = self.now[self.part.gives]
        self.seed = _cotangent(gives)
        self.lies[self.seed] = of_cotangent(self.lies[gives])
        self.contributed[gives] = [self.seed]
        for line in reversed(self.forward):
            if line.makes not in self.contributed:
                continue
            source = line.value if isinstance(line, Move) else line.makes
            cotangent = self.settled(line.makes, of_cotangent(self.lies[source]))
            if isinstance(line, Move):
                self.contribute(source, cotangent)
            else:
                self.pull(line, cotangent)
        takes = self.part.takes
        self.returns = self.settled(takes, of_cotangent(self.lies[takes])) if takes else None
        for weight in self.part.weights:
            self.gradients[weight] = self.settled(weight, self.lies[weight], in_terms=True)

    def keep_what_it_takes(self, takes: Value) -> None:
        """All that is kept: whole, or each device its slice, gathered again for backward."""
        kept = takes
        for axis in self.axes if self.again == FROM_SLICES else ():
            if self.lies[takes][axis.name] == WHOLE:
                self.lines = self.forward
                sliced = self.bring(kept, {**self.lies[kept], axis.name: along(POSITIONS)})
                gathered = Move(axis.name, sliced, kept, along(POSITIONS), WHOLE)
                self.backward.insert(0, gathered)
                kept = sliced
        self.lines = self.backward
        self.kept = {kept: None}

    def contribute(self, value: Value, cotangent: Value) -> None:
        if value.role is not Role.CONSTANT:
            self.contributed.setdefault(value, []).append(cotangent)

    def settled(self, value: Value, lies: Lies, in_terms: bool = False) -> Value:
        """A value's cotangent: what its uses contribute, summed, and moved to lie as it must.

        `in_terms`: one that is summed later, over the devices that have terms of it.
        """
        alike: dict[tuple[Lie, ...], list[Value]] = {}
        for cotangent in self.contributed[value]:
            alike.setdefault(tuple(self.lies[cotangent].values()), []).append(cotangent)
        sums = [self.total(value, terms, f"{i}" if i else "") for i, terms in enumerate(alike.values())]
        if in_terms and len(sums) == 1:
            has = self.lies[sums[0]]
            lies = {a: PARTIAL if (has[a], lie) == (PARTIAL, WHOLE) else lie for a, lie in lies.items()}
        return self.total(value, [self.bring(term, lies) for term in sums], " whole")

    def total(self, value: Value, terms: list[Value], name: str) -> Value:
        """The sum of cotangents that lie alike."""
        found = terms[0]
        for number, term in enumerate(terms[1:], 1):
            last = "" if number == len(terms) - 1 else f" {number}"
            makes = _cotangent(value, f"{name}{last}")
            self.emit(Operation(Does.ADD, (found, term), makes))
            found = makes
        return found

    def emit(self, operation: Operation) -> Value:
        """Write an operation on values that lie as they must."""
        self.lies[operation.makes] = {
            axis.name: result(operation, axis, *(self.lies[v][axis.name] for v in operation.reads))
            for axis in self.axes
        }
        self.write(operation)
        return operation.makes

    def pull(self, line: Operation, cotangent: Value) -> None:
        """From the cotangent of what an operation makes, those of what it reads."""
        if line.does is Does.ADD:
            for value in line.reads:
                self.contribute(value, cotangent)
            return
        for place, value in enumerate(line.reads):
            if value.role is Role.CONSTANT:
                continue
            makes = _cotangent(value, f" of {line.makes.name}")
            if line.does is Does.CONTRACT:
                other = self.restored(line.reads[1 - place])
                reads = (cotangent, other) if place == 0 else (other, cotangent)
                backward = Operation(Does.CONTRACT, reads, makes)
            elif line.does is Does.RENAME:
                back = tuple((new, old) for old, new in line.renamed)
                backward = Operation(Does.RENAME, (cotangent,), makes, renamed=back, backward=True)
            else:  # softmax knows its derivative from its result, other functions from their argument
                known = line.makes if line.function == "softmax" else value
                reads = (cotangent, self.restored(known))
                backward = replace(line, reads=reads, makes=makes, backward=True)
            self.contribute(value, self.emit(backward))

    # --------------------------------------------------------- what backward reads again
    def restored(self, value: Value) -> Value:
        """A value of forward, in backward: kept, or made again from what is kept."""
        if value.role is Role.WEIGHT or self.again in (ALL, FROM_SLICES) or value in self.back:
            return value
        line = self.made_by.get(value)
        if isinstance(line, Move) and line.collective == "all_gather" and not self.holds(line):
            self.restored(line.value)
            self.backward.append(line)
            self.back.add(value)
        elif isinstance(line, Operation) and self.is_made_again(line):
            for read in line.reads:
                self.restored(read)
            self.backward.append(line)
            self.back.add(value)
        elif value.role is not Role.CONSTANT or (value.width and not self.is_of_pairs(value)):
            self.kept[value] = None
        return value

    def holds(self, move: Move) -> bool:
        return next(axis.held for axis in self.axes if axis.name == move.axis)

    def is_of_pairs(self, value: Value) -> bool:
        return self.again == PAIRS and {"s", "u"} <= {*value.indices}

    def is_made_again(self, line: Operation) -> bool:
        """Norms always are, from their argument, which their own backward needs as well."""
        norm = line.does is Does.NORMALISE and line.function != "softmax"
        return norm or self.is_of_pairs(line.makes)


def _cotangent(value: Value, of: str = "") -> Value:
    """A value's cotangent: all of it, or that of a use or of a sum of some."""
    name, shared = f"d {value.name}{of}", f"d {value.plain_name}"
    return replace(value, name=name, role=Role.ACTIVATION, form_of=shared)


def _form(value: Value, lies: str) -> Value:
    """The same value, lying otherwise."""
    return replace(value, name=f"{value.name}|{lies}", form_of=value.plain_name)


def _move(value: Value, axis: str, before: Lie, after: Lie) -> Move:
    return Move(axis, value, _form(value, f"{axis}:{after}"), before, after)
