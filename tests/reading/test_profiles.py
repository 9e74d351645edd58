"""Profiles from files: what they may say, and what they are refused for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import combinations

import pytest

from psem_model.reading.profile_keys import CHANGES
from psem_model.reading.profiles import additions, packaged, read
from psem_model.text.errors import BadInput
from spec.models.profiles import TEXTBOOK
from tests.support.examples import few

START = 'title = "mine"\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\n'
OTHER = '\n[[differs]]\nwhat = "x"\nwhy = "y"\nsource = "z"\n'


@pytest.fixture
def file(tmp_path):
    def written(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return str(path)

    return written


def test_the_textbook_is_the_profile_that_changes_nothing():
    assert read("textbook") == TEXTBOOK


@pytest.mark.parametrize("name", packaged())
def test_a_packaged_profile_is_at_most_a_screen_of_data(name):
    assert len(packaged()[name].read_text().splitlines()) <= 50
    profile = read(name)
    assert profile.name == name
    assert all(d.what and d.why and d.cited for d in profile.differs)


def test_a_profile_starts_from_the_one_that_it_is_like(file):
    found = read(file('like = "common"\n' + START + 'inside = ["gate_open"]'))
    assert found.inside == read("common").inside | {"gate_open"}
    assert len(found.differs) == len(read("common").differs) + 1


@pytest.mark.parametrize("name", additions())
def test_what_may_be_added_is_named_and_changes_some_profile(name):
    assert len(additions()[name].read_text().splitlines()) <= 50
    assert name not in packaged()

    def added(of):
        with suppress(BadInput):
            return read(f"{of}+{name}")

    found = {of: profile for of in packaged() if (profile := added(of))}
    assert found
    for of, profile in found.items():
        assert profile.name == f"{of}+{name}"
        assert len(profile.differs) > len(read(of).differs)


CONTRARY = {("loss-parallel", "whole-words")}  # of words that are not cut no device has its own


def test_no_two_additions_to_one_profile_say_the_same():
    for of in packaged():
        changed = {}
        for name in additions():
            with suppress(BadInput):
                differs = read(f"{of}+{name}").differs[len(read(of).differs) :]
                changed[name] = {key for each in differs for key in each.changes}
        for one, other in combinations(changed, 2):
            is_contrary = (one, other) in CONTRARY
            assert is_contrary is bool(changed[one] & changed[other]), (of, one, other)


def test_additions_are_made_one_after_the_other_to_profiles_and_files(file):
    found = read("fully-shard + bf16 + fused")
    assert (found.gathered, found.reduced) == (2, 4)
    assert found.inside >= read("common").inside - {"raised"}
    assert replace(read("fsdp2"), prefetch=0).in_full == found.in_full
    mine = read(file('like = "ddp+fused"\n' + START + "prefetch = 1") + "+no-sync")
    assert (mine.each, mine.waits_whole, mine.prefetch) == (False, True, 1)
    assert read("ddp").each


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("fsdp2+bf16", "expected an addition that changes fsdp2"),
        ("fully-shard+fp16-hook", "expected fp16-hook with ddp, or what is like it"),
        ("ddp+reshard", "expected reshard with fully-shard, or what is like it"),
        ("common+whole-words", "expected whole-words with pytorch, or what is like it"),
        (
            "parallelize+whole-words+loss-parallel",
            "one of whole-words and loss-parallel: both say what is whole",
        ),
        (
            "parallelize+loss-parallel+whole-words",
            "one of loss-parallel and whole-words: both say what is whole",
        ),
        ("fsdp2+nosync", "nearest: no-sync"),
        ("fsdp+no-sync", "nearest: fsdp2"),
        ("ddp+ddp", "expected what may be added: all-to-all-rotate, bf16"),
        ("ddp+", "given 'ddp+'; expected a name after each +: of all-to-all-rotate, bf16"),
        ("ddp++bf16", "given 'ddp++bf16'; expected a name after each +"),
        ("+bf16", "expected a file, or one of chunked, common"),
        ("fully-shard+bf16+bf16", "expected bf16 once"),
    ],
)
def test_what_cannot_be_added_is_refused_in_one_line(given, words):
    with pytest.raises(BadInput) as error:
        read(given)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('title = "a"\nlike = "ddp+nosync"', "nearest: no-sync"),
        ("title = 1", "line 1, title: given 1; expected a name in quotes"),
        ('title = "a"\ndiffers = 3', "line 2, differs: given 3; expected an array"),
        ('title = "a"\nlike = "comon"', "nearest: common"),
        ('title = "a"\n[[differs]]\nwhat = "x"', "differs 1: given no why; expected why = ...: words"),
        (START + 'inside = ["layer_out"]', "does not go from one part to the next"),
        (START + "widths = { layer_in = 8 }", "does not go from one part to the next"),
        (START + 'insde = ["shares"]', "nearest: inside"),
        (START + 'inside = ["share"]', "nearest: shares"),
        (START + 'again = "up"', "expected an array"),
        (START + "gathered = 9", "gathered: given 9; expected bytes of an element: 1, 2, 4 or 8"),
        (START + "gathered = 3", "given 3; expected bytes of an element: 1, 2, 4 or 8"),
        (START + "gathered = 0.5", "given 0.5; expected bytes of an element: 1, 2, 4 or 8"),
        (START + "reduced = 3", "given 3; expected bytes of an element: 0.5, 1, 2, 4 or 8"),
        (START + "quantised = 0.5", "given 0.5; expected bytes of an element: 1, 2, 4 or 8"),
        (START + "widths = { logits = true }", "given true; expected bytes of an element"),
        (START + "widths = { logits = 7 }", "given 7; expected bytes of an element: 1, 2, 4 or 8"),
        (START + "repeats = 1", "expected true or false"),
        (START + 'units = "layers"', "nearest: layer"),
        (START + "prefetch = 17", "0 to 16"),
        (START + 'pinned = ["activations"]', "one of parameters, optimizer, gradients"),
        (START + 'whole_gradients = ["word_weigh"]', "nearest: word_weight"),
        (START + 'merged = ["totl"]', "nearest: total"),
        (START + "uses = 0", "1 to 8"),
        (START + "buckets = [1]", "bytes of the first bucket"),
        (START + 'samples = "steps"', "nearest: step"),
        (START + 'unpadded = ["optimiser"]', "nearest: optimizer"),
        (START + 'inside = ["scores", "scores"]', "each name once"),
        (START + "each = false", "expected what is not so without it"),
        (START + 'outside = ["shares"]', "expected what is not so without it"),
        (START, "given no key that changes anything; expected a key that docs/GUIDE.md lists"),
        (START + "each = true\nwaits_whole = true", "expected each = false"),
        (
            'like = "ddp"\n' + START + "waits_whole = true",
            "waits_whole: given true; expected each = false",
        ),
        (
            START + 'held_units = ["rot"]',
            "given 'rot'; expected numbers of layers, or embedding, head or root; nearest: root",
        ),
        (START + "held_units = [1.0]", "given 1.0; expected numbers of layers, or embedding"),
        (START + "held_units = [true]", "given true; expected numbers of layers, or embedding"),
        (START + "held_units = [-1, 2, -1]", "held_units: given -1 twice; expected each unit once"),
        (START + "held_units = []", "expected what is not so without it"),
        (
            START + 'held_units = ["root", -1]',
            "held_units: given ['root', -1]; expected held_units of layers, and of embedding and head: "
            "root is no unit there; nearest: head",
        ),
        (
            'like = "fully-shard"\n' + START + 'held_units = ["head"]',
            "expected held_units of layers, and of root: head is no unit there; nearest: root",
        ),
        ('like = "fully-shard"\n' + START + 'units = "layer"', "units: given 'layer'; expected held_"),
        ('like = "fully-shard"\n' + START + "buckets = [1, 1]", "root is no unit there; nearest: head"),
        (START + 'inside = ["scores"]\noutside = ["scores"]', "one of inside and outside"),
        (START + 'again = ["softmax"]\nstores = ["shares"]\ninside = ["shares"]', "stores and inside"),
        (START + 'again = ["shares"]\nstores = ["shares"]', "one of stores and again"),
        (START + 'inside = ["logits"]\nwidths = { logits = 4 }', "one of widths and inside"),
        (START + 'keeps = ["rms_norm"]\nagain = ["rms_norm"]', "one of again and keeps"),
        (
            START + "gathered = 2" + OTHER + "gathered = 4",
            "differs 1, gathered: given 2; expected what no",
        ),
        (
            START + "buckets = [9, 9]" + OTHER + 'units = "layer"',
            "buckets: given [9, 9]; expected what no",
        ),
        (
            START + 'units = "layer"' + OTHER + "buckets = [9, 9]",
            "given 'layer'; expected what no other",
        ),
        (START + 'whole = ["logits"]' + OTHER + 'whole = ["loss"]', "expected what no other key"),
        ('title = "a"\nplaces = { parameter = "R" }', "nearest: parameters"),
        ('title = "a"\nplaces = { parameters = "Q" }', "expected one of R, S, S*, M, O, R+O"),
        ('title = "a"\nplaces = "R"', "expected a table"),
        ("title =", "line 1, TOML: given 'title ='; expected valid TOML"),
    ],
)
def test_what_a_profile_does_not_know_is_refused_in_one_line(text, words, file):
    with pytest.raises(BadInput) as error:
        read(file(text))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_profile_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="nearest: megatron"):
        read("megatrn")


VALUES = (
    *("1", "-1", "true", "false", '"a"', "[]", '["shares"]', '["a", 1]', "{}", "{ a = 1 }", "nan"),
    *("{ logits = 4 }", "1.5", "inf", "[1, 2]", "[true]", "1979-05-27", '[["a"]]', '"row"', "1e30"),
)


@pytest.mark.parametrize("like", ["", 'like = "ddp"\n', 'like = "fully-shard+bf16"\n'])
@pytest.mark.parametrize("key", few(CHANGES))
def test_whatever_a_key_is_given_is_read_or_refused_in_one_line(key, like, file):
    def refused(value):
        try:
            read(file(f"{like}{START}{key} = {value}"))
        except BadInput as error:
            return str(error)
        return ""

    for said in filter(None, map(refused, VALUES)):
        assert "\n" not in said and "mine.toml, line" in said
        assert len(said.partition("mine.toml")[2]) < 300


@pytest.mark.parametrize("given", ["a" * 5000, "ddp+" + "a" * 5000, "", "/", ".", "a\0b", "ddp++fused"])
def test_what_is_no_name_of_a_file_is_no_profile(given):
    with pytest.raises(BadInput) as error:
        read(given)
    assert "\n" not in str(error.value) and len(str(error.value)) < 500
