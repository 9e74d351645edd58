"""Files that are no certificates, or too much of one."""

import json
import lzma
import subprocess
import sys

import pytest

from psem_check.__main__ import main
from psem_check.check import check
from psem_check.printing import lines_of
from psem_check.proofs import check_proof
from psem_check.reader import LARGEST, VERSION, Graph, read
from psem_check.terms import INT, Rejected, Symbol, Terms
from tests.support.certificates import changed, of_claims, proofs_in

SOUND = of_claims("S1")


def written(tmp_path, data):
    path = tmp_path / "c.json.xz"
    path.write_bytes(lzma.compress(data if isinstance(data, bytes) else json.dumps(data).encode()))
    return path


def test_a_certificate_of_a_claim_is_checked(tmp_path, capsys):
    assert main([str(written(tmp_path, SOUND))]) == 0
    printed = capsys.readouterr().out
    assert "S1 proved: checked (5 obligations)" in printed
    assert "theorem every_element_is_owned" in printed
    assert "definition of is_owned" in printed


def test_a_certificate_without_claims_is_rejected(tmp_path, capsys):
    path = written(tmp_path, changed(SOUND) | {"claims": []})
    assert main([str(path)]) == 1
    assert "it has no claim" in capsys.readouterr().out


def test_words_of_a_certificate_cannot_pass_for_lines_of_the_checker(tmp_path, capsys):
    document = changed(SOUND)
    (part, *_) = document["claims"][0]["parts"]
    part["name"] = "p\n9 claims, 9 obligations: checked"
    part["steps"][0]["rule"] = "believe"
    assert main([str(written(tmp_path, document))]) == 1
    assert "\n9 claims" not in capsys.readouterr().out


