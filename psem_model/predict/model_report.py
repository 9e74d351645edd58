"""The report on a plan of a transformer: its parts and stages too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from psem_model.predict.closed import (
    forms,
    legend,
    per_token,
    shortest,
    written,
)
from psem_model.predict.parts import BACKWARD, FORWARD, PHASES, PartCosts
from psem_model.predict.plan import Plan
from psem_model.predict.reported import SAYS, Reported, one
from psem_model.reading.steps import names_of
from psem_model.text.figures import counted, digits, plain, unit_of
from psem_model.text.report import (
    BYTES,
    ELEMENTS,
    ITSELF,
    Column,
    Formula,
    Quantity,
    Row,
    Section,
)
from spec.derivation.distribute import ALL, FROM_SLICES, NOTHING, PAIRS
from spec.devices.layouts import Layout
from spec.models.values import Role
from spec.numbers.arithmetic import Number
from spec.pipelines.pipeline import bubble_of_ideal, bubble_of_span
from spec.plans.modes import Mode

MADE_AGAIN = {
    NOTHING: "nothing is made again for backward",
    PAIRS: "for backward, what attention has for each pair of tokens is made again",
    ALL: "for backward, layers are made again from what they take",
    FROM_SLICES: "for backward, layers are made again from what they take, kept in slices",
}


class OfModel(Reported):
    """A transformer: its parts and stages, and formulas of what each part holds and sends."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.model, self.forms = plan.transformer, forms(plan)
        self.written = {
            part: {
                n: per_token(f) if n == "activations" else written(shortest(f))
                for n, f in found.items()
            }
            for part, found in self.forms.items()
        }

    def facts(self) -> Iterator[str]:
        plan, model, m = self.plan, self.model, self.plan.micro_steps
        shape = f"{counted(model.layers, 'layer')} of {counted(model.hidden, 'feature')}"
        samples = f"{counted(plan.micro_batch, 'sample')} of {counted(plan.sequence, 'token')}"
        along = " x ".join(plan.sample_axes)
        samples += f" on each device along {along}" if along else ""
        yield f"Psi = {plan.psi:,} parameters: {shape}, {counted(model.heads, 'head')}"
        if model.left_out:
            yield f"not in it: {model.left_out}"
        yield f"devices: {self.mesh}"
        yield f"a step of {counted(m, 'micro-batch')}{' of' if m == 1 else ', each of'} {samples}"
        on_host = "; what is kept is on the host" if plan.offload else ""
        in_turns = any(axis.ring for axis in plan.axes) and plan.again == NOTHING
        but = ", but attention, in each turn of the ring" if in_turns else ""
        yield f"{MADE_AGAIN[plan.again]}{but}{on_host} (activations: {activations_mode(plan)})"
        narrow = {window for window in model.windows if 0 < window < plan.sequence}
        if narrow:
            some = "" if narrow == {*model.windows} else "in some layers "
            latest = " or ".join(f"{window:,}" for window in sorted(narrow))
            sees = f"those of its chunk of {latest}" if model.chunked else f"the latest {latest}"
            yield f"{some}a token sees {sees}: a mask, of the scores of all pairs"
        if plan.padded_words != model.vocabulary:
            yield f"{model.vocabulary:,} words padded to {plan.padded_words:,}, to be cut evenly"

    def first(self) -> Iterator[Section]:
        yield from map(self.part, self.plan.costs)
        if self.plan.step.stages:
            yield _stages(self.plan)
            yield self.pipeline()

    def part(self, name: str) -> Section:
        costs, said = self.plan.costs[name], self.written[name]
        parameters = Quantity(sum(costs.parameters.values()), "", said["parameters"])
        rows = [
            Row(("parameters", "", parameters)),
            Row(("activations", "", Quantity(costs.activations, BYTES, said["activations"]))),
        ]
        for phase in PHASES:
            sent = costs.sent(phase)
            if sent:
                counts = Counter(t.move.collective for t in costs.traffic if t.phase == phase)
                words = ", ".join(f"{n} {collective}" for collective, n in counts.items())
                rows.append(Row((SAYS[phase], words, Quantity(sent, ELEMENTS, said[phase]))))
        columns = (Column("what"), Column("by"), Column("size"))
        return Section(f"{one(name)}, on one device, for one micro-batch", columns, tuple(rows))

    def pipeline(self) -> Section:
        pipe, found = self.plan.pipe, self.written["pipeline"]
        ideal, total = bubble_of_ideal(pipe), bubble_of_span(pipe)
        rows = [
            _idle("idle, of ideal time", ideal, found["bubble_of_ideal"], "bubble_of_ideal"),
            _idle("idle, of all time", total, found["bubble_of_total"], "bubble_of_total"),
        ]
        if "sent" in found:
            form = found["sent"]
            sent = Quantity(self.plan.layer.handed_on, ELEMENTS, form)
            words = f"{plain(sent.value)} elements, each way, of a micro-batch"
            cells = ("sent at a boundary", words, form)
            rows.append(Row(cells, "sent_per_boundary", told={ITSELF: sent}))
        title = "pipeline: idle time, if all stages take equally long"
        columns = (Column("what"), Column("size"), Column("formula", 1))
        return Section(title, columns, tuple(rows), key="pipeline")

    def inputs(self) -> dict[str, Any]:
        plan = self.plan
        shape = ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary")
        return {
            **{name: getattr(self.model, name) for name in (*shape, "experts", "chosen", "positions")},
            "windows": sorted({*self.model.windows}),
            "padded_vocabulary": plan.padded_words,
            "micro_batch": plan.micro_batch,
            "sequence": plan.sequence,
            "order": plan.pipe.kind.value,
            "chunks": plan.pipe.chunks,
            "recompute": plan.again,
            "offload_activations": plan.offload,
            "activations_mode": activations_mode(plan),
        }

    def data(self) -> dict[str, Any]:
        stages = {"pipeline": {"bubble_if": "all stages take equally long"}}
        return {
            "parts": {name: self.of_part(costs) for name, costs in self.plan.costs.items()},
            "memory": self.of_memory(),
            **(stages if self.plan.step.stages else {}),
            "checkpoints": self.checkpoints(),
            "formulas": {
                part: {name: str(form) for name, form in found.items()}
                for part, found in self.written.items()
            },
        }

    def of_part(self, costs: PartCosts) -> dict[str, Any]:
        """One embedding, layer or head, of one micro-batch, on one device."""
        program, written = costs.program, self.plan.written is not None
        names = {value: value.name for value in program.kept} if written else names_of(program)
        kept = (v.plain_name if written and v.role is Role.CONSTANT else names[v] for v in program.kept)
        sent = {phase: Quantity(costs.sent(phase)) for phase in PHASES}
        return {
            "parameters": sum(costs.parameters.values()),
            "activations": Quantity(costs.activations, BYTES),
            "computing": Quantity(costs.computing, BYTES),
            "kept": [str(replace(v, name=name)) for v, name in zip(program.kept, kept, strict=True)],
            "elements": {**sent, "forward_and_backward": Quantity(costs.sent(FORWARD, BACKWARD))},
            "moves": [
                {
                    "operation": t.move.collective,
                    "axis": t.move.axis,
                    "value": t.move.value.plain_name,
                    "phase": t.phase,
                    "messages": t.messages,
                    "elements": Quantity(t.elements, ELEMENTS),
                    "bytes": Quantity(t.bytes, BYTES),
                }
                for t in costs.traffic
            ],
        }

    def of_memory(self) -> dict[str, Any]:
        """Which stage it is of, and of which unit what passes is."""
        stage = self.fullest
        return {
            "stage": stage.number,
            "transient_of": {"states": self.plan.unit or stage.unit, "computing": stage.computing},
            "activations_of_layers": Quantity(stage.activations_of(*self.plan.layers), BYTES),
        }

    def legend(self) -> dict[str, str]:
        plan = self.plan
        found = (form for part in self.forms.values() for form in part.values())
        padded = plan.padded_words != self.model.vocabulary
        return legend(found, tuple(plan.mesh), padded)

    def checkpoints(self) -> dict[str, Any] | None:
        """How many layers best keep their input, the others made again; None if that keeps no less."""
        layers = self.fullest.layers
        found = self.plan.checkpoints(layers)
        if found is None:
            return None
        count, segment, size = found
        kept = Quantity(size, BYTES)
        return {"layers": layers, "best": count, "segment": segment, "activations": kept}

    def notes_of_memory(self) -> Iterator[Any]:
        """What the best number of checkpoints would keep."""
        found = self.plan.checkpoints(self.fullest.layers)
        if found is not None:
            count, segment, size = found
            kept = unit_of([self.fullest.peak]).texts(size)[0]
            yield (
                f"with {counted(count, 'checkpoint')}, of segments of {counted(segment, 'layer')}, "
                f"made again for backward: {kept} of activations for a micro-batch"
            )

    def notes_of_moves(self) -> Iterator[str]:
        if not self.model.vocabulary:
            yield "without embedding and head: give --vocabulary"


