"""The commands for schedules: derive one, check one that was written, simulate one."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any, NoReturn

import click

from psem_model.commands import names
from psem_model.commands.help import Command, option
from psem_model.commands.options import (
    ACCUMULATE,
    ACCUMULATE_TO_CHECK,
    BLOCK,
    CONFIG,
    DEVICES,
    DEVICES_TO_CHECK,
    FILE_OR_STRATEGY,
    HOLD,
    JSON,
    MLP,
    MODEL,
    OUTPUT,
    PLACEMENT,
    POLICY,
    PROGRAM,
    PSI,
    RUN,
    SCHEDULE,
    STRATEGY,
    UNIT,
    bar,
    options,
    refuse,
    require_few,
    ticker,
)
from psem_model.text.errors import REJECTED, BadInput, choose, quoted


@click.command(
    cls=Command,
    examples=["psem derive zero2 > my.toml", "psem derive --language", 'psem derive "cp * tp" --moves'],
)
@options(STRATEGY, PLACEMENT, HOLD)
@option(
    OUTPUT,
    "--language",
    is_flag=True,
    help="Print what a schedule may say: every table, key and operation.",
)
@options(*PROGRAM)
def derive(
    strategy: str | None, placement: str | None, hold: bool, language: bool, **program: Any
) -> None:
    """Print the schedule of a STRATEGY (or a placement) as TOML, to read, to change and to check.

    Of a strategy that cuts the model (tp, tp+sp, cp, cp-all-to-all, ep, products such as "cp*tp"):
    the program of one layer, how each value lies, and the collectives that follow.

    `psem check FILE` checks a schedule that was changed, and `psem derive --language` prints the
    language: what each operation does, reads and writes, and what each key is where it is left out.
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
    from psem_model.reading import plans as model_inputs
    from psem_model.reading import words
    from psem_model.reading.products import parse

    try:
        found = parse(text)
    except BadInput as error:
        or_a_file = "; or a file, but there is none of this name" if text.isidentifier() else ""
        raise BadInput(f"{error}{or_a_file}") from None
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
        None if accumulate is None else words.count("--accumulate", accumulate, "micro-steps"),
        words.policy(policy),
        bar("checking"),
    )
    checked = replace(checked, layers=kind, experts=bool(model.experts))
    lines = checked.lines()
    if config is None:
        of = f"{kind} layers{' with experts' if model.experts else ''}"
        lines[0] += f", for {of} that it cuts evenly (see --block, --config)"
    click.echo(json.dumps(checked.json(), indent=2) if as_json else "\n".join(lines))
    sys.exit(0 if checked.accepted else REJECTED)


@click.command(
    cls=Command,
    examples=["psem check my.toml", 'psem check "zero1(dp=16) * tp(8) * pp(4)"', "psem check zero2"],
)
@options(FILE_OR_STRATEGY, DEVICES_TO_CHECK, CONFIG, BLOCK, POLICY, ACCUMULATE_TO_CHECK, JSON)
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
    from psem_model.reading import words

    if not is_file(file):
        check_a_product(file, devices, accumulate, policy, config, block, as_json)
    refuse(["config", "block"], "with a file", "it with a strategy, such as tp(8)")
    found = check_file(
        file,
        None if devices is None else lambda axes: words.mesh(devices, axes),
        None if accumulate is None else words.count("--accumulate", accumulate, "micro-steps"),
        words.policy(policy),
        bar("checking"),
    )
    click.echo(json.dumps(found.json(), indent=2) if as_json else "\n".join(found.lines()))
    sys.exit(0 if found.verdict.accepted else REJECTED)


@click.command(
    cls=Command,
    examples=[
        "psem simulate zero3 --psi 1000 --devices 4",
        "psem simulate --schedule my.toml --devices 4 --psi 1000",
        'psem simulate "zero1(2) * tp(2)" --layers 2 --hidden 16 --heads 4 --vocabulary 8 --sequence 4',
    ],
)
@options(STRATEGY, PLACEMENT, HOLD, SCHEDULE, DEVICES, PSI, MLP, *MODEL, POLICY, ACCUMULATE, UNIT)
@option(RUN, "--steps", type=names.NUMBER, default="1", show_default=True, help="Training steps.")
@option(
    RUN,
    "--arithmetic",
    type=names.ARITHMETIC,
    default="modular",
    show_default=True,
    help="Modular is exact and fast; exact, fractions, is not of a model's shape.",
)
@option(
    RUN,
    "--seed",
    type=names.NUMBER,
    default="0",
    show_default=True,
    help="Of the model and its data.",
)
@JSON
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
    from psem_model.reading import plans as model_inputs
    from psem_model.reading import words
    from psem_model.reading.products import parsed
    from psem_model.reading.schedules import read
    from spec.derive import derive as derived

    if schedule is None and strategy is None and placement is None:
        raise BadInput(
            "simulate: expected a strategy, --placement or --schedule; nearest: simulate zero3"
        )
    if schedule is not None and (strategy is not None or placement is not None or hold):
        raise BadInput(
            "simulate: expected a strategy, --placement or --schedule, one of the three; "
            "nearest: --schedule alone"
        )
    found = parsed(strategy)
    if placement is None and found is not None and model_commands.is_of_model(found, model):
        refuse(["psi", "mlp"], f"with {quoted(found.text)}", "the model's shape in its place")
        step = {"policy": policy, "accumulate": accumulate, "held": hold, "unit": unit}
        model_commands.simulate(found, devices, model, steps, arithmetic, seed, as_json, **step)
    if schedule is not None:
        name = title = schedule
        run = read(schedule)
        given = words.mesh(model_inputs.required(devices), run.axes)
    else:
        placed, title = model_inputs.placed("simulate", found, strategy, placement, hold)
        name = strategy or "placement"
        run = derived(placed)
        given = model_inputs.mesh_of(found, placed, devices)
    refuse(model, "where no transformer is trained", "a model's shape and --sequence, or --psi alone")

    from psem_model.measure.states import ARITHMETICS, Inputs, layer_size, mlp_of, simulated

    if (psi is None) == (mlp is None):
        raise BadInput("simulate: expected --psi or --mlp, one of the two; nearest: --psi 1000")
    shape = None if mlp is None else mlp_of(mlp)
    if shape is not None:
        if unit is not None:
            raise BadInput("--unit: given with --mlp; expected no unit: it is a layer")
        size, units = shape[0] * layer_size(shape[1]), layer_size(shape[1])
    else:
        size = words.parameters("--psi", psi or "")
        units = size if unit is None else min(size, words.parameters("--unit", unit, "elements"))
    asked = Inputs(
        run,
        given,
        size,
        words.count("--steps", steps, "steps"),
        words.count("--accumulate", accumulate, "micro-steps"),
        units,
        words.policy(policy),
        choose("--arithmetic", arithmetic, ARITHMETICS),
        words.count("--seed", seed, "", least=0),
        shape,
    )
    asked.require_room()
    require_few(asked.passes)
    with ticker("simulating", asked.passes) as progress:
        ran = simulated(name, title, asked, progress)
    click.echo(json.dumps(ran.json(), indent=2) if as_json else "\n".join(ran.lines()))
    sys.exit(0 if ran.as_predicted else REJECTED)
