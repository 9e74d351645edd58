"""E10, F1: what `check` accepts does on devices what one device does, and so does recomputation.

Each line does one of a few things along each axis, whatever the names of its indices: its rules,
each of them a theorem. Axes compose: with the coordinates on other axes fixed, what a device has is
any value, so what holds along one axis holds of what the other axes leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from proofs.claim import claim
from proofs.language.damaged_programs import (
    damaged_programs,
    damaged_rings,
    with_less_kept,
    with_other_functions,
)
from proofs.language.program_lines import (
    ADD,
    BOTH,
    CONTRACT,
    FUNCTION,
    INT,
    LEFT,
    MERGED,
    NAMED,
    NO,
    REAL,
    RENAME,
    RIGHT,
    ROWS,
    SUMMED,
    R,
    Rule,
    S,
    contractions_have_transposes,
    proved,
)
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, BoolSort, BoolVal, DeclareSort, If, Implies, Or
from spec.checking.programs import check_program, computed
from spec.derivation.distribute import EVERYTHING, FROM_SLICES, NOTHING, PAIRS, distribute
from spec.devices.layouts import PARTIAL, WHOLE, Contraction, Layout, LayoutError, Lie, Lies, along
from spec.language.moves import COLLECTIVE, IN_TURNS, Axis, Move
from spec.language.programs import Program, of_cotangent, result
from spec.meaning.terms import Terms, differentiated, given_to
from spec.models.parts import layer, parts
from spec.models.transformer import (
    CAPPED,
    DENSE,
    DROPPED,
    STRAIGHT,
    USUAL,
    USUAL_NORMS,
    Latent,
    Transformer,
)
from spec.models.values import LOG_TOTAL, Builder, Does, Operation, Part, Role, Value
from spec.plans.model_strategies import MODEL_AXES

# one of each kind; sizes do not matter to what is derived
GPT = Transformer(1, 8, 4, 4, 2, 32, 16, positions=4, dropout=DROPPED)
LLAMA = Transformer(
    1, 8, 4, 2, 2, 32, 16, gated=True, function="silu", norm="rms_norm", biases=frozenset()
)
OLMO_2 = replace(LLAMA, norms=frozenset({"attention_out", "mlp_out", "heads"}))
GEMMA_3 = replace(LLAMA, norms=USUAL_NORMS | {"attention_out", "mlp_out", "head"}, capped=CAPPED)
BLOOM = replace(GPT, norms=USUAL_NORMS | {"words"}, positions=0, angles=False, distances=True)
FALCON = replace(GPT, norms=frozenset({"attention"}), parallel=True, positions=0)
WITH_EXPERTS = tuple(replace(model, experts=4, chosen=2) for model in (GPT, LLAMA))
DEEPSEEK = replace(
    WITH_EXPERTS[1],
    kv_heads=4,
    latent=Latent(4, 4, 2, 2),
    odds="sigmoid",
    shared=8,
    dense=8,
    kinds=(frozenset({DENSE}), USUAL),
)
OSS_BIASES = GPT.biases | {"router"}
GPT_OSS = replace(WITH_EXPERTS[1], biases=OSS_BIASES, sinks=True, clamped=True, windows=(4, 0))
LLAMA_4 = replace(
    WITH_EXPERTS[1],
    norms=USUAL_NORMS | {"turned"},
    tempered=True,
    odds="sigmoid",
    weighed_first=True,
    shared=8,
    kinds=(USUAL, frozenset({STRAIGHT})),
)
MODELS = (*(GPT, LLAMA), *WITH_EXPERTS, OLMO_2, GEMMA_3, BLOOM, FALCON, DEEPSEEK, GPT_OSS, LLAMA_4)
PARTS = tuple(dict.fromkeys(part for model in MODELS for part in parts(model)))
TURNS = Axis("turns", in_time=True)
AXES = tuple({replace(axis, held=held): None for axis in MODEL_AXES.values() for held in (False, True)})


# ------------------------------------------------------------------------- which rules
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
        return {replace(function, result=made.layout)}
    return {function, Rule(CONTRACT, cut_in if index else NO, layouts[:operands], made.layout)}


def _rules_of_shares(operation: Operation, lies: Sequence[Lie], made: Lie) -> set[Rule]:
    """Of a softmax of each turn's keys alone: it is made, or its log-sum-exp; or it is used linearly.

    Used in a product with one that is no such softmax, row by row: each row is there in the result.
    """
    keys, (value, *_) = along(operation.over), operation.reads
    if operation.does is Does.NORMALISE:
        shares = replace(keys, shares_of=value.name)
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
    closed = [replace(each, shares_of="") for each in (*lies, made)]
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
        known = len(olds) == len(news) or axis.stream in (lie.index, made.index)
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
    for line in program.lines:
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

    row = of("b", "i")
    operations = [
        Operation(Does.CONTRACT, (of("l", "b", "i"), of("r", "b", "i")), of("l", "r", "b")),
        Operation(Does.CONTRACT, (row, row), of("b")),
        Operation(Does.ADD, (row, row), row),
        Operation(Does.APPLY, (row,), row, "f"),
        Operation(Does.NORMALISE, (row,), row, "f", "i"),
        Operation(Does.APPLY, (row, row), row, "f", backward=True),
        Operation(Does.NORMALISE, (row, row), row, "f", "i", backward=True),
        Operation(Does.NORMALISE, (row,), of("b"), LOG_TOTAL, "i"),
        Operation(Does.NORMALISE, (row,), row, "softmax", "i"),
        Operation(Does.NORMALISE, (row, of("b")), row, "softmax", "i"),
        Operation(Does.NORMALISE, (row, row, of("b")), row, "softmax", "i", backward=True),
        Operation(Does.RENAME, (row,), of("u", "i"), renamed=(("b", "u"),)),
        Operation(Does.RENAME, (of("b", "s", "j"),), of("e", "c"), renamed=(("b", "c"), ("s", "c"))),
        Operation(Does.RENAME, (of("e", "c"),), of("b", "s"), renamed=(("c", "b"), ("c", "s"))),
    ]
    moves = (*COLLECTIVE.items(), *IN_TURNS.items())
    found = {Rule(name, NO, (before,), after) for (before, after), name in moves}
    axes = [*(Axis("axis", stream=index) for index in ("", "b", "s")), TURNS]
    for operation, axis in product(operations, axes):
        choices = [(WHOLE, PARTIAL, *map(along, value.indices)) for value in operation.reads]
        if axis.in_time:
            choices = [(*lies, *map(_open, lies[1:])) for lies in choices]
        for lies in product(*choices):
            try:
                made = result(operation, axis, *lies)
            except LayoutError:
                continue
            found |= rules_of(operation, axis, lies, made)
    return frozenset(found)


def _open(lie: Lie) -> Lie:
    """So, of a softmax of each turn's keys alone."""
    return replace(lie, shares_of="scores")


