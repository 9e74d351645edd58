"""Memory that others measured beside what is predicted: prints docs/MEASURED.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from psem_model.predict.asked import asked
from psem_model.predict.plan import Plan, StageCosts
from psem_model.predict.read import read
from psem_model.published.entries import rows_in
from psem_model.text.files import beside
from psem_model.text.places import EXAMPLES
from spec.costs.memory import MODEL_STATES
from spec.models.states import State

GIB = 2**30
ALLOCATED = "allocated"
NEAR = 2  # per cent within which what is kept is to lie
STATES = [state.value for state in MODEL_STATES]
COLUMNS = ("model", "plan", "tokens", *STATES, "kept", "measured", "peak", "off")


@dataclass(frozen=True)
class Row:
    """One measurement, in GiB, and the options of the command that predicts it.

    `stage`: of a pipeline, whose fullest device it is of. `also`: numbers of micro-batches for which
    the source's table has the same. `of`: of which memory, such as reserved, with what the allocator
    holds back. `apart`: of a system that no profile describes.
    """

    source: str
    what: str
    options: Mapping[str, str | int]
    plan: str
    sequence: int
    measured: float
    stage: int = 0
    also: Sequence[int] = ()
    of: str = ALLOCATED
    apart: bool = False

    def _typed(self, examples: str) -> dict[str, str]:
        """The options of the command; `examples`: the folder of those that are packaged."""
        given = {"sequence": self.sequence, **self.options}
        if "config" in given:
            given["config"] = f"{examples}/{given['config']}"
        return {name: str(value) for name, value in given.items()}

    @property
    def command(self) -> str:
        """What is typed in a checkout."""
        typed = self._typed(EXAMPLES.name)
        if self.predicted.pipe.stages > 1:
            typed["stage"] = str(self.stage)
        options = (f"--{name.replace('_', '-')} {value}" for name, value in typed.items())
        return f'psem predict "{self.plan}" {" ".join(options)}'

    @cached_property
    def predicted(self) -> Plan:
        """The plan that the command reads, in whatever folder this is."""
        typed = self._typed(str(EXAMPLES))
        given = {"policy" if name == "bytes" else name: value for name, value in typed.items()}
        return read(asked("predict", {"strategy": self.plan, **given}))

    @cached_property
    def costs(self) -> StageCosts:
        return self.predicted.stage(self.stage)

    def bytes_of(self, state: State) -> float:
        return float(self.costs.resting[state]) / GIB

    @property
    def kept(self) -> float:
        return float(self.costs.total) / GIB

    @property
    def peak(self) -> float:
        return float(self.costs.peak) / GIB

    @property
    def within(self) -> bool:
        """Whether what was measured lies between what is kept and the peak."""
        return self.kept <= self.measured <= self.peak

    @property
    def off(self) -> float:
        """By how many per cent what is kept differs from what was measured."""
        return 100 * (self.kept / self.measured - 1)

    @property
    def is_near(self) -> bool:
        """Whether what is kept is as near as it is to be, where allocated memory was measured."""
        return self.of == ALLOCATED and abs(self.off) <= NEAR


@cache
def written() -> tuple[Row, ...]:
    """All measurements. Raises TypeError for a field that is unknown or missing."""
    return tuple(Row(**row) for row in rows_in(beside(__file__, "measured.toml")))


@cache
def rows() -> tuple[Row, ...]:
    """Those of systems that a profile describes, misses first."""
    found = (row for row in written() if not row.apart)
    return tuple(sorted(found, key=lambda row: (row.within, -abs(row.off))))


@cache
def rows_apart() -> tuple[Row, ...]:
    """Those of systems that none describes."""
    return tuple(row for row in written() if row.apart)


def table_rows() -> tuple[tuple[Row, ...], ...]:
    """The stages of each row of the sources' tables that are of allocated memory, the fullest first."""
    found: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows():
        if row.of == ALLOCATED:
            found.setdefault((row.what, row.plan, row.sequence), []).append(row)
    stages = (tuple(sorted(of, key=lambda row: -row.measured)) for of in found.values())
    return tuple(of for of in stages for _ in (0, *of[0].also))


def page() -> str:
    """docs/MEASURED.md."""
    found, table, apart = rows(), table_rows(), rows_apart()
    words: dict[str, str] = beside(__file__, "measured.toml")["page"]
    head = words["head"].format(
        within=sum(row.within for row in found),
        rows=len(found),
        apart=len(apart),
        apart_within=sum(row.within for row in apart),
        reserved=sum(row.of != ALLOCATED for row in found),
        near=NEAR,
        close=sum(row.is_near for row in found),
        allocated=sum(row.of == ALLOCATED for row in found),
        table=len(table),
        table_within=sum(all(row.within for row in stages) for stages in table),
        table_close=sum(stages[0].is_near for stages in table),
    )
    beside_them = words["apart"].format(
        rows=len(apart),
        within=sum(row.within for row in apart),
        above=sum(row.off < 0 for row in apart),
    )
    lines = (
        *_table(found),
        beside_them,
        *_table(apart),
        words["missing"],
        *_commands((*found, *apart)),
    )
    return head + "\n".join(lines) + "\n"


def _table(found: tuple[Row, ...]) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|---|---{'|---:' * (len(COLUMNS) - 2)}|"
    for row in found:
        figures = [*map(row.bytes_of, MODEL_STATES), row.kept, row.measured, row.peak]
        cells = [f"{row.sequence:,}", *(f"{figure:.2f}" for figure in figures), f"{row.off:+.1f} %"]
        model = row.what.split(",")[0] + " (outside)" * (not row.within)
        plan = f"`{row.plan}`" + f", stage {row.stage}" * (row.predicted.pipe.stages > 1)
        cells[-3] += f" {row.of}" * (row.of != ALLOCATED)
        yield f"| {' | '.join([model, plan, *cells])} |"


def _commands(found: tuple[Row, ...]) -> Iterator[str]:
    yield "\n## Sources and commands\n\nAll in GiB, of the fullest device."
    for what in dict.fromkeys(row.what for row in found):
        of = [row for row in found if row.what == what]
        yield f"\n**{what}.** {of[0].source}.\n\n```"
        yield from dict.fromkeys(row.command for row in of)
        yield "```"


if __name__ == "__main__":
    print(page(), end="")
