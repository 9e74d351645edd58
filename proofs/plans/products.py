"""K5: products of strategies on different axes are accepted, for every mesh size."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise, product

from proofs.claim import claim
from proofs.language.damaged_programs import must_reject
from proofs.language.program_rules import accepted_rules, rules_in
from proofs.language.programs import alone
from proofs.models.profile_words import require_words_mean
from proofs.pipelines.listed_pipelines import ListedPipeline, listed_pipelines
from proofs.plans.joints import (
    require_follows_itself,
    require_in_order,
    require_joined,
    require_layers_in_one_group,
    require_norm_of_one_group,
    require_shared_alike,
    require_summed_as_left,
    require_taken_as_given,
)
from proofs.plans.listing import listing
from proofs.plans.matching import match, require_everywhere
from proofs.plans.norm_lines import require_norm_lines
from proofs.plans.steps import (
    require_accepted,
    require_clipped,
    require_norms,
    require_one_schedule,
    require_restricted,
    require_said_by_schedules,
    require_told_as_found,
)
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from spec.checking.programs import on_whole_values
from spec.costs.memory import Sizes, total_resting
from spec.derivation.programs import program_of
from spec.derivation.schedules import schedule_of
from spec.devices.layouts import PARTIAL
from spec.language.moves import Axis, Move
from spec.language.programs import Program
from spec.language.schedule import REDUCTIONS, Rest, Schedule
from spec.language.steps import Step
from spec.models.parts import parts
from spec.models.states import BytePolicy, State
from spec.models.transformer import DENSE, DROPPED, USUAL, Transformer
from spec.models.values import Does, Part, Value
from spec.numbers.arithmetic import DIVISIBLE, Number
from spec.pipelines.pipeline import Order, Pipeline
from spec.pipelines.stages import NO_LAYER, check_stages, pieces, sends, to_sum
from spec.plans.compose import OVER_ALL, PIPELINE, OverlapError, Product, factor, with_all_samples
from spec.plans.model_strategies import MODEL_AXES
from spec.plans.placement import BATCH, Placement
from spec.plans.strategies import STRATEGIES

# axes that do not cut a weight, as one (claim K2): the strategy's own and those sharded alike; replicas
OWN, REPLICAS, ALIKE = "shard", "replicas", "alike"
STATES = [
    name for name in (*STRATEGIES, *OVER_ALL) if len(factor(name).axes) == 1 and name != "fused-update"
]
GPT = Transformer(4, 8, 2, 2, 4, 32, 16, positions=4, tied=True, dropout=DROPPED)
LLAMA = Transformer(
    4, 8, 2, 2, 4, 32, 16, gated=True, function="silu", norm="rms_norm", biases=frozenset()
)
SHAPES = (GPT, LLAMA, *(replace(shape, experts=4, chosen=2) for shape in (GPT, LLAMA)))
KINDS = (("tp", "tp+sp"), ("ep",), ("cp", "cp-all-gather", "cp-all-to-all"), ("pp",))
CHOICES = product(*(("", *kind) for kind in KINDS))  # none or one of each kind
MODELS = [names for choice in CHOICES if (names := tuple(filter(None, choice)))]
SHARED = ("zero1", "zero2", "zero3")  # strategies that share an axis with what cuts it
CLIPPED = (("zero1", "tp"), ("dp", "ep"), ("zero2", "cp"), ("zero3", "tp+sp", "pp"))  # in full
Sums = tuple[tuple[str, tuple[str, ...]], ...]  # of weights, the axes that gradients are summed along


@claim("K5")
def products_of_strategies_are_accepted(k: Kernel) -> tuple[Theorem, ...]:
    """Any strategy of the states times any product of TP, SP, CP, EP and PP is accepted. (Claim K5)

    Along the axes that do not cut a weight, that weight's gradient is partial. If its states are
    replicated there, its schedule is that of the strategy times data parallelism. If they are placed
    there as along the strategy's own axis (zero1+all), but for stages, every operation along that axis
    is along all of them at once: they are one. These match a single device, for all sizes; the programs
    and the stages are typed.
    """
    _require_over_all(k)
    _require_axes_are_shared(k)
    schedules: dict[Schedule, str] = {}
    kinds: set[tuple[Placement, ...]] = set()
    summed: dict[tuple[str, ...], Product] = {}  # factors of the model place no states: one of each
    for names in MODELS:
        model = Product(tuple(factor(name) for name in names))
        summed |= dict.fromkeys(_accepted_programs(k, model), model)
    summed.pop((), None)  # a weight that all axes cut is as it is alone (E9)
    for name, (axes, model) in product(STATES, summed.items()):
        places = _places(name, axes, model.pipe)
        strategies = [strategy for strategy, _ in places.values()]
        if len(places) == 1:  # of E9
            alone, along = STRATEGIES[strategies[0]], {BATCH: places[OWN][1]}
        else:
            alone = Product(tuple(factor(s, axis) for axis, (s, _) in places.items())).states
            along = {axis: found for axis, (_, found) in places.items()}
            schedules.setdefault(schedule_of(alone), "_x_".join(strategies))
            kinds.add(tuple(STRATEGIES[strategy] for strategy in strategies))
        whole = (factor(name, OWN) * model).states_of(axes)
        _like(k, schedule_of(whole), schedule_of(alone), along)
    for own, name in product(("dp", *SHARED), SHARED):
        require_everywhere(k, _where_whole(k, own, name))
    placed = factor("zero1") * factor("tp") * factor("zero1", MODEL_AXES["tp"].name)
    require_told_as_found(placed, parts(GPT))
    require_joined("tp", "tp+sp", parts(GPT))
    require_in_order(("zero1", "cp", "tp+sp"), parts(GPT), "s")
    require_said_by_schedules()
    require_restricted()
    require_clipped()
    require_norm_lines()
    require_norm_of_one_group(parts(LLAMA))
    of_two_kinds = replace(SHAPES[2], kinds=(frozenset((DENSE,)), USUAL))
    require_taken_as_given(("zero1", "tp+sp", "pp"), parts(of_two_kinds))
    for name in (*SHARED, "fsdp-hold", "hsdp"):
        require_one_schedule(name, parts(GPT))
    require_shared_alike()
    require_layers_in_one_group(parts(GPT))
    require_follows_itself()
    require_summed_as_left()
    require_words_mean()
    for names in CLIPPED:
        require_accepted(names, parts(SHAPES[2 if "ep" in names else 0]))
    for names in MODELS:
        require_norms(("zero1", *names), parts(SHAPES[2 if "ep" in names else 0]))
    if len(schedules) != len(kinds):
        raise KernelError(f"{k.claim}: on another axis two strategies are one")
    for schedule in schedules:
        require_everywhere(k, schedule)
    return (match(k, {name: listing(schedule) for schedule, name in schedules.items()}),)


def _where_whole(k: Kernel, own: str, along: str) -> Schedule:
    """The schedule of states that are placed by a strategy along an axis of which a gradient is whole.

    And by another, or the same, along the axis that cuts samples. Over that one each device sums its
    own slice along the other, if that is what is kept, or updated.
    """
    axis = MODEL_AXES["tp"].name
    placed = (factor(own, OWN) * factor(along, ALIKE)).states
    schedule = schedule_of(with_all_samples(placed, (ALIKE,)))
    of_plan = factor(own, OWN) * factor("tp") * factor(along, axis)
    _like(k, schedule_of(of_plan.states_of((), (axis,))), schedule, {ALIKE: (axis,)})
    for ops, state in zip(schedule.bodies, (State.GRADIENTS, State.OPTIMIZER), strict=True):
        slices = tuple(axis for axis in schedule.rest(state).sharded if axis == ALIKE)
        if other := [op for op in ops if op.kind in REDUCTIONS and op.within != slices]:
            raise KernelError(f"{k.claim}: {own}, {along} along {ALIKE}: more is summed: {other[0]}")
    return schedule


def _require_over_all(k: Kernel) -> None:
    """Raise KernelError unless strategies over all axes are those that keep less on more devices."""

    def kept(placed: Placement, devices: int) -> Number:
        mesh = dict.fromkeys(placed.axes, Fraction(devices))
        sizes = Sizes(Fraction(1), mesh, BytePolicy(1, 1, 1), None, DIVISIBLE)
        return sum(total_resting(schedule_of(placed), sizes, host) for host in (False, True))

    sharding = {f"{name}+all" for name, p in STRATEGIES.items() if kept(p, 4) < kept(p, 2)}
    if sharding != {*OVER_ALL}:
        raise KernelError(f"{k.claim}: {sorted(sharding)} shard states, not {sorted(OVER_ALL)}")


def _require_axes_are_shared(k: Kernel) -> None:
    """Raise KernelError unless two factors share an axis just where one places states and one cuts.

    States that a factor places along what another cuts are as those of a strategy over all axes.
    """
    cutting = MODEL_AXES.keys() - STRATEGIES.keys()
    if any(axis.held or axis.at_once or axis.in_full for axis in MODEL_AXES.values()):
        raise KernelError(f"{k.claim}: an axis holds what no profile holds")
    for one, other in product((*SHARED, *sorted(cutting), PIPELINE), repeat=2):
        apart = (one in SHARED) is not (other in SHARED) and PIPELINE not in (one, other)
        try:
            Product((factor(one, OWN), factor(other, OWN)))
            shares = True
        except OverlapError:
            shares = False
        if shares is not apart:
            raise KernelError(f"{k.claim}: {one} and {other} on one axis: {shares}")
    axis = MODEL_AXES["cp"].name
    for name in SHARED:
        cut = factor(name, OWN) * factor("cp")
        also, alike = cut * factor(name, axis), factor(f"{name}+all", OWN) * factor("cp")
        if also.states_of((axis,)) != alike.states_of((axis,)):
            raise KernelError(f"{k.claim}: {name} along {axis} is otherwise than {name}+all")
        if (also.axes, also.batch_axes) != ((OWN, axis), (OWN,)):
            raise KernelError(f"{k.claim}: axes {also.axes}, of samples {also.batch_axes}")


def _places(
    name: str, axes: tuple[str, ...], pipe: str | None
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Of a weight whose gradient is summed along some axes: the strategy on each of up to two axes.

    And the axes that each stands for: the strategy's own with those along which it is alike; the rest.
    """
    own, over_all = OVER_ALL.get(name, name), name in OVER_ALL
    alike = tuple(axis for axis in axes if over_all and axis != pipe)
    rest = tuple(axis for axis in axes if axis not in alike)
    places = {OWN: (own, (OWN, *alike)), REPLICAS: ("dp", rest)}
    return {axis: place for axis, place in places.items() if place[1]}


