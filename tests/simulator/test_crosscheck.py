"""The specification and the simulator agree; where one of its rules is broken, they do not."""

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from proofs.registry import ROOT
from psem_model.predict.closed import PSI, UNIT, K, closed_form, mesh_symbols, peak_formula
from psem_model.predict.states import predict_schedule
from psem_model.reading.schedules import read
from psem_model.simulator import simulate
from psem_model.simulator.network import Network
from spec.checking.verdict import check
from spec.costs.memory import MODEL_STATES, Sizes
from spec.derivation.schedules import schedule_of
from spec.models.states import custom_policy
from spec.numbers.arithmetic import DIVISIBLE
from spec.plans.strategies import STRATEGIES
from tests.support.broken import SEEN_BY_T3, called
from tests.support.crosscheck import (
    REGRESSIONS,
    accepted,
    agree_on_a_schedule_of,
    agree_on_costs,
    agree_on_faults,
    agree_on_named_strategies,
    agree_on_the_verdict,
    agree_on_what_is_released,
    orderly,
    plans,
)
from tests.support.damage import damaged
from tests.support.schedules import cancelled, placements, real_life, schedules

pytestmark = pytest.mark.slow


@settings(max_examples=200)  # `make fuzz` goes on
@given(plans())
def test_what_the_simulator_counts_is_what_is_predicted_and_training_matches(plan):
    assume(accepted(plan))
    run, _ = agree_on_costs(*plan, steps=3)
    assert run.matches, run.divergence


@settings(max_examples=400)
@given(schedules())
def test_a_schedule_is_accepted_exactly_when_its_run_matches(case):
    agree_on_the_verdict(*case)


@settings(max_examples=400)
@given(cancelled(), st.integers(1, 3), st.integers(1, 3))
def test_what_cancels_is_accepted_only_if_its_run_matches(schedule, first, second):
    mesh = dict(zip(schedule.axes, (first, second), strict=False))
    if check(schedule, mesh, 1).accepted:
        assert agree_on_the_verdict(schedule, mesh, 1)


@settings(max_examples=400)
@given(schedules(), st.integers(1, 30), st.data())
def test_what_any_orderly_schedule_holds_and_sends_is_what_is_predicted(case, psi, data):
    schedule, mesh, micro_steps, policy = case
    if orderly(schedule, policy) and check(schedule, mesh, micro_steps, policy).accepted:
        agree_on_costs(schedule, mesh, psi, data.draw(st.integers(1, psi)), policy, micro_steps)


def test_a_slice_that_is_summed_in_place_is_not_orderly():
    schedule = read(str(ROOT / "tests" / "regressions" / "sum_of_a_slice_in_place.toml"))
    assert not orderly(schedule)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_a_schedule_that_was_judged_wrongly_once_is_judged_rightly(path):
    agree_on_a_schedule_of(path)


@settings(max_examples=100)
@given(st.data())
def test_real_life_pieces_are_accepted_and_match_until_they_are_damaged(data):
    schedule = data.draw(real_life(schedule_of(data.draw(placements()))))
    sizes, micro_steps = {"batch": data.draw(st.integers(2, 4))}, data.draw(st.integers(1, 3))
    before = agree_on_the_verdict(schedule, sizes, micro_steps)
    after = agree_on_the_verdict(data.draw(damaged(schedule, most=1)), sizes, micro_steps)
    assume(before and not after)


@settings(max_examples=60)
@given(st.data())
def test_at_divisible_sizes_the_closed_form_is_what_is_counted(data):
    placement = data.draw(st.one_of(placements(), st.sampled_from(list(STRATEGIES.values()))))
    mesh = {axis: data.draw(st.integers(1, 4)) for axis in placement.axes}
    world = 1
    for size in mesh.values():
        world *= size
    unit = world * data.draw(st.integers(1, 3))
    psi = unit * data.draw(st.integers(1, 4))
    w, g, k = (Fraction(data.draw(st.integers(1, 12))) for _ in range(3))
    policy = custom_policy(w, g, k)
    micro_steps = data.draw(st.integers(1, 2))
    assume(check(schedule_of(placement), mesh, micro_steps, policy).accepted)
    run, _ = agree_on_costs(schedule_of(placement), mesh, psi, unit, policy, micro_steps)
    formula = closed_form(schedule_of(placement), policy, False, True, micro_steps)
    values = {PSI: psi, UNIT: unit, K: policy.k}
    values |= {symbol: mesh[axis] for axis, symbol in mesh_symbols(placement.axes).items()}
    for state in MODEL_STATES:
        assert formula.resting[state].subs(values) == run.resting[state]
    assert peak_formula(formula).subs(values).doit() == run.peak
    assert (0 * PSI + formula.elements).subs(values) == run.sent_elements
    assert (0 * PSI + formula.bytes).subs(values) == run.sent
    assert (0 * PSI + formula.host_bytes).subs(values) == run.host_link
    divisible = predict_schedule(
        schedule_of(placement), Sizes(psi, mesh, policy, unit, DIVISIBLE), micro_steps
    )
    assert divisible.total == sum(run.resting.values())


def test_named_strategies_move_what_is_published():
    agree_on_named_strategies()


def test_moments_that_are_released_before_the_update_are_gone():
    agree_on_what_is_released()


@pytest.mark.parametrize("name", ["dp", "zero1", "zero2", "zero3", "zero-offload", "hsdp"])
def test_every_single_fault_is_judged_as_it_runs(name):
    agree_on_faults([name])


