"""Explaining claims from the command line: what is printed, and how wide."""

import json
import re
import tomllib

import pytest

from proofs.glossary import GLOSSARY
from proofs.registry import claims, prove, select
from proofs.trusted.infix import text
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, Int
from psem_model.audit.explanation import lines_of, name_of, smt_of, spoken_of
from psem_model.audit.formulas import shared
from psem_model.text.errors import BadInput
from psem_model.text.report import VERSION
from tests.support.examples import slow_but
from tests.support.proved import proved

pytestmark = pytest.mark.usefixtures("proved_once")


def test_explain_shows_the_theorem_tree(psem):
    code, out, _ = psem("explain", "E2", "--tree")
    assert code == 0
    for words in (
        "proofs/meaning/equivalence.py",
        "matching_copies_agree",
        "smt, unsat",
        "by hypothesis",
        "axiom",
    ):
        assert words in out


def test_explain_prints_one_obligation_as_smt_lib(psem):
    code, out, _ = psem("explain", "C1", "--smt", "chunks_wait_untouched_step")
    assert code == 0
    assert out.startswith("(set-logic QF_")
    assert out.rstrip().endswith("(check-sat)")


def test_no_line_of_an_explanation_is_wider_than_the_terminal(psem, wide):
    wide(80)
    for claim in ("E2", "P3", "C1"):
        _, out, _ = psem("explain", claim, "--tree")
        assert max(map(len, out.splitlines())) <= 80


def test_an_explanation_begins_with_what_is_concluded_then_what_it_rests_on_then_the_tree(psem):
    _, out, _ = psem("explain", "E2")
    parts = ["verdict", "what is concluded", "what it rests on: hypotheses", "how it is proved"]
    places = [out.index(part) for part in parts]
    assert places == sorted(places)
    concluded = out[places[1] : places[2]]
    assert "with_fresh_reads_gradient_integrity" in concluded
    assert "applied(t, d)[j] == samples_as_seen(t, j, batch(t))" in concluded


@pytest.mark.parametrize("columns", [60, 100])
def test_hypotheses_are_printed_in_full_whatever_the_width(psem, wide, columns):
    wide(columns)
    _, out, _ = psem("explain", "T2")
    _, found, _ = psem("explain", "T2", "--json")
    assert "..." not in out
    rests = "".join(out.split("what it rests on", 1)[1].split("how it is proved")[0].split())
    for assumed in json.loads(found)["claims"][0]["assumed"]:
        assert assumed["name"] in rests
        assert "".join(assumed["for_all"].split()) in rests
    for name in ("devices_run_the_lines", "the_single_device_trains"):
        assert name in rests


def test_several_claims_are_explained_at_once(psem):
    code, out, _ = psem("explain", "M8", "S2")
    assert code == 0
    assert out.startswith("M8  ")
    assert "\n\nS2  " in out
    said, _, values = out.partition("not for all values:")[2].partition("counterexample: ")
    assert "k == 12" in said
    assert values.startswith("psi = ")


def test_explanations_as_json_have_the_documented_shape(psem):
    code, out, _ = psem("explain", "E2", "M8", "--json")
    found = json.loads(out)
    assert (code, found["version"]) == (0, VERSION)
    e2, m8 = found["claims"]
    assert e2["proved_in"]["function"] == "necessity_in_each_run"
    assert e2["proved_in"]["file"] == "proofs/meaning/equivalence.py"
    names = [theorem["name"] for theorem in e2["theorems"]]
    assert names[0] == "matching_copies_agree"
    assert {each["name"] for each in e2["assumed"] if each["rule"] == "hypothesis"} == {
        *e2["hypotheses"]
    }
    whole = e2["theorems"][1]
    assert whole["if"] == ["updates(d, j)"]
    assert whole["then"] == ["applied(t, d)[j] == samples(current(t), t, j, batch(t))"]
    assert {*names} <= {theorem["name"] for theorem in e2["made_from"]}
    assert m8["theorems"][0]["counterexample"]
    assert "k == 12" in m8["theorems"][0]["refuted"]["if"]


def test_without_tree_an_explanation_says_how_large_the_tree_is(psem):
    _, whole, _ = psem("explain", "E2", "--tree")
    _, out, _ = psem("explain", "E2")
    tree = whole.split("how it is proved\n")[1]
    size = len(re.findall(r"^ +\w+  by ", tree, re.MULTILINE))
    assert f"obligations, a tree of {size} theorems: psem explain E2 --tree" in out


@pytest.fixture
def result_of_p3():
    """A claim of several parts, whose obligations are called alike."""
    return proved("P3")


def test_every_obligation_of_a_claim_can_be_named(result_of_p3):
    result = result_of_p3
    names = [name_of(theorem, o) for theorem in result.listed for o in theorem.obligations]
    assert len(set(names)) == len(names) == len(result.obligations)
    assert len({smt_of(result, name) for name in names}) == len(names)
    tree = "\n".join(lines_of(result, with_tree=True))
    assert all(f"- {name}: " in tree for name in names)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "stages_on_the_frontier",
            "which 6 are called; expected one of master_copy_one/stages_on_the_frontier,",
        ),
        ("stages/dominanc_amongg", "nearest: stages/dominance_among_the_stages"),
        ("q", "such as stages/dominance_among_the_stages"),
    ],
)
def test_an_obligation_that_is_not_one_is_refused_with_names(result_of_p3, name, said):
    with pytest.raises(BadInput, match=re.escape(said)):
        smt_of(result_of_p3, name)


