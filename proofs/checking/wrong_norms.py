"""T2: where a norm is of another gradient than the whole one, it is another norm, in some run.

In that run a norm counts elements that are not the single device's. So no two wrong ones make up for
each other, and what is right has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs.checking.amounts import Language
from proofs.checking.symbols import CONTRIBUTION, WEIGHT, indicator
from proofs.checking.wrong_views import WrongViews
from proofs.trusted.kernel import Bool, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And


class WrongNorms(WrongViews):
    """A norm of line t that adds up, for device d, another gradient of element j of a weight."""

    def __init__(self, l: Language) -> None:
        super().__init__(l)
        self.among = self.k.integers("weight_of_norm")

    @property
    def owner_in_norm(self) -> Any:
        """The device whose slice of element j the norm of device d adds up."""
        return self.l.mesh.of_norms.with_element(self.l.t, self.l.d, self.l.j)

    def at_owner(self, said: Bool) -> Bool:
        """What is said of device d in place b, of what the norm reads of element j."""
        return substitute(said, (self.l.b, self.l.normed(self.l.t)), (self.l.d, self.owner_in_norm))

    def of_some_weight(self, said: Bool) -> Bool:
        """What is said of a weight, of one of those that the norm adds up."""
        return substitute(said, (self.l.weight, self.among))

    @property
    def of_a_line(self) -> list[Bool]:
        """That there is a line t, of which device, and of which weight."""
        l = self.l
        return [l.t >= 0, l.t <= l.last, *self.on_a_device, l.is_a_weight]

    def norms_of_another(self, exact: Sequence[Theorem], views: Theorem) -> tuple[Theorem, Theorem]:
        """A norm of what is the first to compare unequal, and of a contribution at a wrong view."""
        l, k, t = self.l, self.in_made_run, self.l.t
        another = self._another_norm()
        now, source, owner = l.step(t), l.normed(t), self.owner_in_norm
        groups, line, reader = l.mesh.of_norms, self.curved, self.reader
        inside = groups.inside.at(c=groups.owner(t, l.d, l.j))
        in_run = [self.odd >= 0, self.odd < l.bound]
        unequal = self.knows(t, l.b), self.all_equal(l.j, t), *self.is_unequal(t, l.b, None, now)
        weight, on_a_line = l.state(WEIGHT, l.step(line)), 2
        of_views = views.given[on_a_line + len(self.on_a_device) :]
        return (
            k.prove(
                "a_norm_of_what_compares_unequal_is_another",
                another.goal,
                [*self.of_a_line, *in_run, *map(self.at_owner, unequal)],
                [
                    *(another, inside, l.numbered, exact[2].at(b=source, d=owner, u=now)),
                    *self.who_shows(t, source, None, now, owner),
                ],
            ),
            k.prove(
                "a_norm_of_a_contribution_at_a_wrong_view_is_another",
                another.goal,
                [*self.of_a_line, now == l.step(line), *map(self.at_owner, of_views)],
                [
                    *(another, inside, views.at(b=source, d=owner)),
                    *self.who_shows(line, self.view, weight, l.step(line), reader),
                ],
            ),
        )

    def _another_norm(self) -> Theorem:
        """A norm of what is another gradient of one element of a weight is another norm."""
        l, k, t, d, j, e, u = self.l, self.in_made_run, self.l.t, self.l.d, self.l.j, self.l.e, self.l.u
        now, source, odd = l.step(t), l.normed(t), self.odd
        single = k.prove(
            "the_single_devices_gradient_of_the_model",
            l.single_gradient(u, j) == indicator(l.is_of_step(odd, u)),
            [u >= 0, u <= l.last, odd >= 0, odd < l.bound, *self.alone],
            [self.whole(CONTRIBUTION)[1], self.whole_of_model[CONTRIBUTION].at(s=l.bound)],
        )
        of_whole = k.induct(
            "of_the_single_devices_gradient_nothing_is_counted",
            e,
            l.of_whole(u, e) == 0,
            single.given,
            base=[l.of_whole.start],
            step=[
                l.of_whole.next,
                single.at(j=l.element(e)),
                self.norm_parts.at(y=l.single_gradient(u, l.element(e))),
            ],
        )
        of_wholes = k.induct(
            "of_the_single_devices_gradients_nothing_is_counted",
            l.weight,
            l.of_wholes(u, l.weight) == 0,
            single.given,
            base=[l.of_wholes.start],
            step=[l.of_wholes.next, of_whole.at(e=l.elements), l.counted],
        )
        x = l.element(e)
        read = l.has(t, source, l.mesh.of_norms.with_element(t, d, x))[x]
        another = self.at_owner(l.has(t, l.b, d)[j] != l.single_gradient(now, j))
        model = [odd >= 0, odd < l.bound, *self.alone]
        counted = k.induct(
            "what_is_another_gradient_is_counted",
            e,
            l.of_elements(t, d, e) >= indicator(And(another, l.number_of(j) < e)),
            model,
            base=[l.of_elements.start, l.counted],
            step=[
                l.of_elements.next,
                self.norm_parts.at(u=now, y=read),
                single.at(u=now),
                l.counted,
                l.numbered,
            ],
        )
        of_weights = k.induct(
            "what_is_another_gradient_of_a_weight_is_counted",
            l.weight,
            l.of_groups(t, d, l.weight)
            >= indicator(And(self.of_some_weight(another), self.among < l.weight)),
            [self.among >= 0, *model],
            base=[l.of_groups.start],
            step=[
                *(l.of_groups.next, l.group_is_of_elements.at(e=l.elements), l.counted),
                counted.at(e=l.elements),
            ],
        )
        made = of_weights.at(weight=l.all_weights, weight_of_norm=l.weight)
        return k.prove(
            "a_norm_of_another_gradient_is_another",
            l.computed_norm(t, d) != l.single_norm(now),
            [another, l.is_a_weight, *model],
            [
                *(made, of_wholes.at(u=now, weight=l.all_weights), l.numbered),
                self.norms.at(u=now, y=l.of_groups(t, d, l.all_weights)),
                self._norm_at(now),
            ],
        )
