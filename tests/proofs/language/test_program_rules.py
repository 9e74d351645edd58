"""A wrong rule of what a line does to layouts is not accepted; a broken one is noticed by E10."""

from dataclasses import replace

import pytest

from proofs.language.listed_programs import ListedPrograms, ProgramListing
from proofs.language.program_lines import CONTRACT, CUT, MOVES, PARTIAL, ProgramLines
from proofs.language.program_rules import (
    BOTH,
    SUMMED,
    P,
    R,
    Rule,
    S,
    accepted_rules,
    rule_is_accepted,
    rules_in,
)
from proofs.language.program_runs import ProgramRuns
from proofs.language.programs import (
    AGAIN,
    AXES,
    FURTHER,
    MODELS,
    ON_EVERY_AXIS,
    PARTS,
    THREE,
    checked,
    derived,
    listed,
    require_same_gradients,
    rules_of_parts,
)
from proofs.language.small_parts import projection
from proofs.trusted.kernel import Kernel, KernelError
from proofs.trusted.terms import And, Or
from spec.derivation.programs import program_of
from spec.devices.layouts import WHOLE, along
from spec.models.parts import parts
from spec.plans.model_strategies import MODEL_AXES
from tests.support.broken import notices


# ---------------------------------------------------------------------------------- rules
@pytest.mark.parametrize(
    "rule",
    [
        Rule("contract", SUMMED, (S, S), S),  # summed over, and yet slices
        Rule("contract", SUMMED, (S, S), R),  # a term taken for the sum
        Rule("contract", BOTH, (S, S), P),
        Rule("contract", BOTH, (S, S), R),
        Rule("contract", "", (P, P), P),  # a product of terms
        Rule("contract", "", (P, R), R),
        Rule("contract", BOTH, (P, S), P),
        Rule("add", "", (P, R), P),
        Rule("add", "", (P, P), R),
        Rule("function", "", (P,), P),
        Rule("function", "rows", (S,), S),
        Rule("function", BOTH, (S,), R),
        Rule("rename", "named", (S,), R),
        Rule("all_gather", "", (P,), R),
    ],
    ids=str,
)
def test_a_wrong_rule_is_not_accepted(rule):
    with pytest.raises(KernelError):
        rule_is_accepted(ProgramLines(Kernel("twin")), rule)


def test_a_rule_that_no_line_follows_is_refused():
    with pytest.raises(KernelError, match="no line does that"):
        rule_is_accepted(ProgramLines(Kernel("twin")), Rule("shuffle", "", (S,), R))


# ------------------------------------------------------------------- the theorem of programs
def accepts_also(more):
    """Runs of which the checker accepts more lines."""

    class Other(ProgramRuns):
        def accepts(self):
            return Or(super().accepts(), And(*more(self)))

    return Other


@pytest.mark.parametrize(
    "more",
    [
        lambda l: [l.is_a(CONTRACT), l.lie(l.first(l.t)) == PARTIAL, l.lie(l.t) == PARTIAL],
        lambda l: [l.is_a(CONTRACT), l.lie(l.first(l.t)) == CUT, l.lie(l.second(l.t)) == CUT],
        lambda l: [l.is_a("add"), l.lie(l.first(l.t)) == l.lie(l.t)],
        lambda l: [l.is_a("function"), l.lie(l.first(l.t)) == l.lie(l.t) == l.lie(l.second(l.t))],
        lambda l: [l.is_a("rename"), l.lie(l.t) == PARTIAL],
        lambda l: [l.is_a("all_gather"), l.lie(l.first(l.t)) == PARTIAL],
        lambda l: [l.is_a("all_reduce"), l.lie(l.t) == PARTIAL],
        lambda l: [l.is_a("reduce_scatter")],
        lambda l: [l.is_a("slice")],
        lambda l: [l.is_a("all_to_all"), l.lie(l.t) == PARTIAL],
    ],
    ids=[
        *("a product of terms", "slices along what is not summed over", "a sum of what lies otherwise"),
        *("a function of terms, or of slices of its rows", "terms that are renamed"),
        *("terms that are gathered", "terms of a sum", "anything scattered", "anything sliced"),
        "slices exchanged for terms",
    ],
)
def test_a_checker_that_accepts_more_has_no_theorem(more):
    with pytest.raises(KernelError):
        accepts_also(more)(Kernel("twin"))


