"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from psem_model.commands.help import Word, option
from psem_model.text.errors import BadInput

Function = TypeVar("Function", bound=Callable[..., None])

# what several options and arguments take
FILE = Word("FILE", file=True)
SIZES = Word("N[xN...]")
A_CLAIM = Word("CLAIM", "psem_model.reading.claims:ids")
A_POLICY = Word("POLICY|w,g,K", "spec.models.states:POLICIES")
A_FORM = Word("form", "psem_model.commands.output:FORMS", only=True)
A_STRATEGY = Word("STRATEGY", "psem_model.reading.products:NAMES")
A_FILE_OR_STRATEGY = Word("FILE|STRATEGY", "psem_model.reading.products:NAMES", file=True)

PLAN, SHAPE, STEP, RUN, OUTPUT = "Plan", "Model", "Step", "Run", "Output"  # groups of options


def number(group: str, name: str, help_: str, **settings: Any) -> Callable[[Function], Function]:
    """An option that takes a number."""
    return option(group, name, type=Word("N"), help=help_, **settings)


OF_STRATEGY = 'A strategy, or a product of strategies in quotes: "zero1(dp=16) * tp(8) * pp(4)"'
STRATEGY = click.argument("strategy", type=A_STRATEGY, required=False, help=f"{OF_STRATEGY}.")
STRATEGY_OR_FILE = click.argument(
    "strategy",
    type=A_FILE_OR_STRATEGY,
    metavar="[STRATEGY|FILE]",
    required=False,
    help=f"{OF_STRATEGY}; or the file of --schedule (.toml).",
)
STRATEGIES = click.argument(
    "strategies",
    nargs=-1,
    type=A_STRATEGY,
    metavar="STRATEGY STRATEGY ...",
    help='Strategies, or products of them in quotes: "zero1(16) * tp(8)".',
)
FILE_OR_STRATEGY = click.argument(
    "file",
    type=A_FILE_OR_STRATEGY,
    metavar="FILE|STRATEGY",
    help="A strategy, such as zero1, or a schedule in TOML, as `psem derive zero2` prints one.",
)
CLAIMS = click.argument(
    "ids",
    nargs=-1,
    type=A_CLAIM,
    metavar="[CLAIM]...",
    help="Claims, such as C1; all, if none is named.",
)
SOME_CLAIMS = click.argument(
    "ids",
    nargs=-1,
    required=True,
    type=A_CLAIM,
    metavar="CLAIM...",
    help="Claims' names, such as C1.",
)
TABLES = click.argument(
    "given",
    nargs=-1,
    type=Word("TABLE", "psem_model.tables.files:TABLES"),
    metavar="[TABLE]...",
    help="Tables' names; all names, if none.",
)

PLACEMENT = option(
    PLAN,
    "--placement",
    metavar="STATE=MODE,...",
    help='A placement: "parameters=S*, optimizer=S, gradients=S, activations=S".',
)
HOLD = option(
    PLAN,
    "--hold",
    is_flag=True,
    help="Keep for backward what is gathered: activations, or parameters of --placement.",
)
HELD = option(PLAN, "--hold", is_flag=True, help="Keep gathered activations for backward.")
OF_DEVICES = "Devices, such as 64; 8x8 for two axes."
DEVICES = option(
    PLAN,
    "--devices",
    type=SIZES,
    help=f"{OF_DEVICES} Not where the strategy says its sizes.",
)
DEVICES_TO_CHECK = option(
    PLAN,
    "--devices",
    type=SIZES,
    help="Devices, such as 4; 2x4 for two axes. Default: every number along each axis.",
)
SCHEDULE = option(
    PLAN,
    "--schedule",
    type=FILE,
    help="A schedule, or a model's step, in TOML, as psem derive prints one.",
)
PSI = option(
    SHAPE,
    "--psi",
    type=Word("PARAMETERS"),
    help="Parameters of the model, such as 7.5e9, 350M, 70B or 1.5T.",
)
MLP = option(
    SHAPE, "--mlp", type=Word("LAYERSxWIDTH"), help="In place of --psi: a perceptron, a layer a unit."
)
OF_POLICY = (
    "Bytes of a weight and of a gradient, and of optimizer state, per parameter: a named policy, "
    "such as fp32-adam, or w,g,K."
)


def bytes_(help_: str, **settings: Any) -> Callable[[Function], Function]:
    """--bytes, which commands take with another default."""
    return option(STEP, "--bytes", "policy", type=A_POLICY, help=help_, **settings)


POLICY = bytes_(OF_POLICY, default="mixed-adam")
POLICY_OF_PLAN = bytes_(f"{OF_POLICY} Default: the profile's, or mixed-adam.")
POLICY_TO_CHECK = bytes_(
    "The optimizer, by what its state has in it: a named policy, such as fp32-adam, or w,g,K. "
    "Default: the profile's, or each kind of optimizer; the exit code is then that of mixed-adam."
)


def profile(default: str) -> Callable[[Function], Function]:
    """--profile, which commands take with another default."""
    what = (
        "How a system realises the placement: textbook, another name, NAME+NAME, or a file. Default: "
    )
    type_ = Word("FILE|NAME", "psem_model.reading.profiles:packaged", file=True)
    return option(STEP, "--profile", type=type_, help=what + default)


