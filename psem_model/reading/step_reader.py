"""Reading the TOML form of a step: what it is of, and the schedules of its states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from psem_model.reading.part_reader import PartReader, require_own_weights
from psem_model.reading.schedule_keys import PARTS
from psem_model.reading.schedule_reader import Reader
from psem_model.reading.toml_lines import Path, shown
from spec.derivation.nesting import axes_in_order, families
from spec.derivation.steps import step_of
from spec.devices.mesh import ALL_WEIGHTS
from spec.language.moves import Axis
from spec.language.programs import Program
from spec.language.schedule import Schedule
from spec.language.steps import Group, Step
from spec.models.opaque import opaque
from spec.models.training import Loss, Training
from spec.models.transformer import INDICES
from spec.plans.model_strategies import KEYS, POSITIONS, SAMPLES

TOP = ("axes", "stages", "parts", "training", "cuts", "order", "states")
CUTS = ("weights", "stream", "ring", "copies_of")


def read_step(reader: Reader) -> tuple[Step, dict[object, Path]]:
    """The step in a file, and where each line, weight and group is. Raises BadInput with one line.

    A schedule alone is the step of an opaque model.
    """
    steps = _Steps(reader)
    step = steps.step() if "parts" in reader.content else steps.opaque()
    return step, steps.places


@dataclass
class _Steps:
    """A file, and what is known of it so far."""

    file: Reader
    places: dict[Any, Path] = field(default_factory=dict)

    def opaque(self) -> Step:
        """That of all parameters, whose one schedule the file is."""
        schedule = self.file.schedule()
        self.note(0, schedule, ())
        return step_of(schedule, (opaque(),))

    def note(self, number: int, schedule: Schedule, path: Path) -> None:
        """Where the lines of a group's schedule are."""
        for part, ops in zip(PARTS, schedule.bodies, strict=True):
            self.places |= {(number, part, i): (*path, "step", part, i) for i in range(len(ops))}

    def step(self) -> Step:
        file, content = self.file, self.file.content
        if "axes" not in content:
            expected = "a step, as psem derive STRATEGY --model FILE prints one of a model"
            raise file.missing((), "axes", f"{expected}; or psem check STRATEGY --model FILE")
        names = file.typed(("parts",), content["parts"], list)
        for name in names:
            if name in TOP or type(name) is not str:
                raise file.wrong(("parts",), shown(name), "names of tables, such as layer")
        file.table((), content, (*TOP, *names))
        axes = file.declared()
        stages = None
        if "stages" in content:
            stages = file.choose(("stages",), content["stages"], axes)
        self.require_known(file.training())
        cuts = tuple(self.cut(name, table, axes) for name, table in self.tables(("cuts",)).items())
        for axis in axes:
            if (axis == stages) is (axis in [cut.name for cut in cuts]):
                expected = (
                    f"{axis} = ... in [cuts], what it cuts of the model, or stages, one of the two"
                )
                raise file.wrong(("axes",), shown(axis), expected)
        programs = []
        for name in file.once(("parts",), names, "part"):
            if name not in content:
                raise file.missing((), name, f"a table [{name}], as it is in parts")
            programs.append(PartReader(file, self.places, name, cuts).program())
            self.places.setdefault((name, "takes"), ("parts",))  # of one that takes nothing
        self.require_indices(cuts, programs)
        require_own_weights(self.file, [program.part for program in programs])
        groups = tuple(self.groups(axes, programs))
        return Step(tuple(programs), groups, stages, self.orders(programs))

    def require_known(self, training: Training) -> None:
        """Raise BadInput for what parts say already, or have no lines for."""
        for key, given, expected in (
            (
                "loss",
                training.loss is not Loss.SUM,
                "a sum over all samples, of what the last part gives",
            ),
            ("tied", training.tied, "false: gradients of a weight's uses are added up, all of them"),
            ("statistics", training.statistics, "none: parts have weights and activations alone"),
        ):
            if given:
                value = self.file.content["training"][key]
                raise self.file.wrong(("training", key), shown(value), expected)

    def tables(self, path: Path) -> dict[str, Any]:
        """The tables in an optional one."""
        return self.file.typed(path, self.file.content.get(str(path[0]), {}), dict)

    def cut(self, name: str, value: Any, axes: tuple[str, ...]) -> Axis:
        """What an axis cuts."""
        path = ("cuts", name)
        self.file.choose(path, name, axes)
        table = self.file.table(path, value, CUTS)
        weights = self.file.typed((*path, "weights"), table.get("weights", []), list)
        stream, ring = (
            self.file.typed((*path, key), table.get(key, ""), str) for key in ("stream", "ring")
        )
        for index in weights:
            self.file.typed((*path, "weights"), index, str)
        outside = table.get("copies_of", "")
        if outside:
            others = [axis for axis in axes if axis != name]
            outside = self.file.choose((*path, "copies_of"), outside, others)
        return Axis(name, tuple(weights), stream, ring=ring, copies_of=outside)

    def require_indices(self, cuts: Iterable[Axis], programs: Iterable[Program]) -> None:
        """Raise BadInput for an index in [cuts] that no value has; weights of other models' may be."""
        lines = [line for program in programs for line in program.lines]
        there = sorted(
            {i for line in lines for value in (*line.reads, line.makes) for i in value.indices}
        )
        for axis in cuts:
            path = ("cuts", axis.name)
            for index in axis.weight_indices:
                self.file.choose((*path, "weights"), index, [*there, *sorted({*INDICES} - {*there})])
            for key, index in (("stream", axis.stream), ("ring", axis.ring)):
                if index:
                    usual = {SAMPLES, POSITIONS, KEYS} - {*there}  # other models' have them
                    self.file.choose((*path, key), index, [*there, *sorted(usual)])

    def orders(self, programs: Iterable[Program]) -> dict[str, tuple[str, ...]]:
        """Of each index the axes that may cut it, the outer one first: as in axes, if not said."""
        family, declared = families(programs), self.file.declared()
        said: dict[str, list[tuple[str, ...]]] = {}  # of all that are renamed to one another
        for index, value in self.tables(("order",)).items():
            path = ("order", index)
            self.file.choose(path, index, family)
            alike = said.setdefault(family[index], [])
            alike.append(self.file.axes(path, value, declared))
            found = _in_order(declared, alike)
            if any(found.index(o) > found.index(i) for one in alike for o, i in pairwise(one)):
                raise self.file.wrong(path, shown(value), "the order of what it is renamed from, or to")
        return {index: _in_order(declared, said.get(of, [])) for index, of in family.items()}

    def groups(self, axes: tuple[str, ...], programs: Iterable[Program]) -> Iterable[Group]:
        """The schedules of the states, each of some weights."""
        if "states" not in self.file.content:
            raise self.file.missing((), "states", "tables [[states]]: the schedule of each weight")
        known = [weight.name for program in programs for weight in program.part.weights]
        self.places |= dict.fromkeys(known, ("states",))  # of one that no group has
        for number, value in enumerate(self.file.typed(("states",), self.file.content["states"], list)):
            path = ("states", number)
            table = self.file.table(path, value, ("weights", "axes", "start", "rest", "step"))
            weights = self.file.typed((*path, "weights"), table.get("weights", []), list)
            for weight in weights:
                self.file.choose((*path, "weights"), weight, known)
            own = {key: of for key, of in table.items() if key != "weights"}
            own["training"] = self.file.content.get("training", {})
            nested = Reader(self.file.name, self.file.text, own, path, (*axes, ALL_WEIGHTS))
            for axis in nested.declared(or_none=True):
                self.file.choose((*path, "axes"), axis, axes)
            schedule = nested.schedule(or_none=True)
            self.places |= dict.fromkeys(weights, (*path, "weights"))
            self.places[number, "weights"] = (*path, "weights")
            self.note(number, schedule, path)
            yield Group(tuple(weights), schedule)


def _in_order(declared: tuple[str, ...], said: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All axes: those that some of these have, in the order of each; then the others, as declared."""
    said = tuple(said)
    there = tuple(axis for axis in declared if any(axis in one for one in said))
    pairs = {pair for one in said for pair in pairwise(one)}
    return (*axes_in_order(there, pairs), *(axis for axis in declared if axis not in there))
