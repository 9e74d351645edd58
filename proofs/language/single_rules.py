"""E10: rules of programs that the checker, and what is derived, need one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from proofs.language.damaged_programs import must_reject, without_moves
from proofs.language.small_parts import (
    product_of_weights,
    projection,
    renamed,
    renamed_at_once,
    spread,
    talking_heads,
    turned,
    used_twice,
)
from proofs.trusted.kernel import KernelError
from spec.checking.programs import check_program
from spec.derivation.programs import EVERYTHING, program_of
from spec.derivation.two_parts import gradients_last
from spec.devices.layouts import PARTIAL, WHOLE, LayoutError, along
from spec.language.moves import Axis, Move, move_of
from spec.language.programs import Program
from spec.meaning.terms import Terms, differentiated
from spec.models.values import (
    FULL,
    WRITTEN,
    Builder,
    Does,
    Operation,
    Part,
    Role,
    Value,
    cotangent_of,
    formed,
    misfit,
)
from spec.plans.model_strategies import MODEL_AXES, POSITIONS, copies_within

_TENSOR = MODEL_AXES["tp+sp"]


def require_right(programs: Iterable[Program]) -> None:
    """Raise KernelError, or LayoutError, unless programs are accepted, with each value made once."""
    for right in programs:
        check_program(right)
        values = {value for line in right.lines for value in (*line.reads, line.makes)}
        twice = len({line.makes for line in right.backward}) < len(right.backward)
        if twice or len({value.name for value in values}) < len(values):
            raise KernelError(f"{right.part.name}: two lines of backward make one value, or one name")


def require_names(value: Value) -> None:
    """Raise KernelError unless a value that is brought to lie otherwise has a name for each way."""
    ways = (WHOLE, *map(along, value.indices))
    for before in (*ways, PARTIAL):
        others = [(axis, lie) for axis in ("one", "other") for lie in ways if lie != before]
        names = {move_of(value, axis, before, lie).makes.name for axis, lie in others}
        if len(names) < len(others):
            raise KernelError(f"{value.name} lies in {len(others)} ways, and has {len(names)} names")
    moved = cotangent_of(formed(value, "moved")), formed(cotangent_of(value), "moved")
    if len({each.name for each in moved}) < 2 or len({each.plain_name for each in moved}) > 1:
        raise KernelError(
            f"the cotangent of {value.name}, moved, has another's name, or none of its own"
        )


def require_first_index(part: Part) -> None:
    """Raise KernelError unless what has two indices that an axis cuts is cut along the first that it
    has: one that layers hand on, under any name; of weights one of theirs.
    """
    ring, heads = MODEL_AXES["cp"], Axis("heads", ("g", "r"))
    for indices in (("b", "s", "u", "g", "r"), ("b", "u", "s", "r", "g")):
        value = Value("value", indices)
        lies = ring.home(value, part), heads.rest(value, part)
        if lies != (along(indices[1]), along(indices[3])):
            raise KernelError(f"{value}: it is cut {' and '.join(lie.words for lie in lies)}")


def require_whole(part: Part, name: str) -> None:
    """Raise KernelError unless, of a value that is whole along what cuts words, each device reads all
    words, and along another axis its slice.
    """
    program = check_program(
        program_of(replace(part, whole=frozenset({name})), (_TENSOR, MODEL_AXES["cp-all-gather"]))
    )
    for line in program.lines:
        for value in line.reads if isinstance(line, Operation) else ():
            lies = program.lies[value]
            if value.plain_name == name and [*lies.values()] != [WHOLE, along(POSITIONS)]:
                raise KernelError(f"{line}: {name} is read as it lies, {lies}")
    beside = program_of(replace(part, whole=frozenset({part.gives.name})), (_TENSOR,))
    if any(move.value.plain_name == name for move in beside.moves):
        raise KernelError(
            f"{part.name}: {name} is moved, where each device has {part.gives.name} whole"
        )
    cut = {weight.name for weight in part.weights if _TENSOR.rest(weight, part) != WHOLE}
    whole = replace(part, whole=frozenset(cut))
    moved = (formed(value, "moved") for value in (*part.weights, part.gives))
    named = replace(whole, whole=whole.whole | {part.gives.name})
    if any(_TENSOR.home(value, named) != WHOLE for value in moved if value.plain_name in named.whole):
        raise KernelError(f"{part.name}: moved, what is whole is to lie otherwise")
    if not cut or any(_TENSOR.rest(weight, whole) != WHOLE for weight in part.weights):
        raise KernelError(f"{part.name}: each device has all words of {cut}, and they rest in slices")


def require_sums(part: Part) -> None:
    """Raise KernelError unless sums over an axis, and then over its copies, are one over both, and no
    others are; and a cotangent's terms that go apart are summed one by one.
    """
    axis = MODEL_AXES["tp"]
    other, copies = replace(axis, name="other"), copies_within(axis)
    program = program_of(part, (axis, copies, other))
    sums = {program.axes_of(move) for move in program.moves if move.before == PARTIAL}
    if sums != {(), (axis.name, copies.name), (other.name,)}:
        raise KernelError(f"{part.name}: sums over {sums}")
    first, second = next(
        (move, line)
        for move in program.moves
        for line in program.moves
        if not program.axes_of(move) and line.value == move.makes
    )
    reader = replace(second, makes=replace(second.makes, name="read too"), axis=other.name)
    read = replace(program, backward=(*program.backward, reader))
    if read.axes_of(first) != (axis.name,) or read.axes_of(second) != (copies.name,):
        raise KernelError(f"{part.name}: of a sum that another line reads only a further one is left")
    more = []  # moves, if terms go apart: as many of slices of samples, none where sums are sliced
    for axes in (axis,), (MODEL_AXES["dp"], axis), (MODEL_AXES["tp+sp"],):
        once, apart = (program_of(replace(part, apart=each), axes).moves for each in (False, True))
        more.append(len(apart) - len(once))
    if more[0] < 1 or more != [more[0], more[0], 0]:
        raise KernelError(f"{part.name}: {more} moves of terms apart more than of sums")
    later = program_of(replace(used_twice(), apart=True), (Axis("batch", stream="b"),))
    if later.moves:
        raise KernelError(f"{later.part.name}: {later.moves} of gradients that are summed later")


def require_gathered_again(part: Part) -> None:
    """Raise KernelError unless, where all is made again, what forward gathered is gathered for backward
    alone, if the part says so.
    """
    for says in (False, True):
        program = program_of(replace(part, gathers_again=says), (_TENSOR,), EVERYTHING)
        again = {move.collective for move in program.moves if move.makes.name.endswith(" again")}
        if again != ({"all_gather"} if says else set()):
            raise KernelError(
                f"{part.name}: what is gathered for backward alone is not as the part says"
            )


def of_slices(program: Program) -> Program:
    """The program. Raises KernelError unless all that is kept is in slices along every axis."""
    if kept := [value.name for value in program.kept if WHOLE in program.lies[value].values()]:
        raise KernelError(f"{program.part.name}: of {kept} more is kept than a slice")
    return program


def with_gradients_last(program: Program) -> Program:
    """It in two parts. Raises KernelError unless the second are gradients of matrices, all of those
    that are of no turn and read no weight; and moves.
    """
    last = gradients_last(program)
    _, second = last.parts_of_backward
    products_of_none = "_scale", "_bias", "sink_weight"
    weights = (w for w in program.part.weights if not w.name.endswith(products_of_none))
    matrices = {cotangent_of(weight).plain_name for weight in weights}
    for name in matrices:
        lines = [line for line in last.backward if line.makes.plain_name == name]
        values = [value for line in lines for value in (*line.reads, line.makes)]
        stays = any(value.role is Role.WEIGHT or program.is_in_turns(value) for value in values)
        if {line in second for line in lines} != {not stays}:
            raise KernelError(f"{program.part.name}: {name} is not last, or is, and is of turns")
    others = [line for line in second if line.makes.plain_name not in matrices]
    ends = {program.returns, *program.gradients.values()} & {line.makes for line in others}
    if ends or any(isinstance(line, Operation) for line in others):
        raise KernelError(f"{program.part.name}: {others} is no gradient of a matrix, and is last")
    return last


def require_small_parts(attends: Part) -> None:
    """Raise KernelError unless what small parts show, one rule each, is so; and of a layer one."""
    require_in_terms()
    require_gradients_of_all()
    require_weights_left()
    require_spread_in_slices()
    require_renamed()
    require_first_index(talking_heads())
    require_names(Value("value", ("s", "g")))
    require_gathered_at_once(talking_heads())
    require_moved_alike(attends)
    must_reject(program_of, _of_width(projection(), 0), (_TENSOR,))  # a kernel's values would be sent
    beside_a_ring = program_of(projection(), (MODEL_AXES["cp"], MODEL_AXES["tp"]))
    for damaged in without_moves(beside_a_ring):
        must_reject(check_program, damaged)


def require_in_terms() -> None:
    """Raise KernelError unless the gradient of what is made of a weight is summed with the weight's,
    also if that has a number for each token's place.
    """
    takes = Value("takes", ("b", "s", "h"), Role.STREAM)
    scale = Value("scale", ("h",), Role.WEIGHT)
    for index, axis in (("h", _TENSOR), ("s", MODEL_AXES["dp"])):
        part, every = Builder("scaled", takes), Value("every", (index,), Role.CONSTANT, 0)
        makes = Value("more", tuple(dict.fromkeys((index, "h"))))
        more = part.contract(scale, every, makes)
        gives = part.contract(takes, more, replace(takes, name="y"))
        program = program_of(part.part(gives), (axis,))
        if program.moves or program.summed_over(scale) != (axis.name,):
            raise KernelError(f"{scale.name}: what is made of it is summed by {program.moves}")


def require_gathered_at_once(part: Part) -> None:
    """Raise KernelError unless what goes round a ring is cut along the ring's index, and no other."""
    axis = replace(MODEL_AXES["cp"], ring="another")
    if turns := [move for move in program_of(part, (axis,)).moves if move.in_turns]:
        raise KernelError(f"{part.name}: {turns} go round a ring of {axis.ring}")


