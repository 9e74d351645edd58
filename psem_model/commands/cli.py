"""The command line. Solver, SymPy and NumPy are imported only by the commands that use them."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from psem_model.commands import audit as audit_commands
from psem_model.commands import claims as claim_commands
from psem_model.commands import models as model_commands
from psem_model.commands import schedules as schedule_commands
from psem_model.commands import space as space_commands
from psem_model.commands import tables as table_commands
from psem_model.commands.options import (
    ACCUMULATE,
    BAD_INPUT,
    DEVICES,
    HOLD,
    JSON,
    MODEL,
    PLACEMENT,
    POLICY,
    PSI,
    REJECTED,
    STRATEGY,
    UNIT,
    options,
)
from psem_model.reading.inputs import or_nearest

ARGUMENTS = {  # what is expected of them
    "file": "a strategy, such as zero1, or a schedule in TOML, as `psem derive zero2` prints one",
    "ids": "a claim's name, such as C1",
}
LONGEST = 60  # characters of what is repeated


class Commands(click.Group):
    """Commands, with the nearest name for one that is unknown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known:
            raise click.UsageError(
                f"command: given {args[0]!r}; expected one of {', '.join(known)}"
                f"{or_nearest(args[0], known)}"
            )
        name, command, others = super().resolve_command(ctx, args)
        if command is not None:
            require_once(click.Context(command, parent=ctx, info_name=name), others)
        return name, command, others


def require_once(context: click.Context, args: Sequence[str]) -> None:
    """Raise UsageError for an option with a value, or two names, that is given more than once."""
    _, _, given = context.command.make_parser(context).parse_args(list(args))
    for option, times in Counter(given).items():
        if times == 1 or not isinstance(option, click.Option) or option.multiple or option.count:
            continue
        if not option.is_flag or option.secondary_opts:
            spelled = "/".join((*option.opts[-1:], *option.secondary_opts))
            how_often = "twice" if times == 2 else f"{times:,} times"
            raise click.UsageError(f"{spelled}: given {how_often}; expected once")


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="psem")
@click.pass_context
def psem(context: click.Context) -> None:
    """Placement semantics for distributed deep learning: predicted, checked, simulated, proved."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@psem.command()
@options(STRATEGY, PLACEMENT, HOLD, click.option("--psi", help=PSI))
@options(DEVICES, POLICY, ACCUMULATE, UNIT, *MODEL)
@click.option(
    "--exact/--divisible",
    default=True,
    show_default=True,
    help="With padding, or as if N divided Psi.",
)
@JSON
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
    products: "zero1(dp=16) * tp(8) * pp(4)", or "zero1*tp*pp" with --devices 16x8x4.
    """
    from psem_model.predict.states import NotRealisable
    from psem_model.predict.states import predict as predicted
    from psem_model.reading import inputs
    from psem_model.reading import plans as model_inputs
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
            inputs.policy(policy),
            inputs.count("--accumulate", accumulate, "micro-steps"),
            None if unit is None else min(size, inputs.count("--unit", unit, "elements")),
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
psem.add_command(claim_commands.prove)
psem.add_command(claim_commands.explain)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; one line and exit code 2 for bad input."""
    if args is None and hasattr(signal, "SIGPIPE"):  # as a program: end silently with its reader
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.stdout is None:
        _complain("cannot write the output: it is closed")
        sys.exit(BAD_INPUT)
    code: Any = 0
    try:
        code = psem.main(args=args, prog_name="psem", standalone_mode=False)
    except click.NoSuchOption as error:
        known = [o for p in _parameters(error) for o in (*p.opts, *p.secondary_opts)]
        near = or_nearest(error.option_name.lstrip("-"), [o.lstrip("-") for o in known])
        near = near.replace(": ", ": --")
        _complain(f"option: given {error.option_name!r}; expected one of {', '.join(known)}{near}")
        code = BAD_INPUT
    except click.MissingParameter as error:
        parameter = error.param or click.Argument(["argument"])
        help_ = getattr(parameter, "help", None) or ARGUMENTS.get(parameter.name or "", "a value")
        name = parameter.human_readable_name if parameter.name in ARGUMENTS else parameter.opts[-1]
        _complain(f"{name}: missing; expected: {help_}")
        code = BAD_INPUT
    except click.ClickException as error:
        message = error.format_message()
        if "unexpected extra argument" in message:
            more = message[message.find("(") :][:LONGEST]
            message = f'arguments: given too many: {more}; a product is quoted: "zero1 * tp"'
        _complain(message)
        code = BAD_INPUT
    except click.Abort:
        click.echo("psem: interrupted", err=True)
        code = 130
    except KeyboardInterrupt:
        click.echo("psem: interrupted", err=True)
        code = 130
    except ValueError as error:
        if type(error).__name__ != "BadInput":
            raise
        _complain(str(error))
        code = BAD_INPUT
    except OSError as error:
        _complain(f"cannot write {error.filename or 'the output'}: {error.strerror}")
        code = BAD_INPUT
    sys.exit(code if isinstance(code, int) else 0)


def _parameters(error: click.UsageError) -> list[click.Parameter]:
    """The options of the command that was called."""
    found = error.ctx.command.params if error.ctx is not None else []
    return [p for p in found if isinstance(p, click.Option)]


def _complain(message: str) -> None:
    click.echo("psem: " + " ".join(message.split()), err=True)
