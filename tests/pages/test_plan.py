"""`--html` of predict, compare and check: the same report, as a page that stands alone."""

import re

import pytest

from tests.support.command import without
from tests.support.html import outside, read

PLAN = ("--psi", "70B", "--devices", 64)
ASKED = {
    "predict": ("predict", "zero3", *PLAN, "--unit", "1B"),
    "a model": ("predict", "zero1(4) * tp(2)", "--config", "llama-2-7b", "--sequence", 4096),
    "compare": ("compare", "zero1", "zero3", *PLAN),
    "accepted": ("check", "zero2"),
}


@pytest.fixture
def written(psem, tmp_path):
    """written(...) -> (exit code, the page that the command wrote)."""

    def write(*args):
        file = tmp_path / "page.html"
        code, out, err = psem(*args, "--html", file)
        text = file.read_text()
        assert (out, err) == (f"{file}: {len(text.encode()):,} bytes\n", "")
        return code, read(text)

    return write


@pytest.mark.parametrize("args", ASKED.values(), ids=ASKED)
def test_the_page_stands_alone_and_the_exit_code_is_the_reports(args, psem, written):
    code, page = written(*args)
    assert code == psem(*args)[0] == 0
    assert outside(page) == []


@pytest.mark.parametrize("args", ASKED.values(), ids=ASKED)
def test_every_figure_that_is_printed_is_on_the_page(args, psem, written):
    _, page = written(*args)
    printed = psem(*args)[1]
    found = re.findall(r"[\d.,]+ (?:[GMk]i?B|B|elements)\b", printed)
    assert found or "check" in args
    assert [each for each in found if each not in page.text] == []


def test_the_text_of_every_row_is_on_the_page(psem, written):
    _, page = written(*ASKED["compare"])
    heads = [line.split("  ")[1].strip() for line in psem(*ASKED["compare"])[1].splitlines()[2:-2]]
    assert all(head in page.text for head in heads)


def test_a_rejection_has_its_run_line_by_line(psem, written):
    code, page = written("check", "examples/mean_twice.toml")
    assert code == 1
    assert "✗ rejected" in page.one("h1").text
    assert len([*page.all("tr", class_="first-wrong")]) == 1


def test_of_a_models_step_the_run_of_each_wrong_schedule_is_on_the_page(psem, tmp_path, written):
    _, out, _ = psem("derive", "zero1(2) * tp(2)")
    file = tmp_path / "step.toml"
    file.write_text(without('{ op = "all_gather", source = "parameters"')(out))
    code, page = written("check", file)
    assert code == 1
    assert [*page.all("tr", class_="first-wrong")]


def test_names_of_files_are_escaped(psem, tmp_path, written):
    _, out, _ = psem("derive", "zero2")
    file = tmp_path / "<b>&.toml"
    file.write_text(out)
    _, page = written("check", file)
    assert "<b>&.toml" in page.one("h1").text


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("--html", "page.html", "--json"), "one of the two"),
        (("--html", "missing/page.html"), "cannot write missing/page.html"),
        (("--html", "plan.pdf"), "nearest: plan.html"),
        (("--html", "a\0.html"), "expected a file that ends in .html"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_line(more, expected, psem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = psem(*ASKED["predict"], *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert expected in err
    assert not [*tmp_path.iterdir()]


def test_a_folder_is_not_written_over(psem, tmp_path):
    (tmp_path / "page.html").mkdir()
    code, out, err = psem(*ASKED["predict"], "--html", tmp_path / "page.html")
    assert (code, out) == (2, "")
    assert err.endswith("page.html: Is a directory\n")
