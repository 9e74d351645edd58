"""What a plan holds and sends, as a report: what is alike for every kind of model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from psem_model.predict import hosts
from psem_model.predict.fits import OVER, WITHOUT, Room
from psem_model.predict.moved import Moved
from psem_model.predict.parts import AGAIN, BACKWARD, FORWARD
from psem_model.predict.plan import Plan, StageCosts
from psem_model.reading.products import meant_by
from psem_model.text.figures import in_bytes, times
from psem_model.text.report import (
    BYTES,
    ELEMENTS,
    ITSELF,
    Axes,
    Column,
    Formula,
    Quantity,
    Report,
    Row,
    Section,
    meant,
)
from spec.costs.memory import MODEL_STATES
from spec.models.opaque import MODEL
from spec.models.profiles import TEXTBOOK, Difference, Units
from spec.models.states import POLICIES, BytePolicy, State
from spec.models.transformer import EMBEDDING, HEAD, LAYER
from spec.numbers.arithmetic import Number

SAYS = {FORWARD: "sent forward", BACKWARD: "sent backward", AGAIN: "sent forward again"}
PASSING = {  # by what it is
    "states": "gathered or fresh",
    "computing": "computing",
    "offloaded": "offloaded",
    "placeholders": "more placeholders",
}
PEAK = "an upper bound: each value freed after its last use; without what kernels need for themselves"
# fields of a profile
OF_HOST = frozenset({"pinned", "starts_whole"})
OF_STATES = frozenset({"policy", "gathered", "reduced", "quantised", "each", "copies"}) | OF_HOST
PEAK_OF_STATES = "resting + gathered or fresh"
ONE = {
    EMBEDDING: "the embedding",
    LAYER: "a layer",
    HEAD: "the head",
    MODEL: "all at once; --unit says how many",
}


def one(part: str) -> str:
    """One part, in words: that of a layer that differs from most has its kind in its name."""
    return ONE.get(part) or f"a {part.replace('_', ' ')}"


IN_ALL = (Column("what"), Column("size", key=ITSELF))


class Reported(ABC):
    """A plan beside its closed forms."""

    def __init__(self, plan: Plan, room: Room | None = None) -> None:
        self.room = room
        self.plan, self.fullest, self.busiest = plan, plan.fullest, plan.busiest

    def report(self) -> Report:
        plan, sent = self.plan, self.sent()
        return Report(
            "predict",
            self.title,
            (*meant_by(plan.product), *self.facts()),
            (
                *self.first(),
                self.memory(),
                *self.differences(),
                self.operations(),
                totals(sent, bool(self.busiest.host_bytes)),
                meant("formulas: memory in bytes, what is sent in elements", self.legend()),
            ),
            {
                "strategy": plan.text,
                "inputs": {
                    "psi": plan.psi,
                    "devices": plan.devices,
                    "mesh": dict(plan.mesh),
                    "bytes": in_bytes(plan.policy),
                    "accumulate": plan.micro_steps,
                    **self.inputs(),
                },
                "profile": {
                    "name": plan.profile.name,
                    "title": plan.profile.title,
                    "rounded": [
                        {"what": what, "from": float(has), "to": float(to)}
                        for what, (has, to) in plan.policy.rounded.items()
                    ],
                },
                **self.data(),
                "communication": {"stage": self.busiest.number, **sent},
                "parameters": plan.parameters,
            },
        )

    # ------------------------------------------------------- what the two kinds of model add
    @abstractmethod
    def facts(self) -> Iterator[str]:
        """What the plan is of."""

    @abstractmethod
    def first(self) -> Iterator[Section]:
        """What comes before memory and communication."""

    @abstractmethod
    def inputs(self) -> dict[str, Any]:
        """What was asked, for a program."""

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """What else programs are told."""

    @abstractmethod
    def legend(self) -> dict[str, str]:
        """What the symbols of its formulas mean."""

    def form(self, name: str) -> Formula | None:
        """The closed form of a figure, if it is in Psi and the mesh alone."""
        return None

    def form_of(self, moved: Moved) -> Formula | None:
        """That of what is sent."""
        return None

    @abstractmethod
    def notes_of_memory(self) -> Iterator[Any]:
        """What else there is to say of it."""

    @abstractmethod
    def notes_of_moves(self) -> Iterator[str]:
        """What else there is to say of communication."""

    # --------------------------------------------------------------------------- what both have
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
        of = {d: counting(self.plan, d.changes) for d in profile.differs}
        used = [d for d, changes in of.items() if not d.changes or changes - _overridden(self.plan)]
        beyond = [d for d, changes in of.items() if d.changes and not changes]
        title = f"the profile {profile.name}, where it differs from the textbook"
        why = {d: f"{d.what}; why: {d.why} ({d.source})" for d in used}
        rounded = tuple(
            f"not exact: {what}, are rounded from {has} bytes to {to}"
            for what, (has, to) in self.plan.policy.rounded.items()
        )
        yield from _differing(title, why, "profile.differs", rounded)
        title = f"the profile {profile.name}, not applied without a model's shape and --sequence"
        yield from _differing(title, {d: d.what for d in beyond}, "profile.not_applied")
        policy = replace(self.plan.policy, gathered=None, reduced=None, quantised=None)
        other = replace(self.plan, profile=TEXTBOOK, policy=policy).fullest
        yield Section(
            "beside it, the textbook, with states of the same types at rest",
            IN_ALL,
            (
                self.row("the textbook's resting", sum(other.resting.values()), "resting"),
                self.row("the textbook's activations", other.activations, "activations"),
                self.row("the textbook's total", other.total, "total"),
                self.row("the textbook's peak", other.peak, "peak"),
            ),
            key="profile.textbook",
        )

    @staticmethod
    def row(words: str, size: Number, key: str) -> Row:
        return Row((words, Quantity(size, BYTES)), key)

    @property
    def mesh(self) -> str:
        return " x ".join(f"{axis} {size:,}" for axis, size in self.plan.mesh.items())

    def at(self, stage: StageCosts) -> str:
        return f", on stage {stage.number:,}" if self.plan.step.stages else ""

    def memory(self) -> Section:
        plan, stage, policy = self.plan, self.fullest, self.plan.policy
        computes = not plan.opaque  # so that activations have a size
        rows = [
            self.size(s.value, stage.resting[s], f"resting.{s.value}", _factor(policy, s))
            for s in MODEL_STATES
        ]
        rows.append(self.size("resting", sum(stage.resting.values()), "resting.total"))
        if computes:
            kept = "kept on the host" if plan.offload else "kept for backward"
            rows.append(self.size("activations", stage.activations, "activations", kept))
            why_not = "in place of gradients that are added up elsewhere"
            rows.append(
                self.size("placeholders", stage.placeholders.staying, "placeholders", why_not, False)
            )
        beside = {
            "buckets": (stage.buckets, "copies of gradients, in which they are reduced"),
            "step counts": (stage.step_counts, "of the optimizer, for each weight"),
        }
        for name, (size, why_there) in beside.items():
            rows.append(self.size(name, size, name.replace(" ", "_"), why_there, False))
        if computes:
            rows.append(self.size("total", stage.total, "total"))
        unit = one(stage.unit) if plan.opaque else f"of {one(stage.unit)}"
        at_once = unit if plan.unit is None else f"in units of {plan.unit:,}"
        fullest = f"values of {one(stage.computing)}, at its fullest moment, beside what it keeps"
        to_host = "activations to or from the host, a layer or the head at a time"
        why = {
            "states": f"parameters or gradients, {at_once}",
            "computing": fullest,
            "offloaded": to_host,
            "placeholders": "of the embedding or the head, as they pass",
        }
        for name, size in stage.transient.items():
            rows.append(self.size(PASSING[name], size, f"transient.{name}", why[name], False))
        rows.append(self.size("peak", stage.peak, "peak", PEAK if computes else PEAK_OF_STATES))
        if self.room is not None:
            key, left = self.room.beside(stage.peak)
            left = replace(left, provenance="" if computes else WITHOUT)
            rows.append(Row((self.room.said(key), left), key, marked=key == OVER))
        on_host = {
            "host": (stage.host, "in the host's memory"),
            "host pinned": (hosts.pinned(stage), "of these, page-locked"),
            "host at start": (hosts.at_start(stage), "the model in fp32, before anything is placed"),
        }
        for name, (size, why_there) in on_host.items():
            rows.append(self.size(name, size, name.replace(" ", "_"), why_there, False))
        title = f"memory per device, of {stage.parameters:,} parameters{self.at(stage)}"
        return Section(title, IN_ALL, tuple(rows), tuple(self.notes_of_memory()), "memory")

    def size(self, words: str, size: Number, key: str, why: str = "", always: bool = True) -> Row:
        """So many bytes; shown if there are any, or always."""
        quantity = Quantity(size, BYTES, self.form(key), why)
        return Row((words, quantity), key, shown=always or bool(size))

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
        notes = tuple(self.notes_of_moves())
        return Section(title, columns, rows, notes, "communication.operations")

    def operation(self, moved: Moved) -> Row:
        when = moved.when if moved.to_host else SAYS.get(moved.when, moved.when)
        return Row(
            (
                f"{moved.collective} {moved.what}",
                Axes(moved.axes),
                f"{moved.of}, {when}",
                times(moved.times),
                Quantity(moved.elements, ELEMENTS, self.form_of(moved)),
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
            "elements": Quantity(stage.elements, ELEMENTS, self.form("elements")),
            "bytes": Quantity(stage.bytes, BYTES, self.form("bytes")),
            "host_bytes": Quantity(stage.host_bytes, BYTES, self.form("host_bytes")),
        }


def _differing(
    title: str, said: Mapping[Difference, str], key: str, notes: tuple[str, ...] = ()
) -> Iterator[Section]:
    """What a profile does otherwise, a row each; no section of nothing."""
    rows = tuple(
        Row((words,), told={"what": d.what, "why": d.why, "source": d.source})
        for d, words in said.items()
    )
    if rows:
        yield Section(title, (Column("", 1),), rows, notes, key)


def counting(plan: Plan, changes: frozenset[str]) -> frozenset[str]:
    """Those fields of a profile that count: of Psi parameters, what is said of their states."""
    return changes & OF_STATES - ({"each"} if plan.written else set()) if plan.opaque else changes


def _overridden(plan: Plan) -> frozenset[str]:
    """The fields of the profile that --bytes and --unit say otherwise."""
    asked, own = plan.profile.types(plan.policy), POLICIES.get(plan.profile.policy)
    by_bytes = {"policy"} if own and plan.profile.types(own) != asked else set()
    of_units = {"units", "padding", "prefetch", "unpadded", "buckets"}
    has_own = plan.has_units or plan.profile.units is Units.LARGEST
    return frozenset(by_bytes | (set() if has_own else of_units))


def _factor(policy: BytePolicy, state: State) -> str:
    return f"{policy.of(state)} = {policy.provenance(state)}"


def totals(sent: Mapping[str, Quantity], host_link: bool) -> Section:
    """What is sent in all, to other devices and over the host link."""
    rows = [Row(("to other devices", sent["elements"], sent["bytes"]))]
    if host_link:
        rows.append(Row(("over the host link", "", sent["host_bytes"])))
    columns = (Column("sent"), Column("elements"), Column("bytes"))
    return Section("", columns, tuple(rows), caption="communication per device and step, in all")
