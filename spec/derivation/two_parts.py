"""Backward in two parts: what a pipeline's stage before waits for, and what nobody waits for.

The gradient of a matrix is a product of what the matrix multiplied and of its result's cotangent: it
can be made at any time while both are held. All else of backward is the first part: the cotangent of
what the part took, and gradients that need no product, such as those of scales and offsets.
(Qi et al., arXiv 2401.10241, section 2.1)
"""

from __future__ import annotations

from dataclasses import replace

from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.models.values import Does, Part, Value, cotangent_of


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

    With them go moves of what they alone read. What is in turns of a ring stays in its loop.
    """

    def in_turns(line: Line) -> bool:
        return any(program.is_in_turns(value) for value in (*line.reads, line.makes))

    lines, first, second = program.backward, list[Line](), list[Line]()
    names = {cotangent_of(weight).plain_name for weight in multiplied(program.part)}
    names -= {line.makes.plain_name for line in lines if in_turns(line)}
    now = {*program.gradients.values(), program.returns}
    now -= {gradient for gradient in now if gradient and gradient.plain_name in names}
    for line in reversed(lines):
        of_second_alone = isinstance(line, Move) and line.makes not in now and not in_turns(line)
        if line.makes.plain_name in names or of_second_alone:
            second.insert(0, line)
        else:
            first.insert(0, line)
            now |= {*line.reads}
    return replace(program, backward=(*first, *second), waiting=len(second))
