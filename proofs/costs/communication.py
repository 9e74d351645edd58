"""X1-X5: what each strategy moves, derived from its placement through the proved collectives.

`c` is the shard in elements: any number with Psi <= c N < Psi + N, so c N = Psi when N divides Psi.
Volumes are elements or bytes that one device sends per step, with `m` micro-steps.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from proofs.claim import claim
from proofs.costs.host import micro_steps_cross, slices_touch_weights
from proofs.costs.owners import owners_send_what_rings_do
from proofs.numbers.whole_numbers import whole_numbers_are_divided
from proofs.tools.encoding import ModeSort, Symbolic, over_placements, realisable
from proofs.trusted.kernel import Kernel, KernelError, Theorem
from proofs.trusted.terms import And, RealVal
from spec.costs.communication import elements_sent, totals, transfers
from spec.costs.memory import Sizes
from spec.derivation.norms import clipped
from spec.derivation.schedules import schedule_of
from spec.language.schedule import GRADIENT_BUFFERS, REDUCTIONS, Buffer, Kind, Op, Phase, Rest, Schedule
from spec.models.states import BytePolicy, State
from spec.models.values import FULL
from spec.plans.modes import Mode
from spec.plans.placement import BATCH, Placement, on_batch
from spec.plans.strategies import STRATEGIES

BATCH_STRATEGIES = {name: p for name, p in STRATEGIES.items() if p.axes == (BATCH,)}


class Symbols:
    """Psi, N, the shard c, micro-steps m, and bytes w, g, K per element, as real variables."""

    def __init__(self, k: Kernel) -> None:
        self.psi, self.n, self.c, self.m = k.reals("psi n c m")
        self.w, self.g, self.k = k.reals("w g k")
        self.positive = [x > 0 for x in (self.psi, self.c, self.w, self.g)]

    def moves(self, placement: Placement, micro_steps: Any = 1) -> tuple[Any, Any, Any]:
        """Elements and bytes to other devices, and bytes over the host link."""
        arithmetic = Symbolic([(self.psi, self.c)])
        policy = BytePolicy(self.w, self.g, self.k)
        sizes = Sizes(self.psi, dict.fromkeys(placement.axes, self.n), policy, None, arithmetic)
        return totals(transfers(schedule_of(placement), sizes, micro_steps))

    def elements(self, strategy: str, micro_steps: Any = 1) -> Any:
        """Elements one device sends to others."""
        return self.moves(STRATEGIES[strategy], micro_steps)[0]

    def bytes(self, strategy: str) -> Any:
        """Bytes one device sends to others."""
        return self.moves(STRATEGIES[strategy])[1]

    def host(self, strategy: str, micro_steps: Any = 1) -> Any:
        """Bytes over one device's host link, both ways together."""
        return self.moves(STRATEGIES[strategy], micro_steps)[2]


USES = 3  # of a gradient by an optimizer
WEIGHTS_AT_REST = Buffer.PARAMETERS, Buffer.OPTIMIZER
VOLUMES = {
    "dp": 2,
    "zero1": 2,
    "zero2": 2,
    "zero3": 3,
    "fsdp": 3,
    "fsdp-hold": 2,
    "zero-offload": 2,
    "fused-update": 2,
}


@claim("X1")
def zero_moves_two_or_three_passes(k: Kernel) -> tuple[Theorem, ...]:
    """DP, ZeRO-1 and ZeRO-2 send 2(N-1)/N Psi elements per device and step, ZeRO-3 3(N-1)/N Psi.

    With padding, ceil(Psi/N) in place of Psi/N. HSDP sends three passes inside a group of n_s and
    two of what that leaves across n_r groups. No realisable placement sends less than 2(N-1) such
    shards, whichever modes it has. (Claim X1; ZeRO sections 7.1-7.2)
    """
    whole_numbers_are_divided(k)
    owners_send_what_rings_do(k)
    _require_chains(k.claim)
    s = Symbols(k)
    exact = k.prove(
        "volumes_are_so_many_passes",
        And(*(s.elements(x) == passes * (s.n - 1) * s.c for x, passes in VOLUMES.items())),
    )
    divisible = k.prove(
        "in_psi_when_n_divides_it",
        And(*(s.elements(x) * s.n == passes * (s.n - 1) * s.psi for x, passes in VOLUMES.items())),
        given=[s.c * s.n == s.psi],
    )
    states = [k.constant(name, ModeSort) for name in ("theta", "omega", "grads", "acts")]
    volume = over_placements(states, lambda p: s.moves(p)[0], RealVal(0))
    least = k.prove(
        "no_placement_sends_less",
        volume >= 2 * ((s.n - 1) * s.c),
        given=[realisable(states), (s.n - 1) * s.c >= 0],
    )
    return exact, divisible, least, _hybrid(k.part("hybrid"))


