"""The commands for schedules: derive one, check one that was written, simulate one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from psem_model.options import (
    ACCUMULATE,
    BLOCK,
    CONFIG,
    DEVICES,
    HOLD,
    JSON,
    PLACEMENT,
    POLICY,
    PROGRAM,
    PSI,
    REJECTED,
    STRATEGY,
    UNIT,
    bar,
    options,
    ticker,
)


@click.command()
@options(STRATEGY, PLACEMENT, HOLD)
@click.option(
    "--language", is_flag=True, help="Print what a schedule may say: every table, key and operation."
)
@options(*PROGRAM)
def derive(
    strategy: str | None, placement: str | None, hold: bool, language: bool, **program: Any
) -> None:
    """Print the schedule of a STRATEGY (or a placement) as TOML, to read, to change and to check.

    Of a strategy that cuts the model (tp, tp+sp, cp, cp-all-to-all, ep, products such as "dp*tp"):
    the program of one layer, how each value lies, and the collectives that follow.

    \b
      psem derive zero2 > my.toml
      psem check my.toml
      psem derive --language

    \b
    Tables
      axes        the mesh's axes: axes = ["batch"]
      [training]  what a single device does: loss, clip, tied, statistics; may be left out
      [rest]      where each state is between steps: sharded, stored, host; may be left out
      [step]      micro_step = [...] once for each micro-batch, finish = [...] once;
                  finish may be left out

    \b
    Keys of an operation, which is a table on a line of its own
      op, source  what it does, and the buffer it reads
      into        the buffer it writes; left out: in place
      by          what it scales, divides or clips by
      axes        the axes it acts along; for backward and count, along which each
                  device has the samples of the whole group
      within      the axes along which a device has only its slice
      span        room for its result: "nothing", "unit" or "whole"
      phase       forward, backward, reduce, update or publish
      mean        a reduction divides the sum by the number of devices
      shift       a device takes the slice of the one that many places further on

    `psem derive --language` has all of it: what each operation does, reads and writes, and what each
    key is where it is left out.
    """
    from psem_model import inputs

    if language:
        from psem_model.language import language as lines

        if strategy is not None or placement is not None or hold:
            raise inputs.BadInput("--language: given with something to derive; expected it alone")
        click.echo("\n".join(lines()))
        return
    from psem_model.expressions import parsed

    found = parsed(strategy)
    if found is not None and not found.is_of_states:
        from psem_model.model_derive import program as lines_of

        if placement is not None or hold:
            raise inputs.BadInput(f"--placement, --hold: given with {strategy}; expected it alone")
        click.echo("\n".join(lines_of(found, **program)))
        return
    from psem_model.schedules import dumps
    from spec.derive import derive as derived
    from spec.strategies import STRATEGIES

    if found is not None and found.text not in STRATEGIES and placement is None:
        placed, name = found.product.states, found.text
    else:
        placed, name = inputs.chosen("derive", strategy, placement, hold)
    click.echo(dumps(derived(placed), name), nl=False)


def looks_like_a_product(text: str) -> bool:
    """Whether it is a strategy or a product of strategies, rather than a file's name."""
    from psem_model.expressions import NAMES

    return not Path(text).exists() and (text in NAMES or "*" in text or "(" in text)


def check_a_product(
    text: str,
    devices: str | None,
    accumulate: str | None,
    policy: str,
    config: str | None,
    block: str,
    as_json: bool,
) -> NoReturn:
    """Check a product of strategies, and exit."""
    from psem_model import inputs, model_inputs
    from psem_model.expressions import parse
    from psem_model.model_derive import shape
    from psem_model.product_check import check_product

    found = parse(text)
    given = devices is not None or found.sizes
    sizes = model_inputs.mesh(found, devices) if given else None
    experts = any("e" in axis.weights for axis in found.product.cuts)
    if config is None:
        model = shape(block, experts)
    else:
        from psem_model.configurations import read

        model = read(config)[1]
    checked = check_product(
        found,
        model,
        sizes,
        None if accumulate is None else inputs.count("--accumulate", accumulate, "micro-steps"),
        inputs.policy(policy),
        bar("checking"),
    )
    click.echo(json.dumps(checked.json(), indent=2) if as_json else "\n".join(checked.lines()))
    sys.exit(0 if checked.accepted else REJECTED)


