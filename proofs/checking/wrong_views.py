"""T2: where a backward reads a wrong view, what is applied of it is another gradient, in some run.

In that run the loss of the device that reads it has a square, least at the single device's weights. So
what is right is as with a linear loss, and what is computed of the view is what it is off by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.exactness import Exactness
from proofs.checking.symbols import BACKWARD, CONTRIBUTION, ONE, WEIGHT, WRONG, ZERO, indicator
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, If, Implies, IntVal, Not, Or


class WrongViews(Exactness):
    """A backward at curved_line, which is the first to read something unequal, on device `reader`."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        k, t, b, s, d, i, j = self.k, *self.variables()
        line, reader = self.curved, self.reader
        self.stale = l.state(WRONG, line)  # the name of what it computes
        self.stale_is = l.names.at(w=WRONG, u=line, m=IntVal(0))
        read = If(self.of_view, l.source(line), l.second(line))
        self.view = read
        self.view_off = l.has(line, read, reader)[j] - l.theta(l.step(line))[j]
        apart = And(i >= 0, i < l.n, l.amount(t, b, s, d, i, j) != 0)
        of_device, _, self.apart_shown, _ = k.choose("has_of_others", [t, b, s, d, j], i, apart)
        other = And(self.is_wrong(s), s != self.stale, Not(self._is_elsewhere(s)))
        self.mixed, _, self.mixed_shown, _ = k.choose(
            "has_something_else_wrong", [t, b, d, j], s, And(other, of_device(t, b, s, d, j))
        )

    def _is_elsewhere(self, s: Any) -> Bool:
        """Whether a wrong value is a contribution that the loss has nothing of: neither a square of it,
        nor the odd value.
        """
        l, odd, at = self.l, self.odd, self.l.time(s)
        there = And(self._is_odd(CONTRIBUTION, l.step(at)), l.micro(at) == l.which(odd))
        square = And(l.step(at) == l.step(self.curved), l.micro(at) == l.micro(self.curved))
        return And(l.what(s) == WRONG, l.kind(at) == BACKWARD, Not(there), Not(square))

    @property
    def _read_stale(self) -> list[Bool]:
        """Which line it is, and that the odd value is none that it is to compute."""
        l, odd, line = self.l, self.odd, self.curved
        itself = And(self._is_odd(CONTRIBUTION, l.step(line)), l.which(odd) == l.micro(line))
        return [l.kind(line) == BACKWARD, Not(itself)]

    @property
    def _there(self) -> list[Bool]:
        """That there is such a line, and such a device."""
        line, reader = self.curved, self.reader
        return [line >= 0, line <= self.l.last, reader >= 0, reader < self.l.n]

    def _stale_values(self) -> Theorem:
        """What original values are: the odd one is 1, what the line computes of its view what that is
        off by, all others are 0.
        """
        l, k, s, d, j = self.l, self.in_made_run, self.l.s, self.l.d, self.l.j
        odd = And(s == self.odd, d == self.contributor)
        stale = And(s == self.stale, d == self.reader)
        found = []
        is_line = [s == self.stale, *self._read_stale, *self._there[:2]]
        for name, which, at, makes in (
            ("the_line_computes", is_line, self.curved, If(stale, self.view_off, ZERO)),
            ("others_compute", [self._is_elsewhere(s)], l.time(s), ZERO),
        ):
            read = {
                "read_view": l.has(at, l.source(at), d),
                "read_activations": l.has(at, l.second(at), d),
            }
            found.append(
                k.prove(
                    f"what_{name}",
                    l.original(s, d, j) == makes,
                    which,
                    [
                        l.original_is,
                        l.gradient_alike(at, d),
                        self.quadratic.at(u=l.step(at), m=l.micro(at), i=d, **read),
                        *([self.stale_is] if at is self.curved else []),
                    ],
                )
            )
        return k.prove(
            "a_stale_value_is_off",
            l.original(s, d, j) == If(stale, self.view_off, indicator(odd)),
            [
                Or(Not(self.is_wrong(s)), s == self.stale, self._is_elsewhere(s)),
                *(Not(self.is_wrong(self.odd)), self.alone[2], *self._read_stale, *self._there[:2]),
            ],
            [*found, self.values_are],
        )

    def _stands_for_both(self) -> Theorem:
        """What a place stands for: how often it has the odd value, and what the view is off by."""
        l, k, t, b, s, d, i, j = self.l, self.in_made_run, *self.variables()
        odd, contributor = self.odd, self.contributor
        values = self._stale_values()
        once = l.amount(t, b, odd, d, contributor, j)
        used = self.times(l.amount(t, b, self.stale, d, self.reader, j), self.view_off)
        value, amount = l.original(s, i, j), l.amount(t, b, s, d, i, j)
        first, within, alone = self.alone
        *there, inside = self._there
        given = [
            *(Not(self.mixed(t, b, d, j)), Not(self.is_wrong(odd)), first, alone),
            *(*self._read_stale, *there),
        ]
        shares = k.induct(
            "shares_of_both",
            i,
            self.shares(t, b, s, d, j, i)
            == If(And(s == self.stale, self.reader < i), used, ZERO)
            + If(And(s == odd, contributor < i), once, ZERO),
            [*given, i <= l.n],
            base=[self.shares.start],
            step=[
                self.shares.next,
                values.at(d=i),
                *(self.apart_shown, self.mixed_shown),
                self.times_is.at(multiple=ZERO, multiplied=value),
                self.times_is.at(multiple=amount, multiplied=ZERO),
                self.times_is.at(multiple=amount, multiplied=ONE),
                self.stale_is,
            ],
        )
        return k.induct(
            "places_stand_for_both",
            s,
            self.stands_for(t, b, d, j, s) == If(self.stale < s, used, ZERO) + If(odd < s, once, ZERO),
            [*given, within, inside, odd >= 0],
            base=[self.stands_for.start, self.stale_is],
            step=[self.stands_for.next, shares.at(i=l.n)],
        ).at(s=l.bound)

    def _reads_unequal(self) -> list[Bool]:
        """That the device reads something unequal in the line, and nothing was unequal before."""
        l, line = self.l, self.curved
        unequal = [
            *(self.knows(l.t, l.b), self.all_equal(l.j, l.t)),
            *self.is_unequal(l.t, l.b, l.state(WEIGHT, l.u), l.u),
        ]
        at = (l.t, line), (l.b, self.view), (l.d, self.reader), (l.u, l.step(line))
        return [substitute(each, *at) for each in unequal]

    @property
    def applies_the_view(self) -> list[Bool]:
        """That what device d knows in place b has a part of a contribution at a wrong view, and of the
        odd value as much as is needed, and nothing else that is wrong.
        """
        l, t, b, d, j, odd = self.l, self.l.t, self.l.b, self.l.d, self.l.j, self.odd
        of_step = indicator(l.is_of_step(odd, l.step(self.curved)))
        return [
            *(self.knows(t, b), self._read_stale[1], Not(self.is_wrong(odd))),
            Not(self.mixed(t, b, d, j)),
            l.amount(t, b, self.stale, d, self.reader, j) != 0,
            l.amount(t, b, odd, d, self.contributor, j) == of_step,
        ]

    def wrong_view_differs(self, exact: Sequence[Theorem], always: Theorem) -> Theorem:
        """What has a part of a contribution at a wrong view, and else all, is no whole gradient."""
        l, k, t, b, d, j = self.l, self.in_made_run, self.l.t, self.l.b, self.l.d, self.l.j
        odd, line = self.odd, self.curved
        now = l.step(line)
        multiple, multiplied = self.factors
        product = k.prove(
            "a_product_of_what_is_not_zero",
            Implies(And(multiple != 0, multiplied != 0), self.times(multiple, multiplied) != 0),
            (),
            [self.times_is],
        )
        used = l.amount(t, b, self.stale, d, self.reader, j)
        return k.prove(
            "a_contribution_at_a_wrong_view_is_another_gradient",
            l.has(t, b, d)[j] != l.single_gradient(now, j),
            [
                *(t >= 0, t <= l.last, *self.on_a_device, *self.applies_the_view),
                *(self._read_stale[0], *self._there, *self._reads_unequal()),
                *(odd >= 0, odd < l.bound),
            ],
            [
                exact[0].at(t=line, b=self.view, d=self.reader, u=now),
                *self.who_shows(line, self.view, l.state(WEIGHT, now), now, self.reader),
                *(self._stands_for_both(), self.fine, always, l.numbered.at(t=line)),
                product.at(multiple=used, multiplied=self.view_off),
                self.whole(CONTRIBUTION)[1].at(u=now),
                self.whole_of_model[CONTRIBUTION].at(u=now, s=l.bound),
                self.stale_is,
            ],
        )
