"""The four training states, and how many bytes an element of each takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from spec.numbers.arithmetic import Number


class State(Enum):
    """What training keeps. Theta, Omega, G and A in the formulas."""

    __hash__ = object.__hash__  # quicker than by name, and it is looked up often

    PARAMETERS = "parameters"
    OPTIMIZER = "optimizer"
    GRADIENTS = "gradients"
    ACTIVATIONS = "activations"


@dataclass(frozen=True)
class BytePolicy:
    """Bytes per parameter: w of weight, g of gradient, k of optimizer state.

    `sources` says where each coefficient comes from: (bytes, of what) for each of the three.
    `master` says whether the optimizer state contains a copy of the weights to update from.
    `gathered` and `reduced`: of gathered parameters, with which the model computes, and of gradients
    while they are summed over devices; none: as they rest. `quantised`: of parameters on their way to
    be gathered; none: as the model computes with them. `counts_steps`: whether the optimizer
    corrects its moments by how many steps it has made (Adam). `copied`: gradients are copied to be
    summed; so they are, if that is in another type. `as_they_are`: axes along which gradients are
    summed in the type that they have. `added`: of gradients on the host that are brought back to be
    added to, of several micro-steps; 0: they are added to there.
    """

    w: Number
    g: Number
    k: Number
    sources: tuple[tuple[tuple[Number, str], ...], ...] = ()
    master: bool = True
    gathered: Number | None = None
    reduced: Number | None = None
    quantised: Number | None = None
    counts_steps: bool = False
    copied: bool = False
    as_they_are: frozenset[str] = frozenset()
    added: Number = 0

    def __post_init__(self) -> None:
        if isinstance(self.k, int | Fraction) and self.k == 0:  # no state, so no copy in it
            object.__setattr__(self, "master", False)

    def of(self, state: State) -> Number:
        """Bytes per parameter of `state`; activations are not counted in parameters."""
        sizes = {State.PARAMETERS: self.w, State.GRADIENTS: self.g, State.OPTIMIZER: self.k}
        return sizes[state]

    @property
    def computed(self) -> Number:
        """Bytes of an element of what the model computes with."""
        return self.w if self.gathered is None else self.gathered

    @property
    def fresh(self) -> Number:
        """Bytes of an element of gradients as backward leaves them."""
        return self.g if self.gathered is None else self.gathered

    @property
    def bytes_summed(self) -> Number:
        """Bytes of an element of gradients while they are summed over devices."""
        return self.fresh if self.reduced is None else self.reduced

    def summed_in(self, axes: Iterable[str], has: Number) -> Number:
        """Bytes of an element of gradients of `has` bytes while they are summed along some axes."""
        along = frozenset(axes)
        return has if along and along <= self.as_they_are else self.bytes_summed

    @property
    def bytes_copied(self) -> Number:
        """Bytes of an element of the copy in which gradients are summed; 0: they are where they are."""
        return self.bytes_summed if self.copied or self.bytes_summed != self.fresh else 0

    @property
    def bytes_sent(self) -> Number:
        """Bytes of an element of parameters while they are gathered."""
        return self.computed if self.quantised is None else self.quantised

    @property
    def is_momentum(self) -> bool:
        """Whether the optimizer state is momentum alone: no copy of the weights, no second moment."""
        return not self.master and not self.counts_steps and self.k != 0

    def provenance(self, state: State) -> str:
        """In words, what the bytes of `state` are."""
        states = (State.PARAMETERS, State.GRADIENTS, State.OPTIMIZER)
        parts = self.sources[states.index(state)] if self.sources else ()
        words = parts[0][1] if len(parts) == 1 else " + ".join(f"{s} {what}" for s, what in parts)
        return words or ("nothing kept" if self.of(state) == 0 else "as given")


_MASTER = (4, "fp32 master weight")
_MOMENTS = ((4, "fp32 first moment"), (4, "fp32 second moment"))


def _policy(
    weight: tuple[int, str], gradient: tuple[int, str], *optimizer: tuple[int, str]
) -> BytePolicy:
    kept = sum(size for size, _ in optimizer)
    master = any("master weight" in what for _, what in optimizer)
    counts = _MOMENTS[1] in optimizer
    parts = ((weight,), (gradient,), optimizer)
    return BytePolicy(weight[0], gradient[0], kept, parts, master, counts_steps=counts)


POLICIES: dict[str, BytePolicy] = {
    "mixed-adam": _policy((2, "bf16 weight"), (2, "bf16 gradient"), _MASTER, *_MOMENTS),
    "mixed-adam-fp32-gradients": _policy((2, "bf16 weight"), (4, "fp32 gradient"), _MASTER, *_MOMENTS),
    "mixed-adam-fp32-copy": _policy(
        (2, "fp16 weight"),
        (2, "fp16 gradient"),
        _MASTER,
        (4, "fp32 gradient copy"),
        *_MOMENTS,
    ),
    "fp32-adam": _policy((4, "fp32 weight"), (4, "fp32 gradient"), *_MOMENTS),
    "fp32-momentum": _policy((4, "fp32 weight"), (4, "fp32 gradient"), (4, "fp32 momentum")),
    "fp32-sgd": _policy((4, "fp32 weight"), (4, "fp32 gradient")),
}
MIXED_ADAM = POLICIES["mixed-adam"]


def custom_policy(w: Fraction, g: Fraction, k: Fraction) -> BytePolicy:
    """A policy from its three sizes alone. The optimizer state is taken to hold the weights."""
    w_, g_, k_ = (int(x) if x.denominator == 1 else x for x in (w, g, k))
    return BytePolicy(w_, g_, k_)
