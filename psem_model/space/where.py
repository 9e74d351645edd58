"""Which placements keep within bounds on their cost, and why none does: asked of the solver.

Bounds are on bytes per device: `resting <= 4*Psi/N + 2*Psi, sent <= 2*Psi`. The four modes are
variables; what a realisable placement's modes must be are constraints over them (claim P1).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import inf
from operator import add, ge, gt, le, lt, mul, sub, truediv
from typing import Any

from proofs.tools.encoding import MODES, ModeSort, Terms, lift
from proofs.trusted.oracle import ask, settle
from proofs.trusted.parts import substitute
from proofs.trusted.terms import TRUE, And, BoolVal, Const, Int, Not, Or, Real, RealVal, ToReal
from psem_model.space.placements import Row, Space, spelled
from psem_model.text.errors import BadInput, or_nearest, quoted, refused
from psem_model.text.figures import counted
from psem_model.text.report import Report, Section
from spec.choosing.regimes import FourModes, placement_of
from spec.choosing.requirements import requirements
from spec.choosing.space import CostForm, Point, classes, closed_form
from spec.models.states import State
from spec.plans.modes import Mode

LEAST_DEVICES, LONGEST = 2, 500
# bytes that rest on a device, that it sends in a step, and over its host link
COSTS = ("resting", "sent", "host")
# parameters, devices, micro-steps; bytes of a weight, of a gradient, of optimizer state per parameter
SIZES = ("Psi", "N", "m", "w", "g", "K")
NAMES = (*COSTS, *SIZES)
RELATIONS: dict[type, Callable[[Any, Any], Any]] = {ast.LtE: le, ast.Lt: lt, ast.GtE: ge, ast.Gt: gt}
OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: truediv,
}
EXAMPLE = "resting <= 4*Psi/N + 2*Psi, sent <= 2*Psi"


@dataclass(frozen=True)
class Bound:
    """An inequality, as it was typed."""

    text: str
    tree: ast.Compare

    def holds(self, values: Mapping[str, Any]) -> Any:
        """The inequality, of numbers or of terms."""
        sides = [self.tree.left, *self.tree.comparators]
        found = [self._value(side, values) for side in sides]
        relations = (RELATIONS[type(op)] for op in self.tree.ops)
        return And(*(r(a, b) for r, a, b in zip(relations, found[:-1], found[1:], strict=True)))

    def _value(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        match node:
            case ast.BinOp():
                left, right = self._value(node.left, values), self._value(node.right, values)
                return OPERATIONS[type(node.op)](left, right)
            case ast.Name():
                return values[node.id]
            case ast.Constant():
                return RealVal(Fraction(str(node.value)))
        raise AssertionError(ast.dump(node))


def bounds(text: str) -> tuple[Bound, ...]:
    """Inequalities between commas. Raises BadInput."""
    if len(text) > LONGEST:
        raise refused("--where", text, f"at most {LONGEST:,} characters")
    return tuple(map(_bound, text.split(",")))


def _bound(text: str) -> Bound:
    text = text.strip()
    wrong = f"--where: given {quoted(text)}; expected "
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise BadInput(f"{wrong}inequalities between commas, such as {EXAMPLE}") from None
    if not isinstance(tree, ast.Compare) or any(type(op) not in RELATIONS for op in tree.ops):
        raise BadInput(f"{wrong}an inequality (<=, <, >=, >), such as {EXAMPLE}")
    for side in (tree.left, *tree.comparators):
        _require_sum(side, wrong)
    if not any(isinstance(n, ast.Name) and n.id in COSTS for n in ast.walk(tree)):
        raise BadInput(f"{wrong}a bound on {', '.join(COSTS)}")
    return Bound(text, tree)


def _require_sum(node: ast.expr, wrong: str) -> None:
    """Raise BadInput unless it is of numbers and names, by + - * and / by what is not 0."""
    match node:
        case ast.BinOp() if type(node.op) in OPERATIONS:
            if isinstance(node.op, ast.Div) and not _is_size(node.right):
                raise BadInput(f"{wrong}a size to divide by, or a number that is not 0")
            _require_sum(node.left, wrong)
            _require_sum(node.right, wrong)
        case ast.BinOp():
            raise BadInput(f"{wrong}+, -, * and / between sizes")
        case ast.Name() if node.id not in NAMES:
            near = or_nearest(node.id, NAMES)
            raise BadInput(f"{wrong}{', '.join(NAMES)} in place of {quoted(node.id)}{near}")
        case ast.Name():
            pass
        case ast.Constant(value=int() | float() as number) if type(number) is not bool and number < inf:
            pass
        case _:
            raise BadInput(f"{wrong}numbers and {', '.join(NAMES)}, with +, -, * and / between them")


def _is_size(node: ast.expr) -> bool:
    """Whether it is a size, or a number that is not 0."""
    if isinstance(node, ast.Name):
        return node.id in SIZES and node.id != "K"
    return isinstance(node, ast.Constant) and bool(node.value)


class Asked:
    """The placements that keep within bounds: on so many devices, or on every number from 2 on."""

    def __init__(self, space: Space, asked: tuple[Bound, ...], every_number: bool) -> None:
        self.space, self.bounds, self.every_number = space, asked, every_number
        self.modes = {state: Const(state.value, ModeSort) for state in State}

    @cached_property
    def constraints(self) -> dict[str, Any]:
        """What must hold, by name: of realisable placements, and each bound."""
        found = requirements(self.space.regime, Terms(self.modes))
        placed = [(self.modes[state], MODES) for state in list(State)[:3]]
        for bound in self.bounds:
            found[bound.text] = lift(lambda *m, b=bound: BoolVal(self.keeps(m, b)), placed)
        return found

    def keeps(self, modes: FourModes, bound: Bound) -> bool:
        """Whether the cost of a placement is within a bound, whatever Psi is."""
        form = closed_form(placement_of((*modes, Mode.SHARDED))).restricted_to(self.space.regime)
        known = self._known
        if (form, bound) not in known:
            known[form, bound] = self._keeps(form, bound)
        return known[form, bound]

    @cached_property
    def _known(self) -> dict[tuple[CostForm, Bound], bool]:
        return {}

    def _keeps(self, form: CostForm, bound: Bound) -> bool:
        space, psi, number = self.space, Real("psi"), Int("n")
        devices = ToReal(number) if self.every_number else RealVal(space.devices)
        here = [number >= LEAST_DEVICES] if self.every_number else []
        widths = tuple(RealVal(Fraction(str(width))) for width in space.point.widths)
        steps = RealVal(space.micro_steps)
        cost = form.at(Point(psi, psi / devices, steps, widths))
        values = {
            "resting": cost.resting,
            "sent": cost.sent * psi * (devices - 1) / devices,
            "host": cost.host,
            **dict(zip(SIZES, (psi, devices, steps, *widths), strict=True)),
        }
        said = settle([psi > 0, *here, Not(bound.holds(values))]).said
        if said == "unknown":
            raise refused("--where", bound.text, "a bound that can be decided")
        return said == "unsat"

    @cached_property
    def rows(self) -> list[Row]:
        """The classes of equal cost that serve: every model of the constraints."""
        found: set[tuple[Mode, ...]] = set()
        asked, terms = list(self.constraints.values()), list(self.modes.values())[:3]
        names = {id(term): mode for mode, term in MODES.items()}
        while (answer := ask(asked)).said == "sat":
            values = [answer.values.get(str(term), MODES[Mode.REPLICATED]) for term in terms]
            found.add(tuple(names[id(value)] for value in values))
            asked.append(Or(*(term != value for term, value in zip(terms, values, strict=True))))
        served = {
            form: [modes for modes in placed if modes[:3] in found]
            for form, placed in classes(self.space.regime).items()
        }
        listed = {modes: row for row in self.space.rows for modes in row.modes}
        return [listed[spelled(placed[0])] for placed in served.values() if placed]

    def why_none(self) -> dict[str, int]:
        """As few bounds as no realisable placement meets, and what of realisability they contradict.

        None can be left out. For each, how many placements meet the other bounds, and are realisable
        but perhaps for it.
        """
        asked = {bound.text for bound in self.bounds}
        fixed = {name: c for name, c in self.constraints.items() if name not in asked}
        for count in range(1, len(asked) + 1):
            for few in combinations(sorted(asked), count):
                tried = fixed | {name: self.constraints[name] for name in few}
                core = _core(tried)
                if core:
                    return {name: self._number(tried, name) for name in core}
        raise AssertionError(asked)

    def _number(self, tried: Mapping[str, Any], without: str) -> int:
        """How many of all placements meet the constraints but one."""
        others = And(*(constraint for name, constraint in tried.items() if name != without))
        terms = list(self.modes.values())
        every = product(MODES.values(), repeat=len(terms))
        return sum(substitute(others, *zip(terms, m, strict=True)) is TRUE for m in every)

    def report(self) -> Report:
        """The classes that serve; or, wrong, why none does."""
        space, p = self.space, self.space.policy
        devices = "every number of devices" if self.every_number else counted(space.devices, "device")
        title = (
            f"placements of a batch axis within bounds: {devices}, w = {p.w}, g = {p.g}, K = {p.k}, "
            f"{counted(space.micro_steps, 'micro-step')} a step"
        )
        facts = tuple(bound.text for bound in self.bounds)
        data = {"bounds": list(facts), "devices": None if self.every_number else space.devices}
        if self.rows:
            if self.every_number:
                facts += (f"figures, and what is better here: on {space.devices} devices",)
            table = space.table("placements that serve", self.rows, True)
            serve = {"serve": [row.data() for row in self.rows]}
            return Report("space", title, facts, (table,), data | serve)
        core = self.why_none()
        lines = (
            f"{name} (the others of these alone: {counted(n, 'placement')})" for name, n in core.items()
        )
        none = Section("no placement serves; these cannot hold together", notes=tuple(lines))
        return Report("space", title, facts, (none,), data | {"serve": [], "conflict": core}, False)


def _core(constraints: Mapping[str, Any]) -> list[str]:
    """Constraints that cannot hold together, none of which can be left out; empty if all can."""
    left = dict(constraints)
    if settle(list(left.values())).said == "sat":
        return []
    for name in constraints:
        others = [constraint for other, constraint in left.items() if other != name]
        if settle(others).said == "unsat":
            del left[name]
    return list(left)
