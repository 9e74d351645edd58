"""The domain in which a schedule's verdict is found: the normal form of every buffer.

Forward, backward and the update have needs. Where one is not met the result is a fault: a value like
any other, that does no harm where nothing is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spec.checking.algebra import Algebra, split
from spec.checking.symbols import (
    BEFORE,
    EACH,
    EVERY,
    Frozen,
    MicroStep,
    Offsets,
    Symbol,
    frozen,
    mentions,
)
from spec.devices.mesh import ALL_WEIGHTS, Axes
from spec.devices.operators import IDENTITY, SUM_ALL, NormalForm, Word, add, scale
from spec.language.schedule import MICRO_STEPS, Monomial, Op
from spec.models.training import Loss, Statistics
from spec.numbers.any_size import Undecided


class Need(NamedTuple):
    """What a rule requires of a value."""

    rule: str
    has: NormalForm
    needs: NormalForm
    words: str  # what the value is
    of: str = ""  # what it has of what is described, if it is made of that


@dataclass(frozen=True)
class Unmet:
    """A need that is not met on a device at a position; when, and in which forms, that was found.

    `difference`: what is too much or missing. `not_known`: why what it has is not, if it is not.
    """

    need: Need
    difference: NormalForm
    position: Offsets
    not_known: str | None
    forms: Forms
    step: int
    updated: bool  # whether the step's update had run
    op: Op | None


Why = Unmet | tuple[str, str]  # or in words: what there is, and what is needed


class Rejected(Exception):
    """A requirement that a schedule does not meet."""

    def __init__(self, rule: str, why: Why, op: Op | None, index: int) -> None:
        super().__init__(rule)
        self.rule, self.why, self.op, self.index = rule, why, op, index


LACKING = "others' samples"
GOT_WRONG = "an earlier operation got it wrong"
OF_OTHERS = "it is the norm of elements that are otherwise where the first device owns them"


@dataclass
class OtherElements:
    """What is found of elements whose owners are at other places from the first device.

    A backward, and a norm, are of all elements. `wrong`: why a need is not met, by step and operation,
    and whether that is not known. `made_of`: what is then wrong is made of, by where the first device
    is. `norms`: what they are of, likewise. `news`: whether that is another than at the last look.
    `steps`: the most that were run.
    """

    wrong: dict[Any, tuple[Rejected, bool]] = field(default_factory=dict)
    made_of: dict[Any, dict[Any, Any]] = field(default_factory=dict)
    norms: dict[Any, dict[Any, Frozen]] = field(default_factory=dict)
    news: bool = False
    steps: int = 0


class Forms(Algebra):
    """Normal forms, and what training makes of them."""

    def __init__(self, *args: Any, others: OtherElements | None = None) -> None:
        super().__init__(*args)
        self.others = others or OtherElements()
        self.times: dict[Any, int] = {}  # that an operation was executed
        self.reasons: dict[Any, Rejected] = {}  # of faults
        self.made: dict[Any, Symbol] = {}  # faults, by what they are made of

    def require_a_slice(self, value: NormalForm, axes: Axes) -> None:
        unknown = split(value)[1]
        for position in self.device_kinds():
            outside = any(
                place != 0 for axis, place in zip(self.axes, position, strict=True) if axis in axes
            )
            if outside and not self.at(unknown, position):
                into = self.op.target.value if self.op else "a place"
                own = ", ".join(f'"{axis}"' for axis in axes)
                has = "the values it writes are whole"
                along = f"slices along {' x '.join(axes)}"
                needs = f'{along}, as there is room for in {into}: within = [{own}], or op = "keep"'
                raise Rejected("room", (has, needs), self.op, self.op_index)

    def forward(self, view: NormalForm, axes: Axes) -> NormalForm:
        """The parameters that it reads, and for each axis along which others' samples lack, a term."""
        lacking = [self.symbol(LACKING, 0, i) for i, axis in enumerate(self.axes) if axis not in axes]
        for term in lacking:
            view = add(view, term)
        return view

    def of_group(self, activations: NormalForm, axes: Axes) -> NormalForm:
        along = tuple(a for a in axes if a in self.axes)
        if not along:
            return activations
        read, lacking = self._samples(activations)
        needs = (self._fresh(read, "the activations are", "those of "),)
        of_all = self.forward(read, tuple(a for a in self.axes if a in along or a not in lacking))
        return self._all_or_nothing(needs, of_all, f"activations over {along}", activations)

    def _samples(self, activations: NormalForm) -> tuple[NormalForm, Axes]:
        """The parameters that activations come from, and the axes along which others' samples lack."""
        read = {term: c for term, c in activations.items() if term[0].kind != LACKING}
        lacking = (self.axes[s.which] for s, _ in activations if s.kind == LACKING)
        return read, tuple(lacking)

    def _fresh(self, view: NormalForm, words: str, of: str = "") -> Need:
        return Need("fresh", view, self.symbol("weight", self.step), words, of)

    def gradient(
        self,
        view: NormalForm,
        activations: NormalForm,
        micro_step: MicroStep,
        axes: Axes,
        tied: bool = False,
    ) -> NormalForm:
        read, lacking = self._samples(activations)
        for axis in axes:
            if axis in lacking:
                read = self.unknown(f"a device has only its own samples along {axis}")
        needs = (
            self._fresh(view, "the parameters it reads are"),
            self._fresh(read, "its activations are", "those of "),
        )
        computed = self.symbol("tied" if tied else "gradient", self.step, micro_step)
        for axis in axes:
            computed = self.sum(computed, axis)
        made_of = (computed, view, read)
        return self._all_or_nothing(needs, computed, "tied" if tied else "gradient", *made_of)

    def _all_or_nothing(
        self, needs: Sequence[Need], result: NormalForm, what: str, *made_of: NormalForm
    ) -> NormalForm:
        """A result that needs all elements: what is missing at one place is so on every device."""
        unmet, key = self.unmet(*needs), self._this()
        reasons = (self.reason(position, unmet) for position in self.device_kinds() if unmet)
        reason = next(filter(None, reasons), None)
        others, roots = self.others, tuple(self.roots.items())
        if reason is not None:
            first, not_known = others.wrong.get(key, (reason, False))
            not_known |= any(split(self.simplified(form))[1] for form in made_of)
            others.news |= others.wrong.get(key) != (first, not_known)
            others.wrong[key] = first, not_known
        if key not in others.wrong:
            return result
        reason, not_known = others.wrong[key]
        of_all, here = others.made_of.setdefault(key, {}), _identity(made_of)
        others.news |= of_all.get(roots) != here
        of_all[roots] = here
        fault = self._fault(reason, what, frozenset(of_all.items()), made_of)
        return add(fault, self.unknown(GOT_WRONG)) if not_known else fault

    def _this(self) -> tuple[Any, ...]:
        """This execution of an operation, whichever elements are looked at."""
        operation = (self.step, self.micro_step, self.op_index)
        self.times[operation] = self.times.get(operation, 0) + 1
        return (*operation, self.times[operation])

    def sum(self, value: NormalForm, axis: str) -> NormalForm:
        if axis == ALL_WEIGHTS:
            self._require_norm(value)
        return super().sum(value, axis)

    def _require_norm(self, square: NormalForm) -> None:
        """Refuse what is not, on every device, the square norm that other weights' are added to."""
        words = "the square norm that it adds to those of other weights is"
        need = Need("whole", square, self.square_norm(self.unclipped()), words)
        self.require(need, self.device_kinds())

    def square_norm(self, gradient: NormalForm) -> NormalForm:
        """The norm of all elements, wherever their owners are from the first device."""
        norms = self.others.norms.setdefault(self._this(), {})
        roots, of = tuple(self.roots.items()), frozen(self.simplified(gradient))
        self.others.news |= norms.get(roots, next(iter(norms.values()), of)) != of
        norms[roots] = of
        alike = len({*norms.values()}) == 1
        return super().square_norm(gradient) if alike else self.unknown(OF_OTHERS)

    def _fault(
        self, reason: Rejected, what: str, identity: Any, made_of: Sequence[NormalForm]
    ) -> NormalForm:
        """What an operation makes of values that do not meet its needs: one value for each of them.

        `identity`: which values these are.
        """
        symbols = (symbol for form in made_of for symbol, _ in form)
        if self.micro_step == EACH and any(mentions(symbol, BEFORE) for symbol in symbols):
            raise Undecided("what a micro-step makes of what earlier ones left is wrong for some of it")
        key = (self.step, what, identity)
        fault = Symbol("fault", self.step, self.op_index, (what, self.micro_step))
        symbol = self.made.setdefault(key, fault)
        self.reasons.setdefault((symbol.step, symbol.which, what), reason)
        return {(symbol, (IDENTITY,) * len(self.axes)): 1}

    def tokens(self, micro_step: MicroStep) -> NormalForm:
        return self.symbol("tokens", self.step, micro_step)

    def statistic(self, micro_step: MicroStep) -> NormalForm:
        return self.symbol("statistic", self.step, micro_step)

    def _indices(self) -> Iterable[MicroStep]:
        """Those of all micro-steps."""
        return range(self.micro_steps) if self.one_by_one else (EVERY,)

    def moved_on(self) -> NormalForm:
        """A single device's statistics after the step."""
        form = self.symbol("statistics", self.step)
        for m in self._indices():
            added = self.statistic(m)
            for axis in self.axes:
                of_all = self.training.statistics is Statistics.ALL
                added = self.sum(added, axis) if of_all else self.first(added, axis)
            if self.training.statistics is Statistics.ALL:
                added = self.scale(added, Monomial(powers=tuple((axis, -1) for axis in self.axes)))
            form = add(form, added)
        return form

    def whole_gradient(self) -> NormalForm:
        """The gradient that a single device applies."""
        form = self.unclipped()
        return self.clip(form, self.square_norm(form)) if self.training.clip else form

    def unclipped(self) -> NormalForm:
        """The same before it is clipped."""
        form = self._every("gradient")
        form = add(form, self._every("tied")) if self.training.tied else form
        if self.training.loss is Loss.MEAN:
            names = (*self.axes, MICRO_STEPS)
            form = self.scale(form, Monomial(powers=tuple((name, -1) for name in names)))
        if self.training.loss is Loss.TOKEN_MEAN:
            form = self.divide(form, self.whole_count())
        return form

    def whole_count(self) -> NormalForm:
        """The tokens of all samples of the step."""
        return self._every("tokens")

    def _every(self, kind: str) -> NormalForm:
        """The sum of what all devices have of a kind in all micro-steps."""
        word: Word = (SUM_ALL,) * len(self.axes)
        return {(Symbol(kind, self.step, m), word): 1 for m in self._indices()}

    def update(
        self, weight: NormalForm, moment: NormalForm, gradient: NormalForm
    ) -> tuple[NormalForm, NormalForm]:
        """The next ones on devices where the needs are met; elsewhere faults.

        A fault is a value like any other: it does no harm where nothing is made of it.
        """
        now_weight, now_moment = (self.symbol(s, self.step) for s in ("weight", "moment"))
        state = (Need("current", moment, now_moment, "the moments are"),)
        unmet = self.unmet(
            Need("current", weight, now_weight, "the weights it updates are"),
            *(state if self.policy.k > 0 else ()),
            Need("whole", gradient, self.whole_gradient(), "the gradients it applies are"),
        )
        next_weight, next_moment = (self.symbol(s, self.step + 1) for s in ("weight", "moment"))
        reasons = {p: self.reason(p, unmet) for p in self.device_kinds()} if unmet else {}
        wrong = next(filter(None, reasons.values()), None)
        self.updated = True
        unknown = [part for need, _ in unmet if (part := split(need.has)[1])]
        spoiled = [p for p in reasons if any(self.at(part, p) for part in unknown)]

        def where_met(right: NormalForm, what: str) -> NormalForm:
            if wrong is None:
                return right
            made_of = (weight, moment, gradient)
            fault = self._fault(wrong, what, _identity(made_of), made_of)
            if all(reasons.values()) and not spoiled:
                return fault
            form: NormalForm = {}
            for position, no in reasons.items():
                here = right if no is None else fault
                here = add(here, self.unknown(GOT_WRONG)) if position in spoiled else here
                form = add(form, self._only_at(here, position))
            return self.simplified(form)

        return where_met(next_weight, "weight"), where_met(next_moment, "moment")

    def require(self, need: Need, positions: Iterable[Offsets]) -> None:
        """Refuse a need that is not met on a device of these kinds: by what first went wrong."""
        unmet = self.unmet(need)
        for position in positions if unmet else ():
            no = self.reason(position, unmet)
            if no:
                raise no

    def unmet(self, *needs: Need) -> list[tuple[Need, NormalForm]]:
        """The needs that are not met everywhere, each with what is too much or missing."""
        found = [(need, self.simplified(add(need.has, scale(need.needs, -1)))) for need in needs]
        return [(need, difference) for need, difference in found if difference]

    def reason(self, position: Offsets, unmet: Sequence[tuple[Need, NormalForm]]) -> Rejected | None:
        """Why the first need that is not met on such a device is not: what first went wrong."""
        for need, difference in unmet:
            here = self.at(difference, position)
            if here:
                fault = next(filter(None, (_first_fault(s) for s, _ in here)), None)
                if fault:
                    return self.reasons[fault.step, fault.which, fault.made_of[0]]
                unknown = next((s.made_of for s, _ in here if not s.known), None)
                at = (self, self.step, self.updated, self.op)
                why = Unmet(need, difference, position, unknown, *at)
                return Rejected(need.rule, why, self.op, self.op_index)
        return None


def _identity(forms: Sequence[NormalForm]) -> Any:
    """By which values are told apart."""
    return tuple(frozenset(form.items()) for form in forms)


def _first_fault(part: Any) -> Symbol | None:
    """A fault in a symbol, or in what it is made of."""
    if isinstance(part, Symbol):
        if part.kind == "fault":
            return part
        part = part.made_of, part.multipliers
    inner = part if isinstance(part, tuple) else ()
    return next(filter(None, map(_first_fault, inner)), None)
