"""What the specification compares, on two axes: at which places which value with which it needs; which
norms and counts are right.

The proof writes these comparisons for any number of axes (`form_needs`); here the specification's own
code is run, and must make the same on two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

from proofs.checking import lines
from proofs.checking.axis_tables import (
    ALIKE,
    EACH,
    UNKNOWN,
    Form,
    Word,
    entries,
    forms,
    places,
    unit,
    words,
)
from proofs.checking.axis_tables import AXES as ALL_AXES
from proofs.checking.lines import NOW, OWNER, STARTS, Computation
from proofs.checking.symbols import FIRSTS
from proofs.trusted.terms import KernelError
from spec.checking.forms import Forms, Need, Rejected
from spec.checking.symbols import Offsets, Symbol
from spec.checking.verdict import require_agreed
from spec.devices.mesh import ALL_WEIGHTS
from spec.devices.operators import IDENTITY, SUM_ALL, add, scale
from spec.language.schedule import Buffer, Kind, Op, Phase, Rest, Schedule
from spec.meaning.semantics import CONTENT, Store, execute
from spec.models.states import MIXED_ADAM, State
from spec.models.training import Loss, Training
from spec.numbers.any_size import any_size

AXES = ALL_AXES[:2]
ALONE, WHOLE = (IDENTITY, IDENTITY), (SUM_ALL, SUM_ALL)
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
        self.compared: list[tuple[Offsets, Need]] = []

    def unmet(self, *needs: Need) -> list[tuple[Need, Any]]:
        return [(need, add(need.has, scale(need.needs, -1))) for need in needs]

    def reason(self, position: Offsets, unmet: Any) -> Rejected | None:
        self.compared += [(position, need) for need, _ in unmet]
        return None

    def require_compared(
        self, name: str, at: Sequence[Offsets], reads: Sequence[tuple[Any, Any]]
    ) -> None:
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
            recorder.require_compared(line.name, [*places(firsts)], [*zip(has, wanted, strict=True)])
        for name, cut in product(STARTS, ((), AXES[:1], AXES[1:], AXES)):
            _require_agreed(name, firsts, cut)
        _require_norms(firsts)
        _require_counts(firsts)


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
    recorder.require_compared(name, at, [(has, {(state, ALONE): 1})])


SUBSETS = [along for n in range(len(AXES) + 1) for along in combinations(AXES, n)]
RESTS = tuple((state, Rest()) for state in State)
CLIPPED = Schedule(AXES, RESTS, (), (), Training(clip=True))
DIVIDED = Schedule(AXES, RESTS, (), (), Training(Loss.TOKEN_MEAN, clip=True))
WRONG_BY = ((EACH, 1), (EACH, -1), (UNKNOWN, 1))


def _require_norms(firsts: tuple[int, ...]) -> None:
    """An update is right of a gradient that is clipped by a norm if that is of the whole gradient: of
    all slices along some axes, summed over these once, where each owner of one has all of it.
    """
    sees, everywhere = {(at, word) for at, _, word in entries(firsts)}, {*places(firsts)}
    checker = forms(firsts, CLIPPED)
    for cut in SUBSETS:
        for summed in (*SUBSETS, (*cut, *cut)):
            _require_norm(set() if summed == cut else everywhere, checker, cut, summed, {})
        _require_norm(everywhere, checker, cut, cut, checker.unclipped())
        owners = [p for p in places(firsts) if all(p[AXES.index(axis)] == OWNER for axis in cut)]
        for word, (symbol, times) in product(_sample(firsts), WRONG_BY):
            off = {term: times * c for term, c in unit(symbol, word).items()}
            seen = any((at, word) in sees for at in owners)
            _require_norm(everywhere if seen else set(), checker, cut, cut, off)


def _require_counts(firsts: tuple[int, ...]) -> None:
    """An update is right of a gradient that is divided by the whole count; by another it is wrong where
    a device sees that it is.
    """
    sees, counted = {(at, word) for at, _, word in entries(firsts)}, Buffer.TOKENS
    checker = forms(firsts, DIVIDED)
    store: Store = {}
    execute(Op(Kind.COUNT, Phase.FORWARD, counted), DIVIDED, checker, store, 1)
    tokens = [Symbol("tokens", NOW, m) for m in range(2)]
    if store[counted, CONTENT][1] != {(tokens[1], ALONE): 1}:
        raise KernelError("a count is another than it is said to be")
    whole: Form = {(symbol, WHOLE): 1 for symbol in tokens}
    _require_count(set(), checker, whole)
    _require_count({*places(firsts)}, checker, add(whole, whole))
    for word, (symbol, times) in product(_sample(firsts), WRONG_BY):
        of = tokens[0] if symbol is EACH else symbol
        off = {term: times * c for term, c in unit(of, word).items()}
        _require_count({at for at in places(firsts) if (at, word) in sees}, checker, add(whole, off))


def _sample(firsts: tuple[int, ...]) -> list[Word]:
    """Some of the words that there are."""
    return [word for i, word in enumerate(words(firsts)) if i % 9 == 0]


def _require_norm(
    wrong: set[Offsets], checker: Forms, cut: tuple[str, ...], summed: tuple[str, ...], off: Form
) -> None:
    """That an update is wrong at these places by the norm of a gradient that is `off`; and that this
    norm is added to those of other weights if it is so nowhere.
    """
    store: Store = {(Buffer.FRESH, CONTENT): (False, add(checker.unclipped(), off))}
    store[Buffer.GRADIENTS, CONTENT] = False, checker.unclipped()
    ops, of_all = (_clip(Buffer.FRESH, cut, (*summed, *more)) for more in ((), (ALL_WEIGHTS,)))
    alone = _wrong(checker, CLIPPED, dict(store), ops) == wrong
    if not alone or _refuses(checker, store, of_all) != bool(wrong):
        raise KernelError(f"a norm of slices along {cut}, summed over {summed}, is judged otherwise")


def _require_count(wrong: set[Offsets], checker: Forms, count: Form) -> None:
    """That an update, which clips too, is wrong at these places by a count, or at none."""
    total = Buffer.TOTAL_TOKENS
    store: Store = {(total, CONTENT): (False, count)}
    store[Buffer.GRADIENTS, CONTENT] = False, {(symbol, WHOLE): 1 for symbol in GRADIENTS}
    ops = [Op(Kind.DIVIDE, Phase.REDUCE, Buffer.GRADIENTS, by=total)]
    found = _wrong(checker, DIVIDED, store, [*ops, *_clip(Buffer.GRADIENTS, (), ())])
    if not (wrong <= found and bool(wrong) == bool(found)):
        raise KernelError("a division by a count is judged otherwise")


def _clip(of: Buffer, cut: tuple[str, ...], summed: tuple[str, ...]) -> list[Op]:
    """The operations by which gradients are clipped."""
    return [
        Op(Kind.SQUARE_NORM, Phase.REDUCE, of, Buffer.NORM, within=cut),
        Op(Kind.ALL_REDUCE, Phase.REDUCE, Buffer.NORM, axes=summed),
        Op(Kind.CLIP, Phase.REDUCE, Buffer.GRADIENTS, by=Buffer.NORM),
    ]


def _refuses(checker: Forms, store: Store, ops: Sequence[Op]) -> bool:
    """Whether some operation is refused."""
    try:
        _execute(checker, CLIPPED, store, ops)
    except Rejected:
        return True
    return False


def _execute(checker: Forms, schedule: Schedule, store: Store, ops: Sequence[Op]) -> None:
    for op in ops:
        execute(op, schedule, checker, store, 0)


def _wrong(checker: Forms, schedule: Schedule, store: Store, ops: Sequence[Op]) -> set[Offsets]:
    """The places where what is applied, after some operations, is not what is needed."""
    _execute(checker, schedule, store, ops)
    has = store[Buffer.GRADIENTS, CONTENT][1]
    unmet = checker.unmet(Need("whole", has, checker.whole_gradient(), ""))
    return {at for at in checker.device_kinds() if any(checker.at(off, at) for _, off in unmet)}
