"""The specification beside the simulator: costs, training, verdicts. Run as a module, a quick look.

`agree_on_costs` and `agree_on_the_verdict` raise AssertionError where the two differ.
"""

import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofs.checking.witnesses import broken_schedules
from psem_model.check.words import reason
from psem_model.predict.states import predict_schedule
from psem_model.reading.schedules import read
from psem_model.simulator import simulate
from spec.checking.everywhere import everywhere
from spec.checking.verdict import check
from spec.costs.memory import MODEL_STATES, Sizes
from spec.derivation.schedules import schedule_of
from spec.language.schedule import (
    COLLECTIVE_KINDS,
    HOST_TRANSFERS,
    MICRO_STEPS,
    PASSING,
    REDUCTIONS,
    RESTING,
    SCALARS,
    STATE_OF,
    Buffer,
    Kind,
    Op,
    Phase,
    Rest,
    Span,
)
from spec.models.states import POLICIES, BytePolicy, State, custom_policy
from spec.models.training import Loss, Training
from spec.plans.compose import Product, factor
from spec.plans.modes import Mode
from spec.plans.placement import BATCH, on_batch, place_states
from spec.plans.strategies import STRATEGIES
from tests.support.damage import with_one_fault, with_one_place_changed
from tests.support.schedules import PIECES, placements, real_life, schedules

STEPS = 3
RECORDS = (Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW)
ROOT = Path(__file__).parents[2]
REGRESSIONS = sorted((ROOT / "tests" / "regressions").glob("*.toml"))
EXAMPLES = sorted((ROOT / "psem_model" / "examples").glob("*.toml"))
NUMBERING = (Kind.COUNT, Kind.SQUARE_NORM, Kind.ACCUMULATE)  # they make a number, if they write one


def agree_on_costs(schedule, mesh, psi, unit, policy, micro_steps, *, steps=1):
    """What the simulator counts is what the specification predicts; returns both."""
    run = simulate(schedule, mesh, psi, unit=unit, policy=policy, micro_steps=micro_steps, steps=steps)
    costs = predict_schedule(schedule, Sizes(psi, mesh, policy, unit), micro_steps)
    assert {s: run.resting[s] for s in MODEL_STATES} == costs.resting
    assert run.peak == costs.peak
    assert run.host == costs.host
    assert run.host_link == costs.host_bytes
    counts = [op.kind for op in schedule.ops]
    if Kind.BROADCAST in counts:  # the last of a chain sends less than the others
        assert (run.sent_elements, run.sent) == (costs.elements, costs.bytes)
    else:
        assert set(run.network.elements) == {costs.elements}
        assert set(run.network.bytes) == {costs.bytes}
    return run, costs


def agree_on_the_verdict(schedule, mesh, micro_steps, policy=POLICIES["mixed-adam"], seed=0):
    """The schedule is accepted exactly if its run matches the single device; returns whether.

    One that does not say which slice it writes is refused, whatever its run.
    """
    verdict = check(schedule, mesh, micro_steps, policy)
    if verdict.rule == "room":  # refused: of the values, a run cuts what fits
        return False
    world = 1
    for size in mesh.values():
        world *= size
    run = simulate(
        schedule,
        mesh,
        2 * world + 1,  # elements for every device, and padding
        steps=STEPS,
        micro_steps=micro_steps,
        policy=policy,
        seed=seed,
        stop_at_divergence=True,
    )
    assert verdict.accepted == run.matches, f"{reason(verdict)} / {run.divergence}"
    return verdict.accepted


def policies():
    """Byte policies: the named ones, and sizes that are not whole numbers."""
    size = st.sampled_from([1, 2, 4, Fraction(1, 2), Fraction(3, 2)])
    kept = st.sampled_from([0, 1, 4, 12, Fraction(5, 2)])
    custom = st.builds(lambda w, g, k: custom_policy(*map(Fraction, (w, g, k))), size, size, kept)
    return st.one_of(st.sampled_from(list(POLICIES.values())), custom)


@st.composite
def plans(draw):
    """A placement that is realisable there, a mesh, Psi, unit, policy and micro-steps."""
    axes = draw(st.sampled_from([1, 1, 2]))
    named = st.sampled_from(list(STRATEGIES.values()))
    placement = draw(st.one_of(placements(axes), named))
    mesh = {axis: draw(st.integers(1, 4)) for axis in placement.axes}
    micro_steps, policy = draw(st.integers(1, 3)), draw(policies())
    psi = draw(st.integers(1, 60))
    unit = draw(st.one_of(st.just(psi), st.integers(1, psi)))
    schedule = schedule_of(placement)
    if draw(st.booleans()):
        schedule = draw(real_life(schedule))
    return schedule, mesh, psi, unit, policy, micro_steps


