"""Schedules to draw: derived ones, with real-life pieces added, damaged, or made up."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from spec.derive import derive
from spec.modes import Mode
from spec.placement import on_batch, place
from spec.schedule import (
    COLLECTIVES,
    MAKING,
    MICRO_STEPS,
    NUMBERS,
    PASSING,
    REDUCTIONS,
    SLICING,
    TAKES,
    Buffer,
    Factor,
    Kind,
    Op,
    Phase,
    Rest,
    Schedule,
    Span,
)
from spec.states import POLICIES, State
from spec.strategies import STRATEGIES
from spec.training import Loss, Training
from spec.verdict import check

SYMBOLS = [mode.value for mode in Mode]
PLACEMENTS = list(product(SYMBOLS, repeat=4))
REALISABLE = [q for q in PLACEMENTS if check(derive(on_batch(*q)), {"batch": 5}).accepted]
AXES = ("a", "b")
UNSLICED = (*NUMBERS, Buffer.ACTIVATIONS)


@st.composite
def placements(draw, axes=1):
    """A placement on one batch axis that is realisable there, or any on two."""
    if axes == 1:
        hold = draw(st.booleans())
        return on_batch(*draw(st.sampled_from(REALISABLE)), hold=hold)
    mode = st.sampled_from([Mode.REPLICATED, Mode.SHARDED, Mode.GATHERED])
    modes = {state: {axis: draw(mode) for axis in AXES} for state in State}
    return place(AXES, modes, draw(st.booleans()))


# ------------------------------------------------------------- real-life pieces
def rewrite(schedule, change):
    """The schedule with each operation replaced by some: change(op) is a list."""
    parts = [
        [new for op in part for new in change(op)] for part in (schedule.micro_step, schedule.finish)
    ]
    return replace(schedule, micro_step=tuple(parts[0]), finish=tuple(parts[1]))


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
    return scaled(averaged, Factor(sizes=((MICRO_STEPS, -1),)))


def scaled(schedule, factor):
    """The gradient is scaled just before the update."""
    return before_update(
        schedule, lambda op: [Op(Kind.SCALE, Phase.UPDATE, op.source, within=op.within, by=factor)]
    )


def with_loss_scale(schedule, factor):
    """Gradients are computed larger by a factor, and scaled back before the update."""

    def change(op):
        scale = Op(Kind.SCALE, Phase.BACKWARD, Buffer.FRESH, by=Factor(factor))
        fresh = op.kind is Kind.BACKWARD and op.target is Buffer.FRESH
        return [op, scale] if fresh else [op]

    if not any(op.kind is Kind.BACKWARD and op.target is Buffer.FRESH for op in schedule.micro_step):
        return schedule
    return scaled(rewrite(schedule, change), Factor(1 / factor))


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


def with_statistics(schedule, kind):
    """Forward changes statistics, which are made the same after it."""

    def change(op):
        same = Op(kind, Phase.FORWARD, Buffer.STATISTICS, axes=schedule.axes)
        return [op, same] if op.kind is Kind.FORWARD else [op]

    return rewrite(training(schedule, statistics=True), change)


PIECES = {
    "plain": lambda schedule: schedule,
    "mean": with_mean,
    "token mean": with_token_mean,
    "loss scale": lambda schedule: with_loss_scale(schedule, Fraction(1024)),
    "clipping": with_clipping,
    "tied parameters": with_tied_parameters,
    "summed statistics": lambda schedule: with_statistics(schedule, Kind.ALL_REDUCE),
    "broadcast statistics": lambda schedule: with_statistics(schedule, Kind.BROADCAST),
}


@st.composite
def real_life(draw, schedule):
    """A schedule with some of the pieces that real training has."""
    tied, loss, clipping, statistics = (
        draw(st.sampled_from(["plain", *names]))
        for names in (
            ["tied parameters"],
            ["mean", "token mean", "loss scale"],
            ["clipping"],
            ["summed statistics", "broadcast statistics"],
        )
    )
    for piece in (tied, loss, clipping, statistics):
        schedule = PIECES[piece](schedule)
    return schedule


def with_one_fault(schedule):
    """The schedule with one operation dropped, repeated, shifted or without some axis, for each."""
    for name in ("micro_step", "finish"):
        ops = getattr(schedule, name)
        for i, op in enumerate(ops):
            for instead in ((), (op, op), *((one,) for one in misdirected(op))):
                yield replace(schedule, **{name: (*ops[:i], *instead, *ops[i + 1 :])})


def misdirected(op):
    """An operation that is wrong in one field."""
    if op.within or op.kind in SLICING:
        yield replace(op, shift=1)
    for axis in op.within:
        yield replace(op, within=tuple(a for a in op.within if a != axis), shift=0)
    for axis in op.axes:
        yield replace(op, axes=tuple(a for a in op.axes if a != axis))
    if op.kind in REDUCTIONS:
        yield replace(op, mean=not op.mean)
    if op.kind is Kind.ALL_GATHER:
        yield replace(op, kind=Kind.BROADCAST)
    if op.kind is Kind.SCALE:
        yield replace(op, by=Factor(Fraction(1, 3)))


# ----------------------------------------------------------------------- damage
FACTORS = [
    Factor(Fraction(1, 2)),
    Factor(Fraction(3)),
    Factor(Fraction(-1)),
    Factor(Fraction(0)),
    Factor(sizes=((MICRO_STEPS, -1),)),
    Factor(sizes=((MICRO_STEPS, 1),)),
]


def some_axes(draw, axes, without=()):
    """Some of the axes, but those in `without`."""
    subsets = [(), axes, axes[:1], axes[-1:]]
    return tuple(a for a in draw(st.sampled_from(subsets)) if a not in without)


def redirected(draw, op, axes):
    """The same operation with one of its fields changed."""
    slices = op.target not in UNSLICED or op.kind is Kind.SQUARE_NORM
    choices = ["within"] if slices else ["same"]
    choices += ["shift"] if op.within or op.kind in SLICING else []
    choices += ["axes"] if op.kind in (*COLLECTIVES, Kind.BACKWARD, Kind.COUNT) else []
    choices += ["mean"] if op.kind in REDUCTIONS else []
    choices += ["by"] if op.kind in (Kind.SCALE, Kind.DIVIDE) else []
    choice = draw(st.sampled_from(choices))
    if choice == "same":
        return op
    if choice == "within":
        within = some_axes(draw, axes, op.axes)
        return replace(op, within=within, shift=op.shift if within or op.kind in SLICING else 0)
    if choice == "axes":
        return replace(op, axes=some_axes(draw, axes, op.within))
    if choice == "shift":
        return replace(op, shift=draw(st.integers(-1, 2)))
    if choice == "mean":
        return replace(op, mean=not op.mean)
    by = FACTORS if op.kind is Kind.SCALE else [Buffer.TOKENS, Buffer.TOTAL_TOKENS]
    return replace(op, by=draw(st.sampled_from(by)))


@st.composite
def damaged(draw, schedule, most=3):
    """A few operations dropped, repeated, moved, inserted or misdirected; or another training meant."""
    parts = [list(schedule.micro_step), list(schedule.finish)]
    everything = parts[0] + parts[1]
    for _ in range(draw(st.integers(1, most))):
        part = draw(st.sampled_from([p for p in parts if p] or [[everything[0]]]))
        i = draw(st.integers(0, len(part) - 1))
        action = draw(
            st.sampled_from(
                ["drop", "repeat", "swap", "insert", "redirect", "redirect", "new", "train"]
            )
        )
        if action == "drop":
            del part[i]
        elif action == "repeat":
            part.insert(draw(st.integers(0, len(part))), part[i])
        elif action == "swap":
            j = draw(st.integers(0, len(part) - 1))
            part[i], part[j] = part[j], part[i]
        elif action == "insert":
            part.insert(i, draw(st.sampled_from(everything)))
        elif action == "redirect":
            part[i] = redirected(draw, part[i], schedule.axes)
        elif action == "new":
            part.insert(i, draw(operations(schedule.axes)))
        else:
            schedule = training(schedule, **draw(trainings()))
    return replace(schedule, micro_step=tuple(parts[0]), finish=tuple(parts[1]))


def trainings():
    flags = st.fixed_dictionaries(
        {},
        optional={
            "loss": st.sampled_from(Loss),
            "clip": st.booleans(),
            "tied": st.booleans(),
            "statistics": st.booleans(),
        },
    )
    return flags


# -------------------------------------------------------------------- made up
@st.composite
def operations(draw, axes):
    """Any operation."""
    kind = draw(st.sampled_from(Kind))
    sources, targets = draw(st.sampled_from(TAKES[kind]))
    source = draw(st.sampled_from(sources))
    into = draw(st.sampled_from(targets)) if targets else None
    along = some_axes(draw, axes) if kind in (*COLLECTIVES, Kind.BACKWARD, Kind.COUNT) else ()
    slices = (into or source) not in UNSLICED or kind is Kind.SQUARE_NORM
    within = some_axes(draw, axes, along) if slices else ()
    by = None
    if kind is Kind.SCALE:
        by = draw(st.sampled_from(FACTORS))
    elif kind is Kind.DIVIDE:
        by = draw(st.sampled_from([Buffer.TOKENS, Buffer.TOTAL_TOKENS]))
    elif kind is Kind.CLIP:
        by = Buffer.NORM
    in_place = into in (None, source) and kind not in (Kind.ALL_GATHER, Kind.FETCH, Kind.ZERO)
    taken = (into or source) in PASSING and kind in MAKING and not in_place
    mean = draw(st.booleans()) if kind in REDUCTIONS else False
    shift = draw(st.sampled_from([0, 0, 0, 1])) if within or kind in SLICING else 0
    span = draw(st.sampled_from([Span.UNIT, Span.WHOLE])) if taken else Span.NONE
    return Op(kind, draw(st.sampled_from(Phase)), source, into, along, within, span, mean, shift, by)


@st.composite
def made_up(draw):
    """Operations at random, around a backward and an update."""
    axes = draw(st.sampled_from([("batch",), AXES]))
    rests = tuple(
        (state, Rest(some_axes(draw, axes), draw(st.booleans()) or state is State.PARAMETERS))
        for state in State
    )
    micro_step = draw(st.lists(operations(axes), max_size=4))
    finish = draw(st.lists(operations(axes), max_size=4))
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
    shift = draw(st.sampled_from([0, 0, 1]))
    what = draw(st.sampled_from(["sum", "slice", "gather", "first", "factor", "count", "norm"]))
    if what == "sum":
        return [Op(Kind.ALL_REDUCE, phase, fresh, None, along, within, mean=draw(st.booleans()))]
    if what == "slice":
        return [Op(Kind.REDUCE_SCATTER, phase, fresh, None, along, within, shift=shift)]
    if what == "gather":
        return [Op(Kind.ALL_GATHER, phase, fresh, None, along, within, Span.UNIT, shift=shift)]
    if what == "first":
        return [Op(Kind.BROADCAST, phase, fresh, None, along, within)]
    if what == "factor":
        return [Op(Kind.SCALE, phase, fresh, within=within, by=draw(st.sampled_from(FACTORS)))]
    number = Buffer.TOKENS if what == "count" else Buffer.NORM
    if what == "count":
        ops = [Op(Kind.COUNT, phase, number, axes=draw(st.sampled_from([(), along])))]
    else:
        shift = shift if within else 0
        ops = [Op(Kind.SQUARE_NORM, phase, fresh, number, within=within, shift=shift)]
    together = draw(st.sampled_from([None, Kind.ALL_REDUCE, Kind.BROADCAST]))
    ops += [Op(together, phase, number, None, some_axes(draw, axes))] if together else []
    use = Kind.DIVIDE if what == "count" else Kind.CLIP
    return [*ops, Op(use, phase, fresh, within=some_axes(draw, axes), by=number)]


@st.composite
def cancelled(draw):
    """Data parallelism, with something added to the gradient and something like it taken off again.

    It is right if the two are the same, whatever they are; the verdict may fail to see that they are.
    """
    axes = draw(st.sampled_from([("batch",), AXES]))
    phase, view = Phase.FORWARD, Buffer.PARAMETERS
    ops = []
    if draw(st.booleans()):  # read something else than the parameters
        view = Buffer.VIEW
        kind = draw(st.sampled_from([Kind.REDUCE_SCATTER, Kind.ALL_REDUCE, Kind.KEEP]))
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
    less = Op(Kind.SCALE, phase, Buffer.FRESH, by=Factor(Fraction(-1)))
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
    source = draw(st.sampled_from(["derived", "derived", "named", "two axes", "made up"]))
    if source == "made up":
        schedule = draw(made_up())
    else:
        placement = {
            "derived": placements(),
            "named": st.sampled_from(list(STRATEGIES.values())),
            "two axes": placements(2),
        }[source]
        schedule = draw(real_life(derive(draw(placement))))
        if draw(st.integers(0, 4)):
            schedule = draw(damaged(schedule))
    sizes = {axis: draw(st.integers(1, 3)) for axis in schedule.axes}
    policy = draw(st.sampled_from(["mixed-adam", "mixed-adam", "fp32-momentum", "fp32-sgd"]))
    return schedule, sizes, draw(st.integers(1, 3)), POLICIES[policy]


__all__ = ["cancelled", "damaged", "made_up", "operations", "placements", "real_life", "schedules"]
