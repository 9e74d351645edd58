"""`psem space`: the space of placements of a batch axis."""

from __future__ import annotations

import click

from psem_model.commands.help import Command, option
from psem_model.commands.options import ACCUMULATE, FILE, FORM, OUTPUT, PLAN, POLICY, number, takes
from psem_model.commands.output import ended


@click.command(
    cls=Command,
    examples=[
        "psem space --devices 64",
        "psem space --reasons",
        'psem space --where "resting <= 4*Psi/N + 2*Psi, sent <= 4*Psi"',
    ],
)
@number(PLAN, "--devices", "Devices, at least 2; without, 8, and with --where every number.")
@takes(POLICY, ACCUMULATE)
@option(OUTPUT, "--all", "every", is_flag=True, help="Every class of equal cost, with its placements.")
@option(OUTPUT, "--reasons", is_flag=True, help="Why the others are not realisable, each with a run.")
@option(OUTPUT, "--plot", type=FILE, help="Draw memory against communication: .svg, .png or .pdf.")
@option(
    OUTPUT,
    "--where",
    metavar="BOUNDS",
    help='Placements within bounds on bytes: "resting <= 4*Psi/N + 2*Psi, sent <= 2*Psi".',
)
@FORM
def space(
    devices: str | None,
    policy: str,
    accumulate: str,
    every: bool,
    reasons: bool,
    plot: str | None,
    where: str | None,
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
    from psem_model.text.errors import BadInput

    found = Space(
        words.count("--devices", devices or "8", "devices", least=2),
        words.policy(policy),
        words.count("--accumulate", accumulate, "micro-steps"),
    )
    if where is not None:
        if every or reasons or plot is not None:
            raise BadInput("--where: given with --all, --reasons or --plot; expected --where alone")
        from psem_model.space.where import Asked, bounds

        ended(Asked(found, bounds(where), devices is None).report(), form)
    if plot is not None:
        from psem_model.space.plot import draw

        draw(found, plot)
    ended(found.report(every, reasons), form)
