"""`psem derive`."""

from __future__ import annotations

import tomllib
from typing import Any

import click

from psem_model.commands.help import Command, option
from psem_model.commands.options import HOLD, JSON, OUTPUT, PLACEMENT, PROGRAM, STEP, STRATEGY, options
from psem_model.commands.output import ended
from psem_model.text.errors import BadInput, quoted
from psem_model.text.report import Report


@click.command(
    cls=Command,
    examples=[
        "psem derive zero2 > my.toml",
        "psem derive --language",
        'psem derive "zero1 * tp+sp" > my.toml',
        'psem derive "zero1 * tp+sp" --clip',
        'psem derive "cp * tp" --moves',
    ],
)
@options(STRATEGY, PLACEMENT, HOLD)
@option(STEP, "--clip", is_flag=True, help="Clip gradients by the norm of all of them.")
@option(
    OUTPUT,
    "--language",
    is_flag=True,
    help="Print what a schedule may say: every table, key and operation.",
)
@options(*PROGRAM, JSON)
def derive(
    strategy: str | None,
    placement: str | None,
    hold: bool,
    clip: bool,
    language: bool,
    as_json: bool,
    **program: Any,
) -> None:
    """Print the step of a STRATEGY (or a placement) as TOML, to read, to change and to check.

    Of a strategy that places the training states: its schedule. Of a product that cuts the model (tp,
    tp+sp, cp, cp-all-gather, cp-all-to-all, ep, pp, such as "zero1 * tp+sp"): the program of each part
    of a transformer, with the collectives that follow, and the schedule of every weight. With --part
    or --moves: a part's program as a table, with how each value lies.

    `psem derive --language` says what a file may say: tables, keys, operations and buffers.
    """
    from psem_model.predict.asked import Asked
    from psem_model.predict.read import placed_as
    from psem_model.reading.products import parse

    asked = Asked("derive", strategy, placement, hold=hold, model=program | {"clip": clip})
    if language:
        from psem_model.reading.language import report

        names = ("strategy", "placement", "hold", "clip", *program)
        asked.refuse(names, "with --language", "--language alone")
        if as_json:
            raise BadInput("--json: given with --language, which is words; expected --language alone")
        ended(report(), "text")
    found = None if strategy is None else parse(strategy)
    if found is not None and not found.is_of_states and placement is None:
        from psem_model.predict import programs

        if program["part"] or program["moves"]:
            asked.refuse(["clip"], "with --part or --moves", "it with a whole step")
            ended(programs.program(found, hold, **program), "json" if as_json else "text")
        of_step = {key: program[key] for key in ("block", "experts", "recompute")}
        show(found.text, programs.step(found, hold, clip=clip, **of_step), as_json)
        return
    from psem_model.reading.schedules import dumps
    from spec.derivation.derive import derive as derived
    from spec.derivation.norms import clipped

    placed, of = placed_as(asked, found)
    name = of
    if found is not None and len(found.meanings) == 1:
        name = f"{name}: {found.meanings[0]}"
    expected = "a strategy that cuts the model, such as tp"
    asked.refuse(program, f"with {strategy or '--placement'}", expected)
    try:
        schedule = clipped(derived(placed)) if clip else derived(placed)
    except ValueError as error:
        raise BadInput(f"--clip: given with {quoted(name)}: {error}") from None
    show(of, dumps(schedule, name), as_json)


def show(name: str, step: str, as_json: bool) -> None:
    """Print a step: its TOML, or, for programs, what the TOML says."""
    if as_json:
        ended(Report("derive", "", data={"strategy": name, "step": tomllib.loads(step)}), "json")
    click.echo(step, nl=False)
