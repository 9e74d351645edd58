"""A5: how many activation checkpoints keep least."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

from proofs.claim import claim
from proofs.tools.encoding import Symbolic
from proofs.trusted.kernel import Bool, Kernel, KernelError, Theorem
from proofs.trusted.terms import And, Not, Or
from spec.numbers.arithmetic import EXACT
from spec.pipelines.checkpoints import best, kept_at_most


@dataclass(frozen=True)
class Stage:
    """Any number of layers, and what each keeps: its input, or all that backward needs."""

    layers: Any
    size_in: Any
    size_mid: Any

    def kept(self, checkpoints: Any) -> Any:
        """The closed form: in segments of equal length."""
        return kept_at_most(checkpoints, self.layers, self.size_in, self.size_mid, Symbolic())

    def kept_of_whole(self, checkpoints: Any, longest: Any) -> Any:
        """In segments of whole layers, of which the longest has so many."""
        segments = Symbolic([(self.layers, longest)])
        return kept_at_most(checkpoints, self.layers, self.size_in, self.size_mid, segments)

    def up_to_root(self, checkpoints: Any) -> Bool:
        return checkpoints * checkpoints * self.size_in <= self.layers * self.size_mid

    def from_root(self, checkpoints: Any) -> Bool:
        return checkpoints * checkpoints * self.size_in >= self.layers * self.size_mid


@claim("A5")
def least_is_kept_at_the_square_root(k: Kernel) -> tuple[Theorem, ...]:
    """c checkpoints keep least where c^2 size_in = layers size_mid, and nowhere else.

    What is kept falls before the root and rises after it. So the best whole number from 1 to layers is
    next to it; or it is layers where the root is no less, and 1 where it is no more. With segments of
    whole layers a search from the root outwards finds the best.
    (Claim A5; Narayanan et al., arXiv 2104.04473, section 3.5)
    """
    c, other, root = k.reals("c other root")
    of = Stage(*k.reals("layers size_in size_mid"))
    falls = k.prove(
        "falls_before_the_root",
        of.kept(c) > of.kept(other),
        given=[c > 0, c < other, of.up_to_root(other), of.size_in > 0],
    )
    rises = k.prove(
        "rises_after_the_root",
        of.kept(c) > of.kept(other),
        given=[other > 0, other < c, of.from_root(other), of.size_in > 0],
    )
    least = k.prove(
        "least_at_the_root_only",
        of.kept(c) > of.kept(root),
        given=[c > 0, c != root, root > 0, of.up_to_root(root), of.from_root(root), of.size_in > 0],
    )
    # a whole number is at most `below`, the root rounded down, or at least one more
    below = k.reals("below")
    next_to = k.prove(
        "the_best_whole_number_is_next_to_the_root",
        Or(of.kept(c) >= of.kept(below), of.kept(c) >= of.kept(below + 1)),
        given=[
            And(c > 0, below > 0),
            Or(c <= below, c >= below + 1),
            of.up_to_root(below),
            Not(of.up_to_root(below + 1)),
        ],
    )
    all_of_them = k.prove(
        "every_layers_input_is_kept_where_the_root_is_no_less",
        of.kept(c) >= of.kept(of.layers),
        given=[c > 0, c <= of.layers, of.up_to_root(of.layers), of.size_in > 0],
    )
    only_one = k.prove(
        "one_input_is_kept_where_the_root_is_no_more",
        of.kept(c) >= of.kept(1),
        given=[c >= 1, of.from_root(1), of.size_in > 0],
    )
    _require_best(k)
    return least, falls, rises, next_to, all_of_them, only_one, *_search(k, of)


def _require_best(k: Kernel) -> None:
    """Raise KernelError unless the number that the search finds keeps least of all, of a few sizes."""
    for layers, size_in, size_mid in product((*range(1, 9), 10, 36), (1, 2, 9), (1, 3, 10)):
        counts = range(1, layers + 1)
        spread = ([range(layers)[first::n] for first in range(n)] for n in counts)  # a segment each
        kept = [len(each) * size_in + max(map(len, each)) * size_mid for each in spread]
        if [kept_at_most(n, layers, size_in, size_mid, EXACT) for n in counts] != kept:
            raise KernelError(f"{k.claim}: {layers} layers keep {kept}, with 1 to {layers} checkpoints")
        found = best(layers, size_in, size_mid)
        if found != 1 + kept.index(min(kept)):
            raise KernelError(f"{k.claim}: {found} of {layers} layers' inputs, where {kept} are kept")
    for nothing in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with suppress(ValueError):
            raise KernelError(f"{k.claim}: of {nothing} {best(*nothing)} keeps least")


def _search(k: Kernel, of: Stage) -> tuple[Theorem, ...]:
    """Why a search through lengths of segments, of whole layers, misses no number of checkpoints.

    The fewest that a length needs keep no more than any number with segments so long; and the closed
    form keeps no more than these: once it exceeds what was found, further lengths need no visit.
    """
    n, g, fewest, shorter, l = k.integers("n g fewest shorter l")
    enough = l <= fewest * g  # fewest = ceil(l / g), shorter = ceil(l / fewest)
    fewest_of_all = k.prove(
        "a_length_needs_no_more_checkpoints_than_have_it",
        fewest <= n,
        given=[n * g >= l, And((fewest - 1) * g < l, g > 0)],
    )
    no_longer = k.prove(
        "so_many_checkpoints_need_segments_no_longer",
        shorter <= g,
        given=[enough, And(fewest > 0, (shorter - 1) * fewest < l)],
    )
    count, length, fewer, longest = k.reals("count length fewer longest")
    visited = k.prove(
        "fewer_checkpoints_of_segments_no_longer_keep_no_more",
        of.kept_of_whole(fewer, longest) <= of.kept_of_whole(count, length),
        given=[fewer <= count, longest <= length, of.size_in > 0, of.size_mid > 0],
    )
    filled, stop, least = k.reals("filled stop least")  # layers / length; layers / length of the stop
    beyond = Or(And(filled <= stop, of.up_to_root(stop)), And(stop <= filled, of.from_root(stop)))
    stopped = k.prove(
        "lengths_beyond_a_stop_keep_more",
        of.kept_of_whole(count, length) > least,
        given=[
            And(filled > 0, filled * length == of.layers, count >= filled),
            And(stop > 0, of.size_in > 0),
            of.kept(stop) > least,
            beyond,
        ],
    )
    return fewest_of_all, no_longer, visited, stopped
