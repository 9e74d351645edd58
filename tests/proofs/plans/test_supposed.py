"""The hypotheses of E9 and of K5 hold together: of each schedule that they list, in three steps."""

from collections import Counter

import pytest

from proofs.plans.listing import listing
from proofs.trusted.folding import as_number
from spec.derivation.schedules import schedule_of
from spec.plans.compose import Product, factor
from tests.support.listed_devices import ListedDevices
from tests.support.supposed import looked_at, supposed_by, world_of

pytestmark = pytest.mark.slow

OF = "lines_are_those_of_"


def listed(name):
    """The lines of a strategy, or of several along an axis each."""
    names = name.replace("_x_", " ").replace("_", "-").split()
    axes = [[f"axis_{i}"] for i, _ in enumerate(names)] if len(names) > 1 else [[]]
    factors = (factor(each, *along) for each, along in zip(names, axes, strict=True))
    return listing(schedule_of(Product(tuple(factors)).states))


def runs(said):
    """A run of each schedule that is listed, by its name: on two devices along each of its axes."""
    found = {}
    for name, hypothesis in said.items():
        if name.startswith(OF):
            is_it = hypothesis.goal.args[0].args[0]  # schedule == 3
            lines = listed(name.removeprefix(OF))
            sizes = [2] * len(lines.axes)
            found[name] = ListedDevices(lines, 2, 3, *sizes, number=as_number(is_it.args[1]))
    return found


@pytest.mark.parametrize("claim", ["E9", "K5"])
def test_all_that_is_supposed_is_so_of_each_list_at_once(claim):
    with supposed_by(claim) as (kernel, said):
        found = {name: looked_at(world_of(run, kernel, said), said) for name, run in runs(said).items()}
    assert len(found) == {"E9": 8, "K5": 6}[claim]
    assert {name: wrong for name, (wrong, _) in found.items() if wrong} == {}
    assert {*said} == {*sum((held for _, held in found.values()), Counter())}


@pytest.mark.parametrize(
    ("claim", "name", "other"), [("E9", "zero2", "zero1"), ("K5", "zero2_x_dp", "dp_x_dp")]
)
def test_of_the_lines_of_another_schedule_it_is_not_so(claim, name, other):
    with supposed_by(claim) as (kernel, said):
        run, another = runs(said)[OF + name], runs(said)[OF + other]
        run.fixed["schedule"] = another.fixed["schedule"]
        wrong, _ = looked_at(world_of(run, kernel, said), said)
    assert {OF + other, f"what_rests_in_{other}"} == {*wrong}
