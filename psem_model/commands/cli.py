"""The command line. Solver, SymPy and NumPy are imported only by the commands that use them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

import click

from psem_model.commands import audit as audit_commands
from psem_model.commands import models as model_commands
from psem_model.commands import names
from psem_model.commands import schedules as schedule_commands
from psem_model.commands import space as space_commands
from psem_model.commands import tables as table_commands
from psem_model.commands.help import Command, option
from psem_model.commands.options import (
    ACCUMULATE,
    CLAIM,
    CLAIMS,
    DEVICES,
    EXACT,
    HOLD,
    JSON,
    MODEL,
    OUTPUT,
    PLACEMENT,
    POLICY,
    PSI,
    STRATEGY,
    UNIT,
    options,
)
from psem_model.text.errors import (
    BAD_INPUT,
    REJECTED,
    UserError,
    or_nearest,
    quoted,
    shortened,
)
from psem_model.text.files import named

INTERRUPTED = 130  # exit code
LONGEST = 1_000  # characters of a message
WIDTH = 100  # columns of help, where the terminal has as many


class Commands(click.Group):
    """Commands, with the nearest name for one that is unknown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing:  # a line that is not yet complete
            return super().resolve_command(ctx, args)
        known = self.list_commands(ctx)
        if args and args[0] not in known:
            raise click.UsageError(
                f"command: given {quoted(args[0])}; expected one of {', '.join(known)}"
                f"{or_nearest(args[0], known)}"
            )
        name, command, others = super().resolve_command(ctx, args)
        if command is not None:
            require_once(click.Context(command, parent=ctx, info_name=name), others)
        return name, command, others


def require_once(context: click.Context, args: Sequence[str]) -> None:
    """Raise UsageError for an option with a value, or two names, that is given more than once."""
    _, _, given = context.command.make_parser(context).parse_args(list(args))
    for which, times in Counter(given).items():
        if times == 1 or not isinstance(which, click.Option) or which.multiple or which.count:
            continue
        if not which.is_flag or which.secondary_opts:
            spelled = "/".join((*which.opts[-1:], *which.secondary_opts))
            how_often = "twice" if times == 2 else f"{times:,} times"
            raise click.UsageError(f"{spelled}: given {how_often}; expected once")


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
)
@click.version_option(package_name="psem")
@click.pass_context
def psem(context: click.Context) -> None:
    """Placement semantics for distributed deep learning: predicted, checked, simulated, proved."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@psem.command(
    cls=Command,
    examples=[
        "psem predict zero1 --psi 7.5e9 --devices 64",
        'psem predict "zero1(16) * tp(8)" --config llama-2-7b.json --sequence 4096',
        "psem predict hsdp --psi 70B --devices 8x8 --accumulate 4 --bytes 2,4,12",
    ],
)
@options(STRATEGY, PLACEMENT, HOLD, DEVICES, PSI, *MODEL, POLICY, ACCUMULATE, UNIT, EXACT, JSON)
def predict(
    strategy: str | None,
    placement: str | None,
    hold: bool,
    psi: str | None,
    devices: str | None,
    policy: str,
    accumulate: str,
    unit: str | None,
    exact: bool,
    as_json: bool,
    **model: Any,
) -> None:
    """What a STRATEGY (or a placement) needs in memory and moves, per device.

    Of the training states: dp, zero1, zero2, zero3, fsdp, fsdp-hold, hsdp, zero-offload,
    fused-update. Of the model, whose shape must be given: tp, tp+sp, pp, cp, cp-all-to-all, ep. And
    products of them, with their sizes, or without and --devices 16x8x4.
    """
    from psem_model.predict.states import NotRealisable
    from psem_model.predict.states import predict as predicted
    from psem_model.reading import plans as model_inputs
    from psem_model.reading import words
    from psem_model.reading.products import parsed
    from spec.arithmetic import DIVISIBLE, EXACT

    found = parsed(strategy)
    try:
        if placement is None and found is not None and model_commands.is_of_model(found, model):
            step = {"policy": policy, "accumulate": accumulate, "held": hold, "unit": unit}
            model_commands.predict(found, devices, psi, exact, as_json, model, **step)
            return
        placed, name = model_inputs.placed("predict", found, strategy, placement, hold)
        sizes = model_inputs.mesh_of(found, placed, devices)
        size = model_commands.parameters(psi, model)
        prediction = predicted(
            placed,
            size,
            sizes,
            words.policy(policy),
            words.count("--accumulate", accumulate, "micro-steps"),
            None if unit is None else min(size, words.parameters("--unit", unit, "elements")),
            EXACT if exact else DIVISIBLE,
        )
    except NotRealisable as error:
        from psem_model.predict.show_states import refusal, refusal_json

        if as_json:
            click.echo(json.dumps(refusal_json(error), indent=2))
        for line in refusal(error):
            click.echo(f"psem: {line}", err=True)
        sys.exit(REJECTED)

    from psem_model.predict.show_states import Shown

    title = name if strategy and not as_json else strategy or "placement"
    shown = Shown(title, prediction, exact)
    click.echo(json.dumps(shown.json(), indent=2) if as_json else "\n".join(shown.lines()))


psem.add_command(model_commands.compare)
psem.add_command(space_commands.space)
psem.add_command(schedule_commands.derive)
psem.add_command(schedule_commands.check)
psem.add_command(schedule_commands.simulate)
psem.add_command(table_commands.tables)
psem.add_command(audit_commands.audit)


@psem.command(cls=Command, examples=["psem prove", "psem prove C1 E2"])
@options(CLAIMS, JSON)
def prove(ids: Sequence[str], as_json: bool) -> None:
    """Prove claims (all, or those named) and print one line each."""
    from psem_model.audit.proving import run

    sys.exit(run(ids, as_json))


@psem.command(
    cls=Command, examples=["psem explain E2", "psem explain C1 --smt chunks_wait_untouched_step"]
)
@CLAIM
@option(OUTPUT, "--smt", metavar="OBLIGATION", help="Print one obligation's SMT-LIB text.")
def explain(claim: str, smt: str | None) -> None:
    """Print a CLAIM, where it is proved, its theorem tree and its counterexample."""
    from psem_model.audit.proving import explanation

    click.echo(explanation(claim, smt))


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; one line and exit code 2 for bad input."""
    if args is None and hasattr(signal, "SIGPIPE"):  # as a program: end silently with its reader
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        _complain("cannot write the output: it is closed")
        sys.exit(BAD_INPUT)
    try:
        code = _run(args)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        code = INTERRUPTED
    except click.ClickException as error:
        _complain(_in_words(error))
        code = BAD_INPUT
    except UserError as error:
        _complain(str(error))
        code = error.code
    except OSError as error:
        what = "cannot write the output" if error.filename is None else named(error.filename)
        _complain(f"{what}: {error.strerror or error}")
        _drop(sys.stdout)
        code = BAD_INPUT
    sys.exit(code)


