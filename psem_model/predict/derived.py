"""A step that is derived, as a file says it; or a part of its program, as a table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psem_model.predict import programs
from psem_model.predict.asked import Asked
from psem_model.predict.read import placed_as
from psem_model.reading.products import Expression, parse
from psem_model.reading.schedules import dumps
from psem_model.text.errors import BadInput, quoted
from psem_model.text.report import Report
from spec.derivation.derive import derive
from spec.derivation.norms import clipped


@dataclass(frozen=True)
class Derived:
    """What is derived, for programs and tables; of a whole step its TOML, which is printed instead."""

    report: Report
    toml: str = ""


def derived(asked: Asked, clip: bool, program: Mapping[str, Any]) -> Derived:
    """What is derived of a strategy, a product or a placement. Raises BadInput.

    `program`: the options of models' programs, by name.
    """
    found = None if asked.strategy is None else parse(asked.strategy)
    if found is None or found.is_of_states or asked.placement is not None:
        return _schedule(asked, found, clip, program)
    if program["part"] or program["moves"]:
        asked.refuse(["clip"], "with --part or --moves", "it with a whole step")
        return Derived(programs.program(found, asked.hold, **program))
    of_step = {key: program[key] for key in ("block", "experts", "recompute")}
    return _step(found.text, programs.step(found, asked.hold, clip=clip, **of_step))


def _schedule(
    asked: Asked, found: Expression | None, clip: bool, program: Mapping[str, Any]
) -> Derived:
    """The schedule of all states alike."""
    placed, of = placed_as(asked, found)
    name = of
    if found is not None and len(found.meanings) == 1:
        name = f"{name}: {found.meanings[0]}"
    expected = "a strategy that cuts the model, such as tp"
    asked.refuse(program, f"with {asked.strategy or '--placement'}", expected)
    try:
        schedule = clipped(derive(placed)) if clip else derive(placed)
    except ValueError as error:
        raise BadInput(f"--clip: given with {quoted(name)}: {error}") from None
    return _step(of, dumps(schedule, name))


def _step(name: str, toml: str) -> Derived:
    """A step: for programs, what its TOML says."""
    return Derived(Report("derive", "", data={"strategy": name, "step": tomllib.loads(toml)}), toml)
