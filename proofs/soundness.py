"""T4: whatever the schedule, what the checker accepts is what a single device does."""

from __future__ import annotations

from typing import Any

import z3

from proofs.claim import claim
from proofs.comparisons import KEPT
from proofs.kernel import Kernel, Theorem
from proofs.line_steps import Steps
from proofs.lines import FIRST, OPERATORS, OWNER
from proofs.meaning import COUNT
from proofs.symbolic_checker import CheckedLanguage
from proofs.symbolic_schedule import (
    INT,
    MOMENT,
    NOTHING,
    ONE,
    PLACES,
    STARTS,
    WEIGHT,
    ZERO,
    StartSort,
    cases,
)
from spec.operators import ALL, Operator

# what starts is of no such operator: all that these read is elsewhere
NEVER_FIRST = (Operator(OWNER, FIRST), Operator(FIRST, ALL))


class Soundness(Steps):
    """By induction over the lines of the flat run."""

    def always(self) -> Theorem:
        """What devices know, in any place after any line, is what forms stand for."""
        l, k, t, b = self.l, self.k, self.l.t, self.l.b
        read = [place(t) for place in (l.source, l.second, l.third, l.target)]
        right = [z3.Not(self.wrong(t, place)) for place in (b, *read[:-1])]
        step = k.prove("every_line_keeps_it", self.holds(t + 1, b), [*self.line, *right], self.steps)
        begin = self._begins()

        def at(time: Any) -> dict[str, Any]:
            device = self.wrong_device(time, b)
            return {"d": device, "j": self.wrong_element(time, b, device)}

        first, after = z3.IntVal(0), t + 1
        return k.induct(
            "nothing_known_is_wrong",
            t,
            z3.Not(self.wrong(t, b)),
            [t <= l.last],
            base=[
                self.found.at(t=first),
                self.found_at.at(t=first, d=at(first)["d"]),
                begin.at(**at(first)),
            ],
            step=[
                self.found.at(t=after),
                self.found_at.at(t=after, d=at(after)["d"]),
                step.at(**at(after)),
            ],
            at=[{}, *({"b": place} for place in read[:-1])],
        )

    def _begins(self) -> Theorem:
        """What places hold at first, their forms stand for."""
        l, k, b, s, d, j = self.l, self.k, self.l.b, self.l.s, self.l.d, self.l.j
        first, zero = self.here["f"], z3.IntVal(0)
        start = l.start(b)

        def one_of(word: str) -> Any:
            return z3.Or(*(start == STARTS[name] for name in STARTS if word in name))

        state = z3.If(one_of("Moment"), l.state(MOMENT, 0), l.state(WEIGHT, 0))
        there = k.prove(
            "the_first_states_are_there",
            z3.And(
                state >= 0,
                state < l.bound,
                l.time(state) == 0,
                l.what(state) == z3.If(one_of("Moment"), MOMENT, WEIGHT),
            ),
            (),
            [*(l.names.at(w=w, u=zero, m=zero) for w in (WEIGHT, MOMENT)), l.numbered],
        )
        empty = z3.Or(one_of("Zero"), start == NOTHING)

        def holds_it(at_owner: Any) -> Any:
            return z3.And(z3.Not(empty), z3.Or(z3.Not(one_of("slices")), at_owner))

        def amount(place: int) -> Any:
            return z3.If(z3.And(s == state, holds_it(z3.BoolVal(place == PLACES[OWNER]))), ONE, ZERO)

        here = holds_it(self.here["p"] == PLACES[OWNER])
        value = l.original(state, d, j)
        term = k.prove(
            "a_term_at_first",
            self.term(0, b, s, d, j) == z3.If(z3.And(s == state, here), value, ZERO),
            (),
            [
                self.term_is.at(t=zero),
                self.placed_as(amount),
                *(l.coefficient_start.at(op=o, f=first) for o in COUNT),
            ],
        )
        formed = k.induct(
            "what_forms_stand_for_at_first",
            s,
            self.stands_for(0, b, d, j, s) == z3.If(z3.And(state < s, here), value, ZERO),
            base=[self.stands_for.start.at(t=zero), there],
            step=[self.stands_for.next.at(t=zero), term],
        )
        return k.prove(
            "it_holds_at_first",
            z3.Implies(self.known_at(zero, b), self.is_right(zero, b)),
            (),
            [
                formed.at(s=l.bound),
                l.begin,
                there,
                l.original_is.at(s=state),
                self.not_gone.at(t=zero),
                *(l.unknown_start.at(op=o, f=first) for o in COUNT if OPERATORS[o] not in NEVER_FIRST),
                self.knows_is.at(**self.here, **self.named(l.not_known(zero, b, first))),
            ],
        )

    def at_the_end(self, always: Theorem) -> Theorem:
        """After every step, every kept copy that compares equal is the single device's."""
        l, k, u, b, s, d, j = self.l, self.k, self.l.u, self.l.b, self.l.s, self.l.d, self.l.j
        ends, kept = k.function("ends", INT, INT), k.function("kept_as", INT, StartSort)
        end = ends(u)
        step = [u >= 0, u < l.last, end >= 0, end <= l.last]
        what = {start: MOMENT if "Moment" in start else WEIGHT for start in KEPT}
        passes = [
            z3.Implies(
                z3.And(
                    kept(b) == STARTS[start],
                    *([l.p == PLACES[OWNER]] if need.of_slices else []),
                ),
                self.passes(end, b, l.f, l.p, l.state(what[start], u + 1), u),
            )
            for start, need in KEPT.items()
        ]
        compares = k.suppose(
            "kept_copies_compare_equal",
            [u, b, s, l.f, l.p],
            z3.Implies(z3.And(*step, self.there_are(l.f, l.p)), z3.And(*passes)),
        ).at(**self.here)
        found, copies, single = [], [], {}
        for start, need in KEPT.items():
            name = l.state(what[start], u + 1)
            there = self.state_is_there(what[start], u + 1, step[:2])
            copy = [kept(b) == STARTS[start], *([d == self.holder] if need.of_slices else [])]
            met = [compares, self.passed(end, b, name, u), self.there_are_is.at(**self.here)]
            stands = self.stands(need, end, b, name, u, [*step, *copy], met, there)
            right = (l.omega if what[start] is MOMENT else l.theta)(u + 1)[j]
            facts = [stands.at(s=l.bound), self.fine.at(t=end), always.at(t=end), *met, there]
            found.append(
                k.prove(
                    f"accepted_{start.lower()}_match",
                    l.has(end, b, d)[j] == right,
                    [*self.on_a_device, *step, *copy],
                    [*facts, l.original_is.at(s=name), *([] if need.of_slices else [l.owned])],
                )
            )
            copies.append(z3.And(*copy) if len(copy) > 1 else copy[0])
            single[STARTS[start]] = right
        return k.prove(
            "accepted_schedules_match",
            l.has(end, b, d)[j] == cases(kept(b), single, ZERO),
            [*self.on_a_device, *step, z3.Or(*copies)],
            found,
        )


@claim("T4")
def what_is_accepted_matches(k: Kernel) -> tuple[Theorem, ...]:
    """Of any schedule whose comparisons come out equal, every kept copy is the single device's.

    The schedule is a symbol: its lines are functions of which nothing is said. The checker's run of it
    and its comparisons are what the specification makes of normal forms with any coefficients; what
    is not known is arbitrary. Any number of devices, elements, micro-steps, steps and places, any
    owners, any model and elementwise optimizer with one moment. equals_state and equals_gradient are
    those comparisons, of one original value s on a device at place p; the verdict asks them of all
    values and places. That they come out equal is a hypothesis, never that a value is right.
    (Claim T4)
    """
    soundness = Soundness(CheckedLanguage(k))
    return (soundness.at_the_end(soundness.always()),)
