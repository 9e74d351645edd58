"""A6: what a layer holds between the two parts of its backward, in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from functools import cache
from itertools import product

from proofs.claim import claim
from proofs.costs.model_symbols import Symbols
from proofs.costs.ring_programs import programs_of_rings
from proofs.costs.value_lives import value_lives
from proofs.language.programs import GPT, LLAMA
from proofs.language.small_parts import kernels, talking_heads
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from spec.checking.programs import check_program
from spec.costs.lifetimes import live
from spec.costs.model_costs import elements, fullest_moment, waiting_bytes
from spec.derivation.programs import EVERYTHING, NOTHING, PAIRS, program_of
from spec.derivation.two_parts import gradients_last, multiplied
from spec.language.moves import Axis, Move
from spec.language.programs import Program
from spec.models.parts import head, layer
from spec.models.profiles import TEXTBOOK, realised
from spec.models.values import Builder, Part, Role, Value
from spec.numbers.arithmetic import Number
from spec.plans.model_strategies import MODEL_AXES

SAMPLES, POSITIONS, DEVICES, WIDTH = 2, 8, 2, 2
MESHES = ((), ("tp+sp",), ("cp",), ("cp", "tp+sp"))


@claim("A6")
def layers_hold_these_values_for_gradients_that_wait(k: Kernel) -> tuple[Theorem, ...]:
    """A GPT-like layer holds 32sbh bytes, sbh(8 + 24/n) with tensor parallelism.

    By hand, of 2 bytes each: what its matrices multiply, sbh three times and 4sbh, and the cotangents
    of what they make, sbh five times and 4sbh. Tensor parallelism cuts these but for what the two
    column-parallel products read and the cotangents of what the two row-parallel ones make; sequence
    parallelism cuts the former, too. A Llama-like layer holds bs(8h + 4d(a + kv) + 6f).
    (Claim A6; Qi et al., 2401.10241, table 1; the same rule as A1)
    """
    gpt = Symbols(k.part("gpt"), GPT, square=True)
    llama = Symbols(k.part("llama"), LLAMA)
    sbh, bsh, tokens = gpt.s * gpt.b * gpt.h, llama.b * llama.s * llama.h, llama.b * llama.s
    inner = tokens * (4 * llama.d * (llama.a + llama.kv) + 6 * llama.f)
    rows = (
        (gpt, "", 32 * sbh),
        (gpt, "tp", sbh * (8 + 24 / gpt.n)),
        (gpt, "tp+sp", sbh * (4 + 28 / gpt.n)),
        (llama, "", 8 * bsh + inner),
        (llama, "tp", 8 * bsh + inner / llama.n),
        (llama, "tp+sp", 4 * bsh + (4 * bsh + inner) / llama.n),
    )
    found = []
    for symbols, strategy, size in rows:
        program = check_program(gradients_last(symbols.program(strategy)))
        held = waiting_bytes(program, symbols.sizes, symbols.mesh(program))
        name = f"{strategy.replace('+', '_') or 'one_device'}_holds"
        found.append(symbols.k.prove(name, held == size))
    for axis in MODEL_AXES:
        check_program(gradients_last(gpt.program(axis)))
    for model, names, again in product((GPT, LLAMA), MESHES, (NOTHING, PAIRS, EVERYTHING)):
        program = program_of(layer(model), tuple(MODEL_AXES[name] for name in names), again)
        _require_lives(k, program)
        _require_needed(k, program)
    for part in (a_matrix_twice(), a_matrix_of_a_mean()):
        _require_needed(k, program_of(part, (Axis("a", stream="b"),)))
        if {weight.name for weight in multiplied(part)} != {w.name for w in part.weights} - {"scale"}:
            raise KernelError(f"{k.claim}: {multiplied(part)} are said to be its matrices")
    _require_fullest_in_rings(k)
    _require_overwritten(k)
    _require_overwritten_alone(k)
    _require_held_beside(k)
    return tuple(found)


def _require_lives(k: Kernel, program: Program) -> None:
    """Raise KernelError unless what is there while lines run is what they still use, turn by turn."""
    for each in (program, gradients_last(program)):
        lives = _require_alive(k, each)
        if not each.turns:
            _require_fullest(k, each, lives)


def _require_alive(k: Kernel, program: Program) -> list[set[Value]]:
    lives = value_lives(program)
    if live(program) != lives:
        raise KernelError(f"{k.claim}: other values live on {[axis.name for axis in program.axes]}")
    return lives


def _require_fullest_in_rings(k: Kernel) -> None:
    """The fullest moment of rings, of one device and of four, in turns and gathered at once."""
    for at_once, devices in product((False, True), (1, 4)):
        ring = replace(MODEL_AXES["cp"], at_once=at_once)
        program = gradients_last(program_of(layer(LLAMA), (ring,)))
        _require_fullest(k, program, value_lives(program), mesh={ring.name: devices})
    ring = MODEL_AXES["cp"]
    one_after_the_other = gradients_last(program_of(talking_heads("u"), (ring,)))
    sizes = dict.fromkeys("su", 12) | dict(zip("bhgrd", (2, 4, 2, 3, 5), strict=True))
    lives = _require_alive(k, one_after_the_other)
    _require_fullest(k, one_after_the_other, lives, sizes=sizes, mesh={ring.name: 3})
    for program in programs_of_rings():
        lives = _require_alive(k, program)
        for mesh in ({"a": 2, "b": 3}, {"a": 3, "b": 1}):
            _require_fullest(k, program, lives, sizes={"s": 12}, mesh=mesh)


def _require_needed(k: Kernel, program: Program) -> None:
    """Raise KernelError unless the first part of backward makes nothing but what it is to find needs:
    the cotangent that goes on, and gradients that need no product; and what is made again.
    """
    late = {program.gradients[weight] for weight in multiplied(program.part)}
    needed = {program.returns, *program.gradients.values()} - late
    first, _ = gradients_last(program).parts_of_backward
    for line in reversed(first):
        if line.makes in needed:
            needed |= {*line.reads}
        elif line not in program.forward:
            raise KernelError(f"{k.claim}: {line} is in the first part of backward, and may wait")


def a_matrix_twice() -> Part:
    """A part that multiplies two values by one matrix: its gradient is a sum of two products. And what
    comes of it by a gate, a product with a matrix of one column.
    """
    x, weight = Value("x", ("b", "h"), Role.STREAM), Value("weight", ("h", "f"), Role.WEIGHT)
    part = Builder("part", x)
    bent = part.apply("relu", x, replace(x, name="bent", role=Role.ACTIVATION))
    one, other = (part.contract(weight, of, Value(f"{of.name} up", ("b", "f"))) for of in (x, bent))
    gate = part.contract(x, Value("column", ("h",), Role.WEIGHT), Value("gate", ("b",)))
    both = part.add(one, other, Value("sum", ("b", "f")))
    return part.part(part.contract(both, gate, Value("y", ("b", "f"), Role.STREAM)))


def a_matrix_of_a_mean() -> Part:
    """A part whose matrix multiplies samples, and their sum, which is scaled: where samples are cut,
    one term of its gradient is summed over devices, and the other whole.
    """
    x, weight = Value("x", ("b", "h"), Role.STREAM), Value("weight", ("h", "f"), Role.WEIGHT)
    part, ones = Builder("part", x), Value("ones", ("b",), Role.CONSTANT)
    whole = part.contract(part.contract(x, ones, Value("sum", ("h",))), weight, Value("of_sum", ("f",)))
    scaled = part.contract(whole, Value("scale", ("f",), Role.WEIGHT), Value("scaled", ("f",)))
    up = part.contract(x, weight, Value("up", ("b", "f")))
    return part.part(part.contract(up, scaled, Value("y", ("b", "f"), Role.STREAM)))


def _require_overwritten(k: Kernel) -> None:
    """The same of a head whose loss is a kernel that overwrites logits: their cotangents take no room.

    A norm's result is read by a product, and not by the kernel: its cotangent has room of its own.
    """
    kernel = replace(TEXTBOOK, inside=frozenset({"raised"}))
    names = frozenset({"logits", "final_norm"})
    program = program_of(realised(head(LLAMA), replace(kernel, overwritten=names), WIDTH), ())
    cotangents = {value for value in program.lies if value.name.startswith("d logits")}
    _require_fullest(k, program, value_lives(program), cotangents)
    of_layer, inside = layer(LLAMA), replace(TEXTBOOK, inside=frozenset({"up"}))
    if multiplied(realised(of_layer, inside, WIDTH)) != multiplied(of_layer):
        raise KernelError(f"{k.claim}: gradients of a product inside a kernel do not wait")


def _require_overwritten_alone(k: Kernel) -> None:
    """Raise KernelError unless kernels overwrite what is kept as they read it, by all its cotangents;
    and what is merged takes no room, however it lies.
    """
    names = frozenset({"takes", "x", "y"})
    part = replace(kernels(), overwritten=names, merged=frozenset({"takes"}))
    tensor = MODEL_AXES["tp+sp"]
    of_x = {"d x", "d x of both_x", "d x of open_x"}
    for axes, again, x, other in (
        ((), NOTHING, of_x, set[str]()),
        ((tensor,), NOTHING, of_x, None),  # what it takes is kept in slices, and read whole
        ((replace(tensor, held=True),), NOTHING, of_x, {"d takes"}),
        ((), EVERYTHING, set[str](), set[str]()),
    ):
        program = program_of(part, axes, again)
        takes = {value.name for value in program.lies if value.plain_name == "d takes"}
        found = {value.name for value in program.overwriting}
        if found != x | (set() if other is None else takes - other):
            raise KernelError(f"{k.claim}: kernels on {axes} overwrite what they read by {found}")
        if "takes" in {value.plain_name for value in program.stored}:
            raise KernelError(f"{k.claim}: what is merged takes room on {axes}")
        in_place = {value for value in program.lies if value.name in found}
        _require_fullest(k, program, value_lives(program), in_place)


def three_matrices() -> Program:
    """A part of three products, of which the last one's input is gathered, in two parts of backward."""
    x = Value("x", ("b", "h"), Role.STREAM)
    part = Builder("part", x)
    for name, old, new in (("one", "h", "i"), ("two", "i", "f"), ("three", "f", "k")):
        role = Role.STREAM if name == "three" else Role.ACTIVATION
        weight = Value(f"{name}_weight", (old, new), Role.WEIGHT)
        x = part.contract(x, weight, Value(name, ("b", new), role))
    return gradients_last(program_of(part.part(x), (Axis("a", ("k",), "b"),)))


