"""What a program holds and sends, per device: elements of values, as they lie on a mesh."""

from __future__ import annotations

from collections.abc import Mapping

from spec.arithmetic import Number, quotient
from spec.collectives import COLLECTIVES
from spec.layouts import Layout
from spec.mesh import Mesh
from spec.programs import Lies, Move, Program
from spec.values import Value

Indices = Mapping[str, Number]  # how many values each index has


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


def elements_sent(move: Move, program: Program, indices: Indices, mesh: Mesh) -> Number:
    """Elements a device sends in a move, by ring or by pairwise exchange (claims C1 to C4)."""
    if move.collective == "slice":
        return 0
    n = mesh[move.axis]
    has = elements(move.value, program.lies[move.value], indices, mesh)
    chunk = has if move.collective == "all_gather" else quotient(has, n)
    return COLLECTIVES[move.collective].volume(n, chunk)


def kept_bytes(program: Program, indices: Indices, mesh: Mesh) -> Number:
    """Bytes of what backward reads of forward: the activations, where they are kept."""
    return sum(
        value.width * elements(value, program.lies[value], indices, mesh) for value in program.kept
    )


def weights(program: Program, indices: Indices, mesh: Mesh) -> dict[Value, Number]:
    """Elements that a device has of each weight."""
    return {
        weight: elements(weight, program.lies[weight], indices, mesh) for weight in program.part.weights
    }
