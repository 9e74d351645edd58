"""`psem predict`: the report on a plan, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from psem_model.predict.differences import NOT_APPLIED, beyond, differing, realised_by
from psem_model.predict.fits import OVER, WITHOUT, Room
from psem_model.predict.parts import Moved
from psem_model.predict.plan import Plan, StageCosts
from psem_model.predict.realised import without_effect
from psem_model.predict.refusals import refused_plan
from psem_model.predict.rounding import data as rounded
from psem_model.predict.rounding import in_words
from psem_model.predict.said import PASSING, PEAK, SAYS, Said, one
from psem_model.predict.unlike import unlike
from psem_model.reading.products import meant_by
from psem_model.reading.words import count
from psem_model.text.errors import BadInput
from psem_model.text.figures import in_bytes, times
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
from spec.costs.memory import MODEL_STATES
from spec.models.differences import Difference
from spec.models.profiles import TEXTBOOK, Units
from spec.models.states import BytePolicy, State
from spec.numbers.arithmetic import Number

OF_OWNERS = "owners send unlike amounts: each row is of the device that sends most in it"
OF_WHOLE = (
    "buckets are copies of whole gradients, though slices of them rest: the profile is of gradients "
    "that rest whole, as in dp and zero1"
)
OF_COPIES = "not counted: copies in {} bytes, to compute with, of parameters that rest whole"
PEAK_OF_STATES = "resting + gathered or fresh"
IN_ALL = (Column("what"), Column("size", key=ITSELF))


def predicted(plan: Plan, room: Room | None = None) -> Report:
    """The plan's prediction, and what it leaves of a device's memory. Raises NotRealisable.

    `memory` is that of the stage that needs most, `communication` that of the one that sends most.
    `stages`: the first of each kind, and how many are alike; idle time is as if all took equally long.
    """
    no = refused_plan(plan)
    if no:
        raise no
    from psem_model.predict import said_of_model, said_of_states  # and SymPy, for formulas

    said = (said_of_states if plan.opaque else said_of_model).said(plan)
    return Reported(plan, said, room).report()


def telling(plan: Plan, stage: str | None) -> Plan:
    """The plan, of which memory and traffic of one stage are told, as typed. Raises BadInput."""
    if stage is None:
        return plan
    if not plan.step.pipe:
        raise BadInput("--stage: given without pp; expected a pipeline, as in tp(8) * pp(4)")
    number = count("--stage", stage, "a stage", least=0)
    if number >= plan.pipe.stages:
        expected = f"one of the {plan.pipe.stages:,} stages, from 0 to {plan.pipe.stages - 1:,}"
        raise BadInput(f"--stage: given {number:,}; expected {expected}")
    return replace(plan, told=number)


class Reported:
    """A plan beside its closed forms."""

    def __init__(self, plan: Plan, said: Said, room: Room | None = None) -> None:
        self.said, self.room = said, room
        self.plan, self.fullest, self.busiest = plan, plan.fullest, plan.busiest
        self.unlike = tuple(unlike(plan))

    def report(self) -> Report:
        plan, sent = self.plan, self.sent()
        moot = without_effect(plan)
        return Report(
            "predict",
            self.title,
            (*meant_by(plan.product), *self.said.facts, *moot),
            (
                *self.said.first,
                self.memory(),
                *self.differences(),
                self.operations(),
                totals(sent, bool(self.busiest.host_bytes)),
                meant("formulas: memory in bytes, what is sent in elements", self.said.legend),
            ),
            {
                "strategy": plan.text,
                "inputs": {
                    "psi": plan.psi,
                    "devices": plan.devices,
                    "mesh": dict(plan.mesh),
                    "bytes": in_bytes(plan.policy),
                    "accumulate": plan.micro_steps,
                    **self.said.inputs,
                },
                "profile": {
                    "name": plan.profile.name,
                    "title": plan.profile.title,
                    "rounded": rounded(plan),
                    "without_effect": moot,
                    "unlike": [*self.unlike],
                },
                "facts": [*self.said.facts],
                **self.said.data,
                "communication": {"stage": self.busiest.number, **sent},
                "parameters": plan.parameters,
            },
        )

    @property
    def title(self) -> str:
        """What is asked for, and by which profile; bare numbers of parameters are the textbook's."""
        plan, profile = self.plan, self.plan.profile
        named = not plan.opaque or profile.differs
        return f"{plan.text}, by the profile {profile.name}" if named else plan.text

    def differences(self) -> Iterator[Section]:
        """What the profile does otherwise than the textbook, and why; the textbook's figures."""
        profile = self.plan.profile
        if not profile.differs:
            return
        title = f"the profile {profile.name}, where it differs from the textbook"
        applied = differing(self.plan)
        why = {d: f"{d.what}; why: {d.why} ({d.cited})" for d in applied}
        inexact = (f"not exact: rounded {words}" for words in in_words(self.plan))
        notes = (*inexact, *([OF_WHOLE] if _copied_beside_slices(self.plan) else []))
        notes += (OF_COPIES.format(self.plan.policy.computed),) * _computes_with_copies(self.plan)
        notes += tuple(f"not as the system: {words}" for words in self.unlike)
        yield from _differing(title, why, "profile.differs", notes)
        title = f"of the profile {profile.name}, {NOT_APPLIED}"
        left = {d: d.what for d in beyond(self.plan, applied)}
        yield from _differing(title, left, "profile.not_applied")
        textbook = realised_by(self.plan, TEXTBOOK, self.plan.policy)
        other, sent = textbook.fullest, textbook.busiest.bytes
        activations = self.row("the textbook's activations", other.activations, "activations")
        yield Section(
            "beside it, the textbook, with states of the same types at rest",
            IN_ALL,
            (
                self.row("the textbook's resting", sum(other.resting.values()), "resting"),
                *([] if self.plan.opaque else [activations]),
                self.row("the textbook's total", other.total, "total"),
                self.row("the textbook's peak", other.peak, "peak"),
                self.row("sent by the textbook", sent, "sent"),
            ),
            key="profile.textbook",
        )

    @staticmethod
    def row(words: str, size: Number, key: str) -> Row:
        return Row((words, Quantity(size, BYTES)), key)

    def at(self, stage: StageCosts) -> str:
        return f", on stage {stage.number:,}" if self.plan.step.pipe else ""

    def memory(self) -> Section:
        plan, stage, policy = self.plan, self.fullest, self.plan.policy
        computes = not plan.opaque  # so that activations have a size
        why_so = {s: _factor(policy, s) for s in MODEL_STATES}
        if any(group.brought for group in stage.groups):
            why_so[State.GRADIENTS] = BROUGHT
        rows = [
            self.size(s.value, stage.resting[s], f"resting.{s.value}", why_so[s]) for s in MODEL_STATES
        ]
        rows.append(self.size("resting", sum(stage.resting.values()), "resting.total"))
        if computes:
            kept = "kept on the host" if plan.offload else "kept for backward"
            why_not = "in place of gradients that are added up elsewhere"
            rows.append(self.size("activations", stage.activations, "activations", kept))
            rows.append(self.beside("placeholders", stage.placeholders.staying, why_not))
        copies = "copies of gradients, in which they are reduced"
        rows.append(self.beside("buckets", stage.buckets, copies))
        until = "whole until the last micro-step, beyond the slices that they leave"
        rows.append(self.beside("waiting gradients", stage.waiting, until))
        rows.append(self.beside("step counts", stage.step_counts, "of the optimizer, for each weight"))
        if computes:
            rows.append(self.size("total", stage.total, "total"))
        in_buckets = plan.profile.units is Units.BUCKET  # of weights of any parts
        largest = "a bucket" if in_buckets else one(stage.unit)
        unit = largest if plan.opaque else f"of {largest}"
        at_once = unit if plan.unit is None else f"in units of {plan.unit:,}"
        values = f"values of {one(stage.computing)}, at its fullest moment, beside what it keeps"
        sliced = any(group.schedule.sliced_by_update for group in plan.step.groups)
        waits = plan.in_plan.waits_whole and sliced and not stage.waiting
        waiting = "gradients, whole until they are summed; " * waits
        why = {
            "states": f"{waiting}parameters or gradients, {at_once}",
            "computing": values,
            "offloaded": "activations to or from the host, a layer or the head at a time",
            "placeholders": "of the embedding or the head, as they pass",
            "copied": "gradients that waited, to be summed; or views, from what they are gathered in",
        }
        for name, size in stage.transient.items():
            rows.append(self.beside(PASSING[name], size, why[name], f"transient.{name}"))
        rows.append(self.size("peak", stage.peak, "peak", self.sum_of_peak(stage)))
        if self.room is not None:
            key, left = self.room.beside(stage.peak)
            left = replace(left, provenance="" if computes else WITHOUT)
            rows.append(Row((self.room.said(key), left), key, marked=key == OVER))
        first = "the model in fp32, before anything is placed"
        rows.append(self.beside("host", stage.host, "in the host's memory"))
        rows.append(self.beside("host pinned", stage.host_pinned, "of these, page-locked"))
        rows.append(self.beside("host at start", stage.host_at_start, first))
        title = f"memory per device, of {stage.parameters:,} parameters{self.at(stage)}"
        return Section(title, IN_ALL, tuple(rows), self.said.notes_of_memory, "memory")

    def sum_of_peak(self, stage: StageCosts) -> str:
        """What the peak is the sum of."""
        if not self.plan.opaque:
            return PEAK
        return (
            PEAK_OF_STATES.replace(" + ", " + waiting gradients + ")
            if stage.waiting
            else PEAK_OF_STATES
        )

    def size(self, words: str, size: Number, key: str, why: str = "") -> Row:
        """So many bytes."""
        return Row((words, Quantity(size, BYTES, self.said.forms.get(key), why)), key)

    def beside(self, words: str, size: Number, why: str, key: str = "") -> Row:
        """The same, shown if there are any."""
        row = self.size(words, size, key or words.replace(" ", "_"), why)
        return replace(row, shown=bool(size))

    def operations(self) -> Section:
        columns = (
            Column("operation"),
            Column("along", key="axes"),
            Column("of, when"),
            Column("times"),
            Column("elements", key="elements"),
            Column("bytes", key="bytes"),
        )
        rows = tuple(map(self.operation, self.busiest.moved))
        title = f"communication per device and step{self.at(self.busiest)}"
        owners = [group.costs.sizes.owners for group in self.busiest.groups]
        is_unlike = any(of is not None and of.slice is None for of in owners)
        notes = (*self.said.notes_of_moves, *([OF_OWNERS] if is_unlike else []))
        return Section(title, columns, rows, notes, "communication.operations")

    def operation(self, moved: Moved) -> Row:
        when = moved.when if moved.to_host else SAYS.get(moved.when, moved.when)
        return Row(
            (
                f"{moved.collective} {moved.what}",
                Axes(moved.axes),
                f"{moved.of}, {when}",
                times(moved.times),
                Quantity(moved.elements, ELEMENTS, self.said.of_moves.get(moved.op)),
                Quantity(moved.bytes, BYTES),
            ),
            told={
                "operation": moved.collective,
                "value": moved.what,
                "of": moved.of,
                "phase": moved.when,
                "times": moved.times,
            },
        )

    def sent(self) -> dict[str, Quantity]:
        """In all, to other devices and over the host link."""
        stage = self.busiest
        return {
            "elements": Quantity(stage.elements, ELEMENTS, self.said.forms.get("elements")),
            "bytes": Quantity(stage.bytes, BYTES, self.said.forms.get("bytes")),
            "host_bytes": Quantity(stage.host_bytes, BYTES, self.said.forms.get("host_bytes")),
        }