def _require_held_beside(k: Kernel) -> None:
    """The same of three matrices: what the second part begins with is held, and counted beside."""
    program = three_matrices()
    sizes = {"b": 4, "h": 1, "i": 10, "f": 10, "k": 2}
    _require_fullest(k, program, value_lives(program), sizes=sizes)


def _require_fullest(
    k: Kernel,
    program: Program,
    lives: list[set[Value]],
    in_place: Set[Value] = frozenset(),
    sizes: Mapping[str, Number] = GPT.sizes(SAMPLES, POSITIONS),
    mesh: Mapping[str, int] | None = None,
) -> None:
    """Raise KernelError unless the fullest moment is that of the most bytes of what lives.

    But for weights, their gradients, and what is kept for backward, or for its second part while that
    runs: these are counted by themselves; and for what is `in_place` of what is kept. Of what goes
    round a ring a second slice is there throughout its loop, or all are, if they are gathered at once.
    """
    mesh = mesh or {axis.name: DEVICES for axis in program.axes}
    of_turns = {**mesh} | {axis.turns: mesh[axis.name] for axis in program.axes if axis.ring}

    @cache
    def bytes_of(value: Value) -> Number:
        return value.width * elements(value, program.lies[value], sizes, of_turns)

    apart = {*program.part.weights, *program.gradients.values(), *program.kept, *in_place}
    first = len(program.forward) + len(program.backward) - program.waiting
    moments = [
        sum(map(bytes_of, here - apart - ({*program.held_between} if number >= first else set())))
        for number, here in enumerate(lives)
    ]
    at_once = {axis.name for axis in program.axes if axis.at_once}
    for move, numbers in _round(program):
        others = mesh[move.axis] - 1
        others = others if move.before.index and move.axis in at_once else min(others, 1)
        for number in numbers:
            moments[number] += others * bytes_of(move.makes)
    if fullest_moment(program, sizes, mesh) != max(moments):
        raise KernelError(f"{k.claim}: the fullest moment has {max(moments)} bytes")


def _round(program: Program) -> Iterator[tuple[Move, range]]:
    """What goes round a ring, and the lines of its loop, by their numbers."""
    start = 0
    for lines in (program.forward, *program.parts_of_backward):
        for name in program.turns:
            for body in program.loops(lines, name):
                moves = (line for line in map(lines.__getitem__, body) if isinstance(line, Move))
                here = range(start + body.start, start + body.stop)
                yield from ((move, here) for move in moves if move.turns == name and move.is_sent)
        start += len(lines)
