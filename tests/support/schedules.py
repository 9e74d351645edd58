"""Schedules to draw: derived ones, with real-life pieces added, damaged, or made up."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

from hypothesis import strategies as st

from proofs.checking.witnesses import broken_schedules
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.language.schedule import (
    MICRO_STEPS,
    PASSING,
    REDUCTIONS,
    Buffer,
    Kind,
    Monomial,
    Op,
    Phase,
    Rest,
    Schedule,
    Span,
)
from spec.models.states import POLICIES, State
from spec.models.training import Loss, Statistics, Training
from spec.plans.modes import Mode
from spec.plans.placement import on_batch, place_states
from spec.plans.strategies import STRATEGIES
from tests.support.damage import FACTORS, damaged, one_of, operations, redirected, some_axes, trainings

SYMBOLS = [mode.value for mode in Mode]
PLACEMENTS = list(product(SYMBOLS, repeat=4))
AXES = ("a", "b")


@cache
def realisable():
    """The placements on one batch axis whose derived step is accepted."""
    return [q for q in PLACEMENTS if check(schedule_of(on_batch(*q)), {"batch": 5}).accepted]


@cache
def realised():
    """Draws one of them."""
    return st.sampled_from(realisable())


@st.composite
def placements(draw, axes=1):
    """A placement on one batch axis that is realisable there, or any on two."""
    if axes == 1:
        hold = draw(st.booleans())
        return on_batch(*draw(realised()), hold=hold)
    mode = st.sampled_from([Mode.REPLICATED, Mode.SHARDED, Mode.GATHERED])
    modes = {state: {axis: draw(mode) for axis in AXES} for state in State}
    return place_states(AXES, modes, draw(st.booleans()))


# ------------------------------------------------------------- real-life pieces
def rewrite(schedule, change):
    """The schedule with each operation replaced by some: change(op) is a list."""
    parts = [[new for op in part for new in change(op)] for part in schedule.bodies]
    return replace(schedule, micro_step=tuple(parts[0]), finish=tuple(parts[1]))


def without_releases(schedule):
    """The schedule, in which no buffer that passes is ever dropped."""
    return rewrite(
        schedule, lambda op: [op] if op.kind is not Kind.RELEASE or op.target not in PASSING else []
    )


def before_update(schedule, make):
    """The schedule with make(update) before each update."""
    return rewrite(schedule, lambda op: [*make(op), op] if op.kind is Kind.UPDATE else [op])


def training(schedule, **what):
    return replace(schedule, training=replace(schedule.training, **what))


def with_mean(schedule):
    """The loss is a mean: each reduction takes one, and the micro-steps' is taken before the update."""

    def change(op):
        sums = op.kind in REDUCTIONS and op.state is State.GRADIENTS
        return [replace(op, mean=True)] if sums else [op]

    averaged = rewrite(training(schedule, loss=Loss.MEAN), change)
    return scaled(averaged, Monomial(powers=((MICRO_STEPS, -1),)))


def scaled(schedule, factor):
    """The gradient is scaled just before the update."""
    return before_update(
        schedule, lambda op: [Op(Kind.SCALE, Phase.UPDATE, op.source, within=op.within, by=factor)]
    )


def with_loss_scale(schedule, factor):
    """Gradients are computed larger by a factor, and scaled back before the update."""

    def change(op):
        scale = Op(Kind.SCALE, Phase.BACKWARD, Buffer.FRESH, by=Monomial(factor))
        fresh = op.kind is Kind.BACKWARD and op.target is Buffer.FRESH
        return [op, scale] if fresh else [op]

    if not any(op.kind is Kind.BACKWARD and op.target is Buffer.FRESH for op in schedule.micro_step):
        return schedule
    return scaled(rewrite(schedule, change), Monomial(1 / factor))


def with_token_mean(schedule):
    """The loss is a mean over tokens: counted, accumulated, summed, and divided by at last."""
    total, phase = Buffer.TOTAL_TOKENS, Phase.UPDATE
    counting = (
        Op(Kind.COUNT, Phase.FORWARD, Buffer.TOKENS),
        Op(Kind.ACCUMULATE, Phase.FORWARD, Buffer.TOKENS, total),
    )
    divided = before_update(
        training(schedule, loss=Loss.TOKEN_MEAN),
        lambda op: [
            Op(Kind.ALL_REDUCE, phase, total, axes=schedule.axes),
            Op(Kind.DIVIDE, phase, op.source, within=op.within, by=total),
            Op(Kind.RESET, phase, total),
        ],
    )
    return replace(divided, micro_step=counting + divided.micro_step)