def _require_chains(claim: str) -> None:
    """Raise KernelError unless of a chain of devices each but the last sends all that is broadcast."""
    for devices, buffer in product((1, 2, 3), (Buffer.PARAMETERS, Buffer.NORM)):
        published = Op(Kind.BROADCAST, Phase.PUBLISH, buffer, axes=(BATCH,))
        for psi in (5, 7):
            sizes = Sizes(psi, {BATCH: devices}, BytePolicy(2, 2, 12))
            sends = [1 if buffer is Buffer.NORM else psi for _ in range(devices - 1)]  # to the next
            if elements_sent(published, schedule_of(STRATEGIES["dp"]), sizes) != max(sends, default=0):
                raise KernelError(f"{claim}: {devices} devices in a chain do not send {sends}")


def _hybrid(k: Kernel) -> Theorem:
    """HSDP sends ZeRO-3's three passes inside a group, and across groups two of what that leaves."""
    psi, replica, shard = k.reals("psi replica shard")
    placement = STRATEGIES["hsdp"]
    mesh = {"replica": replica, "shard": shard}
    sizes = Sizes(psi, mesh, BytePolicy(2, 2, 12), None, Symbolic())
    elements = totals(transfers(schedule_of(placement), sizes))[0]
    inside, across = (shard - 1) * (psi / shard), (replica - 1) * (psi / (shard * replica))
    return k.prove(
        "hybrid_sends_three_passes_inside_two_across",
        elements == 3 * inside + 2 * across,
    )


@claim("X2")
def zero3_moves_half_as_much_again(k: Kernel) -> tuple[Theorem, ...]:
    """ZeRO-3 sends exactly 3/2 of data parallelism's elements, for every N >= 2. (Claim X2)

    K does not occur in either. (Abstract, sentence 3)
    """
    s = Symbols(k)
    ratio = k.prove("the_ratio_is_three_halves", 2 * s.elements("zero3") == 3 * s.elements("dp"))
    some = k.prove("data_parallelism_sends_something", s.elements("dp") > 0, given=[s.n >= 2, s.c > 0])
    return ratio, some


