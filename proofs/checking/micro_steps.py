"""T4: what any number of micro-steps leave, each of which moves what is there and adds to it."""

from __future__ import annotations

from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.parts import substitute
from proofs.trusted.terms import And, DeclareSort, Implies, IntSort, IntVal


def any_number_of_micro_steps(k: Kernel) -> Theorem:
    """What micro-steps leave: T of what was there, as often as there are, and of what each adds.

    `few`: after how many more micro-steps what one adds stays as it is; `early`: what was there.
    So each adds as much more as the one before, one micro-step later, once both stay as they are.
    """
    number, amounts = IntSort(), DeclareSort("Amounts")
    x, y, z = (k.constant(name, amounts) for name in ("x", "y", "z"))
    n, m = k.integers("n m")
    none, begun = k.fixed("none", amounts), k.fixed("begun", amounts)
    few, early = k.fixed("few", number), k.fixed("early", number)
    plus = k.function("plus", amounts, amounts, amounts)
    adds, moved = k.function("adds", number, amounts), k.function("moved", amounts, amounts)
    sums = k.suppose(
        "amounts_are_added_in_any_order_and_can_be_taken_off",
        [x, y, z],
        And(
            plus(x, none) == x,
            plus(plus(x, y), z) == plus(plus(x, z), y),
            plus(plus(x, y), z) == plus(x, plus(y, z)),
            Implies(plus(x, z) == plus(y, z), x == y),
        ),
    )
    linear = k.suppose(
        "what_is_moved_is_linear",
        [x, y],
        And(moved(plus(x, y)) == plus(moved(x), moved(y)), moved(none) == none),
    )

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
    settles = k.suppose(
        "what_is_added_and_what_was_there_settle",
        [m],
        And(
            *(later(m, few + 1) == later(m, few), kept(early + 1) == kept(early)),
            *(few >= 0, early >= 0),
        ),
    )

    now = last(m, n)
    telescoped = k.induct(
        "one_more_is_added",
        n,
        plus(moved(now), adds(m + 1)) == last(m + 1, n + 1),
        base=[
            *(last_first, last_first.at(m=m + 1), last_next.at(m=m + 1, n=0)),
            *(later_first.at(m=m + 1), linear),
        ],
        step=[
            *(last_next, last_next.at(m=m + 1, n=n + 1), later_next.at(m=m - n)),
            linear.at(x=now, y=later(m - n, n)),
            sums.at(x=moved(now), y=later(m - n, n + 1), z=adds(m + 1)),
        ],
    )
    first = k.induct(
        "the_first_micro_steps_leave",
        n,
        left(n) == plus(kept(n), last(n - 1, n)),
        base=[left_first, kept_first, last_first.at(m=IntVal(-1)), sums.at(x=begun)],
        step=[
            *(left_next, kept_next, telescoped.at(m=n - 1)),
            linear.at(x=kept(n), y=last(n - 1, n)),
            sums.at(x=kept(n + 1), y=moved(last(n - 1, n)), z=adds(n)),
        ],
    )
    unmoved = k.induct(
        "what_has_settled_stays",
        n,
        moved(settled(n)) == settled(n),
        base=[settled_first, linear],
        step=[
            *(settled_next, settles.at(m=n), later_next.at(m=n, n=few)),
            linear.at(x=settled(n), y=later(n, few)),
        ],
    )
    all_of, late = few + n, last(few + n - 1, few)
    every = k.induct(
        "micro_steps_leave",
        n,
        left(all_of) == plus(plus(kept(all_of), settled(n)), late),
        base=[first.at(n=few), settled_first, sums.at(x=kept(few)), settles],
        step=[
            *(left_next.at(n=all_of), kept_next.at(n=all_of), settled_next, unmoved, settles),
            linear.at(x=plus(kept(all_of), settled(n)), y=late),
            linear.at(x=kept(all_of), y=settled(n)),
            telescoped.at(m=all_of - 1, n=few),
            last_next.at(m=all_of, n=few),
            sums.at(x=plus(kept(all_of + 1), settled(n)), y=moved(late), z=adds(all_of)),
            sums.at(x=plus(kept(all_of + 1), settled(n)), y=last(all_of, few), z=later(n, few)),
            sums.at(x=kept(all_of + 1), y=settled(n), z=later(n, few)),
        ],
    )
    as_it_was = k.induct(
        "what_was_there_stays",
        n,
        kept(early + n) == kept(early),
        step=[kept_next.at(n=early + n), kept_next.at(n=early), settles],
    )
    whole = k.prove(
        "micro_steps_leave_what_is_added_up",
        left(all_of) == plus(plus(kept(early), settled(n)), late),
        [n >= 0, all_of >= early],
        [every, as_it_was.at(n=all_of - early)],
    )

    # each value one micro-step later: what is added, and so what is moved of it
    later_value = k.function("one_later", amounts, amounts)
    alike = k.suppose("micro_steps_add_alike", [m], later_value(adds(m)) == adds(m + 1))
    one_later = k.suppose(
        "values_one_later_are_moved_alike",
        [x, y],
        And(
            later_value(plus(x, y)) == plus(later_value(x), later_value(y)),
            *(later_value(none) == none, later_value(moved(x)) == moved(later_value(x))),
        ),
    )
    each = k.induct(
        "what_is_added_is_so_one_later",
        n,
        later_value(later(m, n)) == later(m + 1, n),
        base=[later_first, later_first.at(m=m + 1), alike],
        step=[later_next, later_next.at(m=m + 1), one_later.at(x=later(m, n))],
    )
    newer = k.induct(
        "what_the_last_added_is_so_one_later",
        n,
        later_value(last(m, n)) == last(m + 1, n),
        base=[last_first, last_first.at(m=m + 1), one_later],
        step=[
            *(last_next, last_next.at(m=m + 1), each.at(m=m - n)),
            one_later.at(x=last(m, n), y=later(m - n, n)),
        ],
    )
    stayed = k.induct(
        "what_is_added_stays",
        n,
        later(m, few + n) == later(m, few),
        step=[*(later_next.at(n=few + n), later_next.at(n=few)), settles],
    )
    found, then, newest = later_value(kept(n)), last(n, n), later(IntVal(0), n)
    more = plus(kept(n + 1), newest)
    leaves = k.prove(
        "a_micro_step_leaves_what_it_found_one_later_and_what_it_made",
        plus(left(n + 1), found) == plus(more, later_value(left(n))),
        [n >= 0],
        [
            *(first, first.at(n=n + 1), newer.at(m=n - 1), last_next.at(m=n)),
            one_later.at(x=kept(n), y=last(n - 1, n)),
            sums.at(x=kept(n + 1), y=then, z=newest),
            sums.at(x=more, y=found, z=then),
        ],
    )
    now, there, same = left(n + 1), later_value(left(n)), plus(kept(early), later(IntVal(0), few))
    rest, again = later_value(kept(early)), plus(left(n + 1), later_value(left(n + 1)))
    adds_again = k.prove(
        "once_it_settles_each_adds_what_the_one_before_added_one_later",
        plus(left(n + 2), there) == again,
        [n >= early, n >= few],
        [
            *(leaves, leaves.at(n=n + 1), settles),
            *(as_it_was.at(n=n + i - early) for i in range(3)),
            *(stayed.at(m=IntVal(0), n=n + i - few) for i in range(2)),
            sums.at(x=left(n + 2), y=rest, z=there),
            sums.at(x=same, y=later_value(now), z=there),
            sums.at(x=now, y=rest, z=later_value(now)),
            sums.at(x=plus(left(n + 2), there), y=again, z=rest),
        ],
    )
    return k.prove(
        "any_number_of_micro_steps_leave",
        And(whole.goal, substitute(adds_again.goal, (n, all_of))),
        whole.given,
        [whole, adds_again.at(n=all_of)],
    )
