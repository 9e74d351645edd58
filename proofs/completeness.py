"""T3: different normal forms do different things, and every kind of rejection has a diverging run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import z3

from proofs.claim import claim
from proofs.kernel import Kernel, KernelError, Theorem
from proofs.sums import closed_form
from proofs.type_system import AXIS, OPERATORS, kinds, name, one_axis
from spec.derive import derive
from spec.match import first_difference
from spec.operators import OTHER, SUM, Operator, Source, Value, reads
from spec.placement import BATCH, on_batch
from spec.reference import primes, run
from spec.schedule import Kind, Op, Schedule
from spec.strategies import STRATEGIES
from spec.training import Loss, Statistics, Training
from spec.verdict import check


@claim("T3")
def what_is_rejected_diverges(k: Kernel) -> tuple[Theorem, ...]:
    """Normal forms that differ on a device differ there for some contributions; rejections diverge.

    The coefficient of a form on a device is what it gives when only that device contributes, and only
    one: so forms with a different coefficient differ (n >= 3; for smaller n on the devices that
    exist). For each rule of the verdict, schedules that break it are shown to diverge. (Claim T3)
    """
    return (
        *(_probed(k.part(f"probe_{name(op)}"), op) for op in OPERATORS),
        _axes_factor(k.part("axes")),
        *(_diverges(k.part(f"broken{i}"), w) for i, w in enumerate(broken_schedules())),
    )


def _probed(k: Kernel, operator: Operator) -> Theorem:
    """On each kind of device an operator gives 1 for a single contribution it reads, 0 for others."""
    axis = one_axis(k)
    d = k.integers("d")
    p = k.fixed("p", z3.IntSort())  # the device that contributes 1
    only: Value = lambda v: z3.If(v[AXIS] == p, z3.RealVal(1), z3.RealVal(0))  # noqa: E731
    meaning = axis.meaning(operator, only)({AXIS: d})
    uses = []
    if axis.sums:
        i = axis.sums[-1].index
        one = closed_form(
            k,
            "a_single_contribution_sums_to_one",
            axis.sums[-1],
            z3.If(p < i, z3.RealVal(1), z3.RealVal(0)),
            given=[p >= 0],
        )
        uses = [one.at(**{str(i): axis.n})]
    named = (0, 1)
    sources: dict[Any, Any] = {who: p == axis.place(who) for who in named}
    elsewhere = z3.And(*(p != axis.place(who) for who in named))
    sources |= {Source.SELF: z3.And(elsewhere, p == d), Source.REST: z3.And(elsewhere, p != d)}
    claims = [
        z3.Implies(
            z3.And(at, there),
            meaning == z3.RealVal(1 if source in reads(operator, place, named) else 0),
        )
        for place, at in kinds(axis, d, named).items()
        for source, there in sources.items()
        if not (source is Source.SELF and place is not OTHER)
    ]
    apart = [axis.owner != axis.other] if operator != SUM else []
    inside = [p >= 0, p < axis.n] if uses else []
    words = f"{name(operator)}_shows_its_coefficients"
    return k.prove(words, z3.And(*claims), [*inside, *apart], uses)


def _axes_factor(k: Kernel) -> Theorem:
    """What is constant along an axis passes through its operators: axes can be probed one by one."""
    axis = one_axis(k)
    d = k.integers("d")
    factor = k.fixed("factor", z3.RealSort())
    x = k.function("x", z3.IntSort(), z3.RealSort())
    value: Value = lambda v: x(v[AXIS])  # noqa: E731
    scaled: Value = lambda v: factor * x(v[AXIS])  # noqa: E731
    uses, claims = [], []
    for operator in OPERATORS:
        one = axis.meaning(operator, value)({AXIS: d})
        before = len(axis.sums)
        two = axis.meaning(operator, scaled)({AXIS: d})
        if len(axis.sums) > before:
            first, second = axis.sums[before - 1], axis.sums[-1]
            i = second.index
            uses.append(
                closed_form(
                    k,
                    f"{name(operator)}_factors",
                    second,
                    factor * first(i),
                    base=[first.start],
                    uses=[first.next.at(**{str(first.index): i})],
                ).at(**{str(i): axis.n})
            )
        claims.append(two == factor * one)
    return k.prove("factors_pass_through", z3.And(*claims), [axis.n >= 1], uses)


# ------------------------------------------------------------------------ witnesses
@dataclass(frozen=True)
class Broken:
    """A schedule that breaks a rule of the verdict."""

    name: str
    rule: str
    schedule: Schedule
    micro_steps: int = 1
    steps: int = 1  # after which it has diverged


def without(schedule: Schedule, *kinds: Kind) -> Schedule:
    """The schedule, with the operations of some kinds forgotten."""

    def kept(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        return tuple(op for op in ops if op.kind not in kinds)

    return replace(schedule, micro_step=kept(schedule.micro_step), finish=kept(schedule.finish))


def twice(schedule: Schedule, kind: Kind) -> Schedule:
    """The schedule, with an operation of its finish repeated."""
    finish = [op for op in schedule.finish for _ in range(2 if op.kind is kind else 1)]
    return replace(schedule, finish=tuple(finish))


def meant(schedule: Schedule, **training: Any) -> Schedule:
    """The schedule, where a single device trains in another way."""
    return replace(schedule, training=Training(**training))


def broken_schedules() -> tuple[Broken, ...]:
    """For each rule, schedules that break it: real bugs, and modes that leave a need unmet."""
    dp, zero1, zero2, zero3 = (derive(STRATEGIES[s]) for s in ("dp", "zero1", "zero2", "zero3"))
    return (
        Broken("parameters_are_used_as_slices", "fresh", derive(on_batch("S", "S", "S", "S"))),
        Broken("parameters_are_not_gathered", "fresh", without(zero3, Kind.ALL_GATHER)),
        Broken(
            "nothing_is_recomputed",
            "fresh",
            without(derive(on_batch("R", "R", "R", "M")), Kind.RECOMPUTE),
        ),
        Broken("gradients_are_not_reduced", "whole", without(dp, Kind.ALL_REDUCE)),
        Broken("gradients_are_reduced_twice", "whole", twice(dp, Kind.ALL_REDUCE)),
        Broken("slices_are_not_summed", "whole", without(zero2, Kind.REDUCE_SCATTER)),
        Broken("gradients_are_not_reset", "whole", without(dp, Kind.RESET), steps=2),
        Broken("every_device_does_all_samples", "whole", derive(on_batch("R", "R", "R", "R"))),
        Broken("a_slice_updates_everything", "whole", derive(on_batch("R", "R", "S", "S"))),
        Broken("each_micro_step_updates", "whole", derive(STRATEGIES["fused-update"]), 2),
        Broken("optimizer_state_is_not_kept", "current", derive(on_batch("R", "M", "R", "S")), steps=2),
        Broken("parameters_are_not_published", "agreed", without(zero1, Kind.ALL_GATHER)),
        Broken("nothing_is_updated", "agreed", without(dp, Kind.UPDATE)),
        Broken("a_sum_is_not_a_mean", "whole", meant(dp, loss=Loss.MEAN)),
        Broken("tokens_are_not_counted", "whole", meant(dp, loss=Loss.TOKEN_MEAN)),
        Broken("nothing_is_clipped", "whole", meant(dp, clip=True)),
        Broken("tied_gradients_are_not_added", "whole", meant(dp, tied=True)),
        Broken("statistics_are_each_devices_own", "agreed", meant(dp, statistics=Statistics.ALL)),
    )


def _diverges(k: Kernel, broken: Broken) -> Theorem:
    """The claim that the schedule matches on two devices, refuted."""
    sizes = {BATCH: 2}
    verdict = check(broken.schedule, sizes, broken.micro_steps)
    if verdict.accepted or verdict.rule != broken.rule:
        raise KernelError(f"{broken.name}: expected to break {broken.rule}, got {verdict}")
    unknowns: dict[str, Any] = {}

    def tokens(*index: Any) -> int:
        return primes("tokens", *index)

    def symbol(what: str, *index: Any) -> str:
        flat = [n for part in index for n in (part if isinstance(part, tuple) else (part,))]
        return "_".join([what, *map(str, flat)])

    def unknown(what: str, *index: Any) -> Any:
        if what == "tokens":  # a count is a whole number
            return z3.RealVal(tokens(*index))
        key = symbol(what, *index)
        if key not in unknowns:
            unknowns[key] = k.reals(key)
        return unknowns[key]

    options: dict[str, Any] = {"steps": broken.steps, "micro_steps": broken.micro_steps, "elements": 2}
    kept = list(run(broken.schedule, sizes, data=unknown, **options))
    claim = z3.And(*(has == single for copies in kept for has, single in copies.pairs()))

    def replay(**values: Fraction) -> bool:
        def known(what: str, *index: Any) -> int | Fraction:
            return tokens(*index) if what == "tokens" else values[symbol(what, *index)]

        return first_difference(run(broken.schedule, sizes, data=known, **options)) is None

    return k.refute(broken.name, claim, list(unknowns.values()), replay)
