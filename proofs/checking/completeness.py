"""T3: different normal forms do different things, and every kind of rejection has a diverging run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from proofs.checking.beside import checked
from proofs.checking.clipped_by_parts import clipped_by_parts
from proofs.checking.corners import corners
from proofs.checking.further_schedules import (
    Further,
    further_schedules,
    of_a_count_that_grows,
    of_activations_not_kept,
    of_nothing_times_zero,
    of_samples_made_again,
    of_weights_in_no_state,
    of_working_copies,
    placements_by_order,
)
from proofs.checking.matching_schedules import Accepted, accepted_schedules
from proofs.checking.misfits import misfits_are_refused
from proofs.checking.numbers_of_runs import (
    all_that_is_kept_is_compared,
    groups_share_samples,
    moments_made_again_are_unknown,
    unknowns_differ,
    updates_differ,
)
from proofs.checking.rare_schedules import (
    IN_EACH,
    rare_schedules,
    require_updates_in_each,
    require_used_once,
)
from proofs.checking.right_sizes import sizes_are_found
from proofs.checking.room_for_slices import values_for_slices
from proofs.checking.three_axes import require_three_axes
from proofs.checking.witnesses import (
    Broken,
    around,
    broken_schedules,
    meant,
    of_zeros,
    operation,
    with_a_dropped_gradient,
)
from proofs.claim import claim
from proofs.language.type_system import AXIS, OPERATORS, kinds, name, one_axis
from proofs.numbers.polynomials import numbers_are_their_values
from proofs.tools.sums import closed_form
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And, If, Implies, IntSort, RealSort, RealVal, ToReal
from spec.checking.everywhere import Found, everywhere
from spec.checking.forms import Forms
from spec.checking.micro_steps import after_micro_steps
from spec.checking.symbols import EACH, EVERY, LAST, Frozen, MicroStep, Symbol, frozen
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.devices.mesh import ALL_WEIGHTS, Axes, group_size, shard_contains
from spec.devices.operators import OTHER, SUM_ALL, NormalForm, Operator, PerDevice, Source, sources_of
from spec.language.schedule import MICRO_STEPS, REDUCTIONS, Buffer, Kind, Schedule
from spec.meaning.match import Copies, Place, divergences, first_difference
from spec.meaning.reference import Reference, first_divergence, primes, run
from spec.meaning.semantics import Store
from spec.models.states import MIXED_ADAM, POLICIES, BytePolicy, State
from spec.numbers.arithmetic import ceil_div
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES

UNLIKE = 1000  # a number of memory that is not held, beside others
DATA = cache(primes)  # of every run
SIZES = ((1, 1), (2, 1), (3, 2), (2, 3))  # devices along each axis, and micro-steps
UNEQUAL = ((1, 2), (2, 1), (1, 4), (4, 1), (3, 4), (2, 4))  # devices along two axes
MOST = 4  # devices of a run in numbers
# an update in each micro-step changes what the next one reads
UNDECIDED = "each_micro_step_updates", "fused_update", IN_EACH


@claim("T3")
def what_is_rejected_diverges(k: Kernel) -> tuple[Theorem, ...]:
    """Normal forms that differ on a device differ there for some contributions; of each need a rejected
    schedule diverges.

    The coefficient of a form on a device is what it gives when only that device contributes, and only
    one: so forms with a different coefficient differ (n >= 3; for smaller n on the devices that
    exist); of what all devices have alike it is how often it is counted. For each need of the verdict a
    schedule that breaks it alone is shown to diverge; in the same runs, strategies and the pieces of a
    step that are accepted match. Whole values are refused where there is room for slices, unless an
    operation says which slice. (Claim T3)
    """
    for tied in (False, True):  # of one use of weights, and of two
        dropped = meant(with_a_dropped_gradient(), tied=tied)
        checked(dropped, {BATCH: 3}, 1, MIXED_ADAM, [(0,), (1,)], steps=1)
    listed: list[Broken | Accepted | Further] = [*broken_schedules(), *accepted_schedules()]
    for each in (*listed, *further_schedules(), *rare_schedules()):
        _said_of_every_size(each)
    require_updates_in_each()
    require_used_once()
    require_three_axes(k.claim)
    numbers_are_their_values(k)
    sizes_are_found(k)
    misfits_are_refused(k)
    _own_their_chunks(k)
    unknowns_differ(k)
    moments_made_again_are_unknown(k)
    groups_share_samples(k)
    all_that_is_kept_is_compared(k)
    updates_differ(k)
    _sums_differ(k)
    for schedule, fit in values_for_slices():
        if check(schedule, dict.fromkeys(schedule.axes, 2)).rule != ("" if fit else "room"):
            raise KernelError(f"{k.claim}: values where there is room for slices, which fit: {fit}")
    if check(_norm_of_terms(), {BATCH: 2}).rule != "whole":
        raise KernelError(f"{k.claim}: a norm of terms may be added to others")
    _derived_as_placed(k)
    _answered_as_listed(k)
    return (
        *(_probed(k.part(f"probe_{name(op)}"), op) for op in OPERATORS),
        *(_counted(k.part(f"count_{name(op)}"), op) for op in OPERATORS),
        _axes_factor(k.part("axes")),
        *(_diverges(k.part(f"broken{i}"), w) for i, w in enumerate(broken_schedules())),
        *(_matches(k.part(f"accepted{i}"), a) for i, a in enumerate(accepted_schedules())),
    )


def _derived_as_placed(k: Kernel) -> None:
    """Raise KernelError unless sums are in the order that placements say, and right, what is gathered
    for its use is so, and a view that stays is there from the second micro-step on.
    """
    for placement, expected in placements_by_order():
        schedule = schedule_of(placement)
        sums = [op for op in schedule.ops if op.kind in REDUCTIONS]
        sizes, policies = dict.fromkeys(schedule.axes, 2), (MIXED_ADAM, POLICIES["fp32-sgd"])
        accepted = any(check(schedule, sizes, 1, policy).accepted for policy in policies)
        if not accepted or [(op.kind, op.source, op.axes) for op in sums] != expected:
            raise KernelError(f"{k.claim}: {placement}: gradients are summed by {sums}")
    gathered = schedule_of(on_batch("S*", "S*", "S*", "S*")).ops
    if {op.state for op in gathered if op.kind is Kind.ALL_GATHER} != {*State}:
        raise KernelError(f"{k.claim}: what is to be gathered for its use is not")
    schedule = schedule_of(replace(STRATEGIES["zero3"], stays=True))
    there = [{op.kind for op in schedule.micro_step if schedule.is_there(op, m)} for m in (0, 1)]
    if there != [set(), {Kind.ALL_GATHER}]:
        raise KernelError(f"{k.claim}: of a view that stays, {there} is there")


def _norm_of_terms() -> Schedule:
    """A norm of gradients that are not summed is added to those of other weights. Nothing reads it."""
    norm = operation(Kind.SQUARE_NORM, Buffer.GRADIENTS, Buffer.NORM)
    added = operation(Kind.ALL_REDUCE, Buffer.NORM, axes=(ALL_WEIGHTS,))
    return around(schedule_of(STRATEGIES["dp"]), before=(norm, added))


def _answered_as_listed(k: Kernel) -> None:
    """Raise KernelError unless listed schedules are rejected in the first step, as is said, and
    these alone diverge.
    """
    for schedule, policy, rule in _answers():
        sizes = dict.fromkeys(schedule.axes, 2)
        of_run: dict[str, Any] = {"micro_steps": 2, "data": DATA}
        found = check(schedule, sizes, 2, policy)
        if (found.rule, found.step) != (rule, 0):
            raise KernelError(f"{k.claim}: {schedule}: {found.rule or 'accepted'}, and not {rule}")
        of_run |= {"steps": 1 if rule else 2, "stateful": policy.k > 0, "master": policy.master}
        if (first_divergence(schedule, sizes, **of_run) is None) is bool(rule):
            raise KernelError(f"{k.claim}: {schedule} {'matches' if rule else 'diverges'}")
    for words, schedule, right in clipped_by_parts():
        sizes = dict.fromkeys(schedule.axes, 2)
        if not right and (check(schedule, sizes).accepted or not first_divergence(schedule, sizes)):
            raise KernelError(f"{k.claim}: {words}: it is accepted, or matches")


def _answers() -> Iterator[tuple[Schedule, BytePolicy, str]]:
    """Schedules, each with a policy, and the rule by which it is rejected, if it is."""
    yield from corners()
    moments, nothing = POLICIES["fp32-adam"], POLICIES["fp32-sgd"]
    yield of_samples_made_again(), MIXED_ADAM, "fresh"
    yield of_activations_not_kept(), MIXED_ADAM, "fresh"
    yield of_weights_in_no_state(), nothing, "fresh"
    yield of_zeros(), moments, "current"
    yield of_nothing_times_zero(), MIXED_ADAM, ""
    yield of_a_count_that_grows(), MIXED_ADAM, ""
    yield of_working_copies(), MIXED_ADAM, ""
    yield of_working_copies(), moments, "agreed"  # no weights are kept
    yield schedule_of(STRATEGIES["zero1"]), moments, ""
    yield schedule_of(on_batch("M", "R", "R")), BytePolicy(2, 2, 12), ""  # it counts no steps
    for parameters in "RO":  # without state there is no moment
        yield schedule_of(on_batch(parameters, "M", "R", "S")), nothing, ""


def _own_their_chunks(k: Kernel) -> None:
    """Raise KernelError unless in runs devices own the elements of their chunks (claim S1).

    Of elements of which it is not said how many there are, there are two, and each device owns one.
    """
    for elements, devices in product(range(1, 7), repeat=2):
        nothing_runs = Schedule((BATCH,), (), (), ())
        of_a_run = Reference(nothing_runs, {BATCH: devices}, 1, elements, primes, True, True)
        chunk = ceil_div(elements, devices)
        for element, (owner,) in of_a_run.owner.items():
            if not all(shard_contains(owner, element, chunk)):
                raise KernelError(f"{k.claim}: {element} of {elements} is device {owner}'s")
            one_before = of_a_run.taker(element, BATCH, 1)  # it takes the slice of the one further on
            if (one_before + 1) % devices != owner:
                raise KernelError(f"{k.claim}: device {one_before} takes what device {owner} has")
    for devices in (1, 2, 3):
        kept, *_ = run(schedule_of(STRATEGIES["zero3"]), {BATCH: devices})
        places = [kept.place(i) for i, _ in enumerate(kept.has)]
        owned = {Place((element % devices,), element) for element in range(max(2, devices))}
        if {*places} != owned:
            raise KernelError(f"{k.claim}: of {devices} devices in slices the copies are {places}")
    lost = schedule_of(on_batch("M", "M", "R", "S"))  # no parameters
    missed = [*divergences(run(lost, {BATCH: 2}, data=DATA))]
    if {each.has for each in missed} != {None} or {each.place for each in missed} != {Place((0,), 0)}:
        raise KernelError(f"{k.claim}: what is kept nowhere is missed at {missed}")
    kept_whole = [*run(schedule_of(STRATEGIES["dp"]), {BATCH: 2}, data=DATA)]
    places = [kept_whole[0].place(i) for i, _ in enumerate(kept_whole[0].has)]
    if {*places} != {Place((device,), element) for device, element in product(range(2), repeat=2)}:
        raise KernelError(f"{k.claim}: of 2 devices the copies are {places}")
    first = [row.single[0] for row in kept_whole if row.state == missed[0].state]
    if [each.single for each in missed] != first:
        raise KernelError(f"{k.claim}: of what is kept nowhere a single device has {first}")


def _sums_differ(k: Kernel) -> None:
    """Raise KernelError unless different values, that are of each micro-step or divided by its tokens,
    have different sums over micro-steps.
    """
    place = Buffer.GRADIENTS, ""
    forms = Forms(Schedule((BATCH,), (), (), ()), {BATCH: 2}, 12, MIXED_ADAM, None, {}, False)

    def sum_of(kind: str, step: int, which: MicroStep, divided: bool) -> Frozen:
        def body(store: Store, index: MicroStep) -> None:
            made = forms.symbol(kind, step, index if which == EACH else which)
            made = forms.divide(made, forms.tokens(index)) if divided else made
            store[place] = False, forms.add(store[place][1], made)

        left = after_micro_steps(body, forms, {place: (False, {})})
        return frozen(left[place][1])

    found: dict[Frozen, Any] = {}
    kinds = "weight", "gradient", "tied", "tokens", "statistic"
    indices: tuple[MicroStep, ...] = 0, EACH, EVERY, LAST
    for value in product(kinds, (0, 1), indices, (False, True)):
        other = found.setdefault(sum_of(*value), value)
        if other != value:
            raise KernelError(f"{k.claim}: {value} and {other} have the same sum")


def _probed(k: Kernel, operator: Operator) -> Theorem:
    """On each kind of device an operator gives 1 for a single contribution it reads, 0 for others."""
    axis = one_axis(k)
    d = k.integers("d")
    p = k.fixed("p", IntSort())  # the device that contributes 1
    only: PerDevice = lambda v: If(v[AXIS] == p, RealVal(1), RealVal(0))  # noqa: E731
    meaning = axis.meaning(operator, only)({AXIS: d})
    uses = []
    if axis.sums:
        i = axis.sums[-1].index
        one = closed_form(
            k,
            "a_single_contribution_sums_to_one",
            axis.sums[-1],
            If(p < i, RealVal(1), RealVal(0)),
            given=[p >= 0],
        )
        uses = [one.at(**{str(i): axis.n})]
    named = (0, 1)
    sources: dict[Any, Any] = {who: p == axis.place(who) for who in named}
    elsewhere = And(*(p != axis.place(who) for who in named))
    sources |= {Source.SELF: And(elsewhere, p == d), Source.REST: And(elsewhere, p != d)}
    claims = [
        Implies(
            And(at, there),
            meaning == RealVal(1 if source in sources_of(operator, place, named) else 0),
        )
        for place, at in kinds(axis, d, named).items()
        for source, there in sources.items()
        if not (source is Source.SELF and place is not OTHER)
    ]
    apart = [axis.owner != axis.other] if operator != SUM_ALL else []
    inside = [p >= 0, p < axis.n] if uses else []
    words = f"{name(operator)}_shows_its_coefficients"
    return k.prove(words, And(*claims), [*inside, *apart], uses)


def _counted(k: Kernel, operator: Operator) -> Theorem:
    """Of a value that all devices have alike an operator gives each its coefficient times as much."""
    axis = one_axis(k)
    d = k.integers("d")
    meaning = axis.meaning(operator, lambda _: RealVal(1))({AXIS: d})
    uses = []
    if axis.sums:
        ones = axis.sums[-1]
        number = closed_form(k, "ones_sum_to_their_number", ones, ToReal(ones.index))
        uses = [number.at(**{str(ones.index): axis.n})]
    named, nothing_runs = (0, 1), Schedule((AXIS,), (), (), ())
    forms = Forms(nothing_runs, {AXIS: axis.n}, 1, MIXED_ADAM, None, {AXIS: named[1]}, True)
    forms.same = lambda a, b: a is b
    value: NormalForm = {(Symbol("weight", 0), (operator,)): 1}
    claims = [
        Implies(at, meaning == sum(forms.at(value, (place,)).values(), RealVal(0)))
        for place, at in kinds(axis, d, named).items()
    ]
    given = [axis.owner != axis.other] if isinstance(operator.to, int) else []
    given += [axis.n >= 1] if uses else []
    return k.prove(f"{name(operator)}_counts_equal_values", And(*claims), given, uses)


def _axes_factor(k: Kernel) -> Theorem:
    """What is constant along an axis passes through its operators: axes can be probed one by one."""
    axis = one_axis(k)
    d = k.integers("d")
    factor = k.fixed("factor", RealSort())
    x = k.function("x", IntSort(), RealSort())
    value: PerDevice = lambda v: x(v[AXIS])  # noqa: E731
    scaled: PerDevice = lambda v: factor * x(v[AXIS])  # noqa: E731
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
    return k.prove("factors_pass_through", And(*claims), [axis.n >= 1], uses)


def _symbol(what: str, *index: Any) -> str:
    """The name of a number of the data."""
    flat = [n for part in index for n in (part if isinstance(part, tuple) else (part,))]
    return "_".join([what, *map(str, flat)])


class _Data:
    """Any data, as real variables; only counts of tokens are numbers, as they are whole."""

    def __init__(self, k: Kernel) -> None:
        self.kernel, self.made, self.values = k, dict[str, Any](), dict[str, int]()

    def __call__(self, what: str, *index: Any) -> Any:
        if what == "tokens":
            return RealVal(primes(what, *index))
        key = _symbol(what, *index)
        if key not in self.made:
            self.made[key] = self.kernel.reals(key)
            self.values[key] = UNLIKE + len(self.made) if what == "unknown" else primes(what, *index)
        return self.made[key]


def _said_of_every_size(one: Broken | Accepted | Further) -> None:
    """The verdict on sizes in general is that on each; on few devices runs match where it accepts."""
    name, schedule = one.name, one.schedule
    found = everywhere(schedule, {})
    general, *_ = found.found
    if general.accepted and not found.accepted and everywhere(schedule, {}, exceptions=False).accepted:
        raise KernelError(f"{name}: right on sizes in general, and so said to be right on all")
    if isinstance(one, Further) and one.right and not found.accepted:
        raise KernelError(f"{name}: expected to be accepted, got {found.wrong_for[0].verdict}")
    if bool(found.undecided) is not (name in UNDECIDED):
        raise KernelError(f"{name}: of {found.undecided} it is not decided")
    rejected = next(found.points(), None)
    if (rejected is None) is not found.accepted:
        raise KernelError(f"{name}: the verdict on sizes in general is not one on each")
    for mesh, micro_steps in _meshes(schedule.axes):
        sizes = {**mesh, MICRO_STEPS: micro_steps}
        matches = accepted = check(schedule, mesh, micro_steps).accepted
        if group_size(mesh, schedule.axes) <= MOST:
            matches = first_divergence(schedule, mesh, micro_steps=micro_steps, data=DATA) is None
        said = {one.accepted for one in found.found if one.says(sizes)}
        shown = _narrowest((*found.right_for, *found.wrong_for), sizes)
        if not {accepted} == said == shown == {matches}:
            raise KernelError(f"{name}: another verdict or run with {sizes}")


def _meshes(axes: Axes) -> Iterator[tuple[dict[str, int], int]]:
    """Sizes of axes that are looked at, and numbers of micro-steps."""
    for devices, micro_steps in SIZES:
        yield dict.fromkeys(axes, devices), micro_steps
    for some in UNEQUAL if len(axes) == 2 else ():
        yield dict(zip(axes, some, strict=True)), 1


def _narrowest(found: tuple[Found, ...], sizes: dict[str, int]) -> set[bool]:
    """What is said of some sizes, where what is said of fewer goes before."""
    of_them = [one for one in found if one.sizes.items() <= sizes.items()]
    return {one.accepted for one in of_them if not any(one.wider(other) for other in of_them)}


def _all_match(kept: list[Copies]) -> Any:
    """Every copy of a run is the single device's."""
    return And(*(has == single for copies in kept for has, single in copies.pairs()))


