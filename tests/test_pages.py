"""README and docs/: their commands run, their output is what is printed, the README is short."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from proofs.registry import ROOT, claims
from psem_model.text import places

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
SLOW = ("make ", "psem audit", "psem tables paper")  # how commands begin that take long
LONG = ("CONFORMANCE", "GUIDE")  # pages of so many commands that they take long together
TIME = re.compile(r" +[\d.]+ ms|(?<= in )[\d.]+ s")
LONGEST = 25  # lines of output under one command of README


def blocks(page, *kinds):
    """The code blocks of a page, in order: what they are, and their text."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [(kind, text) for kind, text in found if kind in kinds]


def sessions(text):
    """The commands of a console block, each with the lines of output that are shown."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        end = next(n for n in range(1, len(lines) + 1) if complete("\n".join(lines[:n])))
        yield "\n".join(lines[:end]), lines[end:]


def complete(command):
    """Whether no quotation is open at the end of a command."""
    try:
        return bool(shlex.split(command))
    except ValueError:
        return False


def fits(shown, printed):
    """Whether lines are those that were printed, where `...` stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def timeless(lines):
    return [TIME.sub(" (time)", line).rstrip() for line in lines]


@pytest.fixture
def shell(psem, tmp_path, monkeypatch):
    """shell(command) -> (exit code, output), in a folder that has the examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "BUILD", tmp_path / "build")
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))

    def run(command):
        command = re.sub(r"^make (prove|audit)$", r"psem \1", command)
        if not command.startswith("psem "):
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr
        before, _, file = command.partition(" > ")
        code, out, err = psem(*shlex.split(before)[1:])
        if file:
            Path(file).write_text(out)
            out = ""
        return code, out + err

    return run


def steps(page):
    """What a page does, in order: a command with its output, if that is shown; a diff; Python."""
    for kind, text in blocks(page, "console", "sh", "diff", "python"):
        if kind == "console":
            yield from (("command", *session) for session in sessions(text))
        elif kind == "sh":
            yield from (("command", command, None) for command in text.splitlines())
        else:
            yield kind, text, None


def takes_long(kind, command, shown):
    """A step that proves much, or reads what was then written."""
    is_slow = command.startswith(SLOW) or "build/" in command or "--prove" in command
    return kind == "command" and is_slow


def follow(step, shell):
    """Do a step of a page: what it prints is what is shown."""
    kind, text, shown = step
    if kind == "diff":
        subprocess.run(["git", "apply", "-p0", "-"], input=text, text=True, check=True)
    elif kind == "python":
        exec(text, {})
    else:
        code, printed = shell(text)
        if shown is None:
            assert code == 0, (text, printed)
        else:
            assert fits(timeless(shown), timeless(printed.splitlines())), (text, printed)


QUICK = [pytest.param(page, marks=[pytest.mark.slow] * (page.stem in LONG)) for page in PAGES]


@pytest.mark.parametrize("page", QUICK, ids=lambda page: page.stem)
def test_commands_print_what_is_shown(page, shell):
    for step in steps(page):
        if not takes_long(*step):
            follow(step, shell)


WITH_SLOW_STEPS = [page for page in PAGES if any(takes_long(*step) for step in steps(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_SLOW_STEPS, ids=lambda page: page.stem)
def test_slow_commands_print_what_is_shown_after_those_before_them(page, shell, proved_once):
    for step in steps(page):
        follow(step, shell)


def test_dots_stand_for_lines_and_nothing_else():
    assert fits(["a", "...", "d"], ["a", "b", "c", "d"])
    assert not fits(["a", "d"], ["a", "b", "d"])
    assert not fits(["a", "..."], ["b", "a"])
    assert not fits(["a.c"], ["abc"])


def test_the_readme_is_short_and_so_is_each_output():
    assert len(README.read_text().splitlines()) <= 200
    for _, text in blocks(README, "console"):
        assert all(len(shown) <= LONGEST for _, shown in sessions(text))


def test_the_readme_has_every_page_and_ten_claims_in_the_registrys_words():
    text = README.read_text()
    assert {page.name for page in PAGES[1:]} <= set(re.findall(r"\(docs/(\w+\.md)\)", text))
    ids = {claim.id for claim in claims()}
    told = re.findall(r"^\* \[(\w+)\]\(docs/CLAIMS\.md#(\w+)\)", text, re.MULTILINE)
    assert len(told) == 10
    assert all(name in ids and place == name.lower() for name, place in told)


def test_the_readmes_totals_are_the_registrys():
    """Quickly; that `make prove` prints them is a slow test."""
    text, verdicts = README.read_text(), [claim.expected for claim in claims()]
    proved, refuted = verdicts.count("proved"), verdicts.count("refuted")
    assert f"{len(verdicts)} claims: {proved} proved, {refuted} refuted;" in text
    assert f"There are {len(verdicts)} ([docs/CLAIMS.md](docs/CLAIMS.md)); {proved} are proved" in text


def test_the_pythons_that_are_tested_are_those_that_it_installs_on():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    marks = (each.rpartition(" :: ") for each in project["classifiers"])
    tested = [version for of, _, version in marks if of.endswith("Python")]
    after = int(tested[-1].removeprefix("3.")) + 1
    assert project["requires-python"] == f">={tested[0]},<3.{after}"
    for page in (README, ROOT / "CONTRIBUTING.md"):
        assert f"It needs Python {', '.join(tested[:-1])} or {tested[-1]}" in page.read_text()
    assert f"(3, {after})" in (ROOT / "Makefile").read_text()


def anchors(page):
    """The places of a page that a link can name: its headings, as GitHub spells them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target, place in re.findall(r"\]\(([^)#:]*)#?([\w-]*)\)", page.read_text()):
            other = page.parent / target if target else page
            assert other.exists(), (page.name, target)
            assert not place or place in anchors(other), (page.name, target, place)
