"""T4: a schedule is accepted if and only if every run of it matches a single device.

Accepted: what is kept compares equal, in the steps that are run. A run is of any model, with any data
and any optimizer; that it matches is said of what it keeps. Where a comparison comes out unequal, a run
is made for it, in which something else is read, or kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proofs.checking.all_steps import HALVES, AllSteps
from proofs.checking.representation import Represented
from proofs.checking.symbols import (
    BACKWARD,
    BOOL,
    INT,
    MOMENT,
    NORM,
    NORM_OF,
    STARTS,
    TOKENS,
    UPDATE,
    WEIGHT,
    Element,
)
from proofs.tools.existence import some
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import TRUE, And, BoolVal, If, Implies, IntVal, Not, Or

INTEGRITY, CONSISTENCY = HALVES
HALF = {None: INTEGRITY, NORM: INTEGRITY, TOKENS: INTEGRITY, WEIGHT: CONSISTENCY, MOMENT: CONSISTENCY}


@dataclass(frozen=True)
class Compared:
    """What line t reads, if it is of a kind: what it is to be, in which place, on which device; of its
    own weight, or of those that a norm is of.
    """

    name: str
    kind: Any
    what: Any
    place: Any
    device: Any
    own: Bool
    reads: Bool = TRUE


class Accepted(AllSteps):
    """accepted: whether what is kept compares equal, in the steps that are run."""

    def __init__(self, l: Represented) -> None:
        self.accepted = l.k.fixed("accepted", BOOL)
        self.whose_line, self.whose_copy = (
            l.k.function(f"weight_of_{name}", INT, INT) for name in ("line", "copy")
        )
        super().__init__(l)
        k, t, j = self.k, l.t, l.j
        self.runs_all = And(t >= 0, t < l.last)
        self.in_run = And(self.runs_all, t < self.until, Not(self.is_late(t)))
        self.unequal = some(k, "a_line_compares_unequal", [t], [j], self.off(t, j))
        self.all_before, start, then = k.recursion(
            "no_line_before_compares_unequal",
            [],
            t,
            BoolVal(True),
            lambda before: And(before(), Not(self.unequal.holds)),
        )
        first = And(t >= 0, t < l.last, self.all_before(t), self.unequal.holds)
        self.first = some(k, "some_line_is_the_first", [], [t], first)
        self.none_first = k.induct(
            "without_a_first_there_is_none",
            t,
            Or(self.first.holds, self.all_before(t)),
            [t <= l.last],
            base=[start],
            step=[then, self.first.shown],
        )
        self.equal_before = k.induct(
            "of_an_element_neither",
            t,
            Implies(self.all_before(t), self.all_equal(j, t)),
            base=[self.none_before],
            step=[then, self.all_equal_next, self.unequal.shown],
        )
        later = k.integers("later_line")
        self.none_of_before = k.induct(
            "none_of_them_compares_unequal",
            later,
            Implies(
                And(self.all_before(later), t < later),
                And(self.all_before(t), Not(self.unequal.holds)),
            ),
            [t >= 0],
            base=[],
            step=[then.at(t=later)],
        )
        self.known_copies = self._copies_are_known()
        self.lines_unequal = self._lines()
        self.copies_unequal = self._copies()

    @property
    def verdict(self) -> list[Bool]:
        return [self.accepted]

    # --------------------------------------------------------- what is compared
    @property
    def compared_by_line(self) -> tuple[Compared, ...]:
        """What line t compares, for device d: of its weight, and a norm of all."""
        l, t, d = self.l, self.l.t, self.l.d
        owner, own = l.mesh.of_norms.with_element(t, d, l.j), l.weight == self.whose_line(t)
        return (
            Compared("view", BACKWARD, WEIGHT, l.source(t), d, own),
            Compared("activations", BACKWARD, WEIGHT, l.second(t), d, own),
            Compared("weight", UPDATE, WEIGHT, l.source(t), d, own),
            Compared("gradient", UPDATE, None, l.third(t), d, own),
            Compared("normed_gradient", NORM_OF, None, l.normed(t), owner, l.is_a_weight),
            *(
                Compared(name, UPDATE, what, place, d, own, reads)
                for name, place, what, reads in self.numbers_read()
            ),
        )

    def equals_form(self, t: Any, b: Any, what: Any, u: Any, d: Any) -> Bool:
        """Whether the form of s in a place compares equal, seen from device d."""
        l = self.l
        wanted = self.wanted_of(l.s, self.needed(what, u), u)
        return self.form_equals(t, b, l.s, d, IntVal(0), l.j, wanted)

    def is_known(self, t: Any, b: Any, d: Any) -> Bool:
        return self.l.unknowns(t, b, d, self.l.j) == 0

    def _copies_are_known(self) -> Theorem:
        """Of the fragment: copies that are kept are known."""
        l = self.l
        copies = And(l.u <= self.settled, self.is_kept(WEIGHT, MOMENT), *self.on_a_device)
        return self.k.suppose(
            "copies_that_are_kept_are_known",
            [l.u, l.b, l.d, l.j],
            Implies(copies, self.is_known(l.ends(l.u), l.b, l.d)),
        )

    def is_kept(self, *kinds: Any) -> Bool:
        """Whether place b keeps a state after step u, of such a kind, and device d its element j."""
        return And(self.l.u >= 0, self.l.u < self.l.last, self.is_copied(*kinds))

    def is_copied(self, *kinds: Any) -> Bool:
        """The same of a step that there is."""
        l, end = self.l, self.l.ends(self.l.u)
        names = {WEIGHT: "Weight", MOMENT: "Moment"}
        copies = (
            copy
            for name in map(names.__getitem__, kinds)
            for copy in (
                l.kept(l.b) == STARTS[f"{name}s"],
                And(l.kept(l.b) == STARTS[f"{name}_slices"], l.mesh.holds(l.b, l.d, l.j)),
            )
        )
        return And(end >= 0, end <= l.last, Or(*copies))

    def _computes(self) -> list[Bool]:
        """That what line t computes on device d is not lost."""
        return [*self.on_a_device, Not(self.l.is_lost(self.l.t, self.l.d, self.l.j))]

    # ---------------------------------------------------- what comes out unequal
    def _is_a_value(self) -> list[Bool]:
        """That s is a value."""
        return [self.l.s >= 0, self.l.s < self.l.bound]

    def _lines(self) -> Theorem:
        """What does not count as right, and is not lost, compares unequal, and is known: of each line,
        where.
        """
        l, k = self.l, self.k
        names = ("on", "value", "weight")
        on, value, weight = (k.function(f"unequal_{name}", INT, INT) for name in names)
        element = k.function("unequal_element", INT, Element)
        self.of_which_view = k.function("unequal_view", INT, BOOL)
        self.where = at = (
            *((l.d, on(l.t)), (l.s, value(l.t))),
            *((l.j, element(l.t)), (l.weight, weight(l.t))),
        )
        unequal = Or(*(And(each.own, self.is_unequal_in(each)) for each in self.reads_of_line))
        return k.suppose(
            "what_is_neither_right_nor_lost_compares_unequal",
            [l.t],
            Implies(
                And(self.in_run, self.unequal.holds),
                substitute(And(*self._is_a_value(), *self._computes(), unequal), *at),
            ),
        )

    @property
    def reads_of_line(self) -> tuple[Compared, ...]:
        """What a line compares; of a backward one of both, by unequal_view."""
        l, t, (view, _, *others) = self.l, self.l.t, self.compared_by_line
        place = If(self.of_which_view(t), l.source(t), l.second(t))
        return Compared("a_view", view.kind, view.what, place, view.device, view.own), *others

    def is_unequal_in(self, of: Compared) -> Bool:
        l, t = self.l, self.l.t
        equal = self.equals_form(t, of.place, of.what, l.step(t), of.device)
        known = self.is_known(t, of.place, of.device)
        return And(l.kind(t) == of.kind, of.reads, Not(equal), known)

    def is_read(self, of: Compared) -> Bool:
        """Whether line t reads it, of a weight that it is about."""
        return And(self.l.kind(self.l.t) == of.kind, of.own, of.reads)

    def _copies(self) -> Theorem:
        """What is rejected has a copy that compares unequal at the end of a step that is run: of which
        step, and where.
        """
        l, k = self.l, self.k
        unequal = Or(
            *(And(self.is_kept(what), Not(self.copy_equals(what))) for what in (WEIGHT, MOMENT))
        )
        said = And(l.u <= self.settled, *self.on_a_device, *self._is_a_value(), unequal)
        found, before = (l.u, l.b, l.d, l.s, l.j), And(l.ends(l.u) <= l.t, said)
        self.unequal_copy = some(k, "a_copy_compares_unequal", [l.t], found, before)
        names = ("step", "place", "on", "value")
        at = *(k.fixed(f"rejected_{name}", INT) for name in names), k.fixed("rejected_element", Element)
        self.copy = {str(variable): term for variable, term in zip(found, at, strict=True)}
        return k.suppose(
            "what_is_rejected_keeps_what_compares_unequal",
            [],
            Implies(Not(self.accepted), substitute(said, *zip(found, at, strict=True))),
        )

    def copy_equals(self, what: Any) -> Bool:
        l = self.l
        return self.equals_form(l.ends(l.u), l.b, what, l.u + 1, l.d)

    # ------------------------------------------------------------------ of a run
    def of_runs(self) -> None:
        """Whether a line of a run reads something else than the single device has, or a copy is: of its
        weight, and a norm of any.
        """
        l, k, t, d, j, u, b = self.l, self.k, self.l.t, self.l.d, self.l.j, self.l.u, self.l.b
        others = (And(self.is_read(of), Not(self.is_right_in(of))) for of in self.compared_by_line)
        reads = And(self.runs_all, *self._computes(), Or(*others))
        self.reads_another = some(k, "a_line_reads_another", [], [l.weight, t, d, j], reads)
        end = l.ends(u)
        others = (
            And(self.is_kept(what), l.has(end, b, d)[j] != self.right_value(what, u + 1))
            for what in (WEIGHT, MOMENT)
        )
        self.is_own = l.weight == self.whose_copy(b)
        differs = And(self.is_own, *self.on_a_device, Or(*others))
        self.keeps_another = some(k, "does_not_match", [], [l.weight, u, b, d, j], differs)
        is_other = Or(self.reads_another.holds, self.keeps_another.holds)
        self.any_differs = some(k, "some_run_does_not_match", [], [l.run], self.keeps_another.holds)
        self.any_other = some(k, "some_run_reads_or_keeps_another", [], [l.run], is_other)

    def is_right_in(self, of: Compared) -> Bool:
        l, t = self.l, self.l.t
        return l.has(t, of.place, of.device)[l.j] == self.right_value(of.what, l.step(t))

    def _every_run(self, always: Theorem, kept: Theorem) -> Theorem:
        """Where all compares equal, every run has both halves."""
        l, k, t, d, j = self.l, self.k, self.l.t, self.l.d, self.l.j
        groups, update = l.mesh.of_norms, self.read_by_update
        owner = groups.with_element(t, d, j)
        facts = [*self.read_by_backward, *update.values(), self.normed.at(d=owner, asks=d)]
        right = k.prove(
            "lines_read_what_is_right",
            And(*(Implies(self.is_read(of), self.is_right_in(of)) for of in self.compared_by_line)),
            [self.runs_all, *self._computes(), Not(self.unequal.holds)],
            [
                *(self.off_shown, self.unequal.shown, *facts),
                *(always.at(b=place(t)) for place in (*l.sources, l.normed)),
                groups.inside.at(c=groups.owner(t, d, j)),
            ],
        )
        weight, line, device, element = self.reads_another.found
        reads = k.prove(
            "no_line_reads_another",
            Not(self.reads_another.holds),
            [Not(self.first.holds)],
            [
                self.reads_another.serves,
                right.at(weight=weight, t=line, d=device, j=element),
                self.none_first.at(t=l.last),
                self.none_of_before.at(t=line, later_line=l.last),
            ],
        )
        names = map(str, (l.weight, l.u, l.b, l.d, l.j))
        at = dict(zip(names, self.keeps_another.found, strict=True))
        self.matches = k.prove(
            "every_run_of_what_is_accepted_matches",
            Not(self.keeps_another.holds),
            [self.accepted],
            [self.keeps_another.serves, kept.at(**at)],
        )
        return k.prove(
            "every_run_of_what_compares_equal_is_a_single_devices",
            Not(self.any_other.holds),
            [self.accepted, Not(self.first.holds)],
            [
                self.any_other.serves,
                *(each.at(run=self.any_other.found[0]) for each in (reads, self.matches)),
            ],
        )