def _matches(k: Kernel, accepted: Accepted) -> Theorem:
    """Whatever the data, every copy of an accepted schedule's run is the single device's."""
    sizes = dict.fromkeys(accepted.schedule.axes, accepted.devices)
    verdict = check(accepted.schedule, sizes, accepted.micro_steps)
    if not verdict.accepted:
        raise KernelError(f"{accepted.name}: expected to be accepted, got {verdict}")
    kept = run(
        accepted.schedule,
        sizes,
        accepted.steps,
        accepted.micro_steps,
        accepted.elements,
        data=_Data(k),
        stateful=accepted.stateful,
    )
    return k.prove(f"{accepted.name}_matches", _all_match(list(kept)))


def _diverges(k: Kernel, broken: Broken) -> Theorem:
    """The claim that the schedule matches on two devices, refuted."""
    sizes = {BATCH: 2}
    verdict = check(broken.schedule, sizes, broken.micro_steps)
    if verdict.accepted or verdict.rule != broken.rule:
        raise KernelError(f"{broken.name}: expected to break {broken.rule}, got {verdict}")
    data = _Data(k)
    options: dict[str, Any] = {"steps": broken.steps, "micro_steps": broken.micro_steps, "elements": 2}
    kept = list(run(broken.schedule, sizes, data=data, **options))
    claim = _all_match(kept)

    def replay(**values: Fraction) -> bool:
        def known(what: str, *index: Any) -> int | Fraction:
            return primes(what, *index) if what == "tokens" else values[_symbol(what, *index)]

        return first_difference(run(broken.schedule, sizes, data=known, **options)) is None

    few = {name: int(name in broken.ones) for name in data.made} if broken.ones else data.values
    at = {name: RealVal(few[name]) for name in data.made}
    given = [of == at[name] for name, of in data.made.items()] if broken.ones else []
    return k.refute(broken.name, claim, list(data.made.values()), replay, given, at)
