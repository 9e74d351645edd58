"""Mathematics among words, typed as plain text: found, and set in LaTeX.

A run of mathematics is made of numbers, letters that are symbols, signs, brackets and functions, and
has a sign or a product in it. A letter alone is a symbol too, but for the article, which no plural has:
"a heads" are as many as a.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from psem_model.text.formulas import LONGEST, length

GREEK = {"psi": r"\Psi", "Psi": r"\Psi", "theta": r"\theta", "omega": r"\omega", "epsilon": r"\epsilon"}
SIGNS = {
    "<=>": r"\Leftrightarrow",
    "=>": r"\Rightarrow",
    "<=": r"\leq",
    ">=": r"\geq",
    "<": "<",
    ">": ">",
    "=": "=",
    "+": "+",
    "-": "-",
    "/": "/",
    "*": "",
    "^": "^",
    "**": "^",
    "->": r"\to",
}
JOINING = SIGNS.keys() - {"-"}  # a run has one, or a product
FUNCTIONS = (
    "ceil",
    "sqrt",
    "min",
    "max",
    "mem",
    "sent",
    "bytes",
    "has",
    "equal",
    "kept",
    "shard",
    "gather",
)
# a file's path, with a hyphen or an apostrophe, a claim's name, a count such as 1F1B, 8x or 2B
WORD = (
    r"(?:\b[a-z])?'s\b|"
    r"[\w/.]+\.(?:html|json|md|py|toml)\b|(?![a-z]{1,3}-\d)[A-Za-z]{2,}\d*(?:-[A-Za-z0-9]+)+(?:'s)?|[A-Za-z]{2,}'s?(?![A-Za-z])|[a-z]-th\b"
    r"|\d+-[a-z]+|[A-Z]\d+(?:-[A-Z]?\d+)?(?:'s)?|\d+[A-Z]\d+[A-Z]|\d+x\b|\d[\d.]*[BT]\b|--[a-z]+"
)
TOKEN = re.compile(
    rf"(?P<word>{WORD})"
    r"|(?P<number>\d[\d,]*(?:\.\d+)?(?:e\d+)?(?<!,))"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z]+)?'?)"
    rf"|(?P<sign>{'|'.join(map(re.escape, sorted(SIGNS, key=len, reverse=True)))})"
    r"|(?P<open>\()|(?P<close>\))|(?P<comma>, )|(?P<space> )|(?P<other>.)",
    re.DOTALL,
)
PRODUCT = re.compile(r"[abcdefghiklmnpqstuvwLV]{2,5}")  # letters that are symbols, beside each other
ARTICLES = ("a", "A", "I")  # letters that are words
PLURAL = re.compile(r"[a-z]*[b-hj-rtv-z]s")  # a word, but for "loss", "bias", "axis" and "bus"
NO_PRODUCTS = ("all", "if", "seq", "sum", "batch", "inf", "dp", "unit")


@dataclass(frozen=True)
class Token:
    """A piece of a text, and of which kind it is."""

    kind: str
    text: str


def _tokens(text: str) -> Iterator[Token]:
    """Numbers, symbols, signs, brackets, and words: a name of several letters that is no product."""
    found = [Token(m.lastgroup or "", m[0]) for m in TOKEN.finditer(text)]
    for number, token in enumerate(found):
        before = found[number - 1] if number else Token("", "")
        after = found[number + 1] if number + 1 < len(found) else Token("", "")
        if token.kind == "name":
            yield Token(_kind(before, token.text, after), token.text)
        else:
            yield token


def _kind(before: Token, name: str, after: Token) -> str:
    """Of a name: a function, a symbol, letters that are multiplied, or a word."""
    letter, _, index = name.rstrip("'").partition("_")
    if after.kind == "open" and name in FUNCTIONS:
        return "function"
    if len(letter) == 1 or letter in GREEK:
        return "symbol" if before.kind != "word" else "word"
    touching = before.kind in ("number", "sign") or after.kind in ("open", "sign")
    product = PRODUCT.fullmatch(name) and name not in NO_PRODUCTS and not index
    enclosed = before.kind == "open" and after.kind in ("close", "space") and len(name) == 2
    return "product" if product and (touching or enclosed) else "word"


MATHEMATICAL = ("number", "symbol", "product", "function", "sign", "open", "close", "space")


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Words as they are, and mathematics as LaTeX, in turn."""
    for is_formula, found in groupby(_pieces(text), key=itemgetter(0)):
        yield is_formula, "".join(_latex(run) if is_formula else _plain(run) for _, run in found)


