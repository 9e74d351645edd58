"""A schedule: where the states rest, and one training step as a list of operations on buffers.

It is derived from a placement, or written by hand. Costs, verdicts and runs look at nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property

from spec.models.states import State
from spec.models.training import PLAIN, Training
from spec.numbers.arithmetic import Number, power


class Buffer(Enum):
    """Where values are during a step. The first of each state is where the state rests."""

    __hash__ = object.__hash__  # quicker than by name, and it is looked up often

    PARAMETERS = "parameters"
    VIEW = "view"  # the parameters as forward and backward read them
    OPTIMIZER = "optimizer"  # with the master copy of the weights, where the policy has one
    OPTIMIZER_VIEW = "optimizer view"
    GRADIENTS = "gradients"  # accumulated over the micro-steps
    FRESH = "fresh gradients"  # of one micro-step, as backward produces them
    # of one micro-step, from the second place where parameters are used: each backward overwrites them,
    # like fresh gradients, also where it adds those of the first place
    TIED = "tied gradients"
    ACTIVATIONS = "activations"
    STATISTICS = "statistics"  # not trained, but changed by forward: running means and the like
    TOKENS = "tokens"  # how many there are in a micro-step's samples
    TOTAL_TOKENS = "total tokens"  # accumulated over the micro-steps
    NORM = "norm"  # the square of the gradient's norm


B = Buffer
STATE_OF: dict[Buffer, State] = {
    B.PARAMETERS: State.PARAMETERS,
    B.VIEW: State.PARAMETERS,
    B.OPTIMIZER: State.OPTIMIZER,
    B.OPTIMIZER_VIEW: State.OPTIMIZER,
    B.GRADIENTS: State.GRADIENTS,
    B.FRESH: State.GRADIENTS,
    B.TIED: State.GRADIENTS,
    B.ACTIVATIONS: State.ACTIVATIONS,
}
WEIGHT_BUFFERS = (B.PARAMETERS, B.VIEW, B.OPTIMIZER, B.OPTIMIZER_VIEW)
GRADIENT_BUFFERS = (B.GRADIENTS, B.FRESH, B.TIED)
RESTING = (B.PARAMETERS, B.OPTIMIZER, B.GRADIENTS)
PASSING = (B.VIEW, B.OPTIMIZER_VIEW, B.FRESH, B.TIED)  # they take room until their last use
SCALARS = (B.TOKENS, B.TOTAL_TOKENS, B.NORM)  # one number on each device
NUMBERS = (*SCALARS, B.STATISTICS)  # not a value for each parameter


class Phase(Enum):
    """The part of the step that an operation serves."""

    FORWARD = "forward"
    BACKWARD = "backward"
    REDUCE = "reduce"
    UPDATE = "update"
    PUBLISH = "publish"


class Kind(Enum):
    """What an operation does."""

    __hash__ = object.__hash__  # quicker than by name, and it is looked up often

    ALL_GATHER = "all_gather"  # each device takes the owners' slices along the axes
    REDUCE_SCATTER = "reduce_scatter"  # sum along the axes, each device keeps its slice
    ALL_REDUCE = "all_reduce"  # sum along the axes
    BROADCAST = "broadcast"  # each device takes the value of the first along the axes
    FETCH = "fetch"  # host to device
    OFFLOAD = "offload"  # device to host
    RECOMPUTE = "recompute"  # produce again what is not kept
    FORWARD = "forward"  # read `source`, run the model on the samples
    BACKWARD = "backward"  # read `source`, produce the samples' gradients (added, if kept at once)
    COUNT = "count"  # the tokens in the micro-step's samples
    ACCUMULATE = "accumulate"  # add `source` into `target`
    SCALE = "scale"  # multiply by a number
    DIVIDE = "divide"  # divide by a count of tokens
    SQUARE_NORM = "square_norm"  # the sum of squares of what a device has in its slice
    CLIP = "clip"  # scale down to the largest norm allowed, where `by` says what the norm is
    UPDATE = "update"  # apply the gradient in `source`, within each device's slice
    KEEP = "keep"  # each device keeps its own slice of `source` in `target`
    RESET = "reset"  # a sum starts again at zero
    ZERO = "zero"  # a buffer of zeros
    RELEASE = "release"  # a later read finds nothing there


COLLECTIVE_KINDS = (Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_REDUCE, Kind.BROADCAST)
HOST_TRANSFERS = (Kind.FETCH, Kind.OFFLOAD)
SLICING = (Kind.ALL_GATHER, Kind.REDUCE_SCATTER)
MAKING = (*COLLECTIVE_KINDS, Kind.FETCH, Kind.KEEP, Kind.RECOMPUTE, Kind.BACKWARD, Kind.ZERO)
REDUCTIONS = (Kind.REDUCE_SCATTER, Kind.ALL_REDUCE)
_WRITING_ONLY = (Kind.COUNT, Kind.RESET, Kind.ZERO, Kind.RELEASE)
_SUMMED = (Buffer.FRESH, Buffer.TIED, Buffer.TOKENS, Buffer.TOTAL_TOKENS)  # beside what rests


class Span(Enum):
    """How much room an operation's result takes for itself until its last use."""

    NONE = "nothing"  # it stays in, or goes to, a place that is there already
    UNIT = "unit"  # one unit at a time
    ALL_UNITS = "whole"  # all units at once


