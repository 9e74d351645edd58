"""Schedules as lists of lines: they do what schedules do, their runs exist, and no line is too many."""

from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from proofs.checking.lines import BACKWARD, MOVES, UPDATE
from proofs.checking.operation_lines import NORM, NOWHERE, NotCovered
from proofs.plans.listed_runs import ListedRuns
from proofs.plans.listing import PLACES, listing
from proofs.plans.products import LLAMA
from proofs.trusted.kernel import Kernel, KernelError
from spec.checking.verdict import check
from spec.derivation.schedules import schedule_of
from spec.derivation.steps import derive
from spec.language.schedule import Buffer
from spec.meaning.reference import Reference, Unknown, primes
from spec.meaning.semantics import CONTENT, execute, initial
from spec.models.parts import parts
from spec.numbers.any_size import any_size
from spec.plans.compose import Product, factor, with_all_samples
from spec.plans.strategies import STRATEGIES
from tests.support.damage import with_one_fault
from tests.support.examples import few, slow_but
from tests.support.listed_devices import ListedDevices
from tests.support.schedules import with_clipping, with_tied_parameters

SCHEDULES = {name: schedule_of(placement) for name, placement in STRATEGIES.items()} | {
    f"{name} x {other}": schedule_of(Product((factor(name, "one"), factor(other, "other"))).states)
    for name, other in product(("dp", "zero1", "zero2", "zero3"), repeat=2)
}
WHOLE = {  # along the other axis each device has the gradient of all samples
    f"{name} x {other}, whole": schedule_of(
        with_all_samples(Product((factor(name, "one"), factor(other, "other"))).states, ("other",))
    )
    for name, other in (("dp", "zero1"), ("zero1", "zero3"), ("zero2", "zero2"))
}
CLIPPED = {f"{name}, clipped": with_clipping(SCHEDULES[name]) for name in ("dp", "zero2", "hsdp")}
CLIPPED["zero3 x zero1, clipped"] = with_clipping(SCHEDULES["zero3 x zero1"])  # norms along two axes
TIED = {f"{name}, tied": with_tied_parameters(SCHEDULES[name]) for name in ("zero1", "zero3")}
BOTH = {"zero1, tied, clipped": with_clipping(with_tied_parameters(SCHEDULES["zero1"]))}
SCHEDULES |= WHOLE | CLIPPED | TIED | BOTH
LINES = {move.name: move for move in MOVES}


def run_line(line, world, held, micro_step):
    """What a line leaves in its places, in numbers."""

    def at(place):
        return held.get(place) or world.unknown("it is never written")

    if line.kind == BACKWARD.name:
        activations, again = world.forward(at(line.second), ()), line.micro_step != 0
        return {line.target: world.gradient(at(line.source), activations, micro_step, (), again)}
    if line.kind == NORM:
        own = world.replace(world.zero, at(line.source), line.axes)  # what each owns, and no more
        norm = world.square_norm(own)
        for axis in line.axes:
            norm = world.sum(norm, axis)
        return {line.target: norm}
    if line.kind == UPDATE.name:
        applied = at(line.third)
        applied = applied if line.fourth == NOWHERE else world.clip(applied, at(line.fourth))
        made = world.update(at(line.source), at(line.second), applied)
        return dict(zip((line.target, line.second), made, strict=True))
    move = LINES[line.kind].of
    return {line.target: move(world, at(line.source), at(line.target), axis=line.axis)}


@pytest.mark.parametrize("name", few(SCHEDULES))
@pytest.mark.parametrize("devices", [1, 2, 3])
def test_a_list_of_lines_does_what_the_schedule_does(name, devices):
    schedule, steps = SCHEDULES[name], 3
    micro_steps = 3 if schedule.finish else 1
    sizes = dict.fromkeys(schedule.axes, devices)
    world = Reference(schedule, sizes, micro_steps, devices ** len(sizes) + 1, primes, True, True)
    states = (world.constant(partial(primes, what)) for what in ("start", "moment"))
    store = initial(schedule, world, *states)
    slots = [*store]
    listed = listing(schedule)
    held = {PLACES.index(slot): store[slot][1] for slot in slots}
    body, finish = listed.lines[: listed.body], listed.lines[listed.body :]
    for step in range(steps):
        world.step = step
        for micro_step, op in schedule.flat(micro_steps):
            execute(op, schedule, world, store, micro_step)
        for micro_step in range(micro_steps):
            for line in body:
                held |= run_line(line, world, held, micro_step)
        for line in finish:
            held |= run_line(line, world, held, micro_steps - 1)
        for slot in slots:
            for at, has in store[slot][1].items():
                if not isinstance(has, Unknown):
                    assert held[PLACES.index(slot)][at] == has, (name, step, slot, at)


