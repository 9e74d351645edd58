"""P1: which placements of a batch axis are realisable: the four modes are variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from proofs.choosing.owner_and_others import OWNER, POSITIONS, Found, run
from proofs.claim import claim
from proofs.tools.encoding import MODES, ModeSort, Terms, lift
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.terms import And, BoolSort, BoolVal, If, Implies, Not, RealVal
from spec.choosing.halves import INTEGRITY, both_halves, keeps
from spec.choosing.regimes import REGIMES, FourModes, Regime, placement_of, regime_of
from spec.choosing.requirements import Truths, requirements
from spec.choosing.space import realisable
from spec.derivation.schedules import schedule_of
from spec.meaning.conditions import Condition
from spec.models.states import State
from spec.numbers.any_size import Polynomial
from spec.numbers.arithmetic import Number

Half = Callable[[Found, int, bool, Any], Iterable[Condition]]
HIGHEST = 4  # power of the number of devices
COUNTS = (210, 162, 81, 63, 135, 105)  # placements that are realisable, by regime


@claim("P1")
def modes_decide_what_is_realisable(k: Kernel) -> tuple[Theorem, ...]:
    """Which of the 5^4 placements are realisable, for every N >= 2 and whatever the sizes.

    Those that have gradient integrity and state consistency on every device, as conditions on modes.
    Parameters are whole when they are read: replicated, gathered, cast or fetched, and never a slice.
    Each device works on its own samples: activations are sharded, recomputed or offloaded. Optimizer
    state is kept, if there is any. Gradients rest as S only where slices are updated. Without
    a copy of the weights to update from, parameters and optimizer state rest side by side, on devices
    or on the host. With several micro-steps gradients are kept. Both halves are those of a run on any
    number of devices, which matches if and only if the modes are realisable. (Claim P1)
    """
    for regime, count in zip(REGIMES, COUNTS, strict=True):
        if regime_of(regime.policy, 1 + regime.several) != regime:
            raise KernelError(f"P1: {regime} is not that of its policy")
        if len(realisable(regime)) != count:
            raise KernelError(f"P1: {regime}: {len(realisable(regime))} placements are realisable")
    each = (Characterised(k.part(name_of(regime)), regime) for regime in REGIMES)
    return tuple(theorem for found in each for theorem in found.theorems())


def name_of(regime: Regime) -> str:
    return f"{regime.optimizer.name.lower()}_{'several' if regime.several else 'one'}"


class Characterised:
    """What modes must be, both halves by modes, and a run of the step that is derived."""

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
        """Realisable are modes that have both halves on every device; these are those of a run."""
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
        """The run of a step on any number of devices has the halves that the modes say, and matches if
        and only if they are realisable.
        """
        runs, halves = Runs(self.regime, self.numbers), []
        for c in POSITIONS:
            own = BoolVal(c == OWNER)
            for half, said in (
                (Found.integrity, self.integrity),
                (Found.consistency, self.consistency),
            ):
                has = lift(lambda *m, c=c, half=half: runs.has(half, m, c), self.choices)
                halves.append(has == said(*self.placed, own))
        matches = lift(lambda *m: runs.match(m), self.choices)
        differ = self.numbers.differ()
        return (
            self.k.prove(
                "a_run_has_the_halves_that_the_modes_say",
                And(*halves),
                given=[self.numbers.more >= 0],
                uses=[differ, *self.meant(*(BoolVal(c == OWNER) for c in POSITIONS))],
            ),
            self.k.prove(
                "a_run_matches_if_and_only_if_the_modes_are_realisable",
                matches == self.realisable(*self.placed),
                given=[self.numbers.more >= 0],
                uses=[differ, self.realisable_is],
            ),
        )


class Runs:
    """The runs of all placements; several have the same."""

    def __init__(self, regime: Regime, numbers: Numbers) -> None:
        self.regime, self.numbers = regime, numbers
        self.known: dict[Found, int] = {}
        self.formulas: dict[Hashable, Bool] = {}

    def of(self, modes: FourModes) -> tuple[Found, int]:
        """The run of a placement, and its number."""
        found = run(schedule_of(placement_of(modes)), self.regime)
        return found, self.known.setdefault(found, len(self.known))

    def has(self, half: Half, modes: FourModes, device: int) -> Bool:
        """Whether it has a half, on such a device."""
        kept = keeps(self.regime, Truths(modes), device == OWNER)
        found, number = self.of(modes)
        key = (number, half, device, kept)
        if key not in self.formulas:
            self.formulas[key] = hold(half(found, device, kept, self.numbers.said))
        return self.formulas[key]

    def match(self, modes: FourModes) -> Bool:
        """Whether it leaves what a single device has, and weights."""
        found, number = self.of(modes)
        if number not in self.formulas:
            some_weights = any(copy.of == "weight" for copy in found.kept)
            self.formulas[number] = And(BoolVal(some_weights), hold(found.match(self.numbers.said)))
        return self.formulas[number]


def hold(conditions: Iterable[Condition]) -> Bool:
    """Whether all of them hold."""
    said = (then for when, then in conditions if when)
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