def accepted(plan):
    schedule, mesh, _, _, policy, micro_steps = plan
    return check(schedule, mesh, micro_steps, policy).accepted


IN_PLACE = (Kind.ALL_REDUCE, Kind.BROADCAST)


def orderly(schedule, policy=POLICIES["mixed-adam"]):
    """Whether every operation reads what is there, on that side of the host link, what is made is
    released before made again, no slices are summed along their own axis, and what is reduced in place
    has its place: of a slice alone the sum along its axis takes more room. Weights are in an optimizer
    state only where the policy has a copy of them there.

    What others hold and send is not predicted.
    """
    on_host = {b: schedule.rest(STATE_OF[b]).host for b in RESTING}
    slices: dict[Buffer, set[str]] = {}
    there = {b for b in RESTING if schedule.rest(STATE_OF[b]).stored} | {Buffer.OPTIMIZER}
    for _, op in schedule.flat(2):
        perhaps_on_host = op.kind in (Kind.RECOMPUTE, Kind.KEEP) and op.target in PASSING
        made = {op.target} if op.takes_room or perhaps_on_host else set()
        made |= {Buffer.TIED} if op.kind is Kind.BACKWARD and schedule.training.tied else set()
        source = set() if op.kind is Kind.ZERO else {op.source}
        read = (source | {op.by}) & {*RESTING, *PASSING, *SCALARS}
        if op.kind in NUMBERING and op.target in SCALARS:
            made, read = {op.target}, read - {op.target}
        elif made & there - source:
            return False
        if op.kind in IN_PLACE and slices.get(op.target, set()) & {*op.axes} - {*op.within}:
            return False
        if op.kind in REDUCTIONS and {*op.axes} & {*op.within}:
            return False
        if (
            not policy.master
            and op.kind is not Kind.UPDATE
            and (op.source in RECORDS) != (op.target in RECORDS)
        ):
            return False
        side = on_host.get(op.source, False)
        crosses = op.kind in HOST_TRANSFERS and op.source in {*RESTING, *PASSING}
        wrong_side = (
            side is (op.kind is Kind.OFFLOAD) if crosses else side and op.kind in COLLECTIVE_KINDS
        )
        if wrong_side or (op.kind is Kind.KEEP and op.target in RESTING and side != on_host[op.target]):
            return False
        if op.target in PASSING:
            stays = side if op.kind in (Kind.RECOMPUTE, Kind.KEEP) else on_host.get(op.target, False)
            on_host[op.target] = op.kind is Kind.OFFLOAD if op.kind in HOST_TRANSFERS else stays
            if op.kind is Kind.RELEASE:
                on_host[op.target] = False
        if op.takes_room:
            slices[op.target] = {*op.within}
        if not read <= there or not {op.target} & {*RESTING, *PASSING} <= there | made:
            return False
        gone = op.kind is Kind.RELEASE or (op.kind is Kind.RESET and op.target in SCALARS)
        there = (there | made) - ({op.target} if gone else set())
    return not there & {*PASSING}


MOVED = {
    # elements that each device sends, in (N - 1)/N Psi: Rajbhandari et al., arXiv 1910.02054, section
    # 7; parameters that are held are gathered once only
    "dp": 2,
    "zero1": 2,
    "zero2": 2,
    "zero3": 3,
    "fsdp": 3,
    "fsdp-hold": 2,
}


def agree_on_named_strategies():
    """Named strategies match, cost what is predicted, and move what is published."""
    for name, placement in STRATEGIES.items():
        schedule = schedule_of(placement)
        mesh = dict(zip(schedule.axes, (4, 3), strict=False))
        for micro_steps in (1, 2) if schedule.finish else (1,):
            policy = POLICIES["mixed-adam"]
            run, _ = agree_on_costs(schedule, mesh, 48, 12, policy, micro_steps, steps=2)
            assert run.matches, name
            assert micro_steps > 1 or run.sent_elements == MOVED.get(name, 0) * 36 or name not in MOVED


