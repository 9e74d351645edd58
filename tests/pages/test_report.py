"""`psem report`: a page that stands alone, whose numbers are those of the reports in build/."""

import json
import re
from collections import Counter
from itertools import accumulate

import pytest

from proofs import registry
from proofs.premises import made_from
from proofs.registry import prove, report, select
from psem_model.audit.explanation import MANY, assumed, defined, spoken_of
from psem_model.audit.formulas import statement
from psem_model.audit.obligations import exported
from psem_model.certify.certificate import compressed
from psem_model.pages import mathematics
from psem_model.pages.claims_report import page
from psem_model.pages.evidence import CERTIFIED, NOT_RUN, OTHER, PROVED, Evidence, evidence
from psem_model.text import places
from psem_model.text.html import text as as_html
from psem_model.text.report import Prose
from tests.support.certificates import certified, unproved
from tests.support.html import opened, outside, read
from tests.support.schemas import validator

FEW = ("S1", "M6", "M7", "M8", "E5", "E7", "R1")


def nothing(_):
    pass


@pytest.fixture(scope="module")
def results():
    return [prove(claim) for claim in select(FEW)]


@pytest.fixture(scope="module")
def document(results):
    return json.loads(json.dumps(report([r.outcome for r in results], 1.5)))


@pytest.fixture(scope="module")
def text(results, document):
    return page(results, Evidence(document, None, None), nothing)


@pytest.fixture(scope="module")
def shown(text):
    return read(text)


def audit_of(results):
    """A report as the audit writes it."""
    rows = {
        r.claim.id: [
            {
                "name": o.name,
                "rule": o.rule,
                "z3": {"resources": o.resources},
                "cvc5": {"answer": o.expected, "seconds": 0.25},
            }
            for o in r.obligations
        ]
        for r in results
    }
    return {"claims": [{"claim": id, "obligations": of, "findings": []} for id, of in rows.items()]}


def unpacked(shown, claim):
    """The obligations of a claim, as a browser unpacks them."""
    of = shown.one("section", id=claim).one("ul", class_="obligations")
    texts = opened(shown.one("script", id="texts").text)
    return json.loads(texts[int(of.attributes["data-obligations"])])


def front(shown):
    """What the front page has of each claim."""
    return {li.attributes["data-id"]: li for li in shown.one(id="claims").all("li", class_="claim")}


# ------------------------------------------------------------------------------ it stands alone
def test_every_link_has_its_target_and_nothing_is_fetched(text, shown):
    assert outside(shown) == []
    assert not re.findall(r"https?:|@import|url\((?!#)", text)


def test_each_id_is_there_once(shown):
    ids = Counter(e.attributes["id"] for e in shown.all() if "id" in e.attributes)
    assert [id for id, times in ids.items() if times > 1] == []


def test_each_field_has_a_label_and_each_picture_says_what_it_shows(shown):
    for kind in ("input", "select"):
        labelled = [e for label in shown.all("label") for e in label.all(kind)]
        assert labelled == [*shown.all(kind)]
    for figure in shown.all("figure"):
        assert all(svg.attributes["aria-label"] for svg in figure.all("svg"))
        assert [*figure.all("svg")]
        assert [*figure.all("td")]


# ------------------------------------------------------------------------------ its numbers
def test_the_front_page_has_what_the_report_of_the_proofs_has(shown, document):
    found = front(shown)
    assert list(found) == list(FEW)
    for entry in document["claims"]:
        of = found[entry["id"]]
        assert read(as_html(Prose(entry["statement"]))).text in of.text
        assert of.attributes["data-verdict"] == entry["verdict"]
        figures = [span.text for span in of.one("p", class_="figures").all("span")]
        plural = "" if entry["obligations"] == 1 else "s"
        assert figures == [
            f"{entry['obligations']:,} obligation{plural}",
            f"{entry['seconds'] * 1000:,.0f} ms",
            f"axioms: {', '.join(entry['axioms']) or 'none'}",
            f"second solver: {NOT_RUN}",
            f"certificate: {NOT_RUN}",
        ]


@pytest.mark.slow
def test_each_card_has_the_caveat_and_says_which_verdicts_python_decides_in_part(results, document):
    cards = front(read(page(results, Evidence(document, None, None), nothing)))
    for result in results:
        claim, card = result.claim, cards[result.claim.id]
        assert read(as_html(Prose(claim.caveat))).text in card.text
        assert ("part decided by Python" in card.text) is bool(claim.decided)
    assert {bool(result.claim.decided) for result in results} == {True, False}


@pytest.mark.slow
def test_what_the_second_solver_said_is_told_if_it_was_asked_of_these_proofs(results, document):
    same, other = audit_of(results), audit_of(results)
    for claim in other["claims"]:
        claim["obligations"][0]["name"] += "_of_other_sources"
    for audit, words in ((same, "cvc5 agrees on"), (other, OTHER)):
        found = front(read(page(results, Evidence(document, audit, None), nothing)))
        assert all(f"second solver: {words}" in li.text for li in found.values())


def test_a_refuted_claim_stands_beside_what_is_true(shown):
    beside = front(shown)["M8"].one("ul", class_="beside")
    assert [a.text for a in beside.all("a")] == ["M6", "M7"]


# ------------------------------------------------------------------------------ pages of claims
def test_a_page_has_each_theorem_obligation_and_hypothesis(results, shown):
    for result in results:
        of = shown.one("section", id=result.claim.id)
        heads = [p.one("b").text for p in of.all("p", class_="head")]
        assert {t.name for t in result.theorems} | {*result.hypotheses} <= {*heads}
        packed = unpacked(shown, result.claim.id)
        assert [row[1] for row in packed] == [o.rule for o in result.obligations]
        assert all(row[0].endswith(o.name) for row, o in zip(packed, result.obligations, strict=True))


