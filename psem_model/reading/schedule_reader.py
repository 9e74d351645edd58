"""Reading the TOML form of a schedule: an error is one line, with file and line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from psem_model.reading.schedule_keys import (
    FIRST_PHASE,
    KEYS,
    PARTS,
    REST_KEYS,
    START,
    TRAINING_KEYS,
    default_phase,
    default_span,
)
from psem_model.reading.toml_lines import File, Path, shown
from psem_model.reading.words import is_axis
from psem_model.text.errors import nearest
from spec.devices.mesh import ALL_WEIGHTS, HOST
from spec.language.schedule import (
    BY,
    COLLECTIVE_KINDS,
    MICRO_STEPS,
    Buffer,
    Kind,
    MisfitError,
    Monomial,
    Op,
    Phase,
    Rest,
    Schedule,
    Span,
)
from spec.models.states import State
from spec.models.training import Loss, Statistics, Training

FACTOR = re.compile(r"-?([0-9]{1,30}|[A-Za-z_]\w*)([*/]([0-9]{1,30}|[A-Za-z_]\w*))*")
LONGEST_FACTOR, FARTHEST = 100, 10**9
A_FACTOR = 'a factor such as "1/2", "1/batch" or "3/2*batch/micro_steps"'
_NEEDS = {
    "op": "what the operation does, such as all_gather",
    "source": "the buffer it reads, such as parameters",
}


@dataclass(frozen=True)
class Reader(File):
    """A file with a schedule. `beside`: axes that it does not declare, over which a norm is summed."""

    beside: tuple[str, ...] = ()

    def schedule(self, or_none: bool = False) -> Schedule:
        """All of it. `or_none`: it may be about no axis."""
        self.table((), self.content, ("axes", "start", "training", "rest", "step"))
        axes, start = self.declared(or_none), self.start()
        training = self.training()
        rest = self.table(("rest",), self.content.get("rest", {}), [s.value for s in State])
        rests = {s: self.rest(("rest", s.value), rest.get(s.value, {}), axes) for s in State}
        if "step" not in self.content:
            raise self.missing((), "step", "a table [step] with micro_step and finish")
        step = self.table(("step",), self.content["step"], PARTS)
        if "micro_step" not in step:
            raise self.missing(("step",), "micro_step", "an array of operations, as micro_step")
        parts = {part: self.part(part, step.get(part, []), axes) for part in PARTS}
        if not any(parts.values()):
            raise self.wrong(("step", "micro_step"), "no operations", "at least one")
        for part, ops in parts.items():
            for index, op in enumerate(ops):
                self.require_there(("step", part, index), op, rests, training)
        micro_step, finish = (parts[part] for part in PARTS)
        return Schedule(axes, tuple(rests.items()), micro_step, finish, training, start)

    def start(self) -> tuple[Buffer, ...]:
        """The views that are there when a step begins."""
        given = self.typed(("start",), self.content.get("start", []), list)
        names = [buffer.value for buffer in START]
        chosen = [self.choose(("start",), name, names) for name in given]
        return tuple(map(Buffer, self.once(("start",), chosen, "view")))

    def declared(self, or_none: bool = False) -> tuple[str, ...]:
        """The mesh's axes; at least one, unless there may be none."""
        if "axes" not in self.content:
            raise self.missing((), "axes", 'the names of the mesh\'s axes, such as axes = ["batch"]')
        axes = self.typed(("axes",), self.content["axes"], list)
        for axis in axes:
            if not is_axis(self.typed(("axes",), axis, str)):
                expected = f"a name such as batch, but not {HOST}, {MICRO_STEPS} or {ALL_WEIGHTS}"
                raise self.wrong(("axes",), shown(axis), expected)
        if not axes and not or_none:
            raise self.wrong(("axes",), "none", 'at least one, such as axes = ["batch"]')
        return self.once(("axes",), axes)

    def axes(self, path: Path, value: Any, declared: tuple[str, ...]) -> tuple[str, ...]:
        """Some of the mesh's axes."""
        for axis in self.typed(path, value, list):
            self.choose(path, axis, declared)
        return self.once(path, value)

    def training(self) -> Training:
        """What the single device does."""
        table = self.table(("training",), self.content.get("training", {}), TRAINING_KEYS)
        given: dict[str, Any] = {}
        for key, value in table.items():
            path = ("training", key)
            if key == "loss":
                given[key] = self.named(path, value, Loss)
            elif key == "statistics" and type(value) is str:
                given[key] = self.named(path, value, Statistics)
            elif key == "statistics":
                given[key] = Statistics.ALL if self.typed(path, value, bool) else None
            else:
                given[key] = self.typed(path, value, bool)
        return Training(**given)

    def rest(self, path: Path, value: Any, axes: tuple[str, ...]) -> Rest:
        """Where one state is between steps."""
        table = self.table(path, value, REST_KEYS)
        flags = {k: self.typed((*path, k), v, bool) for k, v in table.items() if k != "sharded"}
        if flags.get("working") and path[-1] != State.PARAMETERS.value:
            raise self.wrong((*path, "working"), "true", "working = true for parameters only")
        return Rest(self.axes((*path, "sharded"), table.get("sharded", []), axes), **flags)

    def part(self, part: str, value: Any, axes: tuple[str, ...]) -> tuple[Op, ...]:
        """The operations of micro_step or of finish."""
        phase, ops = FIRST_PHASE[part], []
        for index, table in enumerate(self.typed(("step", part), value, list)):
            path = ("step", part, index)
            ops.append(self.operation(path, self.table(path, table, KEYS), axes, phase))
            phase = ops[-1].phase
        return tuple(ops)

    def operation(
        self, path: Path, table: Mapping[str, Any], axes: tuple[str, ...], before: Phase
    ) -> Op:
        """One operation."""
        for key in ("op", "source"):
            if key not in table:
                raise self.missing(path, key, f"{key} = ...: {_NEEDS[key]}")
        kind = self.named((*path, "op"), table["op"], Kind)
        if kind in COLLECTIVE_KINDS and "axes" not in table:
            raise self.missing(path, "axes", f"axes = [...]: those that {kind.value} acts along")
        source = self.named((*path, "source"), table["source"], Buffer)
        along = (*axes, *self.beside) if source is Buffer.NORM else axes
        into = self.named((*path, "into"), table["into"], Buffer) if "into" in table else None
        phase = self.named((*path, "phase"), table["phase"], Phase) if "phase" in table else None
        span = self.named((*path, "span"), table["span"], Span) if "span" in table else None
        shift = self.typed((*path, "shift"), table.get("shift", 0), int)
        if abs(shift) > FARTHEST:
            raise self.wrong((*path, "shift"), shown(shift), f"at most {FARTHEST:,} places")
        try:
            return Op(
                kind,
                phase or default_phase(kind, before),
                source,
                into,
                self.axes((*path, "axes"), table.get("axes", []), along),
                self.axes((*path, "within"), table.get("within", []), axes),
                span or default_span(kind, source, into),
                self.typed((*path, "mean"), table.get("mean", False), bool),
                shift,
                self.by((*path, "by"), table, kind, axes),
            )
        except MisfitError as error:
            if error.field not in table:
                expected = f"{error.field} = ...: {error.expected}"
                raise self.missing(path, error.field, f"{expected}, for {kind.value}") from None
            choices = error.expected.split(" or ")
            near = nearest(error.has, choices) if len(choices) > 1 else ""
            expected = f"{error.expected}, for {kind.value} of {source.value}"
            raise self.wrong((*path, error.field), shown(error.has), expected, near) from None

    def by(
        self, path: Path, table: Mapping[str, Any], kind: Kind, axes: tuple[str, ...]
    ) -> Monomial | Buffer | None:
        """What an operation scales, divides or clips by."""
        if "by" not in table:
            return None
        value = table["by"]
        if kind not in BY:
            raise self.wrong(path, shown(value), f"no by, for {kind.value}")
        if BY[kind]:
            names = [buffer.value for buffer in BY[kind]]
            return Buffer(self.choose(path, value, names))
        if type(value) is int:
            return Monomial(Fraction(value))
        usable = type(value) is str and len(value) <= LONGEST_FACTOR
        if not (usable and FACTOR.fullmatch(value)):
            raise self.wrong(path, shown(value), A_FACTOR)
        number, sizes = Fraction(-1 if value.startswith("-") else 1), dict[str, int]()
        for sign, term in re.findall(r"([*/]?)(\w+)", value):
            exponent = -1 if sign == "/" else 1
            if not term.isdecimal():
                self.choose(path, term, (*axes, MICRO_STEPS))
                sizes[term] = sizes.get(term, 0) + exponent
            elif int(term) or exponent > 0:
                number *= Fraction(int(term)) ** exponent
            else:
                raise self.wrong(path, shown(value), f"{A_FACTOR}, without a division by 0")
        return Monomial(number, tuple((name, e) for name, e in sizes.items() if e))

    def require_there(
        self, path: Path, op: Op, rests: Mapping[State, Rest], training: Training
    ) -> None:
        """Raise BadInput for an operation on what this training or these rests do not have."""
        for key, buffer in (("source", op.source), ("into", op.into)):
            if buffer is Buffer.TIED and not training.tied:
                needs = "a buffer that is there (or tied = true in [training])"
            elif buffer is Buffer.STATISTICS and not training.statistics:
                needs = "a buffer that is there (or statistics = true in [training])"
            elif buffer is Buffer.PARAMETERS and not rests[State.PARAMETERS].stored:
                needs = "view (or stored = true for parameters in [rest])"
            elif buffer is Buffer.GRADIENTS and not rests[State.GRADIENTS].stored:
                needs = "fresh gradients (or stored = true for gradients in [rest])"
            else:
                continue
            raise self.wrong((*path, key), shown(buffer.value), needs)
