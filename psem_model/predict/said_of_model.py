"""What is said of a plan of a model with parts: of these and of its stages, too."""

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
from psem_model.predict.model_plans import evened, uneven
from psem_model.predict.parts import BACKWARD, FORWARD, PHASES, PartCosts
from psem_model.predict.plan import Plan
from psem_model.predict.said import (
    SAYS,
    Said,
    cautions,
    made_again,
    mesh_said,
    one,
    shape_said,
    spread_unevenly,
    with_experts,
)
from psem_model.reading.fields import BYTES_OF
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
from spec.costs.model_costs import active, further_elements
from spec.derivation.programs import NOTHING, PAIRS
from spec.devices.layouts import Layout
from spec.language.moves import VOCABULARY
from spec.models.transformer import INDICES, Transformer
from spec.models.values import Role
from spec.numbers.arithmetic import Number
from spec.pipelines.idle_and_held import bubble_of_ideal, bubble_of_makespan, repeated_of_ideal
from spec.pipelines.pipeline import Pipeline
from spec.plans.modes import Mode

NO_FORMULA = "no formulas but of parameters: they are of evenly chosen experts"
ARRAYS = {  # of which weights one array is made, by what `JOINED` calls them
    "qkv": "of queries, keys and values",
    "heads": "of queries, keys and values, head after head",
    "mlp": "of the gate and what it opens",
    "experts": "of the gate and what it opens, of all experts",
    "latent": "of latent attention: of queries, of what keys are made from, of keys and values",
}


def said(plan: Plan) -> Said:
    """Its parts and stages, and formulas of what each part holds and sends."""
    of = _OfModel(plan)
    return Said(
        tuple(of.facts()),
        tuple(of.first()),
        of.inputs(),
        of.data(),
        of.legend(),
        tuple(of.notes_of_memory()),
        ("without embedding and head: give --vocabulary",) if of.lacks_words else (),
    )


