"""Tables: what they say is what is predicted, however written; a file is there as a whole or not."""

import csv
import io
import math
import re
from fractions import Fraction
from functools import cache

import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st

from psem_model.tables.files import TABLES
from psem_model.tables.symbols import renamed
from psem_model.tables.table import Style, formulas
from psem_model.tables.table import table as made
from psem_model.text.cells import flat, plain
from psem_model.text.formulas import formula
from psem_model.text.html import mathematics
from psem_model.text.latex import escaped, joined, label, panels
from psem_model.text.papers import FORMATS
from psem_model.text.report import Column, in_words, meanings, parts
from spec.models.states import MIXED_ADAM, custom_policy
from spec.pipelines.pipeline import Order
from spec.plans.strategies import STRATEGIES
from tests.support.command import exact, predicted
from tests.support.examples import examples, slow_but
from tests.support.formulas import number
from tests.support.pipes import chunks_of

POLICIES = {"2,2": MIXED_ADAM, "4,2": custom_policy(Fraction(4), Fraction(2), Fraction(12))}
ONE_MICRO_STEP = ("fused-update",)
OWN = {"Psi": "W", "N": "R", "K": "o", "m": "g", "t": "T", "N_shard": "R_in"}
NAMED = {  # an author's symbols and those of the closed forms
    f"{name}{'' if padded else ', divisible'}": Style(padded, own)
    for name, own in (("own", OWN), ("Psi,N", {}))
    for padded in (True, False)
}
counts = st.integers(1, 40)


@cache
def unnamed(name, padded=True, policy="2,2"):
    """A table as it is built, whatever symbols are asked for."""
    return TABLES[name](Style(padded, policy=POLICIES[policy]))


def built(name, style):
    return renamed(unnamed(name, style.padded), style)


@cache
def rows(name, padded=True, policy="2,2"):
    """A table's rows, read from its CSV."""
    found = unnamed(name, padded, policy)
    return tuple(csv.DictReader(io.StringIO(FORMATS["csv"].write(found))))


def row(name, padded=True, policy="2,2", **keys):
    (found,) = (r for r in rows(name, padded, policy) if keys.items() <= r.items())
    return found


# ------------------------------------------------------------------ tables and predictions agree
@st.composite
def steps(draw, strategy):
    """A strategy's sizes: what a table's symbols are, and the options of `psem predict`."""
    policy = draw(st.sampled_from([*POLICIES]))
    psi, m, k = draw(st.integers(1, 5000)), draw(counts), draw(st.integers(1, 20))
    m = 1 if strategy in ONE_MICRO_STEP else m
    axes = STRATEGIES[strategy].axes
    mesh = {axis: draw(counts) for axis in axes}
    names = {"N" if len(axes) == 1 else f"N_{axis}": size for axis, size in mesh.items()}
    options = {"psi": psi, "devices": "x".join(map(str, mesh.values())), "accumulate": m}
    options["bytes"] = f"{policy},{k}"
    return policy, {"Psi": psi, "m": m, "K": k, **names}, options


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(5)
@given(data=st.data(), padded=st.booleans())
def test_memory_and_communication_are_what_psem_predict_says(strategy, data, padded):
    policy, values, options = data.draw(steps(strategy))
    found = predicted(strategy, **options, **({} if padded else {"divisible": None}))
    memory, sent = found["memory"], found["communication"]
    table = row("memory", padded, policy, strategy=strategy)
    for state in ("parameters", "optimizer", "gradients"):
        assert number(table[state], values) == exact(memory["resting"][state])
    assert number(table["all"], values) == exact(memory["resting"]["total"])
    assert number(table["on the host"], values) == exact(memory["host"])

    lines = [r for r in rows("communication", padded, policy) if r["strategy"] == strategy]
    of_states = sent["operations"]
    axes = [o["axes"] for o in of_states]
    of_states.sort(key=lambda o: axes.index(o["axes"]))  # the table has those along an axis together
    moved = [r for r in lines if r["operation"] != "all"]
    names = [f"{o['operation']} {o['value']}" for o in of_states]
    when = [f", {o['phase']}" * (names.count(n) > 1) for n, o in zip(names, of_states, strict=True)]
    assert [r["operation"] for r in moved] == list(map("".join, zip(names, when, strict=True)))
    assert len({r["operation"] for r in moved}) == len(moved)
    for line, operation in zip(moved, of_states, strict=True):
        assert number(line["elements"], values) == exact(operation["elements"])
        assert number(line["bytes"], values) == exact(operation["bytes"])
    for line in (r for r in lines if r["operation"] == "all"):
        alike = [r for r in moved if r["along"] == line["along"]]
        for unit in ("elements", "bytes"):
            assert number(line[unit], values) == sum(number(r[unit], values) for r in alike)
    to_host = [number(r["bytes"], values) for r in moved if r["along"] == "host link"]
    assert sum(to_host) == exact(sent["host_bytes"])


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(5)
@given(data=st.data(), unit=st.integers(1, 5000), padded=st.booleans())
def test_what_rests_and_what_passes_is_the_peak_of_psem_predict(strategy, data, unit, padded):
    policy, values, options = data.draw(steps(strategy))
    unit = min(unit, values["Psi"])
    found = predicted(strategy, unit=unit, **options, **({} if padded else {"divisible": None}))
    table = row("peak", padded, policy, strategy=strategy)
    sizes = {**values, "U": unit}
    passes = number(table["passes, at most"], sizes)
    assert number(table["rests"], sizes) == exact(found["memory"]["resting"]["total"])
    assert number(table["rests"], sizes) + passes == exact(found["memory"]["peak"])


