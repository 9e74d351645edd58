"""Tables and reports in LaTeX: on the page of an article, in one column and in two."""

import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from itertools import groupby, pairwise

import pytest

from psem_model.tables import files as table_files
from psem_model.tables.files import TABLES, build, engine, texts, typeset
from psem_model.tables.pages import in_two_columns
from psem_model.tables.table import Style
from psem_model.text.latex import NEEDS, preamble
from psem_model.text.report import meanings
from psem_model.text.report import parts as cell_parts
from tests.support.examples import few


def article(of_class, names):
    """A paper of the class's own width, 345 pt at 10 pt, with tables and a link to each."""
    packages = ",".join((*NEEDS, "hyperref", "cleveref"))
    return (
        f"\\documentclass{of_class}\n\\usepackage{{{packages}}}\n\\begin{{document}}\n"
        + "\\title{Tables}\\author{A. Author}\\maketitle\n"
        + "".join(f"\\input{{{name}}}\\clearpage\n" for name in names)
        + " ".join(rf"\cref{{tab:psem-{name}}}" for name in names)
        + "\n\\end{document}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", few(["12pt", "11pt", "10pt"]))
def test_every_table_fits_the_text_of_a_default_article(files, size):
    if program := engine():  # raises LatexError for what is too wide or too high, or not there
        typeset({**files, "all.tex": article(f"[{size}]{{article}}", TABLES)}, program)


CLASSES = {
    "article": "[twocolumn]{article}",
    "IEEEtran": "[10pt,journal]{IEEEtran}",
    "acmart": "[sigconf,nonacm]{acmart}",
}
# what it says of a machine's fonts, and of a paper that has only tables
OF_ACM = r"^Class acmart Warning: (?:You do not have|ACM keywords|CCS concepts)"


LLAMA = ("--model", "llama-3-70b", "--sequence", "8192")
REPORTS = [
    ("predict", "zero1(2) * tp+sp(8) * pp(4)", *LLAMA),
    ("compare", "zero1(16) * tp(8)", "zero3(128)", "zero1(4) * tp(8) * pp(4)", *LLAMA),
    ("predict", "pp(4) * dp(1)", "--order", "zb-h1", "--accumulate", "16", *LLAMA),
    ("predict", "pp(4) * tp(2)", "--order", "dualpipev", "--accumulate", "16", *LLAMA),
    ("predict", "hsdp", "--psi", "70e9", "--devices", "8x8", "--unit", "1e9"),
    ("predict", "zero3", "--psi", "70e9", "--devices", "64"),
]


@pytest.mark.parametrize("asked", few(REPORTS), ids=lambda asked: " ".join(asked[:2]))
def test_every_report_fits_the_text_of_a_default_article(psem, asked):
    code, out, err = psem(*asked, "--format", "latex")
    assert (code, err) == (0, "")
    captions = re.findall(r"\\caption\{([^:}]*)", out)
    assert len({*captions}) == len(captions) > 0
    assert not re.search(r"& \d{4,} ", out)  # all have commas
    whole = f"\\documentclass{{article}}{preamble()}\\begin{{document}}{out}\\end{{document}}"
    if program := engine():
        typeset({"all.tex": whole}, program)


def test_numbers_of_a_report_are_set_to_the_right_under_their_unit(psem):
    _, out, _ = psem(*REPORTS[0], "--format", "latex")
    stages = out[out.index("caption{Stages") :]
    assert r"\begin{tabular}{@{}rrrrrrrrrr@{}}" in stages
    assert r"\shortstack[r]{resting,\\GB}" in stages
    assert "2,270,756,864 & 1 & 22.7076 &" in stages


def test_what_fits_one_column_of_two_is_a_float_of_one(psem):
    asked = ["--two-column", "--format", "latex"]
    _, out, _ = psem("tables", "memory", "--rows", "dp,zero3", "--columns", "strategy,all", *asked)
    assert r"\begin{table}" in out
    whole = (
        f"\\documentclass[twocolumn]{{article}}{preamble()}\\begin{{document}}{out}\\end{{document}}"
    )
    if program := engine():
        typeset({"all.tex": whole}, program)
    assert r"\begin{table*}" in psem("tables", "memory", *asked)[1]


def test_mathematics_in_a_caption_is_an_authors_own(psem):
    asked = ("memory", "--caption", "What rests of $x_1$, 5% & $")
    assert (
        r"\caption{What rests of $x_1$, 5\% \& \$.}" in psem("tables", *asked, "--format", "latex")[1]
    )
    assert r"**What rests of $x_1$, 5% & \$.**" in psem("tables", *asked)[1]
    html = psem("tables", *asked, "--format", "html")[1]
    assert "What rests of <i>x</i><sub>1</sub>, 5% &amp; $" in html


