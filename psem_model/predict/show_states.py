"""Predictions as text and as JSON."""

from __future__ import annotations

from typing import Any

from psem_model.predict.states import NO_COPY, NotRealisable, Prediction
from psem_model.predict.symbolic import LEGEND, closed_form, peak_formula, text
from psem_model.reading.placements import symbols_of
from psem_model.text.figures import (
    counted,
    divergence_json,
    divergence_text,
    plain,
    quantity,
    table,
    times,
    unit_of,
)
from spec.memory import MODEL_STATES
from spec.mesh import HOST, group_size
from spec.modes import MEANING, Mode
from spec.states import State


class Shown:
    """A prediction beside its closed forms."""

    def __init__(self, name: str, prediction: Prediction, padded: bool) -> None:
        self.name, self.prediction, self.padded = name, prediction, padded
        self.unit = unit_of((prediction.peak, prediction.bytes, prediction.host, prediction.host_bytes))
        with_unit = prediction.sizes.unit is not None
        policy = prediction.sizes.policy
        self.formulas = closed_form(prediction.placement, policy, padded, with_unit)
        self.legend = {
            symbol: words
            for symbol, words in LEGEND.items()
            if with_unit or not symbol.startswith(("U", "shard"))
        }
        if len(prediction.placement.axes) > 1:
            del self.legend["N"]
            for axis in prediction.placement.axes:
                self.legend[f"N_{axis}"] = f"devices along {axis}"

    def json(self) -> dict[str, Any]:
        """The prediction with every number exact."""
        p, f, policy = self.prediction, self.formulas, self.prediction.sizes.policy
        world = group_size(p.sizes.mesh, p.placement.axes)
        resting = {state.value: p.resting[state] for state in MODEL_STATES}
        operations = [
            {
                "operation": move.op.kind.value,
                "state": (move.op.state or move.op.target).value,
                "phase": move.op.phase.value,
                "axes": list(move.op.axes) or [HOST],
                "times": int(move.times),
                # what activations move is the model's, and is not counted here
                "elements": quantity(move.elements) if move.op.state in MODEL_STATES else None,
                "bytes": quantity(move.bytes) if move.op.state in MODEL_STATES else None,
                "formula": text(formula.elements) if move.op.state in MODEL_STATES else None,
            }
            for move, formula in zip(p.moves, f.moves, strict=True)
        ]
        return {
            "strategy": self.name,
            "inputs": {
                "psi": int(p.sizes.psi),
                "devices": world,
                "mesh": dict(p.sizes.mesh),
                "bytes": {"w": float(policy.w), "g": float(policy.g), "K": float(policy.k)},
                "accumulate": p.micro_steps,
                "unit": int(p.sizes.psi if p.sizes.unit is None else p.sizes.unit),
                "padding": "exact" if self.padded else "divisible",
                "hold": p.placement.hold,
            },
            "placement": {s.value: symbols_of(p.placement, s) for s in State},
            "schedule": [
                {"part": part, "operation": " ".join(str(op).split()), "phase": op.phase.value}
                for part, ops in self._parts()
                for op in ops
            ],
            "memory": {
                "resting": {
                    **{state: quantity(value) for state, value in resting.items()},
                    "total": quantity(p.total),
                },
                "peak": quantity(p.peak),
                "host": quantity(p.host),
            },
            "communication": {
                "elements": quantity(p.elements),
                "bytes": quantity(p.bytes),
                "host_bytes": quantity(p.host_bytes),
                "operations": operations,
            },
            "formulas": {
                **{s.value: text(f.resting[s]) for s in MODEL_STATES},
                "resting": text(f.total),
                "peak": text(peak_formula(f)),
                "host": text(f.host),
                "elements": text(f.elements),
                "bytes": text(f.bytes),
                "host_bytes": text(f.host_bytes),
            },
        }

    def _parts(self) -> list[tuple[str, tuple[Any, ...]]]:
        schedule = self.prediction.schedule
        return [("micro-step", schedule.micro_step), ("finish", schedule.finish)]

    def lines(self) -> list[str]:
        """The prediction as text."""
        p, f, policy = self.prediction, self.formulas, self.prediction.sizes.policy
        mesh = " x ".join(f"{axis} {size:,}" for axis, size in p.sizes.mesh.items())
        unit = p.sizes.psi if p.sizes.unit is None else p.sizes.unit
        out = [
            self.name,
            f"  Psi = {p.sizes.psi:,} parameters; {mesh}; {counted(p.micro_steps, 'micro-step')} a "
            f"step; unit {counted(unit, 'element')}",
            "",
            "placement    " + "  ".join(f"{s.value}={symbols_of(p.placement, s)}" for s in State),
        ]
        if p.placement.hold:
            out.append("  gathered parameters are held from forward to backward")
        used = {m for s in State for _, m in dict(p.placement.modes)[s]}
        out += [f"  {mode.value:<3} {MEANING[mode]}" for mode in Mode if mode in used]
        for part, ops in self._parts():
            if ops:
                often = times(p.micro_steps if part == "micro-step" else 1)
                out += ["", f"schedule, {part} ({often})", *(f"  {op}" for op in ops)]
        in_bytes = self.unit.texts
        out += ["", f"memory per device ({self.unit.words})"]
        rows = [
            (s.value, p.resting[s], f.resting[s], f"{policy.of(s)} = {policy.provenance(s)}")
            for s in MODEL_STATES
        ]
        rows.append(("resting, total", p.total, f.total, ""))
        rows.append(
            (
                "peak",
                p.peak,
                peak_formula(f),
                _PEAK.format("all parameters, see --unit" if p.sizes.unit is None else f"{unit:,}"),
            )
        )
        rows.append(("host", p.host, f.host, ""))
        out += table(
            [(name, *in_bytes(value), text(formula), words) for name, value, formula, words in rows]
        )
        out += ["", "communication per device and step"]
        moved: list[tuple[str, ...]] = [
            (
                f"{move.op.kind.value} {move.op.state.value}",
                "over " + " x ".join(move.op.axes) if move.op.axes else "over the host link",
                f"{plain(move.elements)} elements",
                *in_bytes(move.bytes),
                text(formula.elements),
                f"{policy.of(move.op.state)} = {policy.provenance(move.op.state)}",
            )
            for move, formula in zip(p.moves, f.moves, strict=True)
            if move.op.state in MODEL_STATES
        ]
        moved.append(
            (
                "to other devices",
                "",
                f"{plain(p.elements)} elements",
                *in_bytes(p.bytes),
                text(f.elements),
                "",
            )
        )
        out += table(moved)
        out += table([("over the host link", *in_bytes(p.host_bytes), text(f.host_bytes) + " bytes")])
        if any(move.op.state is State.ACTIVATIONS for move in p.moves):
            out.append("  activations move too; what they take and move is not counted here")
        out += ["", "formulas: memory in bytes, communication in elements"]
        return out + [f"  {symbol:<14} {words}" for symbol, words in self.legend.items()]


_PEAK = "resting + largest transient (unit: {})"


def refusal(error: NotRealisable) -> list[str]:
    """Why a placement is refused, and the run that shows it."""
    lines = [f"not realisable: {error.verdict.reason}"]
    if error.for_want_of_a_copy:
        lines.append(NO_COPY)
    if error.divergence is not None:
        lines.append(f"a run that diverges: {divergence_text(error.divergence)}")
    return lines


def refusal_json(error: NotRealisable) -> dict[str, Any]:
    """The same for a program."""
    return {
        "realisable": False,
        "rule": error.verdict.rule,
        "reason": error.verdict.reason,
        "for_want_of_a_copy": error.for_want_of_a_copy,
        "divergence": None if error.divergence is None else divergence_json(error.divergence),
    }