def require_moved_alike(part: Part) -> None:
    """Raise KernelError unless with the operands of products in the other order the same is moved."""
    mesh = MODEL_AXES["cp"], _TENSOR, copies_within(_TENSOR)
    one, other = (program_of(each, mesh) for each in (part, turned(part)))
    require_right([one, other])
    moved, same = (
        Counter((move.axis, move.value.plain_name, move.before, move.after) for move in program.moves)
        for program in (one, other)
    )
    if moved != same:
        raise KernelError(f"{part.name}: in the other order {same} moves, and not {moved}")


def require_weights_left() -> None:
    """Raise KernelError unless weights that are multiplied with one another stay as they lie along
    copies of slices, and their gradients are left in terms over samples and tokens.
    """
    part, copies = product_of_weights(), copies_within(_TENSOR)
    moved = [
        move.value for move in program_of(part, (_TENSOR, copies)).moves if move.axis == copies.name
    ]
    others = MODEL_AXES["dp"], MODEL_AXES["cp-all-gather"]
    program, names = program_of(part, (_TENSOR, *others)), {axis.name for axis in others}
    summed = [weight.name for weight in part.weights if not names <= {*program.summed_over(weight)}]
    if summed or any(value.role is Role.WEIGHT for value in moved):
        raise KernelError(f"{part.name}: {moved} move, or gradients of {summed} are summed at once")


