"""The space of placements: its counts, costs and frontier, against brute force; `psem space`."""

import re
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from psem_model.check.placements import NotRealisable
from psem_model.predict.states import predict
from psem_model.reading import words
from psem_model.space.forms import unless
from psem_model.space.placements import Space, reason_of
from psem_model.space.verdicts import verdicts
from spec.checking.verdict import check
from spec.choosing.regimes import REGIMES, Kept, Regime, placement_of, regime_of
from spec.choosing.space import (
    ACTIVATION_MODES,
    WIDTHS,
    Cost,
    CostTerm,
    Point,
    classes,
    cost,
    cost_form,
    dominates,
    frontier,
    realisable,
    sum_of,
)
from spec.costs.memory import Sizes
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Kind
from spec.meaning.reference import first_divergence
from spec.models.states import MIXED_ADAM, POLICIES, BytePolicy
from spec.numbers.arithmetic import DIVISIBLE
from spec.plans.modes import Mode
from spec.plans.placement import BATCH, on_batch
from spec.plans.strategies import STRATEGIES
from tests.support.broken import notices

widths = st.integers(1, 12) | st.fractions(Fraction(1, 8), 40)
costs = st.builds(Cost, *[st.integers(0, 3)] * 3)
regimes = st.sampled_from(REGIMES)


@st.composite
def points(draw, regime):
    """Any sizes of a regime: N from 2 on, as a point per parameter."""
    w, g, k = draw(widths), draw(widths), draw(widths)
    g = draw(st.sampled_from([g, w, 2 * w]))  # ties are where conditions turn
    n = draw(st.sampled_from([2, 3]) | st.integers(2, 2**20))
    m = draw(st.integers(2, 12)) if regime.several else 1
    k = (
        0
        if regime.optimizer is Kept.NO_STATE
        else draw(st.sampled_from([k, w, g, Fraction(n, n - 1) * w]))
    )
    return Point(Fraction(1), Fraction(1, n), m, (w, g, k))


@st.composite
def policies(draw, regime):
    """Any byte policy of a regime."""
    w, g, k = draw(widths), draw(widths), draw(widths)
    return BytePolicy(
        w, g, 0 if regime.optimizer is Kept.NO_STATE else k, master=regime.optimizer is Kept.MASTER_COPY
    )


# --------------------------------------------------------------------- dominance
@given(costs, costs, costs)
def test_dominance_is_a_strict_partial_order(a, b, c):
    assert not dominates(a, a)
    assert not (dominates(a, b) and dominates(b, a))
    if dominates(a, b) and dominates(b, c):
        assert dominates(a, c)


@given(costs, costs)
def test_one_dominates_another_when_nowhere_worse_and_somewhere_better(a, b):
    pairs = [(a.resting, b.resting), (a.sent, b.sent), (a.host, b.host)]
    better = any(x < y for x, y in pairs)
    assert dominates(a, b) == (all(x <= y for x, y in pairs) and better)


# ------------------------------------------------------------------- realisable
@pytest.mark.parametrize(
    ("kept", "several", "count"),
    [
        (Kept.MASTER_COPY, False, 210),
        (Kept.MASTER_COPY, True, 162),
        (Kept.MOMENTS, False, 81),
        (Kept.MOMENTS, True, 63),
        (Kept.NO_STATE, False, 135),
        (Kept.NO_STATE, True, 105),
    ],
)
def test_so_many_placements_are_realisable_whatever_activations_do(kept, several, count):
    regime = next(r for r in REGIMES if (r.optimizer, r.several) == (kept, several))
    found = realisable(regime)
    assert len(found) == count
    without = {modes[:3] for modes in found}
    assert set(found) == {(*modes, a) for modes, a in product(without, ACTIVATION_MODES)}


def test_every_placement_is_realisable_or_counted_under_one_reason():
    regime = REGIMES[0]
    space = Space(8, regime.policy, 1)
    assert sum(why.placements for why in space.reasons) == 625 - 210 == 415
    assert len(space.reasons) == len({(w.rule, w.operation, w.has) for w in space.reasons})


@pytest.mark.parametrize("regime", REGIMES)
def test_each_reason_has_a_witness_that_it_rejects_and_whose_run_diverges(regime):
    for why in Space(8, regime.policy, 2 if regime.several else 1).reasons:
        no = verdicts(regime)[why.witness]
        assert reason_of(no) == (why.rule, why.operation, why.has)
        found = why.run.divergence
        assert found.has != found.single


