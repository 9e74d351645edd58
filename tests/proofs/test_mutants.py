"""Break one rule of what moves, is held or is derived: a claim that speaks of it must fail.

Each mutant is the project with one line of spec/ changed.
"""

from pathlib import Path

import pytest

from tests.support.broken import claims_fail, copied, forked, python

pytestmark = pytest.mark.slow

MUTANTS = [
    # (what is wrong, file, the rule, the broken rule, claims that must notice)
    ("a ring goes one step short", "collectives.py", "return n - 1", "return n - 2", "C1 C2 C3"),
    (
        "reduce-scatter sends another chunk",
        "collectives.py",
        "    return device - 1 - step",
        "    return device - step",
        "C1 C3",
    ),
    (
        "all-gather forwards the wrong chunk",
        "collectives.py",
        '    """The chunk that `device` sends in `step` of a ring all-gather: first its own."""\n'
        "    return device - step",
        '    """The chunk that `device` sends in `step` of a ring all-gather: first its own."""\n'
        "    return device + step",
        "C2 C3",
    ),
    (
        "reduce-scatter overwrites instead of adding",
        "collectives.py",
        "buffer(device, chunk) + buffer(device - 1, chunk)",
        "buffer(device - 1, chunk)",
        "C1 C3",
    ),
    (
        "an all-reduce counts one ring",
        "collectives.py",
        "lambda n: REDUCE_SCATTER.messages(n) + ALL_GATHER.messages(n)",
        "lambda n: REDUCE_SCATTER.messages(n)",
        "C3 X1 X2",
    ),
    (
        "a shard ends one early",
        "mesh.py",
        "element < start + chunk",
        "element < start + chunk - 1",
        "S1",
    ),
    (
        "one index that becomes two is each of them",
        "nesting.py",
        "if olds.count(o) == 1 and news.count(n) == 1)",
        "if news.count(n) == 1)",
        "K9",
    ),
    (
        "an order of two axes asks nothing of moves",
        "nesting.py",
        "if lie.index == index and axis != move.axis:",
        "if lie.index == index and axis == move.axis:",
        "K9",
    ),
    (
        "shards overlap by one",
        "mesh.py",
        "element < start + chunk",
        "element <= start + chunk",
        "S1 S3",
    ),
    (
        "sharded states rest whole",
        "memory.py",
        "sizes.at_rest(state, rest.sharded) * sizes",
        "sizes.slice(()) * sizes",
        "M2 M3 M4 M5 M6 M7",
    ),
    (
        "a released buffer is not given back",
        "memory.py",
        "            balance = balance - room_of(result)\n",
        "            pass\n",
        "M9",
    ),
    (
        "units take no room",
        "memory.py",
        "[op] if op.span is not Span.NONE else []",
        "[op] if op.span is Span.ALL_UNITS else []",
        "M9",
    ),
    (
        "an update gives back what it has written",
        "memory.py",
        "offloaded = {op.target} if op.kind is Kind.OFFLOAD else set()",
        "offloaded = {op.target} if op.kind in (Kind.OFFLOAD, Kind.UPDATE) else set()",
        "M9",
    ),
    (
        "a unit stays until all have had their turns",
        "memory.py",
        "waiting += [result for result in go if result.span is Span.ALL_UNITS]",
        "waiting += go",
        "M9",
    ),
    (
        "held parameters take a unit only",
        "derivation/schedules.py",
        "forward, backward = at_once[placement.hold], at_once[stays]",
        "forward, backward = at_once[False], at_once[stays]",
        "M9",
    ),
    (
        "a gathered unit takes a shard",
        "memory.py",
        "devices = group_size(sizes.mesh, op.axes) if op.kind is Kind.ALL_GATHER else 1",
        "devices = 1",
        "M9",
    ),
    (
        "fresh gradients take no room",
        "derivation/schedules.py",
        "Buffer.FRESH, everyones, span=Span.UNIT)",
        "Buffer.FRESH, everyones)",
        "M9",
    ),
    (
        "accumulation is counted once",
        "communication.py",
        "((schedule.micro_step, micro_steps),",
        "((schedule.micro_step, 1),",
        "X4 X5",
    ),
    (
        "a gather sends the whole",
        "communication.py",
        "chunk, whole = sizes.slice(op.within + op.axes), sizes.slice(op.within)",
        "chunk = whole = sizes.slice(op.within)",
        "X1",
    ),
    (
        "a sharded optimizer gets an all-reduce",
        "derivation/schedules.py",
        "return _along(self.axes, self.updates + in_place)",
        "return _along(self.axes, in_place)",
        "X1 X4",
    ),
]


@pytest.mark.parametrize(
    ("wrong", "file", "rule", "broken", "ids"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_a_broken_rule_is_noticed(wrong, file, rule, broken, ids):
    claims_fail(wrong, file, rule, broken, ids.split())


def test_what_is_not_broken_is_proved_likewise():
    _, file, rule, *_ = MUTANTS[0]
    assert forked().tried("fails", ["C1", "S1", "M4", "E9"], file, rule, rule) == ([], "")


def test_the_unbroken_copy_is_proved(tmp_path):
    done = python(copied(tmp_path), "-m", "psem_model", "prove", "C1", "S1", "M4")
    assert done.returncode == 0
    assert Path(tmp_path, "build").exists() is False