def agree_on_faults(names):
    """Each piece of real training is right in each strategy; each single fault is judged alike."""
    for name in names:
        for piece, add in PIECES.items():
            schedule = add(schedule_of(STRATEGIES[name]))
            mesh = dict.fromkeys(schedule.axes, 3)
            assert agree_on_the_verdict(schedule, mesh, 2), (name, piece)
            for faulty in with_one_fault(schedule):
                agree_on_the_verdict(faulty, mesh, 2)


def released_too_early():
    """Parameters replicated, the optimizer's moments gathered for the update; released before it."""
    modes = dict(
        zip(State, (Mode.REPLICATED, Mode.GATHERED, Mode.REPLICATED, Mode.SHARDED), strict=True)
    )
    schedule = schedule_of(
        place_states(("batch",), {state: {"batch": mode} for state, mode in modes.items()})
    )
    kinds = [op.kind for op in schedule.finish]
    release, update = kinds.index(Kind.RELEASE), kinds.index(Kind.UPDATE)
    ops = [*schedule.finish]
    ops.insert(update, ops.pop(release))
    return schedule, replace(schedule, finish=tuple(ops))


def agree_on_what_is_released():
    """Moments that are released are gone, also where the weights are in no copy beside them."""
    right, wrong = released_too_early()
    policy = POLICIES["fp32-momentum"]
    assert agree_on_the_verdict(right, {"batch": 2}, 1, policy)
    assert not agree_on_the_verdict(wrong, {"batch": 2}, 1, policy)


def agree_on_what_is_replaced():
    """Slices of the weights are cast and gathered in one buffer: the whole takes their place."""
    cast = schedule_of(on_batch("M", "S", "S", "S"))
    assert agree_on_costs(cast, {"batch": 4}, 48, 12, POLICIES["mixed-adam"], 2)[0].matches


def agree_on_places(names):
    """Each state that rests otherwise, and each operation on another buffer or another side of the host
    link, is judged alike.
    """
    moved = schedule_of(on_batch("S*+O", "S", "S", "S"))
    for schedule in (moved, *(schedule_of(STRATEGIES[name]) for name in names)):
        for faulty in with_one_place_changed(schedule):
            agree_on_the_verdict(faulty, dict.fromkeys(schedule.axes, 3), 2)


def agree_on_diverging_schedules():
    """Each schedule that T3 rejects diverges."""
    for broken in broken_schedules():
        assert not agree_on_the_verdict(broken.schedule, {BATCH: 2}, broken.micro_steps), broken.name


def refuse_whole_values_in_a_room_for_slices():
    """A gradient that is whole is not put where a slice of it rests, unless it is said which."""
    schedule = schedule_of(STRATEGIES["dp"]).with_rest(State.GRADIENTS, Rest((BATCH,)))
    assert check(schedule, {BATCH: 2}).rule == "room"


def agree_on_what_changes_nothing():
    """A mean of copies that are alike is each of them, on any number of devices. A zero that is clipped
    by a norm that is not known stays zero; zeros that are added change nothing.
    """
    same, gradients, phase = schedule_of(STRATEGIES["dp"]), Buffer.GRADIENTS, Phase.PUBLISH
    mean = Op(Kind.ALL_REDUCE, phase, Buffer.PARAMETERS, axes=(BATCH,), mean=True)
    clipped = Op(Kind.CLIP, phase, gradients, by=Buffer.NORM)
    zeros = (
        Op(Kind.ZERO, phase, Buffer.FRESH, span=Span.UNIT),
        Op(Kind.ACCUMULATE, phase, Buffer.FRESH, gradients),
        Op(Kind.RELEASE, phase, Buffer.FRESH),
    )
    for devices in (2, 4):
        for harmless in ((mean,), (clipped,), zeros):
            more = replace(same, finish=(*same.finish, *harmless))
            assert agree_on_the_verdict(more, {BATCH: devices}, 1)


def agree_on_a_schedule_of(path):
    """A schedule in a file is judged as it runs, on a few numbers of devices and micro-steps.

    One whose name says that it is right is accepted.
    """
    schedule = read(str(path))
    for devices in (1, 2, 3):
        for micro_steps in (1, 2):
            accepted = agree_on_the_verdict(
                schedule, dict.fromkeys(schedule.axes, devices), micro_steps
            )
            assert accepted or not path.stem.startswith("right_"), path.stem