@st.composite
def layers(draw):
    """A GPT's layer on devices that divide what they cut: symbols, and options of `psem predict`."""
    n = draw(st.integers(1, 4))
    s, a, d, b = (draw(st.integers(1, 4)) for _ in range(4))
    v = {"s": n * s, "a": n * a, "h": n * a * d, "b": n * b, "V": n * draw(counts), "n": n}
    v |= {"E": n * draw(st.integers(2, 4)), "k": 2}
    options = {"layers": 2, "hidden": v["h"], "heads": v["a"], "sequence": v["s"]}
    options |= {"micro-batch": v["b"] * v["E"], "vocabulary": v["V"]}
    values = {**v, "b": v["b"] * v["E"], **dict.fromkeys("tce", n)}
    return values, options


CUTS = ["dp", "tp", "tp+sp", "cp", "cp-all-gather", "cp-all-to-all", "ep"]


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("strategy", CUTS)
@examples(4)
@given(layer=layers())
def test_what_a_layer_sends_is_what_psem_predict_says(strategy, held, layer):
    values, options = layer
    assume(strategy != "cp" or values["n"] > 1)
    experts = {"experts": values["E"], "chosen": values["k"]} if strategy == "ep" else {}
    listed = {r["strategy"] for r in rows("layers")}
    held = held and f"{strategy}, held" in listed
    hold = {"hold": None} if held else {}
    found = predicted(strategy, devices=values["n"], **options, **experts, **hold)["parts"]["layer"]
    table = [r for r in rows("layers") if r["strategy"] == f"{strategy}{', held' * held}"]
    elements = {r["when"]: number(r["elements"], values) for r in table}
    for phase in ("forward", "backward", "again"):
        moves = [move for move in found["moves"] if move["phase"] == phase]
        assert elements.get(phase, 0) == exact(found["elements"][phase])
        sent = sum(number(r["bytes"], values) for r in table if r["when"] == phase)
        assert sent == sum(exact(move["bytes"]) for move in moves)


@pytest.mark.parametrize("again", ["none", "attention", "all", "sliced"])
@pytest.mark.parametrize("strategy", CUTS)
@examples(3)
@given(layer=layers())
def test_what_is_kept_for_backward_is_what_psem_predict_says(strategy, again, layer):
    values, options = layer
    experts = {"experts": values["E"], "chosen": values["k"]} if strategy == "ep" else {}
    options |= {"recompute": again, "profile": "textbook", **experts}
    parts_ = predicted(strategy, devices=values["n"], **options)["parts"]
    listed = [r for r in rows("activations") if (r["part"], r["strategy"]) == ("layer", strategy)]
    by_again = {r["made again"]: r["bytes"] for r in listed}
    if again == "sliced" and again not in by_again:
        again = "all"  # of what is cut anyway
    if again == "attention" and again not in by_again:
        again = "none"  # of pairs, a ring keeps none
    assert number(by_again[again], values) == exact(parts_["layer"]["activations"])
    head = row("activations", part="head", strategy=strategy)
    assert number(head["bytes"], values) == exact(parts_["head"]["activations"])


ORDERS = ("gpipe", "1f1b", "interleaved", "zb-h1", "dualpipev")


@examples(40)
@given(*[st.integers(1, 4)] * 3, st.sampled_from([*ORDERS]))
def test_what_pipelines_hold_and_lose_is_what_psem_predict_says(p, m, v, order):
    chunks, m = chunks_of(Order(order), v), m + (order == "dualpipev")
    shape = {"layers": p * chunks, "hidden": 4, "heads": 2, "sequence": 2}
    found = predicted("pp", devices=p, accumulate=m * p, order=order, chunks=chunks, **shape)
    table = row("pipelines", schedule=order)
    values = {"p": p, "m": m * p, "v": chunks}
    for stage in found["stages"]:
        kept = number(table["in flight on stage i"], {**values, "i": stage["stage"]})
        assert kept == stage["in_flight"]
    idle = found["pipeline"]
    assert number(table["idle, of the work"], values) == exact(idle["bubble_of_ideal"])
    assert number(table["idle, of the step"], values) == exact(idle["bubble_of_total"])


