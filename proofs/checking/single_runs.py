"""T4: what E2 says of single runs, of the lines of a schedule.

If the optimizer is jointly injective, as SGD, momentum and Adam are, what an update leaves is the
single device's only if it applied the whole gradient.
"""

from __future__ import annotations

from proofs.checking.every_line import EveryLine
from proofs.checking.symbols import BOOL, UPDATE
from proofs.trusted.kernel import Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, Implies


def injective_updates(c: EveryLine, always: Theorem) -> Theorem:
    """An update of what compares equal leaves the single device's states if and only if what it applies
    is the whole gradient: in any run whose optimizer is jointly injective.
    """
    l, k, t, d, j = c.l, c.k, c.l.t, c.l.d, c.l.j
    now, target, moments = l.step(t), l.target(t), l.second(t)
    old, moment, one, other, norm, count = k.reals(
        "of_weight of_moment one_gradient other_gradient by_norm by_count"
    )

    def after(gradient: object) -> list[object]:
        read = l.u, j, old, moment, gradient, norm, count
        return [l.next_weight(*read), l.next_moment(*read)]

    same = (a == b for a, b in zip(after(one), after(other), strict=True))
    is_injective = l.of_run("is_jointly_injective", BOOL)()
    injective = k.suppose(
        "the_optimizer_is_jointly_injective",
        [l.u, j, old, moment, one, other, norm, count],
        Implies(And(is_injective, *same), one == other),
    )
    applied, whole = l.has(t, l.third(t), d)[j], l.single_gradient(now, j)
    left = (l.has(t + 1, place, d)[j] for place in (target, moments))
    single = (state(now + 1)[j] for state in (l.theta, l.omega))
    beside = (
        ("weights", l.source(t), None),
        *((f"{n}s", p, reads) for n, p, _, reads in c.numbers_read()),
    )
    equal, facts = [], []
    for name, place, reads in beside:
        all_equal, right = c.right_if_equal[name]
        at = {"b": place, "u": now}
        said = substitute(all_equal, (l.b, place), (l.u, now))
        equal.append(said if reads is None else Implies(reads, said))
        facts += [right.at(**at), always.at(b=place)]
    return k.prove(
        "an_injective_update_is_right_if_and_only_if_its_gradient_is",
        And(*(has == needs for has, needs in zip(left, single, strict=True))) == (applied == whole),
        [is_injective, *c.line, l.kind(t) == UPDATE, target != moments, *c.on_a_device, *equal],
        [
            *facts,
            *(fact.at(b=place) for fact in (l.runs, l.gone_next) for place in (target, moments)),
            *l.update_alike(t, d),
            *(l.trains.at(u=now), l.numbered),
            injective.at(
                u=now,
                of_weight=l.theta(now)[j],
                of_moment=l.applied_moment(now),
                one_gradient=applied,
                other_gradient=whole,
                by_norm=l.applied_norm(now),
                by_count=l.applied_count(now),
            ),
        ],
    )
