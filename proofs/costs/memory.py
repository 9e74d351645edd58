"""M1-M9: what each strategy needs in memory, derived from its placement.

The specification's own functions are evaluated on symbols: Psi, N and the bytes w, g, K per
element. Padded sizes have a shard of any number c of elements with Psi <= c N < Psi + N.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

from proofs.checking.matching_schedules import accepted_schedules
from proofs.claim import claim
from proofs.costs.buffer_lives import lives, require_zeros
from proofs.costs.last_uses import buffers_are_used_until_then
from proofs.costs.passing import others_hold_by_hand
from proofs.costs.policies import require_listed
from proofs.costs.turns import slices_are_cells, units_go_through_rounds
from proofs.costs.units import units_take_turns
from proofs.derivation.phases import require_phases
from proofs.tools.encoding import Symbolic, realisable_placements
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And, If, IntSort, RealSort, RealVal
from spec.costs.memory import (
    Sizes,
    ledger,
    live_bytes,
    live_results,
    total_resting,
    transient,
)
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Kind, Op, Schedule, Span
from spec.meaning.semantics import updates_on_host
from spec.models.states import BytePolicy, State
from spec.numbers.arithmetic import DIVISIBLE
from spec.plans.placement import BATCH
from spec.plans.strategies import STRATEGIES


class Symbols:
    """Psi parameters, N devices, K optimizer bytes, as real variables; and the padded shard c."""

    def __init__(self, k: Kernel) -> None:
        self.psi, self.n, self.k, self.c = k.reals("psi n k c")
        self.policy = BytePolicy(2, 2, self.k)  # mixed precision: 2-byte weights and gradients
        self.sizes = [self.psi > 0, self.n >= 1, self.k >= 0]
        self.covers = self.c * self.n >= self.psi
        self.less_than_n_padding = self.c * self.n < self.psi + self.n

    def rests(self, strategy: str, padded: bool = False) -> Any:
        """Resting bytes of a strategy, from its placement."""
        arithmetic = Symbolic([(self.psi, self.c)] if padded else [])
        sizes = Sizes(self.psi, {BATCH: self.n}, self.policy, None, arithmetic)
        return total_resting(schedule_of(STRATEGIES[strategy]), sizes)


def _rests(kernel: Kernel, strategy: str, formula: Any, padded: Any) -> tuple[Theorem, ...]:
    """The derived bytes are the formula, in the divisible case and with padding."""
    s = Symbols(kernel)
    some_devices = [s.n >= 1] if STRATEGIES[strategy] != STRATEGIES["dp"] else []
    name = f"{strategy}_rests_in"
    return (
        kernel.prove(f"{name}_its_formula", s.rests(strategy) == formula(s), given=some_devices),
        kernel.prove(f"{name}_its_padded_formula", s.rests(strategy, True) == padded(s)),
    )


@claim("M1")
def data_parallelism_rests_in_all_states(k: Kernel) -> tuple[Theorem, ...]:
    """Data parallelism rests in (4+K)Psi bytes. (Claim M1; ZeRO 1910.02054 section 3.1)"""
    require_listed(k.claim)
    return _rests(k, "dp", lambda s: (4 + s.k) * s.psi, lambda s: (4 + s.k) * s.psi)


@claim("M2")
def zero1_divides_the_optimizer(k: Kernel) -> tuple[Theorem, ...]:
    """ZeRO-1 rests in 4Psi + K ceil(Psi/N) bytes. (Claim M2; ZeRO section 5.1)"""
    return _rests(k, "zero1", lambda s: 4 * s.psi + s.k * s.psi / s.n, lambda s: 4 * s.psi + s.k * s.c)


@claim("M3")
def zero2_divides_gradients_too(k: Kernel) -> tuple[Theorem, ...]:
    """ZeRO-2 rests in 2Psi + (2+K) ceil(Psi/N) bytes. (Claim M3; ZeRO section 5.2)"""
    return _rests(
        k,
        "zero2",
        lambda s: 2 * s.psi + (2 + s.k) * s.psi / s.n,
        lambda s: 2 * s.psi + (2 + s.k) * s.c,
    )


@claim("M4")
def zero3_divides_everything(k: Kernel) -> tuple[Theorem, ...]:
    """ZeRO-3 rests in (4+K) ceil(Psi/N) bytes. (Claim M4; ZeRO section 5.3; abstract)"""
    return _rests(k, "zero3", lambda s: (4 + s.k) * s.psi / s.n, lambda s: (4 + s.k) * s.c)


@claim("M5")
def each_stage_needs_less(k: Kernel) -> tuple[Theorem, ...]:
    """DP > ZeRO-1 > ZeRO-2 > ZeRO-3 for every N >= 2 and K > 0; padded, for Psi >= 2. (Claim M5)"""
    s = Symbols(k)
    stages = ("dp", "zero1", "zero2", "zero3")

    def decreasing(padded: bool) -> Any:
        rests = [s.rests(stage, padded) for stage in stages]
        return And(*(more > less for more, less in pairwise(rests)))

    divisible = k.prove(
        "every_stage_needs_less", decreasing(False), given=[s.psi > 0, s.n >= 2, s.k > 0]
    )
    padded = k.prove(
        "every_padded_stage_needs_less",
        decreasing(True),
        given=[s.less_than_n_padding, s.psi >= 2, s.n >= 2, s.k > 0],
    )
    return divisible, padded


@claim("M6")
def zero3_divides_memory_by_devices(k: Kernel) -> tuple[Theorem, ...]:
    """DP needs exactly N times ZeRO-3's memory, for every K: 8 times exactly when N = 8. (Claim M6)"""
    s = Symbols(k)
    dp, zero3 = s.rests("dp"), s.rests("zero3")
    ratio = k.prove("the_ratio_is_n", dp == s.n * zero3, given=[s.n >= 1])
    eight = k.prove(
        "eight_exactly_at_eight_devices",
        (dp == 8 * zero3) == (s.n == 8),
        given=s.sizes,
    )
    padded = k.prove(
        "with_padding_at_most_n",
        s.rests("dp", True) <= s.n * s.rests("zero3", True),
        given=[s.covers, s.k >= 0],
    )
    return ratio, eight, padded


