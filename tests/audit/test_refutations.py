"""Every counterexample that a refuted claim carries, executed by the simulator."""

from functools import cache

import numpy as np
import pytest

from proofs.registry import claims, prove
from psem_model.audit.refutations import REGISTERED, Shown, executed, name_of
from psem_model.audit.refutations.registry import refutes
from psem_model.simulator.network import Network

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


SEVERAL = {"E5-adam_without_epsilon_hides_a_scale": 2}  # every other counterexample has one run


def test_every_counterexample_has_as_many_runs_as_are_written_for_it():
    assert {name: len(runs) for name, runs in REGISTERED.items() if len(runs) > 1} == SEVERAL


def send():
    """Two messages, between two devices: how many."""
    network = Network(2)
    network.serve(("finish", 0))
    network.move(np.zeros((1, 2, 1)), np.array([0, 1]), np.array([1, 0]))
    return network.messages


def does_as_said(values):
    return Shown(send(), {"it diverges": True})


def runs_nothing(values):
    return Shown(1, {"it diverges": True})


def says_more_than_it_sends(values):
    return Shown(send() + 1, {"it diverges": True})


def sends_nothing(values):
    return Shown(0, {"it diverges": True})


def does_not_diverge(values):
    return Shown(send(), {"it diverges": False, "its twin matches": True})


def says_nothing(values):
    return Shown(send(), {})


def breaks_down(values):
    raise ZeroDivisionError("by\nzero")


@pytest.mark.parametrize(
    ("runs", "wrong"),
    [
        ([], ["is not registered"]),
        ([does_as_said], []),
        ([sends_nothing], ["sends nothing"]),
        ([runs_nothing], ["says that it sends 1 messages, and the simulator carried 0"]),
        ([says_more_than_it_sends], ["says that it sends 3 messages, and the simulator carried 2"]),
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
