"""What is said of a plan of Psi parameters, of which no more is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psem_model.predict.closed import (
    closed_form,
    legend,
    passing,
    peak_formula,
    text,
    written,
)
from psem_model.predict.plan import Plan
from psem_model.predict.said import Said, mesh_said
from psem_model.predict.states import Prediction
from psem_model.reading.placements import symbols_of
from psem_model.text.figures import counted, times
from psem_model.text.report import ITSELF, Column, Row, Section
from spec.costs.memory import MODEL_STATES
from spec.language.schedule import Op
from spec.models.states import State
from spec.plans.modes import MODE_MEANING, Mode
from spec.plans.placement import Placement


def said(plan: Plan) -> Said:
    """Their placement and schedule, and formulas in Psi, N and K."""
    (group,) = plan.step.groups
    schedule, has_copies = group.schedule, bool(plan.fullest.buckets)
    found = closed_form(schedule, plan.policy, plan.padded, plan.unit is not None)
    forms = _forms(found)
    by_unit = closed_form(schedule, plan.policy, plan.padded, with_unit=True)
    has_unit = plan.unit is None and passing(by_unit).has(by_unit.sizes.unit)
    # with copies of gradients there is more at the peak than the schedule says
    peak = [] if has_copies or not has_unit else [peak_formula(by_unit)]
    has_copies = has_copies or bool(plan.fullest.transient["copied"])
    slices = plan.in_plan.waits_whole and schedule.sliced_by_update  # are left of gradients
    untold = {"resting.gradients", "resting.total"} if slices else set[str]()
    untold |= {"peak"} if has_copies else set()
    parts = {"micro-step": schedule.micro_step, "finish": schedule.finish}
    unit = plan.psi if plan.unit is None else plan.unit
    return Said(
        facts=(
            f"Psi = {plan.psi:,} parameters; {mesh_said(plan)}; "
            f"{counted(plan.micro_steps, 'micro-step')} a step; unit {counted(unit, 'element')}",
        ),
        first=(
            *([_placement(plan.product.states)] if plan.written is None else []),
            *(_operations(plan, part, ops) for part, ops in parts.items() if ops),
        ),
        inputs={
            "unit": unit,
            "padding": "exact" if plan.padded else "divisible",
            "hold": plan.written is None and plan.product.states.hold,
        },
        data={
            "schedule": [
                {"part": part, "operation": " ".join(str(op).split()), "phase": op.phase.value}
                for part, ops in parts.items()
                for op in ops
            ],
            "memory": {"peak_by_unit": text(*peak)} if peak else {},
            "formulas": {key: text(form) for key, form in forms.items()},
        },
        legend=legend((*forms.values(), *peak), schedule.axes),
        notes_of_memory=tuple(f"peak, by units of U elements: {text(form)}" for form in peak),
        notes_of_moves=tuple(_notes_of_moves(plan)),
        forms={key: written(form) for key, form in forms.items() if key not in untold},
        of_moves={move.op: written(move.elements) for move in found.moves},
    )


def _forms(found: Prediction) -> dict[str, Any]:
    """Of every figure, by its key in the report."""
    return {
        **{f"resting.{state.value}": found.resting[state] for state in MODEL_STATES},
        "resting.total": found.total,
        "transient.states": passing(found),
        "peak": peak_formula(found),
        "host": found.host,
        "elements": found.elements,
        "bytes": found.bytes,
        "host_bytes": found.host_bytes,
    }


def _operations(plan: Plan, part: str, ops: tuple[Op, ...]) -> Section:
    often = times(plan.micro_steps if part == "micro-step" else 1)
    rows = tuple(Row((str(op),)) for op in ops)
    return Section(f"schedule, {part} ({often})", (Column("operation"),), rows)


def _notes_of_moves(plan: Plan) -> Iterator[str]:
    (group,) = plan.busiest.groups
    if any(move.op.state is State.ACTIVATIONS for move in group.costs.moves):
        yield "activations move too; what they take and move is not counted here"
    if plan.written is not None:
        yield "of a schedule that reads what is there"


def _placement(placement: Placement) -> Section:
    used = {m for s in State for _, m in dict(placement.modes)[s]}
    notes = [f"{mode.value:<3} {MODE_MEANING[mode]}" for mode in Mode if mode in used]
    held = ["gathered parameters are held from forward to backward"] if placement.hold else []
    rows = tuple(Row((s.value, symbols_of(placement, s)), s.value) for s in State)
    columns = (Column("state"), Column("mode", key=ITSELF))
    return Section("placement", columns, rows, (*held, *notes), "placement")
