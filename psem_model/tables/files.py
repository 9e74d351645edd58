"""All tables: by name, as files of a folder, and as one document."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from psem_model.tables import collectives, evidence, models, paper, states
from psem_model.tables.chosen import ALL_OF_IT, Chosen
from psem_model.tables.pages import in_two_columns
from psem_model.tables.symbols import renamed, require_apart, resolved
from psem_model.tables.table import Style
from psem_model.text.errors import UserError, choose
from psem_model.text.files import require_no_folder, writing
from psem_model.text.latex import NEEDS
from psem_model.text.papers import FORMATS
from psem_model.text.report import Section

TABLES: dict[str, Callable[[Style], Section]] = {
    "paper": paper.paper,
    "placements": states.placements,
    "modes": states.mode_meanings,
    "memory": states.memory,
    "peak": states.peak,
    "communication": states.communication,
    "collectives": collectives.collectives,
    "layers": models.layers,
    "activations": models.activations,
    "pipelines": models.pipelines,
    "products": models.products,
    "models": models.packaged_models,
    "claims": evidence.claims_table,
    "compositions": evidence.compositions,
    "schedules": evidence.schedules,
    "published": evidence.published_table,
    "formulas": evidence.published_formulas,
}
# about how long a table takes, in seconds; others take less than one
SECONDS = {"paper": 8, "activations": 1, "products": 5, "compositions": 2, "schedules": 2}
SHORT, PDF = 0.3, 4  # of others, of the document of all
OF_BYTES = ("paper", "memory", "peak", "communication")  # what an element takes changes them
DOCUMENT = "all"


def known(name: str) -> str:
    """A table's name. Raises BadInput for another."""
    return choose("table", name, TABLES)


def seconds(name: str) -> float:
    """About how long a table takes."""
    return SECONDS.get(name, SHORT)


def build(name: str, style: Style, chosen: Chosen = ALL_OF_IT) -> Section:
    """A table or a part of it, with the symbols of a style."""
    return build_all([name], style, chosen)[0]


def build_all(
    names: Iterable[str],
    style: Style,
    chosen: Chosen = ALL_OF_IT,
    progress: Callable[[float], None] = lambda _: None,
) -> list[Section]:
    """Tables or parts of them, with the symbols of a style, in which no two quantities share one.

    `progress`: told which share is done. Raises BadInput.
    """
    names, whole, before = [*names], list[Section](), 0.0
    total = sum(map(seconds, names))
    for name in names:

        def tell(share: float, before: float = before, of: float = seconds(name)) -> None:
            progress((before + share * of) / total)

        tell(0)
        whole.append(TABLES[name](replace(style, tell=tell)))
        tell(1)
        before += seconds(name)
    style, asked = resolved(style, whole), [chosen.of(table) for table in whole]
    require_apart(style, asked)
    return [renamed(table, style) for table in asked]


def texts(
    style: Style,
    progress: Callable[[float], None] = lambda _: None,
    two_columns: bool = False,
) -> dict[str, str]:
    """The files of all tables, in all formats, and of the document that includes them."""
    found: dict[str, str] = {}
    for name, made in zip(TABLES, build_all(TABLES, style, progress=progress), strict=True):
        found |= {name + form.suffix: form.write(made) for form in FORMATS.values()}
        if two_columns:
            found[f"{name}.tex"] = "\n".join(map(FORMATS["latex"].write, in_two_columns(made)))
    return {**found, f"{DOCUMENT}.tex": document(two_columns)}


def document(two_columns: bool = False) -> str:
    """All tables, one after the other."""
    name = "two-columns.tex" if two_columns else "document.tex"
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    inputs = "\n".join(rf"\input{{{each}}}" for each in TABLES)
    return text.replace("NEEDS", ",".join(NEEDS)).replace("TABLES", inputs)


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """All files or none. An older document is removed: it would be of other tables.

    Raises BadInput where they cannot be written, or a folder is in a file's place.
    """
    document = folder / f"{DOCUMENT}.pdf"
    for path in (*(folder / name for name in files), document):
        require_no_folder(path)
    with writing(folder), tempfile.TemporaryDirectory(dir=folder, prefix=".tables-") as scratch:
        _put(Path(scratch), files)
        for name in files:
            os.replace(Path(scratch) / name, folder / name)
    if document.name not in files:
        document.unlink(missing_ok=True)


def _put(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


# --------------------------------------------------------------------------------------- the PDF
ENGINES = {
    "pdflatex": ("-interaction=nonstopmode", "-no-shell-escape"),
    "lualatex": ("-interaction=nonstopmode", "--no-shell-escape"),
    "xelatex": ("-interaction=nonstopmode", "-no-shell-escape"),
    "tectonic": ("--untrusted", "--keep-logs"),
}
PACKAGE = "texlive-latex-extra"  # of Debian and Ubuntu, with pdflatex and the packages that tables need
RUNS, PATIENCE = 5, 120  # until references are settled; seconds
SETTLED = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "max_print_line": "1000"}
COMPLAINT = re.compile(
    r"^(?:!|(?:LaTeX|Package|Class)[\w ]* Warning:|pdfTeX warning|(?:Over|Under)full \\[hv]box).*",
    re.MULTILINE,
)
RERUN = re.compile(r"Rerun to get|Rerun LaTeX|have changed")


class LatexError(UserError):
    """What LaTeX complains of, in one line."""


def engine() -> str | None:
    """A LaTeX engine that is installed."""
    return next((name for name in ENGINES if shutil.which(name)), None)


def typeset(files: Mapping[str, str | bytes], program: str) -> bytes:
    """The document of all tables as PDF, compiled in a folder of its own.

    Raises LatexError for an error, a warning, an undefined reference or an overfull box.
    """
    with tempfile.TemporaryDirectory() as scratch:
        with writing(Path(scratch)):
            _put(Path(scratch), files)
        log = ""
        for _ in range(RUNS):
            log = _run(program, Path(scratch))
            if not RERUN.search(log):
                break
        complaints = COMPLAINT.findall(log)
        made = Path(scratch) / f"{DOCUMENT}.pdf"
        if complaints or not made.exists():
            complaint = complaints[0] if complaints else f"{program} made no {DOCUMENT}.pdf"
            raise LatexError(f"{DOCUMENT}.tex: {complaint}")
        return made.read_bytes()


def _run(program: str, scratch: Path) -> str:
    """Run an engine once: its log."""
    command = [program, *ENGINES[program], f"{DOCUMENT}.tex"]
    environment, none = {**os.environ, **SETTLED}, subprocess.DEVNULL
    try:
        subprocess.run(
            command,
            cwd=scratch,
            env=environment,
            timeout=PATIENCE,
            stdin=none,
            stdout=none,
            stderr=none,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LatexError(f"{DOCUMENT}.tex: {program} was not done after {PATIENCE} seconds") from None
    log = scratch / f"{DOCUMENT}.log"
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
