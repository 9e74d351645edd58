"""Mathematics among words is found and set; words stay words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs.registry import claims
from psem_model.published.entries import published
from psem_model.text.formulas import length
from psem_model.text.html import mathematics
from psem_model.text.prose import pieces


def shown(text):
    return "".join(f"${part}$" if is_formula else part for is_formula, part in pieces(text))


@pytest.mark.parametrize(
    ("text", "set_"),
    [
        ("ZeRO-3 divides memory by N", "ZeRO-3 divides memory by $N$"),
        ("a pass of a ring, as A2 says", "a pass of a ring, as A2 says"),
        ("c^2 A_in = l A_mid", r"$c ^ {2} A_{\mathrm{in}} = l A_{\mathrm{mid}}$"),
        ("12*l*h^2", "$12 l h ^ {2}$"),
        ("5as/(ht)", "$5 a s / {( h t )}$"),
        ("ceil(Psi/N) elements", r"${\lceil \Psi / N \rceil}$ elements"),
        ("w <= g (K = 0: w < g)", r"$w \leq g$ ($K = 0$: $w < g$)"),
        ("a device's n chunks", "a device's $n$ chunks"),
        ("8x is ZeRO-2's limit at K = 12 (M7)", "8x is ZeRO-2's limit at $K = 12$ (M7)"),
        ("1F1B stashes <= p", r"1F1B stashes $\leq p$"),
        ("min at c=sqrt(l*A_mid/A_in)", r"min at $c = \sqrt{ l A_{\mathrm{mid}} / A_{\mathrm{in}} }$"),
        ("psi=7.5e09", r"$\Psi = 7.5 {\times} 10^{9}$"),
        ("--unit pads each unit", "--unit pads each unit"),
        ("of spec/costs/memory.py, tests/x/y.py", "of spec/costs/memory.py, tests/x/y.py"),
        ("a heads, q key-value heads", "$a$ heads, $q$ key-value heads"),
        ("a loss, a bias, an axis, a device's", "a loss, a bias, an axis, a device's"),
        ("sum of f(terms)", "sum of $f$(terms)"),
    ],
)
def test_what_is_mathematics_is_set_as_mathematics(text, set_):
    assert shown(text) == set_


def test_no_operator_of_claims_and_published_formulas_is_left_among_words():
    texts = [text for c in claims() for text in (c.formula, c.statement)]
    texts += [str(entry.printed) for entry in published() if isinstance(entry.value, str)]
    for text in texts:
        words = "".join(part for is_formula, part in pieces(text) if not is_formula)
        assert not any(sign in words for sign in ("^", "*", "<", ">", "ceil(")), (text, words)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_any_text_is_set_with_braces_that_close(text):
    for is_formula, part in pieces(text):
        if is_formula:
            assert part.count("{") == part.count("}")
            assert mathematics(part)
            assert length(part) >= 0


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_words_are_left_as_they_are(text):
    words = [part for is_formula, part in pieces(text) if not is_formula]
    at = 0
    for word in words:
        at = text.index(word, at) + len(word)
