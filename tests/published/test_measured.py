"""docs/MEASURED.md: what others measured, beside what is predicted."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from proofs.registry import ROOT
from psem_model.published.measured import page, rows, table_rows
from tests.support.command import exact, predicted


def test_the_page_of_measurements_is_made_from_the_data():
    assert (ROOT / "docs" / "MEASURED.md").read_text() == page()


def test_a_row_is_predicted_in_any_folder(monkeypatch, tmp_path):
    packaged = next(row for row in rows() if "config" in row.options)
    monkeypatch.chdir(tmp_path)
    assert replace(packaged).kept == packaged.kept


def test_nine_of_ten_measurements_lie_between_what_is_kept_and_the_peak():
    assert sum(row.within for row in rows()) >= 0.9 * len(rows())


def test_of_the_b200_table_39_of_43_rows_are_inside_and_near():
    """Context parallelism included; each stage of a pipeline inside."""
    table = table_rows()
    assert len(table) == 43
    assert sum(all(row.within for row in of) and of[0].is_near for of in table) >= 39


def test_numbers_of_micro_batches_with_one_measurement_have_one_prediction():
    for row in rows():
        for count in row.also:
            other = replace(row, options={**row.options, "accumulate": count})
            assert (other.kept, other.peak) == (row.kept, row.peak)


def test_what_is_kept_is_never_more_than_was_measured():
    assert [row.command for row in rows() if row.off > 0] == []


@pytest.mark.parametrize("row", rows()[::6], ids=lambda row: row.plan)
def test_the_command_of_a_row_predicts_its_figures(row):
    words = shlex.split(row.command)[2:]
    options = {words[i][2:]: words[i + 1] for i in range(1, len(words), 2)}
    memory, fullest = predicted(words[0], **options)["memory"], row.predicted.fullest
    peak = exact(memory["peak"]) / 2**30
    assert peak == row.peak if row.stage == fullest.number else peak > row.peak