@pytest.mark.parametrize("move", MOVES)
def test_a_collective_that_means_something_else_has_no_theorem(move):
    class Other(ProgramRuns):
        def _moved(self):
            return super()._moved() | {move: self.held(self.first(self.t), self.d, self.e) + 1}

    with pytest.raises(KernelError):
        Other(Kernel("twin"))


# ----------------------------------------------------------------------- programs as lists
def _of_listed(program):
    (axis,) = program.axes
    ListedPrograms(Kernel("twin")).of_listed({"damaged": ProgramListing(program, axis)})


@pytest.mark.parametrize("axis", THREE, ids=lambda axis: axis.name)
def test_on_several_axes_a_listed_program_that_forgets_a_move_along_one_has_no_theorem(axis):
    program = program_of(projection(), THREE)
    ListedPrograms(Kernel("twin")).of_listed({"whole": ProgramListing(program, axis)})
    for move in program.moves:
        if move.axis == axis.name:
            listing = ProgramListing(program.without(move), axis)
            with pytest.raises(KernelError):
                ListedPrograms(Kernel("twin")).of_listed({"damaged": listing})


def test_a_listed_program_that_forgets_a_move_has_no_theorem():
    program = program_of(projection(), (MODEL_AXES["tp"],))
    for move in program.moves:
        with pytest.raises(KernelError):
            _of_listed(program.without(move))


def test_a_listed_program_whose_values_are_said_to_lie_otherwise_has_no_theorem():
    program = program_of(projection(), (MODEL_AXES["tp"],))
    made = program.lines[0].makes
    otherwise = [
        lie for lie in (WHOLE, *map(along, made.indices)) if {"tensor": lie} != program.lies[made]
    ]
    for lie in otherwise:
        damaged = replace(program, lies={**program.lies, made: {"tensor": lie}})
        with pytest.raises(KernelError):
            _of_listed(damaged)


@pytest.mark.slow
def test_a_line_on_one_axis_that_is_as_no_listed_line_is_refused():
    programs = {name: listing.program for name, listing in listed().items()}
    assert rules_of_parts(programs.values()) > set().union(*map(rules_in, programs.values()))
    del programs["head_made_again_on_tp"]
    with pytest.raises(KernelError, match=r"no listed line is as .*slice"):
        rules_of_parts(programs.values())


def test_a_ring_is_not_listed():
    with pytest.raises(KernelError, match="turns of a ring are not listed"):
        ProgramListing(program_of(projection(), (MODEL_AXES["cp"],)), MODEL_AXES["cp"])


@pytest.mark.parametrize("name", listed())
def test_a_listing_has_every_line_of_its_program_and_reads_what_it_reads(name):
    listing = listed()[name]
    program = listing.program
    assert [line for line in program.lines if line.makes not in listing.made] == []
    made = {}
    for line, number in zip(program.lines, listing.numbers, strict=True):
        reads, open_ones = set(), [number]
        while open_ones:  # through the lines that an operation is made of
            for read in listing.lines[open_ones.pop()].reads:
                reads.add(read)
                open_ones += [read] * (read not in {*made.values(), *listing.made.values()})
        for value in line.reads:
            if value not in made:  # it comes in; what is made again later has another line then
                came = [n for n in sorted(reads - {*made.values()}) if not listing.lines[n].reads]
                again = [each.makes for each in program.lines].count(value)
                made[value] = came[0] if again else listing.made[value]
            assert made[value] in reads, line
        assert listing.lines[number].lie == program.lies[line.makes][listing.axis.name]
        made[line.makes] = number


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS[len(ON_EVERY_AXIS) :])
def test_every_model_needs_proved_rules_only_on_every_axis_and_is_made_again_by_its_lines(model):
    for part in parts(model):
        assert checked(part, [(axis,) for axis in AXES]) <= accepted_rules()
        for axis in AXES:
            require_same_gradients(part, axis)


@pytest.mark.slow
def test_what_is_not_tried_of_holding_and_recomputation_is_the_same_programs():
    for part in PARTS | FURTHER:
        found = [p for axis in AXES for p in derived(part, (axis,))]
        lines = [(p.forward, p.backward, p.kept) for p in found]
        for axis in MODEL_AXES.values():
            for held in (False, True):
                for again in AGAIN:
                    p = program_of(part, (replace(axis, held=held),), again)
                    assert (p.forward, p.backward, p.kept) in lines, (part.name, axis, again)