def _accepted_programs(k: Kernel, model: Product) -> set[tuple[str, ...]]:
    """The axes along which some weight's gradient is summed, once programs and stages are accepted.

    Of every shape; where there are experts to cut, of those that have them.
    """
    checked = {axis.name for axis in model.cuts} | ({model.pipe} if model.pipe else set())
    if checked != {*model.axes}:
        raise KernelError(f"{k.claim}: of {model.axes} only {checked} are checked")
    found = set()
    for shape in SHAPES:
        if MODEL_AXES["ep"].name in model.axes and not shape.experts:
            continue
        shared, pipe = _shared(shape, 2 if model.pipe else 1), (model.pipe,) if model.pipe else ()
        accepted = [_accepted_program(part, model.cuts) for part in parts(shape)]
        sums = {name: axes + pipe * (name in shared) for _, sums in accepted for name, axes in sums}
        step = Step(tuple(program for program, _ in accepted), (), model.pipe)
        wholes = {w.name: p.whole_over(w) for p, _ in accepted for w in p.part.weights}
        over = {name: (axes, wholes[name]) for name, axes in sums.items()}
        if step.gradients_over() != over:
            raise KernelError(f"{k.claim}: gradients are summed, and whole, over {over}")
        found |= {*sums.values()}
    if not found:
        raise KernelError(f"{k.claim}: no weights in {model}")
    return found