@pytest.mark.parametrize("name", STRATEGIES)
def test_named_strategies_match_and_count_alike_on_uneven_meshes(name):
    schedule = schedule_of(STRATEGIES[name])
    mesh = dict(zip(schedule.axes, (5, 3), strict=False))
    run, _ = agree_on_costs(
        schedule, mesh, 101, 13, custom_policy(*map(Fraction, (2, 2, 12))), 1, steps=4
    )
    assert run.matches


def test_links_are_those_of_rings(monkeypatch):
    links, move = set(), Network.move

    def noted(network, payload, senders, receivers, *sizes):
        links.update(zip(senders.tolist(), receivers.tolist(), strict=True))
        return move(network, payload, senders, receivers, *sizes)

    monkeypatch.setattr(Network, "move", noted)
    simulate(schedule_of(STRATEGIES["zero3"]), {"batch": 4}, 40)
    assert links == {(i, (i + 1) % 4) for i in range(4)}


BROKEN = [
    # (what is wrong, file, the rule, the broken rule)
    (
        "a host transfer takes what it says, and not what there is",
        "communication.py",
        "return sizes.at_rest(op.state, tuple(dict.fromkeys(slices)))",
        "return sizes.at_rest(op.state, op.within)",
    ),
    (
        "one device broadcasts to none",
        "communication.py",
        "return whole - whole * alone",
        "return whole",
    ),
    ("a ring goes a step too far", "collectives.py", "return n - 1", "return n"),
    (
        "ZeRO-1 reduces with an all-reduce",
        "derivation/schedules.py",
        "return _along(self.axes, self.updates + in_place)",
        "return _along(self.axes, in_place)",
    ),
    ("a sharded state rests whole", "memory.py", "at_rest(state, rest.sharded)", "at_rest(state, ())"),
    (
        "a gathered unit takes a shard",
        "memory.py",
        "if op.kind is Kind.ALL_GATHER else 1",
        "if False else 1",
    ),
    ("shards are rounded down", "arithmetic.py", "return -(-a // b)", "return a // b"),
    (
        "accumulation is counted once",
        "communication.py",
        "micro_step, micro_steps),",
        "micro_step, 1),",
    ),
    ("the host's copy is on the device", "memory.py", "rest.host is not host:", "rest.host is host:"),
    (
        "gradients are not reset",
        "derivation/schedules.py",
        "            Op(Kind.RESET, Phase.UPDATE, Buffer.GRADIENTS),\n",
        "",
    ),
    ("a sum of sums forgets n", "operators.py", "n if both == (ALL, ALL)", "1 if both == (ALL, ALL)"),
    ("any slice is the owner's", "operators.py", "int(left.of == right.to)", "1"),
    ("a mean over micro-steps is a sum", "forms.py", "(*self.axes, MICRO_STEPS)", "tuple(self.axes)"),
    (
        "a slice's norm is the whole norm",
        "algebra.py",
        "SUM_ALL if to == {ALL} else IDENTITY",
        "SUM_ALL",
    ),
    (
        "tied gradients are not needed",
        "forms.py",
        "if self.training.tied else form",
        "if False else form",
    ),
    (
        "stale activations are fresh",
        "forms.py",
        'self._fresh(read, "its activations are"',
        'self._fresh(view, "its activations are"',
    ),
    ("a shift is ignored", "algebra.py", "return -shift % size if", "return 0 * size if"),
    (
        "the first device owns all",
        "verdict.py",
        "choices.append([*named, other] if enough else [*named])",
        "choices.append([0])",
    ),
    (
        "statistics may be any",
        "verdict.py",
        "                _require_statistics(forms, store)",
        "                pass",
    ),
    (
        "a write reaches all slices",
        "semantics.py",
        "domain.replace(old, value, op.within, op.shift) if op.within else value",
        "value",
    ),
    (
        "a broadcast is from the owner",
        "semantics.py",
        "value = domain.first(value, axis)",
        "value = domain.owners(value, axis)",
    ),
    (
        "a mean multiplies by n",
        "semantics.py",
        "tuple((axis, -1) for axis in along_devices(op.axes))",
        "tuple((axis, 1) for axis in along_devices(op.axes))",
    ),
    (
        "a mean along two axes divides by one",
        "semantics.py",
        "tuple((axis, -1) for axis in along_devices(op.axes))",
        "tuple((axis, -1) for axis in op.axes[:1])",
    ),
    (
        "a reduce-scatter along two axes slices one",
        "semantics.py",
        "_slices(domain, value, op.axes, outside(op.shift), op.shift)",
        "_slices(domain, value, op.axes[:1], outside(op.shift), op.shift)",
    ),
    (
        "a count along two axes sums one",
        "semantics.py",
        "        for axis in op.axes:\n            value = domain.sum(value, axis)\n        write",
        "        for axis in op.axes[:1]:\n            value = domain.sum(value, axis)\n        write",
    ),
    (
        "activations stay after backward",
        "semantics.py",
        "        store.pop((Buffer.ACTIVATIONS, CONTENT), None)\n",
        "",
    ),
    (
        "moments stay after a release",
        "semantics.py",
        "        store.pop((target, MOMENT), None)\n",
        "",
    ),
    (
        "what is replaced stays",
        "memory.py",
        "replaced = {result.target for result in results}",
        "replaced = set()",
    ),
    (
        "zero times what is not known is not known",
        "algebra.py",
        "if self.at(value, position)]",
        "]",
    ),
    *SEEN_BY_T3,
]


@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), BROKEN, ids=[b[0] for b in BROKEN])
def test_a_broken_rule_makes_the_two_disagree(wrong, file, rule, broken):
    changed = file, rule, broken
    _, raised = called("tests.support.crosscheck", "main", 200, changed=changed)
    assert "AssertionError" in raised, wrong