def _idle(words: str, share: Number, form: Formula, key: str) -> Row:
    exact = Fraction(share)
    told = {ITSELF: Quantity(share, "", form)}
    return Row((words, f"{exact} = {digits(exact, 4)}", form), key, told=told)


def activations_mode(plan: Plan) -> str:
    """The modes of a layer's activations along the axes, as a placement writes them.

    R and S of what is kept for backward, unless that is only what layers take; with O, on the host. M
    of what is made again, from what is kept.
    """
    found: list[str] = []
    if plan.again in (NOTHING, PAIRS):
        names = [axis.name for axis in plan.axes]
        programs = [layer.program for layer in plan.layers.values()]
        layouts = {p.lies[value][name].layout for p in programs for value in p.kept for name in names}
        is_cut = bool(plan.step.stages) or Layout.SHARDED in layouts
        kept = {Mode.SHARDED: is_cut, Mode.REPLICATED: Layout.REPLICATED in layouts or not is_cut}
        found = [mode.value for mode in Mode if kept.get(mode)]
    made_again = [] if plan.again == NOTHING else [Mode.MATERIALIZED.value]
    if plan.offload:
        found = [f"{mode}+{Mode.OFFLOADED.value}" for mode in found or made_again]
        made_again = made_again if plan.again == PAIRS else []
    return ", ".join(found + made_again)


def _stages(plan: Plan) -> Section:
    in_flight = "in flight" if plan.pipe.chunks == 1 else "in flight, chunks"
    keys = (
        *("stage", "alike", "layers", "parameters", "in_flight"),
        *("resting", "activations", "peak", "bytes"),
    )
    titles = {"in_flight": in_flight, "bytes": "sent"}
    columns = tuple(Column(titles.get(key, key), key=key, right=True) for key in keys)
    rows = tuple(
        Row(
            (
                *(stage.number, stage.alike, stage.layers, stage.parameters, stage.in_flight),
                Quantity(sum(stage.resting.values()), BYTES),
                Quantity(stage.activations, BYTES),
                Quantity(stage.peak, BYTES),
                Quantity(stage.bytes, BYTES),
            ),
            told={"elements": Quantity(stage.elements, ELEMENTS)},
        )
        for stage in plan.stages
    )
    alike = any(stage.alike > 1 for stage in plan.stages)
    note = "alike: stages of the same parts; the first of them is shown, and none has more in flight"
    return Section("stages", columns, rows, (note,) if alike else (), "stages", titled=True)