MICRO_STEPS = "micro_steps"


@dataclass(frozen=True)
class Monomial:
    """A number times powers of axis sizes, and of the number of micro-steps."""

    number: Fraction = Fraction(1)
    powers: tuple[tuple[str, int], ...] = ()

    def at(self, mesh: Mapping[str, Number], micro_steps: Number) -> Number:
        """The factor on a mesh."""
        result: Number = self.number
        for name, exponent in self.powers:
            result = result * power(micro_steps if name == MICRO_STEPS else mesh[name], exponent)
        return result

    def __str__(self) -> str:
        over = "".join(f"*{n}" * e for n, e in self.powers if e > 0)
        under = "".join(f"/{n}" * -e for n, e in self.powers if e < 0)
        return f"{self.number}{over}{under}"


@dataclass(frozen=True)
class Rest:
    """Where one state is between uses."""

    sharded: tuple[str, ...] = ()  # axes along which a device keeps only its slice
    stored: bool = True  # False: nothing is kept
    host: bool = False  # kept in the host's memory
    working: bool = False  # a working copy: current where it is read, and old between steps, perhaps


# what each kind may read, and what it may then write; in place wherever nothing else is named
_STATES = ((WEIGHT_BUFFERS, WEIGHT_BUFFERS), (GRADIENT_BUFFERS, GRADIENT_BUFFERS))
_MOVES = (*_STATES, ((B.ACTIVATIONS,), ()))
_SUMS = (*_STATES, (NUMBERS, ()))
_SCALES = ((GRADIENT_BUFFERS, ()),)
TAKES: dict[Kind, tuple[tuple[tuple[Buffer, ...], tuple[Buffer, ...]], ...]] = {
    Kind.ALL_GATHER: _MOVES,
    Kind.REDUCE_SCATTER: _STATES,
    Kind.ALL_REDUCE: _SUMS,
    Kind.BROADCAST: _SUMS,
    Kind.FETCH: _MOVES,
    Kind.OFFLOAD: _MOVES,
    Kind.KEEP: _STATES,
    Kind.RECOMPUTE: ((WEIGHT_BUFFERS, WEIGHT_BUFFERS), ((B.PARAMETERS, B.VIEW), (B.ACTIVATIONS,))),
    Kind.FORWARD: (((B.PARAMETERS, B.VIEW), (B.ACTIVATIONS,)),),
    Kind.BACKWARD: (((B.PARAMETERS, B.VIEW), (B.GRADIENTS, B.FRESH)),),
    Kind.COUNT: (((B.TOKENS,), ()),),
    Kind.ACCUMULATE: ((GRADIENT_BUFFERS, GRADIENT_BUFFERS), ((B.TOKENS,), (B.TOTAL_TOKENS,))),
    Kind.SCALE: _SCALES,
    Kind.DIVIDE: _SCALES,
    Kind.SQUARE_NORM: ((GRADIENT_BUFFERS, (B.NORM,)),),
    Kind.CLIP: _SCALES,
    Kind.UPDATE: ((GRADIENT_BUFFERS, (B.OPTIMIZER, B.OPTIMIZER_VIEW)),),
    Kind.RESET: (((*GRADIENT_BUFFERS, *SCALARS), ()),),
    Kind.ZERO: ((PASSING, ()),),
    Kind.RELEASE: (((*PASSING, *SCALARS, B.ACTIVATIONS), ()),),
}
BY: dict[Kind, tuple[Buffer, ...]] = {
    Kind.SCALE: (),  # a number
    Kind.DIVIDE: (B.TOKENS, B.TOTAL_TOKENS),
    Kind.CLIP: (B.NORM,),
}


class MisfitError(ValueError):
    """A field that does not fit the kind of operation."""

    def __init__(self, kind: Kind, field: str, has: str, expected: str) -> None:
        super().__init__(f"{kind.value}, {field}: given {has}; expected {expected}")
        self.kind, self.field, self.has, self.expected = kind, field, has, expected


def takes_room(kind: Kind, source: Buffer, target: Buffer) -> bool:
    """Whether a result takes room of its own, where it is on the device."""
    in_place = target is source and kind not in (Kind.ALL_GATHER, Kind.FETCH, Kind.ZERO)
    return kind in MAKING and target in PASSING and not in_place


