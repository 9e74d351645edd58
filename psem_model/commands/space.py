"""`psem space`: the space of placements of a batch axis."""

from __future__ import annotations

import click

from psem_model.commands import names
from psem_model.commands.help import Command, option
from psem_model.commands.options import ACCUMULATE, FORM, OUTPUT, PLAN, POLICY, number, options
from psem_model.commands.output import ended


@click.command(cls=Command, examples=["psem space --devices 64", "psem space --reasons"])
@number(PLAN, "--devices", "Devices, at least 2.", default="8")
@options(POLICY, ACCUMULATE)
@option(OUTPUT, "--all", "every", is_flag=True, help="Every class of equal cost, with its placements.")
@option(OUTPUT, "--reasons", is_flag=True, help="Why the others are not realisable, each with a run.")
@option(
    OUTPUT, "--plot", type=names.FILE, help="Draw memory against communication: .svg, .png or .pdf."
)
@FORM
def space(
    devices: str,
    policy: str,
    accumulate: str,
    every: bool,
    reasons: bool,
    plot: str | None,
    form: str,
) -> None:
    """The best placements of a batch axis, of all 5^4, and where the named strategies stand.

    A placement is better than another if it is nowhere worse and somewhere better: in bytes that rest
    on a device, bytes that it sends in a step, and bytes over its host link. Host memory and what
    passes through a device for a while are not compared, so a strategy that holds gathered parameters
    from forward to backward may be better than all 5^4, which release them after each use.
    """
    from psem_model.reading import words
    from psem_model.space.placements import Space

    found = Space(
        words.count("--devices", devices, "devices", least=2),
        words.policy(policy),
        words.count("--accumulate", accumulate, "micro-steps"),
    )
    if plot is not None:
        from psem_model.space.plot import draw

        draw(found, plot)
    ended(found.report(every, reasons), form)
