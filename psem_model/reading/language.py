"""The language of schedules, in words: what the files of `psem check` may say, from `language.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from psem_model.reading.schedule_keys import REST_KEYS
from psem_model.text.files import beside
from psem_model.text.report import Column, Report, Section, rows
from spec.language.schedule import BY, COLLECTIVE_KINDS, MICRO_STEPS, TAKES, Buffer, Kind, Phase, Span
from spec.models.states import State
from spec.models.training import Loss, Statistics


def report() -> Report:
    """All of it."""
    words = beside(__file__, "language.toml")
    named = {
        "Tables": _filled(words["tables"]),
        "Keys of an operation": _filled(words["keys"]),
        "Buffers": ((buffer.value, words["buffers"][buffer.value]) for buffer in Buffer),
        "Operations: what they do, what they read -> what they write": (
            row for kind in Kind for row in _operation(kind, words["operations"][kind.value])
        ),
        "A model's step: tables, beside axes and [training]": words["step_tables"].items(),
        "A model's step: lines of a part": words["step_lines"].items(),
        "A model of your own (--model): its forward on one device": words["model_tables"].items(),
    }
    columns = (Column("name"), Column("meaning", 1))
    sections = tuple(Section(title, columns, rows(cells)) for title, cells in named.items())
    title = (
        "A schedule is one training step, in TOML; `psem derive zero2` prints one. A model's step has "
        'its parts as well; `psem derive "zero1 * tp+sp"` prints one.'
    )
    return Report("derive", title, sections=sections)


def _filled(table: dict[str, str]) -> Iterator[tuple[str, str]]:
    """A table of the file, with the names that the specification has."""
    names = {
        "losses": _or(f'"{loss.value}"' for loss in Loss),
        "sum": Loss.SUM.value,
        "micro steps": MICRO_STEPS,
        "statistics": _or(f'"{kind.value}"' for kind in Statistics),
        "states": ", ".join(state.value for state in State),
        "rest keys": ", ".join(REST_KEYS),
        "collectives": ", ".join(kind.value for kind in COLLECTIVE_KINDS),
        "spans": _or(f'"{span.value}"' for span in Span),
        "phases": _or(phase.value for phase in Phase),
    }
    for key, text in table.items():
        for name, value in names.items():
            text = text.replace(f"{{{name}}}", value)
        yield key, text


def _operation(kind: Kind, does: str) -> Iterator[tuple[str, str]]:
    yield kind.value, does
    for sources, targets in TAKES[kind]:
        same = "any of these" if targets == sources else "in place"
        writes = same if targets in ((), sources) else _or(b.value for b in targets)
        yield "", f"{_or(b.value for b in sources)} -> {writes}"
    if BY.get(kind):
        yield "", f"by {_or(b.value for b in BY[kind])}"


def _or(names: Iterable[str]) -> str:
    *first, last = [*names] or [""]
    return f"{', '.join(first)} or {last}" if first else last
