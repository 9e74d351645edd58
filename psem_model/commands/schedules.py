"""The commands for schedules: derive one, check one that was written, simulate one."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any, NoReturn

import click

from psem_model.commands.options import (
    ACCUMULATE,
    BLOCK,
    CONFIG,
    DEVICES,
    DEVICES_TO_CHECK,
    HOLD,
    JSON,
    MODEL,
    PLACEMENT,
    POLICY,
    PROGRAM,
    PSI,
    REJECTED,
    SCHEDULE,
    STRATEGY,
    UNIT,
    bar,
    options,
    refuse,
    require_few,
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

    Of a strategy that cuts the model (tp, tp+sp, cp, cp-all-to-all, ep, products such as "cp*tp"):
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
    from psem_model.reading import plans as model_inputs
    from psem_model.reading.products import parsed

    if language:
        from psem_model.reading.language import language as lines

        refuse(("strategy", "placement", "hold", *program), "with --language", "--language alone")
        click.echo("\n".join(lines()))
        return
    found = parsed(strategy)
    if found is not None and not found.is_of_states and placement is None:
        from psem_model.predict.programs import program as lines_of

        click.echo("\n".join(lines_of(found, hold, **program)))
        return
    from psem_model.reading.schedules import dumps
    from spec.derive import derive as derived

    placed, name = model_inputs.placed("derive", found, strategy, placement, hold)
    refuse(program, f"with {strategy or '--placement'}", "a strategy that cuts the model, such as tp")
    click.echo(dumps(derived(placed), name), nl=False)


def is_file(text: str) -> bool:
    """Whether it names a file, rather than a strategy or a product of strategies."""
    from psem_model.reading.products import NAMES

    of_a_file = os.path.exists(text) or os.sep in text or text.endswith(".toml")
    return of_a_file and text not in NAMES


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
    from psem_model.check.products import check_product
    from psem_model.predict.programs import shape
    from psem_model.reading import inputs
    from psem_model.reading import plans as model_inputs
    from psem_model.reading.products import parse

    try:
        found = parse(text)
    except inputs.BadInput as error:
        or_a_file = "; or a file, but there is none of this name" if text.isidentifier() else ""
        raise inputs.BadInput(f"{error}{or_a_file}") from None
    given = devices is not None or found.sizes
    sizes = model_inputs.mesh(found, devices) if given else None
    kind = block
    if config is None:
        model = shape(block, any("e" in axis.weights for axis in found.product.cuts))
    else:
        refuse(["block"], "with --config", "one of the two")
        from psem_model.reading.configurations import read

        kind, model = read(config)
        if sizes is not None:
            model_inputs.require_cut(found, sizes, model)
    model_inputs.require_experts(found, model.experts)
    checked = check_product(
        found,
        model,
        sizes,
        None if accumulate is None else inputs.count("--accumulate", accumulate, "micro-steps"),
        inputs.policy(policy),
        bar("checking"),
    )
    checked = replace(checked, layers=kind, experts=bool(model.experts))
    lines = checked.lines()
    if config is None:
        of = f"{kind} layers{' with experts' if model.experts else ''}"
        lines[0] += f", for {of} that it cuts evenly (see --block, --config)"
    click.echo(json.dumps(checked.json(), indent=2) if as_json else "\n".join(lines))
    sys.exit(0 if checked.accepted else REJECTED)


@click.command()
@click.argument("file", metavar="FILE|STRATEGY")
@DEVICES_TO_CHECK
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
    from psem_model.check.schedules import check_file
    from psem_model.reading import inputs

    if not is_file(file):
        check_a_product(file, devices, accumulate, policy, config, block, as_json)
    refuse(["config", "block"], "with a file", "it with a strategy, such as tp(8)")
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
@SCHEDULE
@click.option("--psi", help=PSI)
@click.option("--mlp", metavar="LAYERSxWIDTH", help="In place of --psi: a perceptron, a layer a unit.")
@DEVICES
@click.option("--steps", default="1", show_default=True, help="Training steps.")
@options(ACCUMULATE, UNIT, POLICY)
@click.option(
    "--arithmetic",
    default="modular",
    show_default=True,
    help="modular (exact and fast), exact (fractions; not of a model's shape) or float64.",
)
@click.option("--seed", default="0", show_default=True, help="Of the model and its data.")
@options(*MODEL, JSON)
def simulate(
    strategy: str | None,
    placement: str | None,
    hold: bool,
    schedule: str | None,
    psi: str | None,
    mlp: str | None,
    devices: str | None,
    steps: str,
    accumulate: str,
    unit: str | None,
    policy: str,
    arithmetic: str,
    seed: str,
    as_json: bool,
    **model: Any,
) -> None:
    """Run a STRATEGY, a placement or a schedule in a file on simulated devices.

    What each device holds and sends is counted and set beside what is predicted, and after each step
    every copy of every parameter is compared with training on a single device. Exit code: 0 if all
    of it is equal and the schedule is accepted, 1 if not: a run may match by luck.

    With a model's shape and --sequence, a transformer is trained, stage by stage; so are strategies
    that cut the model, and products with them: "zero1(2) * tp(2) * pp(2)".
    """
    from psem_model.commands import models as model_commands
    from psem_model.reading import inputs
    from psem_model.reading import plans as model_inputs
    from psem_model.reading.products import parsed
    from psem_model.reading.schedules import read
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
    found = parsed(strategy)
    if placement is None and found is not None and model_commands.is_of_model(found, model):
        refuse(["psi", "mlp"], f"with {found.text!r}", "the model's shape in its place")
        step = {"policy": policy, "accumulate": accumulate, "held": hold, "unit": unit}
        model_commands.simulate(found, devices, model, steps, arithmetic, seed, as_json, **step)
    if schedule is not None:
        name = title = schedule
        run = read(schedule)
        given = inputs.mesh(model_inputs.required(devices), run.axes)
    else:
        placed, title = model_inputs.placed("simulate", found, strategy, placement, hold)
        name = strategy or "placement"
        run = derived(placed)
        given = model_inputs.mesh_of(found, placed, devices)
    refuse(model, "where no transformer is trained", "a model's shape and --sequence, or --psi alone")

    from psem_model.measure.states import ARITHMETICS, Inputs, layer_size, mlp_of, simulated

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
    require_few(asked.passes)
    with ticker("simulating", asked.passes) as progress:
        ran = simulated(name, title, asked, progress)
    click.echo(json.dumps(ran.json(), indent=2) if as_json else "\n".join(ran.lines()))
    sys.exit(0 if ran.as_predicted else REJECTED)