def _differing(
    title: str, said: Mapping[Difference, str], key: str, notes: tuple[str, ...] = ()
) -> Iterator[Section]:
    """What a profile does otherwise, a row each; no section of nothing."""
    rows = tuple(
        Row((words,), told={"what": d.what, "why": d.why, "source": d.cited})
        for d, words in said.items()
    )
    if rows:
        yield Section(title, (Column("", 1),), rows, notes, key)


def _copied_beside_slices(plan: Plan) -> bool:
    """Whether whole gradients are copied to be reduced, of which only slices rest."""
    rests = (group.schedule.rest(State.GRADIENTS) for group in plan.step.groups)
    return bool(plan.fullest.buckets) and any(rest.sharded for rest in rests)


def _computes_with_copies(plan: Plan) -> bool:
    """Whether some parameters rest whole in another type than the model computes with."""
    whole = (not group.schedule.rest(State.PARAMETERS).sharded for group in plan.step.groups)
    return plan.policy.computed != plan.policy.w and any(whole)


BROUGHT = "a buffer, in which gradients come back from the host: of the largest weight"


def _factor(policy: BytePolicy, state: State) -> str:
    return f"{policy.of(state)} = {policy.provenance(state)}"


def totals(sent: Mapping[str, Quantity], host_link: bool) -> Section:
    """What is sent in all, to other devices and over the host link."""
    rows = [Row(("to other devices", sent["elements"], sent["bytes"]))]
    if host_link:
        rows.append(Row(("over the host link", "", sent["host_bytes"])))
    columns = (Column("sent"), Column("elements"), Column("bytes"))
    return Section("", columns, tuple(rows), caption="communication per device and step, in all")
