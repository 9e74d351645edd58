"""`psem derive`."""

from __future__ import annotations

from typing import Any

import click

from psem_model.commands.help import Command, option
from psem_model.commands.options import HOLD, JSON, OUTPUT, PLACEMENT, PROGRAM, STEP, STRATEGY, takes
from psem_model.commands.output import ended
from psem_model.text.errors import BadInput


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
@takes(STRATEGY, PLACEMENT, HOLD)
@option(STEP, "--clip", is_flag=True, help="Clip gradients by the norm of all of them.")
@option(
    OUTPUT,
    "--language",
    is_flag=True,
    help="Print what a schedule may say: every table, key and operation.",
)
@takes(*PROGRAM, JSON)
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

    asked = Asked("derive", strategy, placement, hold=hold, model=program | {"clip": clip})
    if language:
        from psem_model.reading.language import report

        names = ("strategy", "placement", "hold", "clip", *program)
        asked.refuse(names, "with --language", "--language alone")
        if as_json:
            raise BadInput("--json: given with --language, which is words; expected --language alone")
        ended(report(), "text")
    from psem_model.predict.programs import derived

    found = derived(asked, clip, program)
    if as_json or not found.toml:
        ended(found.report, "json" if as_json else "text")
    click.echo(found.toml, nl=False)
