"""T4: the two halves of a match, said of a run alone, and that it has both if and only if it matches.

Current before a step is what keepers have: at first what devices begin with. Gradient integrity: an
update, and a norm, is of the whole gradient at the current weights. State consistency: what is read is
current, copies agree, and what is current next is what an update of the step left. So a run that has
both trains as a single device does, by induction over steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proofs.checking.accepted import HALF, INTEGRITY
from proofs.checking.rejected import Rejected
from proofs.checking.representation import Represented
from proofs.checking.symbols import INT, MOMENT, NORM, ROW, STARTS, TOKENS, UPDATE, WEIGHT, Element
from proofs.meaning.runs import implied
from proofs.tools.existence import some
from proofs.tools.sums import total
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import TRUE, And, If, Implies, IntVal, Not, Or
from spec.meaning import conditions


def fails(condition: conditions.Condition) -> Bool:
    """That a condition of the specification does not hold."""
    return Not(implied(condition))


class Halves(Rejected):
    """What a run lacks: integrity of its gradients, consistency of its states."""

    def __init__(self, l: Represented) -> None:
        super().__init__(l)
        self.of_runs()
        self._current()
        self._updates()
        self._lacks()

    def step_ends(self, u: Any) -> Bool:
        """Whether step u ends in the run."""
        return And(self.l.ends(u) >= 0, self.l.ends(u) <= self.l.last)

    def _current(self) -> None:
        """What the run itself has before each step: of each element what a device has that keeps it."""
        l, k, u, j = self.l, self.k, self.l.u, self.l.j
        self.keeper = l.of_weight("keeper", Element, INT)(j)
        copies = {WEIGHT: "copy", MOMENT: "copy_of_moments"}
        self.copy_of = {what: l.of_weight(name, INT)() for what, name in copies.items()}
        names = {WEIGHT: "current", MOMENT: "current_moments"}
        self.current = {what: l.of_run(name, INT, ROW) for what, name in names.items()}
        self.single_state = {WEIGHT: l.theta, MOMENT: l.omega}
        starts = zip(names, ("Weight", "Moment"), strict=True)
        self.held = {what: self._holds(what, name) for what, name in starts}
        moments = Implies(l.reads_moment, self.held[MOMENT])
        self.owned = k.suppose(
            "every_state_has_a_device_that_keeps_it",
            [j],
            Implies(l.is_a_weight, And(l.is_device(self.keeper), self.held[WEIGHT], moments)),
        )
        copied = self.whose_copy(l.b)
        self.of_weights = k.suppose(
            "lines_and_copies_are_of_weights",
            [l.t, l.b],
            And(*(substitute(l.is_a_weight, (l.weight, of)) for of in (self.whose_line(l.t), copied))),
        )
        self.own = {
            what: k.suppose(
                f"{name}_is_what_keepers_have",
                [u, j],
                self.current[what](u)[j]
                == If(
                    u == 0,
                    self.single_state[what](0)[j],
                    l.has(l.ends(u - 1), self.copy_of[what], self.keeper)[j],
                ),
            )
            for what, name in names.items()
        }
        moments = Or(*(l.kept(l.b) == STARTS[name] for name in ("Moments", "Moment_slices")))
        self.if_read = k.suppose(
            "moments_that_are_kept_are_read", [l.b], Implies(moments, l.reads_moment)
        )
        at = self.current[WEIGHT](u)
        part = l.part_of_norm(u, l.whole_gradient(at, u)[l.element(l.e)])
        self.of_own = total(k, "parts_of_its_own_norm", [u], l.e, part)
        self.of_owns = total(k, "weights_in_its_own_norm", [u], l.weight, self.of_own(u, l.elements))
        one_not = And(l.is_a_weight, Not(And(*self._is_single(u))))
        self.astray = some(k, "a_weight_is_not_the_single_devices", [u], [l.weight], one_not)

    def _holds(self, what: Any, name: str) -> Bool:
        """Whether the keeper of element j keeps it in the copy of a state."""
        l, copy = self.l, self.copy_of[what]
        slices = And(l.kept(copy) == STARTS[f"{name}_slices"], l.mesh.holds(copy, self.keeper, l.j))
        whole = l.kept(copy) == STARTS[f"{name}s"]
        return And(self.whose_copy(copy) == l.weight, Or(whole, slices))

    def _updates(self) -> None:
        """In each step some update of each element is computed; steps end one after the other."""
        l, k, t, d, u, j = self.l, self.k, self.l.t, self.l.d, self.l.u, self.l.j
        updates = And(
            *(t >= 0, t < l.last, l.kind(t) == UPDATE, l.step(t) == u),
            *(l.target(t) != l.second(t), l.weight == self.whose_line(t)),
            *(l.is_device(d), Not(l.is_lost(t, d, j))),
        )
        on_some, device, _, on_it = k.choose("some_device_updates_it", [u, j, t], d, updates)
        in_some, number, _, in_it = k.choose("some_line_updates_it", [u, j], t, on_some(u, j, t))
        self.update_line = line = number(u, j)
        self.update_on = device(u, j, line)
        step = And(*self._step(u))
        updated = k.suppose(
            "every_element_is_updated", [u, j], Implies(And(l.is_a_weight, step), in_some(u, j))
        )
        self.updated = k.prove(
            "it_is_updated_in_a_line",
            substitute(updates, (t, line), (d, self.update_on)),
            [l.is_a_weight, step],
            [updated, in_it, on_it.at(t=line)],
        )
        self.in_order = k.suppose(
            "steps_end_one_after_the_other",
            [t, u],
            And(
                Implies(And(t >= 0, t < l.last, l.step(t) > 0), self.step_ends(l.step(t) - 1)),
                Implies(And(u > 0, self.step_ends(u)), self.step_ends(u - 1)),
            ),
        )

    def _step(self, u: Any) -> list[Bool]:
        """That there is such a step, and it ends in the run."""
        return [u >= 0, u < self.l.last, self.step_ends(u)]

    def own_value(self, what: Any, u: Any) -> Any:
        """What the run itself has of element j in a step; of a gradient, what it is at its weights."""
        l, at = self.l, self.current[WEIGHT](u)
        if what in (WEIGHT, MOMENT):
            return self.current[what](u)[l.j]
        numbers = {NORM: l.norm(u, self.of_owns(u, l.all_weights)), TOKENS: l.single_count(u)}
        return numbers.get(what, l.whole_gradient(at, u)[l.j])

    def _lacks(self) -> None:
        """What a run lacks, of both halves."""
        l, k, (t, b, _, d, _, j), u = self.l, self.k, self.variables(), self.l.u
        fail: dict[bool, list[Bool]] = {True: [], False: []}
        for of in self.compared_by_line:
            of_gradients = HALF[of.what] == INTEGRITY
            said = conditions.gradient_integrity if of_gradients else conditions.freshness
            has, own = l.has(t, of.place, of.device)[j], self.own_value(of.what, l.step(t))
            fail[of_gradients].append(fails(said(self.is_read(of), has, own)))
        of_line, computes = [l.weight, t, d, j], [self.runs_all, *self._computes()]
        self.not_whole, self.not_fresh = (
            some(k, name, [], of_line, And(*computes, Or(*fail[half])))
            for name, half in (("lacks_integrity", True), ("reads_what_is_not_current", False))
        )
        other = (
            conditions.agreement(
                self.is_kept(what),
                self.held[what],
                l.has(l.ends(u), b, d)[j],
                self.own_value(what, u + 1),
            )
            for what in (WEIGHT, MOMENT)
        )
        differ = And(self.is_own, *self.on_a_device, Or(*map(fails, other)))
        self.disagree = some(k, "copies_disagree", [], [l.weight, u, b, d, j], differ)
        self.no_progress = some(
            k,
            "what_is_current_was_left_by_no_update",
            [],
            [l.weight, u, j],
            And(l.is_a_weight, *self._step(u), Or(*map(fails, self._progress()))),
        )
        self.halves = self.not_whole, self.not_fresh, self.disagree, self.no_progress
        self.lacks_any = Or(*(each.holds for each in self.halves))
        name = "some_run_lacks_integrity_or_consistency"
        self.any_lacks = some(k, name, [], [l.run], self.lacks_any)

    def _progress(self) -> Iterator[conditions.Condition]:
        """From step u to the next."""
        l, line = self.l, self.update_line
        places = (WEIGHT, l.target(line), TRUE), (MOMENT, l.second(line), l.reads_moment)
        for what, place, read in places:
            left = l.has(line + 1, place, self.update_on)[l.j]
            yield conditions.progress(read, self.own_value(what, l.u + 1), left)

    # ------------------------------------------------------- what has both is a single device
    def _is_begun(self, u: Any) -> Bool:
        """Whether step u begins in the run."""
        return And(u >= 0, u <= self.l.last, Implies(u > 0, self.step_ends(u - 1)))

    def _is_single(self, u: Any) -> list[Bool]:
        """That what is current in a step is the single device's."""
        moments = self.current[MOMENT](u) == self.l.omega(u)
        return [self.current[WEIGHT](u) == self.l.theta(u), Implies(self.l.reads_moment, moments)]

    def _own_norm(self) -> Theorem:
        """At the single device's weights the run's own norm is the single one."""
        l, u, e, weight = self.l, self.l.u, self.l.e, self.l.weight
        of_one = self.k.induct(
            "parts_of_the_own_norm_are_the_single_devices",
            e,
            self.of_own(u, e) == l.of_whole(u, e),
            [self.current[WEIGHT](u) == l.theta(u)],
            base=[self.of_own.start, l.of_whole.start],
            step=[self.of_own.next, l.of_whole.next],
        )
        return self.k.induct(
            "weights_in_the_own_norm_are_the_single_devices",
            weight,
            self.of_owns(u, weight) == l.of_wholes(u, weight),
            [Not(self.astray.holds), weight <= l.all_weights],
            base=[self.of_owns.start, l.of_wholes.start],
            step=[
                *(self.of_owns.next, l.of_wholes.next, l.counted),
                *(of_one.at(e=l.elements), self.astray.shown),
            ],
        ).at(weight=l.all_weights)

    def _has_both(self) -> Theorem:
        """What is current in a run that has both is the single device's, by induction over steps."""
        l, k, u, j, line, on = self.l, self.k, self.l.u, self.l.j, self.update_line, self.update_on
        has_both, zero, all_single = [Not(self.lacks_any)], IntVal(0), Not(self.astray.holds)
        there = {"t": line, "d": on}
        facts = [
            *(self.no_progress.shown, self.updated, l.trains, self.same_norm),
            self.astray.shown,
            *(each.shown.at(**there) for each in (self.not_whole, self.not_fresh)),
        ]
        self.begun, self.begun_is = k.define("begins_in_the_run", [u], self._is_begun(u))
        begun, goes_on = [], []
        states: tuple[tuple[Any, str, Any, list[Bool]], ...] = (
            (WEIGHT, "weights", l.target(line), []),
            (MOMENT, "moments", l.second(line), [l.reads_moment]),
        )
        for (what, name, place, read), alike in zip(states, l.update_alike(line, on), strict=True):
            current, single = self.current[what], self.single_state[what]
            first = k.prove(
                f"one_of_the_{name}_begins_alike",
                current(0)[j] == single(0)[j],
                (),
                [self.own[what].at(u=zero)],
            )
            begun.append(k.extend(f"{name}_begin_alike", first, j))
            one = k.prove(
                f"one_of_the_{name}_goes_on_alike",
                current(u + 1)[j] == single(u + 1)[j],
                [*has_both, l.is_a_weight, *self._step(u), all_single, *read],
                [*facts, alike, *(fact.at(b=place, **there) for fact in (l.runs, l.gone_next))],
            )
            goes_on.append(k.extend(f"{name}_go_on_alike", one, j))
        (astray,) = self.astray.found
        at_first, after = (substitute(astray, (u, when)) for when in (zero, u + 1))
        return k.induct(
            "what_is_current_is_the_single_devices",
            u,
            Implies(self.begun(u), all_single),
            has_both,
            base=[self.astray.serves.at(u=zero), *(each.at(weight=at_first) for each in begun)],
            step=[
                *(self.astray.serves.at(u=u + 1), *(each.at(weight=after) for each in goes_on)),
                *(self.in_order, self.begun_is, self.begun_is.at(u=u + 1)),
            ],
        )

    def _matches(self, is_single: Theorem) -> Theorem:
        """A run that has both reads and keeps what a single device has."""
        l, k = self.l, self.k
        weight, line, device, element = self.reads_another.found
        at = {"weight": weight, "t": line, "d": device, "j": element}
        step, single = l.step(line), self.astray.shown
        reads = k.prove(
            "what_has_both_reads_what_a_single_device_does",
            Not(self.reads_another.holds),
            [Not(self.lacks_any)],
            [
                self.reads_another.serves,
                *(each.shown.at(**at) for each in (self.not_whole, self.not_fresh)),
                *(is_single.at(u=step), self.same_norm.at(u=step), self.in_order.at(t=line)),
                single.at(u=step, weight=weight),
                *(l.numbered.at(t=line), self.begun_is.at(u=step)),
                self.of_weights.at(t=line),
            ],
        )
        names = map(str, (l.weight, l.u, l.b, l.d, l.j))
        kept = dict(zip(names, self.keeps_another.found, strict=True))
        after = {"weight": kept["weight"], "u": kept["u"] + 1}
        return k.prove(
            "a_run_that_has_both_halves_matches",
            And(Not(self.keeps_another.holds), Not(self.reads_another.holds)),
            [Not(self.lacks_any)],
            [
                *(reads, self.keeps_another.serves, self.disagree.shown.at(**kept)),
                *(each.at(u=after["u"]) for each in (is_single, self.begun_is)),
                *(self.if_read.at(b=kept["b"]), single.at(**after)),
                self.owned.at(weight=kept["weight"], j=kept["j"]),
                self.of_weights.at(b=kept["b"]),
            ],
        )

    # ------------------------------------------------------------ what matches has both
    def _current_is_kept(self) -> list[Theorem]:
        """Of a run that matches, what is current is the single device's."""
        l, k, u, j = self.l, self.k, self.l.u, self.l.j
        before = {"u": u - 1, "d": self.keeper}
        found = []
        for what, name in ((WEIGHT, "weights"), (MOMENT, "moments")):
            read = [l.reads_moment] if what is MOMENT else []
            one = k.prove(
                f"one_of_the_{name}_that_are_kept_is_current",
                self.current[what](u)[j] == self.single_state[what](u)[j],
                [Not(self.keeps_another.holds), l.is_a_weight, self._is_begun(u), *read],
                [
                    *(self.own[what], self.owned),
                    self.keeps_another.shown.at(b=self.copy_of[what], **before),
                ],
            )
            found.append(k.extend(f"{name}_that_are_kept_are_current", one, j))
        (astray,) = self.astray.found
        none = k.prove(
            "none_that_is_kept_is_astray",
            Not(self.astray.holds),
            [Not(self.keeps_another.holds), self._is_begun(u)],
            [self.astray.serves, *(each.at(weight=astray) for each in found)],
        )
        return [*found, none]

    def _lacks_nothing(self) -> Theorem:
        """A run that reads and keeps what a single device has, has both."""
        l, k = self.l, self.k
        *kept, all_single = self._current_is_kept()
        given = [Not(self.reads_another.holds), Not(self.keeps_another.holds)]
        found = []
        for name, lacks, of_weight, of_all in (
            ("has_integrity", self.not_whole, kept[:1], [all_single, self.same_norm]),
            ("reads_what_is_current", self.not_fresh, kept, []),
        ):
            weight, line, device, element = lacks.found
            at = {"weight": weight, "t": line, "d": device, "j": element}
            found.append(
                k.prove(
                    f"what_matches_{name}",
                    Not(lacks.holds),
                    given,
                    [
                        *(lacks.serves, self.reads_another.shown.at(**at)),
                        *(each.at(u=l.step(line), weight=weight) for each in of_weight),
                        *(each.at(u=l.step(line)) for each in of_all),
                        *(self.in_order.at(t=line), l.numbered.at(t=line)),
                        self.of_weights.at(t=line),
                    ],
                )
            )
        (weight, u, b, d, j) = self.disagree.found
        found.append(
            k.prove(
                "what_matches_keeps_equal_copies",
                Not(self.disagree.holds),
                given[1:],
                [
                    *(
                        self.disagree.serves,
                        self.keeps_another.shown.at(weight=weight, u=u, b=b, d=d, j=j),
                    ),
                    *(each.at(u=u + 1, weight=weight) for each in kept),
                    self.if_read.at(b=b),
                    self.of_weights.at(b=b),
                ],
            )
        )
        (weight, u, j) = self.no_progress.found
        at = {"weight": weight, "u": u, "j": j}
        line, on = (self._of(term, weight, u, j) for term in (self.update_line, self.update_on))
        there = {"weight": weight, "t": line, "d": on, "j": j}
        places = l.target(line), l.second(line)
        found.append(
            k.prove(
                "what_matches_is_updated",
                Not(self.no_progress.holds),
                given,
                [
                    *(self.no_progress.serves, self.updated.at(**at), l.trains.at(**at)),
                    self.reads_another.shown.at(**there),
                    *(each.at(u=u + 1, weight=weight) for each in kept),
                    *(l.runs.at(b=place, **there) for place in places),
                    *(l.gone_next.at(t=line, b=place) for place in places),
                    *(each.at(j=j, weight=weight) for each in l.update_alike(line, on)),
                ],
            )
        )
        return k.prove("what_matches_lacks_nothing", Not(self.lacks_any), given, found)

    def _of(self, term: Any, weight: Any, u: Any, j: Any) -> Any:
        return substitute(term, (self.l.weight, weight), (self.l.u, u), (self.l.j, j))

    # ------------------------------------------------------------------- the theorem
    def of_halves(
        self, accepted: Theorem, is_single: Theorem, all_equal: Theorem
    ) -> tuple[Theorem, ...]:
        """A run has both if and only if it matches with its lines; all do if and only if all match."""
        k = self.k
        self.same_norm = self._own_norm()
        matches = self._matches(self._has_both())
        nothing = self._lacks_nothing()
        facts = [
            *(self.any_other.serves, self.any_lacks.serves),
            self.any_other.shown.at(run=self.any_lacks.found[0]),
            self.any_lacks.shown.at(run=self.any_other.found[0]),
            matches.at(run=self.any_other.found[0]),
            nothing.at(run=self.any_lacks.found[0]),
        ]
        same = k.prove(
            "some_run_lacks_a_half_if_and_only_if_one_is_not_a_single_devices",
            self.any_other.holds == self.any_lacks.holds,
            (),
            facts,
        )
        has_both = Not(self.any_lacks.holds)
        return (
            accepted,
            k.prove(
                "a_run_has_both_halves_if_and_only_if_it_and_its_lines_match",
                Not(self.lacks_any)
                == And(Not(self.keeps_another.holds), Not(self.reads_another.holds)),
                (),
                [matches, nothing],
            ),
            k.prove(
                "every_run_matches_if_and_only_if_every_run_has_both_halves",
                And(Not(self.any_differs.holds) == has_both, self.accepted == has_both),
                (),
                [accepted, is_single, same],
            ),
            k.prove(
                "all_compares_equal_if_and_only_if_every_run_has_both_halves",
                And(self.accepted, Not(self.first.holds)) == has_both,
                (),
                [all_equal, same],
            ),
        )
