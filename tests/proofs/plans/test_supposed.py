"""The hypotheses of E9 and of K5 hold together: of each schedule that they list, in three steps."""

from collections import Counter
from functools import cache
from unittest.mock import patch

import pytest

from proofs.choosing import every_run
from proofs.plans import products
from proofs.plans.rows import Rows
from proofs.trusted.kernel import Kernel
from spec.models.states import State
from tests.support.examples import few
from tests.support.listed_devices import ListedDevices
from tests.support.supposed import looked_at, supposed_by, world_of

pytestmark = pytest.mark.slow

PROVED_BY = {
    "E9": (every_run, every_run.strategies_and_realisable_placements_match),
    "K5": (products, products.products_of_strategies_are_accepted),
}


@cache
def listed(claim):
    """The schedules that a claim lists, by name."""
    module, proof = PROVED_BY[claim]
    with patch.object(module, "match") as match:
        proof(Kernel(claim))
    return match.call_args.args[1]


@cache
def placements():
    """Of each schedule that E9 lists a regime, and modes that are realisable in it."""
    steps, found = every_run.Steps(), {}
    for regime, numbers in enumerate(steps.numbers.values()):
        for modes, number in numbers.items():
            found.setdefault(number, (regime, modes))
    return found


def run_of(claim, number):
    """A run of a schedule that is listed: on two devices along each of its axes."""
    schedules = listed(claim)
    lines, rows = [*schedules.values()][number], Rows(schedules).paths[number]
    run = ListedDevices(lines, 2, 3, *[2] * len(lines.axes), number=number, rows=rows)
    regime, modes = placements().get(number, placements()[max(placements())])
    run.fixed["regime"] = regime
    for state, mode in zip(State, modes, strict=True):
        run.fixed[f"mode_of_{state.name.lower()}"] = mode.name.capitalize()
    return run


def said_of(claim, runs):
    """What a claim supposes that is not so of runs, and how often premises have held."""
    with supposed_by(claim) as (kernel, said):
        found = [looked_at(world_of(run, kernel, said), said) for run in runs]
    return [wrong for wrong, _ in found], {*said}, {*sum((held for _, held in found), Counter())}


@pytest.mark.parametrize(("claim", "first"), [("K5", 0), *(("E9", n) for n in range(8))])
def test_all_that_is_supposed_is_so_of_each_list_at_once(claim, first):
    """Of E9's each eighth, so that in a quick run a few are looked at."""
    numbers = few([*range(len(listed(claim)))[first :: 8 if claim == "E9" else 1]])
    wrong, said, held = said_of(claim, (run_of(claim, number) for number in numbers))
    assert not any(wrong)
    assert said == held


@pytest.mark.parametrize(("claim", "number", "other"), [("E9", 3, 1), ("E9", 40, 80), ("K5", 2, 0)])
def test_of_the_lines_of_another_schedule_it_is_not_so(claim, number, other):
    run = run_of(claim, number)
    run.fixed["schedule"] = other
    (wrong,), _, _ = said_of(claim, [run])
    assert "lines_are_those_that_are_listed" in wrong


@pytest.mark.parametrize("state", State)
def test_of_a_mode_that_is_not_realisable_it_is_not_so(state):
    run = run_of("E9", max(placements()))
    run.fixed |= {f"mode_of_{s.name.lower()}": "Replicated" for s in (state, State.ACTIVATIONS)}
    (wrong,), _, _ = said_of("E9", [run])
    assert {"the_modes_are_realisable", "the_schedule_is_named_or_derived_of_them"} & {*wrong}