def agree_in_general(schedule):
    """What is found for all numbers of devices and of micro-steps is found for a few of them."""
    found = everywhere(schedule, {})
    for sizes in product((1, 2, 3), repeat=len(schedule.axes) + 1):
        point = dict(zip((*schedule.axes, MICRO_STEPS), sizes, strict=True))
        said = next((one.accepted for one in found.found if one.says(point)), None)
        mesh = {axis: point[axis] for axis in schedule.axes}
        assert said in (None, check(schedule, mesh, point[MICRO_STEPS]).accepted), point


def agree_on_operations_along_two_axes():
    """Means, counts and slices of one operation that acts along both axes at once."""
    axes, mesh = ("batch", "sequence"), {"batch": 2, "sequence": 3}
    kept, phase = Buffer.GRADIENTS, Phase.REDUCE
    both = schedule_of(Product((factor("dp", "batch"), factor("dp", "sequence"))).states)
    counted = (
        Op(Kind.COUNT, Phase.FORWARD, Buffer.TOKENS, axes=axes),
        Op(Kind.ACCUMULATE, Phase.FORWARD, Buffer.TOKENS, Buffer.TOTAL_TOKENS),
    )
    summed, divided = Op(Kind.ALL_REDUCE, phase, kept, axes=axes), Buffer.TOTAL_TOKENS

    def case(loss, micro_step, *reduced):
        finish = (*reduced, *(op for op in both.finish if op.kind is not Kind.ALL_REDUCE))
        ops = micro_step + both.micro_step
        return replace(both, micro_step=ops, finish=finish, training=Training(loss))

    scattered = Op(Kind.REDUCE_SCATTER, phase, kept, axes=axes)
    for right, schedule in (
        (True, case(Loss.MEAN, (), replace(summed, mean=True))),
        (
            True,
            case(
                Loss.TOKEN_MEAN,
                counted,
                summed,
                Op(Kind.DIVIDE, phase, kept, by=divided),
                Op(Kind.RESET, phase, divided),
            ),
        ),
        (True, case(Loss.SUM, (), scattered, Op(Kind.ALL_GATHER, phase, kept, axes=axes))),
        (False, case(Loss.SUM, (), scattered, Op(Kind.ALL_GATHER, phase, kept, axes=axes[:1]))),
    ):
        assert agree_on_the_verdict(schedule, mesh, 1) is right, schedule


def agree_on_what_is_sent_whole():
    """Host transfers that say nothing of slices take what there is room for; one device sends none."""
    policy, same = POLICIES["mixed-adam"], schedule_of(STRATEGIES["dp"])
    offloaded = schedule_of(STRATEGIES["zero-offload"])

    def unsaid(ops):
        return tuple(replace(op, within=()) if op.kind in HOST_TRANSFERS else op for op in ops)

    offloaded = replace(
        offloaded, micro_step=unsaid(offloaded.micro_step), finish=unsaid(offloaded.finish)
    )
    assert agree_on_costs(offloaded, {"batch": 4}, 100, 100, policy, 2)[0].matches
    spread = Op(Kind.BROADCAST, Phase.PUBLISH, Buffer.PARAMETERS, axes=("batch",))
    published = replace(same, finish=(*same.finish, spread))
    for devices in (1, 3):
        assert agree_on_costs(published, {"batch": devices}, 100, 100, policy, 1)[0].matches


def main(examples):
    """A quick look, for copies of the project in which a rule is broken."""
    # what takes little comes first
    agree_on_diverging_schedules()
    agree_on_what_changes_nothing()
    refuse_whole_values_in_a_room_for_slices()
    agree_on_named_strategies()
    agree_on_what_is_released()
    agree_on_what_is_replaced()
    agree_on_operations_along_two_axes()
    agree_on_what_is_sent_whole()
    files = (*REGRESSIONS, *EXAMPLES)
    for path in files:
        agree_on_a_schedule_of(path)
    agree_on_places(["zero1", "zero3", "zero-offload"])
    agree_on_faults(["zero1", "zero3"])
    for path in files:
        agree_in_general(read(str(path)))

    quick = settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.generate],  # no shrinking
    )

    @quick
    @given(plans())
    def costs(plan):
        if accepted(plan):
            run, _ = agree_on_costs(*plan)
            assert run.matches

    @quick
    @given(schedules())
    def verdicts(case):
        agree_on_the_verdict(*case)

    costs()
    verdicts()


__all__ = ["BytePolicy", "State", "accepted", "agree_on_costs", "agree_on_the_verdict", "plans"]

if __name__ == "__main__":
    main(int(sys.argv[1]))