def symbols(text: str) -> set[str]:
    """The symbols of the mathematics in a text."""
    tokens = [token for is_formula, run in _pieces(text) if is_formula for token in run]
    return {name for token in tokens for name in _symbols_of(token)}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text whose mathematics has other symbols; letters that were multiplied may come apart."""
    return "".join(
        _renamed(token, names) if is_formula else token.text
        for is_formula, run in _pieces(text)
        for token in run
    )


def _symbols_of(token: Token) -> list[str]:
    if token.kind == "product":
        return [*token.text]
    name = token.text.rstrip("'")
    return [{"psi": "Psi"}.get(name, name)] if token.kind == "symbol" else []


def _renamed(token: Token, names: Mapping[str, str]) -> str:
    of = _symbols_of(token)
    others = [names.get(name, name) for name in of]
    if others == of:
        return token.text
    return " ".join(others) + "'" * token.text.count("'")


def _plain(run: Sequence[Token]) -> str:
    return "".join(token.text for token in run)


def _pieces(text: str) -> Iterator[tuple[bool, Sequence[Token]]]:
    run: list[Token] = []
    depth: list[bool] = []  # of the open brackets: whether they are a function's
    for token in [*_tokens(text), Token("end", "")]:
        inside = any(depth)
        if token.kind in MATHEMATICAL or (inside and token.kind in ("comma", "word")):
            if token.kind == "open":
                depth.append(inside or (bool(run) and run[-1].kind == "function"))
            if token.kind == "close" and depth:
                depth.pop()
            run.append(token)
            continue
        yield from _run(run, token)
        run, depth = [], []
        if token.kind != "end":
            yield False, (token,)


def _run(run: Sequence[Token], after: Token) -> Iterator[tuple[bool, Sequence[Token]]]:
    """A run of what may be mathematics: what is around it, and what is. After it stands a word."""
    start, end = 0, len(run)
    while start < end and (run[start].kind in ("space", "close") or _unclosed(run[start:end])):
        start += 1
    while start < end and (
        run[end - 1].kind in ("space", "open")
        or run[end - 1].text in ("+", "-", "*", "/", "^")
        or _unbalanced(run[start:end])
    ):
        end -= 1
    inside = run[start:end]
    counts = bool(PLURAL.fullmatch(after.text)) and [token.text for token in run[end:]] == [" "]
    if start == end or not _is_mathematics(inside, counts):
        yield False, run
        return
    yield False, run[:start]
    yield True, inside
    yield from _run(run[end:], after)


def _unclosed(run: Sequence[Token]) -> bool:
    """Whether the first bracket of a run that begins with one never ends."""
    depth = 0
    for token in run:
        depth += (token.kind == "open") - (token.kind == "close")
        if not depth:
            return False
    return run[0].kind == "open"


def _unbalanced(run: Sequence[Token]) -> bool:
    """Whether more brackets end than begin, or fewer."""
    depth = 0
    for token in run:
        depth += (token.kind == "open") - (token.kind == "close")
        if depth < 0:
            return True
    return depth != 0


def _is_mathematics(run: Sequence[Token], counts: bool) -> bool:
    """Whether it has a symbol, a product or a function, and is no article and no number alone.

    `counts`: it says how many there are of what follows.
    """
    named = [token for token in run if token.kind in ("symbol", "product", "function")]
    signs = [token for token in run if token.text in SIGNS]
    if not named:
        return any(token.text in JOINING for token in run) and len(run) > 1
    return bool(signs) or len(run) > 1 or counts or named[0].text not in ARTICLES


def _latex(run: Sequence[Token]) -> str:
    """A run in LaTeX; no line ends inside brackets, or in a product."""
    written: list[str] = []
    closes: list[str] = []
    raised = False
    for token in run:
        text, closing = _one(token, written)
        if token.kind == "open":
            function = written.pop() if written and written[-1] in (r"\lceil", r"\sqrt") else ""
            text = {r"\lceil": r"{\lceil ", r"\sqrt": r"\sqrt{"}.get(function, "{(")
            closes.append({r"\lceil": r"\rceil}", r"\sqrt": "}"}.get(function, ")}"))
        elif token.kind == "close":
            text = closes.pop()
        if raised and token.kind in ("number", "symbol"):
            text = f"{{{text}}}"
        raised = token.text in ("^", "**")
        written.append(text + closing)
    return " ".join(part for part in " ".join(_held(written)).split(" ") if part)


def _held(written: list[str]) -> Iterator[str]:
    """Brackets with much inside them may be broken at its signs, others not."""
    opened: list[int] = []
    for number, part in enumerate(written):
        if part == "{(":
            opened.append(number)
        elif part == ")}" and length(" ".join(written[opened[-1] : number])) > LONGEST:
            written[opened.pop()], written[number] = "(", ")"
        elif part == ")}":
            opened.pop()
    yield from written


def _one(token: Token, written: Sequence[str]) -> tuple[str, str]:
    """A token by itself."""
    text = token.text
    if token.kind == "number":
        digits, _, power = text.replace(",", "{,}").partition("e")
        return (rf"{digits} {{\times}} 10^{{{int(power)}}}" if power else digits), ""
    if token.kind == "sign":
        return SIGNS[text], ""
    if token.kind == "product":
        return " ".join(text), ""
    if token.kind == "function":
        known = {"ceil": r"\lceil", "sqrt": r"\sqrt"}
        return known.get(text, rf"\mathrm{{{text}}}"), ""
    if token.kind == "symbol":
        return _symbol(text), ""
    if token.kind == "word":
        return rf"\text{{{text}}}", ""
    return text.strip(), ""


def _symbol(text: str) -> str:
    name, prime = text.rstrip("'"), "'" * text.count("'")
    letter, _, index = name.partition("_")
    prime += "'" if index == "prime" else ""
    below = rf"_{{\mathrm{{{index}}}}}" if index and index != "prime" else ""
    return f"{GREEK.get(letter, letter)}{below}{prime}"
