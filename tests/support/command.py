"""What tests of commands share: options, quantities, and texts with a line less."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout, suppress
from fractions import Fraction
from functools import cache

from psem_model.commands.predict import predict

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


@cache
def predicted(strategy, **options):
    """What `psem predict STRATEGY --json` prints; an option without a value is None."""
    given = [(f"--{name}", value) for name, value in options.items()]
    args = [str(word) for pair in given for word in pair if word is not None]
    with redirect_stdout(io.StringIO()) as out, suppress(SystemExit):
        predict.main([strategy, "--json", *args], standalone_mode=False)
    return json.loads(out.getvalue())
