"""A model on several devices: from what each axis cuts, the collectives follow.

Weights stay where an axis puts them, what layers hand on (the stream) lies where it says, and by the
layout rule everything else comes out to lie somewhere. What then lies otherwise than the next operation
needs it is moved: that is all the communication of tensor, sequence, context and expert parallelism.
Where an axis has a ring, what would be gathered goes round it, and its turns are an axis in time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from spec.derivation.needs import needs_of, within_stream
from spec.devices.layouts import PARTIAL, WHOLE, Layout, LayoutError, Lie, Lies, along
from spec.language.moves import Axis, Move, in_full_round, move_of, with_turns
from spec.language.programs import Line, Program, of_cotangent, result
from spec.language.turns import arranged, is_in_turns
from spec.models.profiles import NORM_FUNCTIONS
from spec.models.values import FULL, LOG_TOTAL, Does, Operation, Part, Role, Value, cotangent_of, formed
from spec.plans.model_strategies import POSITIONS

# what is made again for backward, rather than kept
NOTHING, PAIRS, EVERYTHING, FROM_SLICES = "none", "attention", "all", "sliced"


@lru_cache(maxsize=1024)
def program_of(
    part: Part, axes: tuple[Axis, ...], again: str = NOTHING, names: frozenset[str] = NORM_FUNCTIONS
) -> Program:
    """The part, forward and backward, with the moves that the layout rule asks for.

    `again`: what backward computes again from what is kept: nothing but some functions and values, by
    their `names`; what has an element for each pair of tokens; everything, from what the part takes; or
    that, kept in slices. A value of no width is inside a kernel: it is never kept. A softmax inside one
    is made again from its log-sum-exp (arXiv 2205.14135, section 3.1).
    """
    work = _Work(part, axes, again, names)
    work.go_forward()
    work.go_backward()
    return Program(
        *(part, work.axes, tuple(work.forward), tuple(work.backward)),
        *(work.now[part.gives], work.seed, work.returns, work.gradients),
        tuple(work.kept | dict.fromkeys(work.stored(part.stores))),
        work.lies,
    )


class _Work:
    """A program while it is written. `now` is the form in which a value is at hand."""

    def __init__(self, part: Part, axes: tuple[Axis, ...], again: str, names: frozenset[str]) -> None:
        self.part, self.axes, self.every_axis = part, axes, with_turns(axes)
        self.names = names
        self.turns = tuple(axis.name for axis in self.every_axis if axis.in_time)
        self.again = again if part.takes or again == PAIRS else NOTHING  # from samples, nothing is
        self.forward: list[Line] = []
        self.backward: list[Line] = []
        self.lines = self.forward  # those that are being written
        self.lies: dict[Value, Lies] = {}
        self.now: dict[Value, Value] = {}
        self.made_by: dict[Value, Line] = {}
        self.contributed: dict[Value, list[Value]] = {}  # to each value's cotangent
        self.back = {*part.weights}  # at hand in backward: what is made again, too
        self.in_turn: dict[Value, Value] = {}  # made again in each turn of backward, and as what
        self.log_totals: dict[str, Value] = {}  # of scores whose softmax is made turn by turn
        self.products: dict[str, Value] = {}  # of what such a softmax gives with its cotangent
        self.inside: dict[Value, Operation] = {}  # the softmax that a kernel's value is linear in
        self.kept: dict[Value, None] = {}
        self.gradients: dict[Value, Value] = {}
        self.seed: Value = part.gives
        self.returns: Value | None = None

    # --------------------------------------------------------------- where values lie
    def homes(self, value: Value) -> Lies:
        return {axis.name: axis.home(value, self.part) for axis in self.every_axis}

    def bring(self, value: Value, lies: Lies) -> Value:
        """The value, lying so: moved there, once for all who need it; what makes it smaller first."""
        while True:
            has = self.lies[value]
            moves = [*self.moves(value, {axis: lie for axis, lie in lies.items() if has[axis] != lie})]
            if not moves:
                return value
            move, makes = min(self.inner_first(value, moves), key=lambda found: found[0].rank)
            if move.makes not in self.lies:
                self.lies[move.makes] = {**has, **makes}
                self.write(move)
            value = move.makes

    def inner_first(self, value: Value, moves: list[tuple[Move, Lies]]) -> list[tuple[Move, Lies]]:
        """What lies at home leaves it along the inner axis first; it comes back along the outer one."""
        others = [found for found in moves if not found[0].in_turns]
        lie = others[0][0].before if others else WHOLE
        if not lie.index or lie not in self.homes(value).values():
            return moves
        return [*(found for found in moves if found[0].in_turns), *others[::-1]]

    def moves(self, value: Value, lies: Lies) -> Iterator[tuple[Move, Lies]]:
        """Moves that bring a value to lie so, and how it lies then along what they change."""
        has = self.lies[value]
        rings = {axis.turns: axis.name for axis in self.axes if axis.ring}
        ends = [turns for turns in self.turns[::-1] if turns in lies and has[turns] != WHOLE]
        begins = [turns for turns in self.turns if turns in lies and has[turns] == WHOLE]
        for turns in (*ends, *begins):  # the inner loop begins last and ends first
            axis, before, after = rings[turns], has[turns], lies[turns]
            if before.layout is Layout.PARTIAL:
                by = self.total_for(value, before.shares_of) if before.shares_of else None
                yield move_of(value, turns, before.plain, after, in_turns=True, by=by), {turns: after}
            else:
                lie = lies.get(axis, has[axis])
                yield move_of(value, axis, has[axis], lie, in_turns=True), {axis: lie, turns: after}
        taken = [name for turns in (*ends, *begins) for name in (turns, rings[turns])]
        for name, lie in lies.items():
            if name not in taken:
                yield move_of(value, name, has[name], lie), {name: lie}

    def total_for(self, value: Value, scores: str) -> Value:
        """The log-sum-exp by which a partial result merges: over the turns over which it is one."""
        merged = {turns: WHOLE for turns in self.turns if self.lies[value][turns] == WHOLE}
        return self.bring(self.log_totals[scores], merged)

    def write(self, line: Line) -> None:
        if isinstance(line, Move) and line.is_sent and not line.value.width:
            raise LayoutError(f"{line.value.plain_name} is inside a kernel, and would be sent")
        self.lines.append(line)
        if self.lines is self.forward:
            self.made_by[line.makes] = line

    # ------------------------------------------------------------------------ forward
    def go_forward(self) -> None:
        for value in (*self.part.weights, *([self.part.takes] if self.part.takes else [])):
            rests = {axis.name: axis.rest(value, self.part) for axis in self.every_axis}
            self.lies.setdefault(value, rests)
        for operation in self.part.operations:
            self.do(operation)
        gives = self.now[self.part.gives]
        self.now[self.part.gives] = self.bring(gives, self.homes(gives))
        self.forward[:] = arranged(self.forward, self.lies, self.turns)

    def do(self, operation: Operation) -> None:
        """Write an operation, after the moves that it needs; a partial result is summed at once."""
        reads = [self.now.get(value, value) for value in operation.reads]
        needed: list[Lies] = [{} for _ in reads]
        for axis in self.every_axis:
            used = within_stream(axis, needed, self.part)
            lies = needs_of(operation, reads, self.round(reads, needed, used), used, self.part)
            for needs, lie in zip(needed, lies, strict=True):
                needs[axis.name] = lie
        there = tuple(
            self.constant(value, lies) if value.role is Role.CONSTANT else self.bring(value, lies)
            for value, lies in zip(reads, needed, strict=True)
        )
        line = operation.on(there, operation.makes)
        makes = self.emit(line)
        made = self.lies[makes]
        self.note_inside(line)
        if operation.does is Does.NORMALISE and (makes in self.inside or self.open_in(makes)):
            self.log_totals[there[0].name] = self.total_of(operation, there[0])
        homes = self.homes(makes)
        stay = Layout.REPLICATED if makes.name in self.part.whole else Layout.SHARDED
        whole = {
            a: lie if lie.layout in (stay, Layout.REPLICATED) else homes[a] for a, lie in made.items()
        }
        self.now[makes] = self.bring(makes, whole)
        if whole != made:
            for scores in self.open_in(makes):
                self.bring(self.log_totals[scores], dict.fromkeys(self.turns, WHOLE))

    def note_inside(self, line: Operation) -> None:
        if line.function == "softmax" and not line.makes.width:
            self.inside[line.makes] = line
        elif line.does is Does.CONTRACT and not line.makes.width:
            found = (self.inside[value] for value in line.reads if value in self.inside)
            self.inside.update((line.makes, softmax) for softmax in found)

    def total_of(self, softmax: Operation, scores: Value) -> Value:
        """The log-sum-exp of scores, turn by turn, for each of their rows; the part may have it."""
        lines = (line for line in self.forward if isinstance(line, Operation))
        known = [line.makes for line in lines if (line.function, *line.reads) == (LOG_TOTAL, scores)]
        if known:
            return known[0]
        rows = tuple(index for index in scores.indices if index != softmax.over)
        makes = Value(f"{softmax.makes.name}_log_total", rows, width=FULL)
        return self.emit(Operation(Does.NORMALISE, (scores,), makes, LOG_TOTAL, softmax.over))

    def round(self, reads: list[Value], needed: list[Lies], axis: Axis) -> list[Lie]:
        """How operands lie along an axis; along turns, in slices if they would be gathered.

        Within another axis, whole if they are gathered along that one.
        """
        has = [self.lies[v][axis.name] if v in self.lies else WHOLE for v in reads]
        for ring in (ring for ring in self.axes if ring.ring and ring.turns == axis.name):
            for place, (value, needs) in enumerate(zip(reads, needed, strict=True)):
                cut = self.lies.get(value, {}).get(ring.name, WHOLE)
                if cut == along(ring.ring) and needs[ring.name] == WHOLE:
                    has[place] = cut
        for place, (value, needs) in enumerate(zip(reads, needed, strict=True)):
            cut = self.lies.get(value, {}).get(axis.copies_of, WHOLE)
            if cut.index and needs[axis.copies_of] == WHOLE:
                has[place] = WHOLE
        return has

    def constant(self, value: Value, lies: Lies) -> Value:
        """A constant that lies so. Every device has, or makes, the slice that it needs."""
        where = ",".join(f"{axis}:{lie}" for axis, lie in lies.items() if lie != WHOLE)
        named = formed(value, where) if where else value
        self.lies[named] = lies
        return named

    # ----------------------------------------------------------------------- backward
    def go_backward(self) -> None:
        self.lines = self.backward
        if self.again in (EVERYTHING, FROM_SLICES) and self.part.takes:
            forward = list(self.forward)
            self.keep_what_it_takes(self.part.takes)
            self.backward += forward
        start = len(self.backward)
        gives = self.now[self.part.gives]
        self.seed = cotangent_of(gives)
        self.lies[self.seed] = of_cotangent(self.lies[gives])
        self.contributed[gives] = [self.seed]
        for line in reversed(self.forward):
            if line.makes not in self.contributed:
                continue
            source = line.value if isinstance(line, Move) else line.makes
            in_terms = source.plain_name in self.part.of_weights  # summed after all micro-steps
            cotangent = self.settled(line.makes, self.dual(source), in_terms)
            if isinstance(line, Move):
                self.contribute(source, cotangent)
                if line.by and line.by != line.value and not self.open_in(line.makes):
                    scores = self.lies[source][line.axis].shares_of
                    self.products[scores] = self.product(line.makes, line.by.indices, cotangent)
            else:
                self.leave_kernel(line, cotangent)
                self.pull(line, cotangent)
        takes = self.part.takes
        self.returns = self.settled(takes, of_cotangent(self.lies[takes])) if takes else None
        for weight in self.part.weights:
            self.gradients[weight] = self.settled(weight, self.lies[weight], in_terms=True)
        self.backward[start:] = arranged(self.backward[start:], self.lies, self.turns)

    def leave_kernel(self, line: Operation, cotangent: Value) -> None:
        """A kernel's backward reads what it gave: its softmax needs the product of each row."""
        within = next((value for value in line.reads if value in self.inside), line.makes)
        softmax = self.inside.get(within)
        if softmax is None or not line.makes.width or self.open_in(line.makes):
            return
        if softmax.over not in line.makes.indices:
            rows = tuple(index for index in softmax.makes.indices if index != softmax.over)
            if not {*rows} <= {*line.makes.indices}:
                raise LayoutError(f"{within.plain_name} is inside a kernel, and its backward reads it")
            scores = softmax.reads[0].name
            self.products[scores] = self.product(line.makes, rows, cotangent)

    def product(self, output: Value, rows: tuple[str, ...], cotangent: Value) -> Value:
        """What a softmax gives, row by row, with its cotangent: known before any turn."""
        output, name = self.restored(output), f"product of {output.plain_name} with its cotangent"
        makes = Value(name, rows, width=FULL)
        return self.emit(Operation(Does.CONTRACT, (cotangent, output), makes))

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

    def dual(self, value: Value) -> Lies:
        """How a value's cotangent must lie: of one in turns in terms, summed on their way home."""
        lies = of_cotangent(self.lies[value])
        away = [axis.name for axis in self.axes if axis.ring and lies[axis.turns] != WHOLE]
        return {axis: PARTIAL if axis in away and lie == WHOLE else lie for axis, lie in lies.items()}

    def contribute(self, value: Value, cotangent: Value) -> None:
        self.contributed.setdefault(value, []).append(cotangent)

    def settled(self, value: Value, lies: Lies, in_terms: bool = False) -> Value:
        """A value's cotangent: what its uses contribute, summed, and moved to lie as it must.

        `in_terms`: one that is summed later, over devices that have terms of it. Turns' terms are
        summed at once.
        """
        lies = self.waiting(value, lies)
        alike: dict[tuple[Lie, ...], list[Value]] = {}
        for cotangent in self.contributed[value]:
            alike.setdefault(tuple(self.lies[cotangent].values()), []).append(cotangent)
        sums: list[Value] = []
        for i, terms in enumerate(alike.values()):
            has = self.lies[terms[0]]
            is_summed = any((has[a], lie) == (PARTIAL, WHOLE) for a, lie in lies.items())
            apart = self.part.apart and is_summed and not in_terms
            sums += terms if apart else [self.total(value, terms, f"{i}" if i else "")]
        if in_terms and len(sums) == 1:
            has, devices = self.lies[sums[0]], (axis.name for axis in self.axes)
            later = (a for a in devices if (has[a], lies[a]) == (PARTIAL, WHOLE))
            lies = {**lies, **dict.fromkeys(later, PARTIAL)}
        return self.total(value, [self.bring(term, lies) for term in sums], " whole")

    def waiting(self, value: Value, lies: Lies) -> Lies:
        """The same, but for terms over copies of a slice, which wait for the sum along its axis."""
        terms = [self.lies[cotangent] for cotangent in self.contributed[value]]
        copies = (axis for axis in self.axes if axis.copies_of and lies[axis.copies_of].index)
        wait = (
            axis.name
            for axis in copies
            if lies[axis.name] == WHOLE and all(has[axis.name] == PARTIAL for has in terms)
        )
        return {**lies, **dict.fromkeys(wait, PARTIAL)}

    def total(self, value: Value, terms: list[Value], name: str) -> Value:
        """The sum of cotangents that lie alike."""
        found = terms[0]
        for number, term in enumerate(terms[1:], 1):
            last = "" if number == len(terms) - 1 else f" {number}"
            found = self.emit(
                Operation(Does.ADD, (found, term), self.cotangent_for(value, f"{name}{last}"))
            )
        return found

    def cotangent_for(self, value: Value, of: str) -> Value:
        """That of a use of a value, or of a sum of some."""
        return in_full_round(cotangent_of(value, of), self.made_by.get(value), self.axes)

    def emit(self, operation: Operation) -> Value:
        """Write an operation on values that lie as they must."""
        self.lies[operation.makes] = {
            axis.name: result(operation, axis, *(self.lies[v][axis.name] for v in operation.reads))
            for axis in self.every_axis
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
            if value.role is Role.CONSTANT or value.plain_name in self.part.of_constants:
                continue
            again = " again" if value in line.reads[:place] else ""
            makes = self.cotangent_for(value, f" of {line.makes.name}{again}")
            if line.function == LOG_TOTAL:
                backward = Operation(Does.CONTRACT, (cotangent, self.shares_of(line)), makes)
            elif line.does is Does.CONTRACT:
                other = self.restored(line.reads[1 - place])
                reads = (cotangent, other) if place == 0 else (other, cotangent)
                backward = Operation(Does.CONTRACT, reads, makes)
            elif line.does is Does.RENAME:
                back = tuple((new, old) for old, new in line.renamed)
                backward = Operation(Does.RENAME, (cotangent,), makes, renamed=back, backward=True)
            else:
                product = [of for name, of in self.products.items() if name == line.reads[0].name]
                there = (cotangent, self.restored(line.known), *product)
                backward = replace(line, reads=there, makes=makes, backward=True)
            self.contribute(value, self.emit(backward))

    def shares_of(self, total: Operation) -> Value:
        """The softmax of scores: the derivative of their log-sum-exp."""
        (scores,), lines = total.reads, (op for op in self.forward if isinstance(op, Operation))
        known = [op.makes for op in lines if (op.function, op.reads[0]) == ("softmax", scores)]
        if known:
            return self.restored(known[0])
        name, of = f"shares of {scores.name}", f"shares of {scores.plain_name}"
        makes = replace(scores, name=name, role=Role.ACTIVATION, form_of=of)
        softmax = Operation(Does.NORMALISE, (self.restored(scores),), makes, "softmax", total.over)
        return makes if makes in self.lies else self.emit(softmax)

    def open_in(self, value: Value) -> set[str]:
        """The scores of which each turn's keys alone make the softmax that a value is linear in."""
        return {lie.shares_of for lie in self.lies[value].values()} - {""}

    # --------------------------------------------------------- what backward reads again
    def restored(self, value: Value) -> Value:
        """A value of forward, in backward: kept, or made again from what is kept."""
        all_again = self.again in (EVERYTHING, FROM_SLICES)
        line, gathered = self.made_by.get(value), self.is_gathered(value)
        anew = all_again and gathered and self.part.gathers_again
        if is_in_turns(self.lies[value], self.turns) or anew:
            return self.made_in_turn(value)
        if all_again or value in self.back:
            return value
        if isinstance(line, Move) and (gathered or value.role is Role.WEIGHT):
            self.restored(line.value)
            self.backward.append(line)
            self.back.add(value)
        elif isinstance(line, Operation) and self.is_made_again(line):
            reads = (*line.reads, *self.log_total(line))
            for read in reads:
                self.restored(read)
            self.backward.append(replace(line, reads=reads))
            self.back.add(value)
        elif value.role is not Role.CONSTANT or (value.width and not self.is_of_pairs(value)):
            self.kept[value] = None
        return value

    def made_in_turn(self, value: Value) -> Value:
        """A value of forward, made again in each turn of backward, or for it alone."""
        if value.role is Role.CONSTANT or value in self.in_turn:
            return self.in_turn.get(value, value)
        line = self.made_by[value]
        makes = replace(value, name=f"{value.name} again", form_of=value.plain_name)
        if isinstance(line, Move):
            self.lies[makes] = self.lies[value]
            self.write(replace(line, value=self.restored(line.value), makes=makes))
        else:
            reads = tuple(map(self.restored, (*line.reads, *self.log_total(line))))
            self.emit(replace(line, reads=reads, makes=makes))
        self.in_turn[value] = makes
        return makes

    def stored(self, names: frozenset[str]) -> list[Value]:
        some = () if self.again in (EVERYTHING, FROM_SLICES) else self.now.values()
        return [value for value in some if value.plain_name in names and value.width]

    def log_total(self, line: Operation) -> tuple[Value, ...]:
        """The log-sum-exp from which a softmax is made again, if it has one: of all turns."""
        known = line.does is Does.NORMALISE and self.log_totals.get(line.reads[0].name)
        return (self.bring(known, dict.fromkeys(self.turns, WHOLE)),) if known else ()

    def is_gathered(self, value: Value) -> bool:
        """Whether a value is gathered, and not kept so."""
        line = self.made_by.get(value)
        if not isinstance(line, Move) or line.collective != "all_gather":
            return False
        held = next(axis.held for axis in self.axes if axis.name == line.axis)
        return not held and value.plain_name not in self.part.held

    def is_of_pairs(self, value: Value) -> bool:
        """Whether pairs of tokens are made again; what heads share is given, and kept."""
        return self.again == PAIRS and {"s", "u"} <= {*value.indices} and not value.repeats

    def is_made_again(self, line: Operation) -> bool:
        """What is named, what is inside a kernel, and pairs of tokens, if they are not kept."""
        named = not self.names.isdisjoint((line.function, line.makes.name))
        return named or not line.makes.width or self.is_of_pairs(line.makes)
