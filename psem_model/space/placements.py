"""The space of placements of a batch axis: its classes, the best of them, and the named strategies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from psem_model.check.runs import Diverging, diverging
from psem_model.check.words import has
from psem_model.reading.placements import symbols_of
from psem_model.space.forms import sum_text, unless
from psem_model.space.verdicts import LEAST, verdict_of, verdicts
from psem_model.text.figures import counted, in_bytes
from psem_model.text.report import BYTES, Column, Quantity, Report, Section, listed
from psem_model.text.report import rows as as_rows
from spec.checking.verdict import Verdict, check
from spec.choosing.regimes import FourModes, placement_of, regime_of
from spec.choosing.space import (
    ACTIVATION_MODES,
    Cost,
    CostForm,
    Point,
    classes,
    closed_form,
    cost_form,
    dominates,
    frontier,
    realisable,
)
from spec.derivation.schedules import schedule_of
from spec.models.states import BytePolicy, State
from spec.plans.modes import Mode
from spec.plans.placement import BATCH, Placement
from spec.plans.strategies import STRATEGIES

HEAD = ("", "rests", "sends, x (N-1)/N", "host link", "at rest", "sent", "over host link")
PLACEMENTS = len(Mode) ** len(State)
LEGEND = (
    "a placement is named by its modes of parameters, optimizer state and gradients; activations are "
    "S, M or O",
    "bytes per parameter: that rest on a device, that it sends in a step, and that cross its host link "
    "in a step",
    "w, g, K: bytes of weight, gradient and optimizer state; N devices; m micro-steps",
    f"the {PLACEMENTS} have one mode for each state, and release what they gather after each use; "
    "strategies need not",
)


NOT_DERIVED = (
    "without a copy of the weights no step is derived that updates on the host; one written by hand "
    "may be right"
)


@dataclass(frozen=True)
class Row:
    """A class of equal cost, or a strategy, and what it costs for each parameter."""

    name: str
    form: CostForm
    cost: Cost
    modes: tuple[str, ...]  # of the placements in it
    better: str | None  # the class that is better, where one is
    strategy: str | None  # the strategy outside of the space that is better, where one is

    def cells(self) -> tuple[str, ...]:
        """Formulas and bytes."""
        forms = (self.form.resting, self.form.sent, self.form.host)
        values = (self.cost.resting, self.cost.sent, self.cost.host)
        return (self.name, *map(sum_text, forms), *(f"{float(v):.6g}" for v in values))

    @property
    def here(self) -> str:
        """What is better at these sizes."""
        if self.better:
            return f"{self.better} is better"
        of_all = f"none of the {PLACEMENTS} is better"
        return f"{of_all}; {self.strategy} is" if self.strategy else of_all

    def data(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            "name": self.name,
            "placements": list(self.modes),
            "formulas": {
                "resting": sum_text(self.form.resting),
                "sent_in_units_of_(N-1)/N": sum_text(self.form.sent),
                "host": sum_text(self.form.host),
            },
            "bytes_per_parameter": {
                "resting": Quantity(self.cost.resting, BYTES),
                "sent": Quantity(self.cost.sent, BYTES),
                "host": Quantity(self.cost.host, BYTES),
            },
            "on_the_frontier": self.better is None,
            "dominated_by": self.better,
            "dominated_by_strategy": self.strategy,
        }


@dataclass(frozen=True)
class Reason:
    """Why some placements are not realisable, how many, and one whose run diverges."""

    rule: str
    operation: str
    has: str
    placements: int
    witness: FourModes
    policy: BytePolicy
    micro_steps: int

    @cached_property
    def run(self) -> Diverging:
        """One of the witness that differs from the single device, on two devices."""
        sizes = schedule_of(placement_of(self.witness)), {BATCH: 2}, self.micro_steps, self.policy
        found = diverging(*sizes, check(*sizes))
        if found is None:
            raise ValueError(f"{spelled(self.witness, 4)}: no run on 2 devices diverges")
        return found

    def lines(self) -> list[str]:
        """In words."""
        return [
            f"{counted(self.placements, 'placement')}: {self.rule}, {self.operation}, "
            f"on {LEAST} or more devices: {self.has}",
            f"  a run on 2 devices, of {spelled(self.witness, 4)}: {self.run}",
        ]

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "rule": self.rule,
            "operation": self.operation,
            "has": self.has,
            "placements": self.placements,
            "witness": spelled(self.witness, 4),
            "divergence": self.run.json(),
        }


def spelled(modes: FourModes, states: int = 3) -> str:
    """The modes of parameters, optimizer state and gradients, and perhaps activations."""
    return " ".join(mode.value for mode in modes[:states])


def reason_of(found: Verdict) -> tuple[str, str, str]:
    """Why a placement is rejected: the rule, the operation, and what it has."""
    return found.rule, found.op.kind.value if found.op else "end of the step", has(found)


class Space:
    """The realisable placements on N devices, with a byte policy and a number of micro-steps."""

    def __init__(self, devices: int, policy: BytePolicy, micro_steps: int) -> None:
        self.devices, self.policy, self.micro_steps = devices, policy, micro_steps
        self.regime = regime_of(policy, micro_steps)
        widths = (policy.w, policy.g, policy.k)
        self.point = Point(Fraction(1), Fraction(1, devices), micro_steps, widths)

    def cost(self, form: CostForm) -> Cost:
        """Bytes for each parameter."""
        found = form.at(self.point)
        return Cost(found.resting, found.sent * (1 - self.point.slice), found.host)

    def row(self, name: str, form: CostForm, modes: Iterable[str]) -> Row:
        """A class or a strategy, beside the best."""
        mine = self.cost(form)
        better, strategy = (
            next((other for other, cost in others.items() if dominates(cost, mine)), None)
            for others in (self.best, self.outside)
        )
        return Row(name, form, mine, tuple(modes), better, strategy)

    @cached_property
    def best(self) -> dict[str, Cost]:
        """The classes that no other dominates here."""
        costs = {name: self.cost(cost_form(name, self.regime)) for name in frontier(self.regime)}
        return {
            name: cost
            for name, cost in costs.items()
            if not any(dominates(other, cost) for other in costs.values())
        }

    @cached_property
    def named(self) -> dict[str, Placement]:
        """The strategies of one batch axis that are realisable here."""
        return {
            name: p
            for name, p in STRATEGIES.items()
            if p.axes == (BATCH,) and verdict_of(p, self.regime).accepted
        }

    @cached_property
    def outside(self) -> dict[str, Cost]:
        """The strategies that cost what no placement of the space does."""
        forms = {name: closed_form(p).restricted_to(self.regime) for name, p in self.named.items()}
        space = classes(self.regime)
        return {name: self.cost(form) for name, form in forms.items() if form not in space}

    @cached_property
    def rows(self) -> list[Row]:
        """Every class of equal cost; those that are best at some sizes first."""
        names = {cost_form(name, self.regime): name for name in frontier(self.regime)}
        found = classes(self.regime).items()
        rows = [
            self.row(names.get(form, spelled(placed[0])), form, map(spelled, placed))
            for form, placed in found
        ]
        order = list(names.values())
        last = len(order)
        return sorted(rows, key=lambda r: order.index(r.name) if r.name in order else last)

    @property
    def listed(self) -> list[Row]:
        """The classes that some sizes leave undominated."""
        return self.rows[: len(frontier(self.regime))]

    def conditions(self, name: str) -> list[tuple[str, str]]:
        """The rivals of a class, and when each dominates it."""
        mine = cost_form(name, self.regime)
        rivals = frontier(self.regime)[name]
        return [(rival, unless(cost_form(rival, self.regime), mine, self.regime)) for rival in rivals]

    @cached_property
    def strategies(self) -> list[Row]:
        """The named strategies, beside the classes and one another."""
        return [
            self.row(name, closed_form(p).restricted_to(self.regime), [modes_of(p)])
            for name, p in self.named.items()
        ]

    @cached_property
    def reasons(self) -> list[Reason]:
        """Why the others are not realisable, the commonest first."""
        found: dict[tuple[str, str, str], list[FourModes]] = {}
        for modes, no in verdicts(self.regime).items():
            if not no.accepted:
                found.setdefault(reason_of(no), []).append(modes)
        least = 2 if self.regime.several else 1
        right = realisable(self.regime)

        def changes(modes: FourModes) -> int:  # that would make it realisable
            return min(sum(a is not b for a, b in zip(modes, r, strict=True)) for r in right)

        reasons = [
            Reason(*why, len(m), min(m, key=changes), self.policy, least) for why, m in found.items()
        ]
        return sorted(reasons, key=lambda r: -r.placements)

    @property
    def counts(self) -> dict[str, int]:
        """Placements, those that are realisable, and their classes of equal cost."""
        accepted = sum(len(row.modes) for row in self.rows) * len(ACTIVATION_MODES)
        return {"placements": PLACEMENTS, "realisable": accepted, "classes": len(self.rows)}

    def report(self, every: bool = False, reasons: bool = False) -> Report:
        """The best classes and the strategies; every class and the reasons where they are asked for."""
        p, counts = self.policy, self.counts
        facts = (
            f"{counts['placements']} placements, {counts['realisable']} realisable, in "
            f"{counts['classes']} classes of equal cost",
            f"the optimizer state holds {self.regime.optimizer.value}",
            *([] if self.policy.master else [NOT_DERIVED]),
            *LEGEND,
        )
        sections = [
            self.table(f"best of the {PLACEMENTS}, each at some sizes", self.listed, False),
            self.table("strategies", self.strategies, False),
            *([self.table("classes", self.rows, True)] if every else []),
            self._rivals(),
            *([self._reasons()] if reasons else []),
        ]
        return Report(
            "space",
            f"placements of a batch axis: {counted(self.devices, 'device')}, w = {p.w}, g = {p.g}, "
            f"K = {p.k}, {counted(self.micro_steps, 'micro-step')} a step",
            facts,
            tuple(sections),
            self._data(every, reasons),
        )

    def table(self, title: str, rows: list[Row], members: bool) -> Section:
        """Classes or strategies; `members`: with the placements in each."""
        last = "its placements" if members else "placed as"
        columns = tuple(Column(head, right=4 <= i <= 6) for i, head in enumerate(HEAD))
        columns += (Column("here", 1), Column(last, 1))
        cells = [
            (
                *row.cells(),
                row.here,
                ", ".join(row.modes) if members or row.name in STRATEGIES else "",
            )
            for row in rows
        ]
        if not any(also for *_, also in cells):
            columns, cells = columns[:-1], [each[:-1] for each in cells]
        return Section(title, columns, as_rows(cells), titled=True)

    def _rivals(self) -> Section:
        """When each of the best is dominated, and by which other."""
        cells = []
        for row in self.listed:
            unless_ = [f"{rival} has {when}" for rival, when in self.conditions(row.name)]
            cells.append((row.name, "unless " + "; or ".join(unless_) if unless_ else "always"))
        title = (
            f"none of the {PLACEMENTS} is better than one of these, for every N >= 2, m, w, g and K,"
        )
        return Section(title, (Column("placement"), Column("unless", 1)), as_rows(cells))

    def _reasons(self) -> Section:
        lines = (line for why in self.reasons for line in why.lines())
        return listed("why the others are not realisable", lines)

    def _data(self, every: bool, reasons: bool) -> dict[str, Any]:
        """For a program."""
        found: dict[str, Any] = {
            "inputs": {
                "devices": self.devices,
                "bytes": in_bytes(self.policy),
                "optimizer_holds": self.regime.optimizer.value,
                "accumulate": self.micro_steps,
            },
            "counts": self.counts,
            "frontier": [
                row.data()
                | {"unless": [{"better": r, "when": when} for r, when in self.conditions(row.name)]}
                for row in self.listed
            ],
            "strategies": [row.data() for row in self.strategies],
        }
        if every:
            found["classes"] = [row.data() for row in self.rows]
        if reasons:
            found["reasons"] = [why.data() for why in self.reasons]
        return found


def modes_of(placement: Placement) -> str:
    """Its modes, and whether gathered parameters are held."""
    states = (State.PARAMETERS, State.OPTIMIZER, State.GRADIENTS)
    modes = " ".join(symbols_of(placement, state) for state in states)
    return f"{modes}, held" if placement.hold else modes
