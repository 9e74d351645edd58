"""The paper on one page: what it says is predicted; claims stand where a theorem says the same."""

import csv
import io
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.registry import claims
from psem_model.tables.files import TABLES
from psem_model.tables.table import Style
from psem_model.text.papers import FORMATS
from spec.models.states import State
from spec.plans.modes import Mode
from spec.plans.strategies import STRATEGIES
from tests.support.command import exact, predicted
from tests.support.examples import examples
from tests.support.formulas import number

counts = st.integers(2, 30)


@cache
def rows(padded):
    found = csv.DictReader(io.StringIO(FORMATS["csv"].write(TABLES["paper"](Style(padded)))))
    return {row["strategy"]: row for row in found}


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(5)
@given(data=st.data(), padded=st.booleans())
def test_memory_and_communication_are_what_psem_predict_says(strategy, data, padded):
    mesh = {axis: data.draw(counts) for axis in STRATEGIES[strategy].axes}
    m = 1 if strategy == "fused-update" else data.draw(counts)
    k = data.draw(st.integers(1, 20))
    devices = 1
    for size in mesh.values():
        devices *= size
    psi = devices * data.draw(st.integers(1, 50)) + (data.draw(st.integers(0, 5)) if padded else 0)
    names = {"N" if len(mesh) == 1 else f"N_{axis}": size for axis, size in mesh.items()}
    values = {"Psi": psi, "m": m, "K": k, **names}

    def asked(name, devices):
        options = {"psi": psi, "devices": devices, "accumulate": m, "bytes": f"2,2,{k}"}
        return predicted(name, **options, **({} if padded else {"divisible": None}))

    found, row = asked(strategy, "x".join(map(str, mesh.values()))), rows(padded)[strategy]
    memory, sent = found["memory"]["resting"]["total"], elements(found)
    assert number(row["memory, bytes"], values) == exact(memory)
    assert total(row["communication, elements"], values) == sent
    if not padded:
        dp = asked("dp", devices)
        assert number(row["memory, of DP"], values) == exact(memory) / exact(
            dp["memory"]["resting"]["total"]
        )
        assert total(row["communication, of DP"], values) == sent / elements(dp)


def elements(found):
    """Of model states, sent to other devices."""
    moves = found["communication"]["operations"]
    return sum(exact(move["elements"]) for move in moves if move["axes"] != ["host"])


def total(cell, values):
    return sum(number(part, values) for part in cell.split("; "))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_modes_are_those_of_the_placement(strategy):
    placed, row = STRATEGIES[strategy], rows(True)[strategy]
    for state in State:
        cell, _, held = row[state.value[0].upper()].partition(", ")
        assert (held == "held") is (placed.hold and bool(placed.gathered_axes(state)))
        letters = cell.removesuffix("+O").split("/")
        assert [Mode(letter) for letter in letters] == [
            placed.mode(state, axis) for axis in placed.axes
        ]


def test_each_row_is_proved_and_every_claim_named_is_expected_to_hold():
    expected = {claim.id: claim.expected for claim in claims()}
    by_strategy = {name: row["proved by"].split("; ") for name, row in rows(True).items()}
    assert by_strategy.keys() == STRATEGIES.keys()
    assert {expected[claim] for named in by_strategy.values() for claim in named} == {"proved"}
    own = {"dp": "M1", "zero1": "M2", "zero2": "M3", "zero3": "M4"}
    for strategy, claim in own.items():
        assert {claim, "X1", "X4", "E9"} <= {*by_strategy[strategy]}
        assert not {*own.values()} - {claim} & {*by_strategy[strategy]}
    assert by_strategy["hsdp"] == ["X1", "X4", "E9"]  # no claim states what it holds


def test_where_bytes_are_others_no_claim_on_them_is_named():
    from spec.models.states import POLICIES

    found = TABLES["paper"](Style(policy=POLICIES["fp32-adam"]))
    named = {claim for row in found.rows for claim in row.cells[-1]}
    assert named == {"X1", "X4", "E9"}
