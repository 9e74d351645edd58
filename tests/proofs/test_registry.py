"""The registry: short rows, one function for each claim, and a page that says what the rows say."""

import os
import re
from collections import Counter
from itertools import groupby

import pytest

from proofs import registry, specification
from proofs.claim import PROOFS, claim
from proofs.page import page
from proofs.registry import ROOT, areas, claims, registration, select

CLAIMS = claims()
every_claim = pytest.mark.parametrize("row", CLAIMS, ids=lambda row: row.id)


@every_claim
def test_a_statement_a_formula_and_a_caveat_are_a_line_each(row):
    for said, most in ((row.statement, 100), (row.formula, 100), (row.caveat, 120)):
        assert len(said) <= most
        assert said == " ".join(said.split())
    assert row.statement
    assert not row.statement[0].islower()
    assert not row.statement.endswith(".")


@every_claim
def test_the_scope_of_a_claim_and_what_python_decides_and_watches_are_sentences(row):
    for said in (*row.scope, *row.decided, *row.watched):
        assert said == " ".join(said.split())
        assert said.endswith(".")
        assert not said[0].islower()


def test_ids_of_claims_are_unique():
    assert [i for i, count in Counter(c.id for c in CLAIMS).items() if count > 1] == []


def test_claims_stand_by_area_in_the_order_of_the_areas():
    assert [area for area, _ in groupby(CLAIMS, lambda row: row.area)] == list(areas())


def test_every_claim_is_proved_by_one_function_whose_docstring_names_it():
    assert registration() == []
    for row in CLAIMS:
        assert re.findall(r"\(Claim (\w+)", row.function().__doc__) == [row.id]


@pytest.fixture
def proofs(monkeypatch):
    """What is marked, to change: as it was after the test."""
    registration()
    for id in PROOFS:
        monkeypatch.setitem(PROOFS, id, list(PROOFS[id]))
    monkeypatch.setitem(PROOFS, "Z9", [])
    return PROOFS


def extra(k):
    """Of its own."""


def test_a_claim_that_no_function_proves_is_found(proofs):
    proofs["S1"].clear()
    said = 'claim S1 is proved by no function: none in proofs/ is marked @claim("S1")'
    assert said in registration()
    result = registry.prove(select(["S1"])[0])
    assert (result.verdict, result.failure) == ("failed", said)


def test_a_function_marked_with_an_unknown_claim_is_found(proofs):
    claim("Z9")(extra)
    name = f"{__name__}.extra"
    assert registration() == [f"{name} proves claim Z9, which is not in proofs/claims.toml"]


def test_two_functions_of_one_claim_are_found(proofs):
    claim("S1")(extra)
    result = registry.prove(select(["S1"])[0])
    assert result.verdict == "failed"
    assert registration() == [result.failure]
    first = "proofs.devices.sharding.shards_cover_and_are_disjoint"
    assert f"proved by several functions: {first}, {__name__}" in result.failure


def test_a_function_that_names_a_claim_and_is_not_marked_is_found(proofs):
    name = "proofs.devices.sharding.shards_cover_and_are_disjoint"
    proofs["S1"] = [extra]
    assert registration() == [
        f'{__name__}.extra is marked @claim("S1") and names no claim',
        f'{name} names claim S1 and is not marked @claim("S1")',
    ]


def test_a_second_function_of_the_same_name_does_not_replace_the_first(proofs):
    (first,) = proofs["M6"]

    def second(k):
        return first(k)

    second.__module__, second.__name__, second.__doc__ = first.__module__, first.__name__, first.__doc__
    claim("M6")(second)
    result = registry.prove(select(["M6"])[0])
    assert result.verdict == "failed"
    assert "several functions" in result.failure


def test_a_function_of_two_claims_proves_only_the_one_that_its_docstring_names(proofs):
    (five,), proofs["M6"][:] = proofs["M5"], []
    claim("M6")(five)
    results = [registry.prove(each) for each in select(["M5", "M6"])]
    assert [result.verdict for result in results] == ["proved", "failed"]
    assert results[1].failure.endswith('is marked @claim("M6") and names M5')


def test_a_claim_that_breaks_down_is_one_line_and_the_next_is_proved(psem, monkeypatch):
    monkeypatch.setattr("proofs.devices.sharding.shard_contains", lambda *_: os.environ["NO_SUCH"])
    code, out, err = psem("prove", "S1", "M6", "--no-cache")
    assert (code, err) == (1, "")
    assert "S1 could not be stated: KeyError: 'NO_SUCH', at " in " ".join(out.split())
    assert "\nM6  proved" in out
    assert "NOT as expected: S1\n" in out


@pytest.mark.parametrize("command", ["prove", "explain"])
def test_claims_whose_marks_are_exchanged_fail_one_by_one(proofs, psem, command):
    proofs["M5"][:], proofs["M6"][:] = list(proofs["M6"]), list(proofs["M5"])
    for id, other in (("M5", "M6"), ("M6", "M5")):
        code, out, _ = psem(command, id)
        assert code == 1
        assert f'is marked @claim("{id}") and names {other}' in " ".join(out.split())


@pytest.mark.parametrize("command", ["prove", "explain", "audit"])
def test_a_module_of_proofs_that_cannot_be_imported_is_one_line(monkeypatch, psem, command):
    def broken(name):
        if name == "proofs.costs.memory":
            raise NameError("name 'x' is not defined")

    registry.broken_modules.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr("importlib.import_module", broken)
        code, out, err = psem(command, "S1")
    registry.broken_modules.cache_clear()
    assert (code, out) == (1, "")
    said = "proofs.costs.memory cannot be imported: NameError: name 'x' is not defined"
    assert err == f"psem: {said}\n"


def test_a_claim_that_stands_twice_is_found(monkeypatch):
    monkeypatch.setattr(registry, "claims", lambda: [*CLAIMS, CLAIMS[0]])
    assert registration() == [f"claim {CLAIMS[0].id} stands twice in proofs/claims.toml"]


def test_the_page_of_claims_is_the_registry():
    assert (ROOT / "docs" / "CLAIMS.md").read_text() == page(), "run: make docs"


def test_the_page_of_the_specification_is_that_of_the_code():
    assert (ROOT / "docs" / "SPEC.md").read_text() == specification.page() + "\n", "run: make docs"


def test_the_page_has_all_that_a_row_says(monkeypatch):
    text = page()
    for row in CLAIMS:
        section = text.split(f"### {row.id}\n")[1].split("\n#")[0]
        by_running = (*row.decided, *row.watched)
        for said in (row.statement, row.formula, row.caveat, *row.scope, *by_running, row.source):
            assert said in section
        assert row.function().__name__ in section
