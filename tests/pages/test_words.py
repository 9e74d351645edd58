"""Plain words of pages: those of the README, marked."""

import re

import pytest

from proofs.registry import ROOT, claims
from psem_model.pages.words import abstract, ids_in, marked, page, said

README = " ".join((ROOT / "README.md").read_text().split())
KNOWN = [claim.id for claim in claims()]


def test_the_abstract_is_that_of_the_readme():
    for sentence in abstract():
        assert f"| {sentence.says} | {sentence.became} |" in README
        assert sentence.answered_by or "Defined" in sentence.became


def test_the_page_of_the_abstract_is_generated():
    assert (ROOT / "docs" / "ABSTRACT.md").read_text() == page().rstrip("\n") + "\n", "run: make docs"


@pytest.mark.parametrize("name", ["trusted", "limits"])
def test_what_is_trusted_and_the_limits_are_those_of_the_readme(name):
    words = said(name)
    section = README.partition(f"## {words.title} ")[2].partition(" ## ")[0]
    assert section.count("* ") >= len(words.points)
    for each in (*words.points, words.lead):
        assert each in section


def test_ranges_of_claims_name_those_between():
    assert ids_in("(M1-M3, X1) and K6; E99, bf16, B5", KNOWN) == ["M1", "M2", "M3", "X1", "K6", "B5"]


def test_what_is_marked_is_escaped_and_links_go_to_claims_that_are_there():
    found = marked(
        "`a<b` **c&d** M1-M2 [E1](docs/CLAIMS.md#e1) [page](docs/X.md) F9 <br> N >= 2", ["M1", "M2"]
    )
    assert found == (
        '<code>a&lt;b</code> <strong>c&amp;d</strong> <a href="#M1">M1</a>–<a href="#M2">M2</a> '  # noqa: RUF001
        "E1 page F9 &lt;br&gt; <i>N</i> ≥ 2"
    )


def test_the_words_are_in_no_other_form_than_the_readme_has():
    assert not re.search(r"\n", "".join(s.became for s in abstract()))
