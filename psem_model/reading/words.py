"""Numbers, sizes of meshes and byte policies, as a user types them; each error is one clear line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from psem_model.text.errors import BadInput, listed, or_nearest, quoted, refused
from spec.devices.mesh import ALL_WEIGHTS, HOST
from spec.language.schedule import MICRO_STEPS
from spec.models.states import POLICIES, BytePolicy, custom_policy

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
KILO = re.compile(r"[0-9.]{1,9}[kK]")
LAYERS_BY_WIDTH = re.compile(r"([0-9]{1,6})x([0-9]{1,6})")
BYTES = re.compile(r"(?P<number>.*?)\s*((?P<power>[kKmMgGtTpP])(?P<binary>[iI])?)?[bB]")
LARGEST = 30  # decimal exponent that numbers stay below
MOST_LAYERS = 10**15  # of a model
MOST_SHOWN = 8  # axes that an error lists
THOUSANDS = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}  # as in 350M, 70B, 1.5T


def number(what: str, given: str, such_as: str = "7.5e9") -> Fraction:
    """An exact number from decimal text such as 7.5e9."""
    if NUMBER.fullmatch(given):
        value = Decimal(given)
        if not value or -LARGEST <= value.adjusted() < LARGEST:
            return Fraction(value)
    raise refused(what, given, f"a number such as {such_as}, below 1e{LARGEST}")


def ratio(what: str, given: str) -> Fraction:
    """A number, or one over another, such as 1/2."""
    above, slash, below = given.partition("/")
    try:
        return number(what, above) / (number(what, below) if slash else 1)
    except (BadInput, ZeroDivisionError):
        expected = f"a number such as 2 or 1/2, below 1e{LARGEST}, without division by 0"
        raise refused(what, given, expected) from None


def count(what: str, given: str, of: str, least: int = 1) -> int:
    """A whole number of at least 1, or of another least one, of some things."""
    if KILO.fullmatch(given):
        raise BadInput(
            f"{what}: given {quoted(given)}, which may be 1,000 or 1,024 times as many; expected "
            f"a whole number{f' of {of}' if of else ''}, such as 8192"
        )
    return _whole(what, given, number(what, given), of, least)


def parameters(what: str, given: str, of: str = "parameters") -> int:
    """A count of parameters or of their elements: 7.5e9, or 350M, 70B, 1.5T in powers of 1,000."""
    thousands = THOUSANDS.get(given[-1:].lower(), 1)
    plain = given if thousands == 1 else given[:-1]
    if not NUMBER.fullmatch(plain):
        plain = given  # to be repeated whole
    value = number(what, plain, "7.5e9 or 70B") * thousands
    return _whole(what, given, value, of, 1)


def memory(what: str, given: str) -> Fraction:
    """Bytes: 80GB in powers of 1,000, 80GiB in powers of 1,024, or 8e10B."""
    found = BYTES.fullmatch(given.strip())
    if not found or not NUMBER.fullmatch(found["number"]):
        raise refused(what, given, "bytes, such as 80GB or 80GiB")
    thousand = 1024 if found["binary"] else 1000
    power: int = " kmgtp".index((found["power"] or " ").lower())
    value = number(what, found["number"], "80GB") * Fraction(thousand) ** power
    if value <= 0:
        raise refused(what, given, "more than 0 bytes, such as 80GB")
    return value


def _whole(what: str, given: str, value: Fraction, of: str, least: int) -> int:
    if value.denominator != 1 or value < least or value >= 10**LARGEST:
        things = f" of {of}" if of else ""
        raise refused(what, given, f"a whole number{things}, at least {least}, below 1e{LARGEST}")
    return int(value)


def is_axis(name: str) -> bool:
    """Whether an axis may be called so: a plain name that means nothing else."""
    reserved = (HOST, MICRO_STEPS, ALL_WEIGHTS)
    return name.isascii() and name.isidentifier() and name[0] != "_" and name not in reserved


def mesh(given: str, axes: Sequence[str], plan: str = "") -> dict[str, int]:
    """Axis sizes: "64", or "8x8" for two axes, in their order. `plan`: whose axes, in the error."""
    try:
        sizes = [count("--devices", part, "devices") for part in given.lower().split("x")]
    except BadInput:
        sizes = []
    if len(sizes) != len(axes):
        one = len(axes) == 1
        form = "a whole number" if one else f"{len(axes)} whole numbers, one for each of"
        of_plan = f" for {quoted(plan)}" if plan else ""
        such_as = "x".join("8" for _ in axes[:MOST_SHOWN])
        raise BadInput(
            f"--devices: given {quoted(given)}{of_plan}; expected {form}{' for' if one else ''} "
            f"{listed(axes, MOST_SHOWN)}, at least 1, such as {such_as}"
        )
    return dict(zip(axes, sizes, strict=True))


def perceptron(given: str) -> tuple[int, int]:
    """Layers and width of a perceptron, from "4x16"."""
    sizes = LAYERS_BY_WIDTH.fullmatch(given.lower())
    layers, width = (int(n) for n in sizes.groups()) if sizes else (0, 0)
    if not (layers and width):
        raise refused("--mlp", given, "layers x width, such as 4x16")
    return layers, width


def policy(given: str) -> BytePolicy:
    """A named byte policy, or "w,g,K" in bytes per parameter."""
    if "," not in given:
        if given not in POLICIES:
            expected = f"one of {', '.join(POLICIES)}, or w,g,K in bytes{or_nearest(given, POLICIES)}"
            raise refused("--bytes", given, expected)
        return POLICIES[given]
    parts = given.split(",")
    if len(parts) != 3:
        raise refused("--bytes", given, "three numbers w,g,K such as 2,2,12 or 1/2,2,12")
    w, g, k = (ratio("--bytes", part) for part in parts)
    if w <= 0 or g <= 0 or k < 0:
        raise refused("--bytes", given, "w > 0, g > 0 and K >= 0")
    return custom_policy(w, g, k)
