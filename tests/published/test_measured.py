"""docs/MEASURED.md: what others measured, beside what is predicted."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from proofs.registry import ROOT
from psem_model.published.measured import page, rows, rows_apart, table_rows
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


def test_rows_of_systems_that_no_profile_describes_are_above_what_is_kept():
    apart = rows_apart()
    assert {row.what for row in apart}.isdisjoint(row.what for row in rows())
    assert all(row.measured > row.kept for row in apart)


def test_stages_of_the_52b_log_have_as_many_parameters_as_it_says():
    stages = [row for row in rows_apart() if row.what.startswith("GPT")]
    assert [row.costs.parameters for row in stages[:-1]] == [917_757_952, *[805_560_320] * 14]
    positions = 1024 * 8192  # which the last stage has a copy of
    assert stages[-1].costs.parameters + positions == 917_774_336
    assert [round(20 * row.costs.parameters / 2**30, 2) for row in stages[1:-1]] == [15.0] * 14


def test_figures_that_stand_in_sentences_are_predicted():
    """Of Megatron's 530B, a stage's output; of Llama 3's 405B, what is kept and the peak, in GB."""
    of_530b = {"layers": 105, "hidden": 20480, "heads": 128, "sequence": 2048, "accumulate": 35}
    sent = int(exact(predicted("tp(8) * pp(35)", **of_530b)["pipeline"]["sent_per_boundary"]))
    assert sent == 41_943_040
    assert round(35 * 2 * sent / 2**30, 2) == 2.73
    of_405b = {"model": "llama-3.1-405b", "sequence": 8192, "accumulate": 16}
    of_405b["stage-layers"] = ",".join(map(str, [7, *[8] * 14, 7]))
    for profile, found in (("megatron", (71.6, 74.3)), ("common", (83.8, 85.7))):
        memory = predicted("zero2(128) * tp+sp(8) * pp(16)", **of_405b, profile=profile)["memory"]
        assert tuple(round(float(exact(memory[name])) / 1e9, 1) for name in ("total", "peak")) == found


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
