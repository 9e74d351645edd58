"""Large numbers are answered, or refused, at once."""

from __future__ import annotations

from time import process_time

import pytest

SHAPE = ["--layers", 8, "--hidden", 64, "--heads", 8, "--sequence", 32]
SMALL = ["--layers", 2, "--hidden", 8, "--heads", 2]
HUGE = ["--layers", "1e6", "--hidden", "64e12", "--heads", 8, "--sequence", 32]


@pytest.mark.parametrize(
    "args",
    [
        ["predict", "tp", "--devices", 2**70, *SHAPE],
        ["predict", "tp", "--devices", 2, *SHAPE[:6], "--sequence", "1e31"],
        ["predict", "tp", "--devices", 2, *SHAPE, "--micro-batch", 0],
        ["predict", "tp", "--devices", 2, *SHAPE, "--micro-batch", "nan"],
        ["predict", "tp", "--devices", 2, *SHAPE, "--unit", -1],
        ["predict", "tp(1e31)", *SHAPE],
        ["predict", "pp", "--devices", 8, *HUGE, "--chunks", "1e12", "--accumulate", 8],
        ["check", "zero1(0)"],
        ["check", "zero1 * tp", "--accumulate", "1e9"],
        ["derive", "tp(0)"],
        ["simulate", "tp(2)", *HUGE, "--vocabulary", 9],
        ["simulate", "tp(2)", *SMALL, "--sequence", "1e20", "--vocabulary", 9],
        ["simulate", "tp(2)", *SMALL, "--sequence", 4, "--vocabulary", "1e20"],
        ["simulate", "zero1(1e20)", *SMALL, "--sequence", 4, "--vocabulary", 9],
        ["simulate", "zero1(2)", *SMALL, "--sequence", 4, "--vocabulary", 9, "--accumulate", "1e20"],
        ["simulate", "zero1(2)", *SMALL, "--sequence", 4, "--vocabulary", 9, "--steps", "1e20"],
        ["simulate", "pp(1e4)", *HUGE, "--vocabulary", 9],
        ["simulate", "zero1(1e5)", *SMALL, "--sequence", 1, "--vocabulary", 1],
        ["simulate", "pp(1e4)", "--layers", "1e4", *SMALL[2:], "--sequence", 4, "--vocabulary", 9],
        ["simulate", "zero1(2)", "--psi", 9, "--steps", "1e29"],
    ],
)
def test_numbers_out_of_all_reason_get_one_line_at_once(args, psem):
    start = process_time()
    code, out, err = psem(*args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert process_time() - start < 1


@pytest.mark.parametrize(
    "args",
    [
        ["predict", "tp", "--devices", 2, *HUGE],
        ["predict", "tp * pp", "--devices", "2x8", *HUGE, "--accumulate", "8e12"],
        ["predict", "dp(2) * pp(2)", "--profile", "ddp", *HUGE, "--accumulate", "8e12"],
        ["predict", "zero3 * cp", "--devices", "1e18x2", *SHAPE[:6], "--sequence", "9e29"],
        ["predict", "zero-offload(1e18)", "--profile", "zero-offload", *SHAPE, "--accumulate", 2],
        ["check", "zero1(1e20) * tp(1e20) * pp(1e20)"],
        ["derive", "tp(1e20)"],
    ],
)
def test_large_numbers_are_answered_at_once(args, psem):
    start = process_time()
    assert psem(*args)[0] == 0
    assert process_time() - start < 1
