"""docs/MEASURED.md: what others measured, beside what is predicted."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from proofs.registry import ROOT
from psem_model.published.measured import page, rows
from tests.support.command import exact, predicted


def test_the_page_of_measurements_is_made_from_the_data():
    assert (ROOT / "docs" / "MEASURED.md").read_text() == page()


def test_a_row_is_predicted_in_any_folder(monkeypatch, tmp_path):
    packaged = next(row for row in rows() if "config" in row.options)
    monkeypatch.chdir(tmp_path)
    assert replace(packaged).kept == packaged.kept


def test_nine_of_ten_measurements_lie_between_what_is_kept_and_the_peak():
    assert sum(row.within for row in rows()) >= 0.9 * len(rows())


def test_what_is_kept_is_never_more_than_was_measured():
    assert [row.command for row in rows() if row.off > 0] == []


@pytest.mark.parametrize("row", rows()[::6], ids=lambda row: row.plan)
def test_the_command_of_a_row_predicts_its_figures(row):
    words = shlex.split(row.command)[2:]
    options = {words[i][2:]: words[i + 1] for i in range(1, len(words), 2)}
    memory = predicted(words[0], **options)["memory"]
    assert (exact(memory["total"]) / 2**30, exact(memory["peak"]) / 2**30) == (row.kept, row.peak)
