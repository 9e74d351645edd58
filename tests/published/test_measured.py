"""docs/MEASURED.md: what others measured, beside what is predicted."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from click.testing import CliRunner

from proofs.registry import ROOT
from psem_model.commands.predict import predict
from psem_model.published.measured import STATES, Row, page, rows, rows_apart, table_rows
from tests.support.command import exact, predicted
from tests.support.examples import few


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


def test_what_deepspeed_keeps_beside_is_what_the_52b_log_has_more():
    """In MiB, by what the page says of its pipeline and its optimizer; the log's are to 0.01 GiB."""
    value, cut = 4 * 1024 * 8192 * 2 / 2**20, 4  # a value of a micro-batch, and devices of tp
    logits, mask = 4 * 1024 * 50688 // cut * 4 / 2**20, 2
    assert (value, logits) == (64, 198)
    for row in (row for row in rows_apart() if row.what.startswith("GPT")):
        stage, last = row.costs, row.stage == 15
        positions = 1024 * 8192 * last
        stays = 2 * (logits + 2 * value) + value / cut + mask if last else value + value / cut + mask
        assert round(stays) == (670 if last else 82)
        updating = 20 * (stage.parameters + positions) / 2**20 + stays
        again = value - value / cut
        sliced = (16 - row.stage) * value / cut
        computing = float(stage.peak) / 2**20 + stays + again + sliced
        found = updating if last else max(updating, computing)
        assert round(found / 1024, 2) == row.measured


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


def table_of_the_page():
    """By model and plan, the cells of each row of the page."""
    lines = (ROOT / "docs" / "MEASURED.md").read_text().splitlines()
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:2] == "| ")
    return [found for found in cells if found[0] != "model"]


@pytest.mark.parametrize(
    ("row", "cells"),
    few(zip((*rows(), *rows_apart()), table_of_the_page(), strict=True)),
    ids=lambda of: of.plan if isinstance(of, Row) else "",
)
def test_the_command_of_a_row_predicts_the_figures_of_the_page(row, cells):
    words = shlex.split(row.command)[2:]
    options = {words[i][2:]: words[i + 1] for i in range(1, len(words), 2)}
    printed = predicted(words[0], **options)
    memory = printed["memory"]
    sizes = [*(memory["resting"][state] for state in STATES), memory["total"], memory["peak"]]
    states, kept, peak = cells[3:6], cells[6], cells[8]
    assert [f"{float(exact(size)) / 2**30:.2f}" for size in sizes] == [*states, kept, peak]
    assert cells[1].split(", stage ")[1:] == [str(row.stage)] * ("stages" in printed)
    assert memory["stage"] == row.stage


def test_the_command_of_a_row_shows_its_figures():
    row = next(row for row in rows_apart() if row.stage == 5)
    shown = CliRunner().invoke(predict, shlex.split(row.command)[2:], catch_exceptions=False).output
    memory = shown[shown.index("memory per device") :].split("\n\n")[0]
    assert f"on stage {row.stage}" in memory
    for name, size in (("total", row.kept), ("peak", row.peak)):
        (line,) = (line for line in memory.splitlines() if line.split()[:1] == [name])
        assert float(line.split(" GiB")[0].split()[-1]) == pytest.approx(size, rel=1e-5)
