"""Derived programs as text: what a reader needs to follow every value through it."""

from __future__ import annotations

import re

import pytest

from psem_model.predict.programs import program as derive
from psem_model.reading.products import parse
from psem_model.text.terminal import text
from spec.models.transformer import EMBEDDING, HEAD, LAYER
from spec.plans.model_strategies import MODEL_AXES

NAMES = sorted({*MODEL_AXES} - {"dp"})
RECOMPUTED = [[], ["--recompute", "attention"], ["--recompute", "all"], ["--recompute", "sliced"]]
PROGRAMS = [
    [name, "--part", part, "--block", block, *more]
    for name in (*NAMES, "cp * tp+sp")
    for block in ("gpt", "llama")
    for part in (EMBEDDING, LAYER, HEAD)
    for more in (RECOMPUTED if part == LAYER else [[]])
]
NOT_RINGS = ("cp-all-gather", "cp-all-to-all")
SEEDS = ("d layer_out", "d loss", "d words", "layer_in")  # that a program starts from
ROW = re.compile(r"^  [| ]?(>| ) (.+?)\[(.*?)\] +(.*?)  .*$")


@pytest.fixture
def program(psem):
    """program("tp", ...) -> the lines of what psem derive prints of it."""

    def derive(*args):
        experts = ["--experts"] if "ep" in args and args[args.index("--part") + 1] == LAYER else []
        code, out, err = psem("derive", *args, *experts)
        assert (code, err) == (0, "")
        return out.splitlines()

    return derive


def rows(lines):
    """What each line makes, its indices, what it does, and whether it is of forward."""
    found, title = [], ""
    for line in lines:
        title = line if line and not line.startswith(" ") else title
        if title.startswith(("forward", "backward", "finish")) and (match := ROW.match(line)):
            _, name, indices, does = match.groups()
            found.append((name, indices.split(), does, title))
    return found


def legend(lines):
    return [entry.split(" ", 1)[0] for entry in lines[2].strip().split(", ")] if lines[2] else []


@pytest.mark.parametrize("args", PROGRAMS, ids=" ".join)
def test_the_legend_names_the_indices_that_appear_and_no_others(args, program):
    for more in ([], ["--moves"]):
        lines = program(*args, *more)
        shown = {
            i for line in lines[3:] for found in re.findall(r"\[(.*?)\]", line) for i in found.split()
        }
        assert sorted(legend(lines)) == sorted(shown)


@pytest.mark.parametrize("args", PROGRAMS, ids=" ".join)
def test_no_two_values_have_one_name(args, program):
    """Every name is made once, or once more for backward, which is said; what is read was made.

    In turns it is made again under another number: the slice of a turn is not there after it.
    """
    made, loop = set(), args[0].startswith("cp") and args[0] not in NOT_RINGS
    for name, _, does, title in rows(program(*args)):
        again = does.endswith(", made again")
        number = re.compile(r" \d+$")
        forms = {number.sub("", other) for other in made}
        made_before = name in made or (loop and again and number.sub("", name) in forms)
        assert made_before == again or name.startswith("layer_in")  # which is given
        assert not again or title == "backward"
        made.add(name)
        plain = does.removesuffix(", made again")
        moved = re.search(r" of (.*)$", plain)
        read = moved[1].split(" by ") if moved else re.search(r"\((.*)\)$", plain)[1].split(", ")
        for value in read:
            numbered = re.search(r" \d+$", value)
            assert not numbered or value in made or value.startswith(SEEDS)


@pytest.mark.parametrize("name", NAMES)
def test_what_norms_need_again_is_marked(name, program):
    lines = program(name, "--part", LAYER)
    again = {row[0] for row in rows(lines) if row[2].endswith(", made again")}
    assert {"mlp_norm_unit", "attention_norm_unit"} <= again


def test_what_is_kept_has_the_name_that_it_has_where_it_is_made(program):
    lines = program("tp+sp", "--part", LAYER)
    names = {row[0] for row in rows(lines)} | {"layer_in"}
    kept = [line.split("[")[0].strip() for line in lines[lines.index("kept for backward") + 1 :]]
    assert {name for name in kept if not name.endswith("_mask")} <= names


def test_held_values_are_kept_and_not_gathered_again(program, psem):
    again = program("tp+sp", "--part", LAYER, "--moves")
    held = program("tp+sp", "--part", LAYER, "--moves", "--hold")
    assert sum("made again" in line for line in again) == 2
    assert sum("made again" in line for line in held) == 0


@pytest.mark.parametrize("columns", [40, 80])
def test_no_line_of_a_program_is_wider_than_the_terminal(columns):
    derived = derive(parse("cp * tp+sp"), False, "gpt", False, LAYER, None, False)
    assert max(map(len, text(derived, columns).splitlines())) <= columns
