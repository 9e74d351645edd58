"""T5: comparisons of the first steps, and of one that repeats, are those of all; and micro-steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.few_steps import FewSteps
from proofs.checking.matching import Read
from proofs.checking.norms import NormedLanguage
from proofs.checking.repetition import require_repetition
from proofs.checking.symbols import indicator
from proofs.claim import claim
from proofs.trusted.kernel import Bool, Kernel, Theorem
from proofs.trusted.parts import constants, substitute
from proofs.trusted.terms import And, DeclareSort, Implies, IntSort, IntVal


class LaterSteps(FewSteps):
    """What T2 supposes of all lines is supposed of few."""

    def finds_equal(self, p: Any, b: Any, state: Any) -> Bool:
        """What the checker compares in the step that it runs."""
        l, s, i = self.l, self.l.s, self.l.i
        here = And(i >= 0, i < l.n, Implies(l.is_state(s), i == 0))
        wanted = l.is_of_step(s, self.settled) if state is None else s == state
        return And(
            self.unknown_found(p, b) == 0, Implies(here, self.amount_found(p, b) == indicator(wanted))
        )

    def all_equal_in(
        self, name: str, variables: Sequence[Any], given: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """What is read compares equal: in the first steps and in one, so it does in all."""
        l, t, u, zero = self.l, self.l.t, self.l.u, IntVal(0)
        by_line = any(v is t for v in variables)
        early = t < self.begins(self.settled) if by_line else u < self.settled
        compares, about = And(*(self.compares(*each) for each in reads)), [*given, *self.on_a_device]
        first = self.k.suppose(
            f"{name}_in_the_first_steps", variables, Implies(And(early, *about), compares)
        )
        step, place = (l.step(t), t - self.begins(l.step(t))) if by_line else (u, self.length)
        steps, at = step - self.settled, {"u": step, "p": place}
        back = steps, self.begins(step) - self.begins(self.settled)
        found = self._found_equal(name, variables, about, reads)
        then = {"s": self.before(l.s, *back), **({"p": place} if by_line else {})}
        facts = [
            first,
            self.there_is_one,
            self.come_later.at(u=step),
            self.name_is(*back),
            found.at(**then),
        ]
        facts += (self.compared(*each) for each in reads)
        for i in (l.i, zero):
            facts += [self.every_step.at(later=steps, i=i), self.one_step.at(i=i, **at)]
            facts += (self.so.at(b=b, i=i, **at) for _, b, _, _ in reads)
        states = {id(state): state.args for _, _, state, _ in reads if state is not None}
        for what, when, _ in states.values():
            facts += (l.names.at(w=what, u=each, m=zero) for each in (when, when - steps))
        facts += [l.name_is_its_own] if states else []
        if not by_line:
            facts.append(self.follow)
            return self.k.prove(name, Implies(And(*about), compares), (), facts)
        facts += [l.numbered, self.numbers, self.same_lines.at(**at)]
        asks = [v for v in variables if str(v) == "asks"]
        facts += (self.same_right.at(d=v, **at) for v in asks or [l.d])
        for v in asks:
            facts += [self.same_groups.at(d=v, **at)]
            facts += [self.same_members.at(d=v, c=l.mesh.owner(t, v, l.j), **at)]
        return self.k.prove(name, Implies(And(*about), compares), (), facts)

    def _found_equal(
        self, name: str, variables: Sequence[Any], about: Sequence[Bool], reads: Sequence[Read]
    ) -> Theorem:
        """The checker finds it equal in the step that it runs, which is run whole."""
        t, u = self.l.t, self.l.u
        by_line = any(v is t for v in variables)
        there = (t, self.run_at) if by_line else (u, self.settled)
        run = {id(each) for each in self.line}
        when = [g for g in about if id(g) not in run and str(u) not in constants(g)]
        said = [
            self.finds_equal(
                self.p if by_line else self.length,
                substitute(b, there),
                state if state is None else substitute(state, there),
            )
            for _, b, state, _ in reads
        ]
        within = self.of_a_step if by_line else ()
        return self.k.suppose(
            f"{name}_in_the_step_that_repeats",
            [self.p if v is t else v for v in variables if v is not u],
            Implies(And(*within, *(substitute(each, there) for each in when)), And(*said)),
        )

    def looser(self) -> Theorem:
        """What the checker finds after the step is so after it, however little it knew before."""
        l, end, u = self.l, self.length, self.settled
        at = {"u": u, "p": end}
        return self.k.prove(
            "what_is_found_after_the_step_is_so",
            substitute(self.is_so(end, l.b), (l.u, u)),
            [
                *(*self.on_a_device, l.i >= 0, l.i < l.n),
                *(self.unknown_found(end, l.b) == 0, self.begins(u) + end <= l.last),
            ],
            [
                *(self.every_step.at(later=IntVal(0)), self.one_step.at(**at), self.so.at(**at)),
                self.there_is_one,
            ],
        )


@claim("T5")
def a_step_that_repeats_decides_all(k: Kernel) -> tuple[Theorem, ...]:
    """A step that leaves what it found, one step later, decides all later ones; and micro-steps.

    The run is T2's, of any length, on any mesh; from a step on, steps are alike. The checker runs that
    step from what it found before it, or from less. If all comparisons up to it come out equal, and in
    it, and it leaves what it found with each value a step later, then what is kept after every step is
    the single device's. What was found from less is so as well: so the checker may go on from it.
    Micro-steps that each make T x + D(m) of what is there, x, leave after n of them what the
    specification adds up, if T^(k + 1) D = T^k D. (Claim T5)
    """
    require_repetition()
    few = LaterSteps(NormedLanguage(k))
    return few.at_the_end(few.always()), few.looser(), _micro_steps(k.part("micro_steps"))


def _micro_steps(k: Kernel) -> Theorem:
    """What micro-steps leave: T of what was there, as often as there are, and of what each adds.

    `few`: after how many more micro-steps what one adds stays as it is; `early`: what was there.
    """
    number, amounts = IntSort(), DeclareSort("Amounts")
    x, y, z = (k.constant(name, amounts) for name in ("x", "y", "z"))
    n, m = k.integers("n m")
    none, begun = k.fixed("none", amounts), k.fixed("begun", amounts)
    few, early = k.fixed("few", number), k.fixed("early", number)
    plus = k.function("plus", amounts, amounts, amounts)
    adds, moved = k.function("adds", number, amounts), k.function("moved", amounts, amounts)
    nothing = k.suppose("a_sum_with_nothing", [x], plus(x, none) == x)
    order = k.suppose("sums_are_in_any_order", [x, y, z], plus(plus(x, y), z) == plus(plus(x, z), y))
    group = k.suppose("sums_are_grouped", [x, y, z], plus(plus(x, y), z) == plus(x, plus(y, z)))
    linear = k.suppose("what_is_moved_is_linear", [x, y], moved(plus(x, y)) == plus(moved(x), moved(y)))
    of_none = k.suppose("nothing_is_moved_to_nothing", [], moved(none) == none)

    left, left_first, left_next = k.recursion(
        "left", [], n, begun, lambda before: plus(moved(before()), adds(n))
    )
    kept, kept_first, kept_next = k.recursion("kept", [], n, begun, lambda before: moved(before()))
    later, later_first, later_next = k.recursion(
        "added_before", [m], n, adds(m), lambda before: moved(before(m))
    )
    last, last_first, last_next = k.recursion(
        "last_added", [m], n, none, lambda before: plus(before(m), later(m - n, n))
    )
    settled, settled_first, settled_next = k.recursion(
        "settled", [], n, none, lambda before: plus(before(), later(n, few))
    )
    stays = k.suppose("what_is_added_settles", [m], later(m, few + 1) == later(m, few))
    rests = k.suppose("what_was_there_settles", [], kept(early + 1) == kept(early))
    some = k.suppose("they_settle_at_some_time", [], And(few >= 0, early >= 0))

    now = last(m, n)
    telescoped = k.induct(
        "one_more_is_added",
        n,
        plus(moved(now), adds(m + 1)) == last(m + 1, n + 1),
        base=[
            *(last_first, last_first.at(m=m + 1), last_next.at(m=m + 1, n=0)),
            *(later_first.at(m=m + 1), of_none),
        ],
        step=[
            *(last_next, last_next.at(m=m + 1, n=n + 1), later_next.at(m=m - n)),
            linear.at(x=now, y=later(m - n, n)),
            order.at(x=moved(now), y=later(m - n, n + 1), z=adds(m + 1)),
        ],
    )
    first = k.induct(
        "the_first_micro_steps_leave",
        n,
        left(n) == plus(kept(n), last(n - 1, n)),
        base=[left_first, kept_first, last_first.at(m=IntVal(-1)), nothing.at(x=begun)],
        step=[
            *(left_next, kept_next, telescoped.at(m=n - 1)),
            linear.at(x=kept(n), y=last(n - 1, n)),
            group.at(x=kept(n + 1), y=moved(last(n - 1, n)), z=adds(n)),
        ],
    )
    unmoved = k.induct(
        "what_has_settled_stays",
        n,
        moved(settled(n)) == settled(n),
        base=[settled_first, of_none],
        step=[
            *(settled_next, stays.at(m=n), later_next.at(m=n, n=few), some),
            linear.at(x=settled(n), y=later(n, few)),
        ],
    )
    all_of, late = few + n, last(few + n - 1, few)
    every = k.induct(
        "micro_steps_leave",
        n,
        left(all_of) == plus(plus(kept(all_of), settled(n)), late),
        base=[first.at(n=few), settled_first, nothing.at(x=kept(few)), some],
        step=[
            *(left_next.at(n=all_of), kept_next.at(n=all_of), settled_next, unmoved, some),
            linear.at(x=plus(kept(all_of), settled(n)), y=late),
            linear.at(x=kept(all_of), y=settled(n)),
            telescoped.at(m=all_of - 1, n=few),
            last_next.at(m=all_of, n=few),
            group.at(x=plus(kept(all_of + 1), settled(n)), y=moved(late), z=adds(all_of)),
            order.at(x=plus(kept(all_of + 1), settled(n)), y=last(all_of, few), z=later(n, few)),
            group.at(x=plus(kept(all_of + 1), settled(n)), y=last(all_of, few), z=later(n, few)),
            group.at(x=kept(all_of + 1), y=settled(n), z=later(n, few)),
        ],
    )
    as_it_was = k.induct(
        "what_was_there_stays",
        n,
        kept(early + n) == kept(early),
        step=[kept_next.at(n=early + n), kept_next.at(n=early), rests, some],
    )
    return k.prove(
        "any_number_of_micro_steps_leave",
        left(all_of) == plus(plus(kept(early), settled(n)), late),
        [n >= 0, all_of >= early],
        [every, as_it_was.at(n=all_of - early)],
    )