def require_gradients_of_all() -> None:
    """Raise KernelError unless a line that nothing reads adds no gradient, and what it alone reads is
    told to have none: a weight, or what the part takes.
    """
    part, terms = projection(), Terms()
    up, down = part.operations
    takes, weight = up.reads
    other = replace(weight, name="other")
    unread = up.on((takes, other), replace(up.makes, name="unread"))
    samples = up.on((replace(takes, name="samples", role=Role.CONSTANT), weight), up.makes)
    of_both = unread.on(up.reads, unread.makes)
    if differentiated(replace(part, operations=(up, of_both, down)), terms) != differentiated(
        part, terms
    ):
        raise KernelError(f"{of_both} adds a gradient, and nothing reads it")
    for lines, name in (((up, unread, down), "other"), ((samples, of_both, down), "takes")):
        try:
            raise KernelError(f"{name}: {differentiated(replace(part, operations=lines), terms)}")
        except LayoutError as error:
            if error.at != (part.name, name):
                raise KernelError(f"{error.at} has no gradient, and not {name}") from None


def require_kept_as_gathered(part: Part, name: str) -> None:
    """Raise KernelError unless a value is kept as it is gathered just where the part says so."""
    for says in (False, True):
        program = program_of(replace(part, held=frozenset({name} if says else ())), (_TENSOR,))
        is_gathered = {value: program.lies[value] == {_TENSOR.name: WHOLE} for value in program.kept}
        if any(is_gathered[value] for value in program.kept if value.plain_name == name) is not says:
            raise KernelError(f"{part.name}: {name} is kept as it lies, held: {says}")


