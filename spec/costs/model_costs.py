"""What a program holds and sends, per device: elements of values, as they lie on a mesh."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from spec.costs.lifetimes import arriving, live
from spec.devices.collectives import COLLECTIVES, RING
from spec.devices.layouts import WHOLE, Lies
from spec.devices.mesh import Device, Mesh, group_size
from spec.language.moves import Move
from spec.language.programs import Program
from spec.models.parts import Model, parts
from spec.models.profiles import COUNT_BYTES
from spec.models.transformer import EMBEDDING, HEAD, Transformer, is_layer, is_turned
from spec.models.values import FULL, NUMBER_BYTES, Value
from spec.numbers.arithmetic import Number, per, quotient
from spec.plans.model_strategies import EXPERTS, SLOTS

Indices = Mapping[str, Number]  # how many values each index has
READS = {EMBEDDING: "tokens", HEAD: "next_words"}  # by their numbers


def elements(
    value: Value, lies: Lies, indices: Indices, mesh: Mesh, place: Device | None = None
) -> Number:
    """Elements a device has of a value: of a cut index its slice, rounded up; of slots, `slots_of`.

    Along an index that it repeats they are the same ones. At a `place`, its own positions alone: the
    last slices have fewer. Of axes that cut an index the outer one is first.
    """
    product: Number = 1
    rest = value.indices
    if has_slots(value):
        cuts = (_devices(index, lies, mesh) for index in (EXPERTS, SLOTS))
        _, product = slots_of(indices, *cuts)
        rest = tuple(index for index in rest if index not in (EXPERTS, SLOTS))
    for index in (index for index in rest if index not in value.repeats):
        has = quotient(indices[index], _devices(index, lies, mesh))
        if place:
            before = _before(index, lies, mesh, place) * has
            has = min(has, max(0, indices[index] - before))
        product = product * has
    return product


def has_slots(value: Value) -> bool:
    """Whether it has an element, or a row, of each slot of each expert."""
    return SLOTS in value.indices


def slots_of(indices: Indices, experts_cut: Number, slots_cut: Number) -> tuple[Number, Number]:
    """Slots on a device, at least and at most: one of its tokens' choices is in each.

    Experts are cut in so many slices, and slots. Choices are spread over the experts as evenly as can
    be: none has two more than another. Of all experts there are as many slots as choices, however
    these are spread.
    """
    experts, slots = indices[EXPERTS], per(indices[SLOTS], slots_cut)
    some = quotient(experts, experts_cut)
    if not isinstance(some, int) or not isinstance(slots, int | Fraction):
        return some * slots, some * slots
    each, more = divmod(experts * slots, experts)
    least, most = max(0, more - (experts - some)), min(more, some)
    return per(some * each + least, 1), per(some * each + most, 1)


def _devices(index: str, lies: Lies, mesh: Mesh) -> Number:
    """How many slices an index is cut in."""
    devices: Number = 1
    for axis, lie in lies.items():
        if lie.index == index:
            devices = devices * mesh[axis]
    return devices


def _before(index: str, lies: Lies, mesh: Mesh, place: Device) -> Number:
    """How many slices of an index come before that of the device at a place."""
    number: Number = 0
    for axis, lie in lies.items():
        if lie.index == index:
            number = number * mesh[axis] + place.get(axis, 0)
    return number


def elements_moved(move: Move, program: Program, indices: Indices, mesh: Mesh) -> Number:
    """Elements a device sends in a move, by ring or by pairwise exchange (claims C1 to C4).

    Of choices of experts, at most: but for the least that tokens and experts of one device can share,
    and as many as those of two can.
    """
    if not move.is_sent:
        return 0
    n = group_size(mesh, program.axes_of(move))
    has = _elements(move.value, program, indices, mesh)
    is_own = move.collective == "all_gather" or move.collective in RING
    count = messages(move, program, mesh)
    if isinstance(has, int) and has_slots(move.value):
        if move.collective == "reduce_scatter":  # slices are not alike
            return count * _elements(move.makes, program, indices, mesh)
        if move.collective == "all_to_all":
            least, most = _of_own(move, program, indices, mesh)
            return min(has - least, count * most)
    return count * (has if is_own else quotient(has, n))


def is_at_most(move: Move, program: Program, indices: Indices, mesh: Mesh) -> bool:
    """Whether what a device sends in a move depends on choices of experts, as even as they are."""
    has = _elements(move.value, program, indices, mesh)
    if not (has_slots(move.value) and move.is_sent and isinstance(has, int)):
        return False
    least, most = _of_own(move, program, indices, mesh)
    return least != most and move.collective != "all_reduce"


def _of_own(move: Move, program: Program, indices: Indices, mesh: Mesh) -> tuple[Number, Number]:
    """Elements of one device's tokens in slots of one device's experts, at least and at most."""
    ends = [program.lies[value] for value in (move.value, move.makes)]
    cuts = (max(_devices(index, lies, mesh) for lies in ends) for index in (EXPERTS, SLOTS))
    rest = tuple(index for index in move.value.indices if index not in (EXPERTS, SLOTS))
    beside = elements(replace(move.value, indices=rest), ends[0], indices, mesh)
    least, most = slots_of(indices, *cuts)
    return least * beside, most * beside


def messages(move: Move, program: Program, mesh: Mesh) -> Number:
    """Messages that a device sends in a move that sends, in all turns of the loops that it is in."""
    n = group_size(mesh, program.axes_of(move))
    found = (COLLECTIVES | RING)[move.collective].messages(n)
    for axis in program.axes:
        is_loop = axis.ring and axis.turns != move.turns
        if is_loop and program.lies[move.value][axis.turns] != WHOLE:
            found = found * mesh[axis.name]
    return found


def kept_bytes(program: Program, indices: Indices, mesh: Mesh, place: Device | None = None) -> Number:
    """Bytes of what backward reads of forward: the activations, where they are kept.

    At a `place`, without padding.
    """
    return _bytes(program.stored, program, indices, mesh, place)


def waiting_bytes(
    program: Program, indices: Indices, mesh: Mesh, place: Device | None = None
) -> Number:
    """Bytes of what is held between the two parts of backward, as `kept_bytes`."""
    return _bytes(program.stored_between, program, indices, mesh, place)


def fullest_moment(program: Program, indices: Indices, mesh: Mesh) -> Number:
    """Bytes of the values that are there at once while the part runs, forward or backward, at most.

    But for what is counted elsewhere: what is kept for backward, or is in its place, weights, and their
    gradients.
    """
    apart = {*program.part.weights, *program.gradients.values(), *program.kept, *program.overwriting}
    moments = []
    first_parts = len(program.lines) - program.waiting
    bytes_of = cache(lambda value: _bytes((value,), program, indices, mesh))
    for number, (here, rings) in enumerate(zip(live(program), arriving(program), strict=True)):
        here = here - {*program.held_between} if number >= first_parts else here
        second = [value for value, axis in rings.items() if mesh[axis] != 1]
        moments.append(sum(map(bytes_of, (*(here - apart), *second))))
        for move in program.moves if second else ():
            if move.makes in second and program.is_at_once(move):
                moments[-1] += (mesh[move.axis] - 2) * bytes_of(move.makes)
    return max(moments)


@dataclass(frozen=True)
class Numbers:
    """Bytes that parts keep of one micro-batch: of its tokens, and of the places of a sample's.

    Places are numbers, where they are learned (of each sample, if some are spare: transformers, OPT),
    else cosines and sines, once for all layers that have the same; or all of a mask of pairs that
    layers share; and what layers are given, if that is kept. With them is the count by which a mean
    loss is divided.
    """

    tokens: Number
    places: Number


def numbers_of(
    programs: Iterable[Program],
    model: Transformer,
    indices: Indices,
    mesh: Mesh,
    width: Number,
    sets: int = 1,
) -> Numbers:
    """Those of some parts, on one device. `width`: bytes of a cosine; `sets`: of cosines and sines."""
    of = {program.part.name: program for program in programs}
    tokens = sum(_tokens(of[name], READS[name], indices, mesh) for name in of if name in READS)
    each = samples_on(of[EMBEDDING], indices, mesh) if model.spare and EMBEDDING in of else 1
    learned = NUMBER_BYTES * indices["s"] * each if model.positions and EMBEDDING in of else 0
    is_needed = model.turned and any(map(is_turned, of))
    layer = next((of[name] for name in of if model.shares_mask and is_layer(name)), None)
    samples = samples_on(layer, indices, mesh) if layer else 0
    mask = width * samples * model.heads * indices["s"] * indices["s"]
    width = FULL if model.angles_in_full else width
    features = model.turned_features if not model.paired_angles else quotient(model.turned_features, 2)
    turned = 2 * width * indices["s"] * features * sets if is_needed else 0
    count = COUNT_BYTES if HEAD in of else 0
    return Numbers(NUMBER_BYTES * tokens, learned + turned + mask + count)


def given_bytes(
    layer: Program,
    model: Transformer,
    indices: Indices,
    mesh: Mesh,
    width: Number,
    windows: Collection[Number],
    in_kernel: bool,
) -> Number:
    """Bytes of what layers are given beside what they take: once for all that are given the same.

    Numbers of places; distances, and cosines and sines that nothing is turned by. (transformers,
    modeling_layers.py: GradientCheckpointingLayer; models/*/modeling_*.py) And masks.
    """
    samples, tokens = samples_on(layer, indices, mesh), indices["s"]
    turned = 2 * width * tokens * model.turned_features if model.unread_angles else 0
    distances = width * samples * model.heads * tokens if model.distances else 0
    if model.positions:  # else one number for all samples, if there are angles
        numbers = NUMBER_BYTES * samples * tokens if model.spare else 0
    else:
        numbers = NUMBER_BYTES * tokens if model.turned or model.unread_angles else 0
    masks = _masks(model, samples, tokens, width, windows, in_kernel)
    return numbers + turned + distances + masks


def _masks(
    model: Transformer,
    samples: Number,
    tokens: Number,
    width: Number,
    windows: Collection[Number],
    in_kernel: bool,
) -> Number:
    """Bytes of masks of pairs of tokens that layers are given, one for each of their windows.

    A number for each pair, of each sample, or of each head where Falcon tells distances; or, where
    attention is one kernel, a byte, of all samples if windows are no chunks. (transformers,
    masking_utils.py: eager_mask, sdpa_mask; models/falcon/modeling_falcon.py: FalconModel) One that is
    counted with places is not again.
    """
    if model.shares_mask:
        return 0
    if in_kernel and not model.distances:
        count = sum(model.is_given_mask(window, tokens) for window in windows)
        return count * (samples if model.chunked else 1) * tokens * tokens
    heads = model.heads if model.unread_angles else 1
    return len(windows) * width * samples * heads * tokens * tokens


def samples_on(program: Program, indices: Indices, mesh: Mesh) -> Number:
    """How many samples a device has."""
    gives = program.gives
    return elements(replace(gives, indices=("b",)), program.lies[gives], indices, mesh)


def _tokens(program: Program, name: str, indices: Indices, mesh: Mesh) -> Number:
    """How many a device has of the tokens of that name."""
    value = next(value for value in program.lies if value.plain_name == name)
    return elements(replace(value, indices=("b", "s")), program.lies[value], indices, mesh)


def _bytes(
    values: Iterable[Value],
    program: Program,
    indices: Indices,
    mesh: Mesh,
    place: Device | None = None,
) -> Number:
    return sum(value.width * _elements(value, program, indices, mesh, place) for value in values)


def _elements(
    value: Value, program: Program, indices: Indices, mesh: Mesh, place: Device | None = None
) -> Number:
    """Along turns, those of one turn: a ring has as many as devices."""
    turns = {axis.turns: mesh[axis.name] for axis in program.axes if axis.ring}
    return elements(value, program.lies[value], indices, {**mesh, **turns}, place)


def weight_elements(program: Program, indices: Indices, mesh: Mesh) -> dict[Value, Number]:
    """Elements that a device has of each weight."""
    return {
        weight: elements(weight, program.lies[weight], indices, mesh) for weight in program.part.weights
    }


def largest_part(model: Model, sequence: Number = 1) -> Number:
    """Elements of the weights of the part that has most: of a layer, the embedding or the head."""
    indices = model.sizes(1, sequence)
    return max(sum(elements(w, {}, indices, {}) for w in part.weights) for part in parts(model))


def active(model: Transformer) -> Number:
    """Elements of the weights that one token passes: of experts, those that it chooses; all words."""
    found = parameters(model)
    of_experts = {w.name for part in parts(model) for w in part.weights if "e" in w.indices}
    passed = sum(size for name, size in found.items() if name.partition(".")[2] not in of_experts)
    chosen = sum(size for name, size in found.items() if name.partition(".")[2] in of_experts)
    return passed + (quotient(chosen * model.chosen, model.experts) if of_experts else 0)


def further_elements(model: Transformer) -> Number:
    """Elements of the modules that predict further tokens, but for words, which are the model's.

    Each is a layer like the last, a product that joins what it takes and a word, and three norms.
    (arXiv 2412.19437, section 2.2)
    """
    (name,) = model.layers_of(model.layers - 1, model.layers)
    layer, indices = next(part for part in parts(model) if part.name == name), model.sizes(1, 1)
    weights_of_layer = sum(elements(w, {}, indices, {}) for w in layer.weights)
    return model.further * (weights_of_layer + 2 * model.hidden**2 + 3 * model.hidden)


def parameters(model: Model, sequence: Number = 1) -> dict[str, Number]:
    """Elements of each weight of a whole model: of all layers together, of tied words once.

    `sequence`: positions of a sample, of which only a model of one's own may have weights.
    """
    indices = model.sizes(1, sequence)
    counted: set[Value] = set()
    found: dict[str, Number] = {}
    layers = model.layers_of(0, model.layers)
    for part in parts(model):
        name, times = ("layers", layers[part.name]) if is_layer(part.name) else (part.name, 1)
        for weight in part.weights:
            if weight not in counted:
                found[f"{name}.{weight.name}"] = times * elements(weight, {}, indices, {})
        counted.update(part.weights)
    return found
