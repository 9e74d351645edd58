"""Outcomes that are remembered, and claims proved in several processes."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from proofs import registry
from proofs.registry import select
from psem_model.audit import proving, remembered
from psem_model.text import places
from psem_model.text.errors import UserError

IDS = ("S1", "M8", "R4")


@pytest.fixture
def prove(psem, monkeypatch, tmp_path):
    """prove(...) -> the report of claims, with a memory of their own; which were proved."""
    monkeypatch.setattr(places, "BUILD", tmp_path)
    monkeypatch.delenv("PSEM_NO_CACHE")
    proved = []

    def noted(claim, proof=None):
        proved.append(claim.id)
        return registry.prove(claim, proof)

    monkeypatch.setattr("psem_model.check.claims.prove", noted)

    def run(*args):
        proved.clear()
        code, out, _ = psem("prove", *IDS, "--json", *args)
        assert code == 0
        report = json.loads(out)
        assert [claim["verdict"] for claim in report["claims"]] == ["proved", "refuted", "refuted"]
        return report, list(proved)

    return run


def timeless(report):
    return [{key: v for key, v in claim.items() if key != "seconds"} for claim in report["claims"]]


def test_what_is_remembered_is_not_proved_again_and_says_the_same(prove):
    first, proved = prove()
    assert proved == ["S1", "M8", "R4"]
    again, proved = prove()
    assert proved == []
    assert (first["remembered"], again["remembered"]) == (0, 3)
    assert again["claims"] == first["claims"]


def test_without_the_cache_all_is_proved_again(prove):
    prove()
    assert prove("--no-cache")[1] == ["S1", "M8", "R4"]


def test_it_is_said_that_outcomes_are_remembered(prove, psem):
    prove()
    assert "all of them remembered" in " ".join(psem("prove", *IDS)[1].split())
    assert "1 of them remembered" in " ".join(psem("prove", "S1", "S2")[1].split())


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"verdict": "refuted"', '"verdict": "proved"', 1),
        lambda text: text.replace('"obligations": ', '"obligations": 1', 1),
        lambda text: "[]",
        lambda text: '{"key": 1, "claims": 3, "digest": null}',
    ],
)
def test_of_a_damaged_memory_nothing_is_believed(prove, tmp_path, damage):
    prove()
    path = tmp_path / remembered.NAME
    changed = damage(path.read_text())
    assert changed != path.read_text()
    path.write_text(changed)
    assert prove()[1] == ["S1", "M8", "R4"]
    assert prove()[1] == []


def test_that_a_memory_is_damaged_is_said_once_and_not_of_one_that_is_stale(
    prove, psem, tmp_path, monkeypatch
):
    prove()
    path = tmp_path / remembered.NAME
    path.write_text(path.read_text().replace('"refuted"', '"proved"', 1))
    assert psem("prove", *IDS)[2] == "psem: remembered.json is damaged: nothing in it is believed\n"
    assert psem("prove", *IDS)[2] == ""
    monkeypatch.setattr(remembered, "key", lambda: "of other sources")
    assert psem("prove", *IDS)[2] == ""


def test_an_entry_without_a_field_is_not_believed_whatever_its_digest(prove, tmp_path):
    prove()
    path = tmp_path / remembered.NAME
    document = json.loads(path.read_text())
    del document["claims"]["S1"]["axioms"]
    document["digest"] = remembered._digest(document["claims"])
    path.write_text(json.dumps(document))
    assert prove()[1] == ["S1"]


def test_a_changed_source_makes_memory_stale(prove, monkeypatch):
    prove()
    monkeypatch.setattr(remembered, "key", lambda: "of other sources")
    assert prove()[1] == ["S1", "M8", "R4"]


def test_the_key_is_of_every_source(monkeypatch, tmp_path):
    for folder in ("spec", "proofs"):
        (tmp_path / folder / "room").mkdir(parents=True)
        (tmp_path / folder / "room" / "rule.py").write_text("x = 1\n")
    monkeypatch.setattr(places, "PACKAGES", tmp_path)
    keys = {remembered.key.__wrapped__()}
    (tmp_path / "spec" / "room" / "rule.py").write_text("x = 2\n")
    keys.add(remembered.key.__wrapped__())
    (tmp_path / "proofs" / "claims.toml").write_text("")
    keys.add(remembered.key.__wrapped__())
    (tmp_path / "spec" / "room" / "rule.py").rename(tmp_path / "spec" / "room" / "law.py")
    keys.add(remembered.key.__wrapped__())
    assert len(keys) == 4


def test_what_is_not_as_expected_is_not_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "BUILD", tmp_path)
    (outcome,) = proving.outcomes(select(["S1"]))
    remembered.remember([type(outcome)(**{**vars(outcome), "verdict": "failed"})])
    assert remembered.recalled(select(["S1"])) == {}


def test_several_processes_come_to_the_same_in_the_same_order(prove):
    assert timeless(prove("--no-cache", "--jobs", "2")[0]) == timeless(prove("--no-cache")[0])


def test_any_executor_can_be_asked():
    selected = select(IDS)
    with ThreadPoolExecutor(1) as executor:
        found = list(proving.outcomes(selected, executor))
    assert [o.claim for o in found] == selected
    assert all(o.as_expected for o in found)


def test_a_cluster_of_dask_can_be_asked():
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    selected = select(IDS)
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        found = list(proving.outcomes(selected, client.get_executor()))
    assert [o.claim for o in found] == selected
    assert all(o.as_expected for o in found)


def test_claims_are_proved_in_groups_each_once_and_in_their_order():
    selected = select([])
    groups = proving.alike(selected)
    assert sorted((c for group in groups for c in group), key=selected.index) == selected
    assert all(group == sorted(group, key=selected.index) for group in groups)
    modules = {claim.module for claim in selected}
    assert {*proving.LIKE, *proving.LIKE.values()} <= modules


def _ends(claims):
    os._exit(1)


def test_a_process_that_ends_before_it_answers_is_one_line(monkeypatch):
    monkeypatch.setattr(proving, "outcomes_of", _ends)
    with pytest.raises(UserError, match="ended before it answered"):
        proving.run(["S1", "S2"], as_json=True, jobs=2)