# -------------------------------------------------------------------------------- mutants
MUTANTS = [
    # (what is wrong, file, the rule, the broken rule, claims that must notice)
    (
        "partial results merge by what is not their log-sum-exp",
        "derivation/programs.py",
        "        return self.bring(self.log_totals[scores], merged)",
        "        return self.bring(value, merged)",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a slice that went round is there in every turn",
        "checking/programs.py",
        "    return {ring.turns: back}",
        "    return {}",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the derivative of a softmax knows its turn alone",
        "derivation/programs.py",
        "there = (cotangent, self.restored(line.known), *product)",
        "there = (cotangent, self.restored(line.known))",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the product of another with the cotangent will do",
        "derivation/programs.py",
        "Operation(Does.CONTRACT, (cotangent, output), makes)",
        "Operation(Does.CONTRACT, (cotangent, cotangent), makes)",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a contracted index leaves slices",
        "layouts.py",
        "return along(index) if index in contraction.out else PARTIAL",
        "return along(index)",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a product of two terms is a term",
        "layouts.py",
        "if WHOLE not in (left, right):",
        "if False:",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a product with a term is whole",
        "layouts.py",
        "        return PARTIAL\n    cut",
        "        return WHOLE\n    cut",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a function of a term is a term of it",
        "layouts.py",
        '    if PARTIAL in lies:\n        raise LayoutError("a function that is not linear',
        '    if False:\n        raise LayoutError("a function that is not linear',
        "derived_programs_do_what_one_device_does",
    ),
    (
        "sums of what lies otherwise",
        "layouts.py",
        "if len(set(lies)) > 1:",
        "if False:",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a norm of a slice of the features",
        "layouts.py",
        "if lie == along(index):",
        "if False:",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a norm's gradient from a slice of the features",
        "language/programs.py",
        "if along(operation.over) in lies:",
        "if False:",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the cotangent of a partial sum is partial",
        "language/programs.py",
        "WHOLE if lie.layout is _P else lie.plain for",
        "lie.plain for",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "slots lie along the first name of their tokens",
        "language/programs.py",
        "return along(axis.stream if len(to) > 1 else to[0])",
        "return along(to[0])",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "of the terms of a cotangent that lie alike only the first counts",
        "derivation/programs.py",
        'self.total(value, terms, f"{i}" if i else "")',
        "terms[0]",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "partial results are used as they are",
        "derivation/programs.py",
        "self.now[makes] = self.bring(makes, whole)",
        "self.now[makes] = makes",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a sum of cotangents forgets its second term",
        "derivation/programs.py",
        "for number, term in enumerate(terms[1:], 1):",
        "for number, term in enumerate(terms[2:], 1):",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "renaming back is renaming on",
        "derivation/programs.py",
        "back = tuple((new, old) for old, new in line.renamed)",
        "back = line.renamed",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a derivative is known from the result",
        "derivation/programs.py",
        "self.restored(line.known)",
        "self.restored(line.makes)",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the backward contraction keeps what is summed",
        "meaning/terms.py",
        "back = Operation(Does.CONTRACT, reads, value)",
        "back = Operation(Does.CONTRACT, reads, made)",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "operands of what is made again are not",
        "derivation/programs.py",
        "            for read in reads:\n                self.restored(read)\n",
        "",
        "derived_programs_do_what_one_device_does recomputed_values_are_the_values",
    ),
    (
        "recomputation forgets its first line",
        "derivation/programs.py",
        "self.backward += forward",
        "self.backward += forward[1:]",
        "recomputed_values_are_the_values",
    ),
    (
        "recomputation by another line",
        "derivation/programs.py",
        "self.backward += forward",
        'self.backward += [replace(x, function="f") if x.makes.name == "active" else x '
        "for x in forward]",
        "recomputed_values_are_the_values",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "file", "rule", "broken", "claims"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_a_broken_rule_is_noticed(wrong, file, rule, broken, claims):
    for function in claims.split():
        assert notices("proofs.language.programs", function, file, rule, broken), function


@pytest.mark.slow
def test_what_is_not_broken_is_proved_likewise():
    _, file, rule, *_ = MUTANTS[-1]
    claim = "proofs.language.programs", "recomputed_values_are_the_values"
    assert not notices(*claim, file, rule, rule)
