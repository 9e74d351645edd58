"""What a program holds and sends, per device: elements of values, as they lie on a mesh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spec.arithmetic import Number, quotient
from spec.collectives import COLLECTIVES
from spec.layouts import Layout
from spec.mesh import Mesh
from spec.programs import Lies, Move, Program, live
from spec.transformer import LAYER, Model, parts
from spec.values import Operation, Part, Role, Value

Indices = Mapping[str, Number]  # how many values each index has
WRITTEN = 2  # bytes of what is computed in the weights' precision, as parts are written


def in_precision(part: Part, width: Number) -> Part:
    """The part, computed with weights of `width` bytes: only masks and fp32 values keep their width."""

    def sized(value: Value) -> Value:
        is_written = value.width == WRITTEN and value.role is not Role.WEIGHT
        return replace(value, width=width) if is_written else value

    def computed(operation: Operation) -> Operation:
        reads = tuple(sized(value) for value in operation.reads)
        return replace(operation, reads=reads, makes=sized(operation.makes))

    operations = tuple(computed(operation) for operation in part.operations)
    takes = sized(part.takes) if part.takes else None
    return replace(part, operations=operations, takes=takes, gives=sized(part.gives))


def elements(value: Value, lies: Lies, indices: Indices, mesh: Mesh) -> Number:
    """Elements a device has of a value: of a cut index its slice, rounded up."""
    product: Number = 1
    for index in value.indices:
        devices: Number = 1
        for axis, lie in lies.items():
            if lie.layout is Layout.SHARDED and lie.index == index:
                devices = devices * mesh[axis]
        product = product * quotient(indices[index], devices)
    return product


def elements_moved(move: Move, program: Program, indices: Indices, mesh: Mesh) -> Number:
    """Elements a device sends in a move, by ring or by pairwise exchange (claims C1 to C4)."""
    if move.collective == "slice":
        return 0
    n = mesh[move.axis]
    has = elements(move.value, program.lies[move.value], indices, mesh)
    chunk = has if move.collective == "all_gather" else quotient(has, n)
    return COLLECTIVES[move.collective].volume(n, chunk)


def kept_bytes(program: Program, indices: Indices, mesh: Mesh) -> Number:
    """Bytes of what backward reads of forward: the activations, where they are kept."""
    return _bytes(program.kept, program, indices, mesh)


def fullest_moment(program: Program, indices: Indices, mesh: Mesh) -> Number:
    """Bytes of the values that are there at once while the part runs, forward or backward, at most.

    But for what is counted elsewhere: what is kept for backward, weights, and their gradients.
    """
    of_states = {*program.part.weights, *program.gradients.values()}
    moments = live(program.forward, program.part.takes, program.gives)
    moments += live(program.backward, program.seed, program.returns)
    beside = (moment - of_states - {*program.kept} for moment in moments)
    return max(_bytes(values, program, indices, mesh) for values in beside)


def _bytes(values: Iterable[Value], program: Program, indices: Indices, mesh: Mesh) -> Number:
    return sum(value.width * elements(value, program.lies[value], indices, mesh) for value in values)


def weights(program: Program, indices: Indices, mesh: Mesh) -> dict[Value, Number]:
    """Elements that a device has of each weight."""
    return {
        weight: elements(weight, program.lies[weight], indices, mesh) for weight in program.part.weights
    }


def parameters(model: Model) -> dict[str, Number]:
    """Elements of each weight of a whole model: of all layers together, of tied words once."""
    indices = model.sizes(1, 1)
    counted: set[Value] = set()
    found: dict[str, Number] = {}
    for part in parts(model):
        name, times = ("layers", model.layers) if part.name == LAYER else (part.name, 1)
        for weight in part.weights:
            if weight not in counted:
                found[f"{name}.{weight.name}"] = times * elements(weight, {}, indices, {})
        counted.update(part.weights)
    return found
