"""Every counterexample that a refuted claim carries, executed by the simulator."""

from functools import cache

import pytest

from proofs.registry import claims, prove
from psem_model.audit.refutations import REGISTERED, Shown, executed, name_of
from psem_model.audit.refutations.registry import refutes

each = pytest.mark.parametrize("name", REGISTERED)


@cache
def counterexamples():
    """By name, the values that the proofs find."""
    refuted = [prove(claim) for claim in claims() if claim.expected == "refuted"]
    return {
        name_of(result.claim.id, theorem): values
        for result in refuted
        for theorem, values in result.counterexamples.items()
    }


def test_every_counterexample_of_every_refuted_claim_has_a_run_and_no_run_is_of_another():
    assert REGISTERED.keys() == counterexamples().keys()


@each
def test_the_run_of_a_counterexample_shows_what_it_says(name):
    assert executed(name, counterexamples()[name]) == []


@each
def test_its_run_on_other_values_does_not_show_it(name):
    others = dict.fromkeys(counterexamples()[name], "0")
    assert executed(name, others) != []


def does_as_said(values):
    return Shown(2, {"it diverges": True})


def sends_nothing(values):
    return Shown(0, {"it diverges": True})


def does_not_diverge(values):
    return Shown(2, {"it diverges": False, "its twin matches": True})


def says_nothing(values):
    return Shown(2, {})


def breaks_down(values):
    raise ZeroDivisionError("by\nzero")


@pytest.mark.parametrize(
    ("runs", "wrong"),
    [
        ([], ["is not registered"]),
        ([does_as_said], []),
        ([sends_nothing], ["sends nothing"]),
        ([does_not_diverge], ["does not show that it diverges"]),
        ([says_nothing], ["shows nothing"]),
        ([breaks_down], ["breaks down: ZeroDivisionError: by zero"]),
        ([does_as_said, sends_nothing], ["sends nothing"]),
    ],
)
def test_only_a_run_that_sends_something_and_does_what_is_said_executes_it(runs, wrong, monkeypatch):
    monkeypatch.setitem(REGISTERED, "A1-attacked", [])
    for run in runs:
        refutes("A1", "attacked")(run)
    if not runs:
        monkeypatch.delitem(REGISTERED, "A1-attacked")
    assert executed("A1-attacked", {}) == wrong
