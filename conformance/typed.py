"""A case as a user types it: the command that predicts its figures."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from conformance.case import Case
from conformance.cases import cases
from conformance.plans import PRECISIONS, PRODUCTS
from conformance.profiles import SHARDED, changes, name_of
from conformance.shapes import Configured, Decoder, Mlp

OF_MODEL = ("layers", "hidden", "heads", "kv_heads", "feed_forward", "vocabulary")
CONFIG = "config.json"  # of a model of transformers


def strategy_of(case: Case) -> str:
    """The strategy, with the sizes of its axes."""
    name = PRODUCTS.get(case.strategy, case.strategy)
    sizes = [str(size) for _, size in case.mesh]
    names = name.split(" * ")
    if case.strategy in SHARDED:
        options = "-hold" * (case.reshard is False) + "-offload" * case.offload
        names = [re.sub("^[fh]sdp", rf"\g<0>{options}", name) for name in names]
    if len(names) == 1:
        return f"{names[0]}({', '.join(sizes)})"
    return " * ".join(f"{of}({size})" for of, size in zip(names, sizes, strict=True))


def can_be_typed(case: Case) -> bool:
    """Whether a command says all of it. It does not of perceptrons, and of what a user chose beside."""
    return not isinstance(case.model, Mlp) and not changes(case)


def options_of(case: Case, config: str = CONFIG) -> Iterator[str]:
    """What is typed after the strategy. `config`: the file of a model of transformers."""
    model = case.model
    if isinstance(model, Configured):
        yield from ("--config", config)
    if isinstance(model, Decoder):
        yield from ("--block", "gpt-without-dropout" if model.gpt else "llama")
        for name in OF_MODEL:
            yield from (f"--{name.replace('_', '-')}", str(getattr(model, name)))
    if not isinstance(model, Mlp):
        yield from ("--sequence", str(model.sequence), "--micro-batch", str(case.samples))
    if case.again:
        yield from ("--recompute", "all")
    if case.micro_steps > 1:
        yield from ("--accumulate", str(case.micro_steps))
    if case.order:
        yield from ("--order", case.order)
    if case.chunks > 1:
        yield from ("--chunks", str(case.chunks))
    in_fp32 = case.strategy == "eager" and not case.mixed  # of which the profile says nothing
    if case.optimizer != "adam" or in_fp32:
        yield from ("--bytes", PRECISIONS[case.optimizer])
    yield from ("--profile", name_of(case))


def shown() -> Iterator[Case]:
    """The cases whose commands the page has: of each strategy that is typed, one of each kind of model.

    Models of transformers need a file beside the command, and their commands are those of others.
    """
    found: dict[tuple[str, str, bool], Case] = {}
    for case in cases():
        if can_be_typed(case) and isinstance(case.model, Decoder):
            name = strategy_of(case).partition("(")[0]
            found.setdefault((case.strategy, name, case.model.gpt), case)
    return iter(found.values())


def command(case: Case) -> str:
    """The line that a user types."""
    return f'psem predict "{strategy_of(case)}" {shlex.join(options_of(case))}'