@claim("M7")
def zero2_approaches_its_bound(k: Kernel) -> tuple[Theorem, ...]:
    """DP/ZeRO-2 < (4+K)/2 for every N, and comes as close as one likes: 8 at K = 12. (Claim M7)"""
    s = Symbols(k)
    eps = k.constant("eps", RealSort())
    dp, zero2, bound = s.rests("dp"), s.rests("zero2"), (4 + s.k) / 2
    below = k.prove("always_below", dp < bound * zero2, given=s.sizes)
    near = k.prove(
        "as_close_as_one_likes",
        dp * s.n > (bound - eps) * (zero2 * s.n),
        given=[s.psi > 0, s.k >= 0, eps > 0, 2 * eps * s.n >= (4 + s.k) * (2 + s.k)],
    )
    return below, near


@claim("M8")
def eight_times_less_is_not_unqualified(k: Kernel) -> tuple[Theorem, ...]:
    """Refuted: ZeRO-3 uses 8 times less memory than data parallelism.

    (Claim M8; abstract, sentence 3)
    """
    s = Symbols(k)

    def replay(psi: Fraction, n: Fraction, k: Fraction) -> bool:
        sizes = Sizes(psi, {BATCH: n}, BytePolicy(2, 2, k), None, DIVISIBLE)
        dp, zero3 = (total_resting(schedule_of(STRATEGIES[x]), sizes) for x in ("dp", "zero3"))
        return bool(dp == 8 * zero3)

    return (
        k.refute(
            "not_eight_times_less",
            s.rests("dp") == 8 * s.rests("zero3"),
            [s.psi, s.n, s.k],
            replay,
            given=[*s.sizes, s.n >= 2, s.k == 12],
        ),
    )


@claim("M9")
def peak_is_resting_plus_largest_transient(k: Kernel) -> tuple[Theorem, ...]:
    """The fullest moment of a step is what rests plus the largest set of passing buffers.

    For every realisable placement of a batch axis and every named strategy; and after the step
    everything that was taken has been given back. (Claim M9; design 2.3)
    """
    require_phases()
    units_go_through_rounds(k)
    slices_are_cells(k)
    buffers_are_used_until_then(k)
    return (
        _maximum_of_a_shifted_list(k.part("maximum")),
        _ledger_balances(k.part("ledger")),
        *_largest_are_what_lives(k.part("lives")),
        _named_strategies_hold(k.part("named")),
        others_hold_by_hand(k.part("others")),
        *units_take_turns(k.part("units")),
    )


def _named_strategies_hold(k: Kernel) -> Theorem:
    """What passes through a device at the fullest moment, for the named strategies.

    DP and ZeRO-1 reduce in place; sharded gradients take a unit of them, as they are produced;
    sharded parameters a unit of them, as they are gathered, or all of them if they are held.
    """
    psi, unit, n, w, g, opt = k.reals("psi unit n w g opt")
    most = {
        "dp": 0 * psi,
        "zero1": 0 * psi,
        "zero2": g * unit,
        "zero3": (w + g) * unit,
        "fsdp": (w + g) * unit,
        "fsdp-hold": w * psi + g * unit,
        "hsdp": (w + g) * unit,
        "zero-offload": g * unit,
        "fused-update": g * unit,
    }
    claims = []
    for name, formula in most.items():
        placement = STRATEGIES[name]
        mesh = dict.fromkeys(placement.axes, n)
        sizes = Sizes(psi, mesh, BytePolicy(w, g, opt), unit, Symbolic())
        claims.append(transient(schedule_of(placement), sizes) == formula)
    positive = [psi > 0, unit > 0, n >= 1, w > 0, g > 0]
    return k.prove("named_strategies_hold_their_units", And(*claims), given=positive)


