"""Backward in two parts: what a pipeline's stage before waits for, and what nobody waits for.

The gradient of a matrix is a product of what the matrix multiplied and of its result's cotangent: it
can be made at any time while both are held. All else of backward is the first part: the cotangent of
what the part took, and gradients that need no product, such as those of scales and offsets.
(Qi et al., arXiv 2401.10241, section 2.1)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import Does, Part, Role, Value


def multiplied(part: Part) -> tuple[Value, ...]:
    """The weights of matrix products: a product sums over some index of theirs."""
    return tuple(
        weight
        for weight in part.weights
        for operation in part.operations
        if operation.does is Does.CONTRACT and weight in operation.reads
        if not {*weight.indices} <= {*operation.makes.indices}
    )


def gradients_last(program: Program) -> Program:
    """The program, with gradients of matrices after all else of backward.

    With them go moves of what they alone read. What is in turns of a ring stays in its loop; and what
    reads a weight in the first part, after which that may be gathered no more.
    """

    def stays(line: Line) -> bool:
        return any(value.role is Role.WEIGHT or program.is_in_turns(value) for value in line.reads)

    lines, first, second = program.backward, list[Line](), list[Line]()
    made_by = {line.makes: line for line in lines}
    last = set[Value]()
    for weight in multiplied(program.part):
        of_gradient = [*_terms(program.gradients[weight], made_by)]
        if not any(map(stays, of_gradient)):
            last |= {line.makes for line in of_gradient}
    now = {program.returns, *program.gradients.values()}
    for line in reversed(lines):
        of_second_alone = isinstance(line, Move) and line.makes not in now and not stays(line)
        if line.makes in last or of_second_alone:
            second.insert(0, line)
        else:
            first.insert(0, line)
            now |= {*line.reads}
    return replace(program, backward=(*first, *second), waiting=len(second))


def _terms(gradient: Value, made_by: Mapping[Value, Line]) -> Iterator[Line]:
    """The lines of a gradient: its products, and what adds them up and moves them."""
    if line := made_by.get(gradient):
        yield line
        if isinstance(line, Move) or line.does is Does.ADD:
            for value in line.reads:
                yield from _terms(value, made_by)