@claim("X3")
def in_bytes_only_with_equal_widths(k: Kernel) -> tuple[Theorem, ...]:
    """In bytes the ratio is 3/2 if and only if weights and gradients are equally wide.

    Where they pass in other types: gathered parameters in one, gradients that are summed in another;
    over the host link, and where updated weights are gathered, what passes is as it rests. A norm is
    one fp32 number. (Claim X3)
    """
    s = Symbols(k)
    gathered, reduced, quantised = k.reals("gathered reduced quantised")
    policy = BytePolicy(s.w, s.g, s.k, gathered=gathered, reduced=reduced, quantised=quantised)
    sizes = Sizes(s.psi, {BATCH: s.n}, policy, None, Symbolic([(s.psi, s.c)]))

    def sent(schedule: Schedule) -> tuple[Any, Any]:
        """Bytes to other devices, and over the host link."""
        return totals(transfers(schedule, sizes))[1:]

    on_host = schedule_of(on_batch("S+O", "S+O", "S+O"))
    others = {  # of gradients what is not summed; of views what is not gathered
        Op(Kind.ALL_GATHER, Phase.REDUCE, Buffer.GRADIENTS, axes=(BATCH,)): s.g,
        Op(Kind.BROADCAST, Phase.PUBLISH, Buffer.VIEW, axes=(BATCH,)): gathered,
    }
    zero1, zero3, offload = (schedule_of(STRATEGIES[x]) for x in ("zero1", "zero3", "zero-offload"))
    a_pass = (s.n - 1) * s.c
    of_a_norm = 2 * (s.n - 1) * FULL  # a chunk is one number
    _require_types(k.claim)
    types = k.prove(
        "each_passes_in_its_type",
        And(
            sent(zero3)[0] == (2 * quantised + reduced) * a_pass,
            sent(zero1)[0] == (reduced + s.w) * a_pass,
            sent(offload)[1] == (s.g + s.w) * s.c,
            sent(on_host)[1] == (2 * s.w + s.g) * s.c,  # weights forward and backward
            *(sizes.width_sent(op) == width for op, width in others.items()),
            sent(clipped(zero1))[0] == sent(zero1)[0] + of_a_norm,
        ),
    )
    return (
        types,
        k.prove(
            "three_halves_iff_equal_widths",
            (2 * s.bytes("zero3") == 3 * s.bytes("dp")) == (s.w == s.g),
            given=[s.n >= 2, s.c > 0],
        ),
    )


def _require_types(claim: str) -> None:
    """Raise KernelError unless terms over some axes are summed as they are, and others in their type.

    Over replicas what is added up is summed, over shards what backward leaves.
    """
    rests, leaves, summed, devices = 3, 5, 7, 2
    for axes, scattered, reduced in (
        ((), summed, summed),
        (("replica",), summed, rests),
        (("shard",), leaves, summed),
        (("replica", "shard"), leaves, rests),
    ):
        policy = BytePolicy(2, rests, 12, gathered=leaves, reduced=summed, as_they_are=frozenset(axes))
        sizes = Sizes(8, {"replica": devices, "shard": devices}, policy)
        found = [
            m for m in transfers(schedule_of(STRATEGIES["hsdp"]), sizes) if m.op.kind in REDUCTIONS
        ]
        tied = Op(Kind.REDUCE_SCATTER, Phase.BACKWARD, Buffer.TIED, axes=("shard",))
        widths = [*(m.bytes for m in found), sizes.width_sent(tied)]
        if widths != [4 * scattered, 2 * 2 * reduced, scattered]:
            raise KernelError(f"{claim}: as they are over {axes}, gradients pass in {found}")


@claim("X4")
def accumulation_multiplies_what_is_not_kept_whole(k: Kernel) -> tuple[Theorem, ...]:
    """With m micro-steps DP and ZeRO-1 still send 2 passes, ZeRO-2 m + 1, ZeRO-3 3m. (Claim X4)

    FSDP that holds its gathered parameters sends 2m; of its gathers, m are saved. ZeRO-3 whose gathered
    parameters stay for the next micro-step's forward sends 2m + 1, or m + 1 if they are held, too.
    """
    s = Symbols(k)
    passes = {"dp": 2, "zero1": 2, "zero2": s.m + 1, "zero3": 3 * s.m, "fsdp-hold": 2 * s.m}
    stay = {"zero3": 2 * s.m + 1, "fsdp-hold": s.m + 1}
    sent = [(s.elements(x, s.m), p) for x, p in passes.items()]
    sent += [(s.moves(replace(STRATEGIES[x], stays=True), s.m)[0], p) for x, p in stay.items()]
    return (
        k.prove(
            "passes_with_accumulation",
            And(*(elements == p * ((s.n - 1) * s.c) for elements, p in sent)),
        ),
        _hybrid_accumulates(k.part("hybrid")),
    )


