"""T3: which operations there are, and what else each of them may say."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from proofs.checking.witnesses import operation
from proofs.trusted.kernel import Kernel, KernelError
from spec.language.schedule import MICRO_STEPS, Buffer, Kind, MisfitError, Monomial, Span

B, K = Buffer, Kind
PLACES = {  # by a letter
    **{"P": B.PARAMETERS, "V": B.VIEW, "O": B.OPTIMIZER, "W": B.OPTIMIZER_VIEW},
    **{"G": B.GRADIENTS, "F": B.FRESH, "T": B.TIED, "A": B.ACTIVATIONS, "S": B.STATISTICS},
    **{"K": B.TOKENS, "U": B.TOTAL_TOKENS, "N": B.NORM},
}
NUMBERS, PASSING = "SKUN", "VWFT"
# of each kind: from any place of a word to any, or to any after >; or in place, each of a word that
# ends in a dot. And what it may say: axes, a mean, axes of slices that it is over, a shift of all; and
# whether what passes takes room: `anew`, in place as well; on the host, perhaps
OPERATIONS = {
    K.ALL_GATHER: ("PVOW GFT A.", "axes shift room anew"),
    K.REDUCE_SCATTER: ("PVOW GFT", "axes mean within shift room"),
    K.ALL_REDUCE: ("PVOW GFT SKUN.", "axes mean within room"),
    K.BROADCAST: ("PVOW GFT SKUN.", "axes room"),
    K.FETCH: ("PVOW GFT A.", "room anew"),
    K.OFFLOAD: ("PVOW GFT A.", ""),
    K.RECOMPUTE: ("PVOW PV>A", "room host"),
    K.FORWARD: ("PV>A", ""),
    K.BACKWARD: ("PV>GF", "axes room"),
    K.COUNT: ("K.", "axes"),
    K.ACCUMULATE: ("GFT K>U", ""),
    K.SCALE: ("GFT.", ""),
    K.DIVIDE: ("GFT.", ""),
    K.SQUARE_NORM: ("GFT>N", ""),
    K.CLIP: ("GFT.", ""),
    K.UPDATE: ("GFT>OW", ""),
    K.KEEP: ("PVOW GFT", "room host"),
    K.RESET: ("GFTKUN.", ""),
    K.ZERO: ("VWFT.", "room anew"),
    K.RELEASE: ("VWFTKUNA.", ""),
}
TWICE = Monomial(Fraction(2))
BY: dict[Kind, tuple[Monomial | Buffer, ...]] = {
    K.SCALE: (TWICE,),
    K.DIVIDE: (B.TOKENS, B.TOTAL_TOKENS),
    K.CLIP: (B.NORM,),
}


def misfits_are_refused(k: Kernel) -> None:
    """Raise KernelError unless the listed operations are made, and others are refused, by the field
    that does not fit. And unless a factor is as much as its powers say.
    """
    for kind, fits, fields, field in _operations():
        try:
            made = operation(kind, **fields)
        except MisfitError as refused:
            if fits or (field and refused.field != field):
                raise KernelError(f"{k.claim}: {kind} of {fields} is refused: {refused}") from None
        else:
            if not fits:
                raise KernelError(f"{k.claim}: an operation is {made}, and its {field} does not fit")
            reads_one = made.source in map(PLACES.get, NUMBERS) or made.kind in (K.DIVIDE, K.CLIP)
            if made.of_a_number is not (reads_one or made.kind is K.SQUARE_NORM):
                raise KernelError(f"{k.claim}: {made} is said to be of a number, or is and is not")
    powers = (("batch", 2), (MICRO_STEPS, -2), ("other", 1))
    if Monomial(Fraction(3, 2), powers).at({"batch": 5, "other": 7}, 3) != Fraction(3 * 25 * 7, 2 * 9):
        raise KernelError(f"{k.claim}: a factor is not the product of its powers")


def _operations() -> Iterator[tuple[Kind, bool, dict[str, Any], str]]:
    """Of each kind whether it fits to read and write two places, or to say something else."""
    if {*OPERATIONS} != {*Kind} or {*PLACES.values()} != {*Buffer}:
        raise KernelError("kinds of operations, or places, are not listed")
    for kind, (words, says) in OPERATIONS.items():
        ways = {way for word in words.split() for way in _ways(word)}
        sources = {source for source, _ in ways}
        by = {"by": BY[kind][0]} if kind in BY else {}
        fields_of = dict[tuple[str, str], dict[str, Any]]()
        for source, into in product(PLACES, repeat=2):
            fields = {"source": PLACES[source], "into": PLACES[into], **by}
            if source not in sources and source != into:
                continue
            if (source, into) not in ways:
                yield kind, False, fields, "into" if source in sources else "source"
                continue
            takes_room = into in PASSING and "room" in says and (into != source or "anew" in says)
            fields_of[source, into] = {**fields, "span": Span.UNIT} if takes_room else fields
            yield kind, not takes_room or "host" in says, fields, "span"
            yield kind, takes_room, {**fields, "span": Span.UNIT}, "span"
            has_slices = into not in (*NUMBERS, "A") and kind is not K.RELEASE
            sliced = {**fields_of[source, into], "within": ("batch",)}
            for shift in (0, 1):
                fits = has_slices or kind is K.SQUARE_NORM
                yield kind, fits, {**sliced, "shift": shift}, "within"
        for way in (min(ways), max(ways)):
            yield from _says(kind, says, fields_of[way])


def _ways(word: str) -> Iterator[tuple[str, str]]:
    """Pairs of letters: what is read, and what is written."""
    sources, _, into = word.partition(">")
    if word.endswith("."):
        return zip(word[:-1], word[:-1], strict=True)
    return product(sources, into or sources)


def _says(
    kind: Kind, says: str, fields: dict[str, Any]
) -> Iterator[tuple[Kind, bool, dict[str, Any], str]]:
    """Of an operation that fits, whether it may say one thing more."""
    axis = ("batch",)
    yield kind, "axes" in says, {**fields, "axes": axis}, "axes"
    yield kind, "mean" in says, {**fields, "mean": True}, "mean"
    yield kind, "shift" in says, {**fields, "shift": -1}, "shift"
    for axes in (("other", *axis), (*axis, "other")):
        both = {**fields, "axes": axes, "within": axis}
        yield kind, "within" in says, both, "within" if "axes" in says else "axes"
    for by in (None, TWICE, *Buffer):
        yield kind, by in BY.get(kind, (None,)), {**fields, "by": by}, "by"
