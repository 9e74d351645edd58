"""What tests of commands share: options, quantities, and texts with a line less."""

from __future__ import annotations

from fractions import Fraction

SIZE = ["--psi", 9, "--devices", 2]
PLACED = "parameters={},optimizer=S,gradients=S,activations=S"


def exact(quantity):
    """The exact number of a JSON quantity."""
    return Fraction(quantity["exact"])


def without(words, nth=0):
    """Drops the nth line that contains some words."""

    def change(text):
        lines = text.split("\n")
        found = [i for i, line in enumerate(lines) if words in line]
        del lines[found[nth]]
        return "\n".join(lines)

    return change