def with_clipping(schedule):
    """The gradient is clipped by its norm, to which every slice adds its part."""
    norm, phase = Buffer.NORM, Phase.UPDATE
    return before_update(
        training(schedule, clip=True),
        lambda op: [
            Op(Kind.SQUARE_NORM, phase, op.source, norm, within=op.within),
            Op(Kind.ALL_REDUCE, phase, norm, axes=op.within),
            Op(Kind.CLIP, phase, op.source, within=op.within, by=norm),
        ],
    )


def with_tied_parameters(schedule):
    """Parameters are used in two places, whose gradients are added before anything else."""

    def change(op):
        tied, phase = Buffer.TIED, Phase.BACKWARD
        if op.kind is not Kind.BACKWARD:
            return [op]
        return [op, Op(Kind.ACCUMULATE, phase, tied, op.target), Op(Kind.RELEASE, phase, tied)]

    return rewrite(training(schedule, tied=True), change)


def with_statistics(schedule, whose):
    """Forward changes statistics, which are made the same after it."""
    of_all = whose is Statistics.ALL
    kind = Kind.ALL_REDUCE if of_all else Kind.BROADCAST

    def change(op):
        same = Op(kind, Phase.FORWARD, Buffer.STATISTICS, axes=schedule.axes, mean=of_all)
        return [op, same] if op.kind is Kind.FORWARD else [op]

    return rewrite(training(schedule, statistics=whose), change)


PIECES = {
    "plain": lambda schedule: schedule,
    "mean": with_mean,
    "token mean": with_token_mean,
    "loss scale": lambda schedule: with_loss_scale(schedule, Fraction(1024)),
    "clipping": with_clipping,
    "tied parameters": with_tied_parameters,
    "mean statistics": lambda schedule: with_statistics(schedule, Statistics.ALL),
    "broadcast statistics": lambda schedule: with_statistics(schedule, Statistics.FIRST),
}


@st.composite
def real_life(draw, schedule):
    """A schedule with some of the pieces that real training has."""
    tied, loss, clipping, statistics = (
        draw(one_of("plain", *names))
        for names in (
            ["tied parameters"],
            ["mean", "token mean", "loss scale"],
            ["clipping"],
            ["mean statistics", "broadcast statistics"],
        )
    )
    for piece in (tied, loss, clipping, statistics):
        schedule = PIECES[piece](schedule)
    return schedule


# -------------------------------------------------------------------- made up
@cache
def few_operations(axes):
    """Any operations, four at most."""
    return st.lists(operations(axes), max_size=4)


@st.composite
def made_up(draw):
    """Operations at random, around a backward and an update."""
    axes = draw(one_of(("batch",), AXES))
    rests = tuple(
        (state, Rest(some_axes(draw, axes), draw(st.booleans()) or state is State.PARAMETERS))
        for state in State
    )
    micro_step = draw(few_operations(axes))
    finish = draw(few_operations(axes))
    forward = Op(Kind.FORWARD, Phase.FORWARD, Buffer.PARAMETERS, Buffer.ACTIVATIONS)
    backward = Op(Kind.BACKWARD, Phase.BACKWARD, Buffer.PARAMETERS, Buffer.GRADIENTS)
    update = Op(Kind.UPDATE, Phase.UPDATE, Buffer.GRADIENTS, Buffer.OPTIMIZER)
    reset = Op(Kind.RESET, Phase.UPDATE, Buffer.GRADIENTS)
    steps = (tuple(micro_step), (forward, backward)), (tuple(finish), (update, reset))
    parts = [second + first if draw(st.booleans()) else first + second for first, second in steps]
    return Schedule(axes, rests, parts[0], parts[1], Training(**draw(trainings())))


def fresh_gradients(view=Buffer.PARAMETERS, axes=()):
    """The operations that leave a micro-step's gradients, of what was read, in fresh gradients."""
    phase, acts = Phase.BACKWARD, Buffer.ACTIVATIONS
    return [
        Op(Kind.FORWARD, phase, view, acts),
        Op(Kind.BACKWARD, phase, view, Buffer.FRESH, axes, span=Span.UNIT),
    ]


def added(ops):
    """Operations on fresh gradients, whose result is added to the gradients."""
    keep = Op(Kind.ACCUMULATE, Phase.BACKWARD, Buffer.FRESH, Buffer.GRADIENTS)
    return [*ops, keep, Op(Kind.RELEASE, Phase.BACKWARD, Buffer.FRESH)]


