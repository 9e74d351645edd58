"""Plans side by side: what each needs, what it moves along each axis, and whether it is right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psem_model.check.placements import BY_HAND, NO_COPY
from psem_model.predict import rounding
from psem_model.predict.differences import NOT_APPLIED, beyond, differing
from psem_model.predict.fits import Room
from psem_model.predict.fits import rows as fitting
from psem_model.predict.plan import Plan
from psem_model.predict.realised import otherwise, realises, without_effect
from psem_model.predict.refusals import refused_plan
from psem_model.predict.said import PASSING, PEAK, cautions, made_again, shape_said
from psem_model.predict.unlike import unlike
from psem_model.text.figures import counted
from psem_model.text.report import BYTES, Cell, Column, Quantity, Report, Row, Section
from spec.costs.memory import MODEL_STATES
from spec.models.states import State
from spec.numbers.arithmetic import Number
from spec.pipelines.idle_and_held import bubble_of_makespan

JOINT = " x "


@dataclass(frozen=True)
class Compared:
    """One plan's figures, in bytes per device, of its fullest and of its busiest stage."""

    plan: Plan
    rejected: str  # the reason; empty if it is accepted
    bytes: Mapping[str, Number]
    sent: Mapping[str, Number]  # to other devices, by axes
    host_bytes: Number = 0  # over the host link, both ways
    for_want_of_a_copy: bool = False  # it would be accepted if the optimizer state had the weights
    idle: Number = 0  # of the whole step
    without_effect: tuple[str, ...] = ()  # of its profile
    notes: tuple[str, ...] = ()  # on its figures

    @property
    def verdict(self) -> str:
        """Rejected, or, where a step written by hand may be right, not derived."""
        if not self.rejected:
            return "accepted"
        return "not derived" if self.for_want_of_a_copy else "rejected"

    @property
    def sent_all(self) -> Number:
        """To other devices, along all axes."""
        return sum(self.sent.values())

    def data(self) -> dict[str, Any]:
        """For a program."""
        return {
            "strategy": self.plan.text,
            "profile": self.plan.profile.name,
            "devices": self.plan.devices,
            "psi": self.plan.psi,
            "accumulate": self.plan.micro_steps,
            "samples": self.plan.samples_of_step,
            "accepted": not self.rejected,
            "reason": self.rejected or None,
            "for_want_of_a_copy": self.for_want_of_a_copy,
            "memory": {key_of(name): Quantity(size, BYTES) for name, size in self.bytes.items()},
            "sent": {axes: Quantity(size, BYTES) for axes, size in self.sent.items()},
            "sent_all": Quantity(self.sent_all, BYTES),
            "host_bytes": Quantity(self.host_bytes, BYTES),
            "idle": Quantity(self.idle),
            "rounded": rounding.data(self.plan),
            "realised": realises(self.plan.profile, self.plan.product, self.plan.mesh),
            "without_effect": [*self.without_effect],
            "notes": [*self.notes],
        }


def compared(plan: Plan) -> Compared:
    """The figures of a plan."""
    fullest, busiest, no = plan.fullest, plan.busiest, refused_plan(plan)
    sizes = _at_rest(fullest.resting)
    sizes |= {} if plan.opaque else {"activations": fullest.activations}
    sizes |= {"placeholders": fullest.placeholders.staying} if not plan.opaque else {}
    sizes |= {"buckets": fullest.buckets, "waiting gradients": fullest.waiting}
    sizes |= {"step counts": fullest.step_counts}
    sizes |= {PASSING[name]: size for name, size in fullest.transient.items()}
    return Compared(
        plan,
        no.reason if no else "",
        sizes | {"peak": fullest.peak, "host": fullest.host},
        _by_axes((moved.axes, moved.bytes) for moved in busiest.moved if not moved.to_host),
        busiest.host_bytes,
        bool(no and no.for_want_of_a_copy),
        bubble_of_makespan(plan.pipe),
        tuple(without_effect(plan)),
        (
            *cautions(plan),
            *(f"not as the system: {words}" for words in unlike(plan)),
            *(f"{NOT_APPLIED}: {each.what}" for each in beyond(plan, differing(plan))),
        ),
    )


def _at_rest(resting: Mapping[State, Number]) -> dict[str, Number]:
    """Bytes of each model state between steps, and of all of them."""
    sizes = {state.value: resting[state] for state in MODEL_STATES}
    return {**sizes, "resting": sum(sizes.values())}


def _by_axes(moved: Iterable[tuple[tuple[str, ...], Number]]) -> dict[str, Number]:
    """Bytes by the axes whose group they are sent in: the same group, however it is written."""
    sent: dict[str, Number] = {}
    for axes, size in moved:
        if size:
            name = JOINT.join(sorted(axes))
            sent[name] = sent.get(name, 0) + size
    return sent


def key_of(name: str) -> str:
    """A name as a key for programs."""
    return name.replace(" ", "_")


def report(plans: Sequence[Plan], room: Room | None = None) -> Report:
    """Plans as columns of one table. Wrong if one of them is rejected.

    `room`: of a device's memory, what each plan leaves.
    """
    found = [compared(plan) for plan in plans]
    columns = (Column(""), *(Column(plan.text, right=True) for plan in plans))
    rows, notes = tuple(_rows(found, room)), tuple(_notes(found))
    table = Section("", columns, rows, notes, titled=True, caption="memory and communication")
    right = not any(plan.rejected for plan in found)
    names = dict.fromkeys(p.profile.name for p in plans if not p.opaque or p.profile.differs)
    several = "s" * (len(names) > 1)
    profiles = f", by the profile{several} {' and '.join(names)}" if names else ""
    data = {"plans": [_told(plan, room) for plan in found]}
    title = f"plans side by side{profiles}"
    return Report("compare", title, tuple(_facts(plans)), (table,), data, right)


