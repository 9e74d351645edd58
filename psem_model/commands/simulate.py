"""`psem simulate`."""

from __future__ import annotations

from typing import Any

import click

from psem_model.commands import options
from psem_model.commands.help import Command, Word, option
from psem_model.commands.output import ended
from psem_model.text.progress import ticker
from psem_model.text.report import Report


@click.command(
    cls=Command,
    examples=[
        "psem simulate zero3 --psi 1000 --devices 4",
        "psem simulate --schedule my.toml --devices 4 --psi 1000",
        'psem simulate "zero1(2) * tp(2)" --layers 2 --hidden 16 --heads 4 --vocabulary 8 --sequence 4',
    ],
)
@options.takes(
    options.STRATEGY_OR_FILE,
    options.PLACEMENT,
    options.HOLD,
    options.SCHEDULE,
    options.DEVICES,
    options.PSI,
    options.MLP,
    *options.MODEL,
    *options.TYPES,
    options.ACCUMULATE,
    options.UNIT,
)
@options.number(options.RUN, "--steps", "Training steps.", default="1")
@option(
    options.RUN,
    "--arithmetic",
    type=Word("arithmetic", "psem_model.measure.measured:ARITHMETICS", only=True),
    default="modular",
    help="Modular is exact and fast; exact, fractions, is not of a model's shape.",
)
@options.number(options.RUN, "--seed", "Of the model and its data.", default="0")
@options.FORM
def simulate(form: str, **given: Any) -> None:
    """Run a STRATEGY, a placement or a schedule in a file on simulated devices.

    What each device holds and sends is counted and set beside what is predicted, and after each step
    every copy of every parameter is compared with training on a single device. Exit code: 0 if all
    of it is equal and the schedule is accepted, 1 if not: a run may match by luck.

    With a model's shape and --sequence, a transformer is trained, stage by stage; so are strategies
    that cut the model, and products with them: "zero1(2) * tp(2) * pp(2)".
    """
    ended(report_of(**given), form)


def report_of(steps: str, arithmetic: str, seed: str, **given: Any) -> Report:
    """The report, from what was typed. Raises BadInput."""
    from psem_model.measure.simulated import measured, run_of, works
    from psem_model.predict.asked import asked
    from psem_model.predict.read import read

    plan, run = read(asked("simulate", given)), run_of(steps, arithmetic, seed)
    with ticker("simulating", works(plan, run)) as progress:
        return measured(plan, run, progress).report()