@dataclass(frozen=True)
class Op:
    """One operation: reads `source`, writes `target` (the same buffer if none is named).

    `axes`: the axes it acts along; for backward, those along which each device does all samples.
    `within`: the axes along which a device has only its slice, before and after.
    `mean`: a reduction divides the sum by the number of devices.
    `shift`: a device takes the slice of the one that many places further on for its own.
    `by`: what it scales, divides or clips by.
    """

    kind: Kind
    phase: Phase
    source: Buffer
    into: Buffer | None = None
    axes: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    span: Span = Span.NONE
    mean: bool = False
    shift: int = 0
    by: Monomial | Buffer | None = None

    def __post_init__(self) -> None:
        wrong = self._wrong()
        if wrong:
            raise MisfitError(self.kind, *wrong)

    def _wrong(self) -> tuple[str, str, str] | None:
        """The first field that does not fit this kind of operation, what it is, what fits."""
        takes = TAKES[self.kind]
        readable = [b for sources, _ in takes for b in sources]
        writable = [b for sources, into in takes if self.source in sources for b in into]
        by_names = " or ".join(b.value for b in BY.get(self.kind, ())) or "a number"
        fits = self.by in BY.get(self.kind, ()) or (
            self.kind is Kind.SCALE and isinstance(self.by, Monomial)
        )
        both = [a for a in self.axes if a in self.within]
        if self.source not in readable:
            return "source", self.source.value, " or ".join(dict.fromkeys(b.value for b in readable))
        if self.target not in (writable or [self.source]):
            return "into", self.target.value, " or ".join(b.value for b in writable or [self.source])
        if self.axes and self.kind not in (*COLLECTIVE_KINDS, Kind.BACKWARD, Kind.COUNT):
            return "axes", ", ".join(self.axes), "none"
        if both and self.kind not in REDUCTIONS:  # those mix different elements: no result is known
            return "within", both[0], "an axis that is not in axes"
        unsliced = Buffer if self.kind is Kind.RELEASE else (*NUMBERS, Buffer.ACTIVATIONS)
        if self.within and self.kind is not Kind.SQUARE_NORM and self.target in unsliced:
            return "within", ", ".join(self.within), f"none: {self.target.value} have no slices"
        if self.shift and not self.within and self.kind not in SLICING:
            return "shift", str(self.shift), "0: it has no slices"
        if self.span is not Span.NONE and not self.takes_room:
            return "span", self.span.value, f"{Span.NONE.value}: it works in place"
        on_host = self.kind in (Kind.KEEP, Kind.RECOMPUTE)  # perhaps
        if self.span is Span.NONE and self.takes_room and not on_host:
            return (
                "span",
                self.span.value,
                f"{Span.UNIT.value} or {Span.ALL_UNITS.value}: it makes a buffer",
            )
        if self.mean and self.kind not in REDUCTIONS:
            return "mean", "true", "false: it does not sum along axes"
        if self.kind in BY and not fits:
            return "by", "nothing" if self.by is None else str(self.by), by_names
        if self.kind not in BY and self.by is not None:
            return "by", str(self.by), "nothing"
        return None

    @cached_property
    def takes_room(self) -> bool:
        """Whether its result takes room of its own, where it is on the device."""
        return takes_room(self.kind, self.source, self.target)

    @cached_property
    def target(self) -> Buffer:
        return self.into or self.source

    @property
    def state(self) -> State | None:
        """The training state it writes; none if that is a number or is not trained."""
        return STATE_OF.get(self.target)

    @property
    def of_a_number(self) -> bool:
        """Whether it reads or writes a number that a device has of all elements together."""
        return bool({self.target, self.by} & {*NUMBERS})  # what reads one writes one

    def __str__(self) -> str:
        words = [f"{self.kind.value:<14} {self.source.value}"]
        if self.into is not None and self.into is not self.source:
            words.append(f"-> {self.into.value}")
        if self.by is not None:
            words.append(f"by {self.by.value if isinstance(self.by, Buffer) else self.by}")
        if self.axes:
            words.append(f"over {' x '.join(self.axes)}")
        if self.mean:
            words.append("as a mean")
        if self.within:
            words.append(f"within each slice of {' x '.join(self.within)}")
        if self.shift:
            words.append(f"shifted by {self.shift} (the slice of {neighbour(self.shift)})")
        if self.span is Span.UNIT:
            words.append("(unit by unit)")
        if self.span is Span.ALL_UNITS:
            words.append("(held whole)")
        return " ".join(words)


def neighbour(places: int) -> str:
    """A device that is some places further on along an axis, in words."""
    if abs(places) == 1:
        return "the next device" if places > 0 else "the device before"
    return f"the device {abs(places):,} places {'on' if places > 0 else 'back'}"


