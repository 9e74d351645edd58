"""Schedules as TOML: one training step that can be written, read, and compared line by line.

What a schedule may say is in `psem_model/reading/language.py`, which `psem derive --language` prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from psem_model.reading.schedule_keys import (
    FIRST_PHASE,
    PARTS,
    TRAINING_KEYS,
    default_phase,
    default_span,
)
from psem_model.reading.schedule_reader import Reader
from psem_model.reading.toml_lines import Path as Keys
from psem_model.reading.toml_lines import content_of, locate
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
    """The packaged schedules: files, and what each says of itself after its expected verdict."""
    for path in sorted(EXAMPLES.glob("*.toml")):
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


def line_of(text: str, part: str, index: int, prefix: Keys = ()) -> int:
    """The line of an operation: the index-th of "micro_step" or "finish", both from 0 on.

    `prefix`: where the schedule is in the text.
    """
    return locate(text, (*prefix, "step", part, index))


# --------------------------------------------------------------------- writing
def dumps(schedule: Schedule, title: str) -> str:
    """A schedule as TOML under a title; `loads` reads the same schedule back."""
    training = schedule.training
    lines = [
        titled(title),
        *HEADER,
        f"axes = {strings(schedule.axes)}",
        *([f"start = {strings(b.value for b in schedule.start)}"] if schedule.start else []),
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
    for part, ops in zip(PARTS, schedule.parts, strict=True):
        phase = FIRST_PHASE[part]
        yield f"{part} = [" if ops else f"{part} = []"
        for op in ops:
            yield f"  {{ {', '.join(_fields(op, phase))} }},"
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


def strings(names: Iterable[str]) -> str:
    """Names as a TOML array."""
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _rest(rest: Rest) -> str:
    keys = [f"sharded = {strings(rest.sharded)}"]
    keys += [] if rest.stored else ["stored = false"]
    keys += ["host = true"] if rest.host else []
    keys += ["working = true"] if rest.working else []
    return "{ " + ", ".join(keys) + " }"


def entry(op: Op) -> str:
    """An operation as it is written, but for its phase."""
    return f"{{ {', '.join(keys(op).values())} }}"


def keys(op: Op) -> dict[str, str]:
    """What is written of an operation, by key, but for its phase."""
    written = _fields(op, default_phase(op.kind, op.phase))
    return {each.split(" = ")[0]: each for each in written if not each.startswith("phase")}


def _fields(op: Op, before: Phase) -> list[str]:
    """An operation's keys and values, without those that are as when left out."""
    found = [f'op = "{op.kind.value}"', f'source = "{op.source.value}"']
    if op.into is not None:
        found.append(f'into = "{op.into.value}"')
    if op.by is not None:
        found.append(f'by = "{op.by.value if isinstance(op.by, Buffer) else _factor(op.by)}"')
    if op.axes or op.kind in COLLECTIVE_KINDS:
        found.append(f"axes = {strings(op.axes)}")
    if op.within:
        found.append(f"within = {strings(op.within)}")
    if op.span is not default_span(op.kind, op.source, op.into):
        found.append(f'span = "{op.span.value}"')
    if op.phase is not default_phase(op.kind, before):
        found.append(f'phase = "{op.phase.value}"')
    found += ["mean = true"] if op.mean else []
    return found + ([f"shift = {op.shift}"] if op.shift else [])


def _factor(factor: Monomial) -> str:
    """A factor from left to right, in its own order."""
    sizes = ((name, "*" if exponent > 0 else "/", abs(exponent)) for name, exponent in factor.sizes)
    text = str(factor.number) + "".join(f"{sign}{name}" * times for name, sign, times in sizes)
    return text.removeprefix("1*")
