"""`psem check`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from psem_model.commands import options
from psem_model.commands.help import Command
from psem_model.commands.output import ended

if TYPE_CHECKING:
    from psem_model.check.steps import Checked
    from psem_model.pages.runs import Played
    from psem_model.text.report import Report


@click.command(
    cls=Command,
    examples=[
        "psem check my.toml",
        'psem check "zero1(dp=16) * tp(8) * pp(4)"',
        "psem check zero2",
        "psem check my.toml --prove",
        'psem check "zero3(8)" --profile fsdp2',
    ],
)
@options.takes(
    options.FILE_OR_STRATEGY,
    options.DEVICES_TO_CHECK,
    options.ACCUMULATE_TO_CHECK,
    options.POLICY_TO_CHECK,
    options.PROFILE_TO_CHECK,
    options.PROVE,
    *options.MODEL_SHAPE,
    options.FORM,
    options.HTML,
)
def check(prove: bool, form: str, html: str | None, **given: Any) -> None:
    """Check the schedule in FILE: does it do what a single device does, whatever model and data?

    `psem derive` writes such files. A rejection names the line that is wrong and a repair, what the
    operation whose need is not met has and needs, and shows a small run that diverges. It is checked
    for every number of devices and of micro-steps, and every optimizer: its state has a copy of the
    weights, or other state, or nothing. Exit code: 0 accepted, 1 rejected; without --bytes, for an
    optimizer with a copy of the weights, and what is found for the others is told. With --prove it
    is 1, too, where there is no proof, and it says of what: of statistics, of shifts, of norms and
    divided gradients that are used otherwise than by updates, of sums of what devices have alike.

    In place of a file, a strategy or a product of strategies: "zero1(dp=16) * tp(8) * pp(4)". Then the
    programs of a transformer are checked (of --config, of a shape, or of a kind of layer: --block,
    --experts), the stages, and the schedule of every weight.
    """
    from psem_model.predict.verdicts import verdict

    found = verdict(**given)
    runs = () if html is None else _runs(found)
    ended(reported(found, prove), form, html, runs)


def reported(found: Checked, prove: bool) -> Report:
    """The report on what was found; if it is accepted, with a proof where one is asked for."""
    report = found.report()
    if not (prove and found.accepted):
        return report
    from psem_model.audit.schedules import proof_of

    proof = proof_of([each.schedule for each in found.groups])
    data = {**report.data, "proof": proof.data()}
    facts = (*report.facts, f"{found.proof_is_of}{proof.words}")
    return replace(report, facts=facts, data=data, right=report.right and not proof.why_not)


def _runs(found: Checked) -> list[Played]:
    """The runs that show why schedules are rejected, line by line, as far as there are any."""
    from psem_model.pages.runs import played

    return [
        played(f"run-{number}", found.text, each, each.run)
        for number, each in enumerate(found.groups, 1)
        if each.run is not None
    ]
