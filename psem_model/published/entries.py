"""Published values beside predictions: each entry of published.json, reproduced by `psem predict`.

What a source prints is compared as it prints it: with its rounding, and without the (N - 1)/N that
several sources drop. Formulas are compared as formulas.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import sympy

from psem_model.predict.model_symbolic import symbol

GIB = 2**30
SYMBOLS = {name: symbol(name) for name in ("Psi", "N", "K", *"bshactmpvnVLPM")}


@dataclass(frozen=True)
class Entry:
    """One published value, in the unit and with the rounding of its source."""

    id: str
    source: str
    quantity: str
    strategy: str
    inputs: Mapping[str, Any]
    value: Any
    unit: str
    rounding: str
    formula: str = ""

    @property
    def printed(self) -> Decimal:
        """A number with the digits that the source printed."""
        return Decimal(repr(self.value))

    def rounds_to(self, number: Fraction, rounding: str = ROUND_HALF_UP) -> bool:
        """Whether a number is printed so."""
        return rounded(number, self.value, rounding) == self.printed


@dataclass(frozen=True)
class Reproduced:
    """What is predicted, exactly: a number, a formula or several; whether the source prints that."""

    predicted: Any
    agrees: bool
    note: str = ""


@lru_cache(maxsize=1)
def published() -> tuple[Entry, ...]:
    """All entries."""
    path = Path(__file__).with_name("published.json")
    return tuple(Entry(**entry) for entry in json.loads(path.read_text(encoding="utf-8")))


def reproduce(entry: Entry) -> Reproduced:
    """The prediction of an entry. Raises KeyError if nothing predicts it."""
    from psem_model.published import models as published_models
    from psem_model.published import states as published_states

    rules = {**published_states.RULES, **published_models.RULES}
    found = [prefix for prefix in rules if entry.id.startswith(prefix)]
    if not found:
        raise KeyError(entry.id)
    return rules[max(found, key=len)](entry)


# ------------------------------------------------------------------------- asking psem predict
@cache
def predicted(strategy: str, **options: Any) -> dict[str, Any]:
    """What `psem predict STRATEGY --json` prints; an option without a value is None."""
    from psem_model.commands.predict import predict

    given = [(f"--{name}", value) for name, value in options.items()]
    args = [str(word) for pair in given for word in pair if word is not None]
    with redirect_stdout(io.StringIO()) as out:
        predict.main([strategy, "--json", *args], standalone_mode=False)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def gpt(
    strategy: str,
    devices: Any,
    b: int = 1,
    s: int = 1024,
    h: int = 1024,
    a: int = 16,
    L: int = 4,
    recompute: str = "none",
    **more: Any,
) -> dict[str, Any]:
    """The prediction for a GPT of this shape."""
    shape = {"layers": L, "hidden": h, "heads": a, "sequence": s, "micro-batch": b}
    return predicted(strategy, devices=devices, recompute=recompute, **shape, **more)


def exact(quantity: Mapping[str, Any]) -> Fraction:
    """The exact number of a JSON quantity."""
    return Fraction(quantity["exact"])


def resting(strategy: str, **options: Any) -> Fraction:
    """Bytes of model states between steps."""
    return exact(predicted(strategy, **options)["memory"]["resting"]["total"])


def form(text: str, **names: Any) -> Any:
    """A formula, of psem's or of a source."""
    for short, whole in (("sbh", "s*b*h"), ("5as", "5*a*s"), ("(ht)", "(h*t)"), ("12h", "12*h")):
        text = text.replace(short, whole)
    return sympy.sympify(text, locals={**SYMBOLS, **names})


def same(one: Any, other: Any) -> bool:
    """Whether two formulas are equal for all values of their symbols."""
    return bool(sympy.simplify(sympy.sympify(one) - other) == 0)


def rounded(value: Fraction, as_printed: Any, rounding: str) -> Decimal:
    """A number with as many decimals as the source printed."""
    exponent = Decimal(repr(as_printed)).normalize().as_tuple().exponent
    number = Decimal(value.numerator) / Decimal(value.denominator)
    return number.quantize(Decimal(1).scaleb(min(0, int(exponent))), rounding=rounding)
