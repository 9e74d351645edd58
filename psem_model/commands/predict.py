"""`psem predict`."""

from __future__ import annotations

import sys
from typing import Any

import click

from psem_model.commands import options
from psem_model.commands.help import Command
from psem_model.commands.output import ended, written
from psem_model.text.errors import REJECTED
from psem_model.text.report import Report


@click.command(
    cls=Command,
    examples=[
        "psem predict zero3 --psi 70B --devices 64 --unit 1B",
        'psem predict "zero1(dp=16) * tp(8)" --config llama-3-70b --sequence 8192',
        "psem predict zero3 --config llama-3-70b --sequence 8192 --devices 64 --memory 80GB",
        "psem predict --schedule my.toml --psi 70B --devices 64",
    ],
)
@options.takes(
    options.STRATEGY_OR_FILE,
    options.PLACEMENT,
    options.HOLD,
    options.SCHEDULE,
    options.PSI,
    options.DEVICES,
    *options.TYPES,
    options.ACCUMULATE_OR_BATCH,
    options.GLOBAL_BATCH,
    options.UNIT,
    *options.MODEL,
    options.STAGE,
    options.MEMORY,
    options.EXACT,
    options.FORM,
    options.HTML,
)
def predict(form: str, html: str | None, **given: Any) -> None:
    """What a STRATEGY, a placement or a step in a file needs in memory and moves, per device.

    Of the training states: dp, zero1, zero2, zero3, fsdp, fsdp-hold, hsdp, zero-offload,
    fused-update, and fsdp-offload, hsdp-hold, hsdp-offload and the like. Of the model, whose shape
    must be given: tp, tp+sp, pp, cp, cp-all-gather, cp-all-to-all, ep. And products: "zero1(dp=16)
    * tp(8) * pp(4)", or "zero1*tp*pp" with --devices 16x8x4. In a product "zero1+all(8) * cp(4)"
    shards over both axes: over every axis that gradients are summed over.
    """
    from psem_model.check.placements import NotRealisable

    try:
        report = report_of(**given)
    except NotRealisable as error:
        if form == "json":
            click.echo(written(error.report("predict"), form), nl=False)
        for line in error.lines():
            click.echo(f"psem: {line}", err=True)
        sys.exit(REJECTED)
    ended(report, form, html)


def report_of(
    memory: str | None, exact: bool, global_batch: str | None, stage: str | None, **given: Any
) -> Report:
    """The report, from what was typed. Raises BadInput and NotRealisable."""
    from psem_model.predict.asked import asked
    from psem_model.predict.fits import room
    from psem_model.predict.read import read
    from psem_model.predict.report import predicted, telling

    of = room(memory)
    plan = read(asked("predict", given, divisible=not exact), global_batch)
    return predicted(telling(plan, stage), of)
