"""Outcomes that are remembered, and claims proved in several processes."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from proofs import registry
from proofs.registry import select
from proofs.trusted import oracle
from psem_model.audit import proving, remembered, sources
from psem_model.text import places
from psem_model.text.errors import UserError
from tests.support.sources import of_sources

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
    of_sources(monkeypatch, lambda *_: "others")
    assert psem("prove", *IDS)[2] == ""


@pytest.mark.parametrize("text", ["[" * 200_000, "\0", '"' * 3, ""])
def test_what_is_no_memory_is_said_in_one_line(prove, psem, tmp_path, text):
    path = tmp_path / remembered.NAME
    path.write_text(text)
    code, _, err = psem("prove", *IDS)
    assert (code, err) == (0, "psem: remembered.json is damaged: nothing in it is believed\n")
    assert prove()[1] == []


def test_an_entry_without_a_field_is_not_believed_whatever_its_digest(prove, tmp_path):
    prove()
    path = tmp_path / remembered.NAME
    document = json.loads(path.read_text())
    del document["claims"]["S1"]["axioms"]
    document["digest"] = remembered._digest(document["claims"], document["fit"])
    path.write_text(json.dumps(document))
    assert prove()[1] == ["S1"]


def test_changed_sources_make_outcomes_stale_and_not_answers(prove, monkeypatch):
    first, _ = prove()
    of_sources(monkeypatch, lambda packages=sources.PROVED: f"others: {packages == remembered.ASKS}")
    again, proved = prove()
    assert proved == ["S1", "M8", "R4"]
    assert again["answers_remembered"] == 0  # they were put by other code
    of_sources(monkeypatch, lambda packages=sources.PROVED: f"more: {packages == remembered.ASKS}"[-4:])
    assert prove()[0]["answers_remembered"] == 0
    unlike = {True: "as before", False: "others"}
    of_sources(monkeypatch, lambda packages=sources.PROVED: unlike[packages == remembered.ASKS])
    prove()
    unlike[False] = "still others"
    with monkeypatch.context() as patch:
        patch.setattr(oracle._Session, "answers", lambda *_: pytest.fail("asked again"))
        again, proved = prove()
    assert proved == ["S1", "M8", "R4"]
    assert timeless(again) == timeless(first)
    assert again["answers_remembered"] >= 5


def test_of_sources_that_change_meanwhile_nothing_is_remembered(prove, monkeypatch):
    monkeypatch.setattr(sources, "at_first", lambda packages=sources.PROVED: "before")
    assert prove()[1] == prove()[1] == ["S1", "M8", "R4"]


def test_sources_are_looked_at_before_what_proves_is_imported():
    """A file that is edited while a command starts is not taken for the one that is proved."""
    code = """
import sys
from psem_model.audit import sources
from psem_model.commands.cli import main
def at_first(*_):
    print(sorted(name for name in sys.modules if name.split(".")[0] in ("spec", "proofs")))
    raise SystemExit(7)
sources.at_first = at_first
main(["prove", "S1"])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (7, "[]\n")


def test_what_is_not_as_expected_is_not_remembered_and_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "BUILD", tmp_path)
    (outcome,) = proving.outcomes(select(["S1"]))
    failed = replace(outcome, verdict="failed")
    for found, known in ((failed, []), (outcome, ["S1"]), (failed, [])):
        remembered.Memory().change([found])
        assert [*remembered.Memory().outcomes(select(["S1"]))] == known


def test_a_run_that_reads_no_memory_forgets_what_it_finds_wrong(prove, psem, monkeypatch, tmp_path):
    prove()
    monkeypatch.setattr("psem_model.check.claims.prove", lambda claim, *_: _failed(claim))
    assert psem("prove", "S1", "--no-cache")[0] == 1
    assert [*remembered.Memory().outcomes(select(IDS))] == ["M8", "R4"]


def _failed(claim):
    return registry.Result(claim, "failed", (), (), 0.0, "S1: not proved")


def test_runs_at_once_remember_what_both_find(prove, tmp_path, monkeypatch):
    """A run writes beside what another has written since it began."""
    memory = remembered.Memory
    first, *others = proving.outcomes(select(IDS))

    def read_meanwhile(*args, **options):
        found = memory(*args, **options)
        memory().change(others)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(proving, "Memory", read_meanwhile)
        assert proving.run([first.claim.id], as_json=True, cached=True) == 0
    assert {*remembered.Memory().outcomes(select(IDS))} == {*IDS}


@pytest.fixture
def package(monkeypatch, tmp_path):
    """The folder of a package that Python finds."""
    folder = tmp_path / "some_package"
    (folder / "room").mkdir(parents=True)
    for name in ("__init__.py", "room/__init__.py", "room/rule.py"):
        (folder / name).write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_a_hash_is_of_every_file_by_its_name_and_whatever_it_is(package, tmp_path):
    def change(name, text):
        return lambda: (package / name).write_text(text)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "law.py").write_text("x = 1\n")
    changes = [
        change("room/rule.py", "x = 2\n"),
        change("claims.toml", ""),
        change("numbers.json", "0"),
        change("room/further.so", "\0"),
        lambda: (package / "room" / "rule.py").rename(package / "room" / "law.py"),
        lambda: (package / "linked").symlink_to(elsewhere),
        lambda: (elsewhere / "law.py").write_text("x = 2\n"),
    ]
    hashes = [sources.hash_of(["some_package"])]
    for made in changes:
        made()
        hashes.append(sources.hash_of(["some_package"]))
    assert len({*hashes}) == len(hashes) == len(changes) + 1


def test_what_python_makes_and_what_is_no_file_is_in_no_hash(package):
    before = sources.hash_of(["some_package"])
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "rule.pyc").write_text("x")
    (package / ".#rule.py").symlink_to("nobody@nowhere")
    (package / "folder.py").mkdir()
    assert sources.hash_of(["some_package"]) == before
    assert sources.hash_of() != sources.hash_of(["spec"])


def test_a_claim_that_stands_twice_is_told_when_all_are_proved(psem, monkeypatch, tmp_path):
    monkeypatch.setattr(places, "BUILD", tmp_path)
    (row,) = select(["S1"])
    for module in (registry, proving):
        monkeypatch.setattr(module, "claims", lambda: [row, replace(row, caveat="another")])
    code, _, err = psem("prove")
    assert code == 1
    assert "psem: claim S1 stands twice in proofs/claims.toml\n" in err


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
