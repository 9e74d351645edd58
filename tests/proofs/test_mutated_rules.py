"""Mutants of spec/, made systematically: the log is of rules as they stand, the page of the log."""

import random

import pytest

from proofs.registry import ROOT
from tests.support.mutated_rules.page import (
    LOG,
    PAGE,
    UNTRIED,
    WORDS,
    entries,
    explained,
    key_of,
    page,
)
from tests.support.mutated_rules.places import FILES, candidates, enumerations, path_of
from tests.support.mutated_rules.run import CLAIM, CRASH, NOTHING, TEST, by_claims, copy, tried
from tests.support.mutated_rules.trial import crashed

AGAIN = 6  # mutants that are tried again
ENTRIES = entries()
RERUN = "run: make mutants"


@pytest.fixture(scope="module")
def found():
    """All changes that could be made, by key."""
    enums = enumerations()
    every = (place for path in FILES for rule in candidates(path, enums) for place in rule)
    return {place.key: place for place in every}


def test_the_page_is_that_of_the_log():
    assert PAGE.read_text() == page(), RERUN


def test_every_change_in_the_log_could_still_be_made(found):
    assert not [key_of(entry) for entry in ENTRIES if key_of(entry) not in found], RERUN


def test_at_least_two_hundred_are_tried_and_no_two_are_of_one_rule():
    assert len({(e.file, e.rule) for e in ENTRIES}) == len(ENTRIES)
    assert sum(e.by != UNTRIED for e in ENTRIES) >= 200


def test_every_file_is_changed_where_it_has_a_rule(found):
    files = {place.file for place in found.values()}
    assert {entry.file for entry in ENTRIES} == files, RERUN


def test_what_is_explained_is_what_nothing_noticed():
    quiet = {entry.change for entry in ENTRIES if entry.by in (NOTHING, CRASH)}
    assert explained().keys() <= quiet


def test_of_what_a_test_noticed_some_are_said_to_be_words_alone():
    by_a_test = {entry.change for entry in ENTRIES if entry.by == TEST}
    words = explained(WORDS)
    assert words.keys() <= by_a_test
    assert {entry.change for entry in ENTRIES if entry.kind == WORDS} == words.keys()


def test_a_change_is_of_one_line(found):
    for place in random.Random(1).sample([*found.values()], 100):
        text = path_of(place).read_text()
        pairs = zip(text.splitlines(), place.changed(text).splitlines(), strict=True)
        assert sum(old != new for old, new in pairs) == 1


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ("NameError: name 'x' is not defined", "NameError"),
        ("TypeError: 'int' object is not iterable", "TypeError"),
        ("LayoutError: w is sharded", ""),
        ("KeyError: (<Layout.SHARDED: 'S'>, 1)", ""),
        ("KeyError: 'w'", "KeyError"),
        ("S1 could not be stated: KeyError: 'w', at spec/devices/mesh.py:9", "KeyError"),
        ("S1 could not be stated: LayoutError: w is sharded, at spec/devices/layouts.py:9", ""),
        ("total_of_slices: not proved, sat", ""),
        ("", ""),
    ],
)
def test_a_crash_is_told_from_a_refusal(failure, kind):
    assert crashed(failure) == kind


@pytest.mark.slow
def test_mutants_that_a_claim_noticed_are_noticed_again(found, tmp_path):
    here = copy(tmp_path)
    proved = [entry for entry in ENTRIES if entry.by == CLAIM and "." not in entry.who]
    for entry in random.Random(LOG.read_text()).sample(proved, AGAIN):
        result = tried(found[key_of(entry)], here, lambda id=entry.who: by_claims(here, [id]))
        assert (result.by, result.who) == (CLAIM, entry.who), entry


@pytest.mark.slow
def test_what_is_not_changed_is_noticed_by_no_claim(tmp_path):
    assert by_claims(copy(tmp_path), ["C1", "S1", "M4"]).who == ""


def test_the_log_is_of_files_that_are_there():
    assert all((ROOT / "spec" / entry.file).exists() for entry in ENTRIES)