@pytest.mark.parametrize(("name", "sizes"), [("dp", (3,)), ("zero3", (2,)), ("hsdp", (2, 3))])
def test_what_is_supposed_of_a_listed_run_is_so_of_a_run(name, sizes):
    listed = listing(SCHEDULES[name])
    runs = ListedRuns(Kernel("listed"), {name: listed})
    run, l = runs.run, runs.l
    devices = ListedDevices(listed, 2, 3, *sizes, rows=run.listed.paths[0])
    lines = run.lines
    told = [lines.meaning, *(part for _, part in lines.parts), *(line for _, line in lines.each)]
    meant = (*told, *run.meant.values())
    devices.defined = {each.goal.args[0].of.name: each for each in meant}
    times = range(-2, devices.last + 2)
    for supposed, name_of, values in (
        (run.program, "t", times),
        *((rests, "b", range(-2, 30)) for rests in {*run.rest_in.values()}),
        (l.steps_end, "u", range(-1, 5)),
        (l.begins, "t", [0]),
        (l.is_listed, "t", [0]),
    ):
        for value in values:
            assert devices.value(supposed.goal, {name_of: value}), (supposed.name, value)
    for t in times:
        assert 0 <= devices.step(t) < devices.last
        assert 0 <= devices.micro_step(t) < devices.micro_steps


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zero2", "hsdp"])
def test_without_any_one_line_there_is_no_proof(name):
    listed = listing(SCHEDULES[name])
    for r in range(len(listed.lines)):
        left_out = replace(
            listed,
            lines=(*listed.lines[:r], *listed.lines[r + 1 :]),
            body=listed.body - (r < listed.body),
            before=(*listed.before[:r], *listed.before[r + 1 :]),
        )
        with pytest.raises(KernelError):
            ListedRuns(Kernel("less"), {name: left_out})


@pytest.mark.parametrize("name", slow_but(BOTH, [*WHOLE, *CLIPPED, *TIED, *BOTH]))
def test_schedules_that_clip_or_use_parameters_twice_have_a_proof(name):
    listed = listing(SCHEDULES[name])
    runs = ListedRuns(Kernel("proved"), {"this": listed})
    runs.at_the_end(runs.always())
    norms = [r for r, line in enumerate(listed.lines) if line.kind == NORM]
    assert bool(norms) == listed.clips == ("clipped" in name)
    for r in norms:  # a norm of nothing, or of another device's elements, is none
        target = replace(listed.lines[r], source=listed.lines[r].target)
        wrong = replace(listed, lines=(*listed.lines[:r], target, *listed.lines[r + 1 :]))
        with pytest.raises(KernelError):
            runs = ListedRuns(Kernel("wrong"), {"this": wrong})
            runs.at_the_end(runs.always())


@pytest.mark.parametrize("names", few([("zero1", "tp+sp"), ("zero3", "tp", "pp")]))
def test_weights_that_are_clipped_by_the_norm_of_all_have_a_proof(names):
    step = derive(Product(tuple(map(factor, names))), parts(LLAMA), clip=True)
    schedules = {group.schedule: f"group_{i}" for i, group in enumerate(step.groups)}
    assert any(len(op.axes) > len(s.axes) for s in schedules for op in s.finish)
    runs = ListedRuns(Kernel("all"), {name: listing(s) for s, name in schedules.items()})
    runs.at_the_end(runs.always())


def test_a_wrong_finding_is_no_theorem():
    listed = listing(SCHEDULES["dp"])
    before = [dict(found) for found in listed.before]
    gradients = PLACES.index((Buffer.GRADIENTS, CONTENT))
    before[1][0] = before[2][gradients]  # those of earlier micro-steps where the weights are
    with pytest.raises(KernelError, match="not proved"):
        ListedRuns(Kernel("wrong"), {"dp": replace(listed, before=tuple(before))})


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["dp", "zero1", "zero2", "hsdp", "zero-offload", *CLIPPED, *TIED, *BOTH]
)
def test_what_is_rejected_has_no_proof(name):
    """Of each single fault; a list that cannot be made is none."""
    rejected = proved = 0
    for faulty in with_one_fault(SCHEDULES[name]):
        mesh = {axis: any_size(axis) for axis in faulty.axes}
        if check(faulty, mesh, 3 if faulty.finish else 1).accepted:
            continue
        rejected += 1
        try:
            runs = ListedRuns(Kernel("faulty"), {"faulty": listing(faulty)})
            runs.at_the_end(runs.always())
        except (KernelError, NotCovered, KeyError, ValueError):
            continue
        proved += 1
    assert rejected > 5
    assert not proved