@st.composite
def changes_of_fresh_gradients(draw, axes):
    """An operation on fresh gradients, and what it needs."""
    fresh, phase = Buffer.FRESH, Phase.BACKWARD
    along = some_axes(draw, axes)
    within = some_axes(draw, axes, along)
    shift = draw(one_of(0, 0, 1))
    what = draw(one_of("sum", "slice", "gather", "first", "factor", "count", "norm"))
    if what == "sum":
        return [Op(Kind.ALL_REDUCE, phase, fresh, None, along, within, mean=draw(st.booleans()))]
    if what == "slice":
        return [Op(Kind.REDUCE_SCATTER, phase, fresh, None, along, within, shift=shift)]
    if what == "gather":
        return [Op(Kind.ALL_GATHER, phase, fresh, None, along, within, Span.UNIT, shift=shift)]
    if what == "first":
        return [Op(Kind.BROADCAST, phase, fresh, None, along, within)]
    if what == "factor":
        return [Op(Kind.SCALE, phase, fresh, within=within, by=draw(one_of(*FACTORS)))]
    number = Buffer.TOKENS if what == "count" else Buffer.NORM
    if what == "count":
        ops = [Op(Kind.COUNT, phase, number, axes=draw(one_of((), along)))]
    else:
        shift = shift if within else 0
        ops = [Op(Kind.SQUARE_NORM, phase, fresh, number, within=within, shift=shift)]
    together = draw(one_of(None, Kind.ALL_REDUCE, Kind.BROADCAST))
    ops += [Op(together, phase, number, None, some_axes(draw, axes))] if together else []
    use = Kind.DIVIDE if what == "count" else Kind.CLIP
    return [*ops, Op(use, phase, fresh, within=some_axes(draw, axes), by=number)]


@st.composite
def cancelled(draw):
    """Data parallelism, with something added to the gradient and something like it taken off again.

    It is right if the two are the same, whatever they are; the verdict may fail to see that they are.
    """
    axes = draw(one_of(("batch",), AXES))
    phase, view = Phase.FORWARD, Buffer.PARAMETERS
    ops = []
    if draw(st.booleans()):  # read something else than the parameters
        view = Buffer.VIEW
        kind = draw(one_of(Kind.REDUCE_SCATTER, Kind.ALL_REDUCE, Kind.KEEP))
        along = () if kind is Kind.KEEP else some_axes(draw, axes)
        within = some_axes(draw, axes, along)
        ops = [Op(kind, phase, Buffer.PARAMETERS, view, along, within, Span.UNIT)]
    ops += fresh_gradients(view, some_axes(draw, axes))
    if draw(st.booleans()):
        ops.insert(-1, Op(Kind.ALL_GATHER, phase, Buffer.ACTIVATIONS, axes=some_axes(draw, axes)))
    for _ in range(draw(st.integers(0, 3))):
        ops += draw(changes_of_fresh_gradients(axes))
    like = list(ops)
    for _ in range(draw(st.integers(0, 2))):
        i, j = (draw(st.integers(0, len(like) - 1)) for _ in range(2))
        if draw(st.booleans()):
            like[i], like[j] = like[j], like[i]
        else:
            like[i] = redirected(draw, like[i], axes)
    less = Op(Kind.SCALE, phase, Buffer.FRESH, by=Monomial(Fraction(-1)))
    tied = draw(st.booleans())
    summed = Op(Kind.ALL_REDUCE, phase, Buffer.FRESH, None, axes)
    both = [Op(Kind.ACCUMULATE, phase, Buffer.TIED, Buffer.FRESH)] if tied else []
    whole = added([*fresh_gradients(), *both, summed])
    finish = (
        Op(Kind.UPDATE, Phase.UPDATE, Buffer.GRADIENTS, Buffer.OPTIMIZER),
        Op(Kind.RESET, Phase.UPDATE, Buffer.GRADIENTS),
    )
    second = like
    if tied and draw(st.booleans()):  # take off the other use's gradient instead
        second = [*second, Op(Kind.RESET, phase, Buffer.FRESH), *both]
    micro_step = (*whole, *added(ops), *added([*second, less]))
    rests = tuple((state, Rest()) for state in State)
    return Schedule(axes, rests, micro_step, finish, Training(tied=tied))


@st.composite
def schedules(draw):
    """Any of these, with a mesh, a number of micro-steps and a policy."""
    source = draw(one_of("derived", "derived", "named", "two axes", "made up", "diverging"))
    if source == "made up":
        schedule = draw(made_up())
    elif source == "diverging":
        schedule = draw(st.sampled_from(broken_schedules())).schedule
        schedule = draw(damaged(schedule)) if draw(st.booleans()) else schedule
    else:
        placement = {
            "derived": placements(),
            "named": st.sampled_from(list(STRATEGIES.values())),
            "two axes": placements(2),
        }[source]
        schedule = draw(real_life(schedule_of(draw(placement))))
        if draw(st.integers(0, 4)):
            schedule = draw(damaged(schedule))
    sizes = {axis: draw(st.integers(1, 3)) for axis in schedule.axes}
    policy = draw(one_of("mixed-adam", "mixed-adam", "fp32-momentum", "fp32-sgd"))
    return schedule, sizes, draw(st.integers(1, 3)), POLICIES[policy]


__all__ = ["cancelled", "made_up", "placements", "real_life", "schedules"]
