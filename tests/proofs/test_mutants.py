"""Break one rule of the specification: a claim that speaks of it must fail.

Each mutant is a copy of the project with one line of spec/ changed.
"""

from pathlib import Path

import pytest

from tests.support.broken import SEEN_BY_T3, broken_copy, copied, python

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
        "shards overlap by one",
        "mesh.py",
        "element < start + chunk",
        "element <= start + chunk",
        "S1 S3",
    ),
    (
        "sharded states rest whole",
        "memory.py",
        "sizes.slice(rest.sharded) * sizes",
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
        "[op] if op.span is Span.WHOLE else []",
        "M9",
    ),
    (
        "an update gives back what it has written",
        "memory.py",
        "_ENDS = (Kind.RELEASE, Kind.OFFLOAD)",
        "_ENDS = (Kind.RELEASE, Kind.OFFLOAD, Kind.UPDATE)",
        "M9",
    ),
    (
        "a unit stays until all have had their turns",
        "memory.py",
        "waiting += [result for result in go if result.span is Span.WHOLE]",
        "waiting += go",
        "M9",
    ),
    (
        "held parameters take a unit only",
        "derive.py",
        "Span.WHOLE if placement.hold else Span.UNIT",
        "Span.UNIT if placement.hold else Span.UNIT",
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
        "derive.py",
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
        "derive.py",
        "scatter = tuple(a for a in axes if a in updates)",
        "scatter: Axes = ()",
        "X1 X4",
    ),
    (
        "updated slices are not published",
        "derive.py",
        "        return [*([fetch] if step.on_host else []), *([gather] if missing else [])]",
        "        return [*([fetch] if step.on_host else [])]",
        "E9 X1",
    ),
    (
        "gradients are not reset",
        "derive.py",
        "            Op(Kind.RESET, Phase.UPDATE, Buffer.GRADIENTS),\n",
        "",
        "E9",
    ),
    (
        "reduction forgets to sum",
        "operators.py",
        "total(n, lambda i: value({**device, axis: i}))",
        "value(device)",
        "T1",
    ),
    (
        "a sum of equal values forgets n",
        "operators.py",
        "n if both == (ALL, ALL) else",
        "1 if both == (ALL, ALL) else",
        "T1 T3",
    ),
    (
        "another device's slice is the owner's",
        "operators.py",
        "int(left.of == right.to)",
        "1",
        "T1",
    ),
    (
        "one device fewer is nameless",
        "operators.py",
        "return n - len(named) - (1 if",
        "return n - len(named) - (2 if",
        "T1",
    ),
    (
        "the owner is somebody else",
        "operators.py",
        "value({**device, axis: owner})",
        "value({**device, axis: owner + 1})",
        "T1",
    ),
    (
        "an operator is read wrongly elsewhere",
        "operators.py",
        "    return (*named, *unnamed)",
        "    return unnamed",
        "T1 T3",
    ),
    (
        "an update starts from the working copy",
        "semantics.py",
        "read(op.target if domain.master else Buffer.PARAMETERS, host)",
        "read(Buffer.PARAMETERS, host)",
        "E9",
    ),
    (
        "a gather reads another step's parameters",
        "semantics.py",
        "write(target, _collect(op, domain, read(source, False, part)), False, part)",
        "write(target, _collect(op, domain, read(target, False, part)), False, part)",
        "E9",
    ),
    (
        "a contracted index leaves slices",
        "layouts.py",
        "return along(index) if index in contraction.out else PARTIAL",
        "return along(index)",
        "R1 R6",
    ),
    (
        "a kept index leaves terms",
        "layouts.py",
        "return along(index) if index in contraction.out else PARTIAL",
        "return PARTIAL",
        "R2",
    ),
    (
        "a product with a term is whole",
        "layouts.py",
        "        return PARTIAL\n    cut",
        "        return WHOLE\n    cut",
        "R3",
    ),
    (
        "gradients of copies are copies",
        "layouts.py",
        "{WHOLE: PARTIAL, PARTIAL: WHOLE}.get(lie, lie)",
        "lie",
        "R5",
    ),
    (
        "the transpose is the operator itself",
        "operators.py",
        "Operator(operator.of, operator.to)",
        "Operator(operator.to, operator.of)",
        "R5",
    ),
    (
        "a fresh read may be of anything",
        "conditions.py",
        "return read, seen == current",
        "return read, seen == seen",
        "E1",
    ),
    (
        "copies agree whatever they are",
        "conditions.py",
        "return [stored, other_stored], ours == other",
        "return [stored, other_stored], ours == ours",
        "E1",
    ),
    (
        "gradient integrity asks nothing",
        "conditions.py",
        "return updates, applied == every_sample_once",
        "return updates, applied == applied",
        "E1 E4",
    ),
    (
        "the start may be anything",
        "conditions.py",
        "return stored, ours == single\n\n\ndef agreement",
        "return stored, ours == ours\n\n\ndef agreement",
        "E2",
    ),
    (
        "momentum forgets the gradient",
        "training.py",
        "moment = decay * moment + gradient",
        "moment = decay * moment",
        "E2 T3",
    ),
    (
        "samples lose their weight",
        "training.py",
        "return weight * gradient",
        "return gradient",
        "E3",
    ),
    (
        "clipping ignores the norm",
        "training.py",
        "select(norm > bound, value * bound / norm, value)",
        "select(value > bound, bound, value)",
        "E6",
    ),
    (
        "what silu gives is made again",
        "distribute.py",
        "return named or not line.makes.width or self.is_of_pairs(line.makes)",
        'return named or line.function == "silu" or self.is_of_pairs(line.makes)',
        "A2 A3",
    ),
    (
        "odds of all experts take two bytes",
        "transformer.py",
        'Value("odds", ("b", "s", "j"), width=FULL)',
        'Value("odds", ("b", "s", "j"))',
        "A3",
    ),
    (
        "odds of those chosen take two bytes",
        "transformer.py",
        'Value("slot_odds", ("e", "c"), width=FULL)',
        'Value("slot_odds", ("e", "c"))',
        "A3",
    ),
    (
        "what is held is released on another axis",
        "compose.py",
        "in placement.axes), modes, placement.hold)",
        "in placement.axes), modes, False)",
        "K5 K7",
    ),
    (
        "a pipeline is not seen",
        "compose.py",
        "return next((factor.axes[0] for factor in self.factors if factor.name == PIPELINE), None)",
        "return None",
        "K5",
    ),
    (
        "the first factor's cut is the only one",
        "compose.py",
        "return tuple(factor.cuts for factor in self.factors if factor.cuts)",
        "return tuple(factor.cuts for factor in self.factors if factor.cuts)[:1]",
        "K5",
    ),
    (
        "a strategy over every axis is over its own only",
        "compose.py",
        "if alike is None or axis == self.pipe:",
        "if True:",
        "K5",
    ),
    (
        "a strategy over every axis is over the stages, too",
        "compose.py",
        "if alike is None or axis == self.pipe:",
        "if alike is None:",
        "K5",
    ),
    (
        "no gradient is summed over stages",
        "stages.py",
        "return {w: tuple(sorted(at)) for w, at in stages.items() if gradient_lie(at) == PARTIAL}",
        "return {}",
        "K5",
    ),
    (
        "nothing is sent between stages",
        "stages.py",
        "return [(before, after) for before, after in pairwise(placed) if is_sent(before, after)]",
        "return []",
        "K5",
    ),
    (
        "a stage may read what is not sent",
        "stages.py",
        "        if (before, after) not in sent:",
        "        if False:",
        "K5",
    ),
    (
        "a gradient may be one stage's term",
        "stages.py",
        "        if (weight, number) not in summed:",
        "        if False:",
        "K5",
    ),
    (
        "a program may give what lies anyhow",
        "programs.py",
        '    _require(lies, program.gives, home, (part.name, "gives"))\n',
        "",
        "E10",
    ),
    (
        "a program may return a term of a cotangent",
        "programs.py",
        "    if part.takes:",
        "    if False:",
        "E10",
    ),
    (
        "a gradient may lie anyhow",
        "programs.py",
        "        _require(lies, gradient, lies[weight], (part.name, weight.name), over)",
        "        pass",
        "E10",
    ),
    (
        "gradients are summed along one axis",
        "programs.py",
        "return tuple(axis.name for axis in self.axes if lies[axis.name] == PARTIAL)",
        "return tuple(axis.name for axis in self.axes if lies[axis.name] == PARTIAL)[:1]",
        "K5",
    ),
    (
        "an all-reduce acts on what others have reduced to their slices already",
        "derive.py",
        "buffer, None, everyone, within + scatter)",
        "buffer, None, everyone, within)",
        "K7",
    ),
    (
        "updated slices are gathered whole where parameters rest in slices",
        "derive.py",
        "gather = Op(Kind.ALL_GATHER, phase, kept, None, missing, theta.sharded)",
        "gather = Op(Kind.ALL_GATHER, phase, kept, None, missing, ())",
        "K7",
    ),
    (
        "a merged placement forgets the first",
        "compose.py",
        "        modes[state] |= dict(found)",
        "        modes[state] = dict(found)",
        "K8",
    ),
    (
        "a reduce-scatter leaves the whole sum",
        "hierarchy.py",
        "REDUCE_SCATTER.name: SUM_SLICE",
        "REDUCE_SCATTER.name: SUM",
        "C6",
    ),
    *((*seen, "T3") for seen in SEEN_BY_T3),
    ("a gather leaves a level cut", "hierarchy.py", "else cut - {level}", "else cut", "C6"),
    ("a scatter leaves a level whole", "hierarchy.py", "cut = cut | {level} if", "cut = cut if", "C6"),
    ("epsilon is left out", "training.py", "(root + epsilon)", "root", "E5"),
]


@pytest.mark.parametrize(
    ("wrong", "file", "rule", "broken", "ids"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_a_broken_rule_is_noticed(wrong, file, rule, broken, ids, tmp_path):
    broken_copy(tmp_path, file, rule, broken)
    for claim in ids.split():
        done = python(tmp_path, "-m", "psem_model", "prove", claim)
        assert done.returncode == 1, f"{claim} does not notice that {wrong}"
        assert f"NOT as expected: {claim}" in done.stdout, done.stderr  # failed, and did not crash


def test_the_unbroken_copy_is_proved(tmp_path):
    done = python(copied(tmp_path), "-m", "psem_model", "prove", "C1", "S1", "M4")
    assert done.returncode == 0
    assert Path(tmp_path, "build").exists() is False
