"""X6, X8: what devices send of whole numbers; for experts, by every choice there may be.

Choices are as even as they can be: of each device's tokens, and of all, no expert has two more than
another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

from proofs.language.programs import LLAMA, WITH_EXPERTS
from proofs.trusted.kernel import Kernel, KernelError
from spec.costs.model_costs import elements_moved, has_slots, is_at_most, slots_of
from spec.derivation.programs import program_of
from spec.devices.layouts import PARTIAL
from spec.language.moves import Move
from spec.models.parts import layer
from spec.models.transformer import Transformer
from spec.plans.model_strategies import EXPERTS, MODEL_AXES, SLOTS

HIDDEN, HIDDEN_INDEX = 3, "h"
# devices, experts of each, and choices of each device's tokens
SIZES = ((2, 1, 1), (2, 2, 1), (2, 2, 3), (2, 2, 4), (3, 1, 2), (3, 2, 7))
CUTS = 3  # devices that cut each expert, and tokens


def weighed_before_are_sent(k: Kernel) -> None:
    """Raise KernelError unless as much is sent where odds weigh what experts read, or make inside.

    But for the odds, which are sent to where they weigh that, and their gradients back.
    """
    model, axis, sent = WITH_EXPERTS[1], MODEL_AXES["ep"], list[Any]()
    sizes, mesh = model.sizes(4, 2), {axis.name: 2}
    within = replace(model, weighed_within=True, biases=frozenset())
    for shape in (model, replace(model, weighed_first=True), within):
        program = program_of(layer(shape), (axis,))
        moved = [(move, elements_moved(move, program, sizes, mesh)) for move in program.moves]
        sent.append(sum(size for move, size in moved if HIDDEN_INDEX in move.value.indices))
    if len({*sent}) > 1:
        raise KernelError(f"{k.claim}: {sent} elements are sent, by where odds weigh")


def choices_are_sent(k: Kernel) -> None:
    """Raise KernelError unless a device sends as much as the choices that make it send most.

    Tokens go where their experts are, and what those make comes back. Where devices cut experts, too,
    each sends all that its tokens' experts are on there, and as much of what those make for others.
    """
    for (devices, each, count), cuts in product(SIZES, (1, CUTS)):
        experts, apart = devices * each, range(devices)
        there, back, on_one = [0], [0], set[int]()
        for chosen in even_choices(devices, experts, count):
            to = [[sum(of[at : at + each]) for at in range(0, experts, each)] for of in chosen]
            there += [sum(to[here][other] for other in apart if other != here) for here in apart]
            back += [sum(to[other][here] for other in apart if other != here) for here in apart]
            on_one |= {sum(to[other][here] for other in apart) for here in apart}
        model = Transformer(1, HIDDEN, 1, 1, 1, 2, 4, experts=experts, chosen=1)
        names = ("ep", "tp+sp")[:cuts]
        program = program_of(layer(model), tuple(MODEL_AXES[name] for name in names))
        sizes, mesh = model.sizes(devices * count, cuts), {"expert": devices, "tensor": cuts}
        ways = [line for line in program.forward if isinstance(line, Move)]
        moves = [move for move in ways if has_slots(move.value)]
        within = 2 * (cuts != 1)  # moves along the devices that cut experts
        most = [max(there), *[(cuts - 1) * max(on_one)] * within, max(back)]
        unlike = [count % experts != 0, *[len(on_one) > 1] * within, count % experts != 0]
        sent = [elements_moved(move, program, sizes, mesh) for move in moves]
        at_most = [is_at_most(move, program, sizes, mesh) for move in moves]
        others = any(is_at_most(move, program, sizes, mesh) for move in ways if move not in moves)
        if sent != [HIDDEN * slots for slots in most] or at_most != unlike or others:
            raise KernelError(f"{k.claim}: {devices} devices send {sent}, of {most} slots at most")


def sums_are_of_all_slots(k: Kernel) -> None:
    """Raise KernelError unless sums over devices that cut experts are of the room for slots, whatever
    is chosen.
    """
    model = Transformer(1, HIDDEN, 1, 1, 1, 2, 4, experts=4, chosen=1)
    program = program_of(layer(model), (MODEL_AXES["ep"], MODEL_AXES["tp"]))
    sums = [move for move in program.moves if move.collective == "all_reduce" and has_slots(move.value)]
    sizes, mesh = model.sizes(2, 3), {"expert": 2, "tensor": 2}
    if not sums or any(is_at_most(move, program, sizes, mesh) for move in sums):
        raise KernelError(f"{k.claim}: what is summed of slots depends on choices: {sums}")


def even_choices(devices: int, experts: int, count: int) -> Iterator[list[list[int]]]:
    """How often each device's tokens choose each expert: as evenly as can be, each device's and all."""
    base, more = divmod(count, experts)
    for some in product(combinations(range(experts), more), repeat=devices):
        chosen = [[base + (expert in one) for expert in range(experts)] for one in some]
        sums = [sum(of) for of in zip(*chosen, strict=True)]
        if max(sums) - min(sums) < 2:
            yield chosen


def slots_are_chosen(k: Kernel) -> None:
    """Raise KernelError unless a device has the slots that choices give it, at least and at most."""
    for experts, count, experts_cut, slots_cut in product((2, 3, 5), range(8), (1, 2, 3), (1, 2)):
        here = -(-experts // experts_cut)  # of a device that has most
        found = [sum(of[:here]) for (of,) in even_choices(1, experts, count)]
        sizes = {EXPERTS: experts, SLOTS: Fraction(count * slots_cut, experts)}
        if slots_of(sizes, experts_cut, slots_cut) != (min(found), max(found)):
            raise KernelError(f"{k.claim}: {here} of {experts} experts have {found} slots")
    each = k.reals("slots")
    if {*map(str, slots_of({EXPERTS: 4, SLOTS: each}, 2, 1))} != {str(2 * each)}:
        raise KernelError(f"{k.claim}: of slots that all divide a device has more, or fewer")


def whole_numbers_are_alike(k: Kernel) -> None:
    """Raise KernelError unless of whole numbers that all divide devices send chunks, as rings do.

    In each pass of a ring a device sends as many chunks as there are other devices: slices that it
    has, where they are gathered, and else an n-th of what it has; an all-reduce is two passes. Of even
    choices no more are said. What is sent in turns is X7's.
    """
    for axis, model in product(MODEL_AXES.values(), (LLAMA, WITH_EXPERTS[1])):
        program, sizes = program_of(layer(model), (axis,)), model.sizes(4, 8)
        moves = [move for move in program.moves if move.is_sent and not move.turns]
        for move, devices in product(moves, (1, 2)):
            mesh, cut = {axis.name: devices}, program.lies[move.value][axis.name].index
            has = prod(sizes[index] // (devices if index == cut else 1) for index in move.value.indices)
            chunk = has if move.collective == "all_gather" else has // devices
            passes = 2 if move.collective == "all_reduce" else 1
            whole = elements_moved(move, program, sizes, mesh)
            if whole != passes * (devices - 1) * chunk or is_at_most(move, program, sizes, mesh):
                raise KernelError(f"{k.claim}: {move} sends {whole} of whole numbers")


def rings_in_rings_are_one(k: Kernel) -> None:
    """Raise KernelError unless keys that go round a ring in each turn of another go as round one."""
    ring, beside = MODEL_AXES["cp"], MODEL_AXES["dp"]
    axes = beside, ring, replace(ring, name="inner")
    program, sizes = program_of(layer(LLAMA), axes), LLAMA.sizes(2, 12)
    mesh, slices = {beside.name: 1, ring.name: 3, "inner": 2}, 3 * 2
    moves = (line for line in program.forward if isinstance(line, Move))
    sent = sum(elements_moved(move, program, sizes, mesh) for move in moves)
    keys = 2 * prod(sizes[index] for index in "bugd")  # and values
    if sent != (slices - 1) * keys // slices:
        raise KernelError(f"{k.claim}: a ring in a ring sends {sent} of {keys}")


def sums_send_padded_chunks(k: Kernel) -> None:
    """Raise KernelError unless sums of what devices do not divide send chunks like the largest."""
    n, sizes = 3, LLAMA.sizes(2, 7)
    for name, rounds in (("tp", 2 * (n - 1)), ("tp+sp", n - 1)):
        axis = MODEL_AXES[name]
        program = program_of(layer(LLAMA), (axis,))
        sums = [move for move in program.moves if move.before == PARTIAL and move.value.width]
        for move in sums:
            whole = range(prod(sizes[index] for index in move.value.indices))
            largest = max(len(whole[first::n]) for first in range(n))
            sent = elements_moved(move, program, sizes, {axis.name: n})
            if sent != rounds * largest or len(whole) % n == 0:
                raise KernelError(f"{k.claim}: {move} sends {sent} of {len(whole)}, to {n} devices")
