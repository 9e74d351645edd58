"""A2: which values an operation fits, and from which backward knows a derivative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofs.trusted.kernel import KernelError
from spec.models.values import LOG_TOTAL, TRANSPOSED, Does, Operation, Value, misfit

# of functions, as they are derived: from their results, or from their arguments
# (torch, tools/autograd/derivatives.yaml: rsqrt, and threshold_backward of relu)
BY_RESULT = "exp", "inverse_root", "relu", "sigmoid", "softmax", "tanh"
BY_ARGUMENT = (
    *("gelu", "gelu_fast", "gelu_new", "gelu_python", "silu", "clamped_silu", "clamp", "cap"),
    *("log", "square", "layer_norm", "rms_norm"),
)
OF_ROWS = "softmax", "layer_norm", "rms_norm"
FIT = {  # each: indices of what is read, and of what is made; "." is none
    Does.CONTRACT: ("ab bc ac", "ab bc abc", "ab bc ca", "ab ab a", "ab ab .", "a . a"),
    Does.ADD: ("ab ab ab", "ab ba ab"),
    Does.APPLY: ("ab ab", "ab ba"),
}
OTHERS = {
    Does.CONTRACT: ("ab a a", "ab bc a", "ab bc c", "ab bc acd", "a . .", ". a ."),
    Does.ADD: ("ab a ab", "a ab ab", "ab ab a", "ab abc ab", "ab ab abc", "ab ab ab ab"),
    Does.APPLY: ("ab a", "a ab", "ab ab ab"),
}
Listed = tuple[str, ...]
# over b: whether backward, by what, and what is read and made
NORMALISED: tuple[tuple[bool, str, Listed, Listed], ...] = (
    (False, "softmax", ("ab ab",), ("ab a", "a ab", "ab b ab", "ab ab ab", "ab . ab", "ab a a ab")),
    (False, "softmax", ("ab a ab",), ()),
    (False, LOG_TOTAL, ("ab a", "bac ac"), ("ab ab", "ab b", "ab .", "ab a a")),
    (False, "layer_norm", ("ab ab",), ("ab a ab",)),
    (True, "layer_norm", ("ab ab ab",), ("ab ab a ab",)),
    (
        True,
        "softmax",
        ("ab ab ab", "ab ab a ab"),
        ("ab a ab", "a ab ab", "ab ab b ab", "ab ab a a ab", "ab ab . ab", "ab ab ab ab"),
    ),
)
RENAMED = (  # pairs, and what is read and made
    (
        "ac",
        ("ab cb", "ba bc"),
        ("ab ab", "ab acb", "ab c", "ab cbd", "bd bc", "bd bd", "ac c", "acb cb"),
    ),
    ("ab ba", ("ab ba", "ab ab"), ("ab a", "ac cb")),
    ("aa", ("ab ab", "ab ba"), ("ab b",)),
    ("ab bb", (), ("abd d", "abd bd", "abd ad")),
    ("ac bc", ("abd cd", "abd ec"), ("abd d", "abd bcd", "abd acd", "abd ad", "ad cd", "abcd cd")),
    ("ca cb", ("cd abd", "ecd abd"), ("cd ad", "cd acd", "cd abcd", "cd d", "d abd", "acd abd")),
)


def require_operations(claim: str) -> None:
    """Raise KernelError unless operations fit the values that are listed, and no others.

    And backward knows from results what PyTorch knows from them.
    """
    for line, fits in _operations():
        if bool(misfit(line)) is fits:
            raise KernelError(f"{claim}: {line}: {'does not fit' if fits else 'fits'}")
    x, y = Value("x", ("a",)), Value("y", ("a",))
    for function in (*BY_RESULT, *BY_ARGUMENT):
        does = Does.NORMALISE if function in OF_ROWS else Does.APPLY
        over = "a" if function in OF_ROWS else ""
        if Operation(does, (x,), y, function, over).known != (y if function in BY_RESULT else x):
            raise KernelError(f"{claim}: {function} has a derivative of another value")


def _operations() -> Iterator[tuple[Operation, bool]]:
    """Each with whether it fits."""
    for listed, fits in ((FIT, True), (OTHERS, False)):
        for does, each in listed.items():
            yield from _lines(each, fits, does)
    yield from _lines(("ab ab ab",), True, Does.APPLY, backward=True)
    yield from _lines(("ab a ab", "a ab ab"), False, Does.APPLY, backward=True)
    for backward, function, *lists in NORMALISED:
        for each, fits in zip(lists, (True, False), strict=True):
            yield from _lines(each, fits, Does.NORMALISE, function, "b", backward=backward)
    for pairs, *lists in RENAMED:
        renamed = tuple((pair[0], pair[1]) for pair in pairs.split())
        for each, fits in zip(lists, (True, False), strict=True):
            yield from _lines(each, fits, Does.RENAME, TRANSPOSED, "", renamed)


def _lines(
    listed: Sequence[str],
    fits: bool,
    does: Does,
    function: str = "",
    over: str = "",
    renamed: tuple[tuple[str, str], ...] = (),
    backward: bool = False,
) -> Iterator[tuple[Operation, bool]]:
    for words in listed:
        values = [Value(f"value_{n}", tuple(w.strip("."))) for n, w in enumerate(words.split())]
        yield Operation(does, (*values[:-1],), values[-1], function, over, renamed, backward), fits
