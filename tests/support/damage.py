"""Damage to schedules: single faults one by one, and a few drawn at random."""

from dataclasses import fields as dataclass_fields
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

from hypothesis import strategies as st

from spec.language.schedule import (
    COLLECTIVE_KINDS,
    HOST_TRANSFERS,
    MICRO_STEPS,
    NUMBERS,
    REDUCTIONS,
    SLICING,
    TAKES,
    Buffer,
    Kind,
    MisfitError,
    Monomial,
    Op,
    Phase,
    Span,
)
from spec.models.states import State
from spec.models.training import Loss, Statistics

UNSLICED = (*NUMBERS, Buffer.ACTIVATIONS)
FACTORS = [
    Monomial(Fraction(1, 2)),
    Monomial(Fraction(3)),
    Monomial(Fraction(-1)),
    Monomial(Fraction(0)),
    Monomial(powers=((MICRO_STEPS, -1),)),
    Monomial(powers=((MICRO_STEPS, 1),)),
]


@cache
def one_of(*values):
    """Draws one of some values: a strategy takes longer to make than to draw from."""
    return st.sampled_from(values)


def some_axes(draw, axes, without=()):
    """Some of the axes, but those in `without`."""
    return tuple(a for a in draw(one_of((), axes, axes[:1], axes[-1:])) if a not in without)


def with_room(span, **fields):
    """An operation, whose result takes room if it makes one."""
    try:
        return Op(span=span, **fields)
    except MisfitError as no:
        if no.field != "span":
            raise
        return Op(span=Span.NONE, **fields)


def _has_slices(kind, target):
    """Whether an operation may be within slices."""
    return kind is not Kind.RELEASE and (target not in UNSLICED or kind is Kind.SQUARE_NORM)


@cache
@st.composite
def operations(draw, axes):
    """Any operation."""
    kind = draw(one_of(*Kind))
    sources, targets = draw(one_of(*TAKES[kind]))
    source = draw(one_of(*sources))
    into = draw(one_of(*targets)) if targets else None
    along = some_axes(draw, axes) if kind in (*COLLECTIVE_KINDS, Kind.BACKWARD, Kind.COUNT) else ()
    slices = _has_slices(kind, into or source)
    apart = () if kind in REDUCTIONS else along
    within = some_axes(draw, axes, apart) if slices else ()
    by = None
    if kind is Kind.SCALE:
        by = draw(one_of(*FACTORS))
    elif kind is Kind.DIVIDE:
        by = draw(one_of(Buffer.TOKENS, Buffer.TOTAL_TOKENS))
    elif kind is Kind.CLIP:
        by = Buffer.NORM
    mean = draw(st.booleans()) if kind in REDUCTIONS else False
    shift = draw(one_of(0, 0, 0, 1)) if within or kind in SLICING else 0
    fields = {"axes": along, "within": within, "mean": mean, "shift": shift, "by": by}
    phase, span = draw(one_of(*Phase)), draw(one_of(Span.UNIT, Span.ALL_UNITS))
    return with_room(span, kind=kind, phase=phase, source=source, into=into, **fields)


# --------------------------------------------------------- single faults
def with_one_fault(schedule):
    """The schedule with one operation dropped, repeated, shifted or without some axis, for each."""
    return _with_one_changed(
        schedule, lambda op: [(), (op, op), *((other,) for other in misdirected(op))]
    )


def _with_one_changed(schedule, change):
    """The schedule with one operation replaced by some: each that change(op) lists, for each."""
    for name in ("micro_step", "finish"):
        ops = getattr(schedule, name)
        for i, op in enumerate(ops):
            for instead in change(op):
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
        yield replace(op, by=Monomial(Fraction(1, 3)))


