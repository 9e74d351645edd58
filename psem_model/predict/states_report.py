"""What the training states of a plan hold and send, as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from psem_model.check.placements import require_accepted
from psem_model.predict.plans import StatesPlan
from psem_model.predict.states import Prediction, predict_schedule
from psem_model.predict.states_closed import LEGEND, closed_form, peak_formula, text, written
from psem_model.reading.placements import symbols_of
from psem_model.text.figures import counted, in_bytes, times
from psem_model.text.report import (
    BYTES,
    ELEMENTS,
    ITSELF,
    Axes,
    Column,
    Quantity,
    Report,
    Row,
    Section,
    meant,
)
from spec.arithmetic import Number
from spec.communication import Transfer
from spec.memory import MODEL_STATES
from spec.modes import MODE_MEANING, Mode
from spec.placement import Placement
from spec.states import State

AT_ONCE = "resting + largest transient ({})"
OF_ALL = "all parameters at once: --unit says how many"


def report(plan: StatesPlan) -> Report:
    """The prediction beside its closed forms. Raises NotRealisable."""
    written = plan.placement is None
    require_accepted(plan.schedule, plan.mesh, plan.micro_steps, plan.policy, written=written)
    return _Reported(plan, predict_schedule(plan.schedule, plan.sizes, plan.micro_steps)).report()


class _Reported:
    """A prediction beside its closed forms."""

    def __init__(self, plan: StatesPlan, found: Prediction) -> None:
        self.plan, self.found, self.policy = plan, found, plan.policy
        self.unit, schedule = plan.unit, plan.schedule
        self.forms = closed_form(schedule, self.policy, plan.padded, self.unit is not None)
        in_units = closed_form(schedule, self.policy, plan.padded, with_unit=True)
        passing = peak_formula(in_units) - in_units.total
        of_units = self.unit is None and passing.has(in_units.sizes.unit)
        self.by_unit = text(peak_formula(in_units)) if of_units else ""

    def report(self) -> Report:
        plan = self.plan
        mesh = " x ".join(f"{axis} {size:,}" for axis, size in plan.mesh.items())
        unit, sent = plan.psi if self.unit is None else self.unit, self._sent()
        facts = (
            f"Psi = {plan.psi:,} parameters; {mesh}; {counted(plan.micro_steps, 'micro-step')} a step; "
            f"unit {counted(unit, 'element')}",
        )
        return Report(
            "predict",
            plan.title,
            facts,
            (
                *([self._placement(plan.placement)] if plan.placement else []),
                *self._schedule(),
                self._memory(),
                self._operations(),
                totals(sent),
                meant("formulas: memory in bytes, communication in elements", self._legend()),
            ),
            {
                "strategy": plan.text,
                "inputs": self._inputs(),
                "schedule": [
                    {"part": part, "operation": " ".join(str(op).split()), "phase": op.phase.value}
                    for part, ops in self._parts()
                    for op in ops
                ],
                "communication": sent,
                **({"memory": {"peak_by_unit": self.by_unit}} if self.by_unit else {}),
                "formulas": self._formulas(),
            },
        )

    def _inputs(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "psi": plan.psi,
            "devices": plan.devices,
            "mesh": dict(plan.mesh),
            "bytes": in_bytes(self.policy),
            "accumulate": plan.micro_steps,
            "unit": plan.psi if self.unit is None else self.unit,
            "padding": "exact" if plan.padded else "divisible",
            "hold": bool(plan.placement and plan.placement.hold),
        }

    def _formulas(self) -> dict[str, str]:
        f = self.forms
        named = {s.value: f.resting[s] for s in MODEL_STATES} | {"resting": f.total}
        named |= {"peak": peak_formula(f), "host": f.host, "elements": f.elements}
        return {name: text(form) for name, form in named.items()} | {
            "bytes": text(f.bytes),
            "host_bytes": text(f.host_bytes),
        }

    # --------------------------------------------------------------------------------- sections
    def _placement(self, placement: Placement) -> Section:
        used = {m for s in State for _, m in dict(placement.modes)[s]}
        notes = [f"{mode.value:<3} {MODE_MEANING[mode]}" for mode in Mode if mode in used]
        held = ["gathered parameters are held from forward to backward"] if placement.hold else []
        rows = tuple(Row((s.value, symbols_of(placement, s)), s.value) for s in State)
        columns = (Column("state"), Column("mode", key=ITSELF))
        return Section("placement", columns, rows, (*held, *notes), "placement")

    def _parts(self) -> list[tuple[str, tuple[Any, ...]]]:
        schedule = self.found.schedule
        return [("micro-step", schedule.micro_step), ("finish", schedule.finish)]

    def _schedule(self) -> Iterator[Section]:
        for part, ops in self._parts():
            often = times(self.plan.micro_steps if part == "micro-step" else 1)
            if ops:
                rows = tuple(Row((str(op),)) for op in ops)
                yield Section(f"schedule, {part} ({often})", (Column("operation"),), rows)

    def _memory(self) -> Section:
        p, f = self.found, self.forms
        rows = [
            Row(
                (s.value, self._bytes(p.resting[s], f.resting[s], self._factor(s))),
                f"resting.{s.value}",
            )
            for s in MODEL_STATES
        ]
        at_once = AT_ONCE.format(OF_ALL if self.unit is None else f"unit: {self.unit:,}")
        rows += [
            Row(("resting, total", self._bytes(p.total, f.total)), "resting.total"),
            Row(("peak", self._bytes(p.peak, peak_formula(f), at_once)), "peak"),
            Row(("host", self._bytes(p.host, f.host)), "host"),
        ]
        notes = [f"peak, by units of U elements: {self.by_unit}"] if self.by_unit else []
        columns = (Column("state"), Column("bytes", key=ITSELF))
        return Section("memory per device", columns, tuple(rows), tuple(notes), "memory")

    def _operations(self) -> Section:
        p, f = self.found, self.forms
        pairs = [*zip(p.moves, f.moves, strict=True)]
        columns = (
            Column("operation"),
            Column("along", key="axes"),
            Column("elements", key="elements"),
            Column("bytes", key="bytes"),
        )
        notes = []
        if any(move.op.state is State.ACTIVATIONS for move in p.moves):
            notes.append("activations move too; what they take and move is not counted here")
        if self.plan.placement is None:
            notes.append("of a schedule that reads what is there, and releases what it makes")
        return Section(
            "communication per device and step",
            columns,
            tuple(self._operation(*pair) for pair in pairs),
            tuple(notes),
            "communication.operations",
        )

    def _operation(self, move: Transfer, form: Transfer) -> Row:
        op, what = move.op, (move.op.state or move.op.target).value
        elements, in_all = None, None  # what activations move is the model's
        if op.state is not None and op.state in MODEL_STATES:
            elements = Quantity(move.elements, ELEMENTS, written(form.elements))
            in_all = Quantity(move.bytes, BYTES, provenance=self._factor(op.state))
        told = {"operation": op.kind.value, "state": what, "phase": op.phase.value}
        cells = (f"{op.kind.value} {what}", Axes(op.axes), elements, in_all)
        return Row(cells, told=told | {"times": int(move.times)})

    def _sent(self) -> dict[str, Quantity]:
        p, f = self.found, self.forms
        elements = Quantity(p.elements, ELEMENTS, written(f.elements))
        return {
            "elements": elements,
            "bytes": self._bytes(p.bytes, f.bytes),
            "host_bytes": self._bytes(p.host_bytes, f.host_bytes),
        }

    def _bytes(self, value: Number, form: Any, provenance: str = "") -> Quantity:
        return Quantity(value, BYTES, written(form), provenance)

    def _factor(self, state: State) -> str:
        return f"{self.policy.of(state)} = {self.policy.provenance(state)}"

    def _legend(self) -> dict[str, str]:
        axes = self.plan.schedule.axes
        several = len(axes) > 1
        dropped = () if self.unit is not None or "shard" in self.by_unit else ("shard",)
        found = {name: words for name, words in LEGEND.items() if not name.startswith(dropped)}
        if several:
            del found["N"]
            found |= {f"N_{axis}": f"devices along {axis}" for axis in axes}
        return found


def totals(sent: Mapping[str, Quantity], host_link: bool = True) -> Section:
    """What is sent in all, to other devices and over the host link."""
    rows = [Row(("to other devices", sent["elements"], sent["bytes"]))]
    if host_link:
        rows.append(Row(("over the host link", "", sent["host_bytes"])))
    return Section("", (Column("sent"), Column("elements"), Column("bytes")), tuple(rows))