def require_held_along(part: Part, axes: Sequence[Axis]) -> None:
    """Raise KernelError unless, of axes along which values are gathered, they are kept so along those
    alone that hold them.
    """
    for holding in axes:
        program = program_of(part, tuple(replace(axis, held=axis is holding) for axis in axes))
        gathered = {m.makes: m.axis for m in program.forward if isinstance(m, Move) and m.before.index}
        along_axes = {gathered[value] for value in program.kept if value in gathered}
        if along_axes != {holding.name}:
            raise KernelError(f"{part.name}: kept as gathered along {along_axes}, not {holding.name}")


def require_spread_in_slices() -> None:
    """Raise KernelError unless what a constant spreads over an index that weights are cut along is made
    in slices of that: so what is spread is gathered before, and not after.
    """
    for axis, *how in product((_TENSOR, MODEL_AXES["tp"]), (False, True), (False, True)):
        program = check_program(program_of(spread(*how), (axis,)))
        for line in program.forward:
            if line.makes.name in ("wide", "wider") and program.lies[line.makes][axis.name] != along(
                "f"
            ):
                raise KernelError(f"{line}: along {axis.name} it is not cut along f")


def require_renamed() -> None:
    """Raise KernelError unless what is renamed stays where it is, under its other name; unless the
    gradient of what no product sums over is in the first part of backward, renamed or not; and unless
    of two indices that are renamed at once each has its own name.
    """
    plain, other = (program_of(part, (_TENSOR,)) for part in (projection(), renamed()))
    if len(with_gradients_last(other).moves) != len(plain.moves):
        raise KernelError(f"{other.part.name}: {other.moves}, where there are {plain.moves}")
    both = check_program(program_of(renamed_at_once(), (MODEL_AXES["dp"],)))
    if len(program_of(both.part, (_TENSOR,)).moves) != len(plain.moves):
        raise KernelError(f"{both.part.name}: cut along one of two indices it is moved")
    lines = [turned_renames(line) if isinstance(line, Operation) else line for line in both.forward]
    must_reject(check_program, replace(both, forward=tuple(lines)))


def turned_renames(line: Operation) -> Operation:
    """The line; of two indices that it renames, each to the other's name."""
    names = [new for _, new in line.renamed][::-1]
    return replace(line, renamed=tuple(zip((old for old, _ in line.renamed), names, strict=True)))


