"""Charts: round numbers on axes, labels that do not cover each other, and the numbers themselves."""

from functools import cache
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from psem_model.pages.charts import CHARACTER, LINE, Label, Scale, placed, ticks
from psem_model.pages.pictures import pictures
from psem_model.published.measured import rows
from spec.plans.strategies import STRATEGIES


@cache
def drawn():
    """The pictures of the page."""
    return {picture.id: picture for picture in pictures()}


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


def test_names_of_strategies_cover_no_point_of_the_frontier():
    (chart,) = drawn()["frontier"].charts
    names = [label for label in chart.labels if label.kind == "strong"]
    for label in names:
        wide = CHARACTER * len(label.text)
        start = label.x - wide if label.anchor == "end" else label.x
        for dot in chart.dots:
            right_or_left = not start < dot.x + 4 < start + wide + 8
            assert right_or_left or not label.y - 9 < dot.y + 4 < label.y + 2 + 8, (label, dot)
    assert {"zero3, fsdp", "dp", "zero-offload"} <= {label.text for label in names}


def test_a_narrow_picture_has_what_the_broad_one_has():
    for picture in drawn().values():
        for chart in (chart for chart in picture.charts if chart.narrow):
            assert len(chart.narrow.bars) == len(chart.bars)
            assert len(chart.narrow.dots) == len(chart.dots)
            assert chart.narrow.width < 360 < chart.width
            assert all(0 <= dot.x <= chart.narrow.width for dot in chart.narrow.dots)


def test_a_scale_keeps_its_ends():
    scale = Scale(0, 16, 190, 36)
    assert (scale.at(0), scale.at(16), scale.at(8)) == (190, 36, 113)


def test_shapes_are_inside_and_of_kinds_that_the_legend_has():
    for picture, chart in ((each, chart) for each in drawn().values() for chart in each.charts):
        kinds = {kind for kind, _ in picture.legend}
        for bar in chart.bars:
            assert bar.x >= 0 and bar.x + bar.width <= chart.width, picture.id
            assert bar.y >= 0 and bar.y + bar.height <= chart.height, picture.id
        used = {bar.kind for bar in chart.bars} | {dot.kind for dot in chart.dots}
        assert used <= kinds or not kinds, picture.id
        assert all(len(row) == len(chart.heads) for row in chart.rows), picture.id


def test_zero3_on_64_devices_keeps_a_quarter_of_a_byte_for_each_parameter():
    zero3 = next(chart for chart in drawn()["memory"].charts if "zero3" in chart.title)
    assert zero3.rows[-1] == ["64", "0.03125", "0.1875", "0.03125", "0.25"]


def test_every_strategy_has_its_memory_drawn_with_those_that_keep_as_much():
    shown = [name for chart in drawn()["memory"].charts for name in chart.title.split(", ")]
    assert sorted(shown) == sorted(STRATEGIES)
    hsdp = next(chart for chart in drawn()["memory"].charts if "hsdp" in chart.title)
    assert hsdp.rows[-1] == ["64", "0.0625", "0.375", "0.0625", "0.5"]  # 16 bytes over 32 devices


def test_no_number_of_a_timeline_covers_the_next():
    for chart in drawn()["pipelines"].charts:
        for each in (chart, chart.narrow):
            numbers = sorted((label.y, label.x) for label in each.labels if label.kind == "in")
            # two chunks in three parts each have no room on a phone
            assert len(numbers) >= 4 * 8 or (chart.title, each) == ("dualpipev", chart.narrow)
            beside = [
                after[1] - before[1] for before, after in pairwise(numbers) if before[0] == after[0]
            ]
            assert all(x >= 7 + 1 for x in beside)  # a bold digit of 10 units, and what is between two


def test_what_a_layer_keeps_is_said_in_words():
    for chart in drawn()["activations"].charts:
        assert not any("_" in label.text for label in chart.labels)
        assert len({row[0] for row in chart.rows}) == len(chart.rows)


def test_the_brackets_are_those_of_the_page_of_measurements():
    shown = [row for chart in drawn()["measured"].charts for row in map(list, chart.rows)]
    found = [
        [r.plan, f"{r.sequence:,}", f"{r.kept:.2f}", str(r.measured), f"{r.peak:.2f}"] for r in rows()
    ]
    assert sorted(shown) == sorted(found)
