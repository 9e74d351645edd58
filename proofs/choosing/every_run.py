"""E9: the named strategies, and all realisable placements of a batch axis, match a single device."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from proofs.choosing.realisable import name_of
from proofs.claim import claim
from proofs.plans.listing import Listing, lines_of, listing
from proofs.plans.matching import match, require_everywhere
from proofs.tools.encoding import MODES, ModeSort, Terms, lift, realisable_placements
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.parts import name_of as name_of_term
from proofs.trusted.terms import And, Implies, IntSort, IntVal, Or
from spec.checking.verdict import check
from spec.choosing.regimes import REGIMES, FourModes, Regime, placement_of
from spec.choosing.requirements import requirements
from spec.choosing.space import realisable
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Schedule
from spec.models.states import MIXED_ADAM, BytePolicy, State
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

NONE = -1
NAMED = {"dp": "R R R S", "zero1": "R S R S", "zero2": "R S S S", "zero3": "S* S S S"}  # the paper's
NAMED_OR_DERIVED = "the_schedule_is_named_or_derived_of_them"


@claim("E9")
def strategies_and_realisable_placements_match(k: Kernel) -> tuple[Theorem, ...]:
    """DP, ZeRO-1/2/3, FSDP (both settings), HSDP, ZeRO-Offload and fused updates are right, and so are
    all placements of a batch axis whose modes are realisable.

    For every number of devices along each axis, of micro-steps (one, if gradients do not rest) and of
    steps, every model and elementwise optimizer: after every step every kept copy is the single
    device's. (Claim E9)
    """
    for schedule in {schedule_of(placement) for placement in STRATEGIES.values()}:
        require_everywhere(k, schedule)
    _require_accepted(k)
    _require_named(k)
    steps = Steps()
    return (match(k, steps.listed, steps.why),)


def _require_named(k: Kernel) -> None:
    """Raise KernelError unless strategies have the modes by which they are known; what is on the host
    has no mode there.
    """
    for name, modes in NAMED.items():
        if STRATEGIES[name] != on_batch(*modes.split()):
            raise KernelError(f"{k.claim}: {name} is not {modes}")
    with suppress(ValueError):
        on_batch("R", "S+R", "S")
        raise KernelError(f"{k.claim}: a state is replicated on the host")


def _require_accepted(k: Kernel) -> None:
    """Raise KernelError unless what realisable modes derive is accepted, on two devices."""
    for modes, placement in realisable_placements().items():
        verdict = check(schedule_of(placement), {BATCH: 2}, micro_steps=1)
        if not verdict.accepted:
            raise KernelError(f"{k.claim}: what {modes} derives is rejected")


class Steps:
    """The steps of strategies, and of realisable modes in each regime; those that are alike have one
    number.
    """

    def __init__(self) -> None:
        self.listed: dict[str, Listing] = {}
        self._known: dict[Hashable, int] = {}
        self._lines_of = cache(lines_of)
        named = {name: schedule_of(placement) for name, placement in STRATEGIES.items()}
        self.named = {name: self._number(name, of, MIXED_ADAM) for name, of in named.items()}
        self.numbers = {regime: self._realisable(regime) for regime in REGIMES}

    def _realisable(self, regime: Regime) -> dict[FourModes, int]:
        """The number of the step of each placement that is realisable in a regime."""

        def name(modes: FourModes) -> str:
            return "_".join(each.name.lower() for each in (regime.optimizer, *modes))

        return {
            modes: self._number(name(modes), schedule_of(placement_of(modes)), regime.policy)
            for modes in realisable(regime)
        }

    def _number(self, name: str, schedule: Schedule, policy: BytePolicy) -> int:
        lines = self._lines_of(schedule, policy)
        known = (schedule.axes, lines.identity, policy.k > 0)
        number = self._known.setdefault(known, len(self._known))
        if number == len(self.listed):
            self.listed[name.replace("-", "_")] = listing(schedule, policy)
        return number

    def why(self, k: Kernel, schedule: Any, is_listed: Bool) -> Theorem:
        """The schedule is that of a strategy, or of modes that are realisable in a regime."""
        states = {state: k.fixed(f"mode_of_{state.name.lower()}", ModeSort) for state in State}
        which, named = k.fixed("regime", IntSort()), dict.fromkeys(self.named.values())
        cases = [(which == r, *self._told(k, regime, states)) for r, regime in enumerate(REGIMES)]
        are_realisable = k.suppose(
            "the_modes_are_realisable",
            [],
            And(
                Or(*(is_it for is_it, *_ in cases)),
                *(Implies(is_it, met) for is_it, met, _, _ in cases),
            ),
        )
        derived = And(*(Implies(is_it, schedule == number) for is_it, _, number, _ in cases))
        one_of_them = Or(*(schedule == n for n in named), derived)
        is_derived = k.suppose(NAMED_OR_DERIVED, [], one_of_them)
        numbered = [listed for *_, listed in cases]
        uses = [are_realisable, is_derived, *numbered]
        return k.prove("the_schedule_is_listed", is_listed, (), uses)

    def _told(
        self, k: Kernel, regime: Regime, states: Mapping[State, Any]
    ) -> tuple[Bool, Any, Theorem]:
        """Whether modes are realisable in a regime, the number of their step, and that it is one."""
        modes, name = tuple(states.values()), name_of(regime)
        variables = {state: k.constant(f"{name}_{state.name.lower()}", ModeSort) for state in State}
        own = tuple(variables.values())
        of = requirements(regime, Terms(variables)).values()
        is_realisable, is_realisable_is = k.define(f"realisable_{name}", own, And(*of))
        numbers = self.numbers[regime]
        choices = [(term, MODES) for term in own]
        number = lift(lambda *m: IntVal(numbers.get(m, NONE)), choices)
        step, step_is = k.define(f"step_{name}", own, number)
        listed = k.prove(
            f"steps_are_listed_{name}",
            And(step(*own) >= 0, step(*own) < len(self.listed)),
            [is_realisable(*own)],
            [is_realisable_is, step_is],
        )
        at = {name_of_term(v): m for v, m in zip(own, modes, strict=True)}
        return is_realisable(*modes), step(*modes), listed.at(**at)