def _hybrid_accumulates(k: Kernel) -> Theorem:
    """HSDP sums over replicas once, a slice; or a whole gradient, first, in each micro-step; or again.

    Along the axis that cuts its states nothing is summed first, nor again.
    """
    psi, replica, shard, m = k.reals("psi replica shard m")
    mesh = {"replica": replica, "shard": shard}
    sizes = Sizes(psi, mesh, BytePolicy(2, 2, 12), None, Symbolic())
    inside = 3 * m * ((shard - 1) * (psi / shard))
    slice_, whole = (2 * ((replica - 1) * (psi / n)) for n in (shard * replica, replica))
    ways = {
        (): (slice_, slice_),
        ("shard",): (slice_, slice_),
        ("replica",): (m * whole, USES * slice_),
    }
    claims = []
    for axes, across in ways.items():
        first, again = (
            replace(STRATEGIES["hsdp"], summed_first=axes),
            replace(STRATEGIES["hsdp"], summed_again=axes, uses=USES),
        )
        for placement, outside in zip((first, again), across, strict=True):
            sent = totals(transfers(schedule_of(placement), sizes, m))[0]
            claims.append(sent == inside + outside)
    return k.prove("hybrid_sums_over_replicas", And(*claims))


UPDATED_WEIGHTS = {  # from where, and to where
    *product((Buffer.OPTIMIZER, Buffer.OPTIMIZER_VIEW), (Buffer.PARAMETERS, Buffer.VIEW))
}


@claim("X5")
def offload_moves_gradients_down_and_weights_up(k: Kernel) -> tuple[Theorem, ...]:
    """ZeRO-Offload moves (m g + w) ceil(Psi/N) bytes over each host link per step. (Claim X5)

    On one device with 2-byte weights and gradients that is 4 Psi (ZeRO-Offload 2101.06840); a
    placement that keeps nothing on the host moves nothing there; nor does optimizer state of no size.
    """
    s = Symbols(k)
    traffic = k.prove(
        "gradients_down_weights_up", s.host("zero-offload", s.m) == (s.m * s.g + s.w) * s.c
    )
    single = k.prove(
        "four_bytes_a_parameter_on_one_device",
        s.host("zero-offload") == 4 * s.psi,
        given=[s.c == s.psi, s.w == 2, s.g == 2],
    )
    slices = {State.PARAMETERS: Rest((BATCH,)), State.OPTIMIZER: Rest()}
    kept = Schedule((BATCH,), tuple((dict.fromkeys(State, Rest()) | slices).items()), (), ())
    sizes = Sizes(s.psi, {BATCH: s.n}, BytePolicy(2, 2, 12), None, Symbolic([(s.psi, s.c)]))
    ways = [Op(Kind.FETCH, Phase.UPDATE, *way) for way in (WEIGHTS_AT_REST, WEIGHTS_AT_REST[::-1])]
    stateless = replace(sizes, policy=BytePolicy(2, 2, Fraction(0)))
    room = k.prove(
        "as_much_as_there_is_room_for_on_both_sides",
        And(
            *(elements_sent(op, kept, sizes) == s.c for op in ways),
            *(elements_sent(op, kept, stateless) == 0 for op in ways if op.target is Buffer.OPTIMIZER),
        ),
    )
    if any(s.host(name, s.m) != 0 for name in BATCH_STRATEGIES if name != "zero-offload"):
        raise KernelError(f"{k.claim}: what is not offloaded crosses a host link")
    _require_updated_slices_alone(k.claim)
    micro_steps_cross(k)
    slices_touch_weights(k)
    return traffic, single, room


def _require_updated_slices_alone(claim: str) -> None:
    """Raise KernelError if a placement's step brings weights that it has not updated, or takes to a
    host gradients that are not applied there.
    """
    modes = [mode.value for mode in Mode]
    for weights, optimizer in product(modes, (*modes, f"{Mode.SHARDED.value}+{Mode.OFFLOADED.value}")):
        ops = schedule_of(on_batch(weights, optimizer, "R", "R")).finish
        (updated,) = (op.within for op in ops if op.kind is Kind.UPDATE)
        moved = [
            op
            for op in ops
            if (op.source, op.target) in UPDATED_WEIGHTS
            or (op.kind is Kind.OFFLOAD and op.source in GRADIENT_BUFFERS)
        ]
        if any(not {*updated} <= {*op.within} for op in moved):
            raise KernelError(f"{claim}: parameters {weights}, optimizer {optimizer}: more is moved")