def test_output_that_ends_early_is_one_line(tmp_path):
    path = written(tmp_path, SOUND)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "psem_check", path], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_proof_is_named_and_never_passes_for_checked(tmp_path, capsys):
    document = changed(SOUND)
    (*_, (place, key)) = proofs_in(document)
    place[key] = "none found"
    assert main([str(written(tmp_path, document)), "--brief"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("REJECTED: S1: ")
    assert "the proof of" in printed


def test_a_proof_that_is_wrong_is_named(tmp_path, capsys):
    document = changed(SOUND)
    for place, key in proofs_in(document):
        place[key].pop()
    assert main([str(written(tmp_path, document))]) == 1
    assert ": it does not end in a contradiction" in capsys.readouterr().out


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"nothing",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"certificate": 2, "certificate": 2}',
        b'{"certificate": NaN}',
        b'{"certificate": 6}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_certificate_is_refused_in_a_line(tmp_path, capsys, data):
    assert main([str(written(tmp_path, data))]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_key_that_stands_twice_is_refused(tmp_path):
    text = json.dumps(SOUND).replace('"claims"', '"terms": {}, "claims"', 1)
    with pytest.raises(Rejected, match="twice"):
        read(written(tmp_path, text.encode()))


def test_a_file_that_is_cut_off_or_not_there_is_refused(tmp_path):
    path = written(tmp_path, SOUND)
    data = path.read_bytes()
    for cut in (data[: len(data) // 2], data[:-1], b"", json.dumps(SOUND).encode()):
        path.write_bytes(cut)
        with pytest.raises(Rejected, match=r"it is cut|cannot be read"):
            read(path)
    assert main([str(tmp_path / "nothing.xz")]) == 2


def test_a_file_without_end_is_refused(tmp_path, capsys):
    assert main(["/dev/zero"]) == 2
    path = written(tmp_path, b" " * (LARGEST + 1))
    assert main([str(path)]) == 2
    assert capsys.readouterr().err.count(f"more than {LARGEST:,} bytes") == 2


def of_nested_conjunctions(number):
    """A file of some kilobytes; each conjunction has all of the one before, and a symbol more."""
    terms = [["apply", i] for i in range(number)]
    terms += [["and", number + i - 2 if i > 1 else 0, i] for i in range(1, number)]
    steps = [{"rule": "suppose", "name": "h", "formula": len(terms) - 1}]
    proof = [["follows", 0, [0, 1]]]
    steps.append({"rule": "prove", "name": "t", "given": [], "goal": 0, "uses": [0], "proof": proof})
    part = {"name": "p", "symbols": [*range(number)], "variables": [], "steps": steps}
    return {
        "certificate": VERSION,
        "sorts": [["Bool"]],
        "symbols": [[f"x{i}", [], 0] for i in range(number)],
        "terms": terms,
        "claims": [{"id": "X", "statement": "s", "parts": [part], "theorems": [[0, 1]]}],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("MEMORY = 200 << 20", "MemoryError"),
        ("SECONDS = 2", "it takes more than 2 seconds of processor time"),
    ],
)
def test_memory_and_time_for_all_of_a_certificate_have_a_bound(tmp_path, bound, said):
    path = written(tmp_path, of_nested_conjunctions(6000))
    start = f"import psem_check.__main__ as command; command.{bound}"
    code = f"{start}; exit(command._run([{str(path)!r}]))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (1, "")
    (line,) = run.stdout.splitlines()
    assert line.startswith("REJECTED: ")
    assert said in line


@pytest.mark.slow
def test_deep_terms_are_no_matter():
    terms = Terms()
    terms.symbols = [Symbol("x", (), INT)]
    x = deep = terms.make(0)
    for _ in range(200_000):
        deep = terms.make("neg", deep)
    same = terms.make("=", terms.substitute(deep, {x: x}), deep)
    graph = Graph(terms, numbers=[terms.false])
    check_proof(graph, [terms.negation(same)], [["follows", 0, [0]]])


def test_powers_have_a_bound():
    graph = Graph()
    squares = [["*", i, i] for i in range(60)]
    graph.read(
        [["Int"], ["Bool"]],
        [["x", [], 0]],
        [["apply", 0], *squares, ["constant", 1, False], ["=", 60, 0]],
    )
    with pytest.raises(Rejected, match="too large"):
        check_proof(graph, [graph.term(62)], [["follows", 61, [0]]])


SQUARES = [["*", i, i] for i in range(1, 61)]
QUOTIENTS = [["/", *of] for i in range(1, 121, 2) for of in ((0, i), (i, i + 1))]  # a / (1 / a)
X = [["apply", i] for i in range(9)]
SUM = [["constant", 0, 1, 10**4000 + i] for i in range(9)]  # no two have a common divisor that is large
SUM += [["*", i, 9 + i] for i in range(9)] + [["+", *range(18, 27)]]


@pytest.mark.parametrize(
    "terms",
    [
        [["constant", 0, 1, 1], ["constant", 0, 1, 3], *SQUARES],
        [["constant", 0, 1, 1], ["constant", 0, 3, 1], *QUOTIENTS],
        [["constant", 0, 1, 1], ["constant", 0, 1, 3], *QUOTIENTS],
        [*X, *SUM],
    ],
)
def test_numbers_have_a_bound_above_and_below_their_line(terms):
    graph = Graph()
    symbols = [[f"x{i}", [], 0] for i in range(9)]
    last = len(terms) - 1
    graph.read(
        [["Real"], ["Bool"]],
        symbols,
        [*terms, ["constant", 0, 0, 1], ["<", last, last + 1], ["constant", 1, False]],
    )
    with pytest.raises(Rejected, match="a number is too large"):
        check_proof(graph, [graph.term(last + 2)], [["follows", last + 3, [0]]])


def test_a_product_of_many_comparisons_has_a_bound():
    graph = Graph()
    terms = [["apply", 0], ["constant", 0, 1, 1], ["+", 0, 1], ["constant", 0, 0, 1], [">", 2, 3]]
    graph.read([["Real"]], [["x", [], 0]], terms)
    with pytest.raises(Rejected, match="a polynomial is too large"):
        check_proof(graph, [graph.term(4)], [["products", [4], [[1, [0] * 10_000]]]])


def test_a_hundred_thousand_steps_are_no_matter():
    graph = Graph()
    graph.read([["Bool"]], [["p", [], 0]], [["apply", 0], ["not", 0], ["constant", 0, False]])
    facts = [graph.term(0), graph.term(1)]
    steps = [["follows", 0, [0]]] * 100_000
    steps.append(["follows", 2, [100_001, 1]])
    check_proof(graph, facts, steps)


def test_arrays_are_not_of_arrays():
    with pytest.raises(Rejected, match="an array of arrays"):
        Graph().read([["Int"], ["Array", 0, 0], ["Array", 0, 1]], [], [])


def test_a_sort_is_declared_once():
    with pytest.raises(Rejected, match="two sorts"):
        Graph().read([["Values", "Mode", ["R"]], ["Values", "Mode", ["R", "S"]]], [], [])


def test_a_name_that_is_printed_is_of_one_thing():
    mode = ["Values", "Mode", ["R", "S"]]
    for sorts in ([mode, ["Sort", "Mode"]], [["Values", "Mode", ["R", "R"]]], [["Sort", "nan"]]):
        with pytest.raises(Rejected):
            Graph().read(sorts, [], [])


@pytest.mark.parametrize("step", [[], {}, None, "law", 1, [[]], ["follows"], ["law", "read", 0]])
def test_what_is_no_step_of_a_proof_is_rejected(step):
    graph = Graph()
    graph.read([["Bool"]], [["p", [], 0]], [["apply", 0], ["constant", 0, False]])
    with pytest.raises(Rejected):
        check_proof(graph, [graph.term(0)], [step])


def test_a_step_says_no_limit_of_its_own():
    graph = Graph()
    graph.read([["Bool"]], [["p", [], 0]], [["apply", 0], ["not", 0], ["constant", 0, False]])
    facts = [graph.term(0), graph.term(1)]
    check_proof(graph, facts, [["follows", 2, [0, 1]]])
    with pytest.raises(Rejected, match="cannot be read"):
        check_proof(graph, facts, [["follows", 2, [0, 1], 10**100]])


FOR_ALL = {
    "certificate": 7,
    "sorts": [["Int"], ["Values", "Mode", ["R", "S"]], ["Real"], ["Bool"]],
    "symbols": [["n", [], 0], ["m", [], 0], ["S", [], 0]],
    "terms": [
        ["apply", 0],
        ["constant", 0, 1],
        [">=", 0, 1],
        ["constant", 2, 1, 2],
        ["/", 3, 3],
        ["=", 4, 4],
        ["not", 2],
        ["constant", 3, False],
    ],
    "claims": [
        {
            "id": "X1",
            "statement": "theorem there_are_many",
            "parts": [
                {
                    "name": "X1",
                    "symbols": [0],
                    "variables": [0],
                    "steps": [
                        {"rule": "suppose", "name": "some", "formula": 2},
                        {
                            "rule": "prove",
                            "name": "many",
                            "given": [],
                            "goal": 2,
                            "uses": [0],
                            "proof": [["follows", 7, [0, 1]]],
                        },
                        {
                            "rule": "prove",
                            "name": "halves",
                            "given": [],
                            "goal": 5,
                            "uses": [],
                            "proof": [["follows", 7, [0]]],
                        },
                    ],
                }
            ],
            "theorems": [[0, 1], [0, 2]],
        }
    ],
}


def printed_of(document):
    (claim,) = check(document)
    return [*lines_of(claim)]


def test_a_hypothesis_is_printed_with_what_it_is_for_all_of():
    lines = printed_of(FOR_ALL)
    assert lines[lines.index("  hypothesis some") + 1] == "    for all n"
    one = changed(FOR_ALL)
    one["claims"][0]["parts"][0].update(variables=[])
    lines = printed_of(one)  # of one n
    assert lines[lines.index("  hypothesis some") + 1] == "    (n >= 1)"
    assert lines[-2] == "  for n: Int"


def test_words_of_a_certificate_are_printed_as_words_and_fractions_in_brackets():
    lines = printed_of(FOR_ALL)
    assert '  "theorem there_are_many"' in lines
    assert "    (((1/2) / (1/2)) = ((1/2) / (1/2)))" in lines


def test_parts_whose_names_are_their_own_are_told_apart():
    document = changed(FOR_ALL)
    claim = document["claims"][0]
    other = changed(claim["parts"][0]) | {"symbols": [1]}
    claim["parts"].append(other | {"variables": [], "steps": other["steps"][2:]})
    claim["theorems"] = [[0, 1], [1, 0]]
    assert [line for line in printed_of(document) if line.startswith("  part")] == [
        "  part 1 of 2, whose names are its own",
        "  part 2 of 2, whose names are its own",
    ]


def test_a_symbol_has_no_values_name():
    document = changed(FOR_ALL)
    document["claims"][0]["parts"][0]["symbols"] = [0, 2]
    with pytest.raises(Rejected, match="a value"):
        printed_of(document)


def test_a_refutation_is_printed_as_the_claim_and_the_values_that_make_it_false():
    lines = printed_of(of_claims("E8"))
    at = lines.index("  not always sums_depend_on_their_order")
    assert lines[at + 1] == "    for all g"
    assert "    fp.eq(fp.add(fp.add(1.0, g), g), fp.add(1.0, fp.add(g, g)))" in lines
    assert any(line.startswith("    false where g = 1.11022") for line in lines)
