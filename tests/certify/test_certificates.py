"""How certificates are made: whatever goes wrong there, an obligation is at most left open."""

import json
import sys

import pytest

from proofs.registry import prove, select
from proofs.trusted.terms import Distinct
from proofs.trusted.theorem import read
from psem_check.check import check
from psem_check.reader import Graph
from psem_check.tree import RULES, Part
from psem_model.audit import sources
from psem_model.audit.sources import hash_of
from psem_model.certify import __main__ as command
from psem_model.certify import certificate as certificates
from psem_model.certify import notes, prover, questions
from psem_model.certify import run as making
from psem_model.certify.questions import key_of, question
from psem_model.certify.search import search
from psem_model.certify.tree import tree
from tests.support.certificates import made, proofs_in, rejected, unproved
from tests.support.sources import of_sources


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(certificates, "BUILD", tmp_path)
    return tmp_path


def results(*ids):
    return [prove(claim) for claim in select(ids)]


def asking(sorts, symbols, nodes, facts):
    """A question as the checker writes it."""
    graph = Graph()
    graph.read(sorts, symbols, nodes)
    return question(graph.terms, [graph.term(fact) for fact in facts])


# x of the reals, with 0 < x and not 0 < x / (x + 1)
X = [["Real"]], [["x", [], 0]]
ZERO, ONE = ["constant", 0, 0, 1], ["constant", 0, 1, 1]
NODES = [["apply", 0], ZERO, ["<", 1, 0], ONE, ["+", 0, 3], ["/", 0, 4]]
QUOTIENT = asking(*X, [*NODES, ["<", 1, 5], ["not", 6]], [2, 7])
POSSIBLE = asking(*X, NODES, [2])


def test_a_certificate_of_a_claim_is_checked(folder):
    document = json.loads(json.dumps(certificates.certificate(results("S1", "E2"))))
    assert [checked.verdict for checked in check(document)] == ["proved", "proved"]
    assert not certificates.missing(document)


def test_proofs_are_kept_and_damaged_ones_are_made_again(folder, monkeypatch):
    first = certificates.certificate(results("S1"))
    (damaged, *_) = certificates.kept().iterdir()
    damaged.write_text("{")
    made = []

    def noted(texts):
        made.extend(texts)
        return prover.proofs(texts)

    monkeypatch.setattr(certificates, "proofs", noted)
    assert certificates.certificate(results("S1")) == first
    assert [f"{key_of(text)}.json" for text in made] == [damaged.name]


def test_a_proof_that_was_not_found_is_looked_for_again(folder, monkeypatch):
    with monkeypatch.context() as slow:
        slow.setattr(certificates, "proofs", lambda texts: [(t, {"missing": "killed"}) for t in texts])
        first = certificates.certificate(results("S1"))
    assert certificates.missing(first)
    assert not certificates.missing(certificates.certificate(results("S1")))


def test_a_kept_proof_that_is_forged_is_rejected_by_the_checker(folder):
    certificates.certificate(results("S1"))
    for path in certificates.kept().iterdir():
        forged = {"terms": [["constant", 0, False]], "steps": [["follows", 0, [0]]]}
        path.write_text(json.dumps(forged))
    assert "the proof of" in rejected(certificates.certificate(results("S1")))


@pytest.fixture
def certify(folder, monkeypatch, capfd):
    """certify() -> whether the certificate of a claim was made, and whether it was checked."""
    monkeypatch.setattr(making, "BUILD", folder)
    monkeypatch.delenv("PSEM_NO_CACHE")

    def run():
        assert command.main(["S1"]) == 0
        said = capfd.readouterr().out
        assert ("S1 proved: checked" in said) != ("was checked by the same psem_check" in said)
        return "nothing is proved again" not in said, "S1 proved: checked" in said

    return run


def test_a_certificate_is_made_again_if_it_is_damaged_or_of_other_sources(folder, monkeypatch, certify):
    path = folder / "certificate-S1.json.xz"
    assert certify() == (True, True)
    whole = path.read_bytes()
    assert certify() == (False, False)
    path.write_bytes(whole[:-1])
    assert certify() == (True, False)  # these bytes were checked
    assert path.read_bytes() == whole
    (folder / "certificate-S1.json.made").write_bytes(b"\xff")
    assert certify() == (True, False)
    of_sources(monkeypatch, lambda packages: "others")
    assert certify() == (True, True)
    assert certify() == (False, False)
    monkeypatch.setenv("PSEM_NO_CACHE", "1")
    assert certify() == (True, True)