def test_a_counterexample_has_the_values_of_the_report(shown, document):
    for entry in document["claims"]:
        of = shown.one("section", id=entry["id"])
        said = " ".join(p.text for p in of.all("p", class_="counterexample"))
        for values in entry.get("counterexample", {}).values():
            assert ", ".join(f"{name} = {value}" for name, value in values.items()) in said


def test_of_a_refuted_claim_what_is_given_holds_and_a_conclusion_fails(shown, document):
    for entry in document["claims"]:
        players = [*shown.one("section", id=entry["id"]).all("div", class_="player")]
        assert len(players) == len(entry.get("counterexample", {})) * (entry["verdict"] == "refuted")
        for player in players:
            lines = [*player.one("tbody").all("tr")]
            holds = [[*line.all("td")][-1].text for line in lines]
            first = next(i for i, line in enumerate(lines) if line.attributes.get("class"))
            assert {*holds[:first]} <= {"", "✓"}
            assert holds[first] == "✗ no"


def test_the_tree_of_a_claim_has_every_theorem_it_rests_on(results, shown):
    for result in results:
        said = shown.one("section", id=result.claim.id).one("ul", class_="tree").text
        rests_on = [*result.theorems, *made_from(result.theorems)]
        assert [t.name for t in rests_on if t.rule != "instance" and t.name not in said] == []


def test_the_texts_of_obligations_are_packed_on_the_page(results, shown):
    lines = opened(shown.one("script", id="texts").text)
    for result in results:
        packed = unpacked(shown, result.claim.id)
        texts = [exported(t, o).strip() for t in result.listed for o in t.obligations]
        for (*_, steps), expected in zip(packed, texts, strict=True):
            numbers = accumulate(steps, lambda at, step: at + step if step > 0 else -step, initial=0)
            text = "\n".join(lines[number] for number in [*numbers][1:])
            assert text == expected


@pytest.mark.slow
def test_a_statement_that_is_too_long_to_be_set_is_there_as_text(results, document, monkeypatch):
    monkeypatch.setattr(mathematics, "LARGEST", 12)
    shown = read(page(results, Evidence(document, None, None), nothing))
    long = 0
    for result in results:
        texts = [pre.text for pre in shown.one("section", id=result.claim.id).all("pre")]
        long += len(texts)
        if result.verdict == "proved":
            said = [*result.theorems, *defined(result), *assumed(result, "hypothesis")]
            said += assumed(result, "axiom")
            assert {*texts} <= {" ".join(" ".join(statement(each, 0)).split()) for each in said}
    assert long > 0


def test_what_symbols_stand_for_and_definitions_are_there(results, shown):
    for result in results:
        of = shown.one("section", id=result.claim.id)
        assert all(says in of.text for says in spoken_of(result).values())
        heads = [p.one("b").text for p in of.all("p", class_="head")]
        assert {part.name for part in defined(result)[:MANY]} <= {*heads}


@pytest.mark.slow
def test_programs_are_told_which_page_was_written(psem, document, tmp_path, monkeypatch):
    few = select(FEW)
    monkeypatch.setattr(registry, "claims", lambda: few)
    monkeypatch.setattr(places, "BUILD", tmp_path)
    (tmp_path / "report.json").write_text(json.dumps(document))
    code, out, err = psem("report", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    validator("report").validate(found)
    assert found["claims"] == {entry["id"]: entry["verdict"] for entry in document["claims"]}
    assert (tmp_path / "report.html").stat().st_size == found["bytes"]


# ------------------------------------------------------------------------------ what is missing
def test_without_a_report_of_the_proofs_one_line_says_what_to_run(psem, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "BUILD", tmp_path)
    code, out, err = psem("report")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "psem prove" in err
    assert not [*tmp_path.iterdir()]


def test_a_report_of_other_proofs_is_refused(results, document):
    other = json.loads(json.dumps(document))
    other["claims"][1]["obligations"] += 1
    with pytest.raises(Exception, match=r"M6 has another obligations than now.*psem prove"):
        page(results, Evidence(other, None, None), nothing)


@pytest.fixture
def built(tmp_path, monkeypatch, document):
    """built(certificate) -> what is in a build/ that has this file beside the report."""
    monkeypatch.setattr(places, "BUILD", tmp_path)
    (tmp_path / PROVED).write_text(json.dumps(document))

    def build(data):
        (tmp_path / CERTIFIED).write_bytes(data)
        return evidence(nothing)

    return build


def test_a_certificate_is_checked_before_it_is_shown(built, results):
    shown = [result for result in results if result.claim.id in ("S1", "M8")]
    found = built(compressed(certified(shown)))
    said = {result.claim.id: found.certified(result) for result in shown}
    assert said == {"S1": "checked, 5 obligations", "M8": "checked, its values evaluated"}
    found = built(compressed(unproved(results)))
    assert all(found.certified(result).startswith("rejected: S1: ") for result in results)


def test_a_certificate_of_other_claims_is_not_theirs(built, results):
    found = built(compressed(certified(results[1:2])))
    assert found.certified(results[0]) == OTHER


def test_a_damaged_certificate_is_rejected(built, results):
    assert built(b"no archive").certified(results[0]).startswith("rejected: ")


def test_where_no_certificate_was_made_none_was_checked(built, results, tmp_path):
    assert built(b"").certificate.rejected
    (tmp_path / CERTIFIED).unlink()
    assert evidence(nothing).certified(results[0]) == NOT_RUN
