"""A schedule: where the states rest, and one training step as a list of operations on buffers.

It is derived from a placement, or written by hand. Costs, verdicts and runs look at nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from spec.states import State


class Buffer(Enum):
    """Where values are during a step. The first of each state is where the state rests."""

    PARAMETERS = "parameters"
    VIEW = "view"  # the parameters as forward and backward read them
    OPTIMIZER = "optimizer"  # with the master copy of the weights, where the policy has one
    OPTIMIZER_VIEW = "optimizer view"
    GRADIENTS = "gradients"  # accumulated over the micro-steps
    FRESH = "fresh gradients"  # of one micro-step, as backward produces them
    ACTIVATIONS = "activations"


STATE_OF: dict[Buffer, State] = {
    Buffer.PARAMETERS: State.PARAMETERS,
    Buffer.VIEW: State.PARAMETERS,
    Buffer.OPTIMIZER: State.OPTIMIZER,
    Buffer.OPTIMIZER_VIEW: State.OPTIMIZER,
    Buffer.GRADIENTS: State.GRADIENTS,
    Buffer.FRESH: State.GRADIENTS,
    Buffer.ACTIVATIONS: State.ACTIVATIONS,
}


class Phase(Enum):
    """The part of the step that an operation serves."""

    FORWARD = "forward"
    BACKWARD = "backward"
    REDUCE = "reduce"
    UPDATE = "update"
    PUBLISH = "publish"


class Kind(Enum):
    """What an operation does."""

    ALL_GATHER = "all_gather"  # each device takes the owners' slices along the axes
    REDUCE_SCATTER = "reduce_scatter"  # sum along the axes, each device keeps its slice
    ALL_REDUCE = "all_reduce"  # sum along the axes
    FETCH = "fetch"  # host to device
    OFFLOAD = "offload"  # device to host
    RECOMPUTE = "recompute"  # produce again what is not kept
    FORWARD = "forward"  # read `source`, run the model on the samples
    BACKWARD = "backward"  # read `source`, produce the samples' gradients
    ACCUMULATE = "accumulate"  # add `source` into `target`
    UPDATE = "update"  # apply the gradient in `source`, within each device's slice
    KEEP = "keep"  # each device keeps its own slice of `source` in `target`
    RESET = "reset"  # set to zero
    RELEASE = "release"  # drop the buffer


class Span(Enum):
    """How much room an operation's result takes for itself until it is released."""

    NONE = "nothing"  # it stays in, or goes to, a resting place
    UNIT = "unit"  # one unit at a time
    WHOLE = "whole"  # all units at once


@dataclass(frozen=True)
class Rest:
    """Where one state is between uses."""

    sharded: tuple[str, ...] = ()  # axes along which a device keeps only its slice
    stored: bool = True  # False: nothing is kept
    host: bool = False  # kept in the host's memory


@dataclass(frozen=True)
class Op:
    """One operation: reads `source`, writes `target` (the same buffer if none is named).

    `axes`: the axes it acts along; for backward, those along which each device does all samples.
    `within`: the axes along which a device has only its slice, before and after.
    """

    kind: Kind
    phase: Phase
    source: Buffer
    into: Buffer | None = None
    axes: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    span: Span = Span.NONE

    @property
    def target(self) -> Buffer:
        return self.into or self.source

    @property
    def state(self) -> State:
        return STATE_OF[self.target]

    def __str__(self) -> str:
        words = [f"{self.kind.value:<14} {self.source.value}"]
        if self.into is not None and self.into is not self.source:
            words.append(f"-> {self.into.value}")
        if self.axes:
            words.append(f"over {' x '.join(self.axes)}")
        if self.within:
            words.append(f"within each slice of {' x '.join(self.within)}")
        if self.span is Span.UNIT:
            words.append("(unit by unit)")
        if self.span is Span.WHOLE:
            words.append("(held whole)")
        return " ".join(words)


@dataclass(frozen=True)
class Schedule:
    """One training step: `micro_step` once for each micro-batch, then `finish` once."""

    axes: tuple[str, ...]
    rests: tuple[tuple[State, Rest], ...]
    micro_step: tuple[Op, ...]
    finish: tuple[Op, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.axes, self.rests, self.micro_step, self.finish))

    def __hash__(self) -> int:  # schedules are looked up often, and long
        return self._hash

    def rest(self, state: State) -> Rest:
        """Where `state` is between steps."""
        return next(rest for s, rest in self.rests if s is state)

    def flat(self, micro_steps: int) -> Iterator[tuple[int, Op]]:
        """Every operation in order, with the micro-step it belongs to (the last one, in finish)."""
        for m in range(micro_steps):
            for op in self.micro_step:
                yield m, op
        for op in self.finish:
            yield micro_steps - 1, op
