"""A report says the same in every form: to readers, to programs, on paper."""

import csv
import io
import json
import re
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psem_model.text.papers import report as on_paper
from psem_model.text.report import (
    BYTES,
    ELEMENTS,
    ITSELF,
    VERSION,
    Axes,
    Column,
    Quantity,
    Report,
    Row,
    Section,
    put,
)
from psem_model.text.terminal import shown, text

NUMBER = re.compile(r"\d[\d,.]*\d|\d")
words = st.text("abcdefgh ", min_size=1, max_size=60).map(lambda t: " ".join(t.split()) or "a")
quantities = st.builds(
    Quantity,
    st.integers(0, 10**15),
    st.sampled_from([BYTES, ELEMENTS, ""]),
    st.none(),
    words | st.just(""),
)
cells = words | st.integers(0, 10**12) | quantities


@st.composite
def reports(draw):
    """A report of one section, titled or not, some of its columns wrapped."""
    width = draw(st.integers(1, 5))
    columns = tuple(
        Column(draw(words), draw(st.sampled_from([0, 1])) if i else 0, right=draw(st.booleans()))
        for i in range(width)
    )
    rows = draw(st.lists(st.tuples(words, *[cells] * (width - 1)), min_size=1, max_size=4))
    section = Section(draw(words), columns, tuple(Row(r) for r in rows), titled=draw(st.booleans()))
    return Report("predict", draw(words), (draw(words),), (section,))


def numbers(shown):
    return sorted(NUMBER.findall(shown))


@given(reports(), st.integers(40, 200))
def test_no_number_is_split_and_none_is_lost_however_narrow_the_terminal(found, width):
    assert numbers(text(found, width)) == numbers(text(found))


@given(reports(), st.integers(70, 200))
def test_no_line_is_wider_than_the_terminal(found, width):
    assert max(map(len, text(found, width).splitlines())) <= width


@given(reports(), st.integers(40, 200))
def test_every_word_is_there_however_narrow_the_terminal(found, width):
    def all_words(shown):
        return sorted(re.findall(r"[a-h]+", shown.replace("GB = 1e9 bytes, GiB", "")))

    if not any(s.titled for s in found.sections):  # titles are repeated where a table is turned
        assert all_words(text(found, width)) == all_words(text(found))


def one(*rows, key="", titled=False, **fields):
    columns = tuple(Column(f"c{i}", key=f"c{i}") for i in range(len(rows[0].cells)))
    return Report(
        "check", "title", sections=(Section("", columns, rows, key=key, titled=titled, **fields),)
    )


def test_programs_are_told_the_version_and_every_number_exactly():
    third = Quantity(Fraction(10, 3), BYTES, None, "why")
    found = one(Row(("a", third)), key="some.place").document()
    assert (found["report"], found["version"]) == ("check", VERSION)
    (record,) = found["some"]["place"]
    assert record["c1"] == {"exact": "10/3", "value": 10 / 3, "unit": "bytes", "provenance": "why"}
    assert json.loads(json.dumps(found)) == found


def test_rows_with_keys_are_told_by_them_and_meet_what_is_there():
    columns = (Column("what"), Column("size", key=ITSELF))
    rows = (Row(("a", 1), "resting.a"), Row(("b", 2), "peak"), Row(("c", 3)))
    section = Section("", columns, rows, key="memory")
    found = Report("predict", "", sections=(section,), data={"memory": {"stage": 0}}).document()
    assert found["memory"] == {"stage": 0, "resting": {"a": 1}, "peak": 2}


def test_what_is_told_twice_is_an_error():
    with pytest.raises(ValueError, match="peak is there twice"):
        put({"peak": 1}, "peak", 2)


def test_axes_are_a_list_for_programs_and_words_for_readers():
    found = one(Row((Axes(("dp", "tp")), Axes(()))), key="moves")
    assert found.document()["moves"] == [{"c0": ["dp", "tp"], "c1": ["host"]}]
    assert "over dp x tp" in text(found)
    assert "over the host link" in text(found)


def test_a_row_of_another_length_than_the_columns_is_an_error():
    with pytest.raises(ValueError, match="2 cells in 1 columns"):
        Section("t", (Column("a"),), (Row((1, 2)),))


def test_rows_that_are_not_shown_and_what_else_is_told_are_for_programs_only():
    rows = (Row((1,), told={"b": 222}), Row((333,), shown=False, told={"b": 4}))
    section = Section("", (Column("a", key="a"),), rows, key="x")
    found = Report("check", "", sections=(section,))
    assert not {"222", "333", "4"} & {*text(found).split()}
    assert found.document()["x"] == [{"a": 1, "b": 222}, {"a": 333, "b": 4}]


@given(reports())
def test_comma_separated_values_have_a_line_a_row_and_exact_numbers(found):
    (section,) = found.sections
    table = [line for line in on_paper(found, "csv").splitlines() if line and not line.startswith("#")]
    _, *read = csv.reader(table)
    assert len(read) == len(section.rows)
    for line, row in zip(read, section.rows, strict=True):
        exact = [str(c.value) for c in row.cells if isinstance(c, Quantity)]
        assert all(any(cell.split(" ")[0] == value for cell in line) for value in exact)


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
@given(found=reports())
def test_every_form_for_papers_can_be_written(form, found):
    assert on_paper(found, form).strip()


def test_without_colour_there_is_no_escape_and_with_it_a_marked_row_stands_out():
    found = one(Row(("a", 1), marked=True))
    assert "\x1b" not in text(found, 80)
    assert "\x1b[31m" in text(found, 80, colours=True)


@pytest.mark.parametrize(
    ("no_color", "term", "coloured"),
    [("", "xterm", True), ("1", "xterm", False), ("", "dumb", False)],
)
def test_colours_are_for_terminals_that_want_them(no_color, term, coloured, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", term)
    assert ("\x1b" in shown(one(Row(("a", 1))))) is coloured


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("width", [50, 60, 80])
def test_columns_with_long_titles_stand_side_by_side_by_letters(width):
    titles = ("fsdp(64), " * 3, "zero1(2) * tp+sp(8) * pp(4), again", "short")
    columns = (Column(""), *(Column(title.strip(), right=True) for title in titles))
    row = Row(("peak", *(Quantity(Fraction(n), BYTES) for n in (1, 2, 3))))
    found = Report("compare", "t", sections=(Section("", columns, (row,), titled=True),))
    lines = text(found, width).splitlines()
    assert max(map(len, lines)) <= width
    (head,) = (line.split() for line in lines if line.split()[:2] == ["A", "B"])
    assert head == ["A", "B", "C"]
    assert all(
        any(f"{letter}  {title.strip()}" in line for line in lines)
        for letter, title in zip("ABC", titles, strict=True)
    )
    assert any(line.split()[0] == "peak" and line.count(" B") == 3 for line in lines)
