"""K3, K4, K6: conditions, memory and volumes compose axis by axis; groups that are not axes do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from proofs.claim import claim
from proofs.meaning.runs import INT, Device, Distributed, Element, Parameters, implied
from proofs.plans.unsafe import UNSAFE, WHOLE_NUMBERS, Claimed
from proofs.tools.encoding import Symbolic
from proofs.tools.sums import equal_terms, partition, total
from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, BoolSort, BoolVal, If, Implies, RealVal
from spec.costs.communication import elements_sent
from spec.costs.memory import MODEL_STATES, Sizes, resting
from spec.derivation.schedules import schedule_of
from spec.language.schedule import Buffer, Kind, Op, Phase, Span
from spec.meaning import conditions
from spec.models.states import BytePolicy, State
from spec.plans.modes import Mode
from spec.plans.placement import Placement, place_states

BOOL = BoolSort()
A, B = AXES = ("a", "b")


# ------------------------------------------------------------------ K3: conditions
class _Mesh(Distributed):
    """Training on m rows and n columns of devices; what they keep is placed axis by axis."""

    def __init__(self, k: Kernel) -> None:
        super().__init__(k)
        self.row, self.column = k.integers("row column")
        self.m, self.n = k.fixed("rows", INT), k.fixed("columns", INT)
        self.at = k.function("device_at", INT, INT, Device)
        self.row_of, self.column_of = (k.function(f"{v}_of", Device, INT) for v in ("row", "column"))
        d = self.d
        self.numbered = k.suppose(
            "devices_have_coordinates", [d], self.at(self.row_of(d), self.column_of(d)) == d
        )

    def axis_by_axis(self, what: str, whole: Any) -> tuple[Any, Theorem]:
        """A device does so for an element where its row and its column do; and who the columns are."""
        by_row, by_column = (
            self.k.function(f"{axis}_{what}", INT, Element, BOOL) for axis in ("row", "column")
        )
        both = And(by_row(self.row, self.j), by_column(self.column, self.j))
        here = whole(self.at(self.row, self.column), self.j)
        name = f"{what}_axis_by_axis"
        return by_column, self.k.suppose(name, [self.row, self.column, self.j], here == both)

    def on(self, theorem: Theorem, device: Any) -> Theorem:
        """What is said of a device by its coordinates."""
        return theorem.at(row=self.row_of(device), column=self.column_of(device))


@claim("K3")
def conditions_compose(k: Kernel) -> tuple[Theorem, ...]:
    """Gradient integrity and state consistency along each axis are those on the mesh.

    Along each axis, on what the other leaves: gradients are summed, so that each sample comes in once;
    copies agree; and what is read is what the owners along it have. For any two sizes, any placement
    of the samples; with an axis that is a product itself, any number of axes. What results are the
    conditions of E1. (Claim K3; design 2.9; abstract, sentence 5)
    """
    return (
        _integrity(_Mesh(k.part("integrity"))),
        _agreement(_Mesh(k.part("agreement"))),
        _freshness(_Mesh(k.part("freshness"))),
    )


def _integrity(r: _Mesh) -> Theorem:
    """Sums along columns of what sums along rows leave are sums over all samples, each once."""
    k, t, d, j, x, row, column = r.k, r.t, r.d, r.j, r.x, r.row, r.column
    places, placed = [], []
    for axis, size in (("row", r.m), ("column", r.n)):
        place_ = k.function(f"sample_{axis}", INT, INT, INT)
        inside = And(place_(t, x) >= 0, place_(t, x) < size)
        places.append(place_)
        placed.append(k.suppose(f"samples_have_a_{axis}", [t, x], inside))
    term, zero = r.as_seen.term, RealVal(0)
    mine = If(places[0](t, x) == row, term, zero)
    _, shares, in_row, one_row = partition(
        k, "in_row", column, x, lambda i: places[1](t, i), placed[1], r.n, mine, [t, j, row]
    )
    share, rows, whole, all_rows = partition(
        k, "rows", row, x, lambda i: places[0](t, i), placed[0], r.m, term, [t, j]
    )
    updates_column, updates = r.axis_by_axis("updates", r.updates)
    left = k.function("left_by_the_first", INT, INT, INT, Parameters)
    first = k.suppose(
        "integrity_along_rows",
        [t, row, column, j],
        implied(
            conditions.gradient_integrity(
                updates_column(column, j),
                left(t, row, column)[j],
                shares(t, j, row, r.batch(t), r.n),
            )
        ),
    )
    over = total(k, "along_the_column", [t, j, column], row, left(t, row, column)[j])
    device = r.at(row, column)
    second = k.suppose(
        "integrity_along_columns",
        [t, row, column, j],
        implied(
            conditions.gradient_integrity(
                r.updates(device, j), r.applied(t, device)[j], over(t, j, column, r.m)
            )
        ),
    )
    same = equal_terms(k, "the_rows_samples", in_row, share)
    batch = {"x": r.batch(t)}
    summed_rows = k.induct(
        "sums_of_rows_sums",
        row,
        over(t, j, column, row) == rows(t, j, r.batch(t), row),
        given=[updates_column(column, j)],
        base=[over.start, rows.start.at(**batch)],
        step=[
            over.next,
            rows.next.at(**batch),
            first,
            one_row.at(**batch),
            same.at(**batch),
            r.counted,
        ],
    )
    all_samples = equal_terms(k, "the_samples", whole, r.as_seen)
    some = k.prove("there_are_rows", r.m >= 1, uses=[placed[0]])
    applied = r.applied(t, d)[j]
    goal = conditions.gradient_integrity(r.updates(d, j), applied, r.as_seen(t, j, r.batch(t)))
    return k.prove(
        "the_mesh_has_gradient_integrity",
        implied(goal),
        uses=[
            r.numbered,
            r.on(updates, d),
            r.on(second, d),
            summed_rows.at(row=r.m, column=r.column_of(d)),
            all_rows.at(**batch),
            all_samples.at(**batch),
            r.counted,
            some,
        ],
    )


def _agreement(r: _Mesh) -> Theorem:
    """Copies that agree along rows and along columns agree, by way of the device at the corner."""
    k, t, d, e, j, row, column = r.k, r.t, r.d, r.e, r.j, r.row, r.column
    other_row, other_column = k.integers("other_row other_column")
    _, keeps = r.axis_by_axis("keeps", r.keeps)
    _, updates = r.axis_by_axis("updates", r.updates)
    here = r.at(row, column)
    variables = [t, row, column, j]
    along_rows = k.suppose(
        "agreement_along_rows",
        [*variables, other_column],
        r.agrees(t, here, r.at(row, other_column), j),
    )
    along_columns = k.suppose(
        "agreement_along_columns",
        [*variables, other_row],
        r.agrees(t, here, r.at(other_row, column), j),
    )
    corner = {"row": r.row_of(d), "column": r.column_of(e)}
    return k.prove(
        "the_mesh_agrees",
        r.agrees(t, d, e, j),
        uses=[
            r.numbered,
            r.numbered.at(d=e),
            *(
                f
                for both in (keeps, updates)
                for f in (r.on(both, d), r.on(both, e), both.at(**corner))
            ),
            r.on(along_rows, d).at(other_column=r.column_of(e)),
            along_columns.at(**corner, other_row=r.row_of(e)),
        ],
    )


def _freshness(r: _Mesh) -> Theorem:
    """What is gathered along rows, then along columns, is what the owners on the mesh have."""
    k, t, x, j, row, column = r.k, r.t, r.x, r.j, r.row, r.column
    owner_row, owner_column = (k.function(f"owner_{v}", Element, INT) for v in ("row", "column"))
    owners_are = k.suppose(
        "owners_have_coordinates", [j], r.owner(j) == r.at(owner_row(j), owner_column(j))
    )
    gathered, view = (k.function(v, INT, INT, INT, Parameters) for v in ("gathered", "view"))
    there = r.copy(t, r.at(row, owner_column(j)))[j]
    always = BoolVal(True)
    along_rows = k.suppose(
        "freshness_along_rows",
        [t, row, column, j],
        implied(conditions.freshness(always, gathered(t, row, column)[j], there)),
    )
    along_columns = k.suppose(
        "freshness_along_columns",
        [t, row, column, j],
        implied(
            conditions.freshness(always, view(t, row, column)[j], gathered(t, owner_row(j), column)[j])
        ),
    )
    element = k.prove(
        "an_element_of_a_view_is_current",
        view(t, row, column)[j] == r.current(t)[j],
        uses=[along_columns, along_rows.at(row=owner_row(j)), owners_are, r.own],
    )
    current = k.extend("views_are_current", element, j)
    reader = k.function("reader", INT, INT, Device)
    in_batch = And(x >= 0, x < r.batch(t))
    with_it = r.seen(t, x) == view(t, r.row_of(reader(t, x)), r.column_of(reader(t, x)))
    reads = k.suppose("samples_are_read_with_their_devices_view", [t, x], Implies(in_batch, with_it))
    return k.prove(
        "the_mesh_reads_fresh",
        implied(conditions.freshness(in_batch, r.seen(t, x), r.current(t))),
        uses=[reads, r.on(current, reader(t, x))],
    )


# ------------------------------------------------------------ K4: memory and volumes
@claim("K4")
def costs_compose(k: Kernel) -> tuple[Theorem, ...]:
    """Memory factors multiply; a collective along one axis acts on what the others leave.

    What a state takes on two axes, over what it takes unsharded, is the product of what it takes on
    each alone, whatever its modes: 1/(n m) if sharded along both. A collective along an axis of n of
    what another of m shards sends (n-1)/n of 1/m. Slices gathered, or summed, along one axis after the
    other are sent as often as along both at once. (Claim K4; design 2.9)
    """
    return (_memory_multiplies(k.part("memory")), *_volumes_of_the_rest(k.part("volumes")))


def _everywhere(axes: tuple[str, ...], modes: Mapping[str, Mode]) -> Placement:
    """All states in the same modes."""
    return place_states(axes, dict.fromkeys(State, modes))


def _memory_multiplies(k: Kernel) -> Theorem:
    cell, n, m, w, g, opt = k.reals("cell n m w g k")
    psi, mesh = n * m * cell, {A: n, B: m}
    shards = {AXES: cell, (A,): m * cell, (B,): n * cell}  # of psi, one for each device of these axes
    policy = BytePolicy(w, g, opt)
    claims: dict[Any, None] = {}

    def takes(state: State, modes: Mapping[str, Mode]) -> Any:
        axes = tuple(modes)
        sizes = Sizes(psi, mesh, policy, None, Symbolic([(psi, shards[axes])]), axes)
        return resting(schedule_of(_everywhere(axes, modes)), state, sizes)

    for state in MODEL_STATES:
        unsharded = psi * policy.of(state)
        for one, other in product(Mode, repeat=2):
            both = takes(state, {A: one, B: other}) * unsharded
            claims[both == takes(state, {A: one}) * takes(state, {B: other})] = None
        both = takes(state, {A: Mode.SHARDED, B: Mode.SHARDED})
        claims[both * (n * m) == unsharded] = None
    return k.prove("memory_factors_multiply", And(*claims))


def _volumes_of_the_rest(k: Kernel) -> tuple[Theorem, Theorem]:
    psi, cell, n, m = k.reals("psi cell n m")
    sizes = Sizes(psi, {A: n, B: m}, BytePolicy(2, 2, 12), None, Symbolic([(psi, cell)]), AXES)
    schedule = schedule_of(_everywhere(AXES, dict.fromkeys(AXES, Mode.SHARDED)))

    def sent(kind: Kind, axes: tuple[str, ...], within: tuple[str, ...] = ()) -> Any:
        span = Span.UNIT if kind is Kind.ALL_GATHER else Span.NONE
        op = Op(kind, Phase.REDUCE, Buffer.FRESH, None, axes, within, span)
        return elements_sent(op, schedule, sizes)

    passes = {Kind.ALL_GATHER: 1, Kind.REDUCE_SCATTER: 1, Kind.ALL_REDUCE: 2}
    rest = k.prove(
        "a_collective_acts_on_what_the_other_axis_leaves",
        And(
            *(
                And(
                    sent(kind, (A,), (B,)) * (n * m) == times * ((n - 1) * psi),
                    sent(kind, (A,), (B,)) * m == sent(kind, (A,)),
                )
                for kind, times in passes.items()
            )
        ),
        given=[cell * (n * m) == psi],
    )
    gather, scatter = Kind.ALL_GATHER, Kind.REDUCE_SCATTER
    in_turn = k.prove(
        "axes_in_turn_send_as_much_as_at_once",
        And(
            sent(gather, (A,), (B,)) + sent(gather, (B,)) == sent(gather, AXES),
            sent(scatter, (A,)) + sent(scatter, (B,), (A,)) == sent(scatter, AXES),
        ),
    )
    return rest, in_turn


# ------------------------------------------------------------ K6: unsafe compositions
@claim("K6")
def composition_of_any_groups_is_safe(k: Kernel) -> tuple[Theorem, ...]:
    """Strategies that are right each on its own are right together, whatever their groups.

    Refuted, on two axes of two devices: sums along one axis only, or along one twice; added to after a
    sum; divided along one axis, by counts or norms of one; gathered along the other. (Claim K6)
    """
    return tuple(_refuted(k.part(name), name, *unsafe) for name, unsafe in UNSAFE.items())


def _refuted(k: Kernel, name: str, claim: Callable[..., Claimed], unknowns: str) -> Theorem:
    terms = k.integers(unknowns) if name in WHOLE_NUMBERS else k.reals(unknowns)
    given, then = claim(*terms)

    def replay(**values: Fraction) -> bool:
        when, follows = claim(*(values[u] for u in unknowns.split()))
        return bool(not when or follows)

    return k.refute(name, then, terms, replay, given=[] if given is True else [given])