def _maximum_of_a_shifted_list(k: Kernel) -> Theorem:
    """Whatever is held after each operation, the highest balance is what rests plus the most held."""
    i = k.integers("i")
    rest, first = k.fixed("rest", RealSort()), RealVal(0)
    held = k.function("held", IntSort(), RealSort())
    most, most_start, most_next = k.recursion(
        "most_held", [], i, first, lambda before: Symbolic().maximum(before(), held(i))
    )
    high, high_start, high_next = k.recursion(
        "highest", [], i, rest, lambda before: Symbolic().maximum(before(), rest + held(i))
    )
    return k.induct(
        "highest_is_resting_plus_most_held",
        i,
        high(i) == rest + most(i),
        base=[most_start, high_start],
        step=[most_next, high_next],
    )


def _ledger_balances(k: Kernel) -> Theorem:
    """During each operation of each schedule, the balance is what rests and what is held.

    After the last operation nothing is held. Whatever room each operation's result takes.
    """
    rest = k.fixed("rest", RealSort())
    rooms: dict[Op, Any] = {}

    def room_of(op: Op) -> Any:
        if op not in rooms:
            rooms[op] = k.fixed(f"room{len(rooms)}", RealSort())
        return rooms[op]

    # operations on activations take no room that is counted: schedules that differ in them are one
    placed = (*realisable_placements().values(), *STRATEGIES.values())
    claims: dict[Any, None] = {}
    for schedule in dict.fromkeys(_without_activations(schedule_of(p)) for p in placed):
        entries = ledger(schedule, rest, room_of)
        for entry, moment in zip(entries[:-1], live_results(schedule), strict=True):
            claims[entry == rest + live_bytes(moment, room_of)] = None
        claims[entries[-1] == rest] = None
    return k.prove("balances_are_resting_and_held", And(*claims))


def _largest_are_what_lives(k: Kernel) -> tuple[Theorem, ...]:
    """The most that is held is the most that lives, from where it is first written to its last read.

    What lives is what the run of a step reads and writes (`proofs.costs.buffer_lives`); what is held,
    of whatever size, is by what operations name. So it is of placements, and of schedules that do what
    no placement does. Where gradients that are held whole wait until new
    weights have gone to the host unit by unit, it may be more, never less.
    """
    rooms: dict[Op, Any] = {}

    def room_of(op: Op) -> Any:
        if op not in rooms:
            bytes_ = k.fixed(f"room{len(rooms)}", RealSort())
            rooms[op] = If(bytes_ >= 0, bytes_, -bytes_)  # any size, which is not negative
        return rooms[op]

    def most(moments_: Iterable[tuple[Op, ...]]) -> Any:
        sums = [live_bytes(moment, room_of) for moment in dict.fromkeys(moments_) if moment]
        return Symbolic().maximum(RealVal(0), *sums)

    same: dict[Any, None] = {}
    more: dict[Any, None] = {}
    placed = (*realisable_placements().values(), *STRATEGIES.values())
    others = (accepted.schedule for accepted in accepted_schedules())
    require_zeros()
    for schedule in dict.fromkeys((*map(schedule_of, placed), *others)):
        what_is_held, what_lives = map(most, _held_and_alive(schedule))
        if _waits_for_its_turn(schedule):
            more[what_is_held >= what_lives] = None
        else:
            same[what_is_held == what_lives] = None
    return (
        k.prove("the_most_held_is_the_most_that_lives", And(*same)),
        k.prove("what_lives_is_held", And(*more)),
    )


def _held_and_alive(schedule: Schedule) -> tuple[list[tuple[Op, ...]], list[tuple[Op, ...]]]:
    """While each operation runs, what is held, but activations; and what of it lives."""
    largest, needed = [], []
    for moment, alive in zip(live_results(schedule), lives(schedule), strict=True):
        counted = tuple(op for op in moment if op.state is not State.ACTIVATIONS)
        if not alive <= {op.target for op in counted}:
            raise KernelError("a buffer lives that is not held")
        largest.append(counted)
        needed.append(tuple(op for op in counted if op.target in alive))
    _require_offloaded_gone(schedule)
    return largest, needed


def _require_offloaded_gone(schedule: Schedule) -> None:
    """Raise KernelError if what went to the host is still held when the next operation runs."""
    ops = [op for _, op in schedule.flat(1)]
    for before, op, moment in zip(ops, ops[1:], live_results(schedule)[1:], strict=False):
        held = {result.target for result in moment} - {op.target}
        if before.kind is Kind.OFFLOAD and before.target in held:
            raise KernelError(f"{before.target} is held on the device, and on the host")


def _waits_for_its_turn(schedule: Schedule) -> bool:
    """Whether gradients that are held whole are there while what they update goes to the host."""
    (update,) = (op for _, op in schedule.flat(1) if op.kind is Kind.UPDATE)
    to_host = schedule.rest(State.PARAMETERS).host and not updates_on_host(update, schedule)
    held_whole = any(op.target is update.source and op.span is Span.ALL_UNITS for op in schedule.ops)
    return to_host and held_whole


def _without_activations(schedule: Schedule) -> Schedule:
    def kept(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        return tuple(op for op in ops if op.state is not State.ACTIVATIONS)

    rests = tuple(r for r in schedule.rests if r[0] is not State.ACTIVATIONS)
    return Schedule(schedule.axes, rests, kept(schedule.micro_step), kept(schedule.finish))