@given(
    st.tuples(*[st.sampled_from(Mode)] * 4), st.sampled_from(Kept), st.integers(2, 7), st.integers(1, 3)
)
def test_a_placement_is_realisable_on_any_number_of_devices_or_its_run_diverges_on_each(
    modes, kept, n, m
):
    regime = Regime(kept, m > 1)
    policy, schedule = regime.policy, schedule_of(placement_of(modes))
    options = {"micro_steps": m, "stateful": policy.k > 0, "master": policy.master}
    run = first_divergence(schedule, {BATCH: n}, **options)
    there = check(schedule, {BATCH: n}, m, policy)
    assert (run is None) == there.accepted == verdicts(regime)[modes].accepted


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES)
def test_every_verdict_is_the_same_on_other_numbers_of_devices(regime):
    for modes, found in verdicts(regime).items():
        for n, m in (
            ((2, 2), (3, 2), (4, 3), (7, 2)) if regime.several else ((2, 1), (3, 1), (4, 1), (7, 1))
        ):
            there = check(schedule_of(placement_of(modes)), {BATCH: n}, m, regime.policy)
            assert there.accepted == found.accepted, (modes, n, m)


# ------------------------------------------------------------------------- costs
@given(st.data(), regimes, st.integers(2, 64), st.integers(1, 1000))
def test_costs_are_those_that_are_predicted(data, regime, n, psi):
    policy = data.draw(policies(regime))
    m = data.draw(st.integers(2, 9)) if regime.several else 1
    form = data.draw(st.sampled_from(list(classes(regime))))
    modes = data.draw(st.sampled_from(classes(regime)[form]))
    found = predict(placement_of(modes), psi, n, policy, m, arithmetic=DIVISIBLE)
    mine = Space(n, policy, m).cost(form)
    assert (mine.resting * psi, mine.sent * psi, mine.host * psi) == (
        found.total,
        found.bytes,
        found.host_bytes,
    )


@given(st.tuples(*[st.sampled_from(Mode)] * 3), regimes)
def test_what_is_in_no_class_is_refused(modes, regime):
    assume(not any(modes in {m[:3] for m in placed} for placed in classes(regime).values()))
    policy, m = regime.policy, 2 if regime.several else 1
    with pytest.raises(NotRealisable):
        predict(placement_of((*modes, Mode.SHARDED)), 100, 4, policy, m)


@given(regimes)
def test_with_one_micro_step_nothing_is_said_of_micro_steps(regime):
    for form in classes(regime):
        terms = [t for part in (form.resting, form.sent, form.host) for t, _ in part.terms]
        assert regime.several or not any(term.repeated for term in terms)


# ---------------------------------------------------------------------- frontier
@given(st.data(), regimes)
def test_the_frontier_is_that_of_brute_force(data, regime):
    at = data.draw(points(regime))
    here = {form: form.at(at) for form in classes(regime)}
    best = {f for f, mine in here.items() if not any(dominates(c, mine) for c in here.values())}
    listed = {
        cost_form(name, regime)
        for name, rivals in frontier(regime).items()
        if not any(dominates(here[cost_form(r, regime)], here[cost_form(name, regime)]) for r in rivals)
    }
    assert best == listed


@given(st.data(), regimes)
def test_the_condition_in_words_is_when_a_rival_dominates(data, regime):
    at = data.draw(points(regime))
    name = data.draw(st.sampled_from([x for x, rivals in frontier(regime).items() if rivals]))
    rival = data.draw(st.sampled_from(frontier(regime)[name]))
    mine, other = cost_form(name, regime), cost_form(rival, regime)
    assert holds(unless(other, mine, regime), at) == dominates(other.at(at), mine.at(at))


def holds(words, at):
    """Read a condition back: products are written with a space or with none."""
    text, _, unequal = words.partition(", not all")
    names = dict(zip("wgK", at.widths, strict=True)) | {"N": 1 / at.slice, "m": at.micro_steps}
    text = re.sub(r"(?<=[0-9mN)]) ?(?=[wgKmN(])", "*", text)
    parts = text.split(" and ")
    all_hold = all(eval(part, {}, names) for part in parts)
    all_equal = all(eval(part.replace("<=", "=="), {}, names) for part in parts)
    return all_hold and not (unequal and all_equal)


@pytest.mark.parametrize("regime", REGIMES)
def test_only_listed_classes_are_classes(regime):
    found = classes(regime)
    for name, rivals in frontier(regime).items():
        assert cost_form(name, regime) in found
        assert set(rivals) <= set(frontier(regime)) - {name}


# ----------------------------------------------------------------- named strategies
@given(st.integers(2, 2**20), widths, widths, widths)
def test_with_one_micro_step_the_same_with_a_fused_update_is_better_than_each_stage(n, w, g, k):
    space = Space(n, BytePolicy(w, g, k), 1)
    assert {row.name for row in space.strategies if row.better is not None} >= {
        "dp",
        "zero1",
        "zero2",
        "zero3",
    }


