"""Of which rules the lines of a program are instances; that these are accepted is proved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from proofs.language.program_lines import (
    ADD,
    CONTRACT,
    FUNCTION,
    MOVES,
    RENAME,
    ProgramLines,
)
from proofs.trusted.kernel import KernelError, Theorem
from spec.devices.layouts import PARTIAL, WHOLE, Contraction, Layout, LayoutError, Lie, Lies, along
from spec.language.moves import COLLECTIVE, IN_TURNS, Axis, Move
from spec.language.programs import Program, of_cotangent, result
from spec.meaning.terms import given_to
from spec.models.values import LOG_TOTAL, Does, Operation, Value

R, S, P = Layout
LEFT, RIGHT, BOTH, SUMMED = "left", "right", "both", "summed"  # what has an index that is kept, or not
ROWS, NAMED, NO = "rows", "named", ""  # needed whole; given another name; nothing is cut
MERGE = "merge"  # a softmax of each turn's keys alone, what is linear in it, and their merge
LINE_OF = {move: move for move in (*MOVES, CONTRACT, ADD, FUNCTION, RENAME)} | {
    IN_TURNS[way]: move for way, move in COLLECTIVE.items() if way in IN_TURNS
}  # what a ring does in turns is a collective
TURNS = Axis("turns", in_time=True)
TOTAL = Lie(P, shares_of="scores", log_total=True)


class Rule(NamedTuple):
    """What a line does along one axis: which part the cut index has in it, and how values lie."""

    does: str
    cut: str
    lies: tuple[Layout, ...]
    result: Layout

    def __str__(self) -> str:
        lies = "_".join(lie.value.lower() for lie in self.lies)
        cut = f"_cut_{self.cut}" if self.cut else ""
        return f"{self.does}{cut}_of_{lies}_is_{self.result.value.lower()}"


MERGED = Rule(MERGE, ROWS, (S,), R)  # claim F2, turn by turn


def rule_is_accepted(l: ProgramLines, rule: Rule) -> Theorem:
    """An instance of a rule is accepted. Raises KernelError if it is not.

    A function reads an operand once or twice.
    """
    if rule.does not in LINE_OF:
        raise KernelError(f"{rule}: no line does that")
    lies = rule.lies if len(rule.lies) > 1 or rule.does != FUNCTION else rule.lies * 2
    return l.rule(LINE_OF[rule.does], lies, rule.result, rule.cut in (SUMMED, ROWS))


def rules_of(operation: Operation, axis: Axis, lies: Sequence[Lie], made: Lie) -> set[Rule]:
    """What an operation needs to be right along an axis. Raises KernelError for other forms."""
    values = (*operation.reads, operation.makes)
    for value, lie in zip(values, (*lies, made), strict=True):
        if lie.index not in ("", *value.indices):
            raise KernelError(f"{operation}: {value} cannot lie {lie}")
    if operation.does is Does.RENAME:
        return {_rule_of_rename(operation, axis, lies[0], made)}
    if any(lie.shares_of for lie in (*lies, made)):
        return _rules_of_shares(operation, lies, made)
    cut = {lie.index for lie in (*lies, made)} - {""}
    if len(cut) > 1:
        raise KernelError(f"{operation}: one axis cuts {' and '.join(sorted(cut))}")
    index, layouts = "".join(cut), tuple(lie.layout for lie in lies)
    if operation.does is Does.CONTRACT:
        parts_of = _parts_of_indices(operation.contraction)
        return {Rule(CONTRACT, parts_of[index] if index else NO, layouts, made.layout)}
    operands = 1 + operation.backward if operation.does is Does.NORMALISE else len(lies)
    rows = {*operation.reads[0].indices} - {operation.over}
    of_rows = [operation.makes] if operation.function == LOG_TOTAL else []
    of_rows += operation.reads[operands:]
    of_elements = [value for value in values if value not in of_rows]
    alike = len({frozenset(value.indices) for value in of_elements}) == 1
    if not alike or any({*value.indices} != rows for value in of_rows):
        raise KernelError(f"{operation}: not element by element")
    if operation.does is Does.ADD:
        return {Rule(ADD, BOTH if index else NO, layouts, made.layout)}
    # what has a number for each row at hand goes element by element
    cut_in = ROWS if index and index == operation.over and operands == len(lies) else BOTH
    known = layouts[operands - 1]  # what the function, or its derivative, is computed from
    function = Rule(FUNCTION, cut_in if known is S else NO, (known,), known)
    if not operation.backward:
        return {function._replace(result=made.layout)}
    return {function, Rule(CONTRACT, cut_in if index else NO, layouts[:operands], made.layout)}


def _rules_of_shares(operation: Operation, lies: Sequence[Lie], made: Lie) -> set[Rule]:
    """Of a softmax of each turn's keys alone: it is made, or its log-sum-exp; or it is used linearly.

    Used in a product with one that is no such softmax, row by row: each row is there in the result.
    """
    keys, (value, *_) = along(operation.over), operation.reads
    if operation.does is Does.NORMALISE:
        shares = keys._replace(shares_of=value.name)
        if operation.function == LOG_TOTAL:
            shares = Lie(Layout.PARTIAL, shares_of=value.name, log_total=True)
        if [*lies] != [keys] or operation.backward or made != shares:
            raise KernelError(f"{operation}: is no softmax of a turn's keys")
        return {MERGED}
    open_ones = [(v, lie) for v, lie in zip(operation.reads, lies, strict=True) if lie.shares_of]
    if operation.does is not Does.CONTRACT or len(open_ones) != 1:
        raise KernelError(f"{operation}: is not linear in one softmax of a turn's keys")
    ((value, lie),) = open_ones
    if lie.log_total or made.shares_of != lie.shares_of or made.log_total:
        raise KernelError(f"{operation}: its result is of another softmax")
    if not {*value.indices} - {lie.index} <= {*operation.makes.indices}:
        raise KernelError(f"{operation}: rows of a softmax are summed over")
    closed = [each._replace(shares_of="") for each in (*lies, made)]
    return {MERGED} | rules_of(operation, TURNS, closed[:-1], closed[-1])


@lru_cache(maxsize=1024)
def _parts_of_indices(contraction: Contraction) -> dict[str, str]:
    """The part that each index has in a contraction. Raises KernelError for one that has none."""
    # in left, in right, in the result
    known = {(1, 0, 1): LEFT, (0, 1, 1): RIGHT, (1, 1, 1): BOTH, (1, 1, 0): SUMMED}
    sides = (contraction.left, contraction.right, contraction.out)
    found = {}
    for index in (i for side in sides for i in side):
        place = tuple(index in side for side in sides)
        if place not in known:
            raise KernelError(f"{contraction}: {index} is neither kept nor summed over")
        found[index] = known[place]
    return found


def _rule_of_rename(operation: Operation, axis: Axis, lie: Lie, made: Lie) -> Rule:
    """A rename is linear: an element is one of the value's, or the sum of those of several slots."""
    renamed = operation.renamed
    if lie.layout is S and lie != made:
        olds, news = ({pair[side] for pair in renamed} for side in (0, 1))
        # where several indices become one, or one several, owners are those of the axis's own
        known = len(olds) == len(news)
        known |= axis.stream == (lie.index if len(olds) > len(news) else made.index)
        if (lie.index, made.index) not in renamed or not known:
            raise KernelError(f"{operation}: {lie} does not become {made}")
        return Rule(RENAME, NAMED, (S,), made.layout)
    return Rule(CONTRACT, RIGHT if lie.layout is S else NO, (R, lie.layout), made.layout)


