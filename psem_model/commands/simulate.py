"""`psem simulate`."""

from __future__ import annotations

from typing import Any

import click

from psem_model.commands.options import (
    ACCUMULATE,
    DEVICES,
    FORM,
    HOLD,
    MODEL,
    PLACEMENT,
    POLICY,
    PSI,
    SCHEDULE,
    STRATEGY,
    UNIT,
    options,
    ticker,
)
from psem_model.commands.output import ended


@click.command()
@options(STRATEGY, PLACEMENT, HOLD, SCHEDULE, PSI)
@click.option("--mlp", metavar="LAYERSxWIDTH", help="In place of --psi: a perceptron, a layer a unit.")
@options(DEVICES)
@click.option("--steps", default="1", show_default=True, help="Training steps.")
@options(ACCUMULATE, UNIT, POLICY)
@click.option(
    "--arithmetic",
    default="modular",
    show_default=True,
    help="modular (exact and fast), exact (fractions; not of a model's shape) or float64.",
)
@click.option("--seed", default="0", show_default=True, help="Of the model and its data.")
@options(*MODEL, FORM)
def simulate(steps: str, arithmetic: str, seed: str, form: str, **given: Any) -> None:
    """Run a STRATEGY, a placement or a schedule in a file on simulated devices.

    What each device holds and sends is counted and set beside what is predicted, and after each step
    every copy of every parameter is compared with training on a single device. Exit code: 0 if all
    of it is equal and the schedule is accepted, 1 if not: a run may match by luck.

    With a model's shape and --sequence, a transformer is trained, stage by stage; so are strategies
    that cut the model, and products with them: "zero1(2) * tp(2) * pp(2)".

    \b
      psem simulate zero3 --psi 1001 --devices 8 --unit 100 --steps 3
    """
    from psem_model.commands.options import asked
    from psem_model.measure.report import measured, run_of, works
    from psem_model.predict.plans import read

    plan, run = read(asked("simulate", given)), run_of(steps, arithmetic, seed)
    total = works(plan, run)
    with ticker("simulating", total) as progress:
        found = measured(plan, run, progress)
    ended(found.report(), form)
