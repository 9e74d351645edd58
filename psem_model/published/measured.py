"""Memory that others measured beside what is predicted: prints docs/MEASURED.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from psem_model.predict.asked import asked
from psem_model.predict.plan import Plan
from psem_model.predict.read import read
from psem_model.published.entries import rows_in
from psem_model.text.files import beside
from psem_model.text.places import EXAMPLES
from spec.costs.memory import MODEL_STATES
from spec.models.states import State

GIB = 2**30
NEAR = 2  # per cent within which what is kept is to lie
STATES = [state.value for state in MODEL_STATES]
COLUMNS = ("model", "plan", "tokens", *STATES, "kept", "measured", "peak", "off")


@dataclass(frozen=True)
class Row:
    """One measurement, in GiB, and the options of the command that predicts it."""

    source: str
    what: str
    options: Mapping[str, str | int]
    plan: str
    sequence: int
    measured: float

    def _typed(self, examples: str) -> dict[str, str]:
        """The options of the command; `examples`: the folder of those that are packaged."""
        given = {"sequence": self.sequence, **self.options}
        if "config" in given:
            given["config"] = f"{examples}/{given['config']}"
        return {name: str(value) for name, value in given.items()}

    @property
    def command(self) -> str:
        """What is typed in a checkout."""
        typed = self._typed(EXAMPLES.name).items()
        options = (f"--{name.replace('_', '-')} {value}" for name, value in typed)
        return f'psem predict "{self.plan}" {" ".join(options)}'

    @cached_property
    def predicted(self) -> Plan:
        """The plan that the command reads, in whatever folder this is."""
        return read(asked("predict", {"strategy": self.plan, **self._typed(str(EXAMPLES))}))

    def bytes_of(self, state: State) -> float:
        return float(self.predicted.fullest.resting[state]) / GIB

    @property
    def kept(self) -> float:
        return float(self.predicted.fullest.total) / GIB

    @property
    def peak(self) -> float:
        return float(self.predicted.fullest.peak) / GIB

    @property
    def within(self) -> bool:
        """Whether what was measured lies between what is kept and the peak."""
        return self.kept <= self.measured <= self.peak

    @property
    def off(self) -> float:
        """By how many per cent what is kept differs from what was measured."""
        return 100 * (self.kept / self.measured - 1)


@cache
def rows() -> tuple[Row, ...]:
    """All measurements, misses first. Raises TypeError for a field that is unknown or missing."""
    found = [Row(**row) for row in rows_in(beside(__file__, "measured.toml"))]
    return tuple(sorted(found, key=lambda row: (row.within, -abs(row.off))))


def page() -> str:
    """docs/MEASURED.md."""
    found = rows()
    words: dict[str, str] = beside(__file__, "measured.toml")["page"]
    head = words["head"].format(
        within=sum(row.within for row in found),
        rows=len(found),
        near=NEAR,
        close=sum(abs(row.off) <= NEAR for row in found),
    )
    return (
        head + "\n".join(_table(found)) + "\n" + words["missing"] + "\n".join(_commands(found)) + "\n"
    )


def _table(found: tuple[Row, ...]) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|---|---{'|---:' * (len(COLUMNS) - 2)}|"
    for row in found:
        figures = [*map(row.bytes_of, MODEL_STATES), row.kept, row.measured, row.peak]
        cells = [f"{row.sequence:,}", *(f"{figure:.2f}" for figure in figures), f"{row.off:+.1f} %"]
        model = row.what.split(",")[0] + " (outside)" * (not row.within)
        yield f"| {' | '.join([model, f'`{row.plan}`', *cells])} |"


def _commands(found: tuple[Row, ...]) -> Iterator[str]:
    yield "\n## Sources and commands\n\nAll in GiB, of the fullest device."
    for what in dict.fromkeys(row.what for row in found):
        of = [row for row in found if row.what == what]
        yield f"\n**{what}.** {of[0].source}.\n\n```"
        yield from (row.command for row in of)
        yield "```"


if __name__ == "__main__":
    print(page(), end="")