def rules_in(program: Program) -> set[Rule]:
    """Those of every line of a program, along every axis, of values that lie as the program says."""
    found: set[Rule] = set()
    part, lies = program.part, program.lies
    starts = {v: {a.name: a.rest(v, part) for a in program.every_axis} for v in given_to(part)}
    starts[program.seed] = of_cotangent(lies[program.gives])
    if any(lies[value] != start for value, start in starts.items()):
        raise KernelError(f"{part.name}: starts from values that lie otherwise")
    for line in (*program.forward, *program.backward):
        if isinstance(line, Move):
            before = lies[line.value]
            moved = before[line.axis].plain == line.before != line.after
            after = {**before, line.axis: line.after, **_in_turns(line, before)}
            if not moved or lies[line.makes] != after:
                raise KernelError(f"{line}: does not move it there")
            rule = Rule(line.collective, NO, (line.before.layout,), line.after.layout)
            found.add(MERGED if line.by else rule)
            continue
        for axis in program.every_axis:
            reads = [lies[value][axis.name] for value in line.reads]
            made = result(line, axis, *reads)
            if lies[line.makes][axis.name] != made:
                raise KernelError(f"{line}: is said to lie {lies[line.makes][axis.name]}, not {made}")
            found |= rules_of(line, axis, reads, made)
    return found