def test_of_sources_that_change_while_it_is_made_nothing_is_noted(folder, monkeypatch, certify):
    monkeypatch.setattr(sources, "at_first", lambda packages: "others")
    assert certify() == certify() == (True, True)
    assert not (folder / "certificate-S1.json.made").exists()


def test_it_is_checked_again_if_another_checker_checked_it_or_the_note_is_damaged(
    folder, monkeypatch, certify
):
    note = folder / "certificate-S1.json.checked"
    assert certify() == (True, True)
    for damaged in (
        b"",
        b"\xff",
        note.read_bytes()[:-1],
        (folder / "certificate-S1.json.made").read_bytes(),
    ):
        note.write_bytes(damaged)
        assert certify() == (False, True)
    of = {notes.MADE.packages: hash_of(notes.MADE.packages)}
    of_sources(monkeypatch, lambda packages: of.get(packages, "another checker"))
    assert certify() == (False, True)
    assert certify() == (False, False)


def test_what_is_not_checked_is_not_noted_and_is_looked_at_every_time(folder, monkeypatch, capfd):
    monkeypatch.setattr(making, "BUILD", folder)
    monkeypatch.delenv("PSEM_NO_CACHE")
    path = folder / "certificate-S1.json.xz"
    document = certificates.certificate(results("S1"))
    for place, key in proofs_in(document):
        place[key] = "none"
    path.write_bytes(certificates.compressed(document, lambda done, of: None))
    notes.MADE.beside(path).write_text(notes.MADE.of(path))  # forged
    for _ in range(2):
        assert command.main(["S1"]) == 1
        assert "REJECTED: S1: " in capfd.readouterr().out


def test_a_certificate_of_some_claims_is_not_that_of_others(folder):
    one, all_ = (folder / f"certificate{ids}.json.xz" for ids in ("-S1", ""))
    one.write_bytes(b"")
    note = notes.MADE
    note.beside(one).write_text(note.of(one))
    assert note.holds(one)
    for suffix in (".xz", ".made"):
        one.with_suffix(suffix).rename(all_.with_suffix(suffix))
    assert not note.holds(all_)


def test_what_is_possible_has_no_proof_and_the_reasons_are_told():
    ((text, proof),) = prover.proofs([POSSIBLE])
    assert text == POSSIBLE
    assert proof["missing"].startswith("search: an open case; cvc5: cvc5 says sat; ")


def test_what_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(prover, "program", lambda *_: [sys.executable, "-c", "while True: pass"])
    monkeypatch.setattr(prover, "PATIENCE", 0.2)
    ((text, proof),) = prover.proofs([QUOTIENT])
    assert text == QUOTIENT
    assert proof["missing"].startswith("search: killed at the limit of 0.2 s by the clock; cvc5: ")


def test_products_show_what_a_quotient_is():
    questions.check(QUOTIENT, search(QUOTIENT))


def test_products_of_what_is_possible_are_not_found():
    assert "missing" in search(POSSIBLE)


@pytest.mark.slow
def test_the_same_claims_have_the_same_tree():
    first, second = (tree(results("C1", "T2")) for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_every_rule_of_the_kernel_is_exported():
    document = tree(results("T1", "T2", "E4", "F2", "S1"))
    used = {s["rule"] for c in document["claims"] for p in c["parts"] for s in p["steps"]}
    assert used == {*RULES}
    assert certificates.questions(document)[1]


@pytest.mark.slow
def test_the_checker_finds_the_hypotheses_and_axioms_that_the_kernel_tells(monkeypatch):
    monkeypatch.setattr(Part, "impossible", lambda *_: None)
    proved = results("T2", "E4", "F2", "S1", "C1")
    for result, checked in zip(proved, check(unproved(proved)), strict=True):
        under = [(part, which) for part, theorem in checked.theorems for which in theorem.under]
        said = {part.theorems[which].name for part, which in under if isinstance(which, int)}
        reasoning = {which for _, which in under if isinstance(which, str)}
        assumed = {h for theorem in result.theorems for h in read(theorem).under}
        assert said == {h.name for h in assumed if h.axiom != h.name}
        assert reasoning == {h.name for h in assumed if h.axiom == h.name}


def test_terms_that_all_differ_differ_two_by_two():
    def proof(k):
        x, y, z = k.integers("x y z")
        return (k.prove("the_first_is_not_the_last", x != z, [Distinct(x, y, z)]),)

    document = made(proof)
    assert [*check(document)]
    assert sum(node[0] == "=" for node in document["terms"]) == 3
