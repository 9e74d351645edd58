"""Charts: round numbers on axes, labels that do not cover each other, and the numbers themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.pages.charts import CHARACTER, LINE, Label, Scale, placed, ticks
from psem_model.pages.pictures import pictures
from psem_model.published.measured import rows

PICTURES = {picture.id: picture for picture in pictures()}


@given(st.floats(1e-3, 1e6))
def test_ticks_are_a_few_numbers_up_to_the_highest(high):
    found = ticks(high)
    assert 2 <= len(found) <= 6
    assert found[0] == 0 and found[-1] <= high * (1 + 1e-9)


@given(
    st.lists(st.tuples(st.floats(0, 300), st.floats(0, 100), st.sampled_from(["dp", "zero-offload"])))
)
def test_labels_cover_no_other(given_):
    found = placed([Label(x, y, text) for x, y, text in given_])
    assert len(found) == len(given_)
    for i, a in enumerate(found):
        for b in found[:i]:
            first, second = sorted((a, b), key=lambda label: label.x)
            apart = first.x + CHARACTER * len(first.text) <= second.x
            assert apart or abs(a.y - b.y) >= LINE - 1e-6


def test_a_scale_keeps_its_ends():
    scale = Scale(0, 16, 190, 36)
    assert (scale.at(0), scale.at(16), scale.at(8)) == (190, 36, 113)


@pytest.mark.parametrize("id", PICTURES)
def test_shapes_are_inside_and_of_kinds_that_the_legend_has(id):
    picture = PICTURES[id]
    kinds = {kind for kind, _ in picture.legend}
    for chart in picture.charts:
        for bar in chart.bars:
            assert bar.x >= 0 and bar.x + bar.width <= chart.width
            assert bar.y >= 0 and bar.y + bar.height <= chart.height
        used = {bar.kind for bar in chart.bars} | {dot.kind for dot in chart.dots}
        assert used <= kinds or not kinds
        assert all(len(row) == len(chart.heads) for row in chart.rows)


def test_zero3_on_64_devices_keeps_a_quarter_of_a_byte_for_each_parameter():
    zero3 = next(chart for chart in PICTURES["memory"].charts if chart.title == "zero3")
    assert zero3.rows[-1] == ["64", "0.03125", "0.1875", "0.03125", "0.25"]


def test_the_brackets_are_those_of_the_page_of_measurements():
    shown = [row for chart in PICTURES["measured"].charts for row in map(list, chart.rows)]
    found = [
        [r.plan, f"{r.sequence:,}", f"{r.kept:.2f}", str(r.measured), f"{r.peak:.2f}"] for r in rows()
    ]
    assert sorted(shown) == sorted(found)