PROFILE = profile(
    "common for a model with --sequence; else, and of a model's step in a file, textbook."
)
PROFILE_TO_CHECK = profile("textbook. What it rounds on the way is told line by line.")
TYPES = (POLICY_OF_PLAN, PROFILE)
PROVE = option(
    STEP,
    "--prove",
    is_flag=True,
    help="Of what is accepted, let z3 prove it for all sizes: seconds.",
)
ACCUMULATE = number(STEP, "--accumulate", "Micro-steps per step.", default="1")
ACCUMULATE_OR_BATCH = number(STEP, "--accumulate", "Micro-steps per step. Default: 1.")
ACCUMULATE_TO_CHECK = number(STEP, "--accumulate", "Micro-steps per step. Default: every number.")
ACCUMULATE_EACH = number(
    STEP, "--accumulate", "Micro-steps per step, of all plans or of each: 16, or 16,4. Default: 1."
)
GLOBAL_BATCH = number(
    STEP,
    "--global-batch",
    "Samples of a step on all devices; how many micro-steps each plan takes follows.",
)
UNIT = option(
    STEP,
    "--unit",
    type=Word("ELEMENTS"),
    help="Elements gathered or reduced at a time. Default: all; of a model, its largest layer.",
)
MEMORY = option(
    OUTPUT,
    "--memory",
    type=Word("BYTES"),
    help="Of a device, such as 80GB or 80GiB: what the peak leaves, or by how much it is too much.",
)
STAGE = number(
    OUTPUT,
    "--stage",
    "Of pp: the stage whose memory and traffic are told, from 0. Default: the fullest; the busiest.",
)
EXACT = option(
    OUTPUT,
    "--exact/--divisible",
    default=True,
    help="With padding, or as if N divided Psi.",
)
JSON = option(OUTPUT, "--json", "as_json", is_flag=True, help="Machine-readable output.")


def form_option(default: str, help_: str) -> Callable[[Function], Function]:
    """In which form a report is printed; the command is given `form`, the default if none was typed."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def called(*args: Any, form: str | None, as_json: bool, **given: Any) -> None:
            if as_json and form not in (None, "json"):
                raise BadInput(f"--json: given with --format {form}; expected one of the two")
            function(*args, form="json" if as_json else form or default, **given)

        typed = option(OUTPUT, "--format", "form", type=A_FORM, help=help_)
        decorated: Function = typed(JSON(called))
        return decorated

    return decorate


FORM = form_option("text", "Of the report. Default: text.")
FORM_OF_TABLES = form_option("", "Of a table. Default: markdown; with --all, every one.")

HTML = option(
    OUTPUT,
    "--html",
    type=FILE,
    help="Write a page for a browser, instead of printing the report.",
)

BLOCK = option(
    SHAPE,
    "--block",
    type=Word("block", "psem_model.reading.shapes:BLOCKS", only=True),
    help="The kind of layer. Default: gpt.",
)
RECOMPUTE = option(
    STEP,
    "--recompute",
    type=Word("what", "psem_model.predict.model_plans:RECOMPUTE", only=True),
    help="Made again for backward: none (the default), attention (or selective), all (or full), sliced "
    "(all, from what is kept in slices).",
)
CONFIG = option(
    SHAPE,
    "config",
    "--model",
    "--config",
    type=Word("FILE|NAME", "psem_model.reading.configurations:packaged", file=True),
    help="The model: a Hugging Face config.json; the name of a packaged one, such as llama-3-70b "
    "(all: psem tables models --format text); or one of your own, its forward in TOML.",
)
PROGRAM = (
    option(
        SHAPE,
        "--part",
        type=Word("part", "psem_model.predict.programs:PARTS"),
        help="A part's program as a table. With --moves, default: layer.",
    ),
    CONFIG,
    BLOCK,
    option(SHAPE, "--experts", is_flag=True, help="With experts in place of one MLP."),
    RECOMPUTE,
    option(OUTPUT, "--moves", is_flag=True, help="Only the collectives."),
)


MODEL_SHAPE = (
    CONFIG,
    number(SHAPE, "--layers", "Layers of the model, where there is no --config."),
    number(SHAPE, "--hidden", "Features of a token between layers."),
    number(SHAPE, "--heads", "Heads of attention."),
    number(SHAPE, "--kv-heads", "Heads of keys and values. Default: as many as heads."),
    number(SHAPE, "--head-dim", "Features of a head. Default: hidden / heads."),
    number(SHAPE, "--feed-forward", "Features inside the MLP. Default: 4 x hidden."),
    number(SHAPE, "--vocabulary", "Words. Default: no embedding and no head."),
    number(SHAPE, "--experts", "Experts in each layer."),
    number(SHAPE, "--chosen", "Experts that each token is sent to."),
    BLOCK,
)
MODEL = (
    *MODEL_SHAPE,
    number(STEP, "--sequence", "Tokens of a sample."),
    number(STEP, "--micro-batch", "Samples of a micro-batch. Default: 1."),
    RECOMPUTE,
    option(
        STEP,
        "--offload-activations",
        is_flag=True,
        help="Keep activations on the host from forward to backward.",
    ),
    option(
        STEP,
        "--order",
        type=Word(
            "order",
            "psem_model.predict.model_plans:ORDERS",
            only=True,
            instead={
                "dualpipe": 'dualpipev, and for 8 stages "dp(2) * pp(4)": that is DualPipe, but for a '
                "message where each micro-batch turns"
            },
        ),
        help="Of pp: the order of work; zb-h1, zb-h2 and dualpipev have backward in two parts. "
        "Default: 1f1b, or interleaved with --chunks.",
    ),
    number(STEP, "--chunks", "Of pp: chunks of layers in a stage, interleaved."),
    option(
        STEP,
        "--stage-layers",
        metavar="N,N,...",
        help="Of pp: layers of each stage; with --chunks of each chunk, in the order of the model. "
        "Default: as evenly as they go.",
    ),
)


def takes(*decorators: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Options of a command, in the order of its help."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate
