"""The command line. Solver, SymPy and NumPy are imported only by the commands that use them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

import click

from psem_model.commands.audit import audit
from psem_model.commands.check import check
from psem_model.commands.claims import explain, prove
from psem_model.commands.compare import compare
from psem_model.commands.derive import derive
from psem_model.commands.options import A_FILE_OR_STRATEGY, A_STRATEGY
from psem_model.commands.predict import predict
from psem_model.commands.report import report
from psem_model.commands.simulate import simulate
from psem_model.commands.space import space
from psem_model.commands.tables import tables
from psem_model.text.errors import (
    BAD_INPUT,
    BadInput,
    UserError,
    choose,
    nearest,
    or_nearest,
    quoted,
    shortened,
)
from psem_model.text.files import named

INTERRUPTED = 130  # exit code
LONGEST, MOST_BYTES = 1_000, 1_900  # characters of a message, and bytes
COMPLETE = "_PSEM_COMPLETE"  # by which a shell asks what may follow
OF_THE_SYSTEM = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}  # it gives a process no more
TO_TRY = (  # what is printed where no command is given
    "psem predict zero3 --psi 7.5e9 --devices 64",
    "psem check zero2",
    "psem tables paper --format text",
)
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
    epilog="\b\nTAB completes names and files after\n"
    '  eval "$(_PSEM_COMPLETE=bash_source psem)"    (or zsh_source, fish_source)',
)
@click.version_option(package_name="psem")
@click.pass_context
def psem(context: click.Context) -> None:
    """Placement semantics for distributed deep learning: predicted, checked, simulated, proved."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        click.echo("\nTo try:")
        for line in TO_TRY:
            click.echo(f"  {line}")


for command in (
    predict,
    compare,
    derive,
    check,
    simulate,
    space,
    tables,
    prove,
    explain,
    audit,
    report,
):
    psem.add_command(command)


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
    except MemoryError as error:
        why = f": {error}" if str(error) else ""
        _complain(f"out of memory{why}; expected smaller sizes, or more memory")
        code = BAD_INPUT
    except OSError as error:
        _complain(f"{_failed(error)}: {error.strerror or error}")
        code = BAD_INPUT
    sys.exit(code)


def _run(args: Sequence[str] | None) -> int:
    """Run a command: its exit code."""
    if COMPLETE in os.environ:
        _require_shell(os.environ)
    try:
        code: Any = psem.main(args=args, prog_name="psem", standalone_mode=False)
    except SystemExit as done:
        code = done.code
    return code if isinstance(code, int) else 0


def _require_shell(given: Mapping[str, str]) -> None:
    """Raise BadInput unless a shell asks for completions as shells do."""
    kinds = [f"{shell}_{what}" for shell in ("bash", "fish", "zsh") for what in ("complete", "source")]
    choose(COMPLETE, given[COMPLETE], kinds)
    if given[COMPLETE].endswith("_complete"):
        words, at = given.get("COMP_WORDS"), given.get("COMP_CWORD", "")
        fish = given[COMPLETE].startswith("fish")
        if words is None or not (fish or at.isdecimal()):
            raise BadInput(f"{COMPLETE}: given alone; expected COMP_WORDS and COMP_CWORD, as shells do")


def _failed(error: OSError) -> str:
    """Whose error it is: of a file, of the system, or else of the output, which then is dropped."""
    if error.filename is not None:
        return named(error.filename)
    if error.errno in OF_THE_SYSTEM:
        return "the system"
    _drop(sys.stdout)
    return "cannot write the output"


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
        names_of = {name.lstrip("-"): name for name in known}
        given = error.option_name.lstrip("-")
        so_called = (p.opts[0] for p in options_ if (p.help or "").lower().startswith(f"{given} "))
        near = next(so_called, names_of.get(nearest(given, names_of), ""))
        near = f"; nearest: {near}" if near else ""
        listed = f"{context.command_path} --help" if context else "--help"
        return f"option: given {quoted(error.option_name)}; expected one that {listed} lists{near}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        expected = getattr(error.param, "help", None) or "a value"
        return f"{error.param.human_readable_name}: missing; expected: {expected}"
    if isinstance(error, click.BadOptionUsage) and "requires an argument" in error.message:
        return f"{error.option_name}: given alone; expected a value after it"
    message = error.format_message()
    if context and "unexpected extra argument" in message:
        arguments = [p for p in parameters if isinstance(p, click.Argument)]
        more = quoted(message[message.find("(") + 1 : message.rfind(")")])
        expected = f"one {arguments[0].make_metavar(context)}" if arguments else "none"
        product = '; a product is quoted: "zero1 * tp"'
        of_strategies = any(p.type in (A_STRATEGY, A_FILE_OR_STRATEGY) for p in arguments)
        return f"arguments: given {more} too; expected {expected}{product if of_strategies else ''}"
    return message


def _complain(message: str) -> None:
    try:
        said = shortened(" ".join(message.split()), LONGEST)
        while len(said.encode(errors="replace")) > MOST_BYTES:
            said = shortened(said, len(said) // 2)
        click.echo("psem: " + said, err=True)
    except OSError:  # there is nobody to tell
        _drop(sys.stderr)
