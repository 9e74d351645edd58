"""P1: which placements of a batch axis are realisable: the four modes are variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from proofs.choosing.owner_and_others import POSITIONS, Found, run
from proofs.claim import claim
from proofs.tools.encoding import MODES, ModeSort, Terms, lift
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.terms import And, BoolSort, BoolVal, If, Implies, Not, RealVal
from spec.choosing.halves import INTEGRITY, both_halves
from spec.choosing.regimes import REGIMES, FourModes, Kept, Regime, placement_of, regime_of
from spec.choosing.requirements import Truths, requirements
from spec.choosing.space import realisable
from spec.derivation.schedules import schedule_of
from spec.meaning.conditions import Condition
from spec.models.states import POLICIES, State
from spec.numbers.any_size import Polynomial
from spec.numbers.arithmetic import Number

HALVES = (Found.integrity, Found.consistency)
HIGHEST = 4  # power of the number of devices
KEEP_NO_COPY = {"fp32-adam": Kept.MOMENTS, "fp32-momentum": Kept.MOMENTS, "fp32-sgd": Kept.NO_STATE}
SOME = 5  # one placement of so many is looked at as truths
COUNTS = (210, 162, 81, 63, 135, 105)  # placements that are realisable, by regime


@claim("P1")
def modes_decide_what_is_realisable(k: Kernel) -> tuple[Theorem, ...]:
    """Which of the 5^4 placements are realisable, for every N >= 2 and whatever the sizes.

    Those that have gradient integrity and state consistency on every device, as conditions on modes.
    Parameters are whole when they are read: replicated, gathered, cast or fetched, and never a slice.
    Each device works on its own samples: activations are sharded, recomputed or offloaded. Optimizer
    state is kept, if there is any. Gradients rest as S only where slices are updated. Without
    a copy of the weights to update from, parameters and optimizer state rest side by side, on devices
    or on the host. With several micro-steps gradients are kept. A run of the derived step, on any
    number of devices, has both halves, and matches, if and only if the modes are realisable. (Claim P1)
    """
    for regime, count in zip(REGIMES, COUNTS, strict=True):
        if regime_of(regime.policy, 1 + regime.several) != regime:
            raise KernelError(f"P1: {regime} is not that of its policy")
        found = realisable(regime)
        if len(found) != count:
            raise KernelError(f"P1: {regime}: {len(found)} placements are realisable")
        for modes, own in product(found[::SOME], (False, True)):
            if not all(both_halves(regime, Truths(modes), own).values()):
                raise KernelError(f"P1: {regime}: {modes} have not both halves, as truths")
    for name, policy in POLICIES.items():
        keeps = Kept.MASTER_COPY if "mixed" in name else KEEP_NO_COPY[name]
        if regime_of(policy, 1) != Regime(keeps, several=False):
            raise KernelError(f"P1: {name} is of another regime")
    each = (Characterised(k.part(name_of(regime)), regime) for regime in REGIMES)
    return tuple(theorem for found in each for theorem in found.theorems())


def name_of(regime: Regime) -> str:
    return f"{regime.optimizer.name.lower()}_{'several' if regime.several else 'one'}"


class Characterised:
    """What modes must be, both halves by modes, and both halves of a run of the derived step."""

    def __init__(self, k: Kernel, regime: Regime) -> None:
        self.k, self.regime = k, regime
        names = ("theta", "omega", "grads", "acts")
        states = {state: k.constant(name, ModeSort) for state, name in zip(State, names, strict=True)}
        self.modes, self.placed = Terms(states), tuple(states.values())
        self.choices = [(term, MODES) for term in self.placed]
        own = k.constant("own", BoolSort())
        met = And(*requirements(regime, self.modes).values())
        said = both_halves(regime, self.modes, own)
        self.realisable, self.realisable_is = k.define("realisable", self.placed, met)
        given = [*self.placed, own]
        self.integrity, integrity_is = k.define("integrity", given, said.pop(INTEGRITY))
        self.consistency, consistency_is = k.define("consistency", given, And(*said.values()))
        self.halves_are = integrity_is, consistency_is
        self.numbers = Numbers(k)

    def both_hold(self, own: Any) -> Bool:
        return And(self.integrity(*self.placed, own), self.consistency(*self.placed, own))

    def meant(self, *own: Any) -> list[Theorem]:
        return [half.at(own=each) for each in own for half in self.halves_are]

    def theorems(self) -> tuple[Theorem, ...]:
        """Realisable are modes that have both halves on every device; and those whose run has."""
        k, placed = self.k, self.placed
        n, device, owner = k.integers("n device owner")
        mine, other = BoolVal(True), If(owner == 0, 1, 0)
        on_every_device = k.prove(
            "both_halves_hold_on_every_device",
            self.both_hold(device == owner),
            given=[self.realisable(*placed)],
            uses=[self.realisable_is, *self.meant(device == owner)],
        )
        on_two = Implies(
            And(self.both_hold(mine), self.both_hold(other == owner)), self.realisable(*placed)
        )
        on_two_devices = k.prove(
            "or_one_fails_on_the_owner_or_another_device",
            And(other >= 0, other < n, on_two),
            given=[n >= 2],
            uses=[self.realisable_is, *self.meant(mine, other == owner)],
        )
        return on_every_device, on_two_devices, *self._of_a_run()

    def _of_a_run(self) -> tuple[Theorem, Theorem]:
        """The run of a step on any number of devices has both halves, and matches, if and only if the
        modes are realisable.
        """
        runs, given = Runs(self.regime, self.numbers), [*self.placed, self.numbers.more]
        said = {
            name: self.k.define(name, given, lift(lambda *m, of=of: of(m), self.choices))
            for name, of in (("run_has_both_halves", runs.both_halves), ("run_matches", runs.match))
        }
        differ = self.numbers.differ()
        found = [
            self.k.prove(
                f"a_{name}_if_and_only_if_the_modes_are_realisable",
                of(*given) == self.realisable(*self.placed),
                given=[self.numbers.more >= 0],
                uses=[differ, self.realisable_is, meaning],
            )
            for name, (of, meaning) in said.items()
        ]
        return found[0], found[1]


class Runs:
    """The runs of all placements; several have the same."""

    def __init__(self, regime: Regime, numbers: Numbers) -> None:
        self.regime, self.said = regime, numbers.said
        self.both_halves, self.match = self._by_run(self._both_halves), self._by_run(self._match)

    def _by_run(self, said: Callable[[Found], Bool]) -> Callable[[FourModes], Bool]:
        """What is said of a run, of the placement that has it; of like runs once."""
        once = cache(said)
        return lambda modes: once(run(schedule_of(placement_of(modes)), self.regime))

    def _both_halves(self, found: Found) -> Bool:
        each = [half(found, c, self.said) for half in HALVES for c in POSITIONS]
        return And(BoolVal(found.has_keeper), *map(hold, each))

    def _match(self, found: Found) -> Bool:
        return And(BoolVal(found.has_keeper), hold(found.match(self.said)))


def hold(conditions: Iterable[Condition]) -> Bool:
    """Whether all of them hold."""
    said = (then for when, then in conditions if (all(when) if isinstance(when, list) else when))
    return And(*{id(each): each for each in said}.values())  # terms are interned


@dataclass(frozen=True)
class Said:
    """A number of a run, which is equal to another one if they are for so many devices."""

    number: Number
    numbers: Numbers

    def __eq__(self, other: Any) -> Any:
        return self.numbers.equal(self.number, other.number)

    __hash__ = object.__hash__


class Numbers:
    """Numbers of a run as terms: polynomials in how many more devices there are than two."""

    def __init__(self, k: Kernel) -> None:
        self.k, self.more = k, k.reals("more")
        self.known: dict[Polynomial, tuple[Any, Theorem]] = {}
        self.equal = cache(self._equal)

    def said(self, number: Number) -> Said:
        return Said(number, self)

    def _equal(self, one: Number, other: Number) -> Bool:
        """Whether two are equal: their difference is 0, which has a name."""
        difference = one - other
        if not isinstance(difference, Polynomial):
            return BoolVal(difference == 0)
        if difference not in self.known:
            name = f"difference_{len(self.known)}"
            self.known[difference] = self.k.define(name, [self.more], self._term(difference))
        return self.known[difference][0](self.more) == 0

    def _term(self, number: Polynomial) -> Any:
        found: Any = RealVal(0)
        for factors, times in number.terms:
            part: Any = RealVal(str(times))
            for _ in range(sum(exponent for _, exponent in factors)):
                part = part * self.more
            found = found + part
        return found

    def differ(self) -> Theorem:
        """Differences whose terms are of one sign are not 0, however many devices there are."""
        of_one_sign = [
            known
            for difference, known in self.known.items()
            if len({times > 0 for _, times in difference.terms}) == 1 and not difference.terms[0][0]
        ]
        powers = [self.more]
        for _ in range(HIGHEST - 1):
            powers.append(powers[-1] * self.more)
        squares = self.k.prove(
            "powers_are_not_less_than_zero", And(*(p >= 0 for p in powers)), [self.more >= 0]
        )
        return self.k.prove(
            "differences_are_not_zero",
            And(*(Not(difference(self.more) == 0) for difference, _ in of_one_sign)),
            [self.more >= 0],
            [squares, *(meaning for _, meaning in of_one_sign)],
        )
