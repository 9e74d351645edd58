"""Numbers, counts and divergences, as people and as programs read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import MAX_PREC, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spec.meaning.match import Divergence
    from spec.models.states import BytePolicy
    from spec.numbers.arithmetic import Number

LONGEST, LONGEST_BITS = 60, 10_000  # of values: characters to show in full, bits to show at all


def divergence_text(run: Divergence) -> str:
    """A divergence in words."""
    if run.has is None:
        return f"after step {run.step + 1}, no copy of the parameters is kept"
    at = run.place
    element = "an element" if at.element is None else f"element {at.element}"
    weight = "" if at.weight is None else f" of {at.weight}"
    layer = "" if at.layer is None else f" of layer {at.layer}"
    stage = "" if at.stage is None else f" of stage {at.stage}"
    return (
        f"after step {run.step + 1}, {element} of the {run.state}{weight}{layer} on device "
        f"({','.join(map(str, at.device))}){stage} is {value_text(run.has)}; "
        f"on a single device it is {value_text(run.single)}"
    )


def value_text(value: Any) -> str:
    """A value of a run: long ones by their first and last digits, and how many there are."""
    exact = isinstance(value, int | Fraction)
    bits = max(value.numerator.bit_length(), value.denominator.bit_length()) if exact else 0
    if bits > LONGEST_BITS:
        return f"a number of about {bits * 3 // 10:,} digits"
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:24]}...{text[-12:]} ({len(text):,} characters)"


def divergence_json(run: Divergence) -> dict[str, Any]:
    """A divergence for a program: of an element of a number, or of a weight of a stage."""
    at = run.place
    of_weight = {"stage": at.stage, "weight": at.weight, "layer": at.layer}
    return {
        "step": run.step + 1,
        "device": list(at.device),
        **({"element": at.element} if at.weight is None else of_weight),
        "state": run.state,
        "has": None if run.has is None else value_text(run.has),
        "single_device": value_text(run.single),
    }


def in_bytes(policy: BytePolicy) -> dict[str, float]:
    """Bytes of a weight, of a gradient and of optimizer state, for programs."""
    return {"w": float(policy.w), "g": float(policy.g), "K": float(policy.k)}


def plain(value: Number) -> str:
    """A number with commas; two decimals if it is no whole number."""
    exact = Fraction(value)
    return f"{exact.numerator:,}" if exact.denominator == 1 else f"{float(exact):,.2f}"


def exactly(value: Number) -> str:
    """A number without loss: its decimals if they end, else a fraction."""
    number = Fraction(value)
    places = number.denominator.bit_length() - 1  # no more, if they end: it is of twos and fives
    if 10**places % number.denominator:
        return str(number)
    shifted = Decimal(number.numerator * 10**places // number.denominator)
    with localcontext(prec=MAX_PREC, Emin=MIN_EMIN):
        return f"{shifted.scaleb(-places).normalize():f}"


def digits(value: Fraction, most: int = 6) -> str:
    """A number by its first digits, without powers of ten."""
    return f"{Decimal(f'{float(value):.{most}g}'):,f}"


@dataclass(frozen=True)
class Unit:
    """Of bytes: a power of 1,000, and the power of 1,024 beside it."""

    name: str = "GB"
    size: int = 10**9
    other_name: str = "GiB"
    other_size: int = 2**30

    @property
    def words(self) -> str:
        """What its names stand for."""
        if self.size == 1:
            return "B = bytes"
        power, other = len(str(self.size)) - 1, self.other_size.bit_length() - 1
        return f"{self.name} = 1e{power} bytes, {self.other_name} = 2^{other} bytes"

    def texts(self, value: Number) -> tuple[str, str]:
        """So many bytes in both."""
        exact = Fraction(value)
        decimal, binary = digits(exact / self.size), digits(exact / self.other_size)
        return f"{decimal} {self.name}", f"{binary} {self.other_name}"


GB = Unit()
UNITS = (GB, Unit("MB", 10**6, "MiB", 2**20), Unit("kB", 10**3, "KiB", 2**10), Unit("B", 1, "B", 1))


def unit_of(sizes: Iterable[Number]) -> Unit:
    """A unit for all of some sizes, up to GB: the largest has at least one of it, or a byte."""
    largest = max(sizes, default=0)
    return next((unit for unit in UNITS if largest >= unit.size), UNITS[-1] if largest else GB)


def memory(size: int) -> str:
    """Bytes, in the largest unit that there are some of."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min((size.bit_length() - 1) // 10, len(units) - 1)
    amount = size / 1024**power
    form = ".1f" if amount < 10 else ",.0f" if amount < 10_000 else ".0e"
    return f"{amount:{form}} {units[power]}"


def counted(number: int, thing: str) -> str:
    """A number of things."""
    ending = "es" if thing.endswith("ch") else "s"
    return f"{number:,} {thing}{'' if number == 1 else ending}"


def times(number: int) -> str:
    """How often."""
    return "once" if number == 1 else f"{number:,} times"