# ------------------------------------------------------------------------------ claims
@lru_cache(maxsize=1024)
def derived(part: Part, mesh: tuple[Axis, ...]) -> tuple[Program, ...]:
    """The programs of a part on some axes, without and with recomputation, each once."""
    found: list[Program] = []
    for again in (NOTHING, PAIRS, EVERYTHING, FROM_SLICES):
        program = distribute(part, mesh, again)
        if program not in found:
            found.append(program)
    return tuple(found)


def checked(part: Part, axes: Sequence[tuple[Axis, ...]]) -> set[Rule]:
    """The rules of the derived programs: accepted, with the results and gradients of one device."""
    terms, found = Terms(), set[Rule]()
    alone = differentiated(part, terms)
    for program in (program for mesh in axes for program in derived(part, tuple(mesh))):
        if computed(program, terms) != alone:
            raise KernelError(f"{part.name} on {program.axes}: not what one device computes")
        found |= rules_in(program)
    return found


def must_reject(accepts: Callable[..., object], *damaged: object) -> object:
    """What is said to be wrong. Raises KernelError if what is damaged is accepted."""
    try:
        accepts(*damaged)
    except LayoutError as error:
        return error.at
    raise KernelError(f"{accepts.__name__} accepts what is damaged")


def projection() -> Part:
    """Two products: what goes in and out is needed as it is to lie by nothing but the end."""
    takes, up, down = (
        Value(name, indices, role)
        for name, indices, role in (
            ("takes", ("b", "s", "h"), Role.STREAM),
            ("up", ("h", "f"), Role.WEIGHT),
            ("down", ("f", "h"), Role.WEIGHT),
        )
    )
    part = Builder("projection", takes)
    wide = part.contract(takes, up, Value("wide", ("b", "s", "f")))
    return part.part(part.contract(wide, down, replace(takes, name="gives")))


