"""Verdicts for each kind of optimizer: its state has a copy of the weights, other state, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psem_model.check.words import reason
from spec.checking.everywhere import Everywhere, Given, everywhere
from spec.choosing.regimes import Kept, regime_of
from spec.language.schedule import Schedule
from spec.models.states import POLICIES

KINDS: dict[Kept, tuple[str, ...]] = {
    kept: tuple(name for name, policy in POLICIES.items() if regime_of(policy, 1).optimizer is kept)
    for kept in Kept
}


@dataclass(frozen=True)
class OfAKind:
    """What was found for the optimizers of one kind."""

    kept: Kept
    found: Everywhere

    @property
    def policies(self) -> str:
        return ", ".join(KINDS[self.kept])

    @property
    def reason(self) -> str:
        """Why it is rejected, in general or where it first is."""
        return next(reason(f.verdict) for f in self.found.found if f.verdict and not f.accepted)


def for_each_kind(schedule: Schedule, sizes: Given) -> tuple[OfAKind, ...]:
    """The verdicts on a schedule: they differ in what the optimizer's state has in it, and no more."""
    policies = {kept: POLICIES[names[0]] for kept, names in KINDS.items()}
    return tuple(
        OfAKind(kept, everywhere(schedule, sizes, policy, exceptions=kept is Kept.MASTER_COPY))
        for kept, policy in policies.items()
    )


def in_words(kinds: tuple[OfAKind, ...]) -> str:
    """For which optimizers it is accepted."""
    right = [kind for kind in kinds if kind.found.accepted]
    if not kinds:
        return ""
    if len(right) == len(kinds):
        return " for every optimizer"
    kept = " or ".join(kind.kept.value for kind in right)
    return f" with {kept} in the optimizer state ({', '.join(kind.policies for kind in right)})"


def rejections(kinds: tuple[OfAKind, ...]) -> list[str]:
    """With which optimizers it is rejected, and why."""
    reasons: dict[str, list[OfAKind]] = {}
    for kind in kinds:
        if not kind.found.accepted:
            reasons.setdefault(kind.reason, []).append(kind)
    return [
        f"rejected with {', '.join(kind.policies for kind in some)}: {why}"
        for why, some in reasons.items()
    ]


def data(kinds: tuple[OfAKind, ...]) -> dict[str, Any]:
    """For a program."""
    return {
        "accepted": [name for kind in kinds if kind.found.accepted for name in KINDS[kind.kept]],
        "rejected": {
            name: kind.reason for kind in kinds if not kind.found.accepted for name in KINDS[kind.kept]
        },
    }
