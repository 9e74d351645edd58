"""Reading what a user typed: each function returns a value or raises BadInput with one clear line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction

from spec.mesh import HOST
from spec.model_strategies import MODEL_MEANING
from spec.modes import Mode, O
from spec.placement import BATCH, Placement, place
from spec.states import POLICIES, BytePolicy, State, custom_policy
from spec.strategies import MEANING, STRATEGIES

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
MLP = re.compile(r"([0-9]{1,6})x([0-9]{1,6})")
CUT_THE_MODEL = ("predict", "derive", "simulate")  # commands that take strategies which cut the model
LARGEST = 30  # decimal exponent of numbers that are taken
LARGEST_FILE = 2**20  # bytes of a file that is read
MOST_LAYERS = 10**15  # of a model
ALIKE = 0.5  # from which share of letters in common on a name is taken for a misspelled one


class BadInput(ValueError):
    """What was given, what is expected, and the nearest valid choice."""


def nearest(given: str, choices: Iterable[str]) -> str:
    """The choice that is spelled most alike, in small or capital letters; empty if none is nearly."""
    small = {choice.lower(): choice for choice in choices}
    return next((small[near] for near in get_close_matches(given.lower(), small, 1, ALIKE)), "")


def or_nearest(given: str, choices: Iterable[str]) -> str:
    """What an error ends in: the choice that is spelled most alike, if any is nearly alike."""
    near = nearest(given, choices)
    return f"; nearest: {near}" if near else ""


def choose(what: str, given: str, choices: Iterable[str]) -> str:
    """One of some names."""
    names = list(choices)
    if given not in names:
        raise BadInput(
            f"{what}: given {given!r}; expected one of {', '.join(names)}{or_nearest(given, names)}"
        )
    return given


def number(what: str, given: str) -> Fraction:
    """An exact number from decimal text such as 7.5e9."""
    if NUMBER.fullmatch(given):
        value = Decimal(given)
        if not value or abs(value.adjusted()) <= LARGEST:
            return Fraction(value)
    raise BadInput(f"{what}: given {given!r}; expected a number such as 7.5e9, below 1e{LARGEST}")


def _ratio(what: str, given: str) -> Fraction:
    """A number, or one over another, such as 1/2."""
    above, slash, below = given.partition("/")
    under = number(what, below) if slash else Fraction(1)
    if not under:
        raise BadInput(f"{what}: given {given!r}; expected a number such as 1/2, without division by 0")
    return number(what, above) / under


def count(what: str, given: str, of: str, least: int = 1) -> int:
    """A whole number of at least 1, or of another least one, of some things."""
    value = number(what, given)
    if value.denominator != 1 or value < least:
        things = f" of {of}" if of else ""
        raise BadInput(f"{what}: given {given!r}; expected a whole number{things}, at least {least}")
    return int(value)


def mesh(given: str, axes: Sequence[str]) -> dict[str, int]:
    """Axis sizes: "64", or "8x8" for two axes, in their order."""
    sizes = [count("--devices", part, "devices") for part in given.lower().split("x")]
    if len(sizes) != len(axes):
        one = len(axes) == 1
        sizes_, form = (
            ("1 size, for", "8")
            if one
            else (f"{len(axes)} sizes, one for each of", "x".join("8" for _ in axes))
        )
        raise BadInput(
            f"--devices: given {given!r}; expected {sizes_} {' x '.join(axes)}, such as {form}"
        )
    return dict(zip(axes, sizes, strict=True))


def perceptron(given: str) -> tuple[int, int]:
    """Layers and width from "4x16"."""
    sizes = MLP.fullmatch(given.lower())
    layers, width = (int(n) for n in sizes.groups()) if sizes else (0, 0)
    if not (layers and width):
        raise BadInput(f"--mlp: given {given!r}; expected layers x width, such as 4x16")
    return layers, width


def policy(given: str) -> BytePolicy:
    """A named byte policy, or "w,g,K" in bytes per parameter."""
    if "," not in given:
        if given not in POLICIES:
            raise BadInput(
                f"--bytes: given {given!r}; expected one of {', '.join(POLICIES)}, or w,g,K in bytes"
                f"{or_nearest(given, POLICIES)}"
            )
        return POLICIES[given]
    parts = given.split(",")
    if len(parts) != 3:
        raise BadInput(
            f"--bytes: given {given!r}; expected three numbers w,g,K such as 2,2,12 or 1/2,2,12"
        )
    w, g, k = (_ratio("--bytes", part) for part in parts)
    if w <= 0 or g <= 0 or k < 0:
        raise BadInput(f"--bytes: given {given!r}; expected w > 0, g > 0 and K >= 0")
    return custom_policy(w, g, k)


def strategy(given: str, others: Iterable[str] = ()) -> Placement:
    """A named strategy's placement. `others`: names that would do as well, but are not given."""
    return STRATEGIES[choose("strategy", given, (*STRATEGIES, *others))]


