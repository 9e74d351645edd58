"""What tables say stands once, where claims and predictions have it: change that, and they change."""

import csv
import io
import json
import os
import re
import time
from contextlib import contextmanager

import pytest

from proofs.registry import ROOT, claims
from psem_model.published.entries import published
from psem_model.tables import evidence as table_evidence
from psem_model.tables.files import OF_BYTES, TABLES, build
from psem_model.tables.table import Style
from psem_model.text.cells import in_line
from psem_model.text.papers import FORMATS
from spec.models import transformer
from spec.models.states import POLICIES
from tests.support.broken import copied, python, with_another
from tests.support.examples import few, slow_but

# ------------------------------------------------------------------------- every rule stands once
MUTANTS = [
    # (what is changed, file, what stands there, what is put there, table, row, column, before, after)
    (
        "states take twice as much",
        "spec/costs/memory.py",
        "viewed + sizes.at_rest(state, rest.sharded) * sizes.policy.of(state)",
        "viewed + 2 * sizes.at_rest(state, rest.sharded) * sizes.policy.of(state)",
        ("memory", "zero1", "optimizer"),
        ("K*ceil(Psi/N)", "2*K*ceil(Psi/N)"),
    ),
    (
        "a ring goes one step further",
        "spec/devices/collectives.py",
        "return n - 1",
        "return n",
        ("communication", "dp", "elements"),
        ("2*(N - 1)*ceil(Psi/N)", "2*N*ceil(Psi/N)"),
    ),
    (
        "a strategy is another placement",
        "spec/plans/strategies.py",
        '"zero1": on_batch("R", "S", "R", "S")',
        '"zero1": on_batch("R", "S+O", "R", "S")',
        ("placements", "zero1", "optimizer"),
        ("S", "S+O"),
    ),
    (
        "a mode means something else",
        "spec/plans/modes.py",
        '"a full copy on each device"',
        '"two copies"',
        ("modes", "R replicated", "rests as"),
        ("a full copy on each device", "two copies"),
    ),
    (
        "what is gathered rests whole",
        "spec/plans/modes.py",
        "return mode in (S, GATHERED)",
        "return mode is S",
        ("modes", "S* gathered", "keeps"),
        ("ceil(Psi/N)", "Psi"),
    ),
    (
        "tensor parallelism leaves the MLP whole",
        "spec/plans/model_strategies.py",
        "TENSOR = (KV_HEADS, *INSIDE_MLPS, VOCABULARY)",
        "TENSOR = (KV_HEADS, VOCABULARY)",
        ("layers", "tp", "collectives"),
        ("2 all_reduce", "1 all_reduce"),
    ),
    (
        "what stages have is called otherwise",
        "spec/models/transformer.py",
        '"embedding", "layer", "head"',
        '"embedding", "block", "head"',
        ("placements", "pp", "parameters"),
        ("S(layer)", "S(block)"),
    ),
    (
        "a claim is expected to be refuted",
        "proofs/claims.toml",
        'id = "C1"',
        'id = "Q1"',
        ("claims", "Q1", "expected verdict"),
        (None, "proved"),
    ),
    (
        "an unsafe schedule is mended",
        "psem_model/examples/unsafe_mean_twice.toml",
        'by = "1/sequence/micro_steps"',
        'by = "1/micro_steps"',
        ("compositions", "unsafe_mean_twice", "verdict"),
        ("rejected", "accepted"),
    ),
    (
        "another value was published",
        "psem_model/published/published.toml",
        'id = "zero.fig1.os", value = 31.4',
        'id = "zero.fig1.os", value = 31.5',
        ("published", "zero.fig1.os", "agrees"),
        ("yes", "no"),
    ),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project, of which files may be changed."""
    return copied(tmp_path_factory.mktemp("copy"))


@contextmanager
def changed(folder, file, rule, other):
    """A file of a copy with another rule in it."""
    text = (ROOT / file).read_text()
    try:
        (folder / file).write_text(with_another(rule, other, text))
        yield
    finally:
        (folder / file).write_text(text)


def run(folder, *args):
    """`psem`, of a copy of the project."""
    return python(folder, "-m", "psem_model", *args)


def cell(folder, name, key, column):
    """A cell of a table of a project, by what its row begins with, or has second."""
    done = run(folder, "tables", name, "--format", "csv")
    assert done.returncode == 0, done.stderr
    found = [row for row in csv.DictReader(io.StringIO(done.stdout)) if key in [*row.values()][:2]]
    return found[0][column] if found else None


IN_A_QUICK_RUN = {"modes", "claims"}  # tables
QUICK_MUTANTS = [mutant for mutant in MUTANTS if mutant[4][0] in IN_A_QUICK_RUN]


@pytest.mark.parametrize(
    ("what", "file", "rule", "other", "where", "cells"), slow_but(QUICK_MUTANTS, MUTANTS)
)
def test_a_change_of_what_stands_once_is_seen_in_its_table(copy, what, file, rule, other, where, cells):
    before, after = cells
    with changed(copy, file, rule, other):
        assert cell(copy, *where) == after, what
    assert before != after


RULES_BEHIND_A_CLAIM = [
    # (file, rule, another, the claim that then fails)
    ("spec/plans/modes.py", "return mode in (S, GATHERED)", "return mode is S", "M4"),
    ("spec/devices/collectives.py", '"all_gather", _S, _R,', '"all_gather", _P, _R,', "E10"),
    ("spec/devices/collectives.py", '"reduce_scatter", _P, _S,', '"reduce_scatter", _P, _R,', "E10"),
    (
        "spec/devices/collectives.py",
        '"all_reduce",\n    _P,\n    _R,',
        '"all_reduce",\n    _P,\n    _S,',
        "E10",
    ),
    (
        "spec/devices/collectives.py",
        '"all_to_all",\n    _S,\n    _S,',
        '"all_to_all",\n    _S,\n    _R,',
        "E10",
    ),
]


@pytest.mark.parametrize(
    ("file", "rule", "other", "claim"), slow_but(RULES_BEHIND_A_CLAIM[:1], RULES_BEHIND_A_CLAIM)
)
def test_what_tables_say_of_modes_and_layouts_is_proved(copy, file, rule, other, claim):
    with changed(copy, file, rule, other):
        done = run(copy, "prove", claim)
    assert (done.returncode, f"NOT as expected: {claim}" in done.stdout) == (1, True), done.stdout


@pytest.mark.slow
def test_a_lower_bound_that_is_not_proved_is_one_line_and_no_table(copy, tmp_path):
    rule = '"every device receives the sum of its slice", ring_steps'
    with changed(copy, "spec/devices/collectives.py", rule, rule.replace("ring_steps", "lambda n: n")):
        for args in (["collectives"], ["--all", "--folder", str(tmp_path)]):
            done = run(copy, "tables", *args)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
            assert re.search(r"claim \w+: failed, expected proved", done.stderr)
    assert [*tmp_path.iterdir()] == []


def test_lower_bounds_are_those_of_the_claim(tables):
    bounds = {row["collective"]: row["lower bound"] for row in tables["collectives"]}
    assert {name for name, bound in bounds.items() if bound == "not claimed"} == {"all_to_all"}


# ---------------------------------------------------------------------------- verdicts of claims
@pytest.fixture
def report(monkeypatch, tmp_path):
    """report(ago, **changes): as if make prove had ended that many seconds ago, having taken one."""

    def put(ago, **changes):
        entries = [{"id": c.id, "verdict": changes.get(c.id, c.expected)} for c in claims()]
        path = tmp_path / "report.json"
        path.write_text(json.dumps({"claims": entries, "seconds": 1.0}))
        os.utime(path, (time.time() - ago,) * 2)
        monkeypatch.setattr(table_evidence, "REPORT", path)

    return put


def verdicts(psem):
    _, out, _ = psem("tables", "claims", "--format", "csv")
    header, *found = csv.reader(io.StringIO(out))
    return header[2], {row[1]: row[2] for row in found}


LATER, LONG_AGO = -60, 10**9


def test_verdicts_are_those_of_the_last_proof_run(psem, report):
    report(LATER, C1="failed")
    expected = {claim.id: claim.expected for claim in claims()}
    assert verdicts(psem) == ("verdict", {**expected, "C1": "failed"})


def test_verdicts_of_an_older_or_no_proof_run_are_called_expected(psem, report, monkeypatch):
    report(LONG_AGO, C1="failed")
    expected = "expected verdict", {claim.id: claim.expected for claim in claims()}
    assert verdicts(psem) == expected
    monkeypatch.setattr(table_evidence, "REPORT", ROOT / "no" / "report.json")
    assert verdicts(psem) == expected


def test_verdicts_of_a_proof_run_of_other_claims_are_none(psem, report, tmp_path):
    report(LATER)
    (tmp_path / "report.json").write_text('{"claims": [], "seconds": 0}')
    assert verdicts(psem)[0] == "expected verdict"


DAMAGED = [
    "",
    "[]",
    "{}",
    '{"seconds": 1}',
    '{"seconds": 1, "claims": [1]}',
    '{"seconds": "1"}',
    "\xff",
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_proof_run_is_none(psem, report, tmp_path, text):
    report(LATER)
    (tmp_path / "report.json").write_bytes(text.encode("latin-1"))
    assert verdicts(psem)[0] == "expected verdict"


# --------------------------------------------------------------------------------- all that is there
@pytest.fixture(scope="module")
def tables():
    """Rows of the tables, read from CSV."""
    written = {name: FORMATS["csv"].write(build(name, Style())) for name in TABLES}
    return {name: [*csv.DictReader(io.StringIO(text))] for name, text in written.items()}


def test_unchanged_tables_say_what_the_mutants_are_set_against(tables):
    for *_, (name, key, column), (before, _) in MUTANTS:
        found = [row for row in tables[name] if key in [*row.values()][:2]]
        assert (found[0][column] if found else None) == before


def test_every_claim_example_and_published_value_has_a_row(tables):
    assert [row["claim"] for row in tables["claims"]] == [claim.id for claim in claims()]
    values = [row["value"] for row in tables["published"] + tables["formulas"]]
    assert sorted(values) == sorted(entry.id for entry in published())
    examples = {path.stem for path in (ROOT / "examples").glob("*.toml")}
    assert {row["schedule"] for row in tables["compositions"] + tables["schedules"]} == examples
    assert all(row["reason"] for row in tables["compositions"] + tables["schedules"])


def test_examples_have_the_verdict_that_their_first_line_expects(tables):
    for row in tables["compositions"] + tables["schedules"]:
        first = (ROOT / "examples" / f"{row['schedule']}.toml").read_text().splitlines()[0]
        verdict, _, rule = first.removeprefix("# expected: ").partition(", ")
        assert (row["verdict"], row["breaks"]) == (verdict, rule)


def test_what_is_offloaded_is_said_to_be_made_or_updated_where_it_is(tables):
    (row,) = (row for row in tables["modes"] if row["mode"] == "O offloaded")
    assert "recompute from optimizer" in row["parameters"]
    assert row["optimizer"] == "update on the host once a step"


def test_letters_of_indices_are_said_in_the_words_of_the_specification():
    table = build("placements", Style())
    cells = [str(lie) for row in table.rows for c in row.cells if isinstance(c, tuple) for lie in c]
    letters = {letter for cell in cells for letter in re.findall(r"\((\w)\)", cell)}
    (said,) = (note for note in map(in_line, table.notes) if "along index i: " in note)
    *_, said = said.rstrip(".").partition("along index i: ")
    words = dict(each.split(" ", 1) for each in said.split(", "))
    assert letters == words.keys() >= {"b", "s", "g", "f"}
    assert words == {letter: transformer.INDICES[letter] for letter in letters}


@pytest.mark.parametrize("name", ["layers", "activations"])
def test_activations_have_bytes_of_their_own(psem, name):
    _, out, _ = psem("tables", name)
    assert re.search(r"of 2 bytes an element|Elements have 1, 2, 4 bytes", out)
    code, _, err = psem("tables", name, "--bytes", "fp32-adam")
    assert code == 2
    assert f"given 'fp32-adam' with '{name}', which it does not change; expected it with one of" in err


QUICK = (
    "placements",
    "modes",
    "memory",
    "peak",
    "communication",
    "collectives",
    "layers",
    "activations",
)


@pytest.mark.parametrize("name", few([*QUICK, "paper", "pipelines"]))
def test_bytes_of_an_element_change_the_tables_that_say_so(name):
    one, other = (TABLES[name](Style(policy=POLICIES[of])) for of in ("mixed-adam", "fp32-adam"))
    assert (one != other) is (name in OF_BYTES)
