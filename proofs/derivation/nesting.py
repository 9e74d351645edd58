"""K9: of an index that several axes cut, derived moves leave each device one chunk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations, combinations_with_replacement, permutations, product
from typing import Any, NamedTuple

from proofs.claim import claim
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import Not
from spec.checking.programs import check_program
from spec.checking.steps import check_orders, cut_twice
from spec.derivation.nesting import AxisOrders, axes_in_order, axis_orders, families, in_orders
from spec.derivation.programs import EVERYTHING, FROM_SLICES, NOTHING, PAIRS, program_of
from spec.devices.hierarchy import device_number
from spec.devices.layouts import WHOLE, LayoutError, Lies, along
from spec.devices.mesh import Axes, first_element
from spec.language.moves import Axis, move_of
from spec.language.programs import Program
from spec.language.steps import Step
from spec.models.parts import parts
from spec.models.transformer import Transformer
from spec.models.values import Does, Operation, Value
from spec.plans.model_strategies import MODEL_AXES

MODEL = Transformer(
    1, 8, 4, 4, 2, 32, 16, gated=True, function="silu", norm="rms_norm", experts=4, chosen=2
)
THREE = "tp+sp", "cp-all-gather", "cp"  # axes that cut one index, of which two cut another
EACH_THREE = (
    ("cp", "cp", "cp", NOTHING),
    ("cp-all-gather", "cp-all-gather", "cp-all-gather", PAIRS),
    ("cp-all-to-all", "cp-all-to-all", "cp-all-to-all", EVERYTHING),
    ("tp+sp", "ep", "cp", FROM_SLICES),
    ("cp", "tp+sp", "cp-all-to-all", PAIRS),
    ("ep", "cp-all-gather", "tp+sp", FROM_SLICES),
)  # and what is made again
SIZES = (2, 3, 2)  # devices along the axes
POSITIONS = range(12)  # of an index


class Moved(NamedTuple):
    """What a move along an axis joins and cuts, and which index each axis cuts before and after it."""

    axis: str
    joins: str
    cuts: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@claim("K9")
def slices_are_chunks_along_the_inner_axis(k: Kernel) -> tuple[Theorem, ...]:
    """What is joined, or cut, along the inner axis of those that cut an index is one contiguous chunk.

    `outer` is a device's number along all axes outside, `inner` its place on the inner one, of m
    devices, and c the elements of a slice. What is joined along an outer axis is no chunk, if there are
    several devices along the inner one. The moves that are derived for any two axes of a model are
    along the inner one of those that cut an index then, in one order of the axes for each index; in
    another order they are rejected. (Claim K9)
    """
    pairs = (*combinations_with_replacement(MODEL_AXES, 2), ("ep", "tp+sp"))  # and one the other way
    moved = [names for names in pairs if _require_orders(names)]
    _require_cut((program_of(parts(MODEL)[1], _axes(THREE)),))
    for *three, again in EACH_THREE:
        _require_chunks(_axes(three), again)
    _require_in_order(k)
    _require_refused(k)
    _require_within_turns(k)
    if not moved:
        raise KernelError(f"{k.claim}: no two axes cut an index that is moved")
    outer, inner, m, c, x = k.integers("outer inner m c x")

    def element(outer: Any, inner: Any, x: Any) -> Any:
        """That which is at place x of a device's slice."""
        return first_element(device_number(inner, outer, m), c) + x

    side_by_side = first_element(inner, c) + x
    joined = k.prove(
        "slices_side_by_side_along_the_inner_axis_are_the_chunk_of_the_axes_outside",
        element(outer, inner, x) == first_element(outer, m * c) + side_by_side,
    )
    end_to_end = element(outer + 1, inner, 0) == element(outer, inner, c)
    apart = k.prove(
        "slices_side_by_side_along_an_outer_axis_are_no_chunk", Not(end_to_end), [m >= 2, c >= 1]
    )
    return joined, apart


def _axes(names: Iterable[str]) -> tuple[Axis, ...]:
    """Axes of several factors, each of a name of its own."""
    return tuple(replace(MODEL_AXES[name], name=f"{name}_{i}") for i, name in enumerate(names))


def _require_orders(names: tuple[str, str]) -> bool:
    """Raise KernelError unless the moves that are derived along two axes leave chunks.

    In another order of the axes that cut an index, `check_orders` is to reject just those that do not.
    Whether there are any.
    """
    axes = _axes(names)
    devices = tuple(axis.name for axis in axes)
    programs = tuple(program_of(part, axes, FROM_SLICES) for part in parts(MODEL))
    derived = axis_orders(programs)
    _require_cut(programs)
    if not _renamed_are_alike(programs, derived):
        raise KernelError(f"{names}: an index that is renamed is cut otherwise")
    orders = {"": derived} | {i: derived | {i: order[::-1]} for i, order in derived.items()}
    right = dict.fromkeys(orders, True)
    for move, alone in _moved(programs, devices).items():
        own = axis_orders((alone,))
        if not _leaves(move, own, devices) or not _renamed_are_alike((alone,), own):
            raise KernelError(f"{names}: {move} leaves no chunks in its own order, {own}")
        for index in {"", move.joins, move.cuts}:
            leaves = _leaves(move, orders[index], devices)
            right[index] &= leaves
            _require_said(names, [alone], orders[index], leaves)
    of = families(programs)
    moved = {of[index] for index, is_right in right.items() if index and not is_right}
    if any(order != devices for index, order in derived.items() if of[index] not in moved):
        raise KernelError(f"{names}: axes are not as declared, and for no move: {derived}")
    for index, found in orders.items():
        _require_said(names, programs, found, right[index] or not index)
    return not all(right.values())