def redirected(draw, op, axes):
    """The same operation with one of its fields changed."""
    slices = _has_slices(op.kind, op.target)
    choices = ["within"] if slices else ["same"]
    choices += ["shift"] if op.within or op.kind in SLICING else []
    choices += ["axes"] if op.kind in (*COLLECTIVE_KINDS, Kind.BACKWARD, Kind.COUNT) else []
    choices += ["mean"] if op.kind in REDUCTIONS else []
    choices += ["by"] if op.kind in (Kind.SCALE, Kind.DIVIDE) else []
    choice, apart = draw(one_of(*choices)), op.kind not in REDUCTIONS
    if choice == "same":
        return op
    if choice == "within":
        within = some_axes(draw, axes, op.axes if apart else ())
        return replace(op, within=within, shift=op.shift if within or op.kind in SLICING else 0)
    if choice == "axes":
        return replace(op, axes=some_axes(draw, axes, op.within if apart else ()))
    if choice == "shift":
        return replace(op, shift=draw(st.integers(-1, 2)))
    if choice == "mean":
        return replace(op, mean=not op.mean)
    by = FACTORS if op.kind is Kind.SCALE else [Buffer.TOKENS, Buffer.TOTAL_TOKENS]
    return replace(op, by=draw(one_of(*by)))


def changed(op, **fields):
    """The operation with some fields changed, and its room and slices as they then must be."""
    fields = {f.name: getattr(op, f.name) for f in dataclass_fields(op)} | fields
    span = fields.pop("span")
    if not _has_slices(fields["kind"], fields["into"] or fields["source"]):
        fields |= {"within": (), "shift": 0}
    return with_room(Span.UNIT if span is Span.NONE else span, **fields)


def misplaced(op):
    """The operation with another source, or with another target."""
    for sources, targets in TAKES[op.kind]:
        for source, into in product(sources, targets or (None,)):
            new = source is not op.source, (into or source) is not op.target
            if any(new) and not (all(new) and targets):
                yield changed(op, source=source, into=into)


def transferred(op):
    """What may stand for an operation: the transfer the other way; or it, after one of its source."""
    if op.kind in HOST_TRANSFERS:
        yield (changed(op, kind=next(kind for kind in HOST_TRANSFERS if kind is not op.kind)),)
        return
    for kind in HOST_TRANSFERS:
        if any(op.source in sources for sources, _ in TAKES[kind]):
            moved = with_room(Span.UNIT, kind=kind, phase=op.phase, source=op.source)
            yield changed(moved, within=op.within), op


def resting_otherwise(schedule):
    """The schedule with one state on the other side, in other slices, not kept, or a working copy."""
    for state in State:
        rest = schedule.rest(state)
        slices = {(), schedule.axes, *((a,) for a in schedule.axes)} - {rest.sharded}
        changes = [{what: not getattr(rest, what)} for what in ("host", "stored", "working")]
        for change in (*changes, *({"sharded": axes} for axes in sorted(slices))):
            yield schedule.with_rest(state, replace(rest, **change))


def with_one_place_changed(schedule):
    """The schedule with a state that rests otherwise, or one operation on another buffer or side, for
    each.
    """
    yield from resting_otherwise(schedule)
    yield from _with_one_changed(
        schedule, lambda op: [*((other,) for other in misplaced(op)), *transferred(op)]
    )


ACTIONS = ("drop", "repeat", "swap", "insert", "redirect", "place", "side", "new", "rest", "train")


@st.composite
def damaged(draw, schedule, most=3):
    """A few operations dropped, repeated, moved, inserted, misdirected, or on another buffer or side of
    the host link; a state that rests otherwise; or another training meant.
    """
    parts = [list(schedule.micro_step), list(schedule.finish)]
    everything = parts[0] + parts[1]
    for _ in range(draw(st.integers(1, most))):
        part = draw(st.sampled_from([p for p in parts if p] or [[everything[0]]]))
        i = draw(st.integers(0, len(part) - 1))
        action = draw(one_of(*ACTIONS))
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
        elif action == "place":
            part[i] = draw(st.sampled_from([*misplaced(part[i]), part[i]]))
        elif action == "side":
            part[i : i + 1] = draw(st.sampled_from([*transferred(part[i]), (part[i],)]))
        elif action == "rest":
            schedule = draw(st.sampled_from([*resting_otherwise(schedule)]))
        else:
            means = replace(schedule.training, **draw(trainings()))
            schedule = replace(schedule, training=means)
    return replace(schedule, micro_step=tuple(parts[0]), finish=tuple(parts[1]))


@cache
def trainings():
    """Some of what a single device may do otherwise."""
    flag, statistics = st.booleans(), st.sampled_from([None, *Statistics])
    optional = {"loss": st.sampled_from(Loss), "clip": flag, "tied": flag, "statistics": statistics}
    return st.fixed_dictionaries({}, optional=optional)
