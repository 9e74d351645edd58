"""Devices on several axes beside the simulator's; and broken rules that the proofs must notice."""

from dataclasses import replace
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proofs.costs.product_costs as product_costs
import proofs.devices.hierarchy as hierarchy
import proofs.devices.mesh as mesh
import proofs.plans.compose as compose
import proofs.plans.factor_order as factor_order
import proofs.plans.products as products
import proofs.plans.unsafe as unsafe
from proofs.meaning.runs import Distributed
from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.terms import BoolVal
from psem_model.audit.refutations.levels import level_by_level
from psem_model.simulator import simulate
from psem_model.simulator.layout import Cluster
from spec.checking.verdict import check
from spec.costs.communication import elements_sent
from spec.costs.memory import Sizes
from spec.devices import operators
from spec.devices.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from spec.devices.hierarchy import (
    HIERARCHICAL,
    INNER,
    ONE_AFTER_THE_OTHER,
    OPERATORS,
    OUTER,
    OUTER_FIRST,
    device_number,
    next_stride,
    volumes,
)
from spec.devices.operators import IDENTITY, SUM_ALL, Operator, apply_operator
from spec.meaning import conditions
from spec.plans.compose import Product, combined, factor

K1 = mesh.device_numbers_are_a_bijection
K2 = hierarchy.reduction_over_two_axes_is_over_their_product
C6 = hierarchy.hierarchical_all_reduce_is_an_all_reduce
C7 = hierarchy.order_of_levels_does_not_matter_to_a_link
K3, K4 = compose.conditions_compose, compose.costs_compose
K6 = compose.composition_of_any_groups_is_safe
K7, K8 = product_costs.costs_of_products, factor_order.order_of_factors_nests_shards_only
CLAIMS = {"K1": K1, "K2": K2, "K3": K3, "K4": K4, "K6": K6, "K7": K7, "K8": K8, "C6": C6, "C7": C7}
STAGES = {"inner first": HIERARCHICAL, "outer first": OUTER_FIRST, "in turn": ONE_AFTER_THE_OTHER}
STAGES["in turn, in two"] = ((INNER, REDUCE_SCATTER), (INNER, ALL_GATHER), (OUTER, ALL_REDUCE))
some = st.integers(1, 4)
summed, owners, sliced = operators.summed, operators.owners, Sizes.slice


def numbered(coordinates, sizes):
    """A device's number, from its coordinates and the sizes of the axes, innermost first."""
    found, stride = 0, 1
    for coordinate, size in zip(coordinates, sizes, strict=True):
        found, stride = device_number(found, coordinate, stride), next_stride(stride, size)
    return found


@given(st.lists(some, min_size=1, max_size=4))
def test_device_numbers_are_those_of_the_simulator(sizes):
    names = [str(axis) for axis in range(len(sizes))]
    cluster = Cluster(tuple(zip(reversed(names), reversed(sizes), strict=True)))
    coordinates = zip(*(cluster.coordinates[name].tolist() for name in names), strict=True)
    assert [numbered(c, sizes) for c in coordinates] == list(range(prod(sizes)))


@given(st.lists(some, min_size=2, max_size=4), st.data())
def test_groups_are_of_one_first_device_and_partition_the_mesh(sizes, data):
    group = data.draw(st.sets(st.integers(0, len(sizes) - 1)))
    found = {}
    for device in product(*map(range, sizes)):
        first = tuple(0 if axis in group else c for axis, c in enumerate(device))
        found.setdefault(numbered(first, sizes), []).append(device)
    assert {len(devices) for devices in found.values()} == {prod(sizes[axis] for axis in group)}
    for devices in found.values():
        assert all(len({d[a] for d in devices}) == 1 for a in range(len(sizes)) if a not in group)


@pytest.mark.parametrize("stages", STAGES.values(), ids=STAGES)
@given(n=some, m=some, cell=st.integers(1, 3))
def test_an_all_reduce_in_stages_matches_and_sends_what_is_said_on_each_level(stages, n, m, cell):
    schedule, sizes = level_by_level(stages), {OUTER: m, INNER: n}
    assert check(schedule, sizes).accepted
    run = simulate(schedule, sizes, n * m * cell, steps=2)
    assert run.matches
    sent = dict.fromkeys(sizes, 0)
    for index, (level, _) in enumerate(stages):
        counted = run.sent_by_operation.get(("finish", index))
        sent[level] += 0 if counted is None else int(counted.max())
    assert sent == volumes(stages, sizes, cell)