class _OfModel:
    """A model beside its closed forms. `transformer`: what it is, if it is one."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.fullest = plan, plan.fullest
        uneven = with_experts(plan) if spread_unevenly(plan) else frozenset()
        self.forms = {
            part: {n: f for n, f in found.items() if n == "parameters" or part not in uneven}
            for part, found in forms(plan).items()
        }
        self.transformer = plan.model if isinstance(plan.model, Transformer) else None
        self.written = {
            part: {
                n: per_token(f) if n == "activations" and self.transformer else written(shortest(f))
                for n, f in found.items()
            }
            for part, found in self.forms.items()
        }

    @property
    def lacks_words(self) -> bool:
        """Whether it is layers alone."""
        return self.transformer is not None and not self.transformer.vocabulary

    def facts(self) -> Iterator[str]:
        plan, m = self.plan, self.plan.micro_steps
        samples = f"{counted(plan.micro_batch, 'sample')} of {counted(plan.sequence, 'token')}"
        along = " x ".join(plan.sample_axes)
        samples += f" on each device along {along}" if along else ""
        yield shape_said(plan)
        if self.transformer:
            yield from _passed(self.transformer)
        yield f"devices: {mesh_said(plan)}"
        yield f"a step of {counted(m, 'micro-batch')}{' of' if m == 1 else ', each of'} {samples}"
        on_host = "; what is kept is on the host" if plan.offload else ""
        yield f"{made_again(plan)}{on_host} (activations: {activations_mode(plan)})"
        stored, width = plan.stored, plan.policy.computed
        if stored and BYTES_OF.get(stored) != width:
            yield f"computes with {width} bytes an element (--bytes); the configuration stores {stored}"
        by, has_kernel = plan.attention, plan.profile.has_kernel
        if by and has_kernel is (by == "eager"):
            how = "by one kernel" if has_kernel else "by several operations"
            yield f'attention is computed {how} (--profile); the configuration says "{by}"'
        if self.transformer:
            yield from self.facts_of(self.transformer)

    def facts_of(self, model: Transformer) -> Iterator[str]:
        """What is said of a transformer alone."""
        plan = self.plan
        narrow = {window for window in model.windows if 0 < window < plan.sequence}
        if narrow:
            some = "" if narrow == {*model.windows} else "in some layers "
            latest = " or ".join(f"{window:,}" for window in sorted(narrow))
            sees = f"those of its chunk of {latest}" if model.chunked else f"the latest {latest}"
            yield f"{some}a token sees {sees}: a mask, of the scores of all pairs"
        for index in uneven(plan):
            size, padded = plan.indices[index], evened(plan, index)
            yield f"{size:,} {INDICES[index]} are cut as {padded:,} would be: the last have fewer"
        if model.joined and plan.profile.tells_arrays:
            arrays = "; ".join(ARRAYS[key] for key in sorted(model.joined))
            yield f"weights that are one array, as in transformers: {arrays}"
        whole = sorted({of.name for part in plan.parts for of in part.weights} & plan.profile.whole)
        if whole and any(VOCABULARY in axis.weight_indices for axis in plan.axes):
            yield f"all words on each device: {', '.join(whole)} (--profile)"
        if (padded := evened(plan, VOCABULARY)) != model.vocabulary:
            fewer = f"are cut as {padded:,} would be: the last device has fewer"
            cut = fewer if plan.profile.unpadded else f"padded to {padded:,}, to be cut evenly"
            yield f"{model.vocabulary:,} words {cut}"
        yield from cautions(plan)

    def first(self) -> Iterator[Section]:
        yield from map(self.part, self.plan.costs)
        if self.plan.step.pipe:
            yield _stages(self.plan)
            yield self.pipeline()

    def part(self, name: str) -> Section:
        costs, said = self.plan.costs[name], self.written[name]
        parameters = Quantity(sum(costs.parameters.values()), "", said["parameters"])
        rows = [
            Row(("parameters", "", parameters)),
            Row(("activations", "", Quantity(costs.activations, BYTES, said.get("activations")))),
        ]
        if self.plan.pipe.in_two_parts:
            waiting = costs.waiting(self.plan.profile, {})
            words = "kept from backward's first part to its second"
            rows.append(Row(("waiting", words, Quantity(waiting, BYTES, said.get("waiting")))))
        for phase in PHASES:
            sent = costs.sent(phase)
            if sent:
                counts = Counter(t.collective for t in costs.traffic if t.phase == phase)
                words = ", ".join(f"{n} {collective}" for collective, n in counts.items())
                rows.append(Row((SAYS[phase], words, Quantity(sent, ELEMENTS, said.get(phase)))))
        columns = (Column("what"), Column("by"), Column("size"))
        notes = () if "activations" in said else (NO_FORMULA,)
        return Section(f"{one(name)}, on one device, for one micro-batch", columns, tuple(rows), notes)

    def pipeline(self) -> Section:
        pipe, found = self.plan.pipe, self.written["pipeline"]
        ideal, total = bubble_of_ideal(pipe), bubble_of_makespan(pipe)
        rows = [
            _idle("idle, of ideal time", ideal, found["bubble_of_ideal"], "bubble_of_ideal"),
            _idle("idle, of all time", total, found["bubble_of_total"], "bubble_of_total"),
        ]
        if pipe.in_two_parts:
            share, form = repeated_of_ideal(pipe), found["repeated_of_ideal"]
            rows.append(_idle("that, if no step waits", share, form, "repeated_of_ideal"))
        if "sent" in found:
            form = found["sent"]
            sent = Quantity(self.plan.layer.handed_on, ELEMENTS, form)
            words = f"{plain(sent.value)} elements, each way, of a micro-batch"
            cells = ("sent at a boundary", words, form)
            rows.append(Row(cells, "sent_per_boundary", told={ITSELF: sent}))
        title = f"pipeline: idle time, if {idle_if(pipe)}"
        columns = (Column("what"), Column("size"), Column("formula"))
        return Section(title, columns, tuple(rows), key="pipeline")

    def inputs(self) -> dict[str, Any]:
        plan = self.plan
        return {
            **(self.shape(self.transformer) if self.transformer else self.own_shape()),
            "micro_batch": plan.micro_batch,
            "sequence": plan.sequence,
            "order": plan.pipe.order.value,
            "chunks": plan.pipe.chunks,
            "stage_layers": [*plan.pipe.layers],
            "recompute": plan.again,
            "offload_activations": plan.offload,
            "activations_mode": activations_mode(plan),
        }

    def shape(self, model: Transformer) -> dict[str, Any]:
        """The shape of a transformer."""
        names = ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward", "vocabulary")
        return {
            **{name: getattr(model, name) for name in (*names, "experts", "chosen", "positions")},
            "windows": sorted({*model.windows}),
            "stored_type": self.plan.stored,
            "attention": self.plan.attention,
            "padded_vocabulary": evened(self.plan, VOCABULARY),
            "padded_feed_forward": evened(self.plan, "f"),
            "active_parameters": active(model),
            "left_out": {"further_tokens": further_elements(model)},
        }

    def own_shape(self) -> dict[str, Any]:
        """How many values each index has of a model of one's own."""
        return {"layers": self.plan.model.layers, "sizes": dict(self.plan.indices)}

    def data(self) -> dict[str, Any]:
        stages = {"pipeline": {"bubble_if": idle_if(self.plan.pipe)}}
        return {
            "parts": {name: self.of_part(costs) for name, costs in self.plan.costs.items()},
            "memory": self.of_memory(),
            **(stages if self.plan.step.pipe else {}),
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
            **self.of_waiting(costs),
            "computing": Quantity(costs.computing, BYTES),
            "kept": [str(replace(v, name=name)) for v, name in zip(program.kept, kept, strict=True)],
            "elements": {**sent, "forward_and_backward": Quantity(costs.sent(FORWARD, BACKWARD))},
            "moves": [
                {
                    "operation": t.collective,
                    "axis": " x ".join(t.axes),
                    "value": t.move.value.plain_name,
                    "phase": t.phase,
                    "messages": t.messages,
                    "elements": Quantity(t.elements, ELEMENTS),
                    "bytes": Quantity(t.bytes, BYTES),
                }
                for t in costs.traffic
            ],
        }

    def of_waiting(self, costs: PartCosts) -> dict[str, Any]:
        """What a part keeps between two parts of backward."""
        if not self.plan.pipe.in_two_parts:
            return {}
        held = [str(value) for value in costs.program.held_between]
        return {"waiting": Quantity(costs.waiting(self.plan.profile, {}), BYTES), "held": held}

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
        if not self.transformer:
            return legend(found, tuple(plan.mesh), own=plan.indices)
        words = (VOCABULARY,) if evened(plan, VOCABULARY) != self.transformer.vocabulary else ()
        return legend(found, tuple(plan.mesh), (*words, *uneven(plan)))

    def checkpoints(self) -> dict[str, Any] | None:
        """How many layers best keep their input, the others made again; None if that keeps no less."""
        layers = self.fullest.layers
        found = checkpoints(self.plan, layers)
        if found is None:
            return None
        count, segment, size = found
        kept = Quantity(size, BYTES)
        return {"layers": layers, "best": count, "segment": segment, "activations": kept}

    def notes_of_memory(self) -> Iterator[str]:
        """What the best number of checkpoints would keep."""
        found = checkpoints(self.plan, self.fullest.layers)
        if found is not None:
            count, segment, size = found
            kept = unit_of([self.fullest.peak]).texts(size)[0]
            which = "by --recompute all" if segment == 1 else "no --recompute does this"
            yield (
                f"{which}: with {counted(count, 'checkpoint')}, of segments of "
                f"{counted(segment, 'layer')}, made again for backward: layers keep, with the "
                f"segment at work, {kept} for a micro-batch"
            )


