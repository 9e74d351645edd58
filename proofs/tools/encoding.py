"""The specification as SMT terms: its own functions, evaluated on symbols.

Modes, layouts and collectives are enumeration sorts, so that one query ranges over every placement
of an axis: `lift` tabulates a function of the specification over all values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from proofs.trusted.terms import And, EnumSort, If, Not, Or
from spec.choosing.regimes import Kept, Regime, placement_of
from spec.choosing.requirements import is_realisable, requirements
from spec.devices.collectives import COLLECTIVES, Collective
from spec.devices.layouts import Layout
from spec.models.states import State
from spec.plans.modes import Mode
from spec.plans.placement import Placement

ModeSort, _modes = EnumSort("Mode", [m.name.capitalize() for m in Mode])
LayoutSort, _layouts = EnumSort("Layout", [f"Is{x.name.capitalize()}" for x in Layout])
CollectiveSort, _collectives = EnumSort("Collective", [c.title() for c in COLLECTIVES])
MODES: dict[Mode, Any] = dict(zip(Mode, _modes, strict=True))
LAYOUTS: dict[Layout, Any] = dict(zip(Layout, _layouts, strict=True))
COLLECTIVE_TERMS: dict[str, Any] = dict(zip(COLLECTIVES, _collectives, strict=True))


def lift(function: Callable[..., Any], choices: Sequence[tuple[Any, dict[Any, Any]]]) -> Any:
    """The term for function(*values), where each value is given by an enumeration term.

    `choices`: for each argument the term, and what each value is called in SMT.
    """
    if not choices:
        return function()
    (term, names), rest = choices[0], choices[1:]
    branches = [
        (name, lift(lambda *others, v=value: function(v, *others), rest))
        for value, name in names.items()
    ]
    result = branches[-1][1]
    for name, branch in reversed(branches[:-1]):
        result = branch if branch is result else If(term == name, branch, result)
    return result


class Terms:
    """Conditions on modes, as terms over mode variables (`spec.choosing.requirements.Logic`)."""

    either, both, no = staticmethod(Or), staticmethod(And), staticmethod(Not)

    def __init__(self, modes: Mapping[State, Any]) -> None:
        self.modes = modes

    def among(self, state: State, *modes: Mode) -> Any:
        """The state's mode is one of these."""
        return Or(*(self.modes[state] == MODES[mode] for mode in modes))


@lru_cache(maxsize=1)
def placements() -> dict[tuple[Mode, ...], Placement]:
    """All placements of the four states on one batch axis."""
    return {modes: placement_of(modes) for modes in product(Mode, repeat=len(State))}


@lru_cache(maxsize=1)
def realisable_placements() -> dict[tuple[Mode, ...], Placement]:
    """Those that are realisable with one micro-step and a copy of the weights."""
    regime = Regime(Kept.MASTER_COPY, several=False)
    return {modes: p for modes, p in placements().items() if is_realisable(modes, regime)}


def over_placements(states: Sequence[Any], value: Callable[[Placement], Any], otherwise: Any) -> Any:
    """The term value(placement), for the realisable placement that four mode terms describe.

    `otherwise` stands where they describe none.
    """
    accepted = realisable_placements()
    choices = [(term, MODES) for term in states]
    return lift(lambda *m: value(accepted[m]) if m in accepted else otherwise, choices)


def realisable(states: Sequence[Any]) -> Any:
    """The constraint that four mode terms describe a realisable placement."""
    regime = Regime(Kept.MASTER_COPY, several=False)
    modes = Terms(dict(zip(State, states, strict=True)))
    return And(*requirements(regime, modes).values())


def layout(collective: Any, side: str) -> Any:
    """The layout term `before` or `after` a collective term."""

    def of(name: str) -> Any:
        spec: Collective = COLLECTIVES[name]
        return LAYOUTS[getattr(spec, side)]

    return lift(of, [(collective, COLLECTIVE_TERMS)])


class Symbolic:
    """Arithmetic on terms: shards are quotients, or symbols given for the padded sizes."""

    def __init__(self, shards: Sequence[tuple[Any, Any]] = ()) -> None:
        self.shards = shards

    def shard(self, elements: Any, unit: Any, devices: Any) -> Any:
        for whole, shard in self.shards:
            if whole is elements:
                return shard
        return elements / devices

    def maximum(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = If(other > first, other, first)
        return first