def test_what_conclusions_speak_of_is_defined_before_them(psem):
    _, out, _ = psem("explain", "E2")
    defined, concluded = out.index("what is defined"), out.index("what is concluded")
    assert defined < out.index("samples(p, t, j, 0) == 0") < concluded


@pytest.mark.parametrize(("besides", "shown"), [(False, ["pair"]), (True, ["pair", "second"])])
def test_a_choice_is_shown_as_part_of_the_one_choice_that_is_all_that_speaks_of_it(besides, shown):
    def proof(k):
        x, y, z = k.integers("x y z")
        second, _, second_if, _ = k.choose("second", [x, z], y, And(x < y, y < z))
        pair, _, pair_if, _ = k.choose("pair", [z], x, second(x, z))
        held = [second_if.at(x=0, y=1, z=2), pair_if.at(x=0, z=2)]
        two = k.prove("there_is_a_pair", And(pair(2), *[second(0, 2)] * besides), (), held)
        return (two,)

    (claim,) = select(["S1"])
    lines = lines_of(prove(claim, proof))
    defined = lines[lines.index("what is defined") : lines.index("what is concluded")]
    assert [line.strip() for line in defined if re.fullmatch(r"  \w+ *", line)] == shown
    assert ("    pair(z) if and only if, for some x, y," in lines) is not besides


@pytest.mark.parametrize(
    ("args", "said"),
    [(["S1", "S2", "--smt", "x"], "2 claims"), (["S1", "--json", "--smt", "x"], "--json")],
)
def test_one_obligation_is_of_one_claim_and_no_json(psem, args, said):
    code, out, err = psem("explain", *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"--smt: given {said} besides" in err


@pytest.mark.slow
def test_every_claim_can_be_explained(psem):
    for claim in claims():
        if claim.area in ("sharding", "memory", "attention", "layouts"):
            code, out, err = psem("explain", claim.id)
            assert (code, err) == (0, "")
            assert all(word in out for word in claim.caveat.split())


def test_terms_that_large_formulas_share_are_printed_once():
    x, term = Int("x"), Int("y")
    for _ in range(12):
        term = term + x * term
    (formula,), named = shared([term == 7])
    assert len(text(formula)) + sum(len(text(value)) for _, value in named) < 1000
    pairs = [(name, value) for name, value in named]
    for name, value in reversed(pairs):
        formula = substitute(formula, (name, value))
    assert formula is (term == 7)


@pytest.mark.parametrize("claim", slow_but(["T2", "E1", "M8", "C1"], ["T2", "T4", "E1", "M8", "C1"]))
def test_an_outline_is_of_two_screens_and_says_what_is_concluded(claim, psem):
    code, out, _ = psem("explain", claim, "--outline")
    _, whole, _ = psem("explain", claim, "--json")
    assert code == 0
    assert len(out.splitlines()) <= 96
    (found,) = json.loads(whole)["claims"]
    for theorem in found["theorems"]:
        assert f"  {theorem['name']}\n" in out
        assert ("counterexample: " in out) == (found["verdict"] == "refuted")
        assert f"  {theorem['name']}  by {theorem['rule']}" in out
        for hypothesis in theorem["hypotheses"]:
            assert hypothesis in out


def test_an_outline_is_cut_between_conditions_and_says_how_many_more_there_are(psem):
    said = " ".join(psem("explain", "T2", "--outline")[1].split())
    cut = re.findall(r"\bif ((?:(?! then ).)*), and (\d+) more", said)
    assert len(cut) > 3
    for conditions, more in cut:
        assert conditions.count("(") == conditions.count(")")
        assert int(more) > 0
    assert not re.search(r"\w \.\.\.", said)


def test_an_outline_is_asked_for_alone(psem):
    code, _, err = psem("explain", "E2", "--outline", "--tree")
    assert code == 2
    assert err.startswith("psem: --outline: given --tree")


@pytest.mark.parametrize(
    ("claim", "symbol"),
    [
        ("T2", "amount(t, b, s, d, i, j): how often device d has device i's value s in"),
        pytest.param(
            *("T4", "ends(u): how many lines there are up to the end of step u"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_explanation_says_what_its_symbols_stand_for(claim, symbol, psem):
    (found,) = json.loads(psem("explain", claim, "--json")[1])["claims"]
    said = " ".join((*found["speaks_of"], *found["speaks_of"].values()))
    concluded = " ".join(each for theorem in found["theorems"] for each in theorem["then"])
    used = set(re.findall(r"(\w+)\(", concluded))
    assert len(found["speaks_of"]) > 40
    assert {name for name in used if name.islower() and not re.search(rf"\b{name}\b", said)} <= {
        *("contributed", "micro_step_whole", "kept", "last_added"),
    }
    out = psem("explain", claim)[1]
    assert f"  {symbol}" in out


@pytest.mark.slow
def test_every_word_of_the_glossary_is_a_symbol_of_its_claims():
    tables = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))["words"]
    some = ("E1", "E2", "E3", "E9", "E10", "E11", "T2", "T4")
    spoken = {each: {*spoken_of(proved(each))} for each in some}
    for table in tables:
        for word in table:
            assert word == "of" or any(word in spoken.get(each, ()) for each in table["of"]), word