@given(st.integers(2, 2**20), widths, widths, widths, st.integers(1, 9))
def test_the_stages_dominate_one_another_under_the_conditions_of_p3(n, w, g, k, m):
    stages = ("dp", "zero1", "zero2", "zero3")
    cost = {}
    for name in stages:
        found = predict(STRATEGIES[name], 1, n, BytePolicy(w, g, k), m, arithmetic=DIVISIBLE)
        cost[name] = Cost(found.total, found.bytes, found.host_bytes)
    when = {
        ("zero1", "dp"): w <= g,
        ("zero2", "dp"): m == 1 and w <= g,
        ("zero2", "zero1"): m == 1,
        ("zero3", "dp"): m == 1 and 2 * w <= g,
    }
    for a, b in product(stages, stages):
        assert dominates(cost[a], cost[b]) == when.get((a, b), False), (a, b)


@pytest.mark.slow
@given(st.integers(2, 64), regimes, st.integers(2, 12), st.data())
def test_what_none_is_said_to_be_better_than_is_beaten_by_no_other_on_the_page(n, regime, m, data):
    space = Space(n, data.draw(policies(regime)), m if regime.several else 1)
    page = {row.name: row for row in [*space.rows, *space.strategies]}
    for row in page.values():
        beaten_by = {name for name, other in page.items() if dominates(other.cost, row.cost)}
        named = {row.better, row.strategy} - {None}
        assert named <= beaten_by
        assert bool(named) == bool(beaten_by)
        assert row.strategy not in space.best
        assert (row.better is None) == beaten_by.isdisjoint(space.best)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "rule", "broken", "claim"),
    [
        ("space.py", "a.total < b.total)", "a.total <= b.total)", "P2"),
        ("space.py", "(a.resting <= b.resting, a.sent", "(a.resting >= b.resting, a.sent", "P2"),
        ("space.py", '"R S M": "M R M",', '"R S M": "",', "P2"),
        ("space.py", '        "M S M": "",\n', "", "P2"),
        ("modes.py", "return mode in (S, GATHERED)", "return mode is S", "P1"),
        (
            "memory.py",
            "return viewed + sizes.at_rest(state, rest.sharded) * sizes",
            "return sizes.slice(()) * sizes",
            "P3",
        ),
        ("derivation/schedules.py", "if mode in (R, GATHERED))", "if mode is R)", "P1"),
        (
            "derivation/schedules.py",
            "_along(self.axes, self.updates + in_place)",
            "_along(self.axes, in_place)",
            "P3",
        ),
    ],
)
def test_a_broken_rule_is_noticed_by_the_claim(file, rule, broken, claim):
    theorem = {
        "P1": "modes_decide_what_is_realisable",
        "P2": "equal_costs_and_what_is_best",
        "P3": "where_the_stages_stand",
    }[claim]
    module = "realisable" if claim == "P1" else "space"
    assert notices(f"proofs.choosing.{module}", theorem, file, rule, broken)


@pytest.mark.parametrize(
    ("policy", "holds"),
    [
        ("4,4,8", "a copy of the weights"),
        ("fp32-adam", "no copy of the weights"),
        ("fp32-sgd", "nothing"),
    ],
)
def test_the_space_says_what_the_optimizer_state_is_taken_to_hold(policy, holds):
    found = Space(8, words.policy(policy), 1).report()
    assert f"the optimizer state holds {holds}" in found.facts
    assert found.document()["inputs"]["optimizer_holds"] == holds


def test_regimes_are_those_of_policies_and_numbers_of_micro_steps():
    found = [regime_of(policy, several) for policy in POLICIES.values() for several in (1, 2, 3)]
    assert {*found} == {*REGIMES} and len({*REGIMES}) == len(REGIMES)
    assert all(regime_of(regime.policy, 1 + regime.several) == regime for regime in REGIMES)


def test_a_reason_names_the_operation_or_the_end_of_the_step():
    rejected = [found for found in verdicts(REGIMES[0]).values() if not found.accepted]
    named = {reason_of(found)[1] for found in rejected if found.op}
    assert named and named <= {kind.value for kind in Kind}
    assert {reason_of(found)[1] for found in rejected if not found.op} <= {"end of the step"}


TERMS = st.builds(CostTerm, st.sampled_from(WIDTHS), st.booleans(), st.booleans())


@given(st.lists(st.tuples(TERMS, st.integers(-2, 2)), max_size=6), st.data())
def test_a_sum_of_products_is_the_same_in_any_order(terms, data):
    found = sum_of(terms)
    assert found == sum_of(data.draw(st.permutations(terms)))
    assert all(n for _, n in found.terms)


@pytest.mark.parametrize("modes", ["R R R S", "M O M S"])
def test_what_costs_nothing_costs_zero_of_the_same_kind_of_number(modes):
    sizes = Sizes(Fraction(12), {BATCH: Fraction(4)}, MIXED_ADAM, arithmetic=DIVISIBLE)
    found = cost(on_batch(*modes.split()), sizes)
    assert {type(found.resting), type(found.sent), type(found.host)} == {Fraction}
