"""`psem check`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from psem_model.commands.help import Command
from psem_model.commands.options import (
    ACCUMULATE_TO_CHECK,
    DEVICES_TO_CHECK,
    FILE_OR_STRATEGY,
    FORM,
    HTML,
    MODEL_SHAPE,
    POLICY_TO_CHECK,
    PROVE,
    options,
)
from psem_model.commands.output import ended

if TYPE_CHECKING:
    from psem_model.check.products import CheckedStep
    from psem_model.check.schedules import Checked
    from psem_model.pages.runs import Played
    from psem_model.text.report import Report


@click.command(
    cls=Command,
    examples=[
        "psem check my.toml",
        'psem check "zero1(dp=16) * tp(8) * pp(4)"',
        "psem check zero2",
        "psem check my.toml --prove",
    ],
)
@options(
    FILE_OR_STRATEGY,
    DEVICES_TO_CHECK,
    ACCUMULATE_TO_CHECK,
    POLICY_TO_CHECK,
    PROVE,
    *MODEL_SHAPE,
    FORM,
    HTML,
)
def check(
    file: str,
    devices: str | None,
    accumulate: str | None,
    policy: str | None,
    prove: bool,
    form: str,
    html: str | None,
    **shape: Any,
) -> None:
    """Check the schedule in FILE: does it do what a single device does, whatever model and data?

    `psem derive` writes such files. A rejection names the line that is wrong and a repair, what the
    operation whose need is not met has and needs, and shows a small run that diverges. It is checked
    for every number of devices and of micro-steps, and every optimizer: its state has a copy of the
    weights, or other state, or nothing. Exit code: 0 accepted, 1 rejected; without --bytes, for an
    optimizer with a copy of the weights, and what is found for the others is told.

    In place of a file, a strategy or a product of strategies: "zero1(dp=16) * tp(8) * pp(4)". Then the
    programs of a transformer are checked (of --config, of a shape, or of a kind of layer: --block,
    --experts), the stages, and the schedule of every weight.
    """
    found = verdict(file, devices, accumulate, policy, shape)
    report = _proved(found) if prove and found.accepted else found.report()
    ended(report, form, html, () if html is None else _runs(found))


def verdict(
    file: str,
    devices: str | None,
    accumulate: str | None,
    policy: str | None,
    shape: Mapping[str, str | bool | None],
) -> Checked | CheckedStep:
    """The verdict on a schedule or a model's step in a file, or on a strategy. Raises BadInput."""
    from psem_model.check.files import check_file
    from psem_model.predict.asked import Asked
    from psem_model.predict.checked import check_strategy
    from psem_model.reading import words

    asked = Asked("check", file, devices=devices, model=shape)
    steps = None if accumulate is None else words.count("--accumulate", accumulate, "micro-steps")
    kind = None if policy is None else words.policy(policy)
    if not is_file(file):
        return check_strategy(asked, file, steps, kind)
    asked.refuse(shape, "with a file", "it with a strategy, such as tp(8)")
    of_axes = None if devices is None else lambda axes: words.mesh(devices, axes)
    return check_file(file, of_axes, steps, kind)


def _proved(found: Checked | CheckedStep) -> Report:
    """The report on an accepted schedule, or on those of weights, and whether there is a proof."""
    from psem_model.audit.schedules import proof_of
    from psem_model.check.schedules import Checked

    report = found.report()
    if isinstance(found, Checked):
        proof = proof_of([found.schedule])
        words = proof.words
    else:
        proof = proof_of([each.checked.schedule for each in found.weights])
        words = f"schedules of weights: {proof.words}"
    data = {**report.data, "proof": proof.data()}
    return replace(report, facts=(*report.facts, words), data=data)


def _runs(found: Checked | CheckedStep) -> tuple[Played, ...]:
    """The run that shows why a schedule is rejected, line by line, if there is one."""
    from psem_model.check.schedules import Checked
    from psem_model.pages.runs import played

    if not isinstance(found, Checked) or found.run is None:
        return ()
    return (played("run", found, found.run),)


def is_file(text: str) -> bool:
    """Whether it names a file, rather than a strategy or a product of strategies."""
    from psem_model.reading.products import NAMES

    of_a_file = os.path.exists(text) or os.sep in text or text.endswith(".toml")
    return of_a_file and text not in NAMES
