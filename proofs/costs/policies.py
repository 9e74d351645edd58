"""M1: bytes of what states consist of, and of what passes, as they are listed."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from proofs.trusted.kernel import KernelError
from spec.models.states import POLICIES, BytePolicy, State, custom_policy
from spec.numbers.arithmetic import Number

ADAM = {"first moment": 4, "second moment": 4}
MIXED = ADAM | {"master weight": 4}
KEPT: dict[str, tuple[int, int, dict[str, int]]] = {  # of a weight, its gradient, and the optimizer's
    "mixed-adam": (2, 2, MIXED),  # ZeRO, section 3.1
    "mixed-adam-fp32-gradients": (2, 4, MIXED),
    "mixed-adam-fp32-copy": (2, 2, MIXED | {"gradient copy": 4}),
    "fp32-adam": (4, 4, ADAM),
    "fp32-momentum": (4, 4, {"momentum": 4}),
    "fp32-sgd": (4, 4, {}),
}
MODEL_STATES = State.PARAMETERS, State.GRADIENTS, State.OPTIMIZER


def require_listed(claim: str) -> None:
    """Raise KernelError unless policies have the bytes that are listed of them."""
    wrong = [name for name, policy in POLICIES.items() if not _is_listed(name, policy)]
    sizes = Fraction(1, 2), Fraction(3), Fraction(0)
    wrong += [f"of {w}, {g} and {k}" for w, g, k in product(sizes, repeat=3) if not _is_given(w, g, k)]
    types = product((None, 3), (None, 5), (None, 1), (False, True))
    wrong += [f"{each}" for each in types if not _passes(*each)]
    if wrong or POLICIES.keys() != KEPT.keys():
        raise KernelError(f"{claim}: policies have other bytes: {wrong}")


def _is_listed(name: str, policy: BytePolicy) -> bool:
    """Whether it keeps what is listed; a weight's copy, or moments by Adam, if they are."""
    weight, gradient, kept = KEPT[name]
    has_master, adam = "master weight" in kept, kept.keys() >= ADAM.keys()
    return (
        tuple(map(policy.of, MODEL_STATES)) == (weight, gradient, sum(kept.values()))
        and (policy.master, policy.counts_steps) == (has_master, adam)
        and policy.is_momentum == (kept.keys() == {"momentum"})
        and [sum(size for size, _ in each) for each in policy.sources]
        == [weight, gradient, sum(kept.values())]
    )


def _is_given(w: Fraction, g: Fraction, k: Fraction) -> bool:
    """Whether a policy of three sizes has these, of which whole ones are integers."""
    policy, sizes = custom_policy(w, g, k), (w, g, k)
    found = tuple(map(policy.of, MODEL_STATES))
    whole = all(
        isinstance(x, int) == (size.denominator == 1) for x, size in zip(found, sizes, strict=True)
    )
    return found == sizes and whole and policy.master == BytePolicy(w, g, k).master == (k > 0)


def _passes(gathered: Number, reduced: Number, quantised: Number, copied: bool) -> bool:
    """Whether what passes is in the first type that is said of it."""

    def first(*said: Number) -> Number:
        return next(size for size in said if size is not None)

    policy = BytePolicy(
        2, 7, 12, (), True, gathered, reduced, quantised, copied=copied, as_they_are=frozenset("ab")
    )
    fresh, summed = first(gathered, 7), first(reduced, gathered, 7)
    return (
        (policy.computed, policy.bytes_sent) == (first(gathered, 2), first(quantised, gathered, 2))
        and (policy.fresh, policy.bytes_summed) == (fresh, summed)
        and policy.bytes_copied == (summed if copied or summed != fresh else 0)
        and [policy.summed_in(axes, 9) for axes in ("", "a", "ab", "ac")] == [summed, 9, 9, summed]
    )
