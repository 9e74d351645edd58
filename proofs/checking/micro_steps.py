"""T4: what any number of micro-steps leave, each of which moves what is there and adds to it."""

from __future__ import annotations

from proofs.trusted.kernel import Kernel, Theorem
from proofs.trusted.terms import And, DeclareSort, IntSort, IntVal


def any_number_of_micro_steps(k: Kernel) -> Theorem:
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
