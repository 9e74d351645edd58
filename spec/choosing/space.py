"""The space of placements of one batch axis: what each costs, and which is better than which.

A cost has three coordinates, per device: bytes that rest on it, bytes it sends to other devices in a
step, and bytes over its host link in a step. Host memory is no coordinate: it is what offloading is
meant to spend. Activations are not counted in parameters: their mode decides whether a placement is
realisable, and nothing else here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product

from spec.choosing.regimes import FourModes, Kept, Regime, placement_of
from spec.choosing.requirements import is_realisable
from spec.costs.communication import totals, transfers
from spec.costs.memory import Sizes, total_resting
from spec.derivation.schedules import schedule_of
from spec.models.states import BytePolicy, State
from spec.numbers.arithmetic import Exact, Number
from spec.plans.modes import M, Mode, O, S
from spec.plans.placement import BATCH, Placement, on_batch

ACTIVATION_MODES = (
    S,
    M,
    O,
)  # each device works on its own samples: realisable or not as one (claim P1)


# ------------------------------------------------------------------------- costs
@dataclass(frozen=True)
class Cost:
    """Bytes per device: that rest, that are sent in a step, that cross the host link in a step."""

    resting: Number
    sent: Number
    host: Number

    @property
    def total(self) -> Number:
        return self.resting + self.sent + self.host


def cost(placement: Placement, sizes: Sizes, micro_steps: Number = 1) -> Cost:
    """The cost of a placement, for any kind of number."""
    schedule = schedule_of(placement)
    _, sent, host = totals(transfers(schedule, sizes, micro_steps), 0 * sizes.psi)
    return Cost(total_resting(schedule, sizes), sent, host)


def dominance(a: Cost, b: Cost) -> tuple[Number, ...]:
    """All that must hold for a to dominate b: nowhere worse, and better somewhere."""
    return (a.resting <= b.resting, a.sent <= b.sent, a.host <= b.host, a.total < b.total)


def dominates(a: Cost, b: Cost) -> bool:
    """The same of numbers."""
    return all(dominance(a, b))


# ------------------------------------------------------------------ closed forms
WIDTHS = ("w", "g", "K")


@dataclass(frozen=True)
class CostTerm:
    """A product: bytes of an element, times the whole or a slice, once a step or per micro-step."""

    width: str
    sliced: bool
    repeated: bool


@dataclass(frozen=True)
class Point:
    """Where forms are evaluated: elements of a whole and of a slice, micro-steps, bytes w, g, K."""

    whole: Number
    slice: Number
    micro_steps: Number
    widths: tuple[Number, ...]

    def of(self, term: CostTerm) -> Number:
        """The value of a product."""
        size = self.slice if term.sliced else self.whole
        bytes_ = self.widths[WIDTHS.index(term.width)] * size
        return bytes_ * self.micro_steps if term.repeated else bytes_


@dataclass(frozen=True)
class ClosedForm:
    """A sum of products with whole coefficients."""

    terms: tuple[tuple[CostTerm, int], ...]

    def at(self, point: Point) -> Number:
        """The value of the form."""
        return sum((n * point.of(term) for term, n in self.terms), 0 * point.whole)


def sum_of(terms: Iterable[tuple[CostTerm, int]]) -> ClosedForm:
    """The sum of some products, like ones taken together."""
    found: Counter[CostTerm] = Counter()
    for term, n in terms:
        found[term] += n
    return ClosedForm(tuple((term, n) for term, n in sorted(found.items(), key=repr) if n))


@dataclass(frozen=True)
class CostForm:
    """A cost for every size: of all parameters; what is sent in units of N - 1 slices."""

    resting: ClosedForm
    sent: ClosedForm
    host: ClosedForm

    def at(self, point: Point) -> Cost:
        """Resting and host bytes at a point, and bytes sent for each element of N - 1 slices."""
        sent = self.sent.at(Point(1, 1, point.micro_steps, point.widths))
        return Cost(self.resting.at(point), sent, self.host.at(point))

    def restricted_to(self, regime: Regime) -> CostForm:
        """The same where there is one micro-step, or no optimizer state."""

        def restricted(form: ClosedForm) -> ClosedForm:
            return sum_of(
                (CostTerm(t.width, t.sliced, t.repeated and regime.several), n)
                for t, n in form.terms
                if t.width != "K" or regime.optimizer is not Kept.NO_STATE
            )

        return CostForm(restricted(self.resting), restricted(self.sent), restricted(self.host))


class _Slice(Exact):
    """Slices of a given size, whatever the whole."""

    def __init__(self, elements: int) -> None:
        self.elements = elements

    def shard(self, elements: Number, unit: Number, devices: Number) -> Number:
        return self.elements


@cache
def closed_form(placement: Placement) -> CostForm:
    """The cost of a placement as a sum of products, read off at units: costs are linear in each."""
    found: tuple[list[tuple[CostTerm, int]], ...] = ([], [], [])
    for width, sliced in product(WIDTHS, (False, True)):
        w, g, k = (int(width == other) for other in WIDTHS)
        sizes = Sizes(int(not sliced), {BATCH: 2}, BytePolicy(w, g, k), None, _Slice(int(sliced)))
        none, one = (cost(placement, sizes, micro_steps) for micro_steps in (0, 1))
        parts = (none.resting, one.resting), (none.sent, one.sent), (none.host, one.host)
        for i, (once, both) in enumerate(parts):
            apart = sliced and i != 1  # what is sent is slices, all of it
            found[i].append((CostTerm(width, apart, False), once))
            found[i].append((CostTerm(width, apart, True), both - once))
    return CostForm(*map(sum_of, found))


def realisable(regime: Regime) -> tuple[FourModes, ...]:
    """The placements that are realisable, of 5^4."""
    return tuple(m for m in product(Mode, repeat=len(State)) if is_realisable(m, regime))


@cache
def classes(regime: Regime) -> dict[CostForm, list[FourModes]]:
    """The classes of equal cost, each with its realisable placements of parameters, Omega and G."""
    found: dict[CostForm, list[FourModes]] = {}
    for modes in product(*[Mode] * 3, (S,)):
        if is_realisable(modes, regime):
            form = closed_form(placement_of(modes)).restricted_to(regime)
            found.setdefault(form, []).append(modes)
    return found


# ---------------------------------------------------------------------- frontier
# The modes of parameters, optimizer state and gradients of a class: the classes, one of which
# dominates it where any placement does. What is not listed is dominated everywhere (claim P2).
_FRONTIER = {
    (Kept.MASTER_COPY, False): {
        "R S M": "M R M",
        "M R M": "R S M, M S M",
        "M S M": "",
        "R O M": "M R M, M S M",
        "S* O M": "M S M",
        "M O M": "",
        "O S M": "M O M",
    },
    (Kept.MASTER_COPY, True): {
        "R S R": "M R R, M R S*",
        "R S S": "M R S*, M R R",
        "M R R": "R S R, M S R",
        "M R S*": "R S S, M S S, R S R",
        "M S R": "M R S*, R S S",
        "M S S": "",
        "R S O": "M R O, R O R, R O S*",
        "R O R": "M R R, M S R, M R O",
        "R O S*": "M R S*, M S S, M R O",
        "R O O": "M R O, M S O",
        "S* O R": "M S R, M S S, R S S, M R S*, M S O, O S S",
        "S* O S*": "M S S, M S O",
        "S* O O": "M S O",
        "M R O": "R S O, M S O, R O R",
        "M S O": "R O S*, M O R, M O S*",
        "M O R": "M R O, R O O, R S O",
        "M O S*": "M R O, M S O",
        "M O O": "",
        "O S R": "M O R, R S O",
        "O S S": "M O S*, R O R, M R O, R O O, S* O R",
        "O S O": "M O O",
    },
    (Kept.MOMENTS, False): {
        "R R M": "R S M",
        "R S M": "R S* M",
        "R S* M": "R S M",
        "S* S M": "",
        "O O M": "",
    },
    (Kept.MOMENTS, True): {
        "R R R": "R S R",
        "R R S*": "R S S, R S* R, R S R",
        "R S R": "R S* R",
        "R S S": "R S* S*",
        "R S* R": "R S R",
        "R S* S*": "R S S",
        "S* S R": "R S S",
        "S* S S": "",
        "R R O": "R S O, O O R",
        "R S O": "R S* O",
        "R S* O": "R S O, O O R, O O S*",
        "S* S O": "O O R, O O S*",
        "O O R": "R R O, R S O",
        "O O S*": "S* S O",
        "O O O": "",
    },
    (Kept.NO_STATE, False): {
        "R R M": "R S M",
        "R S M": "R R M",
        "S* S M": "",
        "O O M": "",
    },
    (Kept.NO_STATE, True): {
        "R R R": "R S R",
        "R R S*": "R S S",
        "R S R": "R R R",
        "R S S": "R R S*",
        "S* S R": "R S S",
        "S* S S": "",
        "R R O": "R S O",
        "R S O": "R R O",
        "S* S O": "",
        "O O R": "R R O, R S O",
        "O O S*": "S* S O, R R O, R S O",
        "O O O": "",
    },
}


def cost_form(name: str, regime: Regime) -> CostForm:
    """The cost of a class, named by one of its placements: "R S M"."""
    theta, omega, grads = name.split()
    return closed_form(on_batch(theta, omega, grads)).restricted_to(regime)


def frontier(regime: Regime) -> dict[str, tuple[str, ...]]:
    """The classes that some sizes leave undominated, each with its rivals."""
    rows = _FRONTIER[regime.optimizer, regime.several]
    return {name: tuple(filter(None, rivals.split(", "))) for name, rivals in rows.items()}
