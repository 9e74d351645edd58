"""Options that several commands take, and the bar that they show."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import click
from click.core import ParameterSource

BAD_INPUT, REJECTED = 2, 1  # exit codes
Function = TypeVar("Function", bound=Callable[..., None])
Item = TypeVar("Item")
LONG, PATIENCE = 50, 1.0  # items, or seconds, from which on a bar is worth the while
LONGEST = 1_000_000  # passes of a run, of which each takes about a millisecond or more

STRATEGY = click.argument("strategy", required=False)
PLACEMENT = click.option(
    "--placement", help='A placement: "parameters=S*,optimizer=S,gradients=S,activations=S".'
)
HOLD = click.option(
    "--hold",
    is_flag=True,
    help="Keep for backward what is gathered: activations, or parameters of --placement.",
)
HELD = click.option("--hold", is_flag=True, help="Keep gathered activations for backward.")
PSI = "Parameters of the model, such as 7.5e9."
OF_DEVICES = "Devices, such as 64; 8x8 for two axes."


def something(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """What was typed, unless it was nothing."""
    if value == "":
        from psem_model.reading.inputs import BadInput

        help_ = getattr(option, "help", "")
        raise BadInput(f"{option.opts[-1]}: given ''; expected: {help_}")
    return value


DEVICES = click.option(
    "--devices",
    callback=something,
    help=f"{OF_DEVICES} Not where the strategy says its sizes.",
)
DEVICES_TO_CHECK = click.option(
    "--devices",
    callback=something,
    help="Devices, such as 4; 2x4 for two axes. Default: 1, 2 and 3 or more, along each axis.",
)
SCHEDULE = click.option(
    "--schedule",
    metavar="FILE",
    callback=something,
    help="A schedule in TOML, as psem derive prints one.",
)
POLICY = click.option(
    "--bytes",
    "policy",
    default="mixed-adam",
    show_default=True,
    help="Bytes per parameter: a named policy, or w,g,K.",
)
ACCUMULATE = click.option("--accumulate", default="1", show_default=True, help="Micro-steps per step.")
UNIT = click.option(
    "--unit",
    help="Elements gathered or reduced at a time. Default: all; of a model, its largest layer.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")

BLOCK = click.option(
    "--block", default="gpt", show_default=True, help="The kind of layer: gpt or llama."
)
RECOMPUTE = click.option(
    "--recompute",
    default="none",
    show_default=True,
    help="Made again for backward: none, attention (or selective), all (or full), sliced (all, from "
    "what is kept in slices).",
)
PROGRAM = (
    click.option("--part", default="layer", show_default=True, help="embedding, layer or head."),
    BLOCK,
    click.option("--experts", is_flag=True, help="With experts in place of one MLP."),
    RECOMPUTE,
    click.option("--moves", is_flag=True, help="Only the collectives."),
)
CONFIG = click.option(
    "--config", callback=something, help="The model's shape: a Hugging Face config.json."
)
MODEL = (
    CONFIG,
    click.option("--layers", help="Layers of the model, where there is no --config."),
    click.option("--hidden", help="Features of a token between layers."),
    click.option("--heads", help="Heads of attention."),
    click.option("--kv-heads", help="Heads of keys and values. Default: as many as heads."),
    click.option("--head-dim", help="Features of a head. Default: hidden / heads."),
    click.option("--feed-forward", help="Features inside the MLP. Default: 4 x hidden."),
    click.option("--vocabulary", help="Words. Default: no embedding and no head."),
    click.option("--experts", help="Experts in each layer."),
    click.option("--chosen", help="Experts that each token is sent to."),
    BLOCK,
    click.option("--sequence", help="Tokens of a sample."),
    click.option("--micro-batch", default="1", show_default=True, help="Samples of a micro-batch."),
    RECOMPUTE,
    click.option(
        "--offload-activations", is_flag=True, help="Kept on the host from forward to backward."
    ),
    click.option("--order", help="Of pp: 1f1b (the default), gpipe, interleaved."),
    click.option("--chunks", help="Of pp: chunks of layers in a stage, interleaved."),
)


def options(*decorators: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Options of a command, in the order of its help."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def typed(names: Iterable[str]) -> list[str]:
    """Those of some options of the running command that were typed, as they are spelled."""
    context = click.get_current_context()
    spelled = {option.name: option.opts[-1] for option in context.command.params}
    source = context.get_parameter_source
    return [spelled[n] for n in names if n in spelled and source(n) is ParameterSource.COMMANDLINE]


def refuse(names: Iterable[str], given: str, expected: str) -> None:
    """Raise BadInput for the first of some options that was typed where it would change nothing."""
    from psem_model.reading.inputs import BadInput

    for option in typed(names):
        raise BadInput(f"{option}: given {given}; expected {expected}")


def require_few(passes: int) -> None:
    """Raise BadInput for a run that would not end."""
    from psem_model.reading.inputs import BadInput

    if passes > LONGEST:
        raise BadInput(
            f"--steps, --accumulate: given {passes:,} passes in all; expected at most {LONGEST:,}"
        )


def bar(label: str) -> Callable[[Sequence[Item]], Iterator[Item]]:
    """Items one by one, with a bar if there are many and someone is at a terminal."""

    def pass_through(items: Sequence[Item]) -> Iterator[Item]:
        if len(items) < LONG or not sys.stderr.isatty():
            yield from items
            return
        with click.progressbar(items, label=label, file=sys.stderr) as pending:
            yield from pending

    return pass_through


@contextmanager
def ticker(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """To be told how many of `total` are done; a bar if it takes long and someone is at a terminal."""
    start = time.monotonic()
    with ExitStack() as stack:
        bars: list[Any] = []

        def tell(done: int) -> None:
            if not bars and sys.stderr.isatty() and time.monotonic() - start > PATIENCE:
                shown = click.progressbar(length=total, label=label, file=sys.stderr)
                bars.append(stack.enter_context(shown))
            for shown in bars:
                shown.update(done - shown.pos)

        yield tell