def _told(plan: Compared, room: Room | None) -> dict[str, Any]:
    """For a program, with what is left of a device's memory."""
    found = plan.data()
    if room is not None:
        key, left = room.beside(plan.bytes["peak"])
        found["memory"][key] = left
    return found


def _facts(plans: Sequence[Plan]) -> Iterator[str]:
    """What is compared: what all plans have in common, then what some have otherwise."""
    yield from _alike_first({plan.text: [*_said(plan)] for plan in plans})


def _alike_first(said: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What is said of all plans, then what is said of some."""
    first, *_ = said.values()
    alike = [line for line in first if all(line in lines for lines in said.values())]
    yield from alike
    for name, lines in said.items():
        yield from (f"{name}: {line}" for line in lines if line not in alike)


def _said(plan: Plan) -> Iterator[str]:
    """The model, its samples, what is made again, and the bytes of an element."""
    if plan.opaque:
        yield f"Psi = {plan.psi:,} parameters"
    else:
        yield shape_said(plan)
        samples = counted(plan.micro_batch, "sample")
        yield f"micro-batches of {samples} of {counted(plan.sequence, 'token')}"
        yield made_again(plan)
    policy = plan.policy
    of = {"weight": State.PARAMETERS, "gradient": State.GRADIENTS, "optimizer state": State.OPTIMIZER}
    sizes = (f"{name} {policy.of(state)} ({policy.provenance(state)})" for name, state in of.items())
    yield f"bytes: {', '.join(sizes)}"


def _rows(plans: Sequence[Compared], room: Room | None) -> Iterator[Row]:
    axes = dict.fromkeys(name for plan in plans for name in plan.sent)
    names = dict.fromkeys(name for plan in plans for name in plan.bytes)
    differ = len({p.plan.samples_of_step for p in plans}) > 1

    def row(name: str, cells: Iterable[Cell], marked: bool = False) -> Row:
        return Row((name, *cells), marked=marked)

    def size(value: Number | None) -> Cell:
        return Quantity(value, BYTES) if value else ""

    yield row("devices", (p.plan.devices for p in plans))
    if len({p.plan.profile.name for p in plans if not p.plan.opaque}) > 1:
        yield row("profile", (p.plan.profile.name for p in plans))
    if any(p.plan.micro_steps != 1 for p in plans):
        yield row("micro-steps of a step", (p.plan.micro_steps for p in plans))
    yield row("samples of a step" + " (!)" * differ, (p.plan.samples_of_step for p in plans), differ)
    wrong = any(plan.rejected for plan in plans)
    yield row("verdict", (plan.verdict for plan in plans), wrong)
    for name in names:
        if any(plan.bytes.get(name) for plan in plans):
            yield row(name, (size(plan.bytes.get(name)) for plan in plans))
        if name == "peak" and room is not None:
            computes = not any(plan.plan.opaque for plan in plans)
            yield from fitting(room, [plan.bytes["peak"] for plan in plans], computes)
    for name in axes:
        yield row(f"sent over {name}", (size(plan.sent.get(name)) for plan in plans))
    yield row("sent, all", (Quantity(plan.sent_all, BYTES) for plan in plans))
    if any(plan.host_bytes for plan in plans):
        yield row("over the host link", (size(plan.host_bytes) for plan in plans))
    if any(plan.idle for plan in plans):
        yield row("idle, of the step", (f"{float(plan.idle):.3g}" for plan in plans))


def _notes(plans: Sequence[Compared]) -> Iterator[str]:
    """What the rows are of, and why plans are rejected."""
    of_stages = any(p.plan.step.pipe for p in plans)
    fullest, busiest = (", of the fullest stage", ", of the busiest") if of_stages else ("", "")
    if len({p.plan.samples_of_step for p in plans}) > 1:
        yield "(!) the plans train on unequal samples in a step: --global-batch makes them equal"
    if len({p.plan.profile.name for p in plans if not p.plan.opaque}) > 1:
        yield "(!) activations are of unequal profiles: --profile textbook is for files of steps, too"
    yield f"memory per device{fullest}; sent per device and step{busiest}"
    if any("activations" in plan.bytes for plan in plans):
        yield f"peak is {PEAK}"
    if any(plan.idle for plan in plans):
        yield "idle time is as if all stages of a pipeline took equally long"
    joint = next((axes for plan in plans for axes in plan.sent if JOINT in axes), None)
    if joint:
        yield f"{joint}: one group; axis by axis as much in all, and along each by their order (C6, C7)"
    yield from _alike_first({plan.plan.text: plan.notes for plan in plans})
    for plan in plans:
        text, of = plan.plan.text, (plan.plan.profile, plan.plan.product, plan.plan.mesh)
        if not realises(*of):
            yield f"(!) not as {plan.plan.profile.name} has states, {text}: {otherwise(*of)}"
        yield from (f"{text}: {words}" for words in plan.without_effect)
        for words in () if plan.rejected else rounding.in_words(plan.plan):
            yield f"not exact, {plan.plan.text}: rounded {words}"
        if plan.rejected:
            why = f"; {NO_COPY}; {BY_HAND}" if plan.for_want_of_a_copy else ""
            yield f"{plan.verdict}, {plan.plan.text}: {plan.rejected}{why}"
