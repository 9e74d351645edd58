"""Outcomes that are remembered, and claims proved in several processes."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from proofs import registry
from proofs.registry import select
from proofs.trusted import oracle
from psem_model.audit import proving, remembered
from psem_model.audit.sources import Sources
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
    monkeypatch.setattr(remembered, "key", lambda *_: "of other sources")
    assert psem("prove", *IDS)[2] == ""


def test_an_entry_without_a_field_is_not_believed_whatever_its_digest(prove, tmp_path):
    prove()
    path = tmp_path / remembered.NAME
    document = json.loads(path.read_text())
    del document["claims"]["S1"]["axioms"]
    document["digest"] = remembered._digest(document["fit"], document["claims"])
    path.write_text(json.dumps(document))
    assert prove()[1] == ["S1"]


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder of packages of its own: files by name, and what is in each."""
    packages = tmp_path / "packages"
    monkeypatch.setattr(places, "PACKAGES", packages)

    def write(**files):
        for name, text in files.items():
            path = packages / name.replace("__", "/")
            path = path.with_suffix(".toml" if path.name == "claims" else ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return packages

    write(proofs__registry="", proofs__claims="")
    return write


def test_a_changed_source_is_proved_again_where_it_is_used(prove, folder):
    folder(
        proofs__shards='from spec.devices import layouts\n@claim("S1")\n@claim("M8")\n',
        proofs__rules='import proofs.tools.sums as sums\n@claim("R4")\n',
        spec__devices__layouts="x = 1\n",
        proofs__tools__sums="x = 1\n",
    )
    prove()
    folder(spec__devices__layouts="x = 2\n")
    assert prove()[1] == ["S1", "M8"]
    folder(proofs__tools__sums="x = 2\n")
    assert prove()[1] == ["R4"]
    folder(proofs__registry="x = 2\n")
    assert prove()[1] == ["S1", "M8", "R4"]
    folder(proofs__claims="x = 2\n")
    assert prove()[1] == []


def test_a_claim_is_proved_again_if_its_row_is_another(prove, monkeypatch):
    prove()
    rows = [replace(claim, caveat="another") if claim.id == "S1" else claim for claim in select([])]
    monkeypatch.setattr(registry, "claims", lambda: rows)
    assert prove()[1] == ["S1"]


def test_of_the_same_texts_the_solver_is_not_asked_again(prove, monkeypatch):
    first, _ = prove()
    monkeypatch.setattr(Sources, "digest", lambda *_: "of other sources")
    before = oracle.VERSION
    with monkeypatch.context() as patch:
        patch.setattr(oracle._Session, "answers", lambda *_: pytest.fail("asked again"))
        again, proved = prove()
    assert proved == ["S1", "M8", "R4"]
    assert timeless(again) == timeless(first)
    assert again["answers_remembered"] >= 5
    monkeypatch.setattr(Sources, "digest", lambda *_: "of still others")
    monkeypatch.setattr(oracle, "VERSION", before + " and another")
    assert prove()[0]["answers_remembered"] == 0


def test_a_claim_that_is_marked_nowhere_or_twice_is_made_of_no_files(folder):
    folder(proofs__one='@claim("S1")\n@claim("S2")\n', proofs__two='@claim("S2")\n')
    found = Sources()
    assert found.of("S2") == found.of("S3") == []
    assert Path("proofs/one.py") in found.of("S1")


def test_a_claim_is_made_of_what_it_imports_in_any_way_and_of_its_packages(folder):
    folder(
        proofs__one="""
from spec.a import b, (
    c,
)
import spec.d.e as e
@claim("S1")
def f(k):
    from spec.g import x
""",
        **{f"spec__{name}": "" for name in ("a____init__", "a__b", "d__e", "g", "other")},
    )
    (folder() / "spec" / "a").mkdir(exist_ok=True)
    assert {path.as_posix() for path in Sources().of("S1")} >= {
        "proofs/one.py",
        "proofs/registry.py",
        "spec/a/b.py",
        "spec/d/e.py",
        "spec/g.py",
    }
    assert Path("spec/other.py") not in Sources().of("S1")


def test_all_that_runs_in_a_proof_is_in_the_files_that_its_claim_is_made_of():
    """Whatever is imported, by whatever name: functions that are called are of these files."""
    sources, unknown = Sources(), {}
    for claim in select(["C1", "S1", "M8", "R4", "B4", "K6", "K9", "E2", "E11", "A5"]):
        files = {places.PACKAGES / path for path in sources.of(claim.id)}
        ran = {Path(file) for file in _run(claim)}
        ours = {path for path in ran if path.is_relative_to(places.PACKAGES / "spec")}
        ours |= {path for path in ran if path.is_relative_to(places.PACKAGES / "proofs")}
        assert len(ours) > 5
        unknown[claim.id] = ours - files
    assert not any(unknown.values()), unknown


def _run(claim):
    ran = set()
    sys.setprofile(lambda frame, *_: ran.add(frame.f_code.co_filename))
    try:
        assert registry.prove(claim).as_expected
    finally:
        sys.setprofile(None)
    return ran


def test_the_key_of_folders_is_of_every_file(folder):
    packages = folder(spec__room__rule="x = 1\n", proofs__room__rule="x = 1\n")
    keys = {remembered.key_of_folders.__wrapped__()}
    folder(spec__room__rule="x = 2\n")
    keys.add(remembered.key_of_folders.__wrapped__())
    folder(proofs__claims="x = 2\n")
    keys.add(remembered.key_of_folders.__wrapped__())
    (packages / "spec" / "room" / "rule.py").rename(packages / "spec" / "room" / "law.py")
    keys.add(remembered.key_of_folders.__wrapped__())
    assert len(keys) == 4


def test_what_is_not_as_expected_is_not_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "BUILD", tmp_path)
    (outcome,) = proving.outcomes(select(["S1"]))
    remembered.Memory().keep([replace(outcome, verdict="failed")], fit=True)
    assert remembered.Memory().outcomes(select(["S1"])) == {}
    remembered.Memory().keep([outcome], fit=True)
    assert [*remembered.Memory().outcomes(select(["S1"]))] == ["S1"]


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
