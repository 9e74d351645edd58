"""E9: each named strategy's derived schedule satisfies the conditions, for every mesh size.

The schedule is executed by the specification's semantics on symbols: any number of devices along
each axis, any number of micro-steps, any element and owner, any contributions. Every value of a
gradient comes with a theorem that says what it is; sums are moved past each other by induction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from proofs.claim import claim
from proofs.tools.sums import Sum, total
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntSort, RealSort, RealVal
from spec.checking.verdict import check
from spec.derivation.derive import derive
from spec.devices.mesh import Axes, Device
from spec.devices.operators import PerDevice
from spec.language.schedule import MICRO_STEPS, RESTING, Buffer, Kind, Schedule
from spec.meaning.semantics import CONTENT, Devices, Store, execute, initial
from spec.models.states import State
from spec.numbers.any_size import Comparison, any_size
from spec.plans.strategies import STRATEGIES

INT, REAL = IntSort(), RealSort()
MICRO = "m"  # the index of micro-steps, beside the axes


@claim("E9")
def named_strategies_are_accepted(k: Kernel) -> tuple[Theorem, ...]:
    """DP, ZeRO-1/2/3, FSDP (both settings), HSDP, ZeRO-Offload and fused updates are right.

    For every mesh size and number of micro-steps (one, for fused updates): what is read is current,
    what is applied is every device's and micro-step's contribution once, and every resting copy is
    the updated one. (Claim E9)
    """
    proved: dict[Schedule, Theorem] = {}
    for name, placement in STRATEGIES.items():
        schedule = derive(placement)
        if schedule not in proved:
            proved[schedule] = accepted(k.part(name.replace("-", "_")), schedule)
    return tuple(proved.values())


def accepted(k: Kernel, schedule: Schedule) -> Theorem:
    """A schedule is accepted, and satisfies the conditions for every mesh size."""
    micro_steps = (1, 2, any_size(MICRO_STEPS)) if schedule.finish else (1,)
    for mesh in _meshes(schedule.axes):
        for m in micro_steps:
            comparison = Comparison()
            verdict = check(schedule, mesh, m, comparison=comparison)
            if not verdict.accepted or any(comparison.apart.values()):
                raise KernelError(f"{k.claim}: rejected on {mesh}: {verdict.reason}")
    return Execution(k, schedule).satisfies_the_conditions()


def _meshes(axes: Axes) -> Iterator[dict[str, Any]]:
    """Every mesh: one device along an axis, two, or any number."""
    for sizes in product((1, 2, None), repeat=len(axes)):
        yield {a: any_size(a) if n is None else n for a, n in zip(axes, sizes, strict=True)}


@dataclass(frozen=True)
class Known:
    """A gradient's value on each device, and the theorem that says what it is.

    On the owners along `owned` it is the sum of all contributions over the indices in `order`, the
    first outermost; on other devices anything.
    """

    value: PerDevice
    order: tuple[str, ...]
    owned: Axes
    fact: Theorem | None  # none where the value is a contribution itself

    @property
    def facts(self) -> list[Theorem]:
        return [] if self.fact is None else [self.fact]

    def __call__(self, device: Device) -> Any:
        return self.value(device)


class Execution(Devices):
    """The schedule on symbols."""

    def __init__(self, k: Kernel, schedule: Schedule) -> None:
        self.k, self.schedule = k, schedule
        self.indices = (MICRO, *schedule.axes)
        self.bound = {i: k.fixed(f"{i}_count", INT) for i in self.indices}
        self.at = {i: k.constant(f"{i}_at", INT) for i in self.indices}  # a device and a micro-step
        owner = {a: k.fixed(f"{a}_owner", INT) for a in schedule.axes}
        self.sizes = k.suppose("sizes", [], And(*(n >= 1 for n in self.bound.values())))
        self.contribution = k.function("contribution", *(INT for _ in self.indices), REAL)
        self.weight, self.moment = k.fixed("weight", REAL), k.fixed("moment", REAL)
        self.next_weight = k.function("next_weight", REAL, REAL, REAL, REAL)
        self.next_moment = k.function("next_moment", REAL, REAL, REAL, REAL)
        self.nests: dict[tuple[str, ...], Sum] = {}
        self.read: list[PerDevice] = []
        self.applied: list[Known] = []
        self.names = 0
        super().__init__(
            {a: self.bound[a] for a in schedule.axes},
            owner,
            If,
            self._anything,
        )

    def _anything(self) -> PerDevice:
        """An arbitrary value of each device, another one at each call."""
        value = self.k.function(self.name("anything"), *(INT for _ in self.schedule.axes), REAL)
        return lambda device: value(*(device[a] for a in self.schedule.axes))

    def name(self, words: str) -> str:
        self.names += 1
        return f"{words}_{self.names}"

    def device(self) -> dict[str, Any]:
        return {a: self.at[a] for a in self.schedule.axes}

    # ---------------------------------------------------------------- nested sums
    def nest(self, order: tuple[str, ...], at: Mapping[str, Any] | None = None) -> Any:
        """Contributions summed over the indices in `order`, at the values of the other indices."""
        here = {**self.at, **(at or {})}
        if not order:
            return self.contribution(*(here[i] for i in self.indices))
        s = self.nest_sum(order)
        return s(*(here[i] for i in self._free(order)), self.bound[order[0]])

    def _free(self, order: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(i for i in self.indices if i not in order)

    def nest_sum(self, order: tuple[str, ...]) -> Sum:
        """The same as a sum over the first index, up to any bound."""
        if order not in self.nests:
            params = [self.at[i] for i in self._free(order)]
            term = self.nest(order[1:])
            self.nests[order] = total(
                self.k, "over_" + "_".join(order), params, self.at[order[0]], term
            )
        return self.nests[order]

    def exchanged(self, order: tuple[str, ...]) -> Theorem:
        """The first two sums of a nest may be taken in the other order."""
        a, b, rest = order[0], order[1], order[2:]
        k, at, name = self.k, self.at, "_".join(order)
        inner, rows = self.nest_sum((b, *rest)), self.nest_sum(order)
        columns, target = self.nest_sum((a, *rest)), self.nest_sum((b, a, *rest))
        upto = k.constant(f"upto_{name}", INT)
        params = [at[i] for i in self._free(order)]
        helper = total(
            k,
            f"columns_{name}",
            [*params, upto],
            at[b],
            columns(*(at[i] for i in self._free((a, *rest))), upto),
        )
        u, ai, bi = str(upto), str(at[a]), str(at[b])
        one_more = k.induct(
            f"one_more_{name}",
            at[b],
            helper(*params, upto + 1, at[b])
            == helper(*params, upto, at[b]) + substitute(inner.upto(at[b]), (at[a], upto)),
            given=[upto >= 0],
            base=[helper.start, helper.start.at(**{u: upto + 1}), inner.start.at(**{ai: upto})],
            step=[
                helper.next,
                helper.next.at(**{u: upto + 1}),
                inner.next.at(**{ai: upto}),
                columns.next.at(**{ai: upto}),
            ],
        )
        none = k.induct(
            f"none_{name}",
            at[b],
            helper(*params, 0, at[b]) == 0,
            base=[helper.start.at(**{u: 0})],
            step=[helper.next.at(**{u: 0}), columns.start],
        )
        moved = k.induct(
            f"moved_{name}",
            at[a],
            rows.upto(at[a]) == helper(*params, at[a], self.bound[b]),
            base=[rows.start, none.at(**{bi: self.bound[b]}), self.sizes],
            step=[rows.next, one_more.at(**{u: at[a], bi: self.bound[b]}), self.sizes],
        )
        same = k.induct(
            f"same_{name}",
            at[b],
            helper(*params, self.bound[a], at[b]) == target.upto(at[b]),
            base=[helper.start.at(**{u: self.bound[a]}), target.start],
            step=[helper.next.at(**{u: self.bound[a]}), target.next],
        )
        return k.prove(
            f"exchanged_{name}",
            self.nest(order) == self.nest((b, a, *rest)),
            uses=[moved.at(**{ai: self.bound[a]}), same.at(**{bi: self.bound[b]}), self.sizes],
        )

    def reordered(self, order: tuple[str, ...], target: tuple[str, ...]) -> Theorem:
        """Nested sums are the same in any order: each of `target` in turn is moved outwards."""
        k, outer = self.k, order[0]
        name = "_".join(("of", *order, "to", *target))
        if outer == target[0]:
            return self._under(order, target, self.reordered(order[1:], target[1:]))
        uses, here = [], order
        if order[1] != target[0]:
            others = tuple(i for i in order[1:] if i != target[0])
            here = (outer, target[0], *others)
            uses.append(self._under(order, here, self.reordered(order[1:], here[1:])))
        uses.append(self.exchanged(here))
        here = (here[1], outer, *here[2:])
        if here != target:
            uses.append(self.reordered(here, target))
        return k.prove(f"reordered_{name}", self.nest(order) == self.nest(target), uses=uses)

    def _under(self, order: tuple[str, ...], target: tuple[str, ...], inner: Theorem) -> Theorem:
        """Sums of terms that are the same are the same."""
        k, i = self.k, self.at[order[0]]
        old, new = self.nest_sum(order), self.nest_sum(target)
        name = "_".join((*order, "as", *target))
        same = k.induct(
            f"alike_{name}",
            i,
            old.upto(i) == new.upto(i),
            base=[old.start, new.start],
            step=[old.next, new.next, inner],
        )
        return k.prove(
            f"whole_{name}",
            self.nest(order) == self.nest(target),
            uses=[same.at(**{str(i): self.bound[order[0]]}), self.sizes],
        )

    # -------------------------------------------------------------------- values
    def _owns(self, axes: Axes, device: Device) -> Any:
        return And(*(device[a] == self.owner[a] for a in axes))

    def _is(self, value: Any, order: tuple[str, ...], owned: Axes) -> Any:
        return Implies(self._owns(owned, self.device()), value == self.nest(order))

    def known(self, value: PerDevice, order: tuple[str, ...], owned: Axes, *uses: Theorem) -> Known:
        """A value, once it is proved what it is."""
        claim = self._is(value(self.device()), order, owned)
        return Known(value, order, owned, self.k.prove(self.name("value"), claim, uses=uses))

    def gradient(
        self, view: PerDevice, activations: PerDevice, micro_step: int, axes: Axes, tied: bool = False
    ) -> Known:
        if axes or tied:
            raise KernelError(f"{self.k.claim}: each device does its own samples, once")
        self.read += [view, activations]
        value: PerDevice = lambda d: self.contribution(  # noqa: E731
            self.at[MICRO], *(d[a] for a in self.schedule.axes)
        )
        return Known(value, (), (), None)

    def sum(self, value: Any, axis: str) -> Known:
        assert isinstance(value, Known) and axis not in value.owned
        k, i = self.k, self.at[axis]
        others = [x for x in self.indices if x != axis and (x != MICRO or x not in value.order)]
        params = [self.at[x] for x in others]
        s = total(k, self.name("sum"), params, i, value(self.device()))
        nest = self.nest_sum((axis, *value.order))
        owns = self._owns(value.owned, self.device())
        fact = k.induct(
            self.name("summed"),
            i,
            Implies(owns, s.upto(i) == nest.upto(i)),
            base=[s.start, nest.start],
            step=[s.next, nest.next, *value.facts],
        )

        def everywhere(device: Device) -> Any:
            here = {**self.at, **device}
            return s(*(here[x] for x in others), self.bound[axis])

        return self.known(
            everywhere,
            (axis, *value.order),
            value.owned,
            fact.at(**{str(i): self.bound[axis]}),
            self.sizes,
        )

    def replace(self, old: Any, new: Any, axes: Axes, shift: int = 0) -> Any:
        value = super().replace(old, new, axes, shift)
        if isinstance(new, Known) and axes:
            owned = new.owned + tuple(a for a in axes if a not in new.owned)
            return self.known(value, new.order, owned, *new.facts)
        return value

    def add(self, value: Any, other: Any) -> Any:
        assert isinstance(other, Known)
        self.added = other
        return lambda device: value(device) + other(device)

    def forward(self, view: PerDevice, axes: Axes) -> PerDevice:
        self.read.append(view)
        return view

    def update(
        self, weight: PerDevice, moment: PerDevice, gradient: Any
    ) -> tuple[PerDevice, PerDevice]:
        self.applied.append(gradient)

        def after(function: Any) -> PerDevice:
            return lambda d: function(weight(d), moment(d), gradient(d))

        return after(self.next_weight), after(self.next_moment)

    # ----------------------------------------------------------------- execution
    def satisfies_the_conditions(self) -> Theorem:
        """Fresh reads and whole gradients, and a step ends as one begins, with the next weights.

        So, weights and moments being any, it is so in every step.
        """
        store = self._executed()
        k, owned = self.k, self.schedule.axes
        (gradient,) = self.applied
        ops = self.schedule.ops
        (axes,) = (op.within for op in ops if op.kind is Kind.UPDATE)
        canonical = self.indices if self.schedule.finish else owned
        uses = gradient.facts
        order = gradient.order
        if sorted(order) != sorted(canonical):
            raise KernelError(f"{k.claim}: applies a sum over {order}, not over {canonical}")
        if order != canonical:
            uses.append(self.reordered(order, canonical))
        device = self.device()
        whole = k.prove(
            "applied_gradients_are_whole",
            gradient(device) == self.nest(canonical),
            given=[self._owns(axes, device)] if axes else [],
            uses=uses,
        )
        fresh = And(*(v(device) == self.weight for v in self.read))
        expected = [
            f(self.weight, self.moment, self.nest(canonical))
            for f in (self.next_weight, self.next_moment)
        ]
        next_weight, next_moment = (lambda _, value=value: value for value in expected)
        begins = initial(self.schedule, self, next_weight, next_moment)
        kept = {place: value for place, value in begins.items() if place[0] in RESTING}
        if any(store.get(place, (None, None))[0] is not host for place, (host, _) in kept.items()):
            raise KernelError(f"{k.claim}: a step does not end with the buffers that one begins with")
        again = (
            Implies(
                self._owns(self.schedule.slices(place[0]), device),
                store[place][1](device) == value(device),
            )
            for place, (_, value) in kept.items()
        )
        # what the owners apply is what every copy gets
        at_owners = whole.at(**{str(self.at[a]): self.owner[a] for a in axes})
        return k.prove(
            "reads_are_fresh_gradients_whole_and_the_next_step_begins_alike",
            And(fresh, *again),
            uses=[at_owners],
        )

    def _executed(self) -> Store:
        """The store after one step; micro-steps by recursion."""
        constant: list[PerDevice] = [lambda _: self.weight, lambda _: self.moment]
        store = initial(self.schedule, self, *constant)
        # a later step begins with anything in what does not rest
        passing = {place: (False, self._anything()) for place in store if place[0] not in RESTING}
        store |= passing
        if not self.schedule.finish:
            self._run(self.schedule.micro_step, store)
            return store
        m = self.at[MICRO]
        params = [self.at[a] for a in self.schedule.axes]
        host, _ = store[Buffer.GRADIENTS, CONTENT]
        untouched = {p: v for p, v in store.items() if p[0] in RESTING}
        del untouched[Buffer.GRADIENTS, CONTENT]

        def one_micro_step(previous: Any) -> Any:
            before: PerDevice = lambda d: previous(*(d[a] for a in self.schedule.axes))  # noqa: E731
            store.update(passing)
            store[Buffer.GRADIENTS, CONTENT] = (host, before)
            self._run(self.schedule.micro_step, store)
            if any(store.get(p) != v for p, v in untouched.items()):
                raise KernelError(f"{self.k.claim}: a micro-step changes more than gradients")
            return store[Buffer.GRADIENTS, CONTENT][1](self.device())

        kept, start, then = self.k.recursion("kept", params, m, RealVal(0), one_micro_step)
        added = self.added
        rest = self.schedule.rest(State.GRADIENTS)
        nest = self.nest_sum((MICRO, *added.order))
        owns = self._owns(rest.sharded, self.device())
        fact = self.k.induct(
            "kept_gradients_accumulate",
            m,
            Implies(owns, kept(*params, m) == nest.upto(m)),
            base=[start, nest.start],
            step=[then, nest.next, *added.facts],
        )
        value: PerDevice = lambda d: kept(  # noqa: E731
            *(d[a] for a in self.schedule.axes), self.bound[MICRO]
        )
        accumulated = self.known(
            value,
            (MICRO, *added.order),
            rest.sharded,
            fact.at(**{str(m): self.bound[MICRO]}),
            self.sizes,
        )
        store[Buffer.GRADIENTS, CONTENT] = (host, accumulated)
        self._run(self.schedule.finish, store)
        return store

    def _run(self, ops: Any, store: Store) -> None:
        for op in ops:
            execute(op, self.schedule, self, store, 0)