# ------------------------------------------------------------------------- formulas as they read
FUNCTIONS = ("ceiling", "shard", "Min", "Max", "sqrt")
AS_PLAIN = (
    (r"\\mathrm\{(\w+)\}", r"\1"),
    (r"_\{(\w+)\}", r"_\1"),
    (r"\\allowbreak ", ""),
    (r"\\lceil\{", "ceiling("),
    (r"\}\\rceil", ")"),
    (r"\{\(([^()]*?) ?\)\}", r"(\1)"),  # a function's arguments
    (r"\\operatorname\{(\w+)\}", r"\1"),
    (r"\\min", "Min"),
    (r"\^", "**"),
    (r"(?<=\w)'", "_prime"),
    (r"\\(Psi|sqrt)", r"\1"),
    (r"\{", "("),
    (r"\}", ")"),
)


def as_read(latex):
    """What a strict reader makes of it: what stands side by side is multiplied, from left to right."""
    for of, to in AS_PLAIN:
        latex = re.sub(of, to, latex)
    out = []
    for token in re.findall(r"\*\*|\w+|\S", latex):
        before = out[-1] if out else "("
        if (before[-1].isalnum() or before == ")") and before not in FUNCTIONS:
            out += ["*"] if token[0].isalnum() or token == "(" else []
        out.append(token)
    return "".join(out)


AS_SIGNS = (
    (r"<sub>(.*?)</sub>", r"_\1"),
    (r"<sup>(.*?)</sup>", r"**\1"),
    (r"</?i>", ""),
    ("⌈", "ceiling("),
    ("⌉", ")"),
    ("Ψ", "Psi"),
    ("\N{PRIME}", "_prime"),
    ("√", "sqrt"),
    (r"\bmin\b", "Min"),
    (" (?=[-\N{MINUS SIGN}+=])|(?<=[-\N{MINUS SIGN}+=]) ", ""),
    ("\N{MINUS SIGN}", "-"),
    (r", ", ","),
)


def read_html(html):
    """What a reader makes of a formula in HTML: a thin space multiplies."""
    for of, to in AS_SIGNS:
        html = re.sub(of, to, html)
    return re.sub(r"\b(shard|Min|Max)\s*\*\s*\(", r"\1(", html.replace("\N{THIN SPACE}", "*"))


@pytest.mark.parametrize("symbols", slow_but(["own"], NAMED))
def test_every_formula_in_latex_and_html_reads_as_what_it_is(symbols):
    style = NAMED[symbols]
    for expression in {each for name in TABLES for each in formulas(built(name, style))}:
        names = {str(symbol): symbol for symbol in expression.free_symbols}
        functions = {str(f.func): f.func for f in expression.atoms(sympy.Function)}
        written = formula(expression)
        broken = as_read(formula(expression, broken=True))
        for said in {as_read(written), broken, read_html(mathematics(written))}:
            found = sympy.sympify(said, locals={**functions, **names})
            assert found == expression or sympy.simplify(found - expression) == 0


def test_a_product_under_a_line_is_not_read_as_a_factor_beside_it():
    a, b, c = sympy.symbols("a b c", positive=True)
    assert as_read(formula(a / (b * c))) == "a/(b*c)"
    assert as_read(formula((a - b) / c - 1 / (a + b))) == "(a-b)/c-1/(a+b)"


@pytest.mark.parametrize("style", NAMED.values(), ids=NAMED)
def test_symbols_are_what_was_asked_for_and_stay_distinct(style):
    for name in TABLES:
        before, after = unnamed(name, style.padded), built(name, style)
        for one, other in zip(formulas(before), formulas(after), strict=True):
            assert len(one.free_symbols) == len(other.free_symbols)
            renamed = {str(symbol) for symbol in one.free_symbols}
            if before.legend is not None:
                renamed = {style.symbol(name) for name in renamed}
            assert {str(symbol) for symbol in other.free_symbols} == renamed
        explained = {key.split("(")[0] for key, _ in meanings(after)}
        if before.legend is not None:
            assert explained >= {str(symbol) for f in formulas(after) for symbol in f.free_symbols}


def test_divisible_formulas_round_nothing():
    for name in TABLES:
        for expression in formulas(built(name, Style(padded=False))):
            assert not expression.has(sympy.ceiling, sympy.Function("shard", positive=True))


