"""A5: how many activation checkpoints keep least."""

from __future__ import annotations

from typing import Any

import z3

from proofs.encoding import Symbolic
from proofs.kernel import Kernel, Theorem
from spec.checkpoints import kept


def least_is_kept_at_the_square_root(k: Kernel) -> tuple[Theorem, ...]:
    """c checkpoints keep least where c^2 size_in = layers size_mid, and nowhere else.

    What is kept falls before the root and rises after it, so the best whole number is next to it.
    (Claim A5; Narayanan et al., arXiv 2104.04473, section 3.5)
    """
    c, other, root, layers, size_in, size_mid = k.reals("c other root layers size_in size_mid")

    def at(checkpoints: Any) -> Any:
        return kept(checkpoints, layers, size_in, size_mid, Symbolic())

    falls = k.prove(
        "falls_before_the_root",
        at(c) > at(other),
        given=[c > 0, c < other, other * other * size_in <= layers * size_mid, size_in > 0],
    )
    rises = k.prove(
        "rises_after_the_root",
        at(c) > at(other),
        given=[other > 0, other < c, other * other * size_in >= layers * size_mid, size_in > 0],
    )
    least = k.prove(
        "least_at_the_root_only",
        at(c) > at(root),
        given=[c > 0, c != root, root > 0, root * root * size_in == layers * size_mid, size_in > 0],
    )
    # a whole number is at most `below`, the root rounded down, or at least one more
    below = k.reals("below")
    next_to = k.prove(
        "the_best_whole_number_is_next_to_the_root",
        z3.Or(at(c) >= at(below), at(c) >= at(below + 1)),
        given=[
            z3.And(c > 0, below > 0),
            z3.Or(c <= below, c >= below + 1),
            below * below * size_in <= layers * size_mid,
            (below + 1) * (below + 1) * size_in > layers * size_mid,
        ],
    )
    return least, falls, rises, next_to