@lru_cache(maxsize=1024)
def _accepted_program(part: Part, cuts: tuple[Axis, ...]) -> tuple[Program, Sums]:
    """Its program, and the axes along which each weight's gradient is summed, once it is accepted.

    Every line keeps to a rule that E10 proves, and together they find what one device finds.
    """
    program, (terms, of_one) = program_of(part, cuts), alone(part)
    if on_whole_values(program, terms) != of_one or not rules_in(program) <= accepted_rules():
        raise KernelError(f"{part.name} on {[axis.name for axis in cuts]}: not what one device does")
    found = []
    for weight in part.weights:
        axes = _partial_along(program, weight)
        alike = {a.name for a in cuts if not program.lies[weight][a.name].index} - {*axes}
        if {*program.whole_over(weight)} != alike:
            raise KernelError(f"{part.name}: {weight.name} is whole along {alike}")
        found.append((weight.name, axes))
    return program, tuple(found)


@lru_cache(maxsize=64)
def _shared(shape: Transformer, stages: int) -> frozenset[str]:
    """The weights that pieces on different stages use, once what is sent and summed is accepted.

    The stages are among those of which E11 proves it. And without any one of what is sent and summed
    they are rejected.
    """
    placed = pieces(shape, Pipeline(Order.ONE_F_ONE_B, stages, 1))
    neighbours = [(before, after) for before, after in pairwise(placed) if before.stage != after.stage]
    names = [{weight.name for weight in part.weights} for part in parts(shape)]
    of_two_parts = {name for one, other in combinations(names, 2) for name in one & other}
    shared = {(name, NO_LAYER) for name in of_two_parts if stages > 1}
    check_stages(placed, neighbours, shared)
    if stages > 1 and ListedPipeline(placed, stages).listed not in _listed_stages():
        raise KernelError(f"{stages} stages of {shape} are not among those of E11")
    if {*to_sum(placed)} != shared or sends(placed) != neighbours or len(neighbours) < stages - 1:
        raise KernelError(f"stages share {shared}, and send at {neighbours}")
    for sent in neighbours:
        must_reject(check_stages, placed, [pair for pair in neighbours if pair != sent], shared)
    for summed in shared:
        must_reject(check_stages, placed, neighbours, shared - {summed})
    return frozenset(name for name, _ in shared)


@lru_cache(maxsize=1)
def _listed_stages() -> list[object]:
    """The stages of which E11 proves that all their pieces are accepted."""
    return [pipeline.listed for pipeline in listed_pipelines().values()]


def _partial_along(program: Program, weight: Value) -> tuple[str, ...]:
    """The axes along which the terms of a weight's gradient are typed partial, before any is moved."""
    sums, axes = {program.gradients[weight]}, set()
    for line in reversed(program.backward):
        if line.makes not in sums:
            continue
        if isinstance(line, Move):
            sums.add(line.value)
        elif line.does is Does.ADD:
            sums |= {*line.reads}
        else:
            axes |= {axis for axis, lie in program.lies[line.makes].items() if lie == PARTIAL}
    return tuple(axis.name for axis in program.axes if axis.name in axes)


def _like(
    k: Kernel, schedule: Schedule, proved: Schedule, stands_for: dict[str, tuple[str, ...]]
) -> None:
    """A schedule is the one that is proved, with some axes in place of each that stands for them."""

    def named(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(a for axis in found for a in stands_for.get(axis, (axis,)))

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
