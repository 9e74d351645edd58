"""M1: bytes of what states consist of, and of what passes, as they are listed."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from proofs.trusted.kernel import KernelError
from spec.costs.memory import Sizes
from spec.language.schedule import Buffer, Kind, Op, Phase
from spec.models.states import POLICIES, BytePolicy, State, custom_policy
from spec.numbers.arithmetic import Number

MASTER, ADAM, MOMENTUM = 4, 4 + 4, 4
KEPT = {  # of a weight, its gradient, and the optimizer's: copies and moments (ZeRO, section 3.1)
    "mixed-adam": (2, 2, MASTER + ADAM),
    "mixed-adam-fp32-gradients": (2, 4, MASTER + ADAM),
    "mixed-adam-fp32-copy": (2, 2, MASTER + 4 + ADAM),
    "fp32-adam": (4, 4, ADAM),
    "fp32-momentum": (4, 4, MOMENTUM),
    "fp32-sgd": (4, 4, 0),
}
SAID = (
    ("bf16 weight", POLICIES["mixed-adam"], State.PARAMETERS),
    ("fp32 gradient", POLICIES["fp32-adam"], State.GRADIENTS),
    ("4 fp32 first moment + 4 fp32 second moment", POLICIES["fp32-adam"], State.OPTIMIZER),
    ("nothing kept", POLICIES["fp32-sgd"], State.OPTIMIZER),
    ("as given", BytePolicy(2, 2, 1), State.OPTIMIZER),
)

COPY = {  # where gradients of 7 bytes are gathered, and summed, in types: a copy, or none
    (None, None, False): 0,
    (3, None, False): 0,
    (None, None, True): 7,
    (3, None, True): 3,
    (None, 5, False): 5,
    (None, 5, True): 5,
    (3, 5, False): 5,
    (3, 5, True): 5,
    (None, 3, False): 3,
    (None, 3, True): 3,
    (3, 3, False): 0,  # summed in the type that they have
    (3, 3, True): 3,
}


def require_listed(claim: str) -> None:
    """Raise KernelError unless policies have the bytes that are listed of them."""
    wrong = [name for name, policy in POLICIES.items() if not _is_listed(name, policy)]
    sizes = Fraction(1, 2), Fraction(3), Fraction(0)
    wrong += [f"{given}" for given in product(sizes, repeat=3) if not _is_given(*given)]
    wrong += [words for words, policy, state in SAID if policy.provenance(state) != words]
    types = product((None, 3), (None, 5, 3), (None, 1), (False, True))
    wrong += [f"{each}" for each in types if not _passes(*each)]
    if wrong or POLICIES.keys() != KEPT.keys():
        raise KernelError(f"{claim}: policies have other bytes: {wrong}")


def _states(policy: BytePolicy) -> tuple[Number, ...]:
    return tuple(map(policy.of, (State.PARAMETERS, State.GRADIENTS, State.OPTIMIZER)))


def _is_listed(name: str, policy: BytePolicy) -> bool:
    """Whether it keeps what is listed, and is told to have a weight's copy, and which moments."""
    of_parts = tuple(sum(size for size, _ in parts) for parts in policy.sources)
    told = policy.master, policy.counts_steps, policy.is_momentum
    words = tuple(word in name for word in ("mixed", "adam", "momentum"))
    return _states(policy) == of_parts == KEPT[name] and told == words


def _is_given(w: Fraction, g: Fraction, k: Fraction) -> bool:
    """Whether a policy of three sizes has these, of which whole ones are integers."""
    policy = custom_policy(w, g, k)
    whole = {size for size in _states(policy) if isinstance(size, int)}
    is_master = policy.master == BytePolicy(w, g, k).master == (k > 0)
    return _states(policy) == (w, g, k) and whole == {w, g, k} - {Fraction(1, 2)} and is_master


def _passes(gathered: Number, reduced: Number, quantised: Number, copied: bool) -> bool:
    """Whether what passes is in the first type that is said of it."""

    def first(*said: Number) -> Number:
        return next(size for size in said if size is not None)

    given: dict[str, Number] = {"gathered": gathered, "reduced": reduced, "quantised": quantised}
    policy = BytePolicy(2, 7, 12, copied=copied, as_they_are=frozenset("ab"), **given)
    fresh, summed = first(gathered, 7), first(reduced, gathered, 7)
    found = policy.computed, policy.bytes_sent, policy.fresh, policy.bytes_summed, policy.bytes_copied
    copy = COPY[gathered, reduced, copied]
    expected = first(gathered, 2), first(quantised, gathered, 2), fresh, summed, copy
    along = [policy.summed_in(axes, 9) for axes in ("", "a", "ab", "ac")]
    sums, sizes = (
        Op(Kind.ALL_REDUCE, Phase.REDUCE, Buffer.PARAMETERS, axes=("c",)),
        Sizes(1, {}, policy),
    )
    along.append(sizes.width_sent(sums))  # of weights
    return found == expected and along == [summed, 9, 9, summed, 2]