def _require_chunks(axes: tuple[Axis, ...], again: str) -> None:
    """Raise KernelError unless a layer's program along axes is accepted, and its moves leave chunks."""
    program, devices = program_of(parts(MODEL)[1], axes, again), tuple(axis.name for axis in axes)
    check_program(program)
    orders = axis_orders((program,))
    check_orders((program,), orders)
    for move in _moved((program,), devices):
        if not _leaves(move, orders, devices):
            raise KernelError(f"{devices}: {move} leaves no chunks in {orders}")


def _require_cut(programs: tuple[Program, ...]) -> None:
    """Raise KernelError unless those axes are said that cut an index of a value together, and a value
    lies along them in their order.
    """
    derived, cut = axis_orders(programs), dict[str, set[str]]()
    for lies in (lies for program in programs for lies in program.lies.values()):
        for index in derived:
            together = {axis.name for axis in programs[0].axes if lies[axis.name].index == index}
            cut[index] = cut.get(index, set()) | (together if len(together) > 1 else set())
    found = {i: tuple(axis for axis in derived[i] if axis in cut[i]) for i in derived if cut[i]}
    if cut_twice(Step(programs, (), orders=derived)) != found:
        raise KernelError(f"{programs[0].axes}: axes cut {found} together, and others are said")
    for program in programs:
        ordered, turns = in_orders(program, derived), {axis.turns for axis in program.axes}
        for pairs in {tuple(lies.items()) for lies in ordered.lies.values()}:
            for index in {lie.index for _, lie in pairs} - {""}:
                axes = [axis for axis, lie in pairs if lie.index == index and axis not in turns]
                if ordered != program or axes != sorted(axes, key=derived[index].index):
                    raise KernelError(f"{program.axes}: {index} is cut along {axes}, in this order")


def _require_said(
    names: tuple[str, str], programs: Sequence[Program], found: AxisOrders, right: bool
) -> None:
    """Raise KernelError unless orders of axes are accepted where they are right, and only there; also
    with another axis between them.
    """
    between = {index: (*order[:1], "between", *order[1:]) for index, order in found.items()}
    for orders in (found, between):
        try:
            check_orders(programs, orders)
            accepted = True
        except LayoutError:
            accepted = False
        if accepted is not right:
            raise KernelError(f"{names}: {'accepts' if accepted else 'rejects'} {orders}")


def _require_in_order(k: Kernel) -> None:
    """Raise KernelError unless three axes are in the first order that fits all pairs, if one does."""
    every = [*permutations(THREE, 2)]
    for pairs in chain.from_iterable(combinations(every, n) for n in range(len(every) + 1)):
        fit = (o for o in permutations(THREE) if all(o.index(a) < o.index(b) for a, b in pairs))
        if axes_in_order(THREE, {*pairs}) != next(fit, THREE):
            raise KernelError(f"{k.claim}: of {pairs} the order is {axes_in_order(THREE, {*pairs})}")


def _require_refused(k: Kernel) -> None:
    """Raise KernelError unless axes are as they are declared, and refused, where no order serves all.

    As of programs that move one index along two axes, and of the same with the axes' names exchanged;
    a third axis cuts no index of theirs.
    """
    one, other, last = (MODEL_AXES[name] for name in ("tp+sp", "ep", "dp"))
    ways = [(one, other, last), (other, one, last)]
    named = [tuple(replace(axis, name=n) for axis, n in zip(way, "bca", strict=True)) for way in ways]
    several = tuple(program_of(part, axes, FROM_SLICES) for axes in named for part in parts(MODEL))
    found = axis_orders(several)
    try:
        check_orders(several, found)
    except LayoutError:
        if {*found.values()} == {("b", "c", "a")}:
            return
    raise KernelError(f"{k.claim}: of two orders that contradict one another {found} is said")