def require_loops(part: Part, outer: Axis, inner: Axis) -> None:
    """Raise KernelError unless in each turn of one ring all of another's pass, and what is of a turn's
    keys alone merges, moved as what is in terms; and unless what moves along an axis beside a ring does
    so outside its turns.
    """
    program = program_of(part, (outer, inner))
    for lines in (program.forward, program.backward):
        around, within = (
            {number for body in program.loops(lines, axis.turns) for number in body}
            for axis in (outer, inner)
        )
        if not within < around:
            raise KernelError(
                f"{part.name}: the turns of {inner.name} are around those of {outer.name}"
            )
    merges = {
        move.collective for move in program.moves if program.lies[move.value][move.turns].shares_of
    }
    if merges != {"merge"}:
        raise KernelError(f"{part.name}: what is of a turn's keys alone is moved by {merges}")
    for move in program.moves:
        if move.before not in (WHOLE, PARTIAL, along(move.before.index)):
            raise KernelError(f"{move}: it is not said to be of what is whole, in terms, or cut")
    beside = program_of(part, (outer, replace(MODEL_AXES["cp-all-to-all"], name="heads")))
    if any(beside.is_in_turns(move.value) for move in beside.moves if not move.in_turns):
        raise KernelError(f"{part.name}: in each turn of a ring something is moved along another axis")


def require_in_full(part: Part, *axes: Axis) -> None:
    """Raise KernelError unless cotangents go home round rings in fp32, just where an axis says so.

    Of what several uses read, too. What is wider stays so, and so does what is not of a ring.
    """
    ring, part = MODEL_AXES["cp"], _scored_twice(part)
    some = (WRITTEN, False), (WRITTEN, True), (2 * FULL, True)
    for (width, in_full), order in zip((*some, some[1]), (1, 1, 1, -1), strict=True):
        mesh = (*axes, replace(ring, in_full=in_full))[::order]
        program = program_of(_of_width(part, width), mesh)
        home = {
            (move.axis, move.value.width)
            for move in program.moves
            if move.collective in ("ring_reduce", "reduce_scatter")
        }
        rings = {(axis.name, max(width, FULL * in_full)) for axis in (*axes, ring) if axis.ring}
        if home != rings | {(_TENSOR.name, width)}:
            raise KernelError(f"{part.name}: so many bytes an element go home: {home}")
        made = [line.makes for line in program.backward]
        others = {each.width for each in made if each.plain_name in ("d takes", "d context")}
        if others != {width}:
            raise KernelError(f"{part.name}: what goes round no ring has {others} bytes an element")


def _scored_twice(part: Part) -> Part:
    """The part, with the product that makes scores twice, and their sum in place of them."""
    at = next(n for n, line in enumerate(part.operations) if line.makes.name == "scores")
    one, after = part.operations[at : at + 2]
    other = replace(one, makes=replace(one.makes, name="again"))
    both = Operation(Does.ADD, (one.makes, other.makes), replace(one.makes, name="both"))
    last = after.on((both.makes, *after.reads[1:]), after.makes)
    return replace(
        part, operations=(*part.operations[: at + 1], other, both, last, *part.operations[at + 2 :])
    )


def _of_width(part: Part, width: int) -> Part:
    """The part, with values that all take so many bytes an element."""

    def of(value: Value) -> Value:
        return replace(value, width=width)

    lines = (line.on(tuple(map(of, line.reads)), of(line.makes)) for line in part.operations)
    return replace(
        part, operations=tuple(lines), takes=part.takes and of(part.takes), gives=of(part.gives)
    )


def require_fit(part: Part) -> None:
    """Raise KernelError unless what each operation makes has its indices, and with others has not.

    In forward and in backward.
    """
    alone = program_of(part, ())
    for line in (line for line in alone.lines if isinstance(line, Operation)):
        unlike = () if line.does is Does.RENAME else (*line.makes.indices, "?")
        other = replace(line, makes=replace(line.makes, indices=unlike))
        if misfit(line) or not all(map(misfit, (other, *_renamed_wrongly(line)))):
            raise KernelError(f"{line}: it fits other indices, or does not fit its own")


def _renamed_wrongly(line: Operation) -> Iterator[Operation]:
    """A change of an index that is not there, and one to the name of an index that is."""
    if line.does is Does.RENAME:
        first, *others = indices = line.reads[0].indices
        for old, new, makes in (("?", "!", (*indices, "!")), (first, others[0], others)):
            makes_so = replace(line.makes, indices=tuple(makes))
            yield replace(line, renamed=((old, new),), makes=makes_so)