def _run(args: Sequence[str] | None) -> int:
    """Run a command: its exit code."""
    try:
        code: Any = psem.main(args=args, prog_name="psem", standalone_mode=False)
    except SystemExit as done:
        code = done.code
    return code if isinstance(code, int) else 0


def _drop(stream: IO[str]) -> None:
    """What could not be written to a stream is not tried again when Python ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _in_words(error: click.ClickException) -> str:
    """What is wrong with how a command is called: what was given, and what is expected."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    parameters = context.command.params if context else []
    if isinstance(error, click.NoSuchOption):
        options_ = [p for p in parameters if isinstance(p, click.Option)]
        known = [name for p in options_ for name in (*p.opts, *p.secondary_opts)]
        near = or_nearest(error.option_name, known)
        return f"option: given {quoted(error.option_name)}; expected one of {', '.join(known)}{near}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        expected = getattr(error.param, "help", None) or "a value"
        return f"{error.param.human_readable_name}: missing; expected: {expected}"
    message = error.format_message()
    if context and "unexpected extra argument" in message:
        arguments = [p for p in parameters if isinstance(p, click.Argument)]
        more = quoted(message[message.find("(") + 1 : message.rfind(")")])
        expected = f"one {arguments[0].make_metavar(context)}" if arguments else "none"
        product = '; a product is quoted: "zero1 * tp"'
        of_strategies = any(p.type in (names.A_STRATEGY, names.A_FILE_OR_STRATEGY) for p in arguments)
        return f"arguments: given {more} too; expected {expected}{product if of_strategies else ''}"
    return message


def _complain(message: str) -> None:
    try:
        click.echo("psem: " + shortened(" ".join(message.split()), LONGEST), err=True)
    except OSError:  # there is nobody to tell
        _drop(sys.stderr)
