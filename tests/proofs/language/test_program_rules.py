"""A wrong rule of what a line does to layouts has no theorem; a broken one is noticed by E10."""

import pytest

from proofs.language.program_lines import BOTH, SUMMED, P, R, Rule, S, proved
from proofs.language.program_rules import accepted_rules
from proofs.trusted.kernel import Kernel, KernelError
from tests.support.broken import broken_copy, copied, notices


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
def test_a_wrong_rule_has_no_theorem(rule):
    if rule.does == "all_gather":  # summed, not gathered: right, but no move that there is
        assert rule not in accepted_rules()
        return
    with pytest.raises(KernelError):
        proved(Kernel("twin"), rule)


# -------------------------------------------------------------------------------- mutants
MUTANTS = [
    # (what is wrong, file, the rule, the broken rule, claims that must notice)
    (
        "partial results merge by what is not their log-sum-exp",
        "distribute.py",
        "            return value\n        merged = ",
        "            return value\n        return value\n        merged = ",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a slice that went round is there in every turn",
        "checking/programs.py",
        "    return {rings[0]: back}",
        "    return {}",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the derivative of a softmax knows its turn alone",
        "distribute.py",
        "there = (cotangent, self.restored(known), *product)",
        "there = (cotangent, self.restored(known))",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the product of another with the cotangent will do",
        "distribute.py",
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
        "if operation.over and along(operation.over) in lies:",
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
        "distribute.py",
        'self.total(value, terms, f"{i}" if i else "")',
        "terms[0]",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "partial results are used as they are",
        "distribute.py",
        "self.now[makes] = self.bring(makes, whole)",
        "self.now[makes] = makes",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a sum of cotangents forgets its second term",
        "distribute.py",
        "for number, term in enumerate(terms[1:], 1):",
        "for number, term in enumerate(terms[2:], 1):",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "renaming back is renaming on",
        "distribute.py",
        "back = tuple((new, old) for old, new in line.renamed)",
        "back = line.renamed",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "a derivative is known from the result",
        "distribute.py",
        'known = line.makes if line.function == "softmax" else value',
        "known = line.makes",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "the backward contraction keeps what is summed",
        "layouts.py",
        "            Contraction(self.out, self.right, self.left),\n",
        "            Contraction(self.out, self.right, self.out),\n",
        "derived_programs_do_what_one_device_does",
    ),
    (
        "operands of what is made again are not",
        "distribute.py",
        "            for read in reads:\n                self.restored(read)\n",
        "",
        "derived_programs_do_what_one_device_does recomputed_values_are_the_values",
    ),
    (
        "recomputation forgets its first line",
        "distribute.py",
        "self.backward += forward",
        "self.backward += forward[1:]",
        "recomputed_values_are_the_values",
    ),
    (
        "recomputation by another line",
        "distribute.py",
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
def test_a_broken_rule_is_noticed(wrong, file, rule, broken, claims, tmp_path):
    broken_copy(tmp_path, file, rule, broken)
    for function in claims.split():
        assert notices(tmp_path, "proofs.language.programs", function), function


@pytest.mark.slow
def test_the_unbroken_copy_is_proved(tmp_path):
    assert not notices(copied(tmp_path), "proofs.language.programs", "recomputed_values_are_the_values")