@click.command()
@click.argument("file", metavar="FILE|STRATEGY")
@click.option(
    "--devices",
    help="Devices, such as 4; 2x4 for two axes. Default: 1, 2, 3 and many, along each axis.",
)
@click.option("--accumulate", help="Micro-steps per step. Default: 1, 2 and 3.")
@options(POLICY, CONFIG, BLOCK, JSON)
def check(
    file: str,
    devices: str | None,
    accumulate: str | None,
    policy: str,
    config: str | None,
    block: str,
    as_json: bool,
) -> None:
    """Check the schedule in FILE: does it do what a single device does, whatever model and data?

    `psem derive` writes such files. A rejection names the line of the operation that is wrong, what
    it has and what it needs, and shows a small run that diverges. Exit code: 0 accepted, 1 rejected.

    In place of a file, a strategy or a product of strategies: "zero1(dp=16) * tp(8) * pp(4)". Then the
    programs of a transformer are checked (of --config, or --block), the stages, and the schedule of
    every weight.
    """
    from psem_model import inputs
    from psem_model.checking import check_file

    if looks_like_a_product(file):
        check_a_product(file, devices, accumulate, policy, config, block, as_json)
    if config is not None:
        raise inputs.BadInput("--config: given with a file; expected it with a strategy, such as tp(8)")
    found = check_file(
        file,
        None if devices is None else lambda axes: inputs.mesh(devices, axes),
        None if accumulate is None else inputs.count("--accumulate", accumulate, "micro-steps"),
        inputs.policy(policy),
        bar("checking"),
    )
    click.echo(json.dumps(found.json(), indent=2) if as_json else "\n".join(found.lines()))
    sys.exit(0 if found.verdict.accepted else REJECTED)


@click.command()
@options(STRATEGY, PLACEMENT, HOLD)
@click.option("--schedule", metavar="FILE", help="A schedule in TOML, as psem derive prints one.")
@click.option("--psi", help=PSI)
@click.option("--mlp", metavar="LAYERSxWIDTH", help="In place of --psi: a perceptron, a layer a unit.")
@DEVICES
@click.option("--steps", default="1", show_default=True, help="Training steps.")
@options(ACCUMULATE, UNIT, POLICY)
@click.option(
    "--arithmetic",
    default="modular",
    show_default=True,
    help="modular (exact and fast), exact (fractions) or float64.",
)
@click.option("--seed", default="0", show_default=True, help="Of the model and its data.")
@JSON
def simulate(
    strategy: str | None,
    placement: str | None,
    hold: bool,
    schedule: str | None,
    psi: str | None,
    mlp: str | None,
    devices: str,
    steps: str,
    accumulate: str,
    unit: str | None,
    policy: str,
    arithmetic: str,
    seed: str,
    as_json: bool,
) -> None:
    """Run a STRATEGY, a placement or a schedule in a file on simulated devices.

    What each device holds and sends is counted and set beside what is predicted, and after each step
    every copy of every parameter is compared with training on a single device. Exit code: 0 if all
    of it is equal, 1 if not.
    """
    from psem_model import inputs
    from psem_model.schedules import read
    from spec.derive import derive as derived

    if schedule is None and strategy is None and placement is None:
        raise inputs.BadInput(
            "simulate: expected a strategy, --placement or --schedule; nearest: simulate zero3"
        )
    if schedule is not None and (strategy is not None or placement is not None or hold):
        raise inputs.BadInput(
            "simulate: expected a strategy, --placement or --schedule, one of the three; "
            "nearest: --schedule alone"
        )
    if schedule is not None:
        name = title = schedule
        run = read(schedule)
    else:
        placed, title = inputs.chosen("simulate", strategy, placement, hold)
        name = strategy or "placement"
        run = derived(placed)
    given = inputs.mesh(devices, run.axes)

    from psem_model.simulation import ARITHMETICS, Inputs, layer_size, mlp_of, simulated

    if (psi is None) == (mlp is None):
        raise inputs.BadInput("simulate: expected --psi or --mlp, one of the two; nearest: --psi 1000")
    shape = None if mlp is None else mlp_of(mlp)
    if shape is not None:
        if unit is not None:
            raise inputs.BadInput("--unit: given with --mlp; expected no unit: it is a layer")
        size, units = shape[0] * layer_size(shape[1]), layer_size(shape[1])
    else:
        size = inputs.count("--psi", psi or "", "parameters")
        units = size if unit is None else min(size, inputs.count("--unit", unit, "elements"))
    asked = Inputs(
        run,
        given,
        size,
        inputs.count("--steps", steps, "steps"),
        inputs.count("--accumulate", accumulate, "micro-steps"),
        units,
        inputs.policy(policy),
        inputs.choose("--arithmetic", arithmetic, ARITHMETICS),
        inputs.count("--seed", seed, "", least=0),
        shape,
    )
    asked.require_room()
    with ticker("simulating", asked.passes) as progress:
        found = simulated(name, title, asked, progress)
    click.echo(json.dumps(found.json(), indent=2) if as_json else "\n".join(found.lines()))
    sys.exit(0 if found.as_predicted else REJECTED)