@given(st.permutations(["node", "rack", "hall"]), st.data())
def test_levels_of_any_number_and_order_send_in_sum_what_a_flat_all_reduce_does(order, data):
    sizes = {level: data.draw(some) for level in order}
    *inside, outermost = order
    scatter = [(level, REDUCE_SCATTER) for level in inside]
    gather = [(level, ALL_GATHER) for level in reversed(inside)]
    stages = (*scatter, (outermost, ALL_REDUCE), *gather)
    flat = ALL_REDUCE.volume(prod(sizes.values()), 5)
    assert sum(volumes(stages, sizes, 5).values()) == flat
    form: dict = {("x", (IDENTITY,) * 3): 1}
    for level, collective in stages:
        form = apply_operator(OPERATORS[collective.name], order.index(level), form, sizes[level])
    assert form == {("x", (SUM_ALL,) * 3): 1}


# --------------------------------------------------------------------- mutants
def test_the_proofs_hold_and_what_is_refuted_has_counterexamples():
    for name, claim in CLAIMS.items():
        *others, last = (t.counterexample is not None for t in claim(Kernel(name)))
        assert last is (name in ("K6", "K8", "C7"))
        assert {*others} <= {name == "K6"}


def test_what_composes_is_what_sufficiency_supposes():
    r = Distributed(Kernel("E1"))
    supposed = r.suppose_integrity(), r.suppose_agreement(), r.suppose_freshness()
    for has, needs in zip(K3(Kernel("K3")), supposed, strict=True):
        assert not has.given
        assert has.goal is needs.goal


def counted_twice(value, axis, n, total):
    return lambda device: 2 * summed(value, axis, n, total)(device)


def without_within(op, schedule, sizes):
    return elements_sent(replace(op, within=()), schedule, sizes)


def held(placements):
    return replace(combined(placements), hold=True)


def integrity_of_doubles(updates, applied, whole):
    return updates, applied == whole + whole


ONE_DEVICE_HAS_THE_SUM = OPERATORS | {ALL_REDUCE.name: Operator(0, "all")}
NO_GATHER = HIERARCHICAL[:2]
OTHER_GATHER = (*NO_GATHER, (OUTER, ALL_GATHER))
MUTANTS = [
    ("coordinates are added", "device_number", lambda inside, c, stride: inside + c, "K1 K2 C6"),
    (
        "strides leave a gap",
        "device_number",
        lambda inside, c, stride: inside + c * (stride + 1),
        "K1 K2 C6",
    ),
    (
        "numbers begin at one",
        "device_number",
        lambda inside, c, stride: inside + c * stride + 1,
        "K1 K2 C6",
    ),
    ("strides add up", "next_stride", lambda stride, size: stride + size, "K1"),
    ("strides stay as they are", "next_stride", lambda stride, size: stride, "K1"),
    ("slices begin late", "first_element", lambda d, c: d * c + 1, "K1 K2"),
    ("sums are counted twice", "summed", counted_twice, "K2 C6"),
    (
        "the first device is the owner",
        "owners",
        lambda value, axis, o: owners(value, axis, 0 * o),
        "K2 C6",
    ),
    ("no gather inside", "HIERARCHICAL", NO_GATHER, "C6"),
    ("a gather on the wrong level", "HIERARCHICAL", OTHER_GATHER, "C6"),
    ("one device has the sum", "OPERATORS", ONE_DEVICE_HAS_THE_SUM, "K2 C6"),
    ("a level sends the whole", "volumes", lambda stages, n, cell: flat_each(n, cell), "C6 C7"),
    ("the whole is twice as much", "gradient_integrity", integrity_of_doubles, "K3"),
    (
        "the second axis cuts nothing",
        "slice",
        lambda self, axes, *_: sliced(self, axes[:1]),
        "K4 K7 K8",
    ),
    ("the rest is not smaller", "elements_sent", without_within, "K4 K7"),
    ("all is left of what is in slices", "_leaves_slices", lambda *_: False, "K7"),
    ("slices are left of everything", "_leaves_slices", lambda *_: True, "K7"),
    ("parameters are held whatever is combined", "combined", held, "K8"),
    (
        "numbers of rows are numbers of columns",
        "device_number",
        lambda inside, c, stride: inside + c,
        "K8",
    ),
]


