"""Published numbers, reproduced through `psem predict`, each with its source's own rounding."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest

from psem_model.published.entries import reproduce, rounded
from psem_model.published.states import largest_model, stage
from tests.support.command import exact
from tests.support.published import EVERY, entries

BUT_FOR_THE_FINAL_NORM = "ptdp.formula.params"  # its 2h weights, which the source leaves out


NUMBERS = [entry for entry in EVERY if not isinstance(entry.value, str)]
FORMULAS = [entry for entry in EVERY if isinstance(entry.value, str)]


@entries("")
def test_every_published_value_is_reproduced(entry):
    found = reproduce(entry)
    assert found.agrees is (entry.id != BUT_FOR_THE_FINAL_NORM), found
    assert bool(found.note) is not found.agrees


@pytest.mark.parametrize("entry", NUMBERS, ids=[e.id for e in NUMBERS])
def test_another_number_than_the_published_one_is_not(entry):
    assert not reproduce(replace(entry, value=2 * entry.value + 0.1)).agrees


@pytest.mark.parametrize("entry", FORMULAS, ids=[e.id for e in FORMULAS])
def test_another_formula_than_the_published_one_is_not(entry):
    assert not reproduce(replace(entry, value=f"2*{entry.value}")).agrees


def test_a_value_that_nothing_predicts_is_an_error():
    with pytest.raises(KeyError, match=r"zpq\.base"):
        reproduce(replace(EVERY[0], id="zpq.base"))


def test_the_zero_papers_table_1_truncates_where_its_figure_1_rounds(predicted, published):
    cell = exact(predicted("zero1", psi="1e12", devices=64)["memory"]["resting"]["total"]) / 10**9
    assert cell == Fraction(8375, 2)
    assert (
        rounded(cell, 4187.0, ROUND_HALF_UP)
        != Decimal("4187")
        == Decimal(repr(published["zero.table1.1T.N64.os"]))
    )
    # and 1.875 is printed with one decimal in the figure, with two in the table
    assert published["zero.fig1.os+g+p"] == 1.9
    assert published["zero.table1.7.5B.N64.os+g+p"] == 1.88


def test_the_zero_papers_table_2_multiplies_rounded_values():
    exactly = 4 * largest_model("zero1")
    assert rounded(exactly, 30.4, ROUND_HALF_UP) == Decimal("30.6")  # printed: 30.4 = 4 x 7.6


@entries("zero.comm.ratio")
@pytest.mark.parametrize("devices", [2, 3, 64, 2**40])
def test_zero3_sends_three_halves_of_data_parallelism(entry, devices, predicted):
    zero3, dp = (
        exact(predicted(s, psi="7.5e9", devices=devices)["communication"]["elements"])
        for s in ("zero3", "dp")
    )
    assert zero3 / dp == Fraction(entry.value)


@entries("zero.reduction.os")
def test_published_memory_ratios_are_limits_from_below(entry, predicted):
    # below the limit for every N, and near it for large ones: M7
    devices = 2**40 if entry.inputs["N"] == "inf" else entry.inputs["N"]
    dp, less = (
        exact(predicted(s, psi=2**40 * 3, devices=devices)["memory"]["resting"]["total"])
        for s in ("dp", stage(entry))
    )
    if entry.inputs["N"] == "inf":
        assert entry.value - Fraction(1, 10**9) < dp / less < entry.value
    else:
        assert dp / less == entry.value


def test_zero_offload_on_one_device_keeps_two_bytes_and_moves_four(predicted):
    # ZeRO-Offload, arXiv 2101.06840: 2M bytes on the device, 8 times less than 16M; 4M moved
    found = predicted("zero-offload", psi="1e9", devices=1)
    assert exact(found["memory"]["resting"]["total"]) == 2 * 10**9
    assert exact(found["communication"]["host_bytes"]) == 4 * 10**9


def test_early_zero1_with_all_reduce_and_all_gather_would_send_three_passes(predicted):
    # secondary sources still print 3 Psi for ZeRO-1: its first implementation; now 2
    found = predicted("zero1", psi=64, devices=64)["communication"]
    kinds = [(o["operation"], o["state"]) for o in found["operations"]]
    assert kinds == [("reduce_scatter", "gradients"), ("all_gather", "parameters")]
    assert exact(found["elements"]) == 2 * 63


def test_fp32_gradients_change_the_ratio_in_bytes(predicted):
    # w = 2, g = 4: DP 8 Psi, ZeRO-1 and ZeRO-2 6 Psi, ZeRO-3 8 Psi
    sent = {
        s: exact(predicted(s, psi=64, devices=64, bytes="2,4,12")["communication"]["bytes"]) / 63
        for s in ("dp", "zero1", "zero2", "zero3")
    }
    assert sent == {"dp": 8, "zero1": 6, "zero2": 6, "zero3": 8}