@pytest.mark.parametrize("name", ["communication", "formulas", "published", "claims"])
def test_the_parts_of_a_table_have_all_its_rows_and_say_what_is_said_of_them_once(name):
    whole = build(name, Style())
    parts = in_two_columns(whole)
    assert [row for part in parts for row in part.rows] == [*whole.rows]
    assert [part.continues for part in parts] == [*range(len(parts))]
    assert Counter(note for part in parts for note in part.notes) == Counter(whole.notes)
    told = set()
    for part in parts:
        formulas = [c for row in part.rows for cell in row.cells for c in cell_parts(cell)]
        told |= {symbol for symbol, _ in meanings(part)}
        used = {str(s) for c in formulas for s in getattr(c, "free_symbols", ())}
        assert used & {*(whole.legend or {})} <= told
    if name == "communication":
        groups = [row.cells[0] for part in parts for row in part.rows]
        assert len([*groupby(groups)]) == len({*groups})
        ends = [(a.rows[-1].cells[0], b.rows[0].cells[0]) for a, b in pairwise(parts)]
        assert all(end != begin for end, begin in ends)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_every_table_is_a_float_or_several_in_two_columns(name, monkeypatch):
    program = engine()
    if not (program and found(f"{name}.cls")) or (name == "IEEEtran" and not found("ptmr7t.tfm")):
        pytest.skip(f"no LaTeX engine with {name} is here")
    files = in_own_symbols()
    assert not any("xltabular}{" in text for text in files.values())
    if name == "acmart":
        only = table_files.COMPLAINT.pattern.replace("^(?:", rf"(?!{OF_ACM})^(?:", 1)
        monkeypatch.setattr(table_files, "COMPLAINT", re.compile(only, re.MULTILINE))
    typeset({**files, "all.tex": article(CLASSES[name], TABLES)}, program)


FREE = {"M": "W", "d": "D", "k": "z"}  # what the symbols that are taken stood for


@cache
def in_own_symbols():
    """The files of all tables in two columns."""
    return texts(Style(symbols={"Psi": "M", "N": "d", "K": "k"} | FREE), two_columns=True)


def found(file):
    """Whether LaTeX has a file."""
    return subprocess.run(["kpsewhich", file], stdout=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("two_columns", [False, True])
def test_all_text_is_inside_the_margins_and_of_six_points_or_more(tmp_path, two_columns, files):
    program = engine()
    if not (program and shutil.which("pdftotext")):
        pytest.skip("no LaTeX engine, or no poppler, is here")
    files = texts(Style(), two_columns=True) if two_columns else files
    whole = files["all.tex"]
    if two_columns:
        geometry = r"\usepackage[textwidth=410bp,hcentering]{geometry}\begin{document}"
        whole = article("[twocolumn]{article}", TABLES).replace(r"\begin{document}", geometry)
    (tmp_path / "all.pdf").write_bytes(typeset({**files, "all.tex": whole}, program))
    boxes = run_on(tmp_path, "pdftotext", "-bbox", "all.pdf", "-")
    fonts = run_on(tmp_path, "pdffonts", "all.pdf")
    page = float(re.search(r'<page width="([\d.]+)"', boxes)[1])
    margin = (page - 410) / 2 if two_columns else 2 * 72 / 2.54
    words = re.findall(r'<word xMin="([\d.]+)".*?xMax="([\d.]+)"', boxes)
    sides = [(float(left), float(right)) for left, right in words]
    assert len(sides) > 1000
    assert min(left for left, _ in sides) >= margin - 2
    assert max(right for _, right in sides) <= page - margin + 2
    sizes = [int(size) for size in re.findall(r"\+CM[A-Z]+(\d+)\b", fonts)]  # each is drawn at its size
    assert min(sizes) >= 6


def run_on(folder, *command):
    """What a program prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.mark.slow
def test_the_document_has_every_table(files):
    references = " ".join(rf"\ref{{tab:psem-{name}}}" for name in TABLES)
    whole = files["all.tex"].replace(r"\end{document}", references + r"\end{document}")
    if program := engine():
        typeset({**files, "all.tex": whole}, program)


@pytest.fixture(scope="module")
def files():
    """The files of all tables."""
    return texts(Style())