# -------------------------------------------------------------------------------- three writers
texts = st.text(st.characters(min_codepoint=32, max_codepoint=126))
cells = texts | st.integers() | st.fractions(max_denominator=10**6)
tables = st.lists(st.tuples(texts, cells, cells), max_size=5).flatmap(
    lambda drawn: st.builds(
        lambda long, headed, wide: made(
            "t",
            "A title",
            (Column("a"), Column("b", wide), Column("c")),
            drawn,
            long=long,
            headed=headed,
        ),
        st.booleans(),
        st.booleans(),
        st.sampled_from([0, 1]),
    )
)
WRITTEN = [(name, kind) for name in TABLES for kind in FORMATS]


@given(tables)
def test_csv_gives_back_every_cell(table):
    _, *read = csv.reader(io.StringIO(FORMATS["csv"].write(table)))
    assert read == [[plain(cell) for cell in row.cells] for row in table.rows]


@given(tables)
def test_a_row_of_markdown_has_a_bar_between_any_two_columns(table):
    lines = FORMATS["markdown"].write(table).splitlines()[2:]
    assert len(lines) == len(table.rows) + 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == len(table.columns) + 1


def require_sound(table):
    """Environments and braces close; nothing special is bare; every row has a cell for each column."""
    latex, open_ = FORMATS["latex"].write(table), []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", latex):
        if kind == "begin":
            open_.append(name)
        else:
            assert open_.pop() == name
    assert open_ == []
    bare = re.sub(r"\\([a-zA-Z]+|\\|.)", "", latex.replace(r"\tablename~\thetable", ""))
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[#~^_]", re.sub(r"\$[^$]*\$", "", bare))
    columns = {len(panel.columns) - table.headed for panel in panels(joined(flat(table)))}
    for line in bare.splitlines():
        if "&" in line and not line.startswith("%"):
            assert line.count("&") + 1 in columns


@given(tables)
def test_any_table_is_sound_latex(table):
    require_sound(table)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_sound_latex(name):
    require_sound(built(name, Style()))


def test_labels_are_unique():
    labels = [label(built(name, Style())) for name in TABLES]
    assert len({*labels}) == len(labels)


def test_a_row_with_a_cell_too_many_is_no_table():
    with pytest.raises(ValueError, match="2 cells in 1 columns"):
        made("t", "", (Column("a"),), [("b", "c")])


def test_a_line_ends_between_terms_and_in_no_product():
    psi, k, n = sympy.symbols("Psi K N", positive=True)
    whole = formula(2 * psi + (k + 2) * sympy.ceiling(psi / n), broken=True)
    assert whole == r"{2 \Psi} + {(K + 2) \lceil{\Psi / N}\rceil}"


def test_terms_and_factors_have_one_order_and_a_product_of_roots_is_one_root():
    m, p, i, a, b, s, h, k, psi = sympy.symbols("m p i a b s h K Psi", positive=True)
    assert formula(-i + p) == "p - i"
    assert formula(psi * (k + 4)) == r"(K + 4) \Psi"
    assert formula(h * s * b * (5 * a * s / h + 34)) == "b s h (5 a s / h + 34)"
    assert formula((m + 1) / 2) == "(m + 1) / 2"
    assert formula(sympy.sqrt(a) * sympy.sqrt(b) / sympy.sqrt(s)) == r"\sqrt{b a / s}"


def test_plain_text_has_powers_by_a_caret_and_one_root_for_a_product_of_roots():
    a, b, c = sympy.symbols("a b c", positive=True)
    said = {
        c**2: "c^2",
        2 * sympy.sqrt(a) * sympy.sqrt(b): "2*sqrt(a*b)",
        sympy.sqrt(a) / sympy.sqrt(b): "sqrt(a/b)",
        -c * sympy.sqrt(a * b) / 2: "-c*sqrt(a*b)/2",
        b * sympy.ceiling(a / c): "b*ceil(a/c)",
        (a + b) ** 2 / c**3: "(a + b)^2/c^3",
    }
    assert {formula: in_words(formula) for formula in said} == said


def test_a_word_is_broken_at_its_marks_and_a_number_never():
    broken = escaped("replica:R/shard:S reshard_after_forward=True camelCaseWord 1,234,567.891 2.5e+09")
    assert broken.replace(r"\allowbreak{}", "|").split(" ") == [
        "replica:|R/|shard:|S",
        r"reshard\_|after\_|forward=|True",
        "camel|Case|Word",
        "1,234,567.891",
        "2.5e+09",
    ]


def test_cells_with_decimals_that_end_have_no_fraction_line():
    for name in TABLES:
        for line in built(name, Style()).rows:
            for part in (part for cell in line.cells for part in parts(cell)):
                if isinstance(part, Fraction):
                    ends = math.gcd(part.denominator, 10**40) == part.denominator
                    assert ("/" in plain(part)) is not ends
