"""A model's step as TOML: its parts, line by line, and the schedules of its weights' states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from psem_model.reading.schedules import part_lines, rest_lines, titled, toml
from spec.checking.steps import cut_twice
from spec.devices.layouts import WHOLE, Layout
from spec.language.moves import Axis, Move
from spec.language.programs import Line, Program
from spec.language.steps import Group, Step
from spec.models.values import WRITTEN, Operation, Role, Value

HEADER = (
    "#",
    "# One training step of a model: its parts, line by line, and where the states of its weights are.",
    "#   psem check FILE          does it match a single device?",
    "#   psem derive --language   what a file may say",
    "",
)


def dumps(step: Step, title: str) -> str:
    """A step as TOML under a title; what is read back does the same."""
    cuts = {axis.name: axis for program in step.programs for axis in program.axes}
    axes = (*cuts, *([step.pipe] if step.pipe else []))
    lines = [
        titled(title),
        *HEADER,
        f"axes = {toml(axes)}",
        *([f'stages = "{step.pipe}"'] if step.pipe else []),
        f"parts = {toml([program.part.name for program in step.programs])}",
        "",
        *(["[training]", "clip = true", ""] if step.clips else []),
        *(["[cuts]", *map(_cut, cuts.values()), ""] if cuts else []),
    ]
    others = {i: cut for i, cut in cut_twice(step).items() if cut != tuple(a for a in cuts if a in cut)}
    if others:
        lines += ["[order]", *(f"{index} = {toml(cut)}" for index, cut in others.items()), ""]
    for program in step.programs:
        lines += _Part(program).lines()
    for group in step.groups:
        lines += _group(group)
    return "\n".join(lines).rstrip() + "\n"


def _cut(axis: Axis) -> str:
    cut = {"weights": axis.weight_indices, "stream": axis.stream, "ring": axis.ring}
    cut |= {"copies_of": axis.copies_of}
    return f"{axis.name} = {toml({key: value for key, value in cut.items() if value})}"


def _group(group: Group) -> Iterator[str]:
    schedule = group.schedule
    yield from ("[[states]]", f"weights = {toml(group.weights)}", f"axes = {toml(schedule.axes)}")
    yield from ("", "[states.rest]", *rest_lines(schedule), "", "[states.step]")
    yield from (*part_lines(schedule), "")


def numbered(values: Iterable[Value]) -> dict[Value, str]:
    """Names of values; those that share one are numbered, but for weights, by which states know them.

    All slices of a constant have one name.
    """
    there, alike = list(values), dict[str, dict[object, None]]()
    for value in there:
        alike.setdefault(value.plain_name, {})[_itself(value)] = None
    known = {value.name for value in there if value.role is Role.WEIGHT}
    names = {
        one: name if len(same) == 1 or (number == 1 and name in known) else f"{name} {number}"
        for name, same in alike.items()
        for number, one in enumerate(same, 1)
    }
    return {value: names[_itself(value)] for value in there}


def names_of(program: Program) -> dict[Value, str]:
    """The names that the values of a derived program have in a file."""
    part = program.part
    there = [*([part.takes] if part.takes else []), *part.weights]
    there += [value for line in program.forward for value in (*line.reads, line.makes)]
    there += [program.seed]
    there += [value for line in program.backward for value in (*line.reads, line.makes)]
    return numbered(there)


class _Part:
    """A part's program as lines of a file."""

    def __init__(self, program: Program) -> None:
        self.program, self.names = program, names_of(program)
        constants = (value for value in self.names if value.role is Role.CONSTANT)
        self.constants = {self.names[value]: value for value in constants}

    def lines(self) -> Iterator[str]:
        """The part's table."""
        program = self.program
        part = program.part
        yield f"[{part.name}]"
        if part.takes:
            yield f'takes = "{self.typed(part.takes)}"'
        yield f"weights = {toml(map(self.typed, part.weights))}"
        yield f"constants = {toml(map(self.typed, self.constants.values()))}"
        for name, lines in (("forward", program.forward), ("backward", program.backward)):
            yield f"{name} = ["
            for line in lines:
                yield self.line(line)
            yield "]"
        yield f'gives = "{self.names[program.gives]}"'
        yield f'cotangent = "{self.names[program.seed]}"'
        if program.returns:
            yield f'returns = "{self.names[program.returns]}"'
        wide = {name: value.width for name, value in self.constants.items() if value.width}
        made = (line.makes for line in program.lines if isinstance(line, Operation))
        wide |= {self.names[v]: v.width for v in (program.seed, *made) if v.width != WRITTEN}
        if wide:
            yield from ("", f"[{part.name}.bytes]", *(f'"{name}" = {n}' for name, n in wide.items()))
        yield from ("", f"[{part.name}.gradients]")
        for weight, gradient in program.gradients.items():
            yield f'{self.names[weight]} = "{self.names[gradient]}"'
        yield ""

    def typed(self, value: Value) -> str:
        """Its name and indices."""
        return f"{self.names[value]}[{' '.join(value.indices)}]"

    def line(self, line: Line) -> str:
        """A line."""
        return f"  {toml(self.move(line) if isinstance(line, Move) else self.operation(line))},"

    def move(self, line: Move) -> dict[str, Any]:
        """The keys of a move."""
        cut = [lie.index for lie in (line.before, line.after) if lie.layout is Layout.SHARDED]
        rings = {axis.turns: axis.name for axis in self.program.axes}
        keys = {"op": line.collective, "source": self.source(line)}
        keys["axes"] = [rings.get(line.axis, line.axis)]
        return keys | ({"along": _one_or_all(cut)} if cut else {}) | {"into": self.names[line.makes]}

    def operation(self, line: Operation) -> dict[str, Any]:
        """The keys of an operation."""
        keys = {
            "op": line.does.value,
            "by": line.function,
            "over": line.over,
            "source": self.source(line),
            "names": [f"{old} -> {new}" for old, new in line.renamed],
            "backward": line.backward,
            "into": self.typed(line.makes),
        }
        return {key: value for key, value in keys.items() if value}

    def source(self, line: Line) -> str | list[str]:
        """The value that it reads, or several."""
        return _one_or_all([self.read(value) for value in line.reads])

    def read(self, value: Value) -> str:
        """A value's name; of a constant, with how it lies: every device has, or makes, its slice."""
        name = self.names[value]
        if value.role is not Role.CONSTANT:
            return name
        lies = self.program.lies[value].items()
        cut = ", ".join(f"{axis} {lie.index}" for axis, lie in lies if lie != WHOLE)
        return f"{name}({cut})" if cut else name


def _one_or_all(names: list[str]) -> str | list[str]:
    return names if len(names) > 1 else names[0]


def _itself(value: Value) -> object:
    """What has a name of its own: a value; of a constant, all slices together."""
    constant = value.role is Role.CONSTANT
    return (value.plain_name, value.indices) if constant else value