def _in_turns(line: Move, before: Lies) -> Lies:
    """How a value that goes round a ring, or is sent home, lies along the turns of that."""
    if not line.in_turns or line.axis == line.turns:
        return {}
    begins = line.after == WHOLE
    needed, after = (WHOLE, line.before) if begins else (line.after, WHOLE)
    if before[line.turns] != needed:
        raise KernelError(f"{line}: is not of these turns")
    return {line.turns: after}


@lru_cache(maxsize=1)
def accepted_rules() -> frozenset[Rule]:
    """All moves, and all that is accepted of an operation of each kind with an index in each part."""

    def of(*indices: str) -> Value:
        return Value("value", indices)

    row, rows = of("b", "i"), of("b", "s", "i")
    operations = [
        Operation(Does.CONTRACT, (of("l", "b", "i"), of("r", "b", "i")), of("l", "r", "b")),
        Operation(Does.CONTRACT, (row, row), of("i")),
        Operation(Does.CONTRACT, (row, row), row),
        Operation(Does.ADD, (row, row), row),
        Operation(Does.APPLY, (row,), row, "f"),
        Operation(Does.NORMALISE, (row,), row, "f", "i"),
        Operation(Does.APPLY, (row, row), row, "f", backward=True),
        Operation(Does.NORMALISE, (row, row), row, "f", "i", backward=True),
        Operation(Does.NORMALISE, (row,), of("b"), LOG_TOTAL, "i"),
        Operation(Does.NORMALISE, (row,), row, "softmax", "i"),
        Operation(Does.NORMALISE, (row, of("b")), row, "softmax", "i"),
        Operation(Does.NORMALISE, (rows, rows, of("b", "s")), rows, "softmax", "i", backward=True),
        Operation(Does.RENAME, (row,), of("u", "i"), renamed=(("b", "u"),)),
        Operation(Does.RENAME, (of("b", "c", "j"),), of("e", "s"), renamed=(("c", "s"), ("b", "s"))),
        Operation(Does.RENAME, (of("e", "c"),), of("b", "s"), renamed=(("c", "b"), ("c", "s"))),
    ]
    moves = (*COLLECTIVE.items(), *IN_TURNS.items())
    found = {Rule(name, NO, (before,), after) for (before, after), name in moves}
    axes = [*(Axis("axis", stream=index) for index in ("", "b", "s")), TURNS]
    for operation, axis in product(operations, axes):
        choices = [(WHOLE, PARTIAL, *map(along, value.indices)) for value in operation.reads]
        if axis.in_time:
            choices = [(*lies, *map(_open, lies[1:]), TOTAL) for lies in choices]
        for lies in product(*choices):
            try:
                made = result(operation, axis, *lies)
            except LayoutError:
                continue
            is_cut = operation.over and along(operation.over) in lies
            beside = lies[1 + operation.backward :] if operation.function else ()
            if not axis.in_time and (is_cut or {*beside} - {lies[0]}):
                raise KernelError(f"{operation}: accepted, and its operands lie as {lies}")
            found |= rules_of(operation, axis, lies, made)
    return frozenset(found)


def _open(lie: Lie) -> Lie:
    """So, of a softmax of each turn's keys alone."""
    return lie._replace(shares_of="scores")