def flat_each(sizes, cell):
    return {level: ALL_REDUCE.volume(n, cell) for level, n in sizes.items()}


PLACES = (mesh, hierarchy, compose, product_costs, factor_order, operators, conditions, Sizes)


@pytest.mark.parametrize(
    ("rule", "broken", "claim"),
    [(rule, broken, claim) for _, rule, broken, claims in MUTANTS for claim in claims.split()],
    ids=[f"{words}: {claim}" for words, _, _, claims in MUTANTS for claim in claims.split()],
)
def test_a_broken_rule_is_noticed(rule, broken, claim, monkeypatch):
    for place in PLACES:
        if hasattr(place, rule):
            monkeypatch.setattr(place, rule, broken)
    monkeypatch.setattr("proofs.trusted.oracle.RESOURCE_LIMIT", 1_000_000)
    with pytest.raises(KernelError, match=r"not proved|no counterexample|merged on"):
        CLAIMS[claim](Kernel(claim))


@pytest.mark.parametrize("missing", ["cuts", "pipe"])
def test_a_product_with_an_axis_that_is_not_checked_is_no_proof(missing, monkeypatch):
    monkeypatch.setattr(Product, missing, {"cuts": (), "pipe": None}[missing])
    with pytest.raises(KernelError, match=r"only .* checked"):
        products._accepted_programs(Kernel("K5"), factor("tp") * factor("pp"))


@given(st.sampled_from(products.MODELS).flatmap(st.permutations))
def test_cuts_of_the_model_in_any_order_sum_gradients_along_the_same_axes(names):
    def summed(order):
        model = Product(tuple(factor(name) for name in order))
        return {frozenset(axes) for axes in products._accepted_programs(Kernel("K5"), model)}

    assert summed(names) == summed(sorted(names))


NEEDED = [
    (claim, name)
    for claim in ("K1", "K2", "K3", "C6")
    for name in sorted(frozenset().union(*(t.hypotheses for t in CLAIMS[claim](Kernel(claim)))))
]


@pytest.mark.parametrize(("claim", "hypothesis"), NEEDED)
def test_no_hypothesis_can_be_dropped(claim, hypothesis, monkeypatch):
    def suppose(kernel, name, variables, formula):
        dropped = BoolVal(True) if name == hypothesis else formula
        return supposed(kernel, name, variables, dropped)

    supposed = Kernel.suppose
    monkeypatch.setattr(Kernel, "suppose", suppose)
    monkeypatch.setattr("proofs.trusted.oracle.RESOURCE_LIMIT", 1_000_000)
    with pytest.raises(KernelError, match="not proved"):
        CLAIMS[claim](Kernel(claim))


def axes_of(*names):
    """Whatever axes are named, the sums go over these."""
    over = unsafe._over
    return lambda value, *_: over(value, *names)


@pytest.mark.parametrize("name", ["wrong_group", "double_reduction"])
def test_what_is_summed_along_each_axis_once_has_no_counterexample(name, monkeypatch):
    monkeypatch.setattr(unsafe, "_over", axes_of(unsafe.A, unsafe.B))
    with pytest.raises(KernelError, match=f"{name}: no counterexample"):
        compose._refuted(Kernel("K6"), name, *unsafe.UNSAFE[name])


def test_norms_and_counts_of_both_axes_have_no_counterexample(monkeypatch):
    claim, unknowns = unsafe.UNSAFE["counts_along_one_axis"]
    monkeypatch.setattr(unsafe, "_over", axes_of(unsafe.A, unsafe.B))
    with pytest.raises(KernelError, match="no counterexample"):
        compose._refuted(Kernel("K6"), "counts_along_one_axis", claim, unknowns)


def test_what_is_gathered_along_its_own_axis_has_no_counterexample(monkeypatch):
    monkeypatch.setattr(unsafe, "owners", lambda value, _, owner: owners(value, unsafe.B, owner))
    name = "gathered_along_the_other_axis"
    with pytest.raises(KernelError, match="no counterexample"):
        compose._refuted(Kernel("K6"), name, *unsafe.UNSAFE[name])
