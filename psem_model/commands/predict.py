"""`psem predict`."""

from __future__ import annotations

import sys
from typing import Any

import click

from psem_model.commands.options import (
    ACCUMULATE,
    DEVICES,
    FORM,
    HOLD,
    MODEL,
    PADDING,
    PLACEMENT,
    POLICY,
    PSI,
    REJECTED,
    STRATEGY,
    UNIT,
    options,
)
from psem_model.commands.output import ended, written


@click.command()
@options(STRATEGY, PLACEMENT, HOLD, PSI, DEVICES, POLICY, ACCUMULATE, UNIT, *MODEL, PADDING, FORM)
def predict(form: str, exact: bool, **given: Any) -> None:
    """What a STRATEGY (or a placement) needs in memory and moves, per device.

    Of the training states: dp, zero1, zero2, zero3, fsdp, fsdp-hold, hsdp, zero-offload,
    fused-update. Of the model, whose shape must be given: tp, tp+sp, pp, cp, cp-all-to-all, ep. And
    products: "zero1(dp=16) * tp(8) * pp(4)", or "zero1*tp*pp" with --devices 16x8x4.

    \b
      psem predict zero3 --psi 70e9 --devices 64 --unit 1e9
    """
    from psem_model.check.placements import NotRealisable
    from psem_model.commands.options import asked
    from psem_model.predict.plans import read
    from psem_model.predict.report import predicted

    plan = read(asked("predict", given, divisible=not exact))
    try:
        report = predicted(plan)
    except NotRealisable as error:
        if form == "json":
            click.echo(written(error.report("predict"), form), nl=False)
        for line in error.lines():
            click.echo(f"psem: {line}", err=True)
        sys.exit(REJECTED)
    ended(report, form)
