"""Schedules as TOML: one training step that can be written, read, and compared line by line.

What a schedule may say is in `psem_model/reading/language.py`, which `psem derive --language` prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from psem_model.reading.schedule_keys import (
    FIRST_PHASE,
    PARTS,
    TRAINING_KEYS,
    default_phase,
    default_span,
)
from psem_model.reading.schedule_reader import Reader
from psem_model.reading.toml_lines import content_of
from psem_model.text.errors import BadInput
from psem_model.text.files import read_text
from psem_model.text.places import EXAMPLES
from spec.language.schedule import COLLECTIVE_KINDS, Buffer, Monomial, Op, Phase, Rest, Schedule


def read(path: str) -> Schedule:
    """The schedule in a file. Raises BadInput with one line."""
    return loads(text_of(path), path)


def text_of(path: str) -> str:
    """The text of a schedule's file. Raises BadInput with one line."""
    return read_text(path, "a schedule in TOML, as `psem derive zero2` prints one")


def examples() -> Iterator[tuple[Path, Schedule, str]]:
    """The packaged schedules: files, and what each says of itself after its expected verdict.

    Raises BadInput if there are none.
    """
    files = sorted(EXAMPLES.glob("*.toml"))
    if not files:
        raise BadInput(f"cannot read {EXAMPLES}: it has no schedule; expected those of the package")
    for path in files:
        text = text_of(str(path))
        said = [
            line.removeprefix("#").strip() for line in text.splitlines()[1:] if line.startswith("#")
        ]
        yield path, loads(text, str(path)), " ".join(said)


def loads(text: str, name: str) -> Schedule:
    """The schedule in a text; `name` is what errors call it. Raises BadInput with one line."""
    return opened(text, name).schedule()


def opened(text: str, name: str) -> Reader:
    """The content of a text, yet to be read; `name` is what errors call it. Raises BadInput."""
    content = content_of(text, name, "a schedule")
    return Reader(name, text.replace("\r\n", "\n"), content)


# --------------------------------------------------------------------- writing
def dumps(schedule: Schedule, title: str) -> str:
    """A schedule as TOML under a title; `loads` reads the same schedule back."""
    training = schedule.training
    lines = [
        titled(title),
        *HEADER,
        f"axes = {toml(schedule.axes)}",
        *([f"start = {toml([b.value for b in schedule.start])}"] if schedule.start else []),
        "",
        "[training]",
        f'loss = "{training.loss.value}"',
        *(f"{k} = true" for k in TRAINING_KEYS if getattr(training, k) is True),
        *([f'statistics = "{training.statistics.value}"'] if training.statistics else []),
        "",
        "[rest]",
        *rest_lines(schedule),
        "",
        "[step]",
        *part_lines(schedule),
    ]
    return "\n".join(lines) + "\n"


def titled(title: str) -> str:
    """A title as the first line of a file."""
    return f"# {''.join(c for c in ' '.join(title.split()) if c.isprintable())}"


def rest_lines(schedule: Schedule) -> list[str]:
    """Where its states are between steps, a state a line."""
    return [f"{state.value} = {_rest(rest)}" for state, rest in schedule.rests]


def part_lines(schedule: Schedule) -> Iterator[str]:
    """Its operations, an operation a line."""
    for part, ops in zip(PARTS, schedule.bodies, strict=True):
        phase = FIRST_PHASE[part]
        yield f"{part} = [" if ops else f"{part} = []"
        for op in ops:
            yield f"  {toml(_fields(op, phase))},"
            phase = op.phase
        yield from ["]"] if ops else []


HEADER = (
    "#",
    "# One training step: micro_step once for each micro-batch, then finish once. With this file:",
    "#   psem check FILE                                        does it match a single device?",
    "#   psem simulate --schedule FILE --devices 4 --psi 1000   what it holds and sends",
    "#   psem derive --language                                 what a schedule may say",
    "",
)


def toml(value: Any) -> str:
    """A name, a number, a truth, an array or a table as TOML has it, in a line."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, bool | int):
        return str(value).lower()
    return f"[{', '.join(map(toml, value))}]"


def _rest(rest: Rest) -> str:
    flags = {"stored": rest.stored, "host": rest.host, "working": rest.working}
    usual = {"stored": True, "host": False, "working": False}
    return toml({"sharded": rest.sharded} | {k: v for k, v in flags.items() if v is not usual[k]})


def entry(op: Op) -> str:
    """An operation as it is written, but for its phase."""
    return f"{{ {', '.join(keys(op).values())} }}"


def keys(op: Op) -> dict[str, str]:
    """What is written of an operation, by key, but for its phase."""
    written = _fields(op, default_phase(op.kind, op.phase))
    return {key: f"{key} = {toml(value)}" for key, value in written.items() if key != "phase"}


def _fields(op: Op, before: Phase) -> dict[str, Any]:
    """An operation's keys and values, without those that are as when left out."""
    along = op.axes or op.kind in COLLECTIVE_KINDS
    by = op.by.value if isinstance(op.by, Buffer) else op.by and _factor(op.by)
    fields = {
        "op": op.kind.value,
        "source": op.source.value,
        "into": op.into and op.into.value,
        "by": by,
        "axes": op.axes if along else None,
        "within": op.within or None,
        "span": None if op.span is default_span(op.kind, op.source, op.into) else op.span.value,
        "phase": None if op.phase is default_phase(op.kind, before) else op.phase.value,
        "mean": op.mean or None,
        "shift": op.shift or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _factor(factor: Monomial) -> str:
    """A factor from left to right, in its own order."""
    sizes = ((name, "*" if exponent > 0 else "/", abs(exponent)) for name, exponent in factor.powers)
    text = str(factor.number) + "".join(f"{sign}{name}" * times for name, sign, times in sizes)
    return text.removeprefix("1*")
