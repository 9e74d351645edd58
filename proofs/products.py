"""K5: products of strategies on different axes are accepted, for every mesh size."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

from proofs.kernel import Kernel, KernelError, Theorem
from proofs.program_values import Terms, computed, differentiated
from proofs.programs import accepted_rules, rules_in
from proofs.strategies import accepted
from spec.compose import Product, factor
from spec.derive import derive
from spec.distribute import distribute
from spec.layouts import PARTIAL
from spec.model_strategies import MODEL_AXES
from spec.programs import Move, Program, check
from spec.schedule import Rest, Schedule
from spec.stages import OUTSIDE, check_stages, pieces, sends, to_sum
from spec.strategies import STRATEGIES
from spec.transformer import Transformer, parts
from spec.values import Does, Value

OTHERS = "others"  # the axes that cut samples or tokens, and not a weight, as one (claim K2)
STATES = [name for name in STRATEGIES if len(STRATEGIES[name].axes) == 1 and name != "fused-update"]
GPT = Transformer(4, 8, 2, 2, 4, 32, 16, positions=4, tied=True, dropout=True)
EXPERTS = replace(GPT, experts=4, chosen=2)
MODELS = {
    "tp": [("tp",), ("tp", "pp"), ("pp",)],
    "tp+sp": [("tp+sp",), ("tp+sp", "pp"), ("tp+sp", "cp", "pp"), ("tp+sp", "ep", "cp", "pp")],
    "cp": [("cp",), ("cp-all-to-all",), ("tp", "cp-all-to-all", "pp")],
    "ep": [("ep",), ("ep", "tp", "pp")],
}


def products_of_strategies_are_accepted(k: Kernel) -> tuple[Theorem, ...]:
    """Any strategy of the states times TP, SP, PP, CP and EP is accepted, for all sizes. (Claim K5)

    Along the axes that do not cut a weight, that weight's gradient is partial and its states are
    replicated. So its schedule is that of the strategy times data parallelism, which is executed on
    symbols; the programs and the stages are typed.
    """
    proved = []
    with_data_parallelism: dict[str, Schedule] = {}
    dp = factor("dp", OTHERS)
    for name in STATES:
        schedule = derive((factor(name, "shard") * dp).states)
        if schedule not in with_data_parallelism.values():
            proved.append(accepted(k.part(name.replace("-", "_")), schedule))
        with_data_parallelism[name] = schedule
    for cuts in (cut for group in MODELS.values() for cut in group):
        model = Product(tuple(factor(name) for name in cuts))
        summed = _accepted_programs(k, model)
        for name in STATES:
            product = factor(name, "shard") * model
            for axes in summed - {()}:  # a weight that all axes cut is as it is alone (E9)
                _like(k, derive(product.states_of(axes)), with_data_parallelism[name], axes)
    return tuple(proved)


def _accepted_programs(k: Kernel, model: Product) -> set[tuple[str, ...]]:
    """The axes along which some weight's gradient is summed, once programs and stages are accepted.

    Every line keeps to a rule that E10 proves, and together they find what one device finds.
    """
    checked = {axis.name for axis in model.cuts} | ({model.pipe} if model.pipe else set())
    if checked != {*model.axes}:
        raise KernelError(f"{k.claim}: of {model.axes} only {checked} are checked")
    shape = EXPERTS if any(MODEL_AXES["ep"].name == axis for axis in model.axes) else GPT
    shared = _shared(k, shape, 2 if model.pipe else 1)
    found, terms, rules = set(), Terms(), accepted_rules()
    for part in parts(shape):
        program = distribute(part, model.cuts)
        check(program)
        alike = computed(program, terms) == differentiated(part, terms)
        if not alike or not rules_in(program) <= rules:
            raise KernelError(f"{k.claim}: {part.name} on {model.axes}: not what one device does")
        for weight in part.weights:
            axes = _partial_along(program, weight)
            if program.summed(weight) != axes:
                raise KernelError(f"{k.claim}: the gradient of {weight} is partial along {axes}")
            found.add((*axes, *(axis for axis in (model.pipe,) if axis and weight.name in shared)))
    if not found:
        raise KernelError(f"{k.claim}: no weights in {model}")
    return found


def _shared(k: Kernel, shape: Transformer, stages: int) -> set[str]:
    """The weights that pieces on different stages use, once what is sent and summed is accepted."""
    placed = pieces(shape, stages)
    neighbours = [(before, after) for before, after in pairwise(placed) if before.stage != after.stage]
    names = [{weight.name for weight in part.weights} for part in parts(shape)]
    of_two_parts = {name for one, other in combinations(names, 2) for name in one & other}
    shared = {(name, OUTSIDE) for name in of_two_parts if stages > 1}
    check_stages(placed, neighbours, shared)
    if {*to_sum(placed)} != shared or sends(placed) != neighbours or len(neighbours) < stages - 1:
        raise KernelError(f"{k.claim}: stages share {shared}, and send at {neighbours}")
    return {name for name, _ in shared}


def _partial_along(program: Program, weight: Value) -> tuple[str, ...]:
    """The axes along which the terms of a weight's gradient are typed partial, before any is moved."""
    sums, axes = {program.gradients[weight]}, set()
    for line in reversed(program.backward + program.finish):
        if line.makes not in sums:
            continue
        if isinstance(line, Move):
            sums.add(line.value)
        elif line.does is Does.ADD:
            sums |= {*line.reads}
        else:
            axes |= {axis for axis, lie in program.lies[line.makes].items() if lie == PARTIAL}
    return tuple(axis.name for axis in program.axes if axis.name in axes)


def _like(k: Kernel, schedule: Schedule, proved: Schedule, axes: tuple[str, ...]) -> None:
    """A schedule is the one that is proved, with some axes in place of the one for all of them."""

    def named(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(a for axis in found for a in (axes if axis == OTHERS else (axis,)))

    def rest(found: Rest) -> Rest:
        return replace(found, sharded=named(found.sharded))

    expected = replace(
        proved,
        axes=named(proved.axes),
        rests=tuple((state, rest(found)) for state, found in proved.rests),
        micro_step=tuple(
            replace(op, axes=named(op.axes), within=named(op.within)) for op in proved.micro_step
        ),
        finish=tuple(replace(op, axes=named(op.axes), within=named(op.within)) for op in proved.finish),
    )
    if schedule != expected:
        raise KernelError(f"{k.claim}: {schedule.axes} is not scheduled as {proved.axes}")
