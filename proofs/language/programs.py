"""E10, F1: what `check` accepts does on devices what one device does, and so does recomputation.

Each line does one of a few things along each axis, whatever the names of its indices: its rules,
each of them a theorem. Axes compose: along one, elements are those of all devices along the others,
and what moves along another is a linear map between elements of one owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

from proofs.checking.symbols import INT, REAL
from proofs.claim import claim
from proofs.language.damaged_programs import (
    damaged_programs,
    must_reject,
    with_another_added,
    with_less_kept,
    with_operands_turned,
    with_other_functions,
    with_other_gradients,
    without,
    without_made_again,
    without_moves,
)
from proofs.language.damaged_rings import (
    damaged_loops,
    damaged_rings,
    merged_in_slices,
    on_a_ring,
    with_a_total_made_again,
    with_rows_twice,
)
from proofs.language.equal_terms import require_equal_terms
from proofs.language.line_by_line import read_earlier, so_of_every_line
from proofs.language.listed_programs import ListedPrograms, ProgramListing
from proofs.language.made_again import require_mask_kept, require_named, require_pairs
from proofs.language.program_rules import MERGED, Rule, accepted_rules, rule_is_accepted, rules_in
from proofs.language.single_rules import (
    of_slices,
    require_fit,
    require_gathered_again,
    require_held_along,
    require_in_full,
    require_kept_as_gathered,
    require_loops,
    require_right,
    require_small_parts,
    require_sums,
    require_whole,
    with_gradients_last,
)
from proofs.language.small_parts import (
    ends_in_odds,
    log_totals,
    many_uses,
    odds_of_weights,
    of_rows,
    product_of_weights,
    projection,
    talking_heads,
    turned,
    used_twice,
)
from proofs.language.transposes import contractions_have_transposes
from proofs.models.context import shares_merge_turn_by_turn
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import BoolSort, If, Or
from spec.checking.programs import check_program, on_whole_values
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS, program_of
from spec.derivation.two_parts import gradients_last
from spec.language.moves import Axis
from spec.language.programs import Line, Program
from spec.meaning.terms import Terms, differentiated
from spec.models.parts import head, layer, parts
from spec.models.profiles import TEXTBOOK, realised
from spec.models.transformer import (
    CAPPED,
    DENSE,
    DROPPED,
    STRAIGHT,
    USUAL,
    USUAL_NORMS,
    Latent,
    Transformer,
    with_masks,
)
from spec.models.values import FULL, LOG_TOTAL, Operation, Part, Role
from spec.plans.model_strategies import MODEL_AXES, copies_within

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
ON_EVERY_AXIS = GPT, LLAMA, *WITH_EXPERTS
MODELS = (*ON_EVERY_AXIS, OLMO_2, GEMMA_3, BLOOM, FALCON, DEEPSEEK, GPT_OSS, LLAMA_4)
HOLDING = "tp+sp", "cp-all-gather"  # axes that gather in forward what backward reads
AXES = (*MODEL_AXES.values(), *(replace(MODEL_AXES[name], held=True) for name in HOLDING))
AGAIN = NOTHING, PAIRS, EVERYTHING, FROM_SLICES
TENSOR, RING = MODEL_AXES["tp+sp"], MODEL_AXES["cp"]
OF_EACH_KIND = TENSOR, RING, MODEL_AXES["ep"]
PARTS = {part: AXES for model in ON_EVERY_AXIS for part in parts(model)}
FURTHER = {  # tried on these, and made again on the first alone: the tests try all
    part: OF_EACH_KIND for model in MODELS for part in parts(model) if part not in PARTS
}
OTHER_RING, OTHER_TENSOR = (replace(axis, name=f"other {axis.name}") for axis in (RING, TENSOR))
THREE = MODEL_AXES["dp"], replace(TENSOR, held=True), MODEL_AXES["cp-all-gather"]
SEVERAL = (  # axes at once
    (RING, OTHER_RING),
    (RING, TENSOR, copies_within(TENSOR)),
    (TENSOR, OTHER_TENSOR, MODEL_AXES["cp-all-gather"]),
    THREE,
    (replace(RING, at_once=True), MODEL_AXES["tp"]),
)

ATTENTION = frozenset({"scores", "seen", "shares", "shares_mask", "shares_dropped"})
FROM_SLICES_ON = "tp"  # where what comes in is whole, and sliced
IN_A_KERNEL, WIDTH = replace(TEXTBOOK, inside=ATTENTION, stores=ATTENTION), 2  # bytes of a weight
ALL_IN_A_KERNEL = replace(TEXTBOOK, inside=ATTENTION | {"context"})  # and what backward reads


# ------------------------------------------------------------------------------ claims
def again_on(mesh: tuple[Axis, ...]) -> tuple[str, ...]:
    """What is made again that is another program than without: the tests try the others.

    Where all is made again nothing is held; what a layer takes is in slices by itself, but on tp.
    """
    if len(mesh) > 1 or MODEL_AXES["tp"] in mesh:
        return AGAIN
    return AGAIN[:2] if any(axis.held for axis in mesh) else AGAIN[:3]


@lru_cache(maxsize=1024)
def derived(part: Part, mesh: tuple[Axis, ...], plain: bool = False) -> tuple[Program, ...]:
    """The programs of a part on some axes, each once: with recomputation too, but if `plain`."""
    found: list[Program] = []
    for again in (NOTHING,) if plain else again_on(mesh):
        program = program_of(part, mesh, again)
        if program not in found:
            found.append(program)
    return tuple(found)


def checked(part: Part, axes: Sequence[tuple[Axis, ...]]) -> set[Rule]:
    """The rules of the derived programs: accepted, with the results and gradients of one device."""
    return set[Rule]().union(*checked_on(part, axes).values())


def checked_on(
    part: Part, axes: Sequence[tuple[Axis, ...]], plain: bool = False
) -> dict[tuple[Axis, ...], set[Rule]]:
    """The same by the axes that programs are on."""
    found = dict[tuple[Axis, ...], set[Rule]]()
    for mesh in map(tuple, axes):
        found[mesh] = set()
        programs = derived(part, mesh, plain)
        for program, results in zip(programs, results_of(part, mesh, plain), strict=True):
            if results != alone(part)[1]:
                raise KernelError(f"{part.name} on {program.axes}: not what one device computes")
            _require_read(program)
            found[mesh] |= rules_in(program)
    return found


@lru_cache(maxsize=64)
def alone(part: Part) -> tuple[Terms, Mapping[str, int]]:
    """What one device computes of a part, in these terms."""
    terms = Terms()
    return terms, differentiated(part, terms)


@lru_cache(maxsize=1024)
def results_of(part: Part, mesh: tuple[Axis, ...], plain: bool) -> tuple[Mapping[str, int], ...]:
    """What its derived programs compute, in the same terms."""
    return tuple(on_whole_values(program, alone(part)[0]) for program in derived(part, mesh, plain))


def rules_of_parts(programs: Iterable[Program]) -> set[Rule]:
    """Those of derived programs on one axis, and on none; of Llama's layer on several, too.

    Raises KernelError for a line on other axes than a ring that is as no line of `programs`.
    """
    listed = set[Rule]().union(*map(rules_in, programs))
    found = {*listed}
    for part, axes in (PARTS | FURTHER).items():
        require_fit(part)
        every = [(), *((axis,) for axis in axes), *(SEVERAL if part == layer(LLAMA) else ())]
        on_axes = checked_on(part, every if part in PARTS else [(TENSOR,)])
        on_axes |= checked_on(part, [mesh for mesh in every if mesh not in on_axes], plain=True)
        for mesh, rules in on_axes.items():
            if not any(axis.ring for axis in mesh) and not rules <= listed:
                raise KernelError(f"{part.name} on {mesh}: no listed line is as {rules - listed}")
            found |= rules
    return found


def _require_read(program: Program) -> None:
    """Raise KernelError unless all that backward makes is read, or is what it is to find.

    But for what forward made before: where all is made again, so is what the part gives. And unless
    forward does nothing twice that the part does once, backward makes no value twice, and no weight is
    kept for backward.
    """
    if any(value.role is Role.WEIGHT for value in program.kept):
        raise KernelError(f"{program.part.name} on {program.axes}: a weight is kept for backward")
    if _repeated(program.forward) > _repeated(program.part.operations):
        raise KernelError(f"{program.part.name} on {program.axes}: forward does something twice")
    if len({line.makes for line in program.backward}) < len(program.backward):
        raise KernelError(f"{program.part.name} on {program.axes}: backward makes a value twice")
    read = {program.returns, *program.gradients.values(), *(line.makes for line in program.forward)}
    read |= {value for line in program.backward for value in line.reads}
    if unread := [line for line in program.backward if line.makes not in read]:
        raise KernelError(f"{program.part.name} on {program.axes}: nothing reads {unread[0]}")


def _repeated(lines: Iterable[Line]) -> int:
    """How many lines do what another does."""
    operations = [line for line in lines if isinstance(line, Operation)]
    does = {(line.does, line.reads, line.function, line.over, line.renamed) for line in operations}
    return len(operations) - len(does)


def _checked_in_a_kernel(part: Part) -> set[Rule]:
    """The rules of a layer whose attention is one kernel. Raises KernelError unless its softmax's
    derivative reads of each row what the kernel gave, with its cotangent, summed: in fp32, as all that
    it reads of rows. And unless the softmax is made again from its log-sum-exp, if that is not, too.
    """
    meshes = (TENSOR,), (RING,), SEVERAL[1]
    must_reject(program_of, realised(layer(GPT), ALL_IN_A_KERNEL, WIDTH), ())
    for damaged in with_rows_twice(derived(part, meshes[0])[0]):
        must_reject(check_program, damaged)
    others = (program_of(turned(part), ()),)
    for program in (*others, *(program for mesh in meshes for program in derived(part, mesh))):
        lines = [line for line in program.backward if isinstance(line, Operation)]
        is_kept = all(line.function != LOG_TOTAL for line in lines)
        for line in lines:
            rows = [value.width for value in line.reads[1 + line.backward :]]
            if line.function == "softmax" and rows not in ([FULL], [FULL] * (line.backward or is_kept)):
                raise KernelError(f"{line}: a kernel's backward reads rows' numbers of {rows} bytes")
        if not all(value.width for value in program.kept):
            raise KernelError(f"{part.name}: what is inside a kernel is kept")
        for damaged in without_made_again(program):
            must_reject(check_program, damaged)
    return checked(part, meshes)


@claim("E10")
def derived_programs_do_what_one_device_does(k: Kernel) -> tuple[Theorem, ...]:
    """Derived programs are accepted, and every line does on devices what it does on whole values.

    Of embedding, layer and head, on every model axis, with and without recomputation, and of further
    models with it on one; of a layer whose attention is one kernel, too. And whatever the typing rule
    accepts of an operation is right. Where the checker accepts all lines, what each makes lies as it is
    said to: by induction over lines, of any program; that it accepts those of listed programs is
    proved. On whole values they are the model and its gradients by the chain rule. A copy's gradient
    sums over the outputs of its uses: where these are cut it is partial, by the rule of summed indices,
    and the all-reduce of its terms is the whole gradient. The turns of a ring are an axis, with one
    rule more: a softmax of each turn's keys alone, what is linear in it, and their merge (F2). A layer
    on a ring, and two products on every axis, are rejected without any one of their moves, and with
    slices of a gradient where the weight is whole: what a program gives, returns and leaves as
    gradients is asked for.
    (Claim E10; Megatron-LM 1909.08053 section 3; claims R1-R3)
    """
    programs = listed()
    needed = accepted_rules() | rules_of_parts(listing.program for listing in programs.values())
    needed |= checked(layer(GPT_OSS), [(MODEL_AXES["cp-all-to-all"],)])
    needed |= checked(product_of_weights(), [(TENSOR,)])
    needed |= _checked_in_a_kernel(realised(layer(GPT), IN_A_KERNEL, WIDTH))
    for several in SEVERAL:
        program = program_of(layer(LLAMA), several)
        given = {value: lies for value, lies in program.lies.items() if value.role is Role.CONSTANT}
        if check_program(replace(program, lies=given)).lies != program.lies:
            raise KernelError(f"{[axis.name for axis in several]}: values lie otherwise than derived")
        for move in program.moves:
            must_reject(check_program, without(program, move))
            without(gradients_last(program), move)
    held = [program_of(part, (replace(TENSOR, held=True),)) for part in (many_uses(), projection())]
    held.append(program_of(product_of_weights(), (TENSOR,)))
    for program, move in ((each, move) for each in held for move in each.moves):
        without(program, move)
    ring, sliced = program_of(layer(LLAMA), (RING,)), program_of(layer(GPT), (TENSOR,))
    at_once = MODEL_AXES["cp-all-gather"]
    gathered = [program_of(layer(GPT), axes) for axes in ((at_once, OTHER_RING), (OTHER_RING, at_once))]
    (one, *kept), (other, *kept_too) = (on_a_ring(program, RING) for program in gathered)
    mixed, within = (program_of(talking_heads(), axes) for axes in ((RING,), SEVERAL[0]))
    of_samples = program_of(talking_heads(of_samples=True), (RING,))
    in_slices, *wrong_slices = merged_in_slices(mixed, Axis("features"))
    along_own = program_of(projection(), (Axis("features", weight_indices=("h",)),))
    require_right([one, other, in_slices, along_own, *_right_ones()])
    loops = damaged_loops(within, program_of(talking_heads("u"), (RING,)))
    others = *without_moves(mixed), *without_moves(of_samples), *loops, *wrong_slices
    for damaged in (*damaged_rings(ring), *with_less_kept(sliced), *kept, *kept_too, *others):
        must_reject(check_program, damaged)
    another = with_another_added(program_of(used_twice(), (TENSOR,)))
    some = another, with_a_total_made_again(within)
    for line, damaged in (*some, *with_other_functions(ring), *with_other_functions(sliced)):
        if must_reject(check_program, damaged) != line:
            raise KernelError(f"{line}: another line is said to be wrong")
    for damaged in with_other_gradients(sliced):
        (weight,) = (w for w, gradient in sliced.gradients.items() if damaged.gradients[w] != gradient)
        if must_reject(check_program, damaged) != (sliced.part.name, weight.name):
            raise KernelError(f"{weight.name}: another gradient is said to be wrong")
    require_whole(parts(GPT)[-1], "logits")
    require_sums(layer(LLAMA))
    require_in_full(talking_heads(), OTHER_RING, TENSOR)
    require_loops(layer(LLAMA), RING, OTHER_RING)
    require_small_parts(layer(LLAMA))
    require_equal_terms()
    require_kept_as_gathered(layer(LLAMA), "attention_norm")
    require_gathered_again(layer(LLAMA))
    require_held_along(layer(LLAMA), (TENSOR, MODEL_AXES["cp-all-gather"]))
    for part, axis in (*product((projection(),), AXES), (ends_in_odds(), TENSOR)):
        for damaged in damaged_programs(program_of(part, (axis,))):
            must_reject(check_program, damaged)
    runs = ListedPrograms(k)
    return (
        runs.accepted_programs,
        *(rule_is_accepted(runs, rule) for rule in sorted(needed - {MERGED}, key=str)),
        shares_merge_turn_by_turn(k.part("merge")),
        runs.of_listed(programs),
        contractions_have_transposes(k.part("transposes")),
    )


def _right_ones() -> Iterator[Program]:
    """Programs that are accepted, with the operands of products in either order, and in two parts."""
    whole_along = MODEL_AXES[FROM_SLICES_ON]
    on_two = whole_along, replace(whole_along, name=f"other {whole_along.name}")
    with_copies = whole_along, copies_within(whole_along)
    for mesh in (on_two, with_copies):
        yield of_slices(program_of(layer(GPT), mesh, FROM_SLICES))
    yield program_of(ends_in_odds("s"), (TENSOR,))
    of_loss = replace(TEXTBOOK, inside=frozenset({"raised"}), whole=frozenset({"logits"}))
    yield program_of(realised(head(GPT), replace(of_loss, gathers_again=True), WIDTH), (TENSOR,))
    yield from (program_of(part, with_copies) for part in (layer(OLMO_2), of_rows("r")))
    yield program_of(layer(OLMO_2), (TENSOR, copies_within(TENSOR)))
    some = of_rows(), log_totals(), many_uses(), odds_of_weights()
    yield from (program_of(part, (axis,)) for part, axis in product(some, (TENSOR, whole_along)))
    for part in (product_of_weights(), used_twice()):
        yield with_gradients_last(program_of(part, (whole_along,)))
    by_heads = MODEL_AXES["cp-all-to-all"]
    yield with_gradients_last(program_of(layer(replace(GPT, sinks=True)), (by_heads,)))
    for axes in ((RING,), (TENSOR,), (RING, TENSOR)):
        program = program_of(talking_heads(), axes)
        yield from (program, with_gradients_last(program))
    yield with_gradients_last(program_of(talking_heads(of_samples=True), (RING,)))
    yield program_of(talking_heads("u"), SEVERAL[0])
    yield program_of(talking_heads("w", "u"), (RING, replace(OTHER_RING, ring="w")))
    for program in (program_of(layer(LLAMA), (RING, TENSOR)), program_of(layer(GPT), (whole_along,))):
        yield from (with_operands_turned(program), with_gradients_last(program))


def listed() -> dict[str, ProgramListing]:
    """Programs that are proved line by line, on each model axis but a ring.

    Of GPT's parts; on one of its layer that makes all again, too, and of its head that makes all again
    of slices. Of Llama's layer on three axes, along each.
    """
    found = {}
    for name, axis in MODEL_AXES.items():
        if axis.ring:
            continue
        where = name.replace("+", "_").replace("-", "_")
        gpt = WITH_EXPERTS[0] if name == "ep" else GPT
        for part in parts(gpt):
            found[f"{part.name}_on_{where}"] = program_of(part, (axis,))
        if axis == TENSOR:
            found[f"layer_made_again_on_{where}"] = program_of(layer(gpt), (axis,), EVERYTHING)
        if name == FROM_SLICES_ON:
            found[f"head_made_again_on_{where}"] = program_of(parts(gpt)[-1], (axis,), FROM_SLICES)
    along = {name: ProgramListing(program, program.axes[0]) for name, program in found.items()}
    on_three = program_of(layer(LLAMA), THREE)
    return along | {f"layer_on_three_along_{a.name}": ProgramListing(on_three, a) for a in THREE}


@claim("F1")
def recomputed_values_are_the_values(k: Kernel) -> tuple[Theorem, ...]:
    """What backward makes again from what is kept, by forward's own lines, is what forward made.

    For any number of lines, any operations, and any choice of what is kept. The derived programs with
    recomputation are accepted, make again by forward's lines, and find the gradients that the
    programs without it find. (Claim F1; 1604.06174, 2205.05198 section 5)
    """
    for part in PARTS | FURTHER:
        for axis in AXES if part in PARTS else (TENSOR,):
            require_same_gradients(part, axis)
    for axis in AXES:
        require_pairs(layer(GPT), axis)
    require_mask_kept(with_masks(replace(LLAMA, masked=True), tokens=4))
    require_named(parts(GPT)[-1])
    return (_made_again(k),)


def require_same_gradients(part: Part, axis: Axis) -> None:
    """Raise KernelError unless what is made again is by forward's lines, and gradients are the same."""
    programs = part, (axis,), False
    (_, *others), (gradients, *found) = derived(*programs), results_of(*programs)
    for program, results in zip(others, found, strict=True):
        made = {line.makes: line for line in program.forward}
        if any(line != made.get(line.makes, line) for line in program.backward):
            raise KernelError(f"{part.name} on {axis.name}: made again by another line")
        if results != gradients:
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
    earlier = k.suppose("lines_read_earlier_ones", [line], read_earlier(kept, line, reads))
    _, so = so_of_every_line(k, line, same, reads, [earlier, forward, backward])
    return k.prove("made_again_is_made", same, [line >= 0], [so.at(line=line + 1, other=line)])
