"""A step that is derived, as a file says it; or a part of its program, as a table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psem_model.predict.asked import Asked
from psem_model.predict.cuts import copied, require_cut_there, require_experts
from psem_model.predict.model_plans import RECOMPUTE, held
from psem_model.predict.read import placed_as
from psem_model.reading import schedules
from psem_model.reading.products import Expression, parse
from psem_model.reading.shapes import model_of, small
from psem_model.reading.steps import dumps, numbered
from psem_model.text.errors import BadInput, quoted, refused
from psem_model.text.report import Column, Report, Row, Section, listed
from spec.derivation.norms import clipped
from spec.derivation.programs import NOTHING, program_of
from spec.derivation.schedules import schedule_of
from spec.derivation.steps import derive
from spec.devices.layouts import WHOLE
from spec.language.moves import Move
from spec.language.programs import Line, Program
from spec.language.turns import is_of_turns
from spec.models.custom import Custom
from spec.models.parts import parts
from spec.models.profiles import TEXTBOOK
from spec.models.transformer import EMBEDDING, HEAD, INDICES, LAYER, Transformer, is_layer
from spec.models.values import Role, Value
from spec.plans.model_strategies import EXPERTS, POSITIONS, SAMPLES

LOOP = (
    "| once in each turn of a ring: along turns a value lies as along an axis",
    "~ of a softmax of each turn's keys alone: right once merged",
)
COLUMNS = (Column("makes"), Column("by", 1), Column("lies"))  # of a program
PARTS = (EMBEDDING, LAYER, HEAD)
NOT_HELD = "--hold: given where backward gathers nothing again; expected it with tp+sp"


@dataclass(frozen=True)
class Derived:
    """What is derived, for programs and tables; of a whole step its TOML, which is printed instead."""

    report: Report
    toml: str = ""


def derived(asked: Asked, clip: bool, options: Mapping[str, Any]) -> Derived:
    """What is derived of a strategy, a product or a placement. Raises BadInput.

    `options`: those of models' programs, by name.
    """
    found = None if asked.strategy is None else parse(asked.strategy)
    of_states = found is not None and found.is_of_states and options["config"] is None
    if found is None or of_states or asked.placement is not None:
        return _schedule(asked, found, clip, options)
    if options["part"] or options["moves"]:
        asked.refuse(["clip"], "with --part or --moves", "it with a whole step")
        return Derived(program(found, asked.hold, **options))
    of_step = {key: options[key] for key in ("config", "block", "experts", "recompute")}
    return _step(found.text, step(found, asked.hold, clip=clip, **of_step))


def _schedule(
    asked: Asked, found: Expression | None, clip: bool, options: Mapping[str, Any]
) -> Derived:
    """The schedule of all states alike."""
    placed, of = placed_as(asked, found)
    name = of
    if found is not None and len(found.meanings) == 1:
        name = f"{name}: {found.meanings[0]}"
    expected = "a strategy that cuts the model, such as tp"
    asked.refuse(options, f"with {asked.strategy or '--placement'}", expected)
    try:
        schedule = clipped(schedule_of(placed)) if clip else schedule_of(placed)
    except ValueError as error:
        raise BadInput(f"--clip: given with {quoted(name)}: {error}") from None
    return _step(of, schedules.dumps(schedule, name))


def _step(name: str, toml: str) -> Derived:
    """A step: for programs, what its TOML says."""
    return Derived(Report("derive", "", data={"strategy": name, "step": tomllib.loads(toml)}), toml)


# ------------------------------------------------------------------------------ of a model
def step(
    found: Expression,
    hold: bool,
    block: str | None,
    experts: bool,
    recompute: str | None,
    clip: bool = False,
    config: str | None = None,
) -> str:
    """The derived step of a product of strategies as TOML: the parts of a model, or of some kind."""
    model = _model(found, config, block, experts)
    require_experts(found, model.sizes(1, 1).get(EXPERTS, 0), _expected(config))
    if found.sizes and config is not None:
        found, _ = copied(
            found, dict.fromkeys(found.product.axes, 1) | {**found.sizes}, model, TEXTBOOK
        )
    of, again = parts(model), RECOMPUTE[recompute or NOTHING]
    try:
        derived = derive(held(found.product, hold), of, again, clip)
    except ValueError as error:
        raise BadInput(f"--clip: given with {quoted(found.text)}: {error}") from None
    before = derive(held(found.product, False), of, again)
    if hold and [p.kept for p in derived.programs] == [p.kept for p in before.programs]:
        raise BadInput(NOT_HELD)
    kind = config or f"{block or 'gpt'} layers{' with experts' * experts}"
    return dumps(derived, f"{found.text}, of {kind}")


def _model(
    found: Expression, config: str | None, block: str | None, experts: bool
) -> Transformer | Custom:
    """The model whose parts are asked for, or a small one of some kind. Raises BadInput."""
    if config is None:
        return small(block, experts)
    if experts:
        raise BadInput("--experts: given with --config or --model; expected one of the two")
    model = model_of({"config": config, "block": block})
    require_cut_there(found, model)
    return model


def _expected(config: str | None) -> str:
    """What is expected where there are no experts to cut."""
    return "it with --experts" if config is None else "a model with experts"


def program(
    found: Expression,
    hold: bool,
    block: str | None,
    experts: bool,
    part: str | None,
    recompute: str | None,
    moves: bool,
    config: str | None = None,
) -> Report:
    """The derived program of one part of a model on the axes of a product such as tp or cp*tp.

    `moves`: only where values are moved.
    """
    axes = held(found.product, hold).cuts
    if not axes or len(axes) < len(found.product.factors):
        raise BadInput(
            f"derive: given {quoted(found.text)} with --part or --moves; expected strategies that cut "
            "the model, such as tp; or without these options, for all of the step"
        )
    again = RECOMPUTE[recompute or NOTHING]
    model = _model(found, config, block, experts)
    of_name = {of.name: of for of in parts(model)}
    if (part or LAYER) not in of_name:
        raise refused("--part", part or LAYER, f"one of {', '.join(of_name)}")
    chosen = of_name[part or LAYER]
    if is_layer(chosen.name):
        require_experts(found, model.sizes(1, 1).get(EXPERTS, 0), _expected(config))
    elif experts or recompute is not None:
        option = "--experts" if experts else "--recompute"
        raise BadInput(f"{option}: given with --part {part}; expected --part layer")
    derived = program_of(chosen, axes, again)
    if hold and derived.kept == program_of(chosen, found.product.cuts, again).kept:
        raise BadInput(NOT_HELD)
    names = INDICES if isinstance(model, Transformer) else {i: INDICES[i] for i in (SAMPLES, POSITIONS)}
    return _Shown(derived, moves, names).report(found)


class _Shown:
    """A derived program as text. `words`: what indices are."""

    def __init__(self, derived: Program, moves: bool, words: Mapping[str, str]) -> None:
        self.derived, self.moves, self.words = derived, moves, words
        part = derived.part
        made = [line.makes for line in derived.forward]
        self.again = {value.plain_name for value in (part.takes, *made) if value}
        there = [*([part.takes] if part.takes else []), *part.weights, *made, derived.seed]
        self.names = numbered([*there, *(line.makes for line in derived.backward)])
        self.used: set[str] = set()
        self.in_loops = {
            line.makes
            for line in derived.lines
            if any(is_of_turns(line, derived.lies, turns) for turns in derived.turns)
        }

    def report(self, found: Expression) -> Report:
        """Forward and backward, a row a line; with all lines, what is kept as well."""
        derived, sections = self.derived, []
        for title, lines in (
            ("forward", derived.forward),
            ("backward", derived.backward),
        ):
            found_lines = tuple(
                self.row(line, lines is derived.backward)
                for line in lines
                if isinstance(line, Move) or not self.moves
            )
            if found_lines:
                sections.append(Section(title, COLUMNS, found_lines, key=title))
        left: dict[tuple[str, ...], list[str]] = {}
        for weight in derived.part.weights:
            left.setdefault(derived.summed_over(weight), []).append(weight.name)
        left.pop((), None)
        if left:
            along = (f"over {' x '.join(axes)}: {', '.join(names)}" for axes, names in left.items())
            sections.append(listed("gradients left in terms, which the states' schedule sums", along))
        told: dict[str, Any] = {
            "strategy": found.text,
            "part": derived.part.name,
            "left": [{"axes": axes, "weights": names} for axes, names in left.items()],
        }
        if not self.moves:
            kept = [f"{self.value(v)} {self.lies(v)}".rstrip() for v in derived.kept]
            sections.append(listed("kept for backward", kept))
            told["kept"] = kept
        used = ", ".join(f"{i} {words}" for i, words in self.words.items() if i in self.used)
        return Report(
            "derive",
            f"{found.text}, {derived.part.name}: " + "; ".join(found.meanings),
            (
                "R whole on each device, S(i) cut along i, P a term of a sum",
                *([used] if used else []),
                *(LOOP if self.in_loops else ()),
            ),
            tuple(sections),
            told,
        )

    def row(self, line: Line, backward: bool) -> Row:
        again = ", made again" if backward and line.makes.plain_name in self.again else ""
        mark = ("|" if line.makes in self.in_loops else " ") * bool(self.in_loops)
        if isinstance(line, Move):
            by = f" by {self.name(line.by)}" if len(line.reads) > 1 and line.by else ""
            moved = f"{line.collective} over {line.axis} of {self.name(line.value)}{by}{again}"
            before, after = (
                (self.lies(line.value) or "R", self.lies(line.makes) or "R")
                if line.in_turns
                else (line.before, line.after)
            )
            return self.told(f"{mark}> ", line, moved, f"{before} -> {after}")
        reads = ", ".join(self.name(v) for v in line.reads if not _is_free(v))
        does = " ".join(w for w in (line.does.value, line.function, "backward" * line.backward) if w)
        made = self.lies(line.makes) or "R"
        return self.told(f"{mark}  ", line, f"{does}({reads}){again}", made)

    def told(self, mark: str, line: Line, by: str, lies: str) -> Row:
        """A line as a row; programs are told by words what the mark says."""
        makes = self.value(line.makes)
        marks = {"moves": isinstance(line, Move), "in_turns": line.makes in self.in_loops}
        return Row((f"{mark}{makes}", by, lies), told={"makes": makes, "by": by, "lies": lies} | marks)

    def lies(self, value: Value) -> str:
        """How a value lies along the axes along which it is not whole."""
        lies = self.derived.lies.get(value, {})
        return ", ".join(f"{axis} {lie}" for axis, lie in lies.items() if lie != WHOLE)

    def name(self, value: Value) -> str:
        return self.names.get(value, value.plain_name)

    def value(self, value: Value) -> str:
        self.used.update(value.indices)
        return f"{self.name(value)}[{' '.join(value.indices)}]"


def _is_free(value: Value) -> bool:
    return value.role is Role.CONSTANT and value.name.startswith("ones")