@claim("E10")
def derived_programs_do_what_one_device_does(k: Kernel) -> tuple[Theorem, ...]:
    """Derived programs are accepted, and every line does on devices what it does on whole values.

    Of embedding, layer and head, on every model axis, with and without recomputation; and whatever
    the typing rule accepts of an operation is right. Where each line keeps to a rule, all that is
    made lies as it is said to: by induction over lines, of any program. On whole values they are
    the model and its gradients by the chain rule. A copy's gradient sums over the outputs of its
    uses: where these are cut it is partial, by the rule of summed indices, and the all-reduce of
    its terms is the whole gradient. The turns of a ring are an axis, with one rule more: a softmax
    of each turn's keys alone, what is linear in it, and their merge (F2). A layer on a ring, and
    two products on every axis, are rejected without any one of their moves, and with slices of a
    gradient where the weight is whole: what a program gives, returns and leaves as gradients is
    asked for.
    (Claim E10; Megatron-LM 1909.08053 section 3; claims R1-R3)
    """
    needed = {*accepted_rules()}
    for part in PARTS:
        needed |= checked(part, [(), *((axis,) for axis in AXES)])
    ring = distribute(layer(LLAMA), (MODEL_AXES["cp"],))
    sliced = distribute(layer(GPT), (MODEL_AXES["tp+sp"],))
    for damaged in (*damaged_rings(ring), *with_less_kept(sliced)):
        must_reject(check_program, damaged)
    for line, damaged in (*with_other_functions(ring), *with_other_functions(sliced)):
        if must_reject(check_program, damaged) != line:
            raise KernelError(f"{line}: another line is said to be wrong")
    for axis in AXES:
        for damaged in damaged_programs(distribute(projection(), (axis,))):
            must_reject(check_program, damaged)
    return (
        *(proved(k.part(str(rule)), rule) for rule in sorted(needed, key=str)),
        contractions_have_transposes(k.part("transposes")),
        _lines_compose(k.part("lines")),
    )


@claim("F1")
def recomputed_values_are_the_values(k: Kernel) -> tuple[Theorem, ...]:
    """What backward makes again from what is kept, by forward's own lines, is what forward made.

    For any number of lines, any operations, and any choice of what is kept. The derived programs with
    recomputation are accepted, make again by forward's lines, and find the gradients that the
    programs without it find. (Claim F1; 1604.06174, 2205.05198 section 5)
    """
    for part, axis in product(PARTS, AXES):
        _same_gradients(part, axis)
    return (_made_again(k),)


def _same_gradients(part: Part, axis: Axis) -> None:
    terms = Terms()
    plain, *others = derived(part, (axis,))
    gradients = computed(plain, terms)
    for program in others:
        made = {line.makes: line for line in program.forward}
        if any(line != made.get(line.makes, line) for line in program.backward):
            raise KernelError(f"{part.name} on {axis.name}: made again by another line")
        if computed(program, terms) != gradients:
            raise KernelError(f"{part.name} on {axis.name}: other gradients with recomputation")


