"""F1: what backward makes again, and what is kept."""

from __future__ import annotations

from dataclasses import replace

from proofs.trusted.kernel import KernelError
from spec.checking.programs import check_program
from spec.derivation.programs import NOTHING, PAIRS, program_of
from spec.language.moves import Axis
from spec.models.parts import layer
from spec.models.transformer import Transformer
from spec.models.values import Operation, Part, Role, Value
from spec.plans.model_strategies import MODEL_AXES

_TENSOR = MODEL_AXES["tp+sp"]


def require_pairs(part: Part, axis: Axis) -> None:
    """Raise KernelError unless attention is made again from what is kept: pairs of tokens alone are.

    All of them, of a part that starts from samples, too.
    """
    plain, pairs = (program_of(part, (axis,), again) for again in (NOTHING, PAIRS))
    of_samples = program_of(_from_samples(part), (axis,), PAIRS)
    for value in (*pairs.kept, *of_samples.kept):
        if {"s", "u"} <= {*value.indices}:
            raise KernelError(f"{part.name} on {axis.name}: {value} is kept, a value of pairs")
    more = [line.makes for line in pairs.backward if line in pairs.forward]
    for value in (value for value in more if value.width and value in plain.kept):
        if not {"s", "u"} <= {*value.indices}:
            raise KernelError(f"{part.name} on {axis.name}: {value} is made again with attention")


def _from_samples(part: Part) -> Part:
    """The part, of which what it takes is samples."""

    def taken(value: Value) -> Value:
        return replace(value, role=Role.CONSTANT) if value == part.takes else value

    lines = (line.on(tuple(map(taken, line.reads)), line.makes) for line in part.operations)
    return replace(part, operations=tuple(lines), takes=None)


def require_mask_kept(model: Transformer) -> None:
    """Raise KernelError unless a mask that heads share is kept where pairs of tokens are made again."""
    program = program_of(layer(model, *model.kinds), (_TENSOR,), PAIRS)
    if not any(value.repeats for value in program.kept):
        raise KernelError(f"{program.part.name}: the mask of pairs is made again")


def require_named(part: Part) -> None:
    """Raise KernelError unless just what is named is not kept, by its own name or its function's."""
    plain = program_of(part, (_TENSOR,), names=frozenset())
    made = [line for line in plain.forward if isinstance(line, Operation)]
    for line in (line for line in made if line.makes in plain.kept):
        for name in filter(None, (line.makes.name, line.function)):
            program = check_program(program_of(part, (_TENSOR,), names=frozenset({name})))
            named = {op.makes for op in made if name in (op.makes.name, op.function)}
            if named & {*program.kept} or {*plain.kept} - {*program.kept} != named & {*plain.kept}:
                raise KernelError(f"{part.name}: {name} is kept, or more is not")
