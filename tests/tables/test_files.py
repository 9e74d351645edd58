"""`psem tables`: one clear line for what it cannot do; all files or none."""

import csv
import io
import os
import re
import signal

import pytest

from psem_model.tables import files as table_files
from psem_model.tables.files import TABLES, engine
from psem_model.tables.table import Style
from psem_model.text.errors import BadInput
from tests.support.examples import slow_but

FILES = {name + ending for name in TABLES for ending in (".tex", ".md", ".csv", ".html")} | {"all.tex"}


@pytest.fixture
def few(monkeypatch):
    """Only the tables that take no time."""
    monkeypatch.setattr(table_files, "TABLES", {name: TABLES[name] for name in ("memory", "peak")})


@pytest.fixture
def latex(monkeypatch, tmp_path):
    """latex(log, made): as if an engine were installed that writes this log, and a PDF or none."""

    def install(log="", made=True):
        script = f"#!/bin/sh\nprintf '%s\\n' '{log}' > all.log\n{'echo %PDF > all.pdf' * made}\n"
        (tmp_path / "pdflatex").write_text(script)
        (tmp_path / "pdflatex").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    return install


def names(folder):
    return {path.name for path in folder.iterdir()}


# --------------------------------------------------------------------------------- what is given
@pytest.mark.parametrize(
    ("args", "given", "expected"),
    [
        (["memry"], "'memry'", "nearest: memory"),
        (
            ["memory", "--format", "pdf"],
            "'pdf'",
            "expected one of text, json, markdown, latex, csv, html",
        ),
        (["memory", "--symbols", "phi=M"], "'phi'", "nearest: Psi"),
        (["memory", "paper", "memory"], "memory is given 2 times", "expected once"),
        (["memory", "--symbols", "P"], "'P'", "psi=M,N=d"),
        (["memory", "--symbols", "psi=$"], "'$'", "expected letters"),
        (["memory", "--symbols", r"psi=\mathcal{D}"], r"mathcal{D}' for 'psi'", "expected letters"),
        (["memory", "--symbols", "psi=N/2"], "'N/2' for 'psi'", "nearest: psi=N"),
        (["memory", "--symbols", "N_S=d"], "'N_S', which is in", "K, N, N_s, Psi; nearest: N_s"),
        (["memory", "--symbols", "psi=M,Psi=P"], "Psi is given twice", "expected once"),
        (["memory", "--symbols", "psi=N"], "both", "a symbol for each"),
        (
            ["communication", "activations", "--symbols", "m=a"],
            "m (micro-steps of a step) and a (heads)",
            "m=a,a=",
        ),
        (
            ["memory", "layers", "collectives", "--symbols", "psi=M,K=k"],
            "k would be both K",
            "Psi=M,K=k,k=",
        ),
        (["memory", "--symbols", "n=d"], "'n', which is in none of these tables", "nearest: N"),
        (["memory", "--symbols", "q=X"], "'q', which is in none of these tables", "one of K, N"),
        (["claims", "--symbols", "Psi=M"], "M would be both M (of the table claims)", "Psi=M,M="),
        (["schedules", "--symbols", "psi=M"], "'psi', which is in none", "expected no symbols"),
        (["memory", "--rows", "zero4"], "'zero4'", "expected one of dp"),
        (["memory", "--columns", "optimiser"], "'optimiser'", "nearest: optimizer"),
        (["memory", "--label", "a b"], "'a b'", "tab:memory"),
        (["memory", "peak", "--caption", "Ours"], "2 tables", "expected one table"),
        (["--rows", "dp"], "without a table", "expected one"),
        (["memory", "--rows", "dp,zero1,dp"], "--rows: dp is given 2 times", "expected once"),
        (["memory", "--columns", ""], "--columns: given ''", "expected names"),
        (["memory", "--rows", " ,"], "--rows: given ' ,'", "expected names"),
        (["memory", "--two-column"], "--two-column", "--format latex"),
        (["memory", "--preamble"], "--preamble", "expected it alone"),
        (["memory", "--all"], "'memory'", "one of the two"),
        (["memory", "--folder", "x"], "'x'", "expected --all too"),
        (["--all", "--format", "csv"], "--all", "one of the two"),
        (["memory", "--bytes", "mixed"], "'mixed'", "mixed-adam"),
        (["modes", "--bytes", "fp32-adam"], "'fp32-adam' with 'modes'", "one of paper, memory"),
        (["memory", "--label", "tab:m"], "--label: given without", "expected --format latex too"),
        (["memory", "--caption", "Ours", "--format", "csv"], "--caption: given with", "captions"),
        (["--symbols", "psi=M"], "--symbols: given without a table", "--all"),
        (["memory", "--divisble"], "'--divisble'", "nearest: --divisible"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(psem, args, given, expected):
    code, out, err = psem("tables", *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert given in err
    assert expected in err


def test_without_a_name_there_is_a_line_for_each_table(psem):
    code, out, err = psem("tables")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == [*TABLES]


@pytest.mark.parametrize("form", ["latex", "markdown", "csv"])
@pytest.mark.parametrize("padded", [True, False])
def test_a_table_is_printed_with_the_symbols_and_the_padding_asked_for(psem, form, padded):
    args = ["--symbols", "psi=P,N=d", "--exact" if padded else "--divisible"]
    code, out, err = psem("tables", "memory", "--format", form, *args)
    assert (code, err) == (0, "")
    assert "Psi" not in out
    assert ("ceil" in out) is padded


def test_what_an_element_takes_is_what_was_asked_for(psem):
    _, out, _ = psem("tables", "memory", "--bytes", "fp32-adam", "--format", "csv")
    rows = {row["strategy"]: row for row in csv.DictReader(io.StringIO(out))}
    assert rows["dp"]["parameters"] == "4*Psi"
    assert "zero-offload" not in rows  # it updates a copy of the weights, and there is none
    assert "zero-offload" in psem("tables", "memory", "--bytes", "fp32-adam")[1]


def test_a_symbol_goes_by_what_formulas_print_and_by_its_whole_name(psem):
    assert "N_s" in psem("tables", "memory", "--rows", "hsdp", "--format", "csv")[1]
    for name in ("N_s", "N_shard"):
        _, out, _ = psem("tables", "memory", "--symbols", f"{name}=D", "--format", "csv")
        assert "ceil(Psi/D)" in out


def test_what_an_error_on_symbols_suggests_is_taken(psem):
    asked = ["memory", "communication", "activations", "collectives", "layers", "--symbols"]
    code, _, err = psem("tables", *asked, "psi=M,N=d,K=k,m=a")
    assert code == 2
    suggested = err.strip().rpartition("--symbols ")[2]
    assert psem("tables", *asked, suggested)[0] == 0


def test_claims_are_printed_with_an_authors_symbols(psem):
    code, out, _ = psem("tables", "claims", "--symbols", "psi=W,N=R,s=S,a=H", "--format", "csv")
    by_id = {row["claim"]: row for row in csv.DictReader(io.StringIO(out))}
    assert code == 0
    assert by_id["M2"]["formula"] == "mem(ZeRO-1) = 4 W + K ceil(W/R) bytes"
    assert by_id["A1"]["formula"].startswith("TP: S b h(10 + 24/n + 5H S/(hn))")
    assert by_id["X7"]["caveat"].startswith("elements per device, layer, micro-batch; H heads, q key")
    assert by_id["A2"]["caveat"].startswith("H heads, q key-value heads")


def notes(psem, *args):
    """What is said under a table."""
    code, out, err = psem("tables", *args, "--format", "markdown")
    assert (code, err) == (0, "")
    return out.splitlines()[-1]


def test_a_sentence_with_a_formula_in_it_is_one_sentence(psem):
    for name in ("layers", "activations"):
        assert "an MLP of $4 h$ features. " in notes(psem, name)


@pytest.mark.slow
def test_what_is_said_is_of_the_rows_and_the_columns_that_are_there(psem):
    assert "fused-update: with one micro-step only." in notes(psem, "memory")
    assert "fused-update" not in notes(psem, "memory", "--rows", "dp,zero3")
    said = notes(psem, "paper", "--rows", "dp", "--columns", "strategy,P")
    assert said.startswith("P: parameters. R replicated, ")
    assert not re.search("optimizer|hsdp|Held|Bytes|Communication", said)
    assert "modes along replica / shard" in notes(psem, "paper", "--rows", "hsdp")
    assert "stays from forward to backward" in notes(psem, "placements", "--rows", "fsdp-hold")


def test_a_row_is_never_without_what_it_is_of(psem):
    _, out, _ = psem("tables", "memory", "--rows", "zero3", "--columns", "all", "--format", "csv")
    assert out == "strategy,all\nzero3,(K + 4)*ceil(Psi/N)\n"


@pytest.mark.parametrize("form", ["markdown", "latex", "html", "text"])
def test_every_function_in_a_formula_is_said_to_mean_something(psem, form):
    _, out, _ = psem("tables", "peak", "--format", form)
    assert "on each of" in out


def test_published_values_have_no_names_of_files_on_paper(psem):
    for form in ("markdown", "latex", "html"):
        _, out, _ = psem("tables", "published", "--format", form)
        assert not re.search("zero.fig1|device_mem|max_model|ELEMENTS|g p u s", out)
    _, out, _ = psem("tables", "published", "--format", "csv")
    rows = {row["value"]: row for row in csv.DictReader(io.StringIO(out))}
    assert rows["zero.table2.MP1.os.theory"]["predicted"] == "7.64"
    assert rows["zero.table2.MP4.os.theory"]["predicted"] == "30.4"
    assert rows["zero.table2.MP4.os.theory"]["of"].startswith(
        "GB of a device: 32, devices of a model: 4"
    )


@pytest.mark.slow
def test_slow_tables_say_how_far_they_are():
    for name in ("paper", "products"):
        told = []
        table_files.build_all([name], Style(), progress=told.append)
        assert len(told) > 5
        assert told == sorted(told)
        assert told[-2] < 1 == told[-1]


# ------------------------------------------------------------------------------ all files or none
@pytest.mark.slow
def test_every_table_is_written_in_every_format_with_a_document_of_all(psem, tmp_path):
    code, out, err = psem("tables", "--all", "--folder", tmp_path / "new" / "tables")
    assert (code, err) == (0, ""), err
    written = names(tmp_path / "new" / "tables")
    if engine() is None:
        assert "no all.pdf: install texlive-latex-extra for a LaTeX engine" in out
        assert written == FILES
    else:
        assert written == FILES | {"all.pdf"}
        assert (tmp_path / "new" / "tables" / "all.pdf").read_bytes().startswith(b"%PDF")
    document = (tmp_path / "new" / "tables" / "all.tex").read_text()
    assert all(rf"\input{{{name}}}" in document for name in TABLES)


def test_without_an_engine_one_line_names_the_package_and_an_older_document_is_gone(
    psem, few, monkeypatch, tmp_path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "all.pdf").write_text("of other tables")
    code, out, err = psem("tables", "--all", "--folder", tmp_path)
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == ["no all.pdf: install texlive-latex-extra for a LaTeX engine"]
    assert "all.pdf" not in names(tmp_path)
    assert "memory.tex" in names(tmp_path)


@pytest.mark.parametrize(
    "complaint",
    [
        r"Overfull \hbox (1.8pt too wide) in paragraph at lines 146--146",
        "LaTeX Warning: There were undefined references.",
        "LaTeX Warning: Label `tab:psem-memory multiply defined.",
        "Package xltabular Warning: something.",
        "! Undefined control sequence.",
        "pdfTeX warning (ext4): destination with the same identifier (name{table.3})",
    ],
)
def test_what_latex_complains_of_is_one_line_and_leaves_no_document(
    psem, few, latex, tmp_path, complaint
):
    latex(f"This is a log\n{complaint}")
    code, _, err = psem("tables", "--all", "--folder", tmp_path / "tables")
    assert (code, err) == (1, f"psem: all.tex: {complaint}\n")
    assert "memory.tex" in names(tmp_path / "tables")
    assert "all.pdf" not in names(tmp_path / "tables")


def test_an_engine_that_makes_no_document_is_one_line(psem, few, latex, tmp_path):
    latex(made=False)
    code, _, err = psem("tables", "--all", "--folder", tmp_path / "tables")
    assert (code, err) == (1, "psem: all.tex: pdflatex made no all.pdf\n")


def test_an_engine_that_does_not_end_is_one_line(psem, few, latex, monkeypatch, tmp_path):
    latex()
    (tmp_path / "pdflatex").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(table_files, "PATIENCE", 0.2)
    code, _, err = psem("tables", "--all", "--folder", tmp_path / "tables")
    assert (code, err) == (1, "psem: all.tex: pdflatex was not done after 0.2 seconds\n")


def test_an_interrupt_is_one_line_and_leaves_all_as_it_was(psem, few, monkeypatch, tmp_path):
    (tmp_path / "memory.tex").write_text("before")

    def interrupted(style):
        signal.raise_signal(signal.SIGINT)
        return TABLES["memory"](style)

    monkeypatch.setitem(table_files.TABLES, "memory", interrupted)
    code, out, err = psem("tables", "--all", "--folder", tmp_path)
    assert (code, out, err.strip()) == (130, "", "psem: interrupted")
    assert names(tmp_path) == {"memory.tex"}
    assert (tmp_path / "memory.tex").read_text() == "before"


def test_a_folder_that_cannot_be_written_is_one_line(psem, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for folder in ("file", "file/tables"):
        code, out, err = psem("tables", "--all", "--folder", tmp_path / folder)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "cannot write" in err
    assert names(tmp_path) == {"file"}


@pytest.mark.parametrize("name", slow_but(["all.tex"], ["memory.md", "all.tex", "all.pdf"]))
def test_a_folder_in_a_files_place_is_named_and_leaves_all_as_it_was(name, psem, few, tmp_path):
    (tmp_path / "memory.tex").write_text("before")
    (tmp_path / name).mkdir()
    code, out, err = psem("tables", "--all", "--folder", tmp_path)
    assert (code, out, err) == (2, "", f"psem: cannot write {tmp_path / name}: Is a directory\n")
    assert names(tmp_path) == {"memory.tex", name}
    assert (tmp_path / "memory.tex").read_text() == "before"


def test_a_file_that_cannot_be_written_leaves_all_as_it_was(tmp_path):
    (tmp_path / "a.tex").write_text("before")
    with pytest.raises(BadInput, match="cannot write"):
        table_files.write(tmp_path, {"a.tex": "after", "no/folder/b.tex": ""})
    assert names(tmp_path) == {"a.tex"}
    assert (tmp_path / "a.tex").read_text() == "before"