def _made_again(k: Kernel) -> Theorem:
    """Lines read what earlier lines made; what comes in is a line that is kept."""
    line = k.integers("line")
    does = k.function("does", INT, REAL, REAL, REAL)
    made, again = (k.function(name, INT, REAL) for name in ("made", "again"))
    reads = [k.function(name, INT, INT)(line) for name in ("first", "second")]
    kept = k.function("kept", INT, BoolSort())(line)
    forward = k.suppose(
        "forward", [line], Or(kept, made(line) == does(line, *(made(read) for read in reads)))
    )
    anew = does(line, *(again(read) for read in reads))
    backward = k.suppose("backward", [line], again(line) == If(kept, made(line), anew))
    same = again(line) == made(line)
    return _of_every_line(k, "made_again_is_made", line, same, kept, reads, [forward, backward])


def _lines_compose(k: Kernel) -> Theorem:
    """Where each line keeps to a rule, all that a program makes lies as it is said to.

    A rule is of any values: where what a line reads lies so, so does what it makes of that.
    """
    line, (value, has, way) = k.integers("line"), map(DeclareSort, ("Value", "Has", "Way"))
    whole, held, lies = (
        k.function(name, INT, sort) for name, sort in (("whole", value), ("held", has), ("lies", way))
    )
    so = k.function("lies_so", way, has, value, BoolSort())
    does = k.function("does", INT, value, value, value)
    does_on = k.function("does_on_devices", INT, has, has, has)
    reads = [k.function(name, INT, INT)(line) for name in ("first", "second")]
    comes_in = k.function("comes_in", INT, BoolSort())(line)
    x, y = (k.constant(name, value) for name in ("x", "y"))
    here, there = (k.constant(name, has) for name in ("x_here", "y_here"))
    read_so = And(*(so(lies(r), h, v) for r, h, v in zip(reads, (here, there), (x, y), strict=True)))
    made_so = so(lies(line), does_on(line, here, there), does(line, x, y))
    rule = k.suppose(
        "each_line_keeps_to_a_rule",
        [line, x, y, here, there],
        Or(comes_in, Implies(read_so, made_so)),
    )
    right = so(lies(line), held(line), whole(line))
    begins = k.suppose("what_comes_in_lies_so", [line], Implies(comes_in, right))
    one, many = (
        k.suppose(name, [line], Or(comes_in, of(line) == function(line, *map(of, reads))))
        for name, of, function in (
            ("one_device_runs_the_lines", whole, does),
            ("devices_run_the_lines", held, does_on),
        )
    )
    read = {"x": whole(reads[0]), "y": whole(reads[1])}
    read_here = {"x_here": held(reads[0]), "y_here": held(reads[1])}
    facts = [begins, one, many, rule.at(**read, **read_here)]
    return _of_every_line(k, "what_is_made_lies_so", line, right, comes_in, reads, facts)


def _of_every_line(
    k: Kernel, name: str, line: Any, said: Bool, first: Bool, reads: Sequence[Any], facts: list[Theorem]
) -> Theorem:
    """What is so of a line if it is of those that it reads is so of all: by induction over them.

    `first`: whether it reads none.
    """
    other = k.integers("other")
    before = And(*(And(read >= 0, read < line) for read in reads))
    earlier = k.suppose("lines_read_earlier_ones", [line], Or(first, before))
    alike, start, then = k.recursion(
        "so_far", [], line, BoolVal(True), lambda previous: And(previous(), said)
    )
    one = k.induct(
        "one_of_those",
        line,
        Implies(And(alike(line), other >= 0, other < line), substitute(said, (line, other))),
        step=[then],
    )
    of_reads = [one.at(other=read) for read in reads]
    every = k.induct(
        "all_before_are_so",
        line,
        alike(line),
        base=[start],
        step=[then, *of_reads, earlier, *facts],
    )
    # before the first, none is read
    return k.prove(name, said, [line >= 0], [every.at(line=line + 1), then])