def _require_within_turns(k: Kernel) -> None:
    """Raise KernelError unless what is joined in a turn of a ring is joined within its slices.

    And what is renamed is cut as that is of which slices are joined.
    """
    other, ring = axes = MODEL_AXES["tp+sp"], MODEL_AXES["cp"]
    cut, slices = along("s"), Value("slices", ("s",))
    lies = {other.name: cut, ring.name: WHOLE, ring.turns: cut}
    move = move_of(slices, other.name, cut, WHOLE)
    of_both = {slices: lies, move.makes: {**lies, other.name: WHOLE}}
    program = program_of(parts(MODEL)[0], axes)
    alone = replace(program, forward=(move,), backward=(), lies=of_both)
    if axis_orders((alone,))["s"] != (ring.name, other.name):
        raise KernelError(f"{k.claim}: {move} in a turn of {ring.name} is not within its slices")
    layer, keys = program_of(parts(MODEL)[1], axes), Value("keys", ("u",))
    lies = {other.name: along("u"), ring.name: along("u"), ring.turns: WHOLE}
    move = move_of(keys, other.name, along("u"), WHOLE)
    of_both = {**layer.lies, keys: lies, move.makes: {**lies, other.name: WHOLE}}
    renamed = replace(layer, forward=(*_renames(layer), move), backward=(), lies=of_both)
    found = axis_orders((renamed,))
    if {found["s"], found["u"]} != {(ring.name, other.name)}:
        raise KernelError(f"{k.claim}: {move} is not within {ring.name} of what is renamed")
    _require_renamed(k, layer)


def _require_renamed(k: Kernel, program: Program) -> None:
    """Raise KernelError unless indices that are renamed are cut as what they are renamed from: two at a
    time, two to one name, or one to a name that is renamed before.
    """
    pairs, lines = (("i", "k"), ("j", "l")), Value("lines", ("i", "j"))
    two = Operation(Does.RENAME, (lines,), Value("columns", ("k", "l")), renamed=pairs)
    alike = families([replace(program, forward=(two,), backward=())])
    if {new: alike[old] for old, new in pairs} != {"k": alike["k"], "l": alike["l"]}:
        raise KernelError(f"{k.claim}: of {two} not each index is cut as what it is renamed from")
    one, other, last = (Value(index, (index,)) for index in "ijk")
    for renames in ((one, last), (other, last)), ((other, last), (one, other)):
        each = (Operation(Does.RENAME, (o,), n, renamed=((o.name, n.name),)) for o, n in renames)
        alike = families([replace(program, forward=tuple(each), backward=())])
        if len({*alike.values()}) > 1:
            raise KernelError(f"{k.claim}: of {renames} one is cut otherwise: {alike}")


def _moved(programs: Sequence[Program], devices: Axes) -> dict[Moved, Program]:
    """What moves do but those in turns, each once; and a program of one that does it, and renames."""

    def cut(lies: Lies) -> tuple[str, ...]:
        return tuple(lies[axis].index for axis in devices)

    return {
        Moved(
            move.axis, move.before.index, move.after.index, cut(lies[move.value]), cut(lies[move.makes])
        ): replace(program, forward=(*renames, move), backward=())
        for program in programs
        for lies, renames in [(program.lies, _renames(program))]
        for move in program.moves
        if not move.in_turns
    }


def _leaves(move: Moved, found: AxisOrders, devices: Axes) -> bool:
    """Whether a move leaves each device its chunk of every index."""
    return all(
        _leaves_chunks(move, found, devices, at) for at in product(*map(range, SIZES[: len(devices)]))
    )


def _renames(program: Program) -> tuple[Operation, ...]:
    return tuple(line for line in program.lines if isinstance(line, Operation) and line.renamed)


def _renamed(programs: Sequence[Program]) -> list[tuple[str, str]]:
    """Indices of which one takes the other's place, and no further one does, or has it taken."""
    return [
        (old, new)
        for program in programs
        for line in _renames(program)
        for old, new in line.renamed
        if [pair for pair in line.renamed if old in pair or new in pair] == [(old, new)]
    ]


def _renamed_are_alike(programs: Sequence[Program], found: AxisOrders) -> bool:
    """Whether an index that another takes the place of is cut as that is, and of a family with it.

    And with no other: several that become one, or one that becomes several, are each of its own.
    """
    of = families(programs)
    groups = [{index} for index in of]
    for pair in _renamed(programs):
        joined = set[str]().union(*(group for group in groups if group & {*pair}))
        groups = [joined, *(group for group in groups if not group & {*pair})]
    alike = [{index for index in of if of[index] == of[one]} for one in of]
    return all(group in alike for group in groups) and all(
        found[old] == found[new] for old, new in _renamed(programs)
    )


def _leaves_chunks(move: Moved, found: AxisOrders, devices: Axes, place: tuple[int, ...]) -> bool:
    """Whether it does on the device at a place: buffers are put side by side, or cut."""
    along, right = devices.index(move.axis), True

    def chunk(cut: tuple[str, ...], index: str, at: int = place[along]) -> range:
        """The positions that a device has: the outer axis's chunk, and of that the inner's."""
        positions = POSITIONS
        for axis in map(devices.index, found[index]):
            if cut[axis] == index:
                positions = _part(positions, SIZES[axis], at if axis == along else place[axis])
        return positions

    if index := move.joins:
        group = (chunk(move.before, index, at) for at in range(SIZES[along]))
        right = [at for each in group for at in each] == [*chunk(move.after, index)]
    if index := move.cuts:
        part = _part(chunk(move.before, index), SIZES[along], place[along])
        right = right and part == chunk(move.after, index)
    return right


def _part(chunk: range, number_of: int, which: int) -> range:
    size = len(chunk) // number_of
    return chunk[which * size : (which + 1) * size]