def checkpoints(plan: Plan, layers: int) -> tuple[int, int, Number] | None:
    """As of one layer; None if there is none, they differ, are made again anyway, or are on the host.

    Or if backward is in two parts: what the second reads is made again before it, and waits.
    """
    alike = len(plan.layers) == 1 and plan.again == NOTHING and not plan.offload
    alike = alike and layers > 0 and not plan.pipe.in_two_parts
    return plan.layer.checkpoints(layers) if alike else None


def _passed(model: Transformer) -> Iterator[str]:
    """Parameters that a token does not pass, and those that are not counted."""
    if model.experts:
        experts = f"{model.chosen:,} of {model.experts:,} experts"
        yield f"a token passes {active(model):,} of them: all words, and {experts} of a layer"
    if model.further:
        modules = counted(model.further, "module")
        more = further_elements(model)
        yield f"not in it: {modules} to predict further tokens, {more:,} more parameters"


def _idle(words: str, share: Number, form: Formula, key: str) -> Row:
    exact = Fraction(share)
    told = {ITSELF: Quantity(share, "", form)}
    said = str(exact) if exact.denominator == 1 else f"{exact} = {digits(exact, 4)}"
    return Row((words, said, form), key, told=told)


def idle_if(pipe: Pipeline) -> str:
    """What idle time is said for."""
    if not pipe.in_two_parts:
        return "all stages take equally long"
    takes = "all stages take equally long, and forward and both parts of backward too"
    return f"{takes}; what runs together, as long as both" if pipe.is_folded else takes


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
        is_cut = bool(plan.step.pipe) or Layout.SHARDED in layouts
        kept = {Mode.SHARDED: is_cut, Mode.REPLICATED: Layout.REPLICATED in layouts or not is_cut}
        found = [mode.value for mode in Mode if kept.get(mode)]
    made_again = [] if plan.again == NOTHING else [Mode.MATERIALIZED.value]
    if plan.offload:
        found = [f"{mode}+{Mode.OFFLOADED.value}" for mode in found or made_again]
        made_again = made_again if plan.again == PAIRS else []
    return ", ".join(found + made_again)


def _stages(plan: Plan) -> Section:
    in_flight = "in flight" if plan.pipe.chunks == 1 else "in flight, chunks"
    waits = ("waiting",) if plan.pipe.in_two_parts else ()
    keys = (
        *("stage", "alike", "layers", "parameters", "in_flight", *waits),
        *("resting", "activations", "total", "peak", "bytes"),
    )
    titles = {"in_flight": in_flight, "bytes": "sent"}
    columns = tuple(Column(titles.get(key, key), key=key, right=True) for key in keys)
    rows = tuple(
        Row(
            (
                *(stage.number, stage.alike, stage.layers, stage.parameters, stage.held.in_flight),
                *(stage.held.waiting for _ in waits),
                Quantity(sum(stage.resting.values()), BYTES),
                Quantity(stage.activations, BYTES),
                Quantity(stage.total, BYTES),
                Quantity(stage.peak, BYTES),
                Quantity(stage.bytes, BYTES),
            ),
            told={"elements": Quantity(stage.elements, ELEMENTS)},
        )
        for stage in plan.stages
    )
    alike = any(stage.alike > 1 for stage in plan.stages)
    most = "none keeps more" if waits else "none has more in flight"
    shown = "that of them is shown of which" if waits else "the first of them is shown, and"
    notes = [f"alike: stages of the same parts; {shown} {most}"] if alike else []
    notes += ["waiting: beside these, for backward's second part: gradients of matrices"] * len(waits)
    return Section("stages", columns, rows, tuple(notes), "stages", titled=True)