def chosen(
    command: str, strategy_: str | None, placement_: str | None, hold: bool
) -> tuple[Placement, str]:
    """A strategy's placement or the one that is given, and what it is called."""
    if strategy_ is not None and placement_ is not None:
        raise BadInput(
            f"{command}: given {strategy_!r} and --placement; expected a strategy or --placement, one "
            "of the two"
        )
    if strategy_ is None and placement_ is None:
        raise BadInput(f"{command}: expected a strategy or --placement; nearest: {command} zero3")
    if strategy_ is None:
        placed = placement(placement_ or "", hold)
        return placed, f"placement {spelled(placed)}"
    if hold:
        raise BadInput("--hold goes with --placement; expected fsdp-hold for FSDP")
    others = [name for name in MODEL_MEANING if name not in STRATEGIES]
    placed = strategy(strategy_, others if command in CUT_THE_MODEL else ())
    return placed, f"{strategy_}: {MEANING[strategy_]}"


def symbols_of(placement: Placement, state: State) -> str:
    """The mode symbols of one state, as they are typed."""
    axes = [placement.mode(state, axis) for axis in placement.axes]
    modes = [mode.value for mode in axes if mode is not None]
    if len(placement.axes) > 1:
        modes = [f"{a}:{m}" for a, m in zip(placement.axes, modes, strict=True)]
    host = "+O" if placement.mode(state, HOST) is Mode.OFFLOADED else ""
    return "/".join(modes) + host


def spelled(placed: Placement) -> str:
    """A placement as it is typed."""
    modes = ",".join(f"{state.value}={symbols_of(placed, state)}" for state in State)
    return modes + (" --hold" if placed.hold else "")


def placement(given: str, hold: bool) -> Placement:
    """A placement from "parameters=S*,optimizer=S,gradients=S,activations=S".

    A mode may be followed by +O (kept on the host), or be given for each of several axes, as in
    parameters=replica:R/shard:S*.
    """
    modes: dict[State, dict[str, Mode]] = {}
    states = {state.value: state for state in State}
    for part in given.split(","):
        name, equals, symbols = part.strip().partition("=")
        if not equals:
            raise BadInput(f"--placement: given {part!r}; expected state=mode, such as optimizer=S")
        state = states[choose("--placement, state", name.strip(), states)]
        if state in modes:
            raise BadInput(f"--placement: {name} is given twice; expected each state once")
        modes[state] = _modes(symbols.strip())
    for state in State:
        if state not in modes:
            raise BadInput(
                f"--placement: {state.value} is missing; expected a mode for each of "
                f"{', '.join(states)}"
            )
    axes = tuple(a for a in modes[State.PARAMETERS] if a != HOST)
    for state, named in modes.items():
        others = tuple(a for a in named if a != HOST)
        if sorted(others) != sorted(axes):
            raise BadInput(
                f"--placement: {state.value} has axes {', '.join(others)}; expected those of "
                f"parameters: {', '.join(axes)}"
            )
    return place(axes, modes, hold)


def _modes(symbols: str) -> dict[str, Mode]:
    main, plus, host = symbols.partition("+")
    valid = {mode.value: mode for mode in Mode}
    found: dict[str, Mode] = {}
    for part in main.split("/"):
        axis, colon, symbol = part.partition(":")
        axis, symbol = (axis, symbol) if colon else (BATCH, axis)
        if not axis.isidentifier() or axis == HOST:
            raise BadInput(f"--placement, axis: given {axis!r}; expected a name such as shard")
        if axis in found:
            raise BadInput(f"--placement: axis {axis} is given twice; expected each axis once")
        found[axis] = valid[choose("--placement, mode", symbol, valid)]
    if plus:
        if host != O.value:
            raise BadInput(f"--placement, host: given {host!r}; expected O (kept on the host)")
        found[HOST] = O
    return found