@dataclass(frozen=True)
class Schedule:
    """One training step: `micro_step` once for each micro-batch, then `finish` once.

    `training`: what the single device does, which it must match. `start`: views that are there,
    current, when a step begins, as the step before left them. `stays`: views stay until they are
    released, and are not made again while they are there.
    """

    axes: tuple[str, ...]
    rests: tuple[tuple[State, Rest], ...]
    micro_step: tuple[Op, ...]
    finish: tuple[Op, ...]
    training: Training = PLAIN
    start: tuple[Buffer, ...] = ()
    stays: bool = False

    @cached_property
    def _hash(self) -> int:
        told = self.training, self.start, self.stays
        return hash((self.axes, self.rests, self.micro_step, self.finish, *told))

    @property
    def held_whole(self) -> Schedule:
        """The same, where what passes in a micro-step is held whole, and not unit by unit."""
        whole = {Span.UNIT: Span.ALL_UNITS}
        ops = (replace(op, span=whole.get(op.span, op.span)) for op in self.micro_step)
        return replace(self, micro_step=tuple(ops))

    def __hash__(self) -> int:  # schedules are looked up often, and long
        return self._hash

    @property
    def bodies(self) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
        """What is done in each micro-step, and what finishes the step."""
        return self.micro_step, self.finish

    @property
    def ops(self) -> tuple[Op, ...]:
        """The operations of both parts."""
        return self.micro_step + self.finish

    def rest(self, state: State) -> Rest:
        """Where `state` is between steps."""
        return self._rest[state]

    @cached_property
    def _rest(self) -> dict[State, Rest]:
        return dict(self.rests)

    def with_rest(self, state: State, rest: Rest) -> Schedule:
        """The schedule, with a state that rests in another way."""
        return replace(self, rests=tuple((s, rest if s is state else r) for s, r in self.rests))

    def slices(self, buffer: Buffer) -> tuple[str, ...]:
        """The axes along which a resting buffer has room for its slices only; none for others."""
        return self.rest(STATE_OF[buffer]).sharded if buffer in RESTING else ()

    @property
    def samples_of_all(self) -> tuple[str, ...]:
        """The axes along which backward finds the gradient of all samples of the group."""
        over = {axis for op in self.ops if op.kind is Kind.BACKWARD for axis in op.axes}
        return tuple(axis for axis in self.axes if axis in over)

    @cached_property
    def sums(self) -> tuple[Buffer, ...]:
        """Gradients and counts that a step reads before it writes all of them: they start at zero."""
        found: list[Buffer] = []
        written: set[Buffer] = set()
        for op in self.ops:
            reads = {op.source, op.by} if op.kind not in _WRITING_ONLY else set()
            reads |= {op.target} if op.kind is Kind.ACCUMULATE or op.within else set()
            found += [b for b in _SUMMED if b in reads and b not in written]
            beside = op.kind is Kind.BACKWARD and self.training.tied
            written |= {op.target, Buffer.TIED} if beside else {op.target}
        return tuple(dict.fromkeys(found))

    @cached_property
    def cut(self) -> tuple[str, ...]:
        """The axes along which states are ever sliced: each unit is cut along all of them.

        A state of which nothing rests has no slices.
        """
        ops = [op for op in self.ops if op.target is not Buffer.ACTIVATIONS]
        states = [rest for state, rest in self.rests if state is not State.ACTIVATIONS]
        sliced = [a for rest in states if rest.stored for a in rest.sharded]
        sliced += [a for op in ops for a in op.within]
        sliced += [a for op in ops if op.kind in SLICING for a in op.axes]
        return tuple(a for a in self.axes if a in sliced)

    @property
    def sliced_by_update(self) -> tuple[str, ...]:
        """The axes along whose slices gradients are updated that rest whole; none if they do not."""
        rest = self.rest(State.GRADIENTS)
        updates = (op.within for op in self.finish if op.kind is Kind.UPDATE)
        return next(updates, ()) if not rest.host and not rest.sharded else ()

    @property
    def hosts_updates(self) -> bool:
        """Whether gradients of the whole step go to the host, to be applied there."""
        return any(op.kind is Kind.OFFLOAD and op.source in GRADIENT_BUFFERS for op in self.finish)

    def is_there(self, op: Op, micro_step: int) -> bool:
        """Whether what an operation of a micro-step makes is there: a view that stays.

        Each forward but the first has the view that the backward before it read.
        """
        is_made = op.target is Buffer.VIEW and op.kind is not Kind.RELEASE
        return self.stays and micro_step > 0 and is_made and op.phase is Phase.FORWARD

    def flat(self, micro_steps: int) -> Iterator[tuple[int, Op]]:
        """Every operation in order, with the micro-step it belongs to (the last one, in finish)."""
        for m in range(micro_steps):
            for op in self.micro_step:
                yield m, op
        for op in self.finish:
            yield micro_steps - 1, op
