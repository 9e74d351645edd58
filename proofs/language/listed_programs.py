"""E10: a run of the checker leaves a theorem, of programs that are listed.

The lines of a program, and how the checker finds that what they make lies, are formulas; that each line
is accepted is proved of these, and so all that is made lies as it is said to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from proofs.checking.symbols import INT
from proofs.language.program_lines import (
    ADD,
    COMES_IN,
    CONTRACT,
    FUNCTION,
    KINDS,
    LEAVE,
    LIE_OF,
    READ_TWO,
    RENAME,
)
from proofs.language.program_rules import LINE_OF
from proofs.language.program_runs import ProgramRuns
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, Implies, IntVal, Not
from spec.devices.layouts import PARTIAL, WHOLE, Lie
from spec.language.moves import Axis, Move
from spec.language.programs import Program
from spec.meaning.terms import given_to
from spec.models.values import Does, Operation, Value

AT_A_TIME = 8  # lines
NO_INDEX = -1  # is cut


@dataclass(frozen=True)
class ListedLine:
    """What a line does, which lines it reads, how what it makes lies, which indices it goes over."""

    kind: str
    reads: tuple[int, ...]
    lie: Lie
    over: frozenset[str] = frozenset()


@dataclass
class ProgramListing:
    """The lines of a program along one of its axes; what comes in is a line that reads none.

    What moves along another axis is a linear map, of elements that have one owner along this one.
    Raises KernelError for a program with a ring: what is of one turn is merged as F2 says.
    """

    program: Program
    axis: Axis
    lines: list[ListedLine] = field(default_factory=list)
    made: dict[Value, int] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)  # of the program's lines

    def __post_init__(self) -> None:
        if self.program.turns:
            raise KernelError(f"{self.program.part.name}: turns of a ring are not listed")
        for line in self.program.lines:
            number = self._of_move(line) if isinstance(line, Move) else self._of(line)
            self.made[line.makes] = number
            self.numbers.append(number)
        for value, lie in self._ends():
            self._add(LEAVE, [self._read(value)], lie)

    def lie(self, value: Value) -> Lie:
        return self.program.lies[value][self.axis.name]

    def _ends(self) -> Iterator[tuple[Value, Lie]]:
        """What is asked for at the end, and how it is to lie.

        What a part gives, as the next one takes it; what it returns, as a cotangent; a gradient as its
        weight, or in terms, if that is whole.
        """
        program, part = self.program, self.program.part
        yield program.gives, self.home(part.gives)
        if part.takes and program.returns:
            yield program.returns, self.home(part.takes)
        for weight, gradient in program.gradients.items():
            in_terms = self.lie(weight) == WHOLE and self.lie(gradient) == PARTIAL
            yield gradient, PARTIAL if in_terms else self.lie(weight)

    def home(self, value: Value) -> Lie:
        """How a value lies that parts hand on, and its cotangent."""
        return self.axis.home(value, self.program.part)

    def _start(self, value: Value) -> Lie:
        """How a value lies that comes in."""
        part = self.program.part
        if value == self.program.seed:
            return self.home(part.gives)
        if value in given_to(part):
            return self.axis.rest(value, part)
        return self.lie(value)

    def _read(self, value: Value) -> int:
        """The line that makes a value, or by which it comes in."""
        if value not in self.made:
            self.made[value] = self._add(COMES_IN, (), self._start(value))
        return self.made[value]

    def _add(self, kind: str, reads: Sequence[int], lie: Lie, over: Iterable[str] = ()) -> int:
        made = kind if kind in (COMES_IN, LEAVE) else LINE_OF[kind]
        both = (*reads, *reads)[:2]  # what reads one value reads it as both
        self.lines.append(ListedLine(made, both, lie, frozenset(over)))
        return len(self.lines) - 1

    def _of_move(self, line: Move) -> int:
        kind = line.collective if line.axis == self.axis.name else RENAME
        return self._add(kind, [self._read(line.value)], self.lie(line.makes))

    def _of(self, line: Operation) -> int:
        lie, reads = self.lie(line.makes), [self._read(value) for value in line.reads]
        if line.does is Does.ADD:
            return self._add(ADD, reads, lie)
        if line.does is Does.CONTRACT:
            read = {index for value in line.reads for index in value.indices}
            return self._add(CONTRACT, reads, lie, read - {*line.makes.indices})
        if line.does is Does.RENAME:
            return self._of_rename(line, reads, lie)
        if line.does is Does.APPLY and line.backward:  # the derivative, times the cotangent
            known = self._add(FUNCTION, [reads[1]], self.lie(line.reads[1]))
            return self._add(CONTRACT, [reads[0], known], lie)
        if len(reads) > 2 or lie == PARTIAL:
            raise KernelError(f"{line}: is not listed")
        return self._add(FUNCTION, reads, lie, {line.over} - {""})

    def _of_rename(self, line: Operation, reads: list[int], lie: Lie) -> int:
        """A linear map between elements of one owner; or a product with a matrix that is whole."""
        if self.lie(line.reads[0]) != lie:
            return self._add(RENAME, reads, lie)
        matrix = self._add(COMES_IN, (), WHOLE)
        return self._add(CONTRACT, [matrix, *reads], lie, {old for old, _ in line.renamed})


class Part(NamedTuple):
    """Some lines of a program; that they are so, what that means, and of which rules they are."""

    name: str
    lines: range
    is_so: Any
    means: Theorem
    rules: tuple[Theorem, ...]


class ListedPrograms(ProgramRuns):
    """Runs of programs that are listed. program_number: which it is; length: how many lines it has."""

    def __init__(self, k: Kernel) -> None:
        super().__init__(k)
        self.number, self.length = k.fixed("program_number", INT), k.fixed("length", INT)
        self.instances: dict[tuple[str, int, int], Theorem] = {}  # that programs have in common

    def of_listed(self, programs: Mapping[str, ProgramListing]) -> Theorem:
        """All that is made lies so, in each of the programs: all their lines are accepted."""
        t, length, is_listed = self.t, self.length, [self.number >= 0, self.number < len(programs)]
        parts = [self._parts(name, listing.lines) for name, listing in programs.items()]
        said = [Implies(self.number == q, self._is_so(of)) for q, of in enumerate(parts)]
        listed = self.k.suppose("programs_are_as_they_are_listed", [], And(*said))
        all_accepted = [self._all_accepted(q, of, listed) for q, of in enumerate(parts)]
        accepted = self.k.prove(
            "lines_of_listed_programs_are_accepted",
            self.are_accepted(length),
            is_listed,
            [listed, *all_accepted],
        )
        goal, (_, *given) = self.accepted_programs.goal, self.accepted_programs.given
        return self.k.prove(
            "what_listed_programs_make_lies_so",
            goal,
            [*is_listed, *(substitute(g, (t, length)) for g in given)],
            [self.accepted_programs.at(line=length), accepted],
        )

    def _parts(self, name: str, lines: Sequence[ListedLine]) -> list[Part]:
        """The lines of a program, so many at a time, and how what they read lies."""
        indices, found = sorted({line.lie.index for line in lines} - {""}), []
        for first in range(0, len(lines), AT_A_TIME):
            some = range(first, min(first + AT_A_TIME, len(lines)))
            made = sorted({*some}.union(*(lines[r].reads for r in some)))
            said = [self._lie_is(IntVal(r), lines[r].lie, indices) for r in made]
            said += [self._line_is(r, lines, indices) for r in some]
            of = f"{name}_from_{first}"
            is_so, means = self.k.define(f"lines_are_{of}", [], And(*said))
            rules = tuple(self._rule(r, lines, indices) for r in some)
            found.append(Part(of, some, is_so, means, rules))
        return found

    def _is_so(self, parts: Sequence[Part]) -> Bool:
        """A program has these lines, and no more."""
        return And(self.length == parts[-1].lines.stop, *(part.is_so() for part in parts))

    def _all_accepted(self, number: int, parts: Sequence[Part], listed: Theorem) -> Theorem:
        """All lines of a program are accepted, one after the other: each is an instance of a rule."""
        so_far = self.accepted_first
        of_program = self.k.prove(
            f"program_{number}_is_as_it_is_listed",
            self._is_so(parts),
            [self.number == number],
            [listed],
        )
        for part in parts:
            so_far = self.k.prove(
                f"lines_of_{part.name}_are_accepted",
                self.are_accepted(part.lines.stop),
                [self.number == number],
                [so_far, of_program, part.means, *part.rules, *map(self._next, part.lines)],
            )
        return so_far

    def _rule(self, number: int, lines: Sequence[ListedLine], indices: Sequence[str]) -> Theorem:
        """The rule that a line is an instance of."""
        line = lines[number]
        lies = [lines[read].lie for read in line.reads]
        cut = next((lie.index for lie in (*lies, line.lie) if lie.index), "")
        layouts = [lie.layout for lie in lies[: 2 if line.kind in READ_TWO else 1]]
        rule = self.rule(line.kind, layouts, line.lie.layout, cut in line.over)
        return self._instance(rule, number, indices.index(cut) if cut else NO_INDEX)

    def _next(self, number: int) -> Theorem:
        """Lines before the next one are accepted, if those before a line are, and it is."""
        return self._instance(self.accepted_next, number, NO_INDEX)

    def _instance(self, theorem: Theorem, number: int, index: int) -> Theorem:
        """What is said of a line, and an index that is cut: an instance for all programs."""
        key = theorem.name, number, index
        if key not in self.instances:
            at = {} if index == NO_INDEX else {"index": IntVal(index)}
            self.instances[key] = theorem.at(line=IntVal(number), **at)
        return self.instances[key]

    def _lie_is(self, r: Any, lie: Lie, indices: Sequence[str]) -> Bool:
        """How what a line makes lies."""
        along = [self.cut(r) == indices.index(lie.index)] if lie.index else []
        return And(self.lie(r) == LIE_OF[lie.layout], *along)

    def _line_is(self, number: int, lines: Sequence[ListedLine], indices: Sequence[str]) -> Bool:
        """What a line does and reads; over which indices, of those along which that is cut."""
        r, line = IntVal(number), lines[number]
        said = [self.kind(r) == KINDS[line.kind]]
        said += [of(r) == read for of, read in zip((self.first, self.second), line.reads, strict=False)]
        for index in sorted({lines[read].lie.index for read in line.reads} - {""}):
            over = self.over(r, IntVal(indices.index(index)))
            said.append(over if index in line.over else Not(over))
        return And(*said)
