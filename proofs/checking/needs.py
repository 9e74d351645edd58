"""What the specification compares, on two axes: at which places which value with which it needs.

The proof writes these comparisons for any number of axes (`form_needs`); here the specification's own
code is run, and must make the same on two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from proofs.checking import lines
from proofs.checking.axis_tables import ALIKE, EACH, entries, forms, places, unit, words
from proofs.checking.axis_tables import AXES as ALL_AXES
from proofs.checking.lines import NOW, OWNER, STARTS, Computation
from proofs.checking.symbols import FIRSTS
from proofs.trusted.terms import KernelError
from spec.checking.forms import Forms, Need, Rejected
from spec.checking.verdict import require_agreed
from spec.checking.words import Position, Symbol
from spec.devices.operators import KEEP, SUM, add, scale
from spec.language.schedule import Rest, Schedule
from spec.models.states import MIXED_ADAM, State
from spec.numbers.any_size import any_size

AXES = ALL_AXES[:2]
ALONE, WHOLE = (KEEP, KEEP), (SUM, SUM)
STATES = {step: [Symbol(kind, step) for kind in ("weight", "moment")] for step in (NOW, NOW + 1)}
GRADIENTS = [Symbol("gradient", NOW, m) for m in range(2)]
# what each value that is read has to be; the whole gradient is every contribution's sum
NEEDS: dict[Computation, list[list[Symbol]]] = {
    lines.BACKWARD: [STATES[NOW][:1], STATES[NOW][:1]],
    lines.UPDATE: [STATES[NOW][:1], STATES[NOW][1:], GRADIENTS],
}
MAKES = {lines.BACKWARD: GRADIENTS[:1], lines.UPDATE: STATES[NOW + 1]}


class Recorder(Forms):
    """The checker on two axes. Its comparisons are recorded, and taken for equal."""

    def __init__(self, firsts: Sequence[int], schedule: Schedule) -> None:
        mesh = {axis: any_size(axis) for axis in AXES}
        roots = dict(zip(AXES, firsts, strict=True))
        super().__init__(schedule, mesh, 2, MIXED_ADAM, None, roots, True)
        self.compared: list[tuple[Position, Need]] = []

    def unmet(self, *needs: Need) -> list[tuple[Need, Any]]:
        return [(need, add(need.has, scale(need.needs, -1))) for need in needs]

    def reason(self, position: Position, unmet: Any) -> Rejected | None:
        self.compared += [(position, need) for need, _ in unmet]
        return None

    def require(self, name: str, at: Sequence[Position], reads: Sequence[tuple[Any, Any]]) -> None:
        """That each value is compared at each of these places with what it needs."""
        compared = [(position, need.has, need.needs) for position, need in self.compared]
        expected = [(position, has, needs) for position in at for has, needs in reads]
        if len(compared) != len(expected) or not all(each in compared for each in expected):
            raise KernelError(f"{name} compares otherwise on two axes")


def require_needs() -> None:
    """That on two axes lines, and the ends of steps, compare and compute what the proof writes.

    Raises KernelError.
    """
    for firsts in product(FIRSTS, repeat=2):
        _require_compared(firsts)
        for line, needs in NEEDS.items():
            recorder = Recorder(firsts, Schedule(AXES, (), (), ()))
            has = [{(Symbol("wrong", NOW, i), ALONE): 1} for i, _ in enumerate(needs)]
            made = line.of(recorder, *has)
            if list(made) != [{(symbol, ALONE): 1} for symbol in MAKES[line]]:
                raise KernelError(f"{line.name} computes another value than it is said to")
            wanted = [{(s, WHOLE if s in GRADIENTS else ALONE): 1 for s in each} for each in needs]
            recorder.require(line.name, [*places(firsts)], [*zip(has, wanted, strict=True)])
        for name, cut in product(STARTS, ((), AXES[:1], AXES[1:], AXES)):
            _require_agreed(name, firsts, cut)


def _require_compared(firsts: tuple[int, ...]) -> None:
    """A need is unmet where a device sees anything of a difference; also if the one before is met."""
    checker, sees = forms(firsts), {(at, word) for at, _, word in entries(firsts)}
    for word, times in product(words(firsts), (1, -1)):
        symbol = EACH if times == 1 else ALIKE[0]
        off = {term: times * c for term, c in unit(symbol, word).items()}
        needs = Need("fresh", {}, {}, ""), Need("fresh", off, {}, "")
        unmet = checker.unmet(*needs)
        if unmet != [(needs[1], off)]:
            raise KernelError("a difference is not seen to be one")
        for at in places(firsts):
            if (checker.reason(at, unmet) is not None) != ((at, word) in sees):
                raise KernelError("a difference is judged otherwise than by what a device sees")


def _require_agreed(name: str, firsts: tuple[int, ...], cut: tuple[str, ...]) -> None:
    """At the end of a step: what is kept is the updated state, where slices are on their owners."""
    place, sharded = STARTS[name]
    if "Zero" in name or sharded != bool(cut):
        return
    free = {State.ACTIVATIONS: Rest(AXES)}
    schedule = Schedule(AXES, tuple((s, free.get(s, Rest(cut))) for s in State), (), ())
    recorder, has = Recorder(firsts, schedule), {(Symbol("wrong", NOW), ALONE): 1}
    require_agreed(recorder, {place: (False, has)}, schedule)
    recorder.compared = [each for each in recorder.compared if each[1].has is has]
    at = [p for p in places(firsts) if all(p[AXES.index(axis)] == OWNER for axis in cut)]
    state = STATES[NOW + 1]["Moment" in name]
    recorder.require(name, at, [(has, {(state, ALONE): 1})])
