"""The report on a plan of Psi parameters, of which no more is said."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from psem_model.predict.closed import (
    closed_form,
    legend,
    passing,
    peak_formula,
    text,
    written,
)
from psem_model.predict.moved import Moved
from psem_model.predict.reported import Reported
from psem_model.predict.states import Prediction
from psem_model.reading.placements import symbols_of
from psem_model.text.figures import counted, times
from psem_model.text.report import (
    ITSELF,
    Column,
    Formula,
    Row,
    Section,
)
from spec.costs.memory import MODEL_STATES
from spec.language.schedule import Op, Schedule
from spec.models.states import State
from spec.plans.modes import MODE_MEANING, Mode
from spec.plans.placement import Placement


class OfStates(Reported):
    """Psi parameters: their placement and schedule, and formulas in Psi, N and K."""

    @property
    def schedule(self) -> Schedule:
        """Of all parameters."""
        (group,) = self.plan.step.groups
        return group.schedule

    def closed(self, with_unit: bool) -> Prediction:
        return closed_form(self.schedule, self.plan.policy, self.plan.padded, with_unit)

    @cached_property
    def forms(self) -> dict[str, Any]:
        """Of every figure, by its key in the report."""
        found = self.closed(self.plan.unit is not None)
        at_rest = {f"resting.{state.value}": found.resting[state] for state in MODEL_STATES}
        return {
            **at_rest,
            "resting.total": found.total,
            "transient.states": passing(found),
            "peak": peak_formula(found),
            "host": found.host,
            "elements": found.elements,
            "bytes": found.bytes,
            "host_bytes": found.host_bytes,
        }

    @cached_property
    def of_moves(self) -> dict[Op | None, Any]:
        """Elements that each operation sends."""
        return {move.op: move.elements for move in self.closed(self.plan.unit is not None).moves}

    @cached_property
    def by_unit(self) -> Any:
        """The peak by the elements of a unit, where these were not said and matter."""
        found = self.closed(with_unit=True)
        has_unit = passing(found).has(found.sizes.unit)
        is_all = not self.fullest.buckets  # else there is more than the schedule says
        return peak_formula(found) if self.plan.unit is None and has_unit and is_all else None

    def facts(self) -> Iterator[str]:
        plan = self.plan
        unit = counted(plan.psi if plan.unit is None else plan.unit, "element")
        steps = counted(plan.micro_steps, "micro-step")
        yield f"Psi = {plan.psi:,} parameters; {self.mesh}; {steps} a step; unit {unit}"

    def first(self) -> Iterator[Section]:
        if self.plan.written is None:
            yield _placement(self.plan.product.states)
        for part, ops in self.parts():
            often = times(self.plan.micro_steps if part == "micro-step" else 1)
            if ops:
                rows = tuple(Row((str(op),)) for op in ops)
                yield Section(f"schedule, {part} ({often})", (Column("operation"),), rows)

    def parts(self) -> list[tuple[str, tuple[Any, ...]]]:
        return [("micro-step", self.schedule.micro_step), ("finish", self.schedule.finish)]

    def inputs(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "unit": plan.psi if plan.unit is None else plan.unit,
            "padding": "exact" if plan.padded else "divisible",
            "hold": plan.written is None and plan.product.states.hold,
        }

    def data(self) -> dict[str, Any]:
        found = {"peak_by_unit": text(self.by_unit)} if self.by_unit is not None else {}
        return {
            "schedule": [
                {"part": part, "operation": " ".join(str(op).split()), "phase": op.phase.value}
                for part, ops in self.parts()
                for op in ops
            ],
            "memory": found,
            "formulas": {key: text(form) for key, form in self.forms.items()},
        }

    def legend(self) -> dict[str, str]:
        return legend((*self.forms.values(), *filter(None, [self.by_unit])), self.schedule.axes)

    def form(self, name: str) -> Formula | None:
        is_said = name in self.forms and not (name == "peak" and self.fullest.buckets)
        return written(self.forms[name]) if is_said else None

    def form_of(self, moved: Moved) -> Formula | None:
        return written(self.of_moves[moved.op])

    def notes_of_memory(self) -> Iterator[Any]:
        if self.by_unit is not None:
            yield f"peak, by units of U elements: {text(self.by_unit)}"

    def notes_of_moves(self) -> Iterator[str]:
        (group,) = self.busiest.groups
        if any(move.op.state is State.ACTIVATIONS for move in group.costs.moves):
            yield "activations move too; what they take and move is not counted here"
        if self.plan.written is not None:
            yield "of a schedule that reads what is there"


def _placement(placement: Placement) -> Section:
    used = {m for s in State for _, m in dict(placement.modes)[s]}
    notes = [f"{mode.value:<3} {MODE_MEANING[mode]}" for mode in Mode if mode in used]
    held = ["gathered parameters are held from forward to backward"] if placement.hold else []
    rows = tuple(Row((s.value, symbols_of(placement, s)), s.value) for s in State)
    columns = (Column("state"), Column("mode", key=ITSELF))
    return Section("placement", columns, rows, (*held, *notes), "placement")
