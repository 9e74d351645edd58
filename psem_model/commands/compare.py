"""`psem compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from psem_model.commands import options
from psem_model.commands.help import Command
from psem_model.commands.output import ended
from psem_model.text.report import Report


@click.command(
    cls=Command,
    examples=[
        'psem compare "zero1(64)" "zero3(64)" --psi 7e9',
        'psem compare "zero1(64)" "zero1(8) * tp(8)" --config llama-2-7b --sequence 4096',
        'psem compare "zero3(64)" my.toml --devices 64 --psi 7e9',
    ],
)
@options.takes(
    options.STRATEGIES,
    options.PSI,
    options.DEVICES,
    *options.TYPES,
    options.ACCUMULATE_EACH,
    options.GLOBAL_BATCH,
    options.UNIT,
    options.HELD,
    *options.MODEL,
    options.MEMORY,
    options.FORM,
    options.HTML,
)
def compare(form: str, html: str | None, **given: Any) -> None:
    """Set two or more plans side by side: memory, what is sent along each axis, verdict.

    Strategies, products of them, or files of schedules and of models' steps (.toml). With a model's
    shape and --sequence, activations too, and strategies that cut the model. Memory is per device, and
    what is sent per device and step: of a pipeline's fullest and of its busiest stage. Exit code: 0 if
    all are accepted, 1 if one is rejected.
    """
    ended(report_of(**given), form, html)


def report_of(
    strategies: Sequence[str], global_batch: str | None, memory: str | None, **given: Any
) -> Report:
    """The report, from what was typed. Raises BadInput."""
    from psem_model.predict.asked import asked
    from psem_model.predict.compare import report
    from psem_model.predict.fits import room
    from psem_model.predict.read import read_several

    of = room(memory)
    return report(read_several(asked("compare", given), strategies, global_batch), of)
